//! The wait of a turn for a model that could not be reached: why, since when, and when its request is sent again. It is
//! kept in memory only: a restart goes on with the turn and tries at once. Does not depend on the turn machine.

use llm_worker::ModelEvent;
use protocol::status::ModelRetry;
use std::time::Duration;
use tokio::time::Instant;

/// The pause after the first failure. The model's client has tried several times already.
const FIRST_PAUSE: Duration = Duration::from_secs(30);

/// The pauses double up to this one: a night without a network costs about four requests an hour.
const MAX_PAUSE: Duration = Duration::from_secs(15 * 60);

/// What failed since the model answered last.
#[derive(Default)]
pub(crate) struct ModelBackoff {
    /// Pauses since then.
    pauses: u32,
    /// When the first of these attempts had failed, milliseconds since 1970.
    since_ms: Option<u64>,
    /// None while an answer arrives.
    next: Option<NextAttempt>,
}

struct NextAttempt {
    reason: String,
    at: Instant,
}

impl ModelBackoff {
    /// The number of the attempt that failed, from 1, and the pause behind it.
    pub(crate) fn next_pause(&mut self) -> (u32, Duration) {
        let pause = FIRST_PAUSE
            .saturating_mul(1 << self.pauses.min(8))
            .min(MAX_PAUSE);
        self.pauses = self.pauses.saturating_add(1);
        (self.pauses, pause)
    }

    /// Follows the attempts. Only a whole answer ends the row of failures: a server that cuts each answer is no reason to
    /// ask it more often.
    pub(crate) fn take(&mut self, event: &ModelEvent, now_us: u64) {
        match event {
            ModelEvent::Retrying { delay, why, .. } => {
                self.since_ms.get_or_insert(now_us / 1000);
                self.next = Some(NextAttempt {
                    reason: why.clone(),
                    at: Instant::now() + *delay,
                });
            }
            ModelEvent::Stop(_) => *self = Self::default(),
            ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Sealed(_)
            | ModelEvent::CallStarted { .. }
            | ModelEvent::CallArguments { .. }
            | ModelEvent::Usage(_)
            | ModelEvent::Shortfall(_) => self.next = None,
            ModelEvent::Notice(_) => {}
        }
    }

    /// No attempt is under way or due.
    pub(crate) fn attempt_ended(&mut self) {
        self.next = None;
    }

    /// When the next attempt is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.next.as_ref().map(|next| next.at)
    }

    /// The wait, for people.
    pub(crate) fn wait(&self) -> Option<ModelRetry> {
        let NextAttempt { reason, at } = self.next.as_ref()?;
        let left = at.saturating_duration_since(Instant::now());
        // Rounded up: nothing comes before.
        let retry_in_s = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        Some(ModelRetry {
            reason: reason.clone(),
            retry_in_s,
            since_ms: self.since_ms,
        })
    }
}

#[cfg(test)]
mod tests;
