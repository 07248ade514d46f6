//! Planning the next calls or the answer, from the prompt and the results so far.

use crate::intent::{Misread, is_understood, parse};
use crate::lex::attached;
use crate::results::{Call, Halt, Results};
use crate::{acts, answer};
use llm_worker::{Item, ModelEvent, Shortfall, StopReason, ToolDefinition};

/// Plans the next events for a history whose last turn is open, ending with one [`ModelEvent::Stop`]. Pure; time linear
/// in the history.
#[must_use]
pub fn next(items: &[Item], tools: &[ToolDefinition]) -> Vec<ModelEvent> {
    let asked = items
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, item)| match item {
            Item::User { text, .. } | Item::Command { text } => {
                Some((text.as_str(), items.get(at..)?))
            }
            _ => None,
        });
    let (prompt, turn) = asked.unwrap_or(("", items));
    let files = turn.first().map(Item::attachments).unwrap_or_default();
    let (mut events, stop) = match answer(prompt, turn, tools) {
        Ok((mut text, shortfall)) => {
            if !files.is_empty() {
                text.push_str("\n\nThis planner cannot see files:");
                let names = files.iter().map(|file| format!(" {};", file.about()));
                text.extend(names);
                text.push_str(" none was looked at.");
            }
            let shortfall = shortfall.map(ModelEvent::Shortfall);
            (
                std::iter::once(ModelEvent::Text(text))
                    .chain(shortfall)
                    .collect(),
                StopReason::EndTurn,
            )
        }
        Err(calls) => {
            let events = |(index, (name, arguments)): (usize, Call)| {
                let started = ModelEvent::CallStarted {
                    index,
                    name: name.to_owned(),
                };
                [
                    started,
                    ModelEvent::CallArguments {
                        index,
                        fragment: arguments.to_string(),
                    },
                ]
            };
            (
                calls
                    .into_iter()
                    .enumerate()
                    .flat_map(events)
                    .collect::<Vec<_>>(),
                StopReason::ToolUse,
            )
        }
    };
    events.push(ModelEvent::Stop(stop));
    events
}

/// The answer, with the shortfall if it does not do what was asked for; or the next calls.
type Told = Result<(String, Option<Shortfall>), Vec<Call>>;

fn answer(prompt: &str, turn: &[Item], tools: &[ToolDefinition]) -> Told {
    let (head, piped) = attached(prompt);
    let mut results = Results::new(turn, tools, piped.unwrap_or_default());
    let clauses = match parse(prompt) {
        Ok(clauses) => clauses,
        Err(misread) => return misunderstood(&misread, head, &mut results),
    };
    let mut texts = Vec::new();
    let mut ok = true;
    let mut shortfall = None;
    for clause in clauses {
        if !ok && clause.waits {
            texts.push("The rest was not done, because what came before it failed.".to_owned());
            break;
        }
        let done = (clause.act)(&mut results, &clause.scope);
        ok = done.is_ok();
        match done {
            Ok(text) => texts.push(text),
            Err(Halt::Calls(calls)) => return Err(calls),
            // Nothing was done yet, so the word is not a path here.
            Err(Halt::NoPlace(place)) if texts.is_empty() => {
                let misread = Misread {
                    part: place,
                    why: "there is no such file or directory here",
                };
                return misunderstood(&misread, head, &mut results);
            }
            Err(Halt::NoPlace(place)) => {
                texts.push(format!("There is no file or directory `{place}` here."))
            }
            Err(Halt::Failed(why)) => texts.push(why),
        }
        shortfall = shortfall.or((!ok).then_some(Shortfall::NotDone));
    }
    texts.extend(results.notes);
    Ok((texts.join("\n\n"), shortfall))
}

fn misunderstood(misread: &Misread, prompt: &str, results: &mut Results<'_>) -> Told {
    let examples = acts::examples(results, is_understood)?;
    Ok((
        answer::not_understood(&misread.part, misread.why, prompt, examples),
        Some(Shortfall::NotUnderstood),
    ))
}
