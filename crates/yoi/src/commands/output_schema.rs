//! `--output-schema`: the answer as one JSON document of a given form.
//!
//! The schema goes to the model with the prompt. An answer that does not fit goes back with what is wrong, as a further
//! input of the run, at most [`CORRECTIONS`] times. All of these are inputs like any other: journaled, counted against
//! the run's limits, and there for a run that goes on after a crash.

use crate::env::Env;
use crate::exit::{Exit, Failure};
use builtins::output_validate::{AnswerSchema, MAX_SCHEMA, correcting};
use llm_worker::Usage;
use llm_worker::effect::Outcome;
use pod::control::TurnEnd;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How often a model is told what is wrong with its answer. One that did not understand by then does not.
pub(crate) const CORRECTIONS: usize = 3;

/// A schema that an answer has to fit.
pub(crate) struct OutputSchema(AnswerSchema);

/// What became of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// Nobody asked for a form.
    Free,
    /// The document, as the model wrote it, and as it reads.
    Fits { text: String, value: Value },
    /// What is wrong with the last answer.
    Misfit(Vec<String>),
    /// There is no final answer.
    Missing,
}

impl OutputSchema {
    /// Reads and compiles the schema in a file.
    pub(crate) fn load(file: &Path, env: &Env) -> Result<Self, Failure> {
        let wrong = |what: String| {
            Failure::new(Exit::Usage, format!("--output-schema {}: {what}", file.display()))
                .help("use a file with one valid JSON Schema that refers to no other file")
        };
        let mut bytes = Vec::new();
        let read =
            File::open(env.cwd.join(file)).and_then(|file| file.take(MAX_SCHEMA as u64 + 1).read_to_end(&mut bytes));
        read.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::new(Exit::Usage, format!("{} does not exist", file.display()))
                .help("choose an existing file with --output-schema"),
            _ => wrong(error.to_string()),
        })?;
        if bytes.len() > MAX_SCHEMA {
            return Err(wrong(format!("over {} KiB", MAX_SCHEMA / 1024)));
        }
        let schema: Value = serde_json::from_slice(&bytes).map_err(|e| wrong(format!("not JSON: {e}")))?;
        AnswerSchema::of(schema).map(Self).map_err(wrong)
    }

    /// Takes a prompt through as many turns as it needs. `submit` takes an input through one turn, within the limits
    /// that are left after the turns before.
    pub(crate) async fn run<E>(
        &self,
        prompt: &str,
        mut submit: impl AsyncFnMut(&str, Option<&TurnEnd>) -> Result<TurnEnd, E>,
    ) -> Result<(TurnEnd, AnswerForm), E> {
        let mut end = submit(&self.0.asking(prompt), None).await?;
        for _ in 0..CORRECTIONS {
            let AnswerForm::Misfit(problems) = self.judge(&end) else { break };
            // Somebody should look before anything goes on.
            if end.paused.is_some() {
                break;
            }
            let next = submit(&correcting(&problems), Some(&end)).await?;
            end = end.and(next);
        }
        let output = self.judge(&end);
        Ok((end, output))
    }

    fn judge(&self, end: &TurnEnd) -> AnswerForm {
        match (&end.outcome, &end.answer) {
            // Correcting an answer that says that nothing was done would end in the same answer.
            (Outcome::Done, Some(answer)) if end.shortfall.is_none() => self.read(answer),
            (_, _) => AnswerForm::Missing,
        }
    }

    fn read(&self, answer: &str) -> AnswerForm {
        match self.0.read(answer) {
            Ok((text, value)) => AnswerForm::Fits { text: text.to_owned(), value },
            Err(problems) => AnswerForm::Misfit(problems),
        }
    }
}

/// The end of a turn for which the turns before left nothing.
pub(crate) fn nothing_left(outcome: Outcome) -> TurnEnd {
    let usage = Usage::default();
    TurnEnd { outcome, answer: None, refused: None, shortfall: None, steps: 0, usage, cost: None, paused: None }
}
