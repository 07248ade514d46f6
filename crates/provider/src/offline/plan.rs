//! From intents and the results so far to the next calls or the answer.
//!
//! Each intent is a function that asks for results as if it waited for them. It is run from its beginning on every
//! step: what is in history is handed to it, and the first thing that is not becomes the next step's calls.

use super::answer::{self, Answer, bounded, files_in};
use super::change::{create, replace, run};
use super::intent::{Intent, Scope, parse};
use super::lex::{Joint, Lang, extension};
use super::look::{count, find, list, read, search, summarise_dir, summarise_file};
use llm_worker::{CallId, Item, ModelEvent, ResultStatus, StopReason, ToolDefinition, ToolOutcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Model requests in one turn, the answer apart: what a person is ready to wait for.
const MAX_STEPS: usize = 40;
/// Calls in one step, so that a step's results stay within a few hundred KiB.
pub(super) const BATCH: usize = 48;
/// Pages of one long output that are read before an answer does without the rest.
const MAX_PAGES: usize = 12;
/// Matches asked of one search; `Grep` gives 200 unless told.
const MANY: u64 = 10_000;
/// Files that say how a project is built.
pub(super) const MANIFESTS: &str =
    "{Cargo.toml,package.json,pyproject.toml,setup.py,setup.cfg,go.mod,Makefile,makefile}";

#[derive(Debug)]
pub(super) struct Call {
    name: &'static str,
    arguments: Value,
}

/// Why an intent cannot go on yet, or at all.
pub(super) enum Halt {
    Calls(Vec<Call>),
    /// A call failed.
    Failed(String),
    /// There is no way on.
    Stuck(String),
}
pub(super) type Got<T> = Result<T, Halt>;

/// The next events for a history whose last turn is still open. Pure.
pub(super) fn next(items: &[Item], tools: &[ToolDefinition]) -> Vec<ModelEvent> {
    let start = items.iter().rposition(|item| matches!(item, Item::User { .. }));
    let (prompt, rest) = match start.and_then(|at| items.get(at..)).and_then(<[Item]>::split_first) {
        Some((Item::User { text }, rest)) => (text.as_str(), rest),
        Some(_) | None => ("", items),
    };
    match turn(prompt, Replay::new(rest, tools)) {
        Ok(text) => vec![ModelEvent::Text(text), ModelEvent::Stop(StopReason::EndTurn)],
        Err(calls) => {
            let started = |(index, call): (usize, Call)| {
                let name = call.name.to_owned();
                let fragment = call.arguments.to_string();
                [ModelEvent::CallStarted { index, name }, ModelEvent::CallArguments { index, fragment }]
            };
            let stop = ModelEvent::Stop(StopReason::ToolUse);
            calls.into_iter().enumerate().flat_map(started).chain([stop]).collect()
        }
    }
}

fn turn(prompt: &str, mut replay: Replay<'_>) -> Result<String, Vec<Call>> {
    let intents = match parse(prompt) {
        Ok(intents) => intents,
        Err(words) => return Ok(answer::fallback(&words, prompt)),
    };
    let mut texts = Vec::new();
    let mut failed = false;
    for (joint, intent) in &intents {
        if failed && *joint == Joint::Then {
            texts.push("The rest was not done, because what came before it failed.".to_owned());
            break;
        }
        match answer_one(intent, &mut replay) {
            Ok(answer) => {
                failed = !answer.ok;
                texts.push(answer.text);
            }
            Err(Halt::Calls(calls)) => return Err(calls),
            Err(Halt::Failed(why) | Halt::Stuck(why)) => {
                failed = true;
                texts.push(why);
            }
        }
    }
    Ok(texts.join("\n\n"))
}

fn answer_one(intent: &Intent, replay: &mut Replay<'_>) -> Got<Answer> {
    match intent {
        Intent::List { what, scope } => list(replay, what, scope),
        Intent::Find { glob, shown, scope } => find(replay, glob, shown, scope),
        Intent::Search { what, files, scope } => {
            let scope = replay_scope(replay, scope)?;
            search(replay, what, *files, &scope)
        }
        Intent::Count { what, scope } => {
            let scope = replay_scope(replay, scope)?;
            count(replay, what, &scope)
        }
        Intent::Read { path, part } => read(replay, path, part),
        Intent::SummariseFile { path } => summarise_file(replay, path),
        Intent::SummariseDir { path, focus } => summarise_dir(replay, path.as_deref(), focus),
        Intent::Replace { old, new, whole_word, scope } => replace(replay, old, new, *whole_word, scope),
        Intent::Create { path, content, overwrite } => create(replay, path, content, *overwrite),
        Intent::Run { task } => run(replay, task),
    }
}

/// The calls of this turn with their results, handed out in the order they were asked for.
pub(super) struct Replay<'a> {
    done: Vec<(&'a str, &'a str, &'a ToolOutcome)>,
    at: usize,
    steps: usize,
    tools: &'a [ToolDefinition],
}

impl<'a> Replay<'a> {
    fn new(items: &'a [Item], tools: &'a [ToolDefinition]) -> Self {
        // Parallel calls end in any order: the id pairs them.
        let result =
            |item: &'a Item| if let Item::ToolResult { id, outcome } = item { Some((*id, outcome)) } else { None };
        let results: BTreeMap<CallId, &ToolOutcome> = items.iter().filter_map(result).collect();
        let call = |item: &'a Item| match item {
            Item::ToolCall { id, name, arguments } => Some((name.as_str(), arguments.as_str(), *results.get(id)?)),
            Item::User { .. } | Item::System { .. } | Item::Assistant { .. } => None,
            Item::Reasoning { .. } | Item::ToolResult { .. } => None,
        };
        Self { done: items.iter().filter_map(call).collect(), at: 0, steps: 0, tools }
    }

    pub(super) fn ask(&mut self, calls: Vec<Call>) -> Got<Vec<&'a ToolOutcome>> {
        let given = self.done.get(self.at..).unwrap_or_default();
        if given.is_empty() && !calls.is_empty() {
            if let Some(missing) = calls.iter().find(|c| !self.tools.iter().any(|t| t.name == c.name)) {
                return Err(Halt::Stuck(format!(
                    "This needs the tool {}, which this run does not have.",
                    missing.name
                )));
            }
            if self.steps >= MAX_STEPS {
                return Err(Halt::Stuck(format!(
                    "Stopped after {MAX_STEPS} steps, before the end. Ask for a part of it."
                )));
            }
            return Err(Halt::Calls(calls));
        }
        let same = |(call, (name, arguments, _)): (&Call, &(&str, &str, &ToolOutcome))| {
            call.name == *name && serde_json::from_str::<Value>(arguments).is_ok_and(|given| given == call.arguments)
        };
        if given.len() < calls.len() || !calls.iter().zip(given).all(same) {
            return Err(Halt::Stuck("The steps so far are not ones this planner takes. Ask again.".to_owned()));
        }
        self.at += calls.len();
        self.steps += usize::from(!calls.is_empty());
        Ok(given.iter().take(calls.len()).map(|(_, _, outcome)| *outcome).collect())
    }

    pub(super) fn one(&mut self, call: Call) -> Got<&'a ToolOutcome> {
        self.ask(vec![call])?.first().copied().ok_or_else(|| Halt::Stuck("A result is missing.".to_owned()))
    }

    pub(super) fn many(&mut self, calls: Vec<Call>) -> Got<Vec<&'a ToolOutcome>> {
        let mut calls = calls.into_iter().peekable();
        let mut out = Vec::new();
        while calls.peek().is_some() {
            out.extend(self.ask(calls.by_ref().take(BATCH).collect())?);
        }
        Ok(out)
    }

    /// The whole content of a result, and whether it really is the whole: what the host cut is read by its handle.
    pub(super) fn full(&mut self, outcome: &ToolOutcome) -> Got<(String, bool)> {
        let Some(handle) = answer::cut_handle(&outcome.content) else {
            let whole = !outcome.content.lines().next_back().is_some_and(answer::is_note);
            return Ok((outcome.content.clone(), whole));
        };
        let mut text = String::new();
        let mut offset = 1;
        for _ in 0..MAX_PAGES {
            let page = self.one(call("ReadOutput", json!({"handle": handle, "lines": 2_000, "offset": offset})))?;
            let total = answer::total(&page.summary).unwrap_or(0);
            let lines = page.content.lines().count() as u64;
            if page.status != ResultStatus::Ok || lines == 0 {
                return Ok((text, false));
            }
            text.push_str(&page.content);
            text.push_str(if page.content.ends_with('\n') { "" } else { "\n" });
            offset += lines;
            if offset > total {
                return Ok((text, true));
            }
        }
        Ok((text, false))
    }
}

