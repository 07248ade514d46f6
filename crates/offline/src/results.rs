//! The results of a turn, passed to the acts of its intents as if each act waited for them.
//!
//! An act runs from its start on every step: it gets the results in history, and the first missing one
//! becomes the next step's calls.

use crate::answer;
use llm_worker::{CallId, Item, ResultStatus, ToolDefinition, ToolOutcome};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most model requests in one turn, without the answer: a person would not wait for more.
const MAX_STEPS: usize = 40;
/// Calls in one step, so that a step's results stay within a few hundred KiB.
pub(crate) const BATCH: usize = 48;
/// The matches requested from one search; the default of `Grep` is 200.
const MANY: u64 = 10_000;

/// A tool's name and arguments.
pub(crate) type Call = (&'static str, Value);

/// The reason why an intent stops.
pub(crate) enum Halt {
    Calls(Vec<Call>),
    /// The error, for the answer.
    Failed(String),
    /// A word in the position of a directory is not one here.
    NoPlace(String),
}
pub(crate) type Got<T> = Result<T, Halt>;

pub(crate) fn failed<T>(why: impl Into<String>) -> Got<T> {
    Err(Halt::Failed(why.into()))
}

/// The calls of this turn with their results, handed out in the order they were asked for.
pub(crate) struct Results<'a> {
    done: Vec<(&'a str, &'a str, &'a ToolOutcome)>,
    at: usize,
    steps: usize,
    tools: &'a [ToolDefinition],
    /// The text that was piped in.
    pub(crate) piped: &'a str,
    /// Notes of tools about parts that they could not read.
    pub(crate) notes: BTreeSet<String>,
}

impl<'a> Results<'a> {
    pub(crate) fn new(turn: &'a [Item], tools: &'a [ToolDefinition], piped: &'a str) -> Self {
        // Parallel calls end in any order, so results are matched by id.
        let result = |item: &'a Item| match item {
            Item::ToolResult { id, outcome } => Some((*id, outcome)),
            _ => None,
        };
        let ended: BTreeMap<CallId, &ToolOutcome> = turn.iter().filter_map(result).collect();
        let call = |item: &'a Item| match item {
            Item::ToolCall {
                id,
                name,
                arguments,
            } => Some((name.as_str(), arguments.as_str(), *ended.get(id)?)),
            _ => None,
        };
        let done = turn.iter().filter_map(call).collect();
        Self {
            done,
            at: 0,
            steps: 0,
            tools,
            piped,
            notes: BTreeSet::new(),
        }
    }

    /// Returns the results of these calls, or stops with the calls as the next step.
    pub(crate) fn ask(&mut self, calls: Vec<Call>) -> Got<Vec<&'a ToolOutcome>> {
        let given = self.done.get(self.at..).unwrap_or_default();
        if given.is_empty() && !calls.is_empty() {
            return match calls
                .iter()
                .find(|(name, _)| !self.tools.iter().any(|t| t.name == *name))
            {
                Some((missing, _)) => failed(format!(
                    "This needs the tool {missing}, which this run does not have."
                )),
                None if self.steps >= MAX_STEPS => failed(format!(
                    "Stopped after {MAX_STEPS} steps, before the end. Ask for a part of it."
                )),
                None => Err(Halt::Calls(calls)),
            };
        }
        let same = |((name, arguments), (given, text, _)): (&Call, &(&str, &str, &ToolOutcome))| {
            name == given
                && serde_json::from_str::<Value>(text).is_ok_and(|given| given == *arguments)
        };
        if given.len() < calls.len() || !calls.iter().zip(given).all(same) {
            return failed("The steps so far are not ones this planner takes. Ask again.");
        }
        self.at += calls.len();
        self.steps += usize::from(!calls.is_empty());
        Ok(given
            .iter()
            .take(calls.len())
            .map(|(_, _, outcome)| *outcome)
            .collect())
    }

    /// Returns the results of many calls, in as many steps as needed.
    pub(crate) fn batches(&mut self, calls: &[Call]) -> Got<Vec<&'a ToolOutcome>> {
        let batches: Got<Vec<_>> = calls
            .chunks(BATCH)
            .map(|batch| self.ask(batch.to_vec()))
            .collect();
        Ok(batches?.concat())
    }

    /// Returns the results of these calls; the first failed one ends the intent.
    pub(crate) fn all(&mut self, calls: Vec<Call>) -> Got<Vec<&'a ToolOutcome>> {
        let asked = self.ask(calls.clone())?;
        let found = asked
            .into_iter()
            .zip(&calls)
            .map(|(outcome, (_, arguments))| {
                let absent = outcome.status == ResultStatus::Error
                    && outcome.text().contains("does not exist");
                // A word written like a path is a path.
                let word = arguments["path"]
                    .as_str()
                    .filter(|path| absent && !path.contains(['/', '.']));
                answer::good(outcome).map_err(|why| {
                    word.map_or(Halt::Failed(why), |word| Halt::NoPlace(word.to_owned()))
                })
            });
        let found = found.collect::<Got<Vec<_>>>()?;
        self.notes
            .extend(found.iter().flat_map(|found| answer::notes(&found.content)));
        Ok(found)
    }

    pub(crate) fn one(&mut self, call: Call) -> Got<&'a ToolOutcome> {
        self.all(vec![call])?
            .pop()
            .map_or_else(|| failed("A result is missing."), Ok)
    }
}

/// The files that a request concerns; all below the working directory if empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) path: Option<String>,
    pub(crate) glob: Option<String>,
}

impl Scope {
    /// A file, or everything below a directory.
    pub(crate) fn of(path: &str) -> Self {
        Self {
            path: Some(path.to_owned()),
            ..Self::default()
        }
    }

    /// " in src", or nothing.
    pub(crate) fn within(&self) -> String {
        self.path.iter().map(|path| format!(" in {path}")).collect()
    }

    /// " in *.rs in src", or nothing.
    pub(crate) fn place(&self) -> String {
        self.glob
            .iter()
            .map(|glob| format!(" in {glob}"))
            .collect::<String>()
            + &self.within()
    }

    pub(crate) fn list(&self, depth: u64) -> Call {
        call("List", json!({"depth": depth, "path": self.path}))
    }

    pub(crate) fn totals(&self) -> Call {
        call("List", json!({"path": self.path, "totals": true}))
    }

    /// The files of a name or glob.
    pub(crate) fn files(&self, pattern: &str) -> Call {
        call("Glob", json!({"path": self.path, "pattern": pattern}))
    }

    pub(crate) fn grep(&self, regex: &str, mode: &str) -> Call {
        let glob = &self.glob;
        let path = &self.path;
        call(
            "Grep",
            json!({"glob": glob, "limit": MANY, "mode": mode, "path": path, "pattern": regex}),
        )
    }
}

/// A call with those of the arguments that are given.
pub(crate) fn call(name: &'static str, mut arguments: Value) -> Call {
    if let Some(arguments) = arguments.as_object_mut() {
        arguments.retain(|_, value| !value.is_null());
    }
    (name, arguments)
}
