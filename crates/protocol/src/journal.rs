//! The bodies of records, each declared once. What a kind means is written, for readers in other languages, in
//! `docs/JOURNAL.md`. One-letter keys belong to the header of a line and are not used in bodies.

mod approval;
mod budget;
mod call;
mod client;
mod decision;
mod file;
mod host;
mod process;
pub mod shown;
mod state;
mod task;
mod turn;
mod view;

pub use approval::{
    ApprovalDecision, ApprovalExpiry, ApprovalId, ApprovalRequested, ApprovalResolved,
    ApprovalScope, AskedCommand, AskingGate, CommandPart, ProposedDecision, ProposedRule,
    RulesForgotten,
};
pub use budget::{BudgetKind, BudgetScope};
pub use call::{
    CommandEnd, GateNote, HookName, ResultData, ToolFinished, ToolRepeated, ToolStarted,
    TransformNote, VerdictGiven,
};
pub use client::ClientCall;
pub use decision::Decision;
pub use file::{DirectoryMoved, FileChanged, Output, Stored};
pub use host::{
    Features, Gap, GrantsUsed, HoldCause, HostStarted, HostStopped, Launch, LaunchedAgent,
    Recovery, Resumed, Suspended, UsedGrant, Who,
};
pub use process::{ChildProcess, JobEnd, JobEndKind, JobStarter, MAX_JOB_TEXT};
pub use state::{FeatureNote, FeatureState, NotificationQueued};
pub use task::{BackgroundTask, MAX_TASK_REASON, MAX_TASK_RESTARTS, TaskRunState, TriggerKind};
pub use turn::{
    Again, Encoder, ExpandedCommand, InputConsumed, InputEdited, InputId, InputLimits, InputMode,
    InputMoved, InputQueued, InputWithdrawn, ItemAdded, MAX_CRASHES, Request, RequestedCall,
    Response, SurfaceSet, SurfaceSources, SystemItem, SystemSource, TurnFinished, TurnStarted,
    Unanswered,
};
pub use view::{
    CompactRequested, KeptItem, Pinned, Pruned, PrunedContent, Unpinned, View, ViewLevel,
    ViewParameters,
};

use crate::item::Attachment;
use crate::outcome::Outcome;
use serde::{Serialize, Serializer};

/// Every kind, once: its variant, its name in the journal, the version of its body, and the lowest format of a segment that may
/// hold it, which is 2 if leaving the record out changes what runs or what is sent. Those of `host` are not for clients.
macro_rules! kinds {
    ($of:ident) => {
        $of! {
            shown {
                /// A process took the session.
                HostStarted = "host_started" / 1 / 1,
                /// The process stopped in good order.
                HostStopped = "host_stopped" / 1 / 1,
                /// The damage that recovery found, and its repairs.
                Recovery = "recovery" / 1 / 1,
                /// The fixed part of the requests that follow.
                SurfaceSet = "surface" / 1 / 1,
                /// An input was accepted.
                InputQueued = "input_queued" / 1 / 1,
                /// A turn took a queued input, which became an item.
                InputConsumed = "input_consumed" / 1 / 1,
                /// A queued input was withdrawn.
                InputWithdrawn = "input_withdrawn" / 1 / 2,
                /// A queued input has another text.
                InputEdited = "input_edited" / 1 / 2,
                /// A queued input has another place.
                InputMoved = "input_moved" / 1 / 2,
                /// A turn began.
                TurnStarted = "turn_started" / 1 / 1,
                /// A text of the host or of a feature for the model.
                SystemItem = "system_item" / 1 / 1,
                /// A part of an answer: text, reasoning or a tool call.
                ItemAdded = "item" / 1 / 1,
                /// A request was about to be sent.
                Request = "request" / 1 / 1,
                /// An answer arrived completely.
                Response = "response" / 1 / 1,
                /// A decision of permission or of a gate.
                VerdictGiven = "verdict" / 1 / 1,
                /// A call waits for a person.
                ApprovalRequested = "approval_requested" / 1 / 2,
                /// An approval has its answer.
                ApprovalResolved = "approval_resolved" / 1 / 2,
                /// Rules that were allowed for the pod were taken back.
                RulesForgotten = "rules_forgotten" / 1 / 2,
                /// A call was about to run.
                ToolStarted = "tool_started" / 1 / 1,
                /// A call is about to run again.
                ToolRepeated = "tool_repeated" / 1 / 1,
                /// A call has its result.
                ToolFinished = "tool_finished" / 1 / 1,
                /// A file is about to change.
                FileChanged = "file_changed" / 1 / 1,
                /// A directory is about to be moved.
                DirectoryMoved = "directory_moved" / 1 / 1,
                /// A feature's notification for the model; the next step delivers it.
                NotificationQueued = "notification_queued" / 1 / 1,
                /// A feature's note for people who inspect the pod.
                FeatureNote = "feature_note" / 1 / 1,
                /// A run of a background task began or ended.
                BackgroundTask = "background_task" / 1 / 1,
                /// A child process that outlives the call that started it began or ended.
                ChildProcess = "process" / 1 / 1,
                /// A client asked a feature to change something.
                ClientCall = "client_call" / 1 / 1,
                /// The pod is held, or ends because it cannot continue.
                Suspended = "suspended" / 1 / 1,
                /// The requests that follow show less of old results.
                Pruned = "pruned" / 1 / 2,
                /// A text stays in the context.
                Pinned = "pinned" / 1 / 2,
                /// A pinned text may leave the context.
                Unpinned = "unpinned" / 1 / 2,
                /// A person wishes a smaller context.
                CompactRequested = "compact_requested" / 1 / 2,
                /// A hold has ended, or the disk accepts commits again.
                Resumed = "resumed" / 1 / 1,
                /// A turn ended.
                TurnFinished = "turn_finished" / 1 / 1,
                /// A lost record; only in a copy of a damaged log, written by the store.
                Gap = "gap" / 1 / 1,
            }
            host {
                /// The install report of this start.
                Features = "features" / 1 / 1,
                /// A feature's durable state has a new value.
                FeatureState = "feature_state" / 1 / 1,
                /// The use of a start's grants so far.
                GrantsUsed = "grants_used" / 1 / 1,
            }
        }
    };
}
pub(crate) use kinds;

