//! Whether drivers are attached to a pod, and until when one was. Does not depend on sockets.

use session_store::Clock;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The attached drivers of a pod. Clones share them.
#[derive(Clone)]
pub(crate) struct Drivers(Arc<Shared>);

struct Shared {
    clock: Clock,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    attached: usize,
    /// When the last one left, in microseconds since 1970, and on a clock that nobody sets.
    left: Option<(u64, Instant)>,
}

impl Drivers {
    pub(crate) fn new(clock: Clock) -> Self {
        Self(Arc::new(Shared {
            clock,
            seen: Mutex::default(),
        }))
    }

    /// Counts one more driver until the result is dropped.
    pub(crate) fn attach(&self) -> AttachedDriver {
        self.change(|seen| seen.attached += 1);
        AttachedDriver(self.clone())
    }

    /// Until when a driver was attached: now while one is; none if none was since this start.
    pub(crate) fn until(&self) -> Option<SystemTime> {
        let now = (self.0.clock)();
        let (attached, left) = self.change(|seen| (seen.attached > 0, seen.left));
        // A clock that was set back since then would put that time into the future.
        let left = left.map(|(left, at)| left.min(now.saturating_sub(micros(at.elapsed()))));
        UNIX_EPOCH.checked_add(Duration::from_micros(if attached { now } else { left? }))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        change(&mut self.0.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One attached driver; see [`Client::driver`](super::Client::driver).
pub struct AttachedDriver(Drivers);

impl Drop for AttachedDriver {
    fn drop(&mut self) {
        let now = (self.0.0.clock)();
        self.0.change(|seen| {
            seen.attached = seen.attached.saturating_sub(1);
            seen.left = Some((now, Instant::now()));
        });
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_driver_counts_until_the_last_one_left() {
        let now = Arc::new(AtomicU64::new(5_000_000));
        let clock = Arc::clone(&now);
        let drivers = Drivers::new(Arc::new(move || clock.load(Ordering::SeqCst)));
        let at = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(drivers.until(), None);
        let one = drivers.attach();
        let other = drivers.attach();
        drop(one);
        now.store(9_000_000, Ordering::SeqCst);
        assert_eq!(drivers.until(), at(9), "the other one is still attached");
        drop(other);
        now.store(12_000_000, Ordering::SeqCst);
        assert_eq!(drivers.until(), at(9));
        now.store(2_000_000, Ordering::SeqCst);
        assert!(
            drivers.until() <= at(2),
            "a clock that was set back puts nothing into the future"
        );
    }
}
