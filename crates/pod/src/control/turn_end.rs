//! How a turn ended. It knows no log.

use llm_worker::effect::Outcome;
use llm_worker::{Cost, Shortfall, Usage};
use std::sync::Arc;

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnd {
    pub outcome: Outcome,
    pub answer: Option<Arc<str>>,
    /// The refused call of its last answer with calls, and why; none if the model found another way.
    pub refused: Option<String>,
    /// Why its answer is incomplete, where the model reports that.
    pub shortfall: Option<Shortfall>,
    pub steps: u64,
    pub usage: Usage,
    /// What the steps cost, as far as prices were known.
    pub cost: Option<Cost>,
    /// Why a gate at the end of the turn wants a person to look before the next turn.
    pub paused: Option<String>,
}

/// How a turn ended, in one word without the texts that may stand in it.
pub(super) fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::MaxTokens => "max_tokens",
        Outcome::Refused => "refused",
        Outcome::Empty => "empty",
        Outcome::ModelFailed { .. } => "model_failed",
        Outcome::Cancelled => "cancelled",
        Outcome::StepLimit => "step_limit",
        Outcome::CostLimit => "cost_limit",
        Outcome::Aborted { .. } => "aborted",
        Outcome::Interrupted => "interrupted",
    }
}

impl TurnEnd {
    /// The end of a turn that never began: a gate refused its input.
    pub(super) fn refused(reason: String) -> Self {
        let (outcome, usage) = (Outcome::Aborted { reason }, Usage::default());
        Self { outcome, answer: None, refused: None, shortfall: None, steps: 0, usage, cost: None, paused: None }
    }

    /// This turn and the next one of a run as one.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        Self {
            answer: next.answer.or(self.answer),
            // One step made no calls, so it worked round nothing.
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
        }
    }
}
