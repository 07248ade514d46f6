//! The bodies of records. The store knows frames; a kind's meaning stands here and, for readers in other
//! languages, in `docs/JOURNAL.md`. One-letter keys belong to the frame header and are not used in bodies.

use crate::feature::{GrantUse, escape_line};
use llm_worker::effect::Outcome;
use llm_worker::projection::Surface;
use llm_worker::{CallId, Cost, Item, Shortfall, StopReason, ToolEffect, ToolOutcome, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use session_store::{BlobRef, Digest, EncodeError, Frames};
use std::sync::Arc;

/// A queued input's number, dense within a session from 1.
pub type InputId = u64;

/// Declares every kind once: its variant, its name in the log and the version of its body.
macro_rules! records {
    ($($(#[$doc:meta])* $variant:ident = $kind:literal / $version:literal,)*) => {
        /// One record of the log, by kind.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Record {
            $($(#[$doc])* $variant($variant),)*
            /// A kind of the store's own, or of a later version: kept in the file, without meaning here.
            Other {
                /// Its kind.
                kind: String,
            },
        }

        impl Record {
            /// The kind's name in the log.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Other { kind } => kind,
                }
            }

            /// Writes the record into a batch. A record of unknown kind is never written again.
            pub(crate) fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
                match self {
                    $(Self::$variant(body) => frames.record($kind, $version, body).map(drop),)*
                    Self::Other { .. } => Ok(()),
                }
            }

            /// The record as one JSON object: `k` and `q` as in the log, then its body.
            #[must_use]
            pub fn to_json(&self, seq: u64) -> serde_json::Value {
                let body = match self {
                    $(Self::$variant(body) => serde_json::to_value(body).unwrap_or_default(),)*
                    Self::Other { .. } => serde_json::Value::Null,
                };
                let mut object = serde_json::Map::new();
                object.insert("k".to_owned(), self.kind().into());
                object.insert("q".to_owned(), seq.into());
                if let serde_json::Value::Object(fields) = body {
                    object.extend(fields);
                }
                serde_json::Value::Object(object)
            }

            /// Reads a record from its line.
            ///
            /// # Errors
            /// The line's body does not fit its kind, or a newer program wrote it: folding on without it would
            /// be a guess.
            pub fn decode(kind: &str, version: u16, line: &[u8]) -> Result<Self, serde_json::Error> {
                Ok(match (kind, version) {
                    $(($kind, $version) => Self::$variant(serde_json::from_slice(line)?),)*
                    $(($kind, newer) => {
                        let what = format!("version {newer} of `{kind}` is newer than this program; use a newer yoi");
                        return Err(serde::de::Error::custom(what));
                    })*
                    (other, _) => Self::Other { kind: other.to_owned() },
                })
            }
        }

        $(impl From<$variant> for Record {
            fn from(body: $variant) -> Self {
                Self::$variant(body)
            }
        })*
    };
}

records! {
    /// A process took the session.
    HostStarted = "host_started" / 1,
    /// It let go in good order.
    HostStopped = "host_stopped" / 1,
    /// What recovery found and did.
    Recovery = "recovery" / 1,
    /// The fixed part of the requests that follow.
    SurfaceSet = "surface" / 1,
    /// The install report of this start.
    Features = "features" / 1,
    /// An input was accepted.
    InputQueued = "input_queued" / 1,
    /// A queued input became the start of a turn, and an item.
    InputConsumed = "input_consumed" / 1,
    /// A turn began.
    TurnStarted = "turn_started" / 1,
    /// The host or a feature told the model something.
    SystemItem = "system_item" / 1,
    /// The model said something or asked for a tool.
    ItemAdded = "item" / 1,
    /// A request was about to be sent.
    Request = "request" / 1,
    /// An answer was whole.
    Response = "response" / 1,
    /// A call was judged.
    VerdictGiven = "verdict" / 1,
    /// A call was about to run.
    ToolStarted = "tool_started" / 1,
    /// A call has its result.
    ToolFinished = "tool_finished" / 1,
    /// A file is about to change.
    FileChanged = "file_changed" / 1,
    /// A directory is about to get another name.
    DirectoryMoved = "directory_moved" / 1,
    /// A feature's durable state has this value now.
    FeatureState = "feature_state" / 1,
    /// A feature has words for the model; the next step brings them.
    NotificationQueued = "notification_queued" / 1,
    /// A feature left a note for whoever inspects the pod.
    FeatureNote = "feature_note" / 1,
    /// Writing failed; nothing more is started.
    Suspended = "suspended" / 1,
    /// Writing works again.
    Resumed = "resumed" / 1,
    /// A turn ended.
    TurnFinished = "turn_finished" / 1,
    /// What a start's grants were used for, as it ends.
    GrantsUsed = "grants_used" / 1,
    /// A record stood here and is lost; only in a copy of a damaged log, written by the store.
    Gap = "gap" / 1,
}

impl Record {
    /// The blob it names, if it names one.
    #[must_use]
    pub fn stored(&self) -> Option<&Stored> {
        match self {
            Self::InputQueued(queued) => queued.whole.as_ref().map(|output| &output.stored),
            Self::ToolFinished(finished) => finished.output.as_ref().map(|output| &output.stored),
            Self::FileChanged(changed) => changed.before.as_ref(),
            Self::HostStarted(_)
            | Self::HostStopped(_)
            | Self::Recovery(_)
            | Self::SurfaceSet(_)
            | Self::Features(_)
            | Self::InputConsumed(_)
            | Self::TurnStarted(_)
            | Self::SystemItem(_)
            | Self::ItemAdded(_)
            | Self::Request(_)
            | Self::Response(_)
            | Self::VerdictGiven(_)
            | Self::ToolStarted(_)
            | Self::FeatureState(_)
            | Self::NotificationQueued(_)
            | Self::DirectoryMoved(_)
            | Self::FeatureNote(_)
            | Self::Suspended(_)
            | Self::Resumed(_)
            | Self::TurnFinished(_)
            | Self::GrantsUsed(_)
            | Self::Gap(_)
            | Self::Other { .. } => None,
        }
    }
}

/// Body of `host_started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStarted {
    /// The program's version.
    pub version: String,
    /// Its process id; diagnostic.
    pub pid: u32,
    /// The project root, absolute.
    pub project: String,
    /// The working directory, absolute.
    pub cwd: String,
    /// The sandbox mode in force.
    pub sandbox: String,
    /// BLAKE3 of the effective configuration, hex; secrets stand in it by name.
    pub config_digest: String,
    /// Directories that were added for reading, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_dirs: Vec<String>,
    /// Directories that were added for reading and writing, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_write_dirs: Vec<String>,
}

