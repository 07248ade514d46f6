//! The pause before a pod that stays begins another turn by itself, after a turn that failed because the model could not
//! be reached: without it, every waiting input would fail in the same way, one after the other. It is kept in memory
//! only, so a restart tries at once. Does not depend on the queue.

use super::turn_end::TurnEnd;
use llm_worker::ErrorKind;
use llm_worker::effect::Outcome;
use std::time::Duration;
use tokio::time::Instant;

/// The pause after the first failure. The request was retried already.
const FIRST_PAUSE: Duration = Duration::from_secs(30);

/// The pauses double up to this one: a night without a network costs about four turns an hour.
const MAX_PAUSE: Duration = Duration::from_secs(15 * 60);

/// How often the model could not be reached, and what follows.
#[derive(Default)]
pub(super) struct ModelBackoff {
    /// Turns that failed because of it since the model answered last.
    failures: u32,
    pause: Option<ModelPause>,
}

pub(super) struct ModelPause {
    /// Why the model could not be reached, for people.
    pub(super) reason: String,
    pub(super) until: Instant,
}

impl ModelBackoff {
    /// A turn has ended: begins a pause if the model could not be reached in it. Returns the pause.
    pub(super) fn turn_ended(&mut self, end: &TurnEnd) -> Option<Duration> {
        if has_answered(end) {
            self.failures = 0;
        }
        self.pause = None;
        let Outcome::ModelFailed { kind: ErrorKind::Retry | ErrorKind::Unavailable, message, .. } = &end.outcome else {
            return None;
        };
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(8)).min(MAX_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.pause = Some(ModelPause { reason: message.clone(), until: Instant::now() + pause });
        Some(pause)
    }

    /// The next turn may begin at once. If it fails, too, its pause is longer.
    pub(super) fn end_pause(&mut self) {
        self.pause = None;
    }

    /// The pause, while it lasts.
    pub(super) fn pause(&self) -> Option<&ModelPause> {
        self.pause.as_ref().filter(|pause| Instant::now() < pause.until)
    }
}

/// Whether the model answered a request of this turn: each one before the last was answered.
fn has_answered(end: &TurnEnd) -> bool {
    match end.outcome {
        Outcome::Done | Outcome::MaxTokens | Outcome::Refused | Outcome::Empty => true,
        Outcome::StepLimit | Outcome::CostLimit | Outcome::TokenLimit | Outcome::TimeLimit | Outcome::ContextLimit => {
            end.steps > 0
        }
        Outcome::ModelFailed { .. }
        | Outcome::Cancelled
        | Outcome::Aborted { .. }
        | Outcome::Interrupted
        | Outcome::Waiting => end.steps > 1,
    }
}

#[cfg(test)]
mod tests;