pub(super) fn call(name: &'static str, arguments: Value) -> Call {
    Call { name, arguments }
}

pub(super) fn grep(regex: &str, mode: &str, scope: &Scope) -> Call {
    let mut arguments = json!({"limit": MANY, "mode": mode, "pattern": regex});
    if let (Some(path), Some(map)) = (&scope.path, arguments.as_object_mut()) {
        map.insert("path".into(), json!(path));
    }
    if let (Some(glob), Some(map)) =
        (scope.glob.clone().or_else(|| scope.lang.map(Lang::glob)), arguments.as_object_mut())
    {
        map.insert("glob".into(), json!(glob));
    }
    call("Grep", arguments)
}

pub(super) fn cased(mut call: Call, ignore_case: bool) -> Call {
    if let (true, Some(map)) = (ignore_case, call.arguments.as_object_mut()) {
        map.insert("ignore_case".into(), json!(true));
    }
    call
}

pub(super) fn glob(pattern: &str, path: Option<&str>) -> Call {
    call("Glob", path.map_or_else(|| json!({"pattern": pattern}), |path| json!({"path": path, "pattern": pattern})))
}

pub(super) fn totals_of(path: Option<&str>) -> Call {
    call("List", path.map_or_else(|| json!({"totals": true}), |path| json!({"path": path, "totals": true})))
}