/// Body of `host_stopped`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStopped {
    /// Why, in a word or two.
    pub reason: String,
}

/// Body of `recovery`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// What the end of the log looked like: `clean`, `torn_tail`, `zero_tail` or `bad_tail`.
    pub class: String,
    /// Bytes cut from the end; they are in the quarantine file.
    pub cut_bytes: u64,
    /// The quarantine file's name, if bytes were cut.
    pub quarantine: Option<String>,
    /// Calls that had no result.
    pub open_calls: u64,
    /// Whether a turn was open.
    pub open_turn: bool,
    /// Left-over child processes that were ended.
    pub ended_processes: u32,
    /// Why some may still run, when they could not be ended or looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survivors: Option<String>,
    /// Microseconds from the last record to this start.
    pub down_us: u64,
    /// Files that tools had written beside others, for changes that did not come about, and that were removed.
    #[serde(default, skip_serializing_if = "none")]
    pub swept: u64,
    /// Records that were lost since a recovery last spoke of any: only in a copy of a damaged log.
    #[serde(default, skip_serializing_if = "none")]
    pub lost: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn none(count: &u64) -> bool {
    *count == 0
}

/// Body of `surface`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceSet {
    /// The exact system prompt, tools and parameters.
    pub surface: Surface,
    /// The request encoder.
    pub encoder: Encoder,
}

/// Which encoder made a request's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoder {
    /// As in `openai-chat`.
    pub id: String,
    /// Raised when the bytes for the same items change.
    pub version: u16,
}

/// Body of `features`: the registry's report, as `yoi features --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// The report.
    pub report: serde_json::Value,
}

/// Body of `input_queued`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputQueued {
    /// Its number.
    pub input: InputId,
    /// The exact model-visible text.
    pub text: String,
    /// For an input too long to stand inline: its whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Output>,
}

/// Bytes kept beside the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// BLAKE3 of the stored bytes: the blob's name.
    pub digest: Digest,
    /// Stored bytes.
    pub bytes: u64,
    /// Where the middle of a very long stream was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<session_store::Gap>,
    /// With a gap: the digest of the whole stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Digest>,
}

