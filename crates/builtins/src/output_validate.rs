//! `builtin:output-validate`: the final answer of a turn has to fit the JSON Schema of its input, or one that a person
//! configured, or pass a person's command; if it does not, the model is told why and goes on.
//!
//! Without settings it is asked only about inputs that have a schema. The host bounds how often the model goes on, and the
//! limits of the input apply to all of its turns together. An answer that never fits stays as it is: who reads it has to
//! look.

mod form;

pub use form::AnswerSchema;

use authority::{ChildExit, Job, Spawner, Workspace, shown};
use form::correcting;
use llm_worker::effect::Outcome;
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HookKey, HostCapability,
};
use pod::hook::{
    HookFailure, MAX_DEADLINE, MAX_OUTPUT_SCHEMA, PromptSubmit, PromptView, TurnEnd, TurnEndView,
    Verdict,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("output-validate");

const SCHEMAS: HookKey<PromptSubmit> = HookKey::new("output-schema")
    .deadline(MAX_DEADLINE)
    .with_output_schema();
/// With settings: for every answer.
const ANSWERS: HookKey<TurnEnd> = HookKey::new("output-validate").deadline(MAX_DEADLINE);
const ANSWERS_OF_SCHEMAS: HookKey<TurnEnd> = ANSWERS.with_output_schema();

/// How long the command may take; within the deadline of the hook.
const COMMAND: Duration = Duration::from_secs(8);
/// Words of the command, and their bytes.
const MAX_WORDS: usize = 16;
const MAX_BYTES: usize = 2 * 1024;
/// Bytes of an answer that is passed to a command.
const MAX_ANSWER: usize = 100 * 1024;
/// Bytes of what the command says.
const MAX_SAID: usize = 4 * 1024;

/// `[features."builtin:output-validate"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// A self-contained JSON Schema for answers to inputs without one.
    pub schema: Option<Value>,
    /// A program with its arguments; the answer is added as the last one. With status 0 the answer passes; else the model
    /// gets what the program printed.
    #[schemars(length(min = 1, max = MAX_WORDS))]
    pub command: Option<Vec<String>>,
}

/// The feature that judges final answers.
pub struct OutputValidate {
    schema: Option<Arc<AnswerSchema>>,
    command: Vec<String>,
}

impl OutputValidate {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(Settings { schema, command }: Settings) -> Result<Self, String> {
        if command.as_ref().is_some_and(Vec::is_empty) {
            return Err("`command` is empty: name a program".to_owned());
        }
        let command = command.unwrap_or_default();
        let bytes: usize = command.iter().map(String::len).sum();
        let bad = command.iter().any(|word| word.contains('\0'))
            || command.first().is_some_and(String::is_empty);
        if command.len() > MAX_WORDS || bytes > MAX_BYTES || bad {
            return Err(format!(
                "`command` must be a program and words, {MAX_WORDS} and {MAX_BYTES} bytes at most"
            ));
        }
        if schema.is_some() && !command.is_empty() {
            return Err("set `schema` or `command`, not both".to_owned());
        }
        if schema
            .as_ref()
            .is_some_and(|schema| schema.to_string().len() > MAX_OUTPUT_SCHEMA)
        {
            return Err(format!("`schema` has over {MAX_OUTPUT_SCHEMA} bytes"));
        }
        let schema = schema
            .map(AnswerSchema::of)
            .transpose()
            .map_err(|problem| format!("`schema` is {problem}"))?;
        Ok(Self {
            schema: schema.map(Arc::new),
            command,
        })
    }
}

fn builder(
    needs: impl Fn(HostCapability, &'static str) -> CapabilityRequest,
    runs: bool,
    answers: &HookKey<TurnEnd>,
) -> FeatureDescriptor {
    let requests = [
        (HostCapability::ANY_PROGRAM, "run the command of `command`"),
        (
            HostCapability::READ_WORKSPACE,
            "run it in the working directory",
        ),
    ];
    let builder = FeatureDescriptor::builder(ID)
        .display_name("Form of answers")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .gate(&SCHEMAS)
        .gate(answers);
    let requests = requests.into_iter().filter(|_| runs);
    requests
        .fold(builder, |builder, (capability, why)| {
            builder.request(needs(capability, why))
        })
        .build()
}

pub(crate) fn declared() -> FeatureDescriptor {
    builder(CapabilityRequest::optional, true, &ANSWERS_OF_SCHEMAS)
}

impl OutputValidate {
    fn answers(&self) -> &'static HookKey<TurnEnd> {
        match self.schema.is_none() && self.command.is_empty() {
            true => &ANSWERS_OF_SCHEMAS,
            false => &ANSWERS,
        }
    }
}

