//! The end of a turn. Does not depend on the log.

use crate::record::ToolFinished;
use crate::session::calls::RefusedCall;
use crate::session::fold::Hold;
use llm_worker::effect::Outcome;
use llm_worker::{Cost, Shortfall, Usage};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How the reason begins when a turn was ended because a record of the model's answer is too large for the journal.
pub const ANSWER_NOT_STORED: &str = "the journal cannot store the model's answer";

/// The end of a turn, for the client that submitted its input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    pub outcome: Outcome,
    pub answer: Option<Arc<str>>,
    /// The refused call of its last answer with calls; none if the model found another way.
    pub refused: Option<RefusedCall>,
    /// The reason why the answer is incomplete, if the model reports one.
    pub shortfall: Option<Shortfall>,
    pub steps: u64,
    pub usage: Usage,
    /// Cost of the steps, as far as prices were known.
    pub cost: Option<Cost>,
    /// The reason of a gate at the end of the turn to have a person look before the next turn.
    pub paused: Option<String>,
    /// Why the pod is held now, if the turn ended at a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Box<Hold>>,
    /// The result of its call, if its input was a call or a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<ToolFinished>>,
}

impl TurnEnd {
    /// The end of a turn that never started: a gate refused its input.
    #[must_use]
    pub fn refused(reason: String) -> Self {
        Self::nothing(Outcome::Aborted { reason })
    }

    /// The end of a turn that did nothing.
    pub(super) fn nothing(outcome: Outcome) -> Self {
        let usage = Usage::default();
        Self {
            outcome,
            answer: None,
            refused: None,
            shortfall: None,
            steps: 0,
            usage,
            cost: None,
            paused: None,
            held: None,
            result: None,
        }
    }

    /// Adds the next turn of a run to this one.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        Self {
            answer: next.answer.or(self.answer),
            // A single step has no calls, so it worked around nothing.
            refused: next.refused.or(self.refused.filter(|_| next.steps <= 1)),
            shortfall: next.shortfall,
            steps: self.steps.saturating_add(next.steps),
            usage: self.usage.plus(next.usage),
            cost: match (self.cost, next.cost) {
                (Some(before), Some(after)) => Some(before.plus(after)),
                (before, after) => before.or(after),
            },
            outcome: next.outcome,
            paused: next.paused,
            held: next.held,
            result: next.result.or(self.result),
        }
    }
}
