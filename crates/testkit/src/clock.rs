//! A wall clock that a test moves.

use session_store::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A wall clock for tests: its time changes only by [`advance`](Self::advance) and [`set_back`](Self::set_back). Clones share it.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock at this time, microseconds since 1970.
    #[must_use]
    pub fn at(us: u64) -> Self {
        Self(Arc::new(AtomicU64::new(us)))
    }

    /// Advances the clock.
    pub fn advance(&self, us: u64) {
        self.0.fetch_add(us, Ordering::SeqCst);
    }

    /// Sets the clock back.
    pub fn set_back(&self, us: u64) {
        self.0.fetch_sub(us, Ordering::SeqCst);
    }

    /// The current time, microseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// This clock in the type that the store and the host take.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}
