//! Times that can be written as a date. Does not depend on the events at those times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The end of the year 9999.
const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

/// Clamps a time to the years 1970 to 9999, the range that dates are written for; wrong clocks give others.
#[must_use]
pub fn dated(at: SystemTime) -> SystemTime {
    at.clamp(UNIX_EPOCH, UNIX_EPOCH + LAST_SECOND)
}