impl Stored {
    /// Bytes there were before any were left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bytes + self.gap.map_or(0, |gap| gap.dropped)
    }
}

impl From<BlobRef> for Stored {
    fn from(blob: BlobRef) -> Self {
        Self { digest: blob.digest, bytes: blob.len, gap: None, whole: None }
    }
}

/// Body of `input_consumed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputConsumed {
    /// Which input.
    pub input: InputId,
}

/// Body of `turn_started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStarted {
    /// Its number, dense from 1.
    pub turn: u64,
}

/// Body of `system_item`: words of the host, or of a feature, that the model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "topic", rename_all = "snake_case")]
pub enum SystemItem {
    /// When and where: date, working directory, git state.
    Environment {
        /// The generation it was made under.
        generation: u64,
        /// The exact model-visible words.
        text: String,
    },
    /// What an interruption left behind, or an answer that was dropped because it went over a limit.
    Recovery {
        /// The generation it was made under.
        generation: u64,
        /// The exact model-visible words.
        text: String,
    },
    /// A queued notification, delivered.
    Notification {
        /// Which one.
        number: u64,
        /// Whose it is.
        feature: String,
        /// The generation it was accepted under.
        generation: u64,
        /// The exact model-visible words.
        text: String,
    },
}

impl SystemItem {
    /// Who says it: `host` or a feature id.
    #[must_use]
    pub fn source(&self) -> &str {
        match self {
            Self::Environment { .. } | Self::Recovery { .. } => "host",
            Self::Notification { feature, .. } => feature,
        }
    }

    /// The exact model-visible words.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Environment { text, .. } | Self::Recovery { text, .. } | Self::Notification { text, .. } => text,
        }
    }

    /// What the history gets.
    #[must_use]
    pub fn item(&self) -> Item {
        Item::System { source: self.source().to_owned(), text: self.text().to_owned() }
    }
}

/// Body of `notification_queued`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationQueued {
    /// Its number, rising within a session.
    pub number: u64,
    /// Whose it is.
    pub feature: String,
    /// The generation it was accepted under.
    pub generation: u64,
    /// The exact model-visible words.
    pub text: String,
}

/// Body of `feature_state`: the whole value, for its owner alone; never model-visible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeatureState {
    /// Whose it is.
    pub feature: String,
    /// Its name within the feature.
    pub name: String,
    /// The version of its shape.
    pub version: u16,
    /// The value.
    pub value: Arc<serde_json::Value>,
}

/// Body of `feature_note`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureNote {
    /// Who says it.
    pub feature: String,
    /// What; bounded, without control characters.
    pub text: String,
}

/// Body of `item`: assistant text, reasoning or a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemAdded {
    /// The item.
    pub item: Item,
}

/// Body of `request`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number, dense from 1.
    pub number: u64,
    /// The surface it stands on.
    pub generation: u64,
    /// It carries the first `items` items of the history.
    pub items: u64,
    /// The version of this project's own terms, in which `neutral_digest` is counted.
    pub projection: u16,
    /// Digest of the request in this project's own terms, hex.
    pub neutral_digest: String,
    /// The encoder of the body.
    pub encoder: Encoder,
    /// Digest of the body's bytes, hex.
    pub body_digest: String,
    /// The body's length.
    pub bytes: u64,
}

/// Body of `response`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// Why the model stopped.
    pub stop: StopReason,
    /// Tokens counted by the vendor.
    pub usage: Usage,
    /// What they cost, in billionths of a US dollar; none where no price was known, or where nothing was counted for a
    /// model that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Why this answer is not what was asked for; only the embedded planner says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<Shortfall>,
}

/// Body of `verdict`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictGiven {
    /// Which call; none when the gate stands elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// What was decided.
    pub decision: Decision,
    /// The rule or check that decided.
    pub rule: String,
    /// Why, for model and person; empty for a plain allow.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The gate that decided, when one did.
    #[serde(flatten)]
    pub gate: GateNote,
    /// What became of the call's arguments before it was judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformNote>,
}

/// Which gate of which feature decided, and how long it took. All there or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateNote {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// Milliseconds until it answered or was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// A value that a transform replaced, or failed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransformNote {
    /// The transform's name.
    pub hook: String,
    /// Whose it is.
    pub feature: String,
    /// Milliseconds until it answered or was given up.
    pub ms: u64,
    /// BLAKE3 of the value before, hex.
    pub before: String,
    /// BLAKE3 of the value after, hex; none when the value before was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Why it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What a judgement came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run.
    Allow,
    /// Permission or a gate refused it.
    Refuse,
    /// There is no such tool, or its arguments do not fit.
    Invalid,
    /// It ends the turn.
    Abort,
    /// A person should look before anything goes on.
    Pause,
}