/// A file named without its directory, found; a path with one is taken as it is.
pub(super) fn settle(replay: &mut Replay<'_>, path: &str) -> Got<String> {
    let bare = extension(path).is_none() && !path.starts_with('.');
    if path.contains('/') || path == "." {
        return Ok(path.to_owned());
    }
    let pattern = match (bare, path.to_lowercase().as_str()) {
        (true, "readme") => "**/[Rr][Ee][Aa][Dd][Mm][Ee]*".to_owned(),
        (true, "license" | "changelog") => format!("**/{}*", path.to_uppercase()),
        _ => format!("**/{path}"),
    };
    let found = replay.one(glob(&pattern, None))?;
    let (text, _) = replay.full(found)?;
    let depth = |p: &str| p.matches('/').count();
    let paths: Vec<&str> = files_in(found, &text).collect();
    let least = paths.iter().map(|p| depth(p)).min();
    let nearest: Vec<&str> = paths.iter().copied().filter(|p| Some(depth(p)) == least).collect();
    match nearest.as_slice() {
        [] => Ok(path.to_owned()),
        [only] => Ok((*only).to_owned()),
        [first, ..] if bare => Ok((*first).to_owned()),
        several => Err(Halt::Stuck(format!("Several files are named {path}; say which:\n{}", bounded(several, 20)))),
    }
}

pub(super) fn replay_scope(replay: &mut Replay<'_>, scope: &Scope) -> Got<Scope> {
    let path = match &scope.path {
        Some(path) if extension(path).is_some() => Some(settle(replay, path)?),
        other => other.clone(),
    };
    Ok(Scope { path, glob: scope.glob.clone(), lang: scope.lang })
}
