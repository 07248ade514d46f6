//! What a client can ask for. A request that changes something carries a `cmd_id` of the client's choice: a second
//! request with the same one is not carried out again, and gets the answer of the first.

use crate::event::EventKind;
pub use crate::journal::ApprovalScope as AllowScope;

use crate::record::{
    ApprovalRequested, ApprovalResolved, Outcome, RecordLine, ToolFinished, Usage, Who,
};
use crate::status::{DeliveryMode, HoldStatus, Status};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The parameters of a method: what a client asks, and the type of its answer.
pub trait Ask: Serialize {
    /// What the pod answers.
    type Answer: DeserializeOwned;

    /// The method's name.
    fn name(&self) -> &'static str;

    /// The `cmd_id` of a request that changes something. Clients without the role for it may not make it.
    fn cmd_id(&self) -> Option<&str> {
        None
    }
}

/// Declares every method once: its parameters, its name and its answer. A `read` changes nothing; a `change` has a
/// `cmd_id`; a `call` has one if it may change something; a `verb` is a change that the actor of the pod does, with the
/// answer [`Done`]: what a person asks for.
macro_rules! methods {
    ($($(#[$doc:meta])* $kind:ident $variant:ident = $name:literal -> $answer:ty,)*) => {
        impl Method {
            /// Every method.
            pub const NAMES: &[&str] = &[$($name,)*];

            /// Reads the parameters of a method, as JSON; none if there is no method of this name.
            ///
            /// # Errors
            /// The parameters do not fit.
            pub fn read(name: &str, params: &str) -> Option<Result<Self, serde_json::Error>> {
                Some(match name {
                    $($name => serde_json::from_str::<$variant>(params).map(Self::from),)*
                    _ => return None,
                })
            }
        }

        $(impl $variant {
            /// The method's name.
            pub const NAME: &str = $name;
        }

        impl Ask for $variant {
            type Answer = $answer;

            fn name(&self) -> &'static str {
                Self::NAME
            }

            methods!(@cmd_id $kind);
        })*

        /// The schemas of the parameters and answers of every method.
        pub(crate) fn schemas(generator: &mut schemars::SchemaGenerator) -> Map<String, Value> {
            let mut all = Map::new();
            $(all.insert($name.to_owned(), serde_json::json!({
                "params": generator.subschema_for::<$variant>(),
                "result": generator.subschema_for::<$answer>(),
            }));)*
            all
        }

        methods!(@sort [] [] $($kind { $(#[$doc])* $variant })*);
    };

    (@cmd_id read) => {};
    (@cmd_id call) => {
        fn cmd_id(&self) -> Option<&str> {
            self.cmd_id.as_deref()
        }
    };
    (@cmd_id $changes:ident) => {
        fn cmd_id(&self) -> Option<&str> {
            Some(&self.cmd_id)
        }
    };

    (@sort [$($others:tt)*] [$($verbs:tt)*] verb $one:tt $($rest:tt)*) => {
        methods!(@sort [$($others)*] [$($verbs)* $one] $($rest)*);
    };
    (@sort [$($others:tt)*] [$($verbs:tt)*] $other:ident $one:tt $($rest:tt)*) => {
        methods!(@sort [$($others)* $one] [$($verbs)*] $($rest)*);
    };
    (@sort [$({ $(#[$doc:meta])* $other:ident })*] [$({ $(#[$about:meta])* $verb:ident })*]) => {
        /// A request, by method.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Method {
            $($(#[$doc])* $other($other),)*
            Verb(Verb),
        }

        /// What a person has the actor of a pod do.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Verb {
            $($(#[$about])* $verb($verb),)*
        }

        impl Ask for Method {
            /// As the method answers.
            type Answer = Value;

            fn name(&self) -> &'static str {
                match self {
                    $(Self::$other(ask) => ask.name(),)*
                    Self::Verb(verb) => verb.name(),
                }
            }

            fn cmd_id(&self) -> Option<&str> {
                match self {
                    $(Self::$other(ask) => ask.cmd_id(),)*
                    Self::Verb(verb) => verb.cmd_id(),
                }
            }
        }

        impl Ask for Verb {
            type Answer = Done;

            fn name(&self) -> &'static str {
                match self {
                    $(Self::$verb(ask) => ask.name(),)*
                }
            }

            fn cmd_id(&self) -> Option<&str> {
                match self {
                    $(Self::$verb(ask) => ask.cmd_id(),)*
                }
            }
        }

        impl Verb {
            /// The same as a new request.
            #[must_use]
            pub fn with_cmd_id(mut self, cmd_id: String) -> Self {
                match &mut self {
                    $(Self::$verb(ask) => ask.cmd_id = cmd_id,)*
                }
                self
            }
        }

        $(impl From<$other> for Method {
            fn from(ask: $other) -> Self {
                Self::$other(ask)
            }
        })*

        $(impl From<$verb> for Verb {
            fn from(ask: $verb) -> Self {
                Self::$verb(ask)
            }
        }

        impl From<$verb> for Method {
            fn from(ask: $verb) -> Self {
                Self::Verb(ask.into())
            }
        })*
    };
}

methods! {
    /// The first request of a connection: which versions the client speaks, and who it is.
    read Hello = "hello" -> Welcome,
    /// Begins the events: every record after a cursor, without a gap, and what happens from now on.
    read Attach = "attach" -> Attached,
    /// Records before one of them.
    read Page = "page" -> RecordPage,
    read GetStatus = "status" -> Status,
    /// The install report of the features.
    read GetFeatures = "features" -> Report,
    /// The tools of the pod.
    read GetTools = "tools" -> OfferedTools,
    /// A piece of a file for an input. In memory only: it is stored with its input.
    change SendFile = "file" -> HeldFile,
    /// An input. Answered once it is durable.
    change SendInput = "input" -> AcceptedInput,
    /// An input that is one call of a tool: its turn asks no model. Answered once it is durable.
    change SendCall = "call" -> AcceptedInput,
    /// Waits for the end of the turn that takes an input.
    read Wait = "wait" -> TurnEnded,
    /// What waits for a person, with all arguments.
    read GetApprovals = "approvals" -> OpenApprovals,
    /// The recorded calls that the rules of a question would have matched.
    read GetPastCalls = "past_calls" -> MatchedCalls,
    /// What a call that waits for a person would change in a file, as the file is now.
    read PreviewCall = "preview_call" -> PreviewedCall,
    /// Answers what waits for a person. The first answer counts, and every later one gets it.
    change Approve = "approve" -> ApprovalResolved,
    /// Takes back rules that were allowed for the pod.
    verb ForgetRules = "forget_rules" -> Done,
    /// Replaces the text of an input that waits.
    change EditInput = "edit_input" -> Done,
    /// Takes back an input that waits.
    verb Withdraw = "withdraw" -> Done,
    /// Moves an input that waits to another place in the queue.
    verb MoveInput = "move_input" -> Done,
    /// Sends the model a notification, which the next step delivers.
    change Notify = "notify" -> Done,
    /// Calls a tool that its feature opens to clients.
    call CallTool = "call_tool" -> ToolAnswer,
    /// Has a text stay in the context, word for word.
    verb Pin = "pin" -> Done,
    /// Takes back a pin.
    verb Unpin = "unpin" -> Done,
    /// Has the next request show as little as the rules allow.
    verb Compact = "compact" -> Done,
    /// Replaces the text that a person is writing; all clients see it. In memory only.
    change SetDraft = "draft" -> Done,
    /// Ends the running turn; of an input: withdraws it, or ends its turn.
    verb Cancel = "cancel" -> Done,
    /// Ends a job with all of its processes. Answered once its end is durable.
    change StopJob = "stop_job" -> Done,
    /// Asks a run of a background task to end. Its record tells when it has.
    verb StopRun = "stop_run" -> Done,
    /// Holds the pod: no turn begins, and the running one waits before its next request.
    verb Pause = "pause" -> Done,
    /// Ends a hold.
    verb Resume = "resume" -> Done,
    /// Restores files as they were after a record, if no turn runs.
    change Undo = "undo" -> Undone,
    /// Ends the pod in good order.
    change Shutdown = "shutdown" -> Done,
}

impl Method {
    /// The role that a client needs for it.
    #[must_use]
    pub fn role(&self) -> Role {
        match self {
            Self::Approve(_)
            | Self::Verb(Verb::ForgetRules(_))
            | Self::SendInput(SendInput {
                mode: DeliveryMode::DenyParked,
                ..
            }) => Role::Approver,
            _ if self.cmd_id().is_some() => Role::Driver,
            _ => Role::Viewer,
        }
    }
}

/// What a client may do.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It reads only.
    #[default]
    Viewer,
    /// It also answers what waits for a person.
    Approver,
    /// It also sends inputs and controls the pod.
    Driver,
}

impl Role {
    /// The role in the journal.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::Driver => "driver",
        }
    }
}

/// Parameters of `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// The versions of the protocol that the client speaks.
    pub versions: Vec<u32>,
    /// The program, for the journal, as in `yoi send`.
    pub client: String,
    /// The person, if the program knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the client wants to do; a process that a pod started gets no more than `viewer`.
    #[serde(default)]
    pub role: Role,
}

/// The answer to `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Welcome {
    /// The version that both speak from now on.
    pub version: u32,
    pub pod: String,
    pub session: String,
    /// Of the pod's program.
    pub program: String,
    /// What this client may do.
    pub role: Role,
    /// The methods of this pod.
    pub methods: Vec<String>,
}

/// Parameters of `attach`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attach {
    /// Send the records after this one. Absent: the answer has the newest ones, and those after them are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Kinds of events that the client does not want. Without `record`, it gets `system_item` instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<EventKind>,
    /// Records in the answer, at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The answer to `attach`: everything that a client needs before the events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attached {
    pub status: Status,
    pub draft: Draft,
    /// The newest records, if `after` was absent. The next record that is sent comes directly after them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<RecordPage>,
}

/// Parameters of `page`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Page {
    /// The records before this one.
    pub before: u64,
    /// At most 1,000.
    pub limit: u32,
}

/// Some records that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordPage {
    /// In order, without `feature_state`, which is for its feature alone.
    pub records: Vec<RecordLine>,
    /// The cursor for the page before this one: the number of the first record that was looked at. There is none before 1.
    pub first: u64,
}

/// Parameters of `status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetStatus {}

/// Parameters of `features`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetFeatures {}

/// The answer to `features`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// As `yoi features --json` prints it.
    pub report: Value,
}

