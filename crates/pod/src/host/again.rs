//! A further input of the same run.

use super::{Host, HostError};
use crate::control::{Limits, TurnEnd};
use llm_worker::Cost;
use llm_worker::effect::Outcome;
use tokio_util::sync::CancellationToken;

impl Host {
    /// As [`run`](Self::run), for a run that `so_far` ended: what it used counts against the limits of this turn, too,
    /// and the end that is given tells of both. Nothing is accepted when nothing is left.
    ///
    /// # Errors
    /// The pod cannot go on; what was committed is on disk.
    pub async fn again(
        mut self,
        text: &str,
        so_far: TurnEnd,
        cancel: &CancellationToken,
    ) -> Result<(Self, TurnEnd), HostError> {
        let limits = self.pod.core.limits;
        self.pod.core.limits = match limits.left(&so_far) {
            Ok(left) => left,
            Err(outcome) => return Ok((self, TurnEnd { outcome, ..so_far })),
        };
        let (mut host, end) = self.run(text, cancel).await?;
        host.pod.core.limits = limits;
        Ok((host, so_far.and(end)))
    }
}

impl Limits {
    /// What one more turn of a run may use; how the run ends if that is nothing.
    fn left(self, used: &TurnEnd) -> Result<Self, Outcome> {
        let steps = u32::try_from(used.steps).unwrap_or(u32::MAX);
        let max_steps = self.max_steps.saturating_sub(steps);
        let max_cost = self.max_cost.map(|most| most.since(used.cost.unwrap_or_default()));
        match (max_steps, max_cost) {
            (0, _) => Err(Outcome::StepLimit),
            (_, Some(cost)) if cost == Cost::default() => Err(Outcome::CostLimit),
            (_, _) => Ok(Self { max_steps, max_cost, ..self }),
        }
    }
}

impl TurnEnd {
    /// This turn and the next one of a run as one.
    fn and(self, next: Self) -> Self {
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
