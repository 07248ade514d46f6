//! What hooks in other processes are shown, and what they answer, as JSON. Does not depend on how a chain runs.
//!
//! A gate answers `{"decision": "deny", "reason": "…"}`, with the decisions of its point. A transform answers
//! `{"change": "unchanged"}` or `{"change": "replaced", "value": …}`, an observer `null`.

use super::point::HookPoint;
use super::typed::{
    AnswerView, CompactionPlan, CompactionView, ErrorView, EventView, LeavingResult, Point,
    PromptView, RequestView, ToolCallView, ToolOutcomeView, ToolRepeatView, ToolRunView,
    ToolShapeView, TurnEndView,
};
use super::verdict::{Change, MAX_EXPIRY, MAX_RETRY_WAIT, Verdict};
use crate::feature::millis;
use crate::record::Decision;
use llm_worker::tool::{Escalation, Touch};
use llm_worker::{CallId, ToolOutput};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

/// An input of a point, as JSON.
pub(super) trait Shown {
    fn shown(&self) -> Value;
}

/// An answer of a point, from JSON.
pub(super) trait Heard: Sized {
    fn heard(answer: &Value) -> Result<Self, String>;
}

impl Shown for PromptView {
    fn shown(&self) -> Value {
        json!({ "text": self.text, "output_schema": self.output_schema.as_deref().map(parsed) })
    }
}

impl Shown for RequestView {
    fn shown(&self) -> Value {
        let Self {
            turn,
            number,
            items,
        } = self;
        json!({ "turn": turn, "number": number, "items": items })
    }
}

impl Shown for CompactionView {
    fn shown(&self) -> Value {
        let Self {
            turn,
            level,
            by_hand,
            used,
            window,
            results,
            keep,
        } = self;
        let result =
            |of: &LeavingResult| json!({ "call": of.call, "tool": of.tool, "bytes": of.bytes });
        json!({
            "turn": turn, "level": level, "by_hand": by_hand, "used": used, "window": window,
            "results": results.iter().map(result).collect::<Vec<_>>(), "keep": keep,
        })
    }
}

impl Shown for AnswerView {
    fn shown(&self) -> Value {
        let Self {
            turn,
            request,
            text,
            calls,
        } = self;
        let calls: Vec<_> = calls
            .iter()
            .map(|call| json!({ "tool": call.tool, "arguments": call.arguments }))
            .collect();
        json!({ "turn": turn, "request": request, "text": text, "calls": calls })
    }
}

impl Shown for ErrorView {
    fn shown(&self) -> Value {
        let Self {
            turn,
            request,
            kind,
            message,
            retries,
        } = self;
        json!({ "turn": turn, "request": request, "kind": kind, "message": message, "retries": retries })
    }
}

impl Shown for ToolCallView {
    fn shown(&self) -> Value {
        let Self {
            call,
            tool,
            feature,
            effect,
            arguments,
            touches,
            input: _,
            by_person: _,
        } = self;
        let touches: Vec<_> = touches.iter().map(touch).collect();
        json!({
            "call": call, "tool": tool, "feature": feature, "effect": effect, "arguments": parsed(arguments),
            "touches": touches,
        })
    }
}

impl Shown for ToolRunView {
    fn shown(&self) -> Value {
        json!({ "call": self.call.shown() })
    }
}

impl Shown for ToolRepeatView {
    fn shown(&self) -> Value {
        let Self {
            call,
            outcome,
            error,
            tries,
            after: _,
        } = self;
        json!({ "call": call.shown(), "outcome": outcome, "error": error, "tries": tries })
    }
}

impl Shown for ToolShapeView {
    fn shown(&self) -> Value {
        let ToolOutput { summary, content } = &self.output;
        let output = json!({ "summary": summary, "content": content });
        json!({ "call": self.call.shown(), "status": self.status, "output": output })
    }
}

impl Shown for ToolOutcomeView {
    fn shown(&self) -> Value {
        json!({ "call": self.call.shown(), "outcome": self.outcome })
    }
}

impl Shown for TurnEndView {
    fn shown(&self) -> Value {
        let Self {
            turn,
            outcome,
            steps,
            answer,
            shortfall,
            output_schema,
        } = self;
        json!({
            "turn": turn, "outcome": outcome, "steps": steps, "answer": answer, "shortfall": shortfall,
            "output_schema": output_schema.as_deref().map(parsed),
        })
    }
}

impl Shown for EventView {
    fn shown(&self) -> Value {
        let Self {
            seq,
            missed,
            record,
        } = self;
        json!({ "seq": seq, "missed": missed, "kind": record.kind(), "record": serde_json::to_value(&**record).ok() })
    }
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
        let (least, most) = (1_000, millis(MAX_EXPIRY));
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
        let Output { summary, content } = of_type(value)?;
        Ok(Self { summary, content })
    }
}

impl Replacement for Duration {
    fn read(value: &Value) -> Result<Self, String> {
        of_type(value).map(|After { after_ms }| Self::from_millis(after_ms))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    summary: String,
    #[serde(default)]
    content: String,
}

impl Replacement for CompactionPlan {
    fn read(value: &Value) -> Result<Self, String> {
        of_type(value).map(|Keep { keep }| Self { keep })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keep {
    keep: Vec<CallId>,
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
