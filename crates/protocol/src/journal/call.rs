//! Records of a tool call: its decision, its start and its result. Do not depend on items.

use super::{Decision, Output};
use crate::item::{CallId, ResultStatus, ToolOutcome};
use crate::outcome::ErrorKind;
use crate::tool::{Escalation, ToolEffect};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// Body of `verdict`: a decision of permission or of a gate. Committed with the turn's next batch; the verdict of a
/// call is durable before the call runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "VerdictLine", into = "VerdictLine")]
pub struct VerdictGiven {
    /// None for a gate at a point without a call.
    pub call: Option<CallId>,
    /// The turn that had ended, of a gate at the end of a turn.
    pub turn: Option<u64>,
    pub decision: Decision,
    pub rule: String,
    /// The gate that decided, if a gate did.
    pub gate: GateNote,
    /// The transforms that changed the call's arguments, or failed to, before it was judged.
    pub transforms: Vec<TransformNote>,
    /// The tool that was called, where the arguments of the call name it; none where it is the one of the item.
    pub tool: Option<String>,
}

/// The body of a [`VerdictGiven`] as the log has it.
#[derive(Serialize, Deserialize)]
struct VerdictLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<u64>,
    decision: Cow<'static, str>,
    rule: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_ms: Option<u64>,
    #[serde(flatten)]
    gate: GateNote,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    transforms: Vec<TransformNote>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
}

impl From<VerdictGiven> for VerdictLine {
    fn from(given: VerdictGiven) -> Self {
        let VerdictGiven {
            call,
            turn,
            decision,
            rule,
            gate,
            transforms,
            tool,
        } = given;
        let reason = decision.reason().to_owned();
        let after_ms = decision.after_ms();
        Self {
            call,
            turn,
            decision: decision.word().into(),
            rule,
            reason,
            after_ms,
            gate,
            transforms,
            tool,
        }
    }
}

impl TryFrom<VerdictLine> for VerdictGiven {
    type Error = String;

    fn try_from(line: VerdictLine) -> Result<Self, String> {
        let VerdictLine {
            call,
            turn,
            decision,
            rule,
            reason,
            after_ms,
            gate,
            transforms,
            tool,
        } = line;
        Ok(Self {
            call,
            turn,
            decision: Decision::read(&decision, reason, after_ms)?,
            rule,
            gate,
            transforms,
            tool,
        })
    }
}

host_parts! {
    /// The gate that decided, with its feature and its duration: all fields or none. A part of [`VerdictGiven`].
    GateNote: Default Eq {
        hook ?: String,
        feature ?: String,
        /// Milliseconds until the gate answered or its deadline passed.
        ms ?: u64,
    }
    /// A value that a transform replaced, or failed to replace: arguments in [`VerdictGiven`], a result in
    /// [`ToolFinished`].
    TransformNote: Eq {
        hook: String,
        feature: String,
        /// Milliseconds until the transform answered or its deadline passed.
        ms: u64,
        /// BLAKE3 of the value before, hex.
        before: String,
        /// BLAKE3 of the value after, hex; none if the value before was kept.
        after ?: String,
        /// The reason why the value before was kept.
        problem ?: String,
    }
}

bodies! {
    /// A call was about to run.
    ///
    /// Body of `tool_started`: durable before the tool's code runs, so that recovery knows which calls may have had
    /// effects.
    ToolStarted: Eq {
        call: CallId,
        name: String,
        feature: String,
        /// The generation of the surface that the call was judged under.
        - generation: u64,
        // The arguments as they run: sorted keys, defaults filled in.
        arguments: Arc<str>,
        /// BLAKE3 of `arguments`, hex.
        - arguments_digest: String,
        effect: ToolEffect,
        /// The value of `YOI_CALL` in child processes of the call, and the idempotency key for services that take one.
        - idempotency_key: String,
        /// How far its command goes beyond the sandbox: `network` or `unconfined`.
        escalation ?: Escalation,
        /// The only hosts that its command may connect to, if there are any.
        hosts =: Vec<String>,
    }
    /// A call has its result.
    ///
    /// Body of `tool_finished`: the result of a call, also of one that was refused, cancelled or closed by recovery.
    ToolFinished: Eq {
        call: CallId,
        // The feature whose tool ran; none for a call that did not start, or that recovery closed.
        feature ?: String,
        // The result for the model.
        outcome: ToolOutcome,
        /// The full output, if it was too long.
        output ?: Output,
        // Milliseconds that the call ran; 0 if it did not.
        ms: u64,
        /// The transforms that changed the result, or failed to, before it was recorded.
        - transforms =: Vec<TransformNote>,
        // Warnings that were shown to the person, a line each.
        warnings =: Vec<String>,
        /// The hook that answered in place of the tool.
        answered_by ?: HookName,
        /// How a shell command ended.
        command ?: CommandEnd,
        /// A value for programs, which is not sent to a model.
        data ?: ResultData,
    }
    /// What the value beside a result's text is; part of [`ToolFinished`].
    ///
    /// One of the fields: the value itself, or the blob that has its JSON text.
    ResultData: Default Eq {
        value ?: Value,
        // Where the value is long; its handle is `d-` and the first 12 digits of the digest.
        output ?: Output,
    }
    /// A call is about to run again.
    ///
    /// Body of `tool_repeated`: durable before a call runs again, with the same idempotency key.
    ToolRepeated: Eq {
        call: CallId,
        /// Which run of the call begins: 2 or more.
        run: u32,
        // How long it waited, in milliseconds.
        after_ms: u64,
        /// How the run before ended.
        status: ResultStatus,
        // The kind of its failure.
        error ?: ErrorKind,
        // Who asked for it.
        hook: String,
        feature: String,
    }
}

plain_bodies! {
    /// A hook of a feature; part of [`ToolFinished`].
    HookName {
        hook: String,
        feature: String,
    }
    /// How a shell command ended, and what the sandbox refused it; part of [`ToolFinished`].
    CommandEnd {
        /// Its exit status; none after a signal, a limit or a cancellation.
        exit ?: i32,
        /// The first path that it named and could not use, absolute.
        path ?: String,
        /// Whether commands may read that path.
        may_read =: bool,
        /// Whether a connection found no way out.
        no_network =: bool,
        /// The hosts that the proxy did not connect to, and why.
        hosts ?: String,
    }
}

impl ToolFinished {
    /// Whether the record has something that only a started call can have; refusals and recovery write none of it.
    #[must_use]
    pub fn ran(&self) -> bool {
        // Older programs also named the feature of an allowed call that was withdrawn before its start.
        let withdrawn = matches!(
            self.outcome.status,
            ResultStatus::Cancelled | ResultStatus::Refused
        );
        let named = self.feature.is_some() && !withdrawn;
        self.outcome.status == ResultStatus::Ok
            || named
            || self.output.is_some()
            || self.data.is_some()
            || self.ms > 0
    }
}
