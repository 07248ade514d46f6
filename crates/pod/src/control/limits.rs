//! Limits of one turn, and of the next turn of a run. Does not depend on the log.

use super::turn_end::TurnEnd;
use crate::record::InputLimits;
use crate::session::spent::Spent;
use llm_worker::Cost;
use llm_worker::effect::Outcome;

/// What the configuration, a flag or a client allows each turn: requests, calls at once, cost. The turn machine has its own
/// [`TurnLimits`](llm_worker::turn::TurnLimits), made from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    pub max_steps: u32,
    /// Calls that run at the same time; others wait.
    pub tool_concurrency: usize,
    /// Cost of one turn: once this much is spent, no further request is sent.
    pub max_cost: Option<Cost>,
}

impl From<RunLimits> for InputLimits {
    fn from(limits: RunLimits) -> Self {
        Self { max_steps: Some(limits.max_steps), max_cost: limits.max_cost }
    }
}

impl RunLimits {
    /// These limits, except for those that an input sets itself.
    #[must_use]
    pub(super) fn of_input(self, own: Option<InputLimits>) -> Self {
        let InputLimits { max_steps, max_cost } = own.unwrap_or_default();
        Self { max_steps: max_steps.unwrap_or(self.max_steps), max_cost: max_cost.or(self.max_cost), ..self }
    }

    /// The tighter of both, field by field.
    #[must_use]
    pub(super) fn meet(self, other: Self) -> Self {
        Self {
            max_steps: self.max_steps.min(other.max_steps),
            tool_concurrency: self.tool_concurrency.min(other.tool_concurrency),
            max_cost: match (self.max_cost, other.max_cost) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            },
        }
    }

    /// What is left of these limits after `used`; a turn with no step left ends at once.
    #[must_use]
    pub(super) fn less(self, used: Spent) -> Self {
        let steps = u32::try_from(used.requests).unwrap_or(u32::MAX);
        let max_steps = self.max_steps.saturating_sub(steps);
        let max_cost = self.max_cost.map(|most| most.since(used.cost.unwrap_or_default()));
        Self { max_steps, max_cost, ..self }
    }

    /// The limits of the next turn of a run after `used`.
    ///
    /// # Errors
    /// A limit is reached: the outcome of the run.
    pub fn left(self, used: &TurnEnd) -> Result<Self, Outcome> {
        let left = self.less(Spent { requests: used.steps, usage: used.usage, cost: used.cost });
        match (left.max_steps, left.max_cost) {
            (0, _) => Err(Outcome::StepLimit),
            (_, Some(cost)) if cost == Cost::default() => Err(Outcome::CostLimit),
            (_, _) => Ok(left),
        }
    }
}
