//! The last words of a run: its answer, its exit code, what failed and the next step.

use crate::commands::output_schema::AnswerForm;
use crate::commands::signals::Ending;
use crate::commands::status::drop_turns;
use crate::look::Look;
use crate::remedy::{self, more_budget, of_pod};
use crate::report::{Report, labelled};
use crate::show::escape::json as harmless;
use crate::show::out;
use crate::show::progress::OutputStyle;
use authority::text::escape_line;
use host::exit::{Exit, Failure};
use host::limits::LIMITS;
use llm_worker::effect::Outcome;
use llm_worker::{Cost, ErrorKind, Shortfall};
use pod::control::{ANSWER_NOT_STORED, TurnEnd};
use pod::record::BudgetScope;
use pod::session::calls::RefusedCall;
use pod::session::spent::limit_reached;
use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;
use tui::{Tone, count, joined, markdown};

/// What a run with `--output-schema` ends with that `offline` did not understand.
const NO_JSON: &str = "--output-schema needs a language model: `offline` is a rule-based planner and cannot answer with JSON";

/// The result line of a run under `--json` that ended before its turn did.
pub(crate) fn failed(failure: &Failure) {
    let result = serde_json::json!({
        "k": "result", "answer": null, "exit": failure.exit.number(), "outcome": null, "steps": 0, "usage": null,
        "cost": null, "pod": null, "error": failure.message, "help": failure.help.as_ref().map(remedy::help),
    });
    out::json(&result);
}

/// Where a turn ran.
#[derive(Clone, Copy)]
pub(crate) struct EndedIn<'a> {
    /// None for a run that is not kept.
    name: Option<&'a str>,
    /// Another process hosts the pod, which goes on.
    live: bool,
    /// The command line named the pod.
    named: bool,
    /// `offline` answers, which cannot continue what it left.
    is_planner: bool,
}

impl<'a> EndedIn<'a> {
    /// In a pod of this process. `named`: by the command line.
    pub(crate) fn own(name: Option<&'a str>, named: bool, is_planner: bool) -> Self {
        Self {
            name,
            live: false,
            named,
            is_planner,
        }
    }

    /// In a pod of another process.
    pub(crate) fn live(name: &'a str, is_planner: bool) -> Self {
        Self {
            name: Some(name),
            live: true,
            named: true,
            is_planner,
        }
    }
}

/// How a run went: its turns, what came of the form its answer should have, what ended it from outside, and what
/// failed after its answer was committed.
pub(crate) struct FinishedRun {
    pub(crate) end: TurnEnd,
    /// Words of an answer were written to a terminal as they came.
    pub(crate) streamed: bool,
    pub(crate) output: AnswerForm,
    pub(crate) ending: Option<Ending>,
    pub(crate) late: Option<Failure>,
}

/// Prints what is left to say and gives the exit code. An answer that was committed is printed whatever failed
/// after it.
pub(crate) fn report(
    ended: &FinishedRun,
    pod: EndedIn<'_>,
    style: OutputStyle,
    took: Duration,
) -> Exit {
    let FinishedRun {
        end,
        output,
        ending,
        late,
        ..
    } = ended;
    let failed = late
        .as_ref()
        .map(|late| (late.message.clone(), late.help.as_ref().map(remedy::help)))
        .or_else(|| failure(ended, pod));
    let exit = late
        .as_ref()
        .map_or_else(|| exit_of(end, output, *ending), |late| late.exit);
    if style.json {
        let (error, help) = failed.clone().unzip();
        let mut result = serde_json::json!({
            "k": "result", "answer": answer(end), "exit": exit.number(), "outcome": outcome(end, output),
            "steps": end.steps, "usage": end.usage, "cost": end.cost.map(Cost::dollars), "pod": pod.name,
            "error": error, "help": help.flatten(),
        });
        match (output, result.as_object_mut()) {
            (AnswerForm::Fits { value, .. }, Some(result)) => {
                drop(result.insert("output".to_owned(), value.clone()))
            }
            (AnswerForm::Misfit(_) | AnswerForm::Missing, Some(result)) => {
                drop(result.insert("output".to_owned(), ().into()))
            }
            (AnswerForm::Free, _) | (_, None) => {}
        }
        out::json(&result);
    } else if let Some(text) = printed(ended, style) {
        out::raw(&match (style.answer, output) {
            (Some(look), AnswerForm::Free) => look.text(&markdown(&text, look.width(), look.theme)),
            _ => format!("{text}\n"),
        });
    }
    let mut text = style.cells.map_or("", |_| "\n").to_owned();
    let words = unfinished(end).filter(|_| !ended.streamed && !style.json);
    text.extend(words.map(|words| format!("{}\n", harmless(words))));
    if words.is_some() || (ended.streamed && answer(end).is_none()) {
        text.push_str("the answer above is incomplete\n");
    }
    if let Some((error, help)) = failure(ended, pod) {
        // The progress has shown the reason.
        let refused =
            exit == Exit::Refused && end.outcome == Outcome::Done && !style.quiet && !style.json;
        let error = if refused {
            "the last call was refused; the reason is above".to_owned()
        } else {
            error
        };
        text.push_str(&labelled("error: ", &error));
        text.push_str(
            &help
                .map(|help| labelled("help: ", &help))
                .unwrap_or_default(),
        );
    }
    if !style.quiet && !style.json {
        text.push_str(&closing_line(end, pod, style.cells, took));
    }
    // A standard error that is gone cannot be told so.
    drop(std::io::stderr().write_all(text.as_bytes()));
    if let Some(late) = late {
        late.say();
    }
    exit
}

