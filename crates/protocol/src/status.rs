//! The state of a live pod, as clients see it.

use crate::record::{Outcome, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a pod does now. All of it can be asked for; none of it has to be remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    pub pod: String,
    pub state: State,
    /// The number of the turn that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The requests that were sent in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Why no turn begins, or why the running one waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HoldStatus>,
    /// Why the disk refused the newest commit; the pod tries again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Why the running turn waits for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_wait: Option<ModelRetry>,
    /// What waits for a person, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalStatus>,
    /// The inputs that wait, in order.
    #[serde(default)]
    pub queued: Vec<Queued>,
    /// Notifications that wait for the next step.
    #[serde(default)]
    pub notices: u64,
    pub turns: u64,
    pub requests: u64,
    pub usage: Usage,
    /// Billionths of a US dollar, as far as prices were known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// The tokens of the next request; absent before the first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextStatus>,
    /// What stays in the context, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<PinStatus>,
    /// The next request shows as little as the rules allow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact_due: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<Outcome>,
    /// The model's name.
    pub model: String,
    /// Tools and hooks that did not return.
    #[serde(default)]
    pub stuck: u64,
    /// Background tasks: those that run first, then those that are off; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<BackgroundTaskStatus>,
    /// How many more background tasks there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_tasks: u64,
    /// Jobs that run, the oldest first; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobStatus>,
    /// Clients that get events now.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clients: u64,
    /// The newest record that can be read.
    pub seq: u64,
    pub host: Host,
}

/// A text that stays in the context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PinStatus {
    pub pin: u64,
    pub text: String,
}

/// The tokens of the next request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextStatus {
    /// Reckoned from the provider's count of the newest request; without one, from the bytes.
    pub used: u64,
    /// The most that the model takes, answer included; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The used part of the window, rounded down; more than 100 if it does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// Whether the provider has counted a request.
    pub measured: bool,
    /// Tokens of the newest request that the provider read from its cache.
    pub cached: u64,
    /// The contributors, the largest first; at most 64. Their tokens are `used` in sum.
    pub parts: Vec<ContextPart>,
    /// Old results leave before a request with more tokens; absent if the window is unknown: then nothing leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks_above: Option<u64>,
    /// Tokens that masking all old results would free now: an estimate. Absent if the window is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masking_frees: Option<u64>,
    /// Tokens that the method `compact` would free now with old steps: an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_free: Option<u64>,
    /// How many results have left the requests so far; each is read again by its call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_results: u64,
    /// What has left the requests so far, the largest first; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<ContextPart>,
}

/// A contributor to the next request. Its tokens are its share of the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextPart {
    /// `system`, `instructions`, `feature_instructions`, `schema`, `inputs`, `answers`, `reasoning`, `calls`, `results`,
    /// `notes`; `other` for the smallest.
    pub kind: String,
    /// Of `schema` and `results` the tool; of `notes` their source, `host` or a feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The feature of an instruction or a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    pub tokens: u64,
    /// How many of them the provider read from its cache: an estimate, from the sum and the order of the parts.
    pub cached: u64,
}

/// The process that holds a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    pub pid: u32,
    /// When it took the pod, microseconds since 1970.
    pub since_us: u64,
    /// The version of the program.
    pub version: String,
    pub sandbox: String,
    /// The working directory.
    pub cwd: String,
    /// The branch that the project's `.git/HEAD` named when the process or the newest turn began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What the newest reload of the configuration left.
    #[serde(default)]
    pub reload: ReloadReport,
}