/// Parameters of `tools`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetTools {}

/// The answer to `tools`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedTools {
    /// By name; also those that requests leave out.
    pub tools: Vec<OfferedTool>,
}

/// A tool, as the model reads of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedTool {
    pub name: String,
    pub description: String,
    /// The JSON Schema of its arguments, as text.
    pub schema: String,
    /// `read_only`, `idempotent` or `effectful`.
    pub effect: String,
    pub feature: String,
}

/// Limits of one input's turn; the others are the pod's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnBudget {
    /// Requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Billionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<u64>,
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Seconds, without what the turn waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wall_s: Option<u64>,
}

/// Parameters of `input`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SendInput {
    pub text: String,
    #[serde(default)]
    pub mode: DeliveryMode,
    /// A person typed it: `/NAME` of a command that the pod has becomes its text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expand: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<TurnBudget>,
    /// A JSON Schema that the answer has to fit, at most 64 KiB; what it refers to is in it. The model is asked for it,
    /// and goes on when its answer does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Images and documents beside the text, at most 16 and 24 MiB together, that were sent before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SentFile>,
    /// Remembered with the newest 256 inputs, also across restarts.
    pub cmd_id: String,
}

/// Parameters of `call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SendCall {
    /// The tool's name, as in the record `surface`.
    pub tool: String,
    /// They fit the schema of the tool, or the call fails in its turn; at most 160 KiB as text.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// As that of an input.
    pub cmd_id: String,
}