impl FeatureModule for OutputValidate {
    fn descriptor(&self) -> FeatureDescriptor {
        builder(
            CapabilityRequest::required,
            !self.command.is_empty(),
            self.answers(),
        )
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let command = match self.command.is_empty() {
            true => None,
            false => {
                let spawner = ctx.services().process()?;
                let files = ctx.services().fs(HostCapability::WORKSPACE)?;
                Some(Command {
                    words: self.command.clone(),
                    spawner,
                    files,
                })
            }
        };
        let live = Arc::new(Live {
            schema: self.schema.clone(),
            command,
        });
        ctx.hooks().gate(&SCHEMAS, &live, Live::accept)?;
        ctx.hooks()
            .gate_async(self.answers(), &live, Live::judge)
            .map(drop)
    }
}

struct Live {
    schema: Option<Arc<AnswerSchema>>,
    command: Option<Command>,
}

struct Command {
    words: Vec<String>,
    spawner: Spawner,
    files: Workspace,
}

fn of_text(schema: &str) -> Result<AnswerSchema, String> {
    AnswerSchema::of(serde_json::from_str(schema).map_err(|error| error.to_string())?)
}

impl Live {
    /// Refuses a schema that no answer can be checked against.
    fn accept(&self, view: &PromptView) -> Verdict<PromptSubmit> {
        match view.output_schema.as_deref().map(of_text) {
            Some(Err(problem)) => Verdict::abort(format!("the output schema is {problem}")),
            Some(Ok(_)) | None => Verdict::allow(),
        }
    }

    async fn judge(self: Arc<Self>, view: TurnEndView) -> Result<Verdict<TurnEnd>, HookFailure> {
        // Correcting an answer that says that nothing was done would end in the same answer.
        let answer = view
            .answer
            .filter(|_| view.outcome == Outcome::Done && view.shortfall.is_none());
        let Some(answer) = answer else {
            return Ok(Verdict::finish());
        };
        let of_input = view
            .output_schema
            .as_deref()
            .map(of_text)
            .transpose()
            .map_err(HookFailure::new)?;
        let schema = of_input.as_ref().or(self.schema.as_deref());
        if let Some(Err(problems)) = schema.map(|schema| schema.read(&answer)) {
            return Ok(Verdict::again(correcting(&problems)));
        }
        match &self.command {
            Some(command) => command.judge(&answer, view.turn).await,
            None => Ok(Verdict::finish()),
        }
    }
}

impl Command {
    async fn judge(&self, answer: &str, turn: u64) -> Result<Verdict<TurnEnd>, HookFailure> {
        if answer.len() > MAX_ANSWER || answer.contains('\0') {
            return Ok(Verdict::again(format!(
                "The last answer cannot be checked: shorten it to {MAX_ANSWER} bytes."
            )));
        }
        let mut words = self
            .words
            .iter()
            .map(OsString::from)
            .chain([OsString::from(answer)]);
        let program = words.next().unwrap_or_default();
        let args = words.collect();
        let cwd = self.files.cwd().to_owned();
        let job = Job {
            program,
            args,
            cwd,
            call: format!("validate-{turn}"),
            deadline: COMMAND,
            input: Vec::new(),
        };
        let mut said = Vec::new();
        let hears = |bytes: &[u8]| {
            let room = MAX_SAID.saturating_sub(said.len());
            said.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            Ok(())
        };
        let ended = self
            .spawner
            .run(job, hears, &CancellationToken::new())
            .await;
        match ended
            .map_err(|error| HookFailure::new(error.to_string()))?
            .how
        {
            ChildExit::Exit(0) => Ok(Verdict::finish()),
            ChildExit::Exit(status) => Ok(Verdict::again(format!(
                "The last answer did not pass a check (status {status}):\n{}\nCorrect it.",
                shown(&said).trim_end()
            ))),
            ChildExit::Signal(_) | ChildExit::Deadline | ChildExit::Cancelled => {
                Err(HookFailure::new("its command did not end by itself"))
            }
        }
    }
}
