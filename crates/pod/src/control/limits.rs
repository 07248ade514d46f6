//! Limits of one turn, and of the next turn of a run. Does not depend on the log.

use crate::record::InputLimits;
use crate::session::spent::Spent;
use llm_worker::Cost;
use llm_worker::effect::Outcome;
use std::time::Duration;

/// Limit on the bytes of one call's raw arguments. A record is at most 1 MiB, and JSON may need six bytes for one.
pub(super) const MAX_ARGUMENTS: usize = 160 * 1024;

/// What the configuration, a flag or a client allows each turn: requests, calls at once, cost, tokens, time. The turn machine has its own
/// [`TurnLimits`](llm_worker::turn::TurnLimits), made from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    pub max_steps: u32,
    /// Calls that run at the same time; others wait.
    pub tool_concurrency: usize,
    /// Cost of one turn: once this much is spent, no further request is sent.
    pub max_cost: Option<Cost>,
    /// Tokens of one turn, read and written: once this many are used, no further request is sent.
    pub max_tokens: Option<u64>,
    /// Time of one turn, without what it waits for a person: once it is over, no further request is sent.
    pub max_wall: Option<Duration>,
}

impl From<RunLimits> for InputLimits {
    fn from(limits: RunLimits) -> Self {
        let RunLimits {
            max_steps,
            max_cost,
            max_tokens,
            max_wall,
            tool_concurrency: _,
        } = limits;
        // A started second is a whole one.
        let max_wall_s = max_wall
            .map(|most| most.as_millis().div_ceil(1000))
            .map(|s| u64::try_from(s).unwrap_or(u64::MAX));
        Self {
            max_steps: Some(max_steps),
            max_cost,
            max_tokens,
            max_wall_s,
        }
    }
}

impl RunLimits {
    /// These limits, except for those that an input sets itself.
    #[must_use]
    pub(super) fn of_input(self, own: Option<InputLimits>) -> Self {
        let InputLimits {
            max_steps,
            max_cost,
            max_tokens,
            max_wall_s,
        } = own.unwrap_or_default();
        Self {
            max_steps: max_steps.unwrap_or(self.max_steps),
            max_cost: max_cost.or(self.max_cost),
            max_tokens: max_tokens.or(self.max_tokens),
            max_wall: max_wall_s.map(Duration::from_secs).or(self.max_wall),
            ..self
        }
    }

    /// The tighter of both, field by field.
    #[must_use]
    pub(super) fn meet(self, other: Self) -> Self {
        Self {
            max_steps: self.max_steps.min(other.max_steps),
            tool_concurrency: self.tool_concurrency.min(other.tool_concurrency),
            max_cost: lower(self.max_cost, other.max_cost),
            max_tokens: lower(self.max_tokens, other.max_tokens),
            max_wall: lower(self.max_wall, other.max_wall),
        }
    }

    /// What is left of these limits after `used`; a turn with no step left ends at once.
    #[must_use]
    pub(super) fn less(self, used: Spent) -> Self {
        let steps = u32::try_from(used.requests).unwrap_or(u32::MAX);
        let max_steps = self.max_steps.saturating_sub(steps);
        let max_cost = self
            .max_cost
            .map(|most| most.since(used.cost.unwrap_or_default()));
        let max_tokens = self
            .max_tokens
            .map(|most| most.saturating_sub(used.usage.tokens()));
        let max_wall = self.max_wall.map(|most| most.saturating_sub(used.wall()));
        Self {
            max_steps,
            max_cost,
            max_tokens,
            max_wall,
            ..self
        }
    }

    /// What is left of these limits after `used`, for the model.
    pub(super) fn left_words(self, used: Spent) -> String {
        let left = self.less(used);
        let mut words = vec![format!(
            "{} of {} steps left",
            left.max_steps, self.max_steps
        )];
        words.extend(
            left.max_tokens
                .map(|tokens| format!("{tokens} tokens left")),
        );
        words.extend(left.max_cost.map(|cost| format!("{cost} left")));
        words.extend(
            left.max_wall
                .map(|wall| format!("{} s left", wall.as_secs())),
        );
        words.join(", ")
    }

    /// The limits of the next turn of a run after `used`.
    ///
    /// # Errors
    /// A limit is reached: the outcome of the run.
    pub(super) fn left(self, used: Spent) -> Result<Self, Outcome> {
        let left = self.less(used);
        match (
            left.max_steps,
            left.max_cost,
            left.max_tokens,
            left.max_wall,
        ) {
            (0, _, _, _) => Err(Outcome::StepLimit),
            (_, Some(cost), _, _) if cost == Cost::default() => Err(Outcome::CostLimit),
            (_, _, Some(0), _) => Err(Outcome::TokenLimit),
            (_, _, _, Some(Duration::ZERO)) => Err(Outcome::TimeLimit),
            (_, _, _, _) => Ok(left),
        }
    }
}

/// The lower of two limits, of which each may be missing.
fn lower<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}