/// How it ended: an answer that was not accepted leaves nothing done.
fn outcome(end: &TurnEnd, output: &AnswerForm) -> serde_json::Value {
    let unaccepted = end.shortfall == Some(Shortfall::NotAccepted)
        || end.paused.is_some()
        || matches!(output, AnswerForm::Misfit(_));
    match end.outcome == Outcome::Done && unaccepted {
        true => serde_json::json!({ "outcome": "not_accepted" }),
        false => serde_json::json!(end.outcome),
    }
}

/// The answer. What a model said before a cut, a limit or a failure is none; the journal has it, see [`unfinished`].
fn answer(end: &TurnEnd) -> Option<&str> {
    end.answer
        .as_deref()
        .filter(|_| end.outcome == Outcome::Done)
}

/// What the model said before it was cut, or when it refused; no answer, so it is for people only.
fn unfinished(end: &TurnEnd) -> Option<&str> {
    let is_end = matches!(end.outcome, Outcome::MaxTokens | Outcome::Refused);
    end.answer
        .as_deref()
        .map(str::trim)
        .filter(|words| is_end && !words.is_empty())
}

/// What standard output gets at the end: the answer, unless it was there as it came, or is not of the form it should have.
fn printed(ended: &FinishedRun, style: OutputStyle) -> Option<Cow<'_, str>> {
    match (&ended.output, answer(&ended.end)) {
        // The same document, whatever a terminal would make of its letters.
        (AnswerForm::Fits { text, .. }, _) => Some(harmless(text)),
        (AnswerForm::Misfit(_) | AnswerForm::Missing, _) => None,
        (AnswerForm::Free, answer) => answer
            .filter(|_| !style.stream)
            .map(|a| a.trim_end_matches('\n').into()),
    }
}

/// `12 steps · 34 s · 18k tokens · $0.05 · run-7f3a (yoi log run-7f3a)`.
fn closing_line(end: &TurnEnd, pod: EndedIn<'_>, cells: Option<Look>, took: Duration) -> String {
    let mut parts = vec![
        count(end.steps, "step"),
        format!("{:.1} s", took.as_secs_f64()),
    ];
    let tokens = end.usage.input.saturating_add(end.usage.output);
    match tokens {
        0 => {}
        1..=9_999 => parts.push(count(tokens, "token")),
        10_000.. => parts.push(format!("{}k tokens", tokens / 1000)),
    }
    parts.extend(
        end.cost
            .filter(|cost| *cost > Cost::default())
            .map(|cost| cost.to_string()),
    );
    parts.push(match pod.name {
        Some(name) => format!("{name} (yoi log {name})"),
        None => "not saved".to_owned(),
    });
    match cells {
        Some(look) => look.text(&joined(
            parts.iter().map(String::as_str),
            Tone::Dim,
            look.width(),
        )),
        None => format!("{}\n", escape_line(&parts.join(" · "))),
    }
}

