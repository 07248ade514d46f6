//! What a pod tells an attached client. Records are complete and in order; everything else is a hint: a client that
//! misses one can ask.

use crate::method::{Draft, Failure};
use crate::record::{RecordLine, SystemItem};
use crate::status::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Declares every event once: its name and its parameters.
macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident($params:ty) = $name:literal,)*) => {
        /// An event, by kind.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $($(#[$doc])* $variant($params),)*
            /// An event of a later version.
            Other { event: String, params: Value },
        }

        /// A kind of event, to say that it is not wanted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum EventKind {
            $($(#[$doc])* $variant,)*
            /// A kind of a later version.
            #[serde(other)]
            Unknown,
        }

        impl Event {
            /// Every event.
            pub const NAMES: &[&str] = &[$($name,)*];

            /// The event's name.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Other { event, .. } => event,
                }
            }

            /// The kind, by which a client declines it.
            #[must_use]
            pub fn kind(&self) -> EventKind {
                match self {
                    $(Self::$variant(_) => EventKind::$variant,)*
                    Self::Other { .. } => EventKind::Unknown,
                }
            }

            pub(crate) fn params(&self) -> Result<Box<RawValue>, serde_json::Error> {
                match self {
                    $(Self::$variant(params) => serde_json::value::to_raw_value(params),)*
                    Self::Other { params, .. } => serde_json::value::to_raw_value(params),
                }
            }

            /// Reads an event from its parameters, as JSON.
            ///
            /// # Errors
            /// The parameters do not fit its kind.
            pub fn read(name: &str, params: &str) -> Result<Self, serde_json::Error> {
                Ok(match name {
                    $($name => Self::$variant(serde_json::from_str(params)?),)*
                    _ => Self::Other { event: name.to_owned(), params: serde_json::from_str(params)? },
                })
            }
        }

        /// The schemas of the parameters of every event.
        pub(crate) fn schemas(generator: &mut schemars::SchemaGenerator) -> Map<String, Value> {
            let mut all = Map::new();
            $(all.insert($name.to_owned(), generator.subschema_for::<$params>().to_value());)*
            all
        }
    };
}

events! {
    /// A record became durable.
    Record(RecordLine) = "record",
    /// The record `system_item` in typed form, for a client that does not want records.
    SystemItem(SystemItemAdded) = "system_item",
    /// Part of an answer, or of the output of a running call, that is not durable yet.
    Delta(DeltaEvent) = "delta",
    /// Deltas were dropped because the client was slow.
    Lagged(Lagged) = "lagged",
    /// A text for people; in no record.
    Alert(AlertEvent) = "alert",
    /// The state changed.
    Status(Box<Status>) = "status",
    /// The draft changed.
    Draft(Draft) = "draft",
    /// The pod has ended: the last event, also for clients that are not attached.
    Ended(PodEnded) = "ended",
}

/// A text of the host or of a feature that the model reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemItemAdded {
    /// The number of the record.
    pub seq: u64,
    #[serde(flatten)]
    pub item: SystemItem,
}

/// A part of an answer or of an output. A later part of the same request, or of the same call, continues it; its records
/// replace it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeltaEvent {
    pub turn: u64,
    /// The number of the request.
    pub request: u64,
    #[serde(flatten)]
    pub part: DeltaPart,
}

/// What a part of an answer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DeltaPart {
    /// More answer text.
    Text { text: String },
    /// More reasoning text.
    Reasoning { text: String },
    /// The model started a tool call.
    CallStarted {
        /// Its place in this answer, from 0.
        index: u64,
        /// The tool's name as the model wrote it.
        name: String,
    },
    /// The parts of this request are void; it is sent again.
    Retrying {
        /// The attempt that failed, from 1.
        attempt: u32,
        delay_ms: u64,
        why: String,
    },
    /// More output of a running call, until its result. `request` is the newest one when the call began.
    Output {
        call: String,
        text: String,
        /// It does not continue what came of this call: that is the first part, or a part was left out, or the tool runs
        /// again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        anew: bool,
    },
    /// A part of a later version.
    #[serde(other)]
    Unknown,
}

impl DeltaPart {
    /// Appends a later part, if both are text of one kind; gives it back otherwise.
    ///
    /// # Errors
    /// The parts are of different kinds.
    pub fn append(&mut self, later: Self) -> Result<(), Self> {
        match (self, later) {
            (Self::Text { text }, Self::Text { text: more })
            | (Self::Reasoning { text }, Self::Reasoning { text: more }) => {
                text.push_str(&more);
                Ok(())
            }
            (_, later) => Err(later),
        }
    }
}

/// Deltas that this client did not get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lagged {
    pub deltas: u64,
}

/// The end of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodEnded {
    /// Why it could not end in good order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// A short text for the people who watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlertEvent {
    pub level: AlertLevel,
    /// The feature; absent for the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    pub text: String,
}

/// How serious an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Severity")]
pub enum AlertLevel {
    Info,
    Warning,
    Error,
    /// A level of a later version.
    #[serde(other)]
    Unknown,
}
