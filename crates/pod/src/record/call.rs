//! Records of a tool call: its decision, its start and its result. They know no item.

use super::{Decision, Output};
use llm_worker::{CallId, ResultStatus, ToolEffect, ToolOutcome};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// Body of `verdict`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "VerdictLine", into = "VerdictLine")]
pub struct VerdictGiven {
    /// None when the gate stands elsewhere.
    pub call: Option<CallId>,
    pub decision: Decision,
    pub rule: String,
    /// The gate that decided, when one did.
    pub gate: GateNote,
    /// What became of the call's arguments before it was judged.
    pub transforms: Vec<TransformNote>,
}

/// The same as it stands in the log.
#[derive(Serialize, Deserialize)]
struct VerdictLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    decision: Cow<'static, str>,
    rule: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(flatten)]
    gate: GateNote,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    transforms: Vec<TransformNote>,
}

impl From<VerdictGiven> for VerdictLine {
    fn from(given: VerdictGiven) -> Self {
        let VerdictGiven { call, decision, rule, gate, transforms } = given;
        let reason = decision.reason().to_owned();
        Self { call, decision: decision.word().into(), rule, reason, gate, transforms }
    }
}

impl TryFrom<VerdictLine> for VerdictGiven {
    type Error = String;

    fn try_from(line: VerdictLine) -> Result<Self, String> {
        let VerdictLine { call, decision, rule, reason, gate, transforms } = line;
        Ok(Self { call, decision: Decision::read(&decision, reason)?, rule, gate, transforms })
    }
}

/// Which gate of which feature decided, and how long it took. All there or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateNote {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// Milliseconds until it answered or was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// A value that a transform replaced, or failed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransformNote {
    pub hook: String,
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

/// Body of `tool_started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStarted {
    pub call: CallId,
    pub name: String,
    pub feature: String,
    /// The generation of the surface it was judged under.
    pub generation: u64,
    /// The arguments as they run: sorted keys, defaults filled in.
    pub arguments: Arc<str>,
    /// BLAKE3 of `arguments`, hex.
    pub arguments_digest: String,
    pub effect: ToolEffect,
    /// The value of `YOI_CALL` in its children, and the key to pass where a service wants one.
    pub idempotency_key: String,
}

/// Body of `tool_finished`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFinished {
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

impl ToolFinished {
    /// It says something that only a call which was started can come to; denials and recovery write none of it.
    #[must_use]
    pub fn ran(&self) -> bool {
        // Older programs named the feature of a call that was allowed, too, when it was withdrawn before its start.
        let withdrawn = matches!(self.outcome.status, ResultStatus::Cancelled | ResultStatus::Refused);
        let named = self.feature.is_some() && !withdrawn;
        self.outcome.status == ResultStatus::Ok || named || self.output.is_some() || self.ms > 0
    }
}