/// A file of an input: what was sent with this digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SentFile {
    /// As `file` answered to the last piece.
    pub digest: String,
    /// Without its directory; the model may read it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Parameters of `file`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SendFile {
    /// The bytes of the piece in base 64, at most 1 MiB of bytes.
    pub data: String,
    /// The digest of the pieces before it; absent for the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    pub cmd_id: String,
}

/// The answer to `file`: the pod holds so much of the file, with the newest files of all clients up to 32 MiB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldFile {
    /// BLAKE3 of all its bytes so far, hex.
    pub digest: String,
}

/// The answer to `input`: it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedInput {
    /// Its number in the session.
    pub input: u64,
}

/// Parameters of `wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    pub input: u64,
    /// Also answered when the pod waits for a person: then the outcome is `waiting`, and nothing has ended.
    #[serde(default)]
    pub until_asked: bool,
}

/// The answer to `wait`: how the turn ended that took the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    pub outcome: Outcome,
    /// The model's last text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Requests.
    pub steps: u64,
    pub usage: Usage,
    /// Billionths of a US dollar, if a price was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Why the pod is held now, if a gate asked for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Why the pod is held now, if the turn ended at a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HoldStatus>,
    /// The result of the turn's call, if the input was a call or a command: as in its record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<ToolFinished>>,
    /// The newest record by then.
    pub seq: u64,
    /// Fields without a mirror.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Parameters of `approvals`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetApprovals {}

/// The answer to `approvals`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OpenApprovals")]
pub struct OpenApprovals<A = ApprovalRequested, R = Value> {
    /// By number, at most 32.
    pub approvals: Vec<A>,
    /// The rules that were allowed for the pod, oldest first, at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PodRule<R>>,
}

/// A rule that was allowed for the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PodRule")]
pub struct PodRule<R = Value> {
    /// Its number, which stays.
    pub number: u64,
    /// The approval that it was allowed with.
    pub approval: u64,
    pub scope: AllowScope,
    /// As in the record `approval_requested`.
    pub rule: R,
}

