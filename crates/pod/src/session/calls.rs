//! What is known of a call that has no result, and of one that was refused.

use crate::record::ApprovalId;
use llm_worker::{CallId, ToolEffect, ToolOutcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A call that has no result yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenCall {
    /// The tool, as the model named it.
    pub name: String,
    pub arguments: String,
    /// The tool's effect, once the call was started.
    pub started: Option<ToolEffect>,
    /// A person was asked about it.
    pub approval: Option<CallApproval>,
    /// Records that follow the call are lost, and its result may be one of them.
    #[serde(rename = "parted")]
    pub records_lost_after_start: bool,
}

/// How far the approval of a call is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallApproval {
    /// The call is parked.
    Waits(ApprovalId),
    /// The call may start with the arguments of this digest.
    Allowed { arguments_digest: String },
    /// The call does not start.
    Refused,
}

impl OpenCall {
    /// The approval that the call waits for.
    #[must_use]
    pub fn waits_for(&self) -> Option<ApprovalId> {
        self.waits().filter(|_| !self.records_lost_after_start)
    }

    /// The approval that the call waits for, also if its answer may be lost.
    pub(super) fn waits(&self) -> Option<ApprovalId> {
        match self.approval {
            Some(CallApproval::Waits(approval)) => Some(approval),
            Some(_) | None => None,
        }
    }

    /// Whether a start with arguments of this digest is legal, as far as a person was asked.
    pub(super) fn may_start(&self, digest: &str) -> bool {
        match &self.approval {
            None => true,
            Some(CallApproval::Allowed { arguments_digest }) => arguments_digest == digest,
            Some(CallApproval::Waits(_) | CallApproval::Refused) => false,
        }
    }
}

/// Most calls whose tools are kept.
const MAX_NAMED: usize = 4_096;

/// The tools of the newest calls that name one in their arguments, by what their verdicts say: everything that is about the tool
/// of a call, and not about the item that the model wrote, asks here. Older verdicts say none: what was counted without them is
/// counted the same way again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamedTools(BTreeMap<CallId, String>);

impl NamedTools {
    pub(super) fn add(&mut self, call: CallId, tool: String) {
        self.0.insert(call, tool);
        while self.0.len() > MAX_NAMED {
            self.0.pop_first();
        }
    }

    /// The tool that this call names; none if it is the one of its item.
    #[must_use]
    pub fn of(&self, call: CallId) -> Option<&str> {
        self.0.get(&call).map(String::as_str)
    }
}

/// A refused call, for the end of its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCall {
    pub tool: String,
    /// One line.
    pub reason: String,
    /// What a person can do to allow the call, in the words of the host's
    /// [`HostTerms`](crate::permission::HostTerms); none for the refusal of a gate.
    pub remedy: Option<String>,
}

impl RefusedCall {
    /// The first line of a refused call's result is the reason, and the rest the remedy.
    pub(super) fn of(
        tool: &str,
        ToolOutcome {
            summary, content, ..
        }: &ToolOutcome,
    ) -> Self {
        // A longer line continues in the content.
        let cut = summary.len() + char::MAX.len_utf8() > ToolOutcome::SUMMARY_MAX;
        let (rest, remedy) = match content.split_once('\n') {
            Some(parts) if cut => parts,
            None if cut => (content.as_str(), ""),
            Some(_) | None => ("", content.as_str()),
        };
        let remedy = (!remedy.is_empty()).then(|| remedy.to_owned());
        Self {
            tool: tool.to_owned(),
            reason: format!("{summary}{rest}"),
            remedy,
        }
    }
}