fn exit_of(end: &TurnEnd, output: &AnswerForm, ending: Option<Ending>) -> Exit {
    match &end.outcome {
        Outcome::Done if matches!(output, AnswerForm::Misfit(_)) => Exit::Failed,
        Outcome::Done if end.refused.is_some() => Exit::Refused,
        // A gate that failed accepts nothing.
        Outcome::Done if end.shortfall.is_some() || end.paused.is_some() => Exit::Failed,
        Outcome::Done => Exit::Done,
        Outcome::MaxTokens | Outcome::Refused | Outcome::Empty | Outcome::Interrupted => {
            Exit::Failed
        }
        Outcome::StepLimit
        | Outcome::CostLimit
        | Outcome::TokenLimit
        | Outcome::TimeLimit
        | Outcome::ContextLimit => Exit::Limit,
        Outcome::Waiting => Exit::Waiting,
        Outcome::Aborted { .. } => Exit::Refused,
        Outcome::Cancelled => ending.map_or(Exit::Failed, Ending::exit),
        Outcome::ModelFailed { kind, .. } => match kind {
            ErrorKind::Retry | ErrorKind::Unavailable => Exit::Model,
            ErrorKind::Denied | ErrorKind::FixInput => Exit::Config,
            ErrorKind::Bug => Exit::Internal,
            ErrorKind::Corrupt | ErrorKind::Exhausted | ErrorKind::Cancelled => Exit::Failed,
        },
    }
}

/// Whether a limit of the turn ended it.
fn is_limit(outcome: &Outcome) -> bool {
    limit_reached(outcome).is_some() || *outcome == Outcome::ContextLimit
}

/// What failed and the next step; nothing for a run that is done.
fn failure(ended: &FinishedRun, pod: EndedIn<'_>) -> Option<(String, Option<String>)> {
    let FinishedRun {
        end: TurnEnd {
            outcome,
            held: at_limit,
            ..
        },
        ending,
        ..
    } = ended;
    // A limit holds a pod that stays.
    let go_on = |others: &[&str]| match (pod.name, others) {
        (Some(name), _) if pod.live && is_limit(outcome) => {
            or(format!("`yoi resume {name}` continues the turn"), others)
        }
        // The built-in planner does not understand "continue".
        (_, [first, others @ ..]) if pod.is_planner => or((*first).to_owned(), others),
        (_, []) if pod.is_planner => "run the command again".to_owned(),
        (Some(name), _) if pod.live => or(
            format!("continue with `yoi send {name} \"continue\"`"),
            others,
        ),
        (Some(name), _) if pod.named => or(
            format!("continue with `yoi run --pod {name} \"continue\"`"),
            others,
        ),
        (Some(_), _) => or("continue with `yoi run -c \"continue\"`".to_owned(), others),
        (None, _) => or("run the command again".to_owned(), others),
    };
    if let Some(hold) = at_limit
        .as_ref()
        .filter(|hold| hold.budget == Some(BudgetScope::Pod))
    {
        return Some((hold.reason.clone(), Some(more_budget(pod.name, pod.live))));
    }
    Some(match outcome {
        Outcome::Done => return unmet(ended, pod),
        Outcome::MaxTokens => (
            "the answer reached the model's output limit".to_owned(),
            Some(go_on(&[
                "ask for less",
                "raise `max_output` under [models.\"PROVIDER/MODEL\"] in the configuration",
            ])),
        ),
        Outcome::Refused => {
            let help = "change the prompt, or choose another model with -m";
            (
                "the model refused to answer".to_owned(),
                Some(help.to_owned()),
            )
        }
        Outcome::Empty => (
            "the model returned an empty answer".to_owned(),
            Some(go_on(&["use another model with -m"])),
        ),
        Outcome::Interrupted => {
            // The process of a live pod was stopped.
            let start = pod
                .name
                .filter(|_| pod.live)
                .map(|name| format!("`yoi start {name}` continues it"));
            (
                "the run was interrupted".to_owned(),
                Some(start.unwrap_or_else(|| go_on(&[]))),
            )
        }
        Outcome::Waiting => {
            let approve = pod.name.map(|name| {
                let approve = format!("`yoi approve {name}` shows the calls that wait");
                if pod.live {
                    approve
                } else {
                    format!("`yoi start {name}`, then {approve}")
                }
            });
            ("a call waits for your approval".to_owned(), approve)
        }
        Outcome::StepLimit | Outcome::CostLimit | Outcome::TokenLimit | Outcome::TimeLimit => {
            let (kind, limit) = limit_reached(outcome)?;
            let flag = LIMITS.iter().find(|row| row.kind == kind)?.flag;
            (
                format!("the {limit} limit was reached"),
                Some(go_on(&[&format!("raise {flag}")])),
            )
        }
        Outcome::ContextLimit => {
            let help = match pod.name.filter(|_| pod.live) {
                Some(name) => format!(
                    "`{}` continues it without the oldest turns",
                    drop_turns(name)
                ),
                None => "start another pod, or use a model with a larger context (-m)".to_owned(),
            };
            (
                "the next request does not fit the model's context".to_owned(),
                Some(help),
            )
        }
        Outcome::Aborted { reason } => {
            let help = reason
                .starts_with(ANSWER_NOT_STORED)
                .then(|| "ask for a shorter answer".to_owned());
            (reason.clone(), help)
        }
        Outcome::Cancelled => match ending {
            Some(Ending::Timeout) => (
                "the time limit was reached".to_owned(),
                Some(go_on(&["raise --timeout"])),
            ),
            Some(Ending::Signal(_)) | None => ("cancelled".to_owned(), Some(go_on(&[]))),
        },
        Outcome::ModelFailed { message, help, .. } => (
            message.clone(),
            help.as_ref().map(|help| of_pod(help, pod.name)),
        ),
    })
}