/// Parameters of `past_calls`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetPastCalls {
    /// The number of an approval that waits.
    pub id: u64,
}

/// The answer to `past_calls`: calls with a result that the rules, in the user's configuration, would have matched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchedCalls {
    /// Newest first, at most 10.
    pub calls: Vec<MatchedCall>,
    /// How many match.
    pub matched: u64,
    /// How many calls were looked at, the newest ones.
    pub searched: u64,
    /// Whether these were all.
    pub complete: bool,
}

/// A call with a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchedCall {
    pub call: String,
    pub tool: String,
    /// The first 200 characters.
    pub arguments: String,
}

/// Parameters of `preview_call`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewCall {
    /// The number of an approval that waits.
    pub id: u64,
}

/// The answer to `preview_call`. Without `diff` and `why`, the tool does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewedCall {
    /// Hunks of a unified diff with the numbers of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Lines of the diff that were left out.
    #[serde(default)]
    pub more: u64,
    /// The diff shows everything that changes.
    #[serde(default)]
    pub whole: bool,
    /// Why it cannot be shown: the call would fail, as far as is known now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl PreviewedCall {
    /// It cannot be shown.
    #[must_use]
    pub fn unknown(why: String) -> Self {
        Self {
            why: Some(why),
            ..Self::default()
        }
    }
}

/// Parameters of `approve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approve {
    /// The number of the approval.
    pub id: u64,
    pub decision: AllowOrDeny,
    #[serde(default)]
    pub scope: AllowScope,
    /// As in the question: an answer about other arguments is refused.
    pub arguments_digest: String,
    /// For the model, with `deny`; at most 2 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    pub cmd_id: String,
}

/// A person's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllowOrDeny {
    Allow,
    Deny,
}

/// Parameters of `forget_rules`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgetRules {
    /// Their numbers.
    pub rules: Vec<u64>,
    pub cmd_id: String,
}

/// Parameters of `edit_input`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditInput {
    pub input: u64,
    pub text: String,
    pub cmd_id: String,
}

/// Parameters of `withdraw`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Withdraw {
    pub input: u64,
    pub cmd_id: String,
}

/// Parameters of `move_input`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MoveInput {
    pub input: u64,
    /// The waiting input that comes directly after it; absent: it becomes the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    pub cmd_id: String,
}

/// Parameters of `notify`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notify {
    pub text: String,
    /// An idle pod starts a turn for it.
    #[serde(default)]
    pub wake: bool,
    pub cmd_id: String,
}

/// Parameters of `call_tool`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallTool {
    /// The tool's name, as in the report of the features.
    pub tool: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Absent: the tool may change nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cmd_id: Option<String>,
}

/// The answer to `call_tool`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolAnswer {
    /// One line.
    pub summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
}

/// Parameters of `pin`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pin {
    /// At most 4 KiB; all pins have at most 32 KiB, and there are at most 64.
    pub text: String,
    pub cmd_id: String,
}

/// Parameters of `unpin`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unpin {
    pub pin: u64,
    pub cmd_id: String,
}

/// Parameters of `compact`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compact {
    /// The oldest turns leave the context, too; a hold because of a full context ends.
    #[serde(default)]
    pub drop_turns: bool,
    pub cmd_id: String,
}

/// Parameters of `draft`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetDraft {
    pub text: String,
    pub cmd_id: String,
}

/// A text that a person is writing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Draft {
    pub text: String,
    /// Rises with every change.
    pub revision: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

/// Parameters of `cancel`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cancel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    pub cmd_id: String,
}

/// Parameters of `stop_job`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopJob {
    pub job: u64,
    pub cmd_id: String,
}

/// Parameters of `stop_run`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopRun {
    pub run: u64,
    pub cmd_id: String,
}

/// Parameters of `pause`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    pub cmd_id: String,
}

/// Parameters of `resume`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resume {
    /// The pod gets what is used up of its budget once more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    pub cmd_id: String,
}

/// Parameters of `undo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undo {
    /// The record after which file changes are undone.
    pub to: u64,
    pub cmd_id: String,
}

/// The answer to `undo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// What was restored and what was not, for people.
    pub lines: Vec<String>,
    /// Why not all of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// How a command of the pod's program failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The exit code of the command.
    pub exit: u8,
    pub message: String,
    /// The next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Parameters of `shutdown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shutdown {
    /// Do not wait for what runs.
    #[serde(default)]
    pub now: bool,
    pub cmd_id: String,
}

/// It is done, and durable if it is a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// Why nothing changed, if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<String>,
}
