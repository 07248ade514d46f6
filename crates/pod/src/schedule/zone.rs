//! Times of day of a time zone, read and shown as text. Does not depend on cron expressions.

use super::timestamp;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Unit};

/// Longest text of a time that is read, in bytes.
const MAX_TEXT: usize = 64;

/// A time zone of the IANA database.
#[derive(Clone, Debug)]
pub struct Zone(pub(super) TimeZone);

impl Zone {
    /// The zone of this name, such as `Europe/Berlin` or `UTC`.
    ///
    /// # Errors
    /// For people: the name is unknown.
    pub fn parse(name: &str) -> Result<Self, String> {
        TimeZoneDatabase::bundled().get(name).map(Self).map_err(|_| {
            let name = name.escape_debug();
            format!("`{name}` is not a time zone; expected a name such as Europe/Berlin, America/New_York or UTC")
        })
    }

    /// Reads a time, in milliseconds since 1970: by the clock of this zone (`2026-11-24 09:00`), or with its distance from
    /// UTC (`2026-11-24T09:00:00+01:00`, `2026-11-24T08:00:00Z`). Of a time of day that comes twice the first counts; one
    /// that is skipped is read as if the clock had not been changed.
    ///
    /// # Errors
    /// For people: it is not such a time, or before 1970.
    pub fn read(&self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        let bounded = Some(text).filter(|text| text.len() <= MAX_TEXT);
        let exact = bounded.and_then(|text| text.parse::<Timestamp>().ok());
        let local = || self.0.to_timestamp(bounded?.parse::<DateTime>().ok()?).ok();
        let time = exact
            .or_else(local)
            .and_then(|time| u64::try_from(time.as_millisecond()).ok());
        time.ok_or_else(|| {
            let shown: String = text.chars().take(MAX_TEXT).collect();
            let shown = shown.escape_debug();
            format!(
                "`{shown}` is not a time; expected 2026-11-24 09:00 or 2026-11-24T09:00:00+01:00"
            )
        })
    }

    /// A time by the clock of this zone, such as `2026-11-24 09:00:00 +01:00`.
    #[must_use]
    pub fn show(&self, wall_ms: u64) -> String {
        let Some(time) = timestamp(wall_ms).and_then(|time| time.round(Unit::Second).ok()) else {
            return format!("{wall_ms} ms after 1970");
        };
        let offset = self.0.to_offset(time);
        let date = offset.to_datetime(time).date();
        let clock = offset.to_datetime(time).time();
        let minutes = offset.seconds() / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        let hours = minutes.abs() / 60;
        let rest = minutes.abs() % 60;
        format!("{date} {clock} {sign}{hours:02}:{rest:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-24T08:00:00Z.
    const NINE_IN_BERLIN: u64 = 1_795_507_200_000;

    #[test]
    fn times_are_read_by_the_zone_or_with_their_distance() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        for text in [
            "2026-11-24 09:00",
            " 2026-11-24T09:00:00 ",
            "2026-11-24T09:00:00+01:00",
            "2026-11-24T08:00:00Z",
        ] {
            assert_eq!(berlin.read(text), Ok(NINE_IN_BERLIN), "{text}");
        }
        assert_eq!(berlin.show(NINE_IN_BERLIN), "2026-11-24 09:00:00 +01:00");
        assert_eq!(
            Zone::parse("America/St_Johns")
                .unwrap()
                .show(NINE_IN_BERLIN),
            "2026-11-24 04:30:00 -03:30"
        );
        // Skipped and repeated by a change of the clocks.
        assert_eq!(
            berlin.read("2026-03-29 02:30"),
            berlin.read("2026-03-29T01:30:00Z")
        );
        assert_eq!(
            berlin.read("2026-10-25 02:30"),
            berlin.read("2026-10-25T00:30:00Z")
        );
        let long = format!("2026-11-24 09:00{}", " x".repeat(40));
        for bad in [
            "",
            "tomorrow",
            "09:00",
            "1969-12-31 23:00",
            "2026-02-30 09:00",
            long.as_str(),
        ] {
            let problem = berlin.read(bad).unwrap_err();
            assert!(
                problem.contains("is not a time; expected 2026-11-24 09:00"),
                "{bad}: {problem}"
            );
            assert!(problem.len() < 200, "{problem}");
        }
        assert_eq!(berlin.show(u64::MAX), format!("{} ms after 1970", u64::MAX));
    }
}
