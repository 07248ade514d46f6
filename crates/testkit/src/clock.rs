//! A wall clock that a test moves.

use session_store::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Stands still until it is moved. Clones share it.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock at this time, microseconds since 1970.
    #[must_use]
    pub fn at(us: u64) -> Self {
        Self(Arc::new(AtomicU64::new(us)))
    }

    /// Moves it on.
    pub fn advance(&self, us: u64) {
        self.0.fetch_add(us, Ordering::SeqCst);
    }

    /// Now, microseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// The same clock as the store and the host take it.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}
