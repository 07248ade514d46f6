//! The wall clock that uses are dated by. Reading the real one costs several times what all the rest of a use does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the clock showed when it was last read, in milliseconds since 1970; 0 before the first reading.
static SHOWN: AtomicU64 = AtomicU64::new(0);

/// The system's wall clock. Uses of a [`super::Door`] are dated by what was read here last, so a host that reads its
/// time here, as for each record, dates them with the record before.
pub fn wall_clock() -> SystemTime {
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    SHOWN.store(u64::try_from(since.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    now
}

/// Milliseconds since 1970 at the last reading.
pub(super) fn shown() -> u64 {
    SHOWN.load(Ordering::Relaxed)
}

/// Milliseconds since 1970 as a time; 0 is none.
pub(super) fn date(millis: u64) -> Option<SystemTime> {
    (millis != 0).then(|| UNIX_EPOCH + Duration::from_millis(millis))
}