/// A way out, and other ones: `first, second, or third`.
fn or(first: String, others: &[&str]) -> String {
    match others {
        [] => first,
        [between @ .., last] => {
            let between: String = between.iter().map(|way| format!(", {way}")).collect();
            format!("{first}{between}, or {last}")
        }
    }
}

/// What an answer that came leaves undone.
fn unmet(ended: &FinishedRun, pod: EndedIn<'_>) -> Option<(String, Option<String>)> {
    let FinishedRun {
        end:
            TurnEnd {
                refused,
                shortfall,
                paused,
                ..
            },
        output,
        ..
    } = ended;
    Some(match (output, refused, shortfall) {
        (AnswerForm::Misfit(problems), _, _) => misfit(problems, pod),
        (_, Some(refusal), _) => refusal_text(refusal),
        (_, None, None) if let Some(reason) = paused => {
            let help = pod
                .name
                .map(|name| format!("`yoi log {name}` shows the answer, which nothing accepted"));
            (format!("the answer was not accepted: {reason}"), help)
        }
        (AnswerForm::Missing, None, Some(Shortfall::NotUnderstood)) => (
            NO_JSON.to_owned(),
            Some("choose a language model with -m; `yoi models` lists them".to_owned()),
        ),
        (_, None, Some(Shortfall::NotUnderstood)) => {
            ("the prompt was not understood".to_owned(), None)
        }
        (_, None, Some(Shortfall::NotDone)) => {
            let text = "the prompt was not carried out; the answer says why".to_owned();
            let examples = pod
                .is_planner
                .then(|| "`yoi run -m offline help` prints examples of prompts".to_owned());
            (text, answer_hint(output, pod).or(examples))
        }
        (_, None, Some(Shortfall::NotAccepted)) => {
            let text = "the answer was not accepted: it misses the form or the check that the configuration asks for";
            (
                text.to_owned(),
                pod.name
                    .map(|name| format!("`yoi log {name}` shows what was wrong with it")),
            )
        }
        (AnswerForm::Free | AnswerForm::Fits { .. } | AnswerForm::Missing, None, None) => {
            return None;
        }
    })
}

/// A refusal by permission names its tool and what refused it; that of a gate is its words alone.
fn refusal_text(
    RefusedCall {
        tool,
        reason,
        remedy,
    }: &RefusedCall,
) -> (String, Option<String>) {
    let named = if reason.starts_with(tool) {
        String::new()
    } else {
        format!("{tool}: ")
    };
    let refused = if remedy.is_some() { "" } else { "refused: " };
    (format!("{refused}{named}{reason}"), remedy.clone())
}

/// Where the answer says more, where standard output does not have it.
fn answer_hint(output: &AnswerForm, pod: EndedIn<'_>) -> Option<String> {
    match (output, pod.name) {
        (AnswerForm::Missing, Some(name)) => Some(format!(
            "`yoi log {name}` shows the answer; --output-schema needs a language model"
        )),
        (AnswerForm::Missing, None) => {
            Some("--output-schema needs a language model; choose one with -m".to_owned())
        }
        (AnswerForm::Free | AnswerForm::Fits { .. } | AnswerForm::Misfit(_), _) => None,
    }
}

fn misfit(problems: &[String], pod: EndedIn<'_>) -> (String, Option<String>) {
    let error = format!(
        "the answer does not match the schema: {}",
        problems.join("; ")
    );
    let shown = pod
        .name
        .map(|name| format!("`yoi log {name}` shows the answer; "))
        .unwrap_or_default();
    let help = format!("{shown}choose another model with -m, or simplify the schema");
    (error, Some(help))
}
