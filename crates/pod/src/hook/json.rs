//! What hooks in other processes are shown, and what they answer, as JSON. Does not depend on how a chain runs.
//!
//! A gate answers `{"decision": "deny", "reason": "…"}`, with the decisions of its point. A transform answers
//! `{"change": "unchanged"}` or `{"change": "replaced", "value": …}`, an observer `null`.

use super::point::HookPoint;
use super::typed::{CompactionPlan, EventView, Point};
use super::verdict::{Change, MAX_EXPIRY, MAX_RETRY_WAIT, Verdict};
use crate::feature::millis;
use crate::record::Decision;
use llm_worker::ToolOutput;
use llm_worker::tool::{Escalation, Touch};
use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// An answer of a point, from JSON.
pub(super) trait Heard: Sized {
    fn heard(answer: &Value) -> Result<Self, String>;
}

impl Serialize for EventView {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut shown = to.serialize_struct("EventView", 4)?;
        shown.serialize_field("seq", &self.seq)?;
        shown.serialize_field("missed", &self.missed)?;
        shown.serialize_field("kind", self.record.kind())?;
        shown.serialize_field("record", &self.record)?;
        shown.end()
    }
}

/// JSON text as its value.
pub(super) fn text<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    parsed(text).serialize(to)
}

/// A schema as its value.
pub(super) fn schema<S: Serializer>(schema: &Option<Arc<str>>, to: S) -> Result<S::Ok, S::Error> {
    schema.as_deref().map(parsed).serialize(to)
}

pub(super) fn touches<S: Serializer>(touches: &[Touch], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(touches.iter().map(touch))
}

fn touch(touch: &Touch) -> Value {
    match touch {
        Touch::Read(path) => json!({ "is": "read", "path": path.to_string_lossy() }),
        Touch::Write(path) => json!({ "is": "write", "path": path.to_string_lossy() }),
        Touch::Shell(command) => json!({ "is": "shell", "command": command }),
        Touch::Host(host) => json!({ "is": "host", "host": host }),
        Touch::Session => json!({ "is": "session" }),
        Touch::RemoteWrite(host) => json!({ "is": "remote_write", "host": host }),
        Touch::Connect(host, reason) => json!({ "is": "network", "host": host, "reason": reason }),
        Touch::Escalate(Escalation::Network, reason) => {
            json!({ "is": "network", "reason": reason })
        }
        Touch::Escalate(Escalation::Unconfined, reason) => {
            json!({ "is": "unconfined", "reason": reason })
        }
    }
}

/// JSON text as a value; text that does not parse stays a text.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The decisions of all gates.
#[derive(Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
enum GateAnswer {
    Allow {},
    Finish {},
    GiveUp {},
    Deny {
        reason: String,
    },
    Ask {
        question: String,
        #[serde(default)]
        expires_after_ms: Option<u64>,
    },
    Abort {
        reason: String,
    },
    Pause {
        reason: String,
    },
    Retry {
        after_ms: u64,
    },
    Again {
        words: String,
    },
}

impl GateAnswer {
    /// Whether gates at this point may answer so; the same as the constructors of [`Verdict`].
    fn is_allowed_at(&self, point: HookPoint) -> bool {
        use HookPoint::{
            PostAssistant, PreCompaction, PreRequest, PreToolCall, PromptSubmit, TurnEnd, TurnError,
        };
        match self {
            Self::Allow {} => {
                matches!(
                    point,
                    PreToolCall | PromptSubmit | PreRequest | PreCompaction | PostAssistant
                )
            }
            Self::Abort { .. } => matches!(
                point,
                PreToolCall | PromptSubmit | PreRequest | PostAssistant
            ),
            Self::Deny { .. } => matches!(point, PreToolCall | PreCompaction),
            Self::Ask { .. } => point == PreToolCall,
            Self::Finish {} | Self::Again { .. } => point == TurnEnd,
            Self::GiveUp {} | Self::Retry { .. } => point == TurnError,
            Self::Pause { .. } => matches!(point, TurnEnd | TurnError),
        }
    }

    fn decision(self) -> Decision {
        let least = 1_000;
        let most = millis(MAX_EXPIRY);
        match self {
            Self::Allow {} | Self::Finish {} | Self::GiveUp {} => Decision::Allow,
            Self::Deny { reason } => Decision::Refuse { reason },
            Self::Ask {
                question,
                expires_after_ms,
            } => Decision::Ask {
                question,
                expires_after_ms: expires_after_ms.map(|time| time.clamp(least, most)),
            },
            Self::Abort { reason } => Decision::Abort { reason },
            Self::Pause { reason } => Decision::Pause { reason },
            Self::Retry { after_ms } => Decision::Retry {
                after_ms: after_ms.min(millis(MAX_RETRY_WAIT)),
            },
            Self::Again { words } => Decision::Again { words },
        }
    }
}

impl<P: Point> Heard for Verdict<P> {
    fn heard(answer: &Value) -> Result<Self, String> {
        let said = GateAnswer::deserialize(answer).map_err(|error| error.to_string())?;
        match said.is_allowed_at(P::POINT) {
            true => Ok(Self::of(said.decision())),
            false => Err(format!("{} does not allow this decision", P::POINT)),
        }
    }
}

/// The answers of all transforms.
#[derive(Deserialize)]
#[serde(tag = "change", rename_all = "snake_case", deny_unknown_fields)]
enum TransformAnswer {
    Unchanged {},
    Replaced { value: Value },
}

/// A value that a transform replaces, from JSON.
trait Replacement: Sized {
    fn read(value: &Value) -> Result<Self, String>;
}

impl Replacement for Value {
    fn read(value: &Value) -> Result<Self, String> {
        Ok(value.clone())
    }
}

impl Replacement for ToolOutput {
    fn read(value: &Value) -> Result<Self, String> {
        of_type(value)
    }
}

impl Replacement for Duration {
    fn read(value: &Value) -> Result<Self, String> {
        of_type(value).map(|After { after_ms }| Self::from_millis(after_ms))
    }
}

impl Replacement for CompactionPlan {
    fn read(value: &Value) -> Result<Self, String> {
        of_type(value)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    after_ms: u64,
}

fn of_type<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| error.to_string())
}

impl<V: Replacement> Heard for Change<V> {
    fn heard(answer: &Value) -> Result<Self, String> {
        match of_type(answer)? {
            TransformAnswer::Unchanged {} => Ok(Self::Unchanged),
            TransformAnswer::Replaced { value } => V::read(&value).map(Self::Replaced),
        }
    }
}

impl Heard for () {
    fn heard(answer: &Value) -> Result<(), String> {
        if answer.is_null() {
            Ok(())
        } else {
            Err("an observer answers null".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
