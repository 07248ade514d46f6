//! The wall clock that uses are dated by. Reading the real one costs several times what all the rest of a use does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The end of the year 9999.
const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

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

/// The nearest time that has a date of four digits since 1970: clocks that are off show others.
#[must_use]
pub fn dated(at: SystemTime) -> SystemTime {
    at.clamp(UNIX_EPOCH, UNIX_EPOCH + LAST_SECOND)
}

/// Milliseconds since 1970 at the last reading.
pub(super) fn shown() -> u64 {
    SHOWN.load(Ordering::Relaxed)
}

/// Milliseconds since 1970 as a time; 0 is none.
pub(super) fn date(millis: u64) -> Option<SystemTime> {
    (millis != 0).then(|| UNIX_EPOCH + Duration::from_millis(millis))
}
