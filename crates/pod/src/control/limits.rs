//! Limits of one turn, and of the next turn of a run. Does not depend on the log.

use super::pod_budget::PodLimits;
use crate::record::InputLimits;
use crate::session::spent::Spent;
use llm_worker::Cost;
use llm_worker::effect::Outcome;
use std::time::Duration;

/// Limit on the bytes of one call's raw arguments. A record is at most 1 MiB, and JSON may need six bytes for one.
pub(super) const MAX_ARGUMENTS: usize = 160 * 1024;

/// Limit on the bytes of one answer: above the longest output of any provider, and text seldom needs escapes.
pub(super) const MAX_ANSWER: usize = 768 * 1024;

/// Limit on the argument bytes of all calls of one answer. A batch contains the raw and the canonical arguments; it has
/// room for both even if JSON escapes each byte with six.
pub(super) const MAX_CALLS: usize = 1 << 20;

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
        // A started second is a whole one.
        let seconds =
            |most: Duration| u64::try_from(most.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
        Self {
            max_steps: Some(limits.max_steps),
            max_cost: limits.max_cost,
            max_tokens: limits.max_tokens,
            max_wall_s: limits.max_wall.map(seconds),
        }
    }
}

impl RunLimits {
    /// These limits as those of a pod are counted.
    pub(super) fn most(self) -> PodLimits {
        PodLimits {
            max_steps: Some(self.max_steps.into()),
            max_cost: self.max_cost,
            max_tokens: self.max_tokens,
            max_wall: self.max_wall,
        }
    }

    /// The limits of a run with this many calls at once.
    #[must_use]
    pub fn of(most: PodLimits, tool_concurrency: usize) -> Self {
        let steps = most.max_steps.unwrap_or(u64::MAX);
        Self {
            max_steps: u32::try_from(steps).unwrap_or(u32::MAX),
            tool_concurrency,
            max_cost: most.max_cost,
            max_tokens: most.max_tokens,
            max_wall: most.max_wall,
        }
    }

    /// These limits, except for those that an input sets itself.
    #[must_use]
    pub(super) fn of_input(self, own: Option<InputLimits>) -> Self {
        let own = own.unwrap_or_default();
        Self {
            max_steps: own.max_steps.unwrap_or(self.max_steps),
            max_cost: own.max_cost.or(self.max_cost),
            max_tokens: own.max_tokens.or(self.max_tokens),
            max_wall: own.max_wall_s.map(Duration::from_secs).or(self.max_wall),
            ..self
        }
    }

    /// The tighter of both, field by field.
    #[must_use]
    pub(super) fn meet(self, other: Self) -> Self {
        let calls = self.tool_concurrency.min(other.tool_concurrency);
        Self::of(self.most().meet(other.most()), calls)
    }

    /// These limits within what is left to the pod.
    #[must_use]
    pub(super) fn within(self, left: PodLimits) -> Self {
        Self::of(self.most().meet(left), self.tool_concurrency)
    }

    /// What is left of these limits after `used`; a turn with no step left ends at once.
    #[must_use]
    pub(super) fn less(self, used: Spent) -> Self {
        Self::of(self.most().less(used), self.tool_concurrency)
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
        match self.most().rows_reached(used).next() {
            Some(row) => Err(row.outcome.clone()),
            None => Ok(self.less(used)),
        }
    }
}