/// What a reload of the configuration left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadReport {
    /// Keys that have changed since the start and count from the next one on.
    pub next_start: Vec<String>,
    /// Why the configuration could not be used. The one before stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// What a pod does, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Idle,
    Working,
    /// A call waits for a person.
    Waiting,
    /// No turn begins, or the running one waits.
    Held,
    /// It is about to end.
    Stopping,
    /// A state of a later version.
    #[serde(other)]
    Unknown,
}

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalStatus {
    /// Its number.
    pub approval: u64,
    pub call: String,
    pub tool: String,
    /// The first 200 characters.
    pub question: String,
    /// When the call is denied, if nobody has answered: milliseconds since 1970, by the wall clock. None: it waits without
    /// an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// The model could not be reached; the pod tries again by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRetry {
    pub reason: String,
    /// Seconds until then, rounded up; 0 while an attempt is under way.
    pub retry_in_s: u64,
    /// When the first attempt had failed, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
}

/// Why no turn begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HoldStatus {
    /// As in the record `suspended`.
    pub cause: String,
    pub reason: String,
    /// Whose budget is used up, `run` or `pod`: a pod that has none left needs `resume` with `more`, or higher limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
}

/// An input that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queued {
    pub input: u64,
    pub mode: DeliveryMode,
    /// Its first 200 characters.
    pub text: String,
    /// It is a command of a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
}

/// A background task of a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundTaskStatus {
    pub feature: String,
    /// Its name within the feature.
    pub task: String,
    /// Why no run begins until the next start of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<String>,
    /// When the next run is due: wall clock, milliseconds since 1970; in the past for one that waits for its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due_ms: Option<u64>,
    /// The run that has no end yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<OpenRunStatus>,
    /// The newest run that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<EndedRunStatus>,
    /// When it failed: wall clock, milliseconds since 1970, newest last; at most 16.
    #[serde(default)]
    pub failures_ms: Vec<u64>,
}

/// A run of a background task that has no end yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenRunStatus {
    pub run: u64,
    /// As in the record `background_task`.
    pub trigger: String,
    /// 1 for the first run of a cause.
    pub attempt: u32,
    /// Wall clock, milliseconds since 1970.
    pub due_ms: u64,
    /// When it began: wall clock, milliseconds since 1970.
    pub since_ms: u64,
}

/// A run of a background task that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedRunStatus {
    pub run: u64,
    /// As in the record `background_task`.
    pub trigger: String,
    /// 1 for the first run of a cause.
    pub attempt: u32,
    /// How it ended, as in the record `background_task`.
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it ended: wall clock, milliseconds since 1970.
    pub at_ms: u64,
}

/// A job that runs: a command that outlives the call that started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobStatus {
    pub job: u64,
    pub feature: String,
    /// The call that started it; absent if a background task did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The run of a background task that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    pub command: String,
    /// When it began: wall clock, milliseconds since 1970.
    pub since_ms: u64,
    /// When it is stopped at the latest: wall clock, milliseconds since 1970.
    pub until_ms: u64,
    /// The resident memory of its processes in bytes, as it was read newest; absent before it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// When an input is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    /// By a turn of its own, after the inputs before it.
    #[default]
    Queue,
    /// At the next step of the running turn; by the next turn if the running one has no further step.
    Steer,
    /// As `steer`; until it is taken, each call that waits for a person is denied. Needs the role `approver`.
    DenyParked,
    /// The text is a shell command of the person: as `queue`, and its turn runs the command as a call of the model would
    /// run, and asks no model. An input that waits has `queue` and `run`.
    Run,
}

words! {
    /// Which part of a request it is.
    ContextKind: PartialOrd Ord {
        /// The host's part of the system prompt.
        System = "system",
        /// Files of instructions.
        Instructions = "instructions",
        /// A feature's part of the system prompt.
        FeatureInstructions = "feature_instructions",
        /// A tool's name, description and schema.
        Schema = "schema",
        Inputs = "inputs",
        Answers = "answers",
        Reasoning = "reasoning",
        /// The tool calls with their arguments.
        Calls = "calls",
        /// The results of a tool.
        Results = "results",
        /// Notes of the host and of features.
        Notes = "notes",
        /// The smallest parts, summed up.
        Other = "other",
    }
}
