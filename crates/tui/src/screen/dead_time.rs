//! The time in which no key answers a question: keys that were typed before it was seen belong to something else.

/// How long a question is seen before a key answers it, and how long no other key came before.
const DEAD_MS: u64 = 300;

/// When a question was seen first, and when a key came last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeadTime {
    seen_ms: Option<u64>,
    key_ms: u64,
}

impl DeadTime {
    /// That of the question behind this one, which was not seen yet.
    pub(super) fn next(self) -> Self {
        Self {
            seen_ms: None,
            ..self
        }
    }

    pub(super) fn not_seen(&mut self) {
        self.seen_ms = None;
    }

    /// The question is in a frame of this time.
    pub(super) fn seen(&mut self, now_ms: u64) {
        if self.seen_ms.is_none_or(|seen| seen > now_ms) {
            self.seen_ms = Some(now_ms);
        }
    }

    /// A key came that did not answer.
    pub(super) fn typed(&mut self, now_ms: u64) {
        self.key_ms = now_ms;
    }

    pub(super) fn is_over(self, now_ms: u64) -> bool {
        let passed = |since: u64| {
            now_ms
                .checked_sub(since)
                .is_some_and(|passed| passed >= DEAD_MS)
        };
        self.seen_ms.is_some_and(passed) && passed(self.key_ms)
    }
}
