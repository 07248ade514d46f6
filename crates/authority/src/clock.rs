//! Times that can be written down. Knows nothing that they are times of.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The end of the year 9999.
const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

/// The nearest time that has a date of four digits since 1970: clocks that are off show others.
#[must_use]
pub fn dated(at: SystemTime) -> SystemTime {
    at.clamp(UNIX_EPOCH, UNIX_EPOCH + LAST_SECOND)
}
