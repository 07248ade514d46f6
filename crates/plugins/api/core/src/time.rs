//! Times of vendors, and times as all providers show and take them: RFC 3339 in UTC.

use crate::{ServiceFault, unfit};
use authority::text::{Lines, escape_within};
use std::time::{Duration, UNIX_EPOCH};

/// The time of so many milliseconds since 1970, to the second. The last one is in the year 9999.
#[must_use]
pub fn shown(millis: u64) -> String {
    let at = UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    humantime::format_rfc3339_seconds(authority::dated(at.unwrap_or(UNIX_EPOCH))).to_string()
}

/// The milliseconds since 1970 of an argument: a time in UTC, or the beginning of a date.
///
/// # Errors
/// The text is neither; the error names the argument.
pub fn millis(argument: &str, text: &str) -> Result<u64, ServiceFault> {
    let time = text.trim();
    let time = match time.len() {
        10 => format!("{time}T00:00:00Z"),
        _ => time.to_owned(),
    };
    let read = humantime::parse_rfc3339(&time).ok();
    let since = read.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let millis = since.and_then(|since| u64::try_from(since.as_millis()).ok());
    millis.ok_or_else(|| {
        let shown = escape_within(text, Lines::One, 64);
        unfit(format!(
            "`{argument}`: `{shown}` is neither a date nor a time in UTC, such as 2026-01-31 or 2026-01-31T12:00:00Z"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        assert_eq!(shown(1_768_392_000_500), "2026-01-14T12:00:00Z");
        assert_eq!(shown(u64::MAX), "9999-12-31T23:59:59Z");
        for (text, wanted) in [
            ("2026-01-14", 1_768_348_800_000),
            (" 2026-01-14T12:00:00Z", 1_768_392_000_000),
            ("2026-01-14T12:00:00.5Z", 1_768_392_000_500),
        ] {
            assert_eq!(millis("since", text).unwrap(), wanted, "{text}");
        }
        for bad in [
            "",
            "yesterday",
            "2026-13-40",
            "1969-12-31",
            "2026-01-14T12:00:00+02:00",
            "\u{202e}",
        ] {
            assert!(millis("since", bad).is_err(), "{bad}");
        }
        let error = millis("since", "soon").unwrap_err().message;
        assert!(error.starts_with("`since`: `soon` is neither"), "{error}");
    }
}
