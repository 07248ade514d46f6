//! `--output-schema`: the answer as one JSON document of a given form.
//!
//! The schema is part of the input. The pod asks the model for it, and `builtin:output-validate` has the model go on when
//! an answer does not fit. What is printed is checked here once more: the feature may be off, or may have given up.

use builtins::output_validate::AnswerSchema;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::plain_file;
use llm_worker::Shortfall;
use llm_worker::effect::Outcome;
use pod::control::TurnEnd;
use pod::hook::MAX_OUTPUT_SCHEMA;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A schema that an answer has to fit.
pub(crate) struct OutputSchema {
    pub(crate) json: Value,
    compiled: AnswerSchema,
}

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
            Failure::new(
                Exit::Usage,
                format!("--output-schema {}: {what}", file.display()),
            )
            .help("use a file with one valid JSON Schema that refers to no other file")
        };
        let mut bytes = Vec::new();
        let read = File::open(env.cwd.join(file)).and_then(|file| {
            file.take(MAX_OUTPUT_SCHEMA as u64 + 1)
                .read_to_end(&mut bytes)
        });
        read.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Failure::new(Exit::Usage, format!("{} does not exist", file.display()))
                    .help("choose an existing file with --output-schema")
            }
            _ => wrong(error.to_string()),
        })?;
        if bytes.len() > MAX_OUTPUT_SCHEMA {
            return Err(wrong(format!("over {} KiB", MAX_OUTPUT_SCHEMA / 1024)));
        }
        let text = plain_file::text(&bytes).map_err(wrong)?;
        let json: Value =
            serde_json::from_str(text).map_err(|e| wrong(format!("not JSON: {e}")))?;
        let compiled = AnswerSchema::of(json.clone()).map_err(wrong)?;
        Ok(Self { json, compiled })
    }
}

impl AnswerForm {
    /// Checks the answer of a turn against the schema of its input, if it has one.
    pub(crate) fn of(end: &TurnEnd, schema: Option<&OutputSchema>) -> Self {
        let Some(schema) = schema else {
            return Self::Free;
        };
        match (&end.outcome, &end.answer) {
            // An answer that says that nothing was done is none.
            (Outcome::Done, Some(answer))
                if matches!(end.shortfall, None | Some(Shortfall::NotAccepted)) =>
            {
                match schema.compiled.read(answer) {
                    Ok((text, value)) => Self::Fits {
                        text: text.to_owned(),
                        value,
                    },
                    Err(problems) => Self::Misfit(problems),
                }
            }
            (_, _) => Self::Missing,
        }
    }
}
