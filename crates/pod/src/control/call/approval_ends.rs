//! When the questions end that a turn waits for: by the wall clock, or by the time that this process has waited, whichever
//! comes first. Does not depend on the turn.
//!
//! The wall clock may be set. Set forward, it ends a question at the next look; set back, it does not make one wait longer.

use crate::control::tasks::supervisor::MAX_SLEEP_MS;
use crate::hook::MAX_EXPIRY;
use crate::record::{ApprovalId, ApprovalRequested};
use session_store::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The ends of the questions that wait.
#[derive(Default)]
pub(crate) struct ApprovalEnds(BTreeMap<ApprovalId, End>);

struct End {
    /// By the wall clock, in milliseconds since 1970.
    at_ms: u64,
    /// By the time that passes for this process.
    at: Instant,
}

impl ApprovalEnds {
    /// Takes the questions that wait now, and returns those that have ended.
    pub(crate) fn ended(
        &mut self,
        waiting: &[Arc<ApprovalRequested>],
        clock: &Clock,
    ) -> Vec<Arc<ApprovalRequested>> {
        self.0
            .retain(|id, _| waiting.iter().any(|asked| asked.approval == *id));
        let ends: Vec<_> = waiting
            .iter()
            .filter_map(|asked| Some((asked, asked.expires?)))
            .collect();
        if ends.is_empty() {
            return Vec::new();
        }
        let (now_ms, now) = (clock() / 1000, Instant::now());
        let mut ended = Vec::new();
        for (asked, expires) in ends {
            let left =
                Duration::from_millis(expires.at_ms.saturating_sub(now_ms).min(expires.after_ms));
            let first = End {
                at_ms: expires.at_ms,
                at: now + left.min(MAX_EXPIRY),
            };
            let end = self.0.entry(asked.approval).or_insert(first);
            if end.at_ms <= now_ms || end.at <= now {
                ended.push(Arc::clone(asked));
            }
        }
        ended
    }

    /// When to look again at the latest; none if no question ends by itself.
    pub(crate) fn look_at(&self, clock: &Clock) -> Option<Instant> {
        let next = |end: &End, now_ms: u64, now: Instant| {
            let left = end.at_ms.saturating_sub(now_ms).min(MAX_SLEEP_MS);
            end.at.min(now + Duration::from_millis(left))
        };
        if self.0.is_empty() {
            return None;
        }
        let (now_ms, now) = (clock() / 1000, Instant::now());
        self.0.values().map(|end| next(end, now_ms, now)).min()
    }
}