/// Body of `tool_started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStarted {
    /// Which call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// The feature it belongs to.
    pub feature: String,
    /// The generation it was judged under.
    pub generation: u64,
    /// The arguments as they run: sorted keys, defaults filled in.
    pub arguments: Arc<str>,
    /// BLAKE3 of `arguments`, hex.
    pub arguments_digest: String,
    /// What running it twice would do.
    pub effect: ToolEffect,
    /// The value of `YOI_CALL` in its children, and the key to pass where a service wants one.
    pub idempotency_key: String,
}

/// Body of `tool_finished`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFinished {
    /// Which call.
    pub call: CallId,
    /// The feature whose tool ran; none for a call that did not start, or that recovery closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// What the model sees.
    pub outcome: ToolOutcome,
    /// The full output, where it did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// How long it ran, milliseconds; 0 for a call that did not run.
    pub ms: u64,
    /// What became of its result before it was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformNote>,
    /// What the person was told of it, in lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A full text and the handle that names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// What `ReadOutput` takes: `o-` and the first 12 digits of the digest.
    pub handle: String,
    /// Where it is.
    pub stored: Stored,
}

impl From<Stored> for Output {
    fn from(stored: Stored) -> Self {
        let digest = stored.digest.to_string();
        Self { handle: format!("o-{}", digest.get(..12).unwrap_or(&digest)), stored }
    }
}

/// Body of `file_changed`: written before the change becomes visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChanged {
    /// The call that does it; none for `yoi undo`.
    pub call: Option<CallId>,
    /// The file, absolute, symlinks resolved. A path that is not UTF-8 is refused before it comes to this.
    pub path: String,
    /// The bytes before; none when the file did not exist.
    pub before: Option<Stored>,
    /// Permission bits before.
    pub mode: Option<u32>,
    /// BLAKE3 of the bytes after, hex; none when the change removes the file.
    pub after: Option<String>,
    /// The directory that is made for it, absolute; the topmost where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
}

/// Body of `directory_moved`: written before the move becomes visible. One that brings a directory back to where an
/// earlier one found it takes that back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryMoved {
    /// The call that does it; none for `yoi undo`.
    pub call: Option<CallId>,
    /// The directory, absolute, symlinks resolved; UTF-8 like the paths of files.
    pub from: String,
    /// Its new name, likewise.
    pub to: String,
    /// The directory that is made above that, absolute; the topmost where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
}

/// Body of `gap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first record of the stretch that is lost.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// In the first one of a stretch: what is wrong there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Body of `suspended`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspended {
    /// What the disk said.
    pub reason: String,
}

/// Body of `resumed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {}

/// Body of `turn_finished`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFinished {
    /// Its number.
    pub turn: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What attempts cost that brought no answer before it ended: cut, cancelled or overlong. Not in any `response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Unanswered>,
}

/// Tokens that were counted for no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    /// Tokens counted by the vendor.
    pub usage: Usage,
    /// What they cost, as for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// Most grants of one ledger that are written down.
const MAX_USES: usize = 4096;

/// Longest grant in words, in bytes.
const MAX_GRANT: usize = 128;

/// Body of `grants_used`: the ledger of a start, written when its host lets go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantsUsed {
    /// Each grant that was taken up, by feature in install order; at most 4,096.
    pub grants: Vec<UsedGrant>,
}

/// One grant and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsedGrant {
    /// Whose.
    pub feature: String,
    /// What was granted, in words, as in `Process(*)`.
    pub grant: String,
    /// How often it was used.
    pub uses: u64,
    /// How often a use was refused.
    pub refused: u64,
    /// When it was last used, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_use_ms: Option<u64>,
}

impl GrantsUsed {
    /// Of a registry's ledger.
    #[must_use]
    pub fn of(ledger: &[GrantUse]) -> Self {
        let row = |used: &GrantUse| UsedGrant {
            feature: used.feature_id.to_string(),
            grant: escape_line(&used.capability.to_string(), MAX_GRANT),
            uses: used.uses,
            refused: used.refused,
            last_use_ms: used.last_use_ms,
        };
        Self { grants: ledger.iter().filter(|used| used.held).take(MAX_USES).map(row).collect() }
    }
}