macro_rules! records {
    ($($for:ident { $($(#[$doc:meta])* $variant:ident = $kind:literal / $version:literal / $format:literal,)* })*) => {
        /// One record of the journal, by kind.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Record {
            $($($(#[$doc])* $variant($variant),)*)*
            /// A kind that only the store uses, or of a later version: kept in the file, ignored here.
            Other {
                kind: String,
            },
        }

        impl Record {
            /// The kind's name in the journal.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self {
                    Self::Other { kind } => kind,
                    known => known.row().map_or("", |(kind, _, _)| kind),
                }
            }

            /// Its kind's row: name, version, lowest format; none for an unknown kind, which is never written again.
            #[must_use]
            pub fn row(&self) -> Option<(&'static str, u16, u32)> {
                match self {
                    $($(Self::$variant(_) => Some(($kind, $version, $format)),)*)*
                    Self::Other { .. } => None,
                }
            }

            /// Reads a record from its line.
            ///
            /// # Errors
            /// The line's body does not fit its kind, or a newer program wrote it: folding on without it would
            /// be a guess.
            pub fn decode(kind: &str, version: u16, line: &[u8]) -> Result<Self, serde_json::Error> {
                Ok(match (kind, version) {
                    $($(($kind, $version) => Self::$variant(serde_json::from_slice(line)?),)*)*
                    $($(($kind, newer) => {
                        let what = format!("version {newer} of `{kind}` is newer than this program; use a newer yoi");
                        return Err(serde::de::Error::custom(what));
                    })*)*
                    (other, _) => Self::Other { kind: other.to_owned() },
                })
            }
        }

        /// Its body.
        impl Serialize for Record {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($(Self::$variant(body) => body.serialize(to),)*)*
                    Self::Other { .. } => to.serialize_none(),
                }
            }
        }

        $($(impl From<$variant> for Record {
            fn from(body: $variant) -> Self {
                Self::$variant(body)
            }
        })*)*
    };
}

kinds!(records);

impl Record {
    /// The lowest format of a segment that may hold the record, so that a program that does not know it refuses the session.
    #[must_use]
    pub fn format(&self) -> u32 {
        match self {
            Self::SystemItem(SystemItem::Context { .. }) => 2,
            Self::InputQueued(queued)
                if queued.mode == InputMode::DenyParked
                    || queued.run
                    || queued.call.is_some()
                    || !queued.attachments.is_empty() =>
            {
                2
            }
            Self::ToolFinished(finished) if !finished.outcome.attachments.is_empty() => 2,
            Self::TurnFinished(TurnFinished {
                outcome: Outcome::TokenLimit | Outcome::TimeLimit | Outcome::ContextLimit,
                ..
            }) => 2,
            record => record.row().map_or(1, |(_, _, format)| format),
        }
    }

    /// The files that the record adds to a text. Replay checks that their blobs exist.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Self::InputQueued(queued) => &queued.attachments,
            Self::ToolFinished(finished) => &finished.outcome.attachments,
            _ => &[],
        }
    }

    /// The other blobs that the record refers to. Replay checks that they exist.
    pub fn stored(&self) -> impl Iterator<Item = &Stored> {
        fn of(output: Option<&Output>) -> Option<&Stored> {
            output.map(|output| &output.stored)
        }
        let blobs = match self {
            Self::InputQueued(queued) => [of(queued.whole.as_ref()), None],
            Self::InputEdited(edited) => [of(edited.whole.as_ref()), None],
            Self::ToolFinished(ToolFinished { output, data, .. }) => {
                let data = data.as_ref().and_then(|data| data.output.as_ref());
                [of(output.as_ref()), of(data)]
            }
            Self::FileChanged(changed) => [changed.before.as_ref(), None],
            Self::HostStarted(_)
            | Self::HostStopped(_)
            | Self::Recovery(_)
            | Self::SurfaceSet(_)
            | Self::Features(_)
            | Self::InputConsumed(_)
            | Self::InputWithdrawn(_)
            | Self::InputMoved(_)
            | Self::TurnStarted(_)
            | Self::SystemItem(_)
            | Self::ItemAdded(_)
            | Self::Request(_)
            | Self::Response(_)
            | Self::VerdictGiven(_)
            | Self::ApprovalRequested(_)
            | Self::ApprovalResolved(_)
            | Self::RulesForgotten(_)
            | Self::Pruned(_)
            | Self::Pinned(_)
            | Self::Unpinned(_)
            | Self::CompactRequested(_)
            | Self::ToolStarted(_)
            | Self::ToolRepeated(_)
            | Self::FeatureState(_)
            | Self::NotificationQueued(_)
            | Self::DirectoryMoved(_)
            | Self::FeatureNote(_)
            | Self::BackgroundTask(_)
            | Self::ChildProcess(_)
            | Self::ClientCall(_)
            | Self::Suspended(_)
            | Self::Resumed(_)
            | Self::TurnFinished(_)
            | Self::GrantsUsed(_)
            | Self::Gap(_)
            | Self::Other { .. } => [None, None],
        };
        blobs.into_iter().flatten()
    }
}
