//! A wall clock that a test moves.

use session_store::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A wall clock for tests: its time changes only by [`advance`](Self::advance) and [`set_back`](Self::set_back). Clones share it.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    us: AtomicU64,
    reads: AtomicU64,
}

impl ManualClock {
    /// A clock at this time, microseconds since 1970.
    #[must_use]
    pub fn at(us: u64) -> Self {
        Self(Arc::new(Shared {
            us: AtomicU64::new(us),
            reads: AtomicU64::new(0),
        }))
    }

    /// Advances the clock.
    pub fn advance(&self, us: u64) {
        self.0.us.fetch_add(us, Ordering::SeqCst);
    }

    /// Sets the clock back.
    pub fn set_back(&self, us: u64) {
        self.0.us.fetch_sub(us, Ordering::SeqCst);
    }

    /// The current time, microseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.us.load(Ordering::SeqCst)
    }

    /// How often the program read it, through [`clock`](Self::clock): each time that an actor goes on reads it.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::SeqCst)
    }

    /// This clock in the type that the store and the host take.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let clock = self.clone();
        Arc::new(move || {
            clock.0.reads.fetch_add(1, Ordering::SeqCst);
            clock.now()
        })
    }
}
