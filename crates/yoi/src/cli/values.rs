//! Values of flags, read from their words.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use host::bad_value::BadValue;
use host::config::file::Mode;
use protocol::MAX_CMD_ID;
use std::str::FromStr;
use std::time::Duration;
use tui::ScreenSize;

/// A start of a pod, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u64,
    /// To this one; else to the newest.
    pub(crate) to: Option<u64>,
}

impl FromStr for Span {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let number = |text: &str| match text.parse() {
            Ok(number @ 1..) => Ok(number),
            Ok(0) | Err(_) => Err(BadValue::new(
                "the value must be the number of a start (1 or more), or a range of two such numbers",
                "use a value such as 1 or 1..3",
            )),
        };
        match text.split_once("..") {
            Some((from, to)) => Ok(Self {
                from: number(from)?,
                to: Some(number(to)?),
            }),
            None => Ok(Self {
                from: number(text)?,
                to: None,
            }),
        }
    }
}

/// The modes of the sandbox, with what each of them lets commands do.
pub(super) fn modes() -> impl TypedValueParser<Value = Mode> {
    let shown = Mode::ALL.map(|mode| PossibleValue::new(mode.text()).help(meaning(mode)));
    PossibleValuesParser::new(shown)
        .try_map(|text| Mode::named(&text).ok_or("not a mode of the sandbox"))
}

const fn meaning(mode: Mode) -> &'static str {
    match mode {
        Mode::ReadOnly => {
            "Tools cannot write files; commands can write only in temporary and cache directories of their own, and have no network access"
        }
        Mode::WorkspaceWrite => {
            "Tools and commands can write in the project and in directories added with --add-write-dir; commands have temporary and cache directories of their own, and no network access"
        }
        Mode::Off => {
            "Tools can write as with workspace-write; commands run without a sandbox, with network access, and each command needs your approval or an allow rule (--allow)"
        }
    }
}

/// The number of a record.
pub(super) fn seq(text: &str) -> Result<u64, BadValue> {
    let number = text.parse();
    number.map_err(|_| {
        BadValue::new(
            "the value must be the number of a record",
            "`yoi log NAME` shows the numbers",
        )
    })
}

/// `80x24`.
pub(super) fn size(text: &str) -> Result<ScreenSize, BadValue> {
    let number = |text: &str| {
        text.parse()
            .ok()
            .filter(|number| (1..=1000).contains(number))
    };
    let size = text.split_once('x').and_then(|(columns, rows)| {
        Some(ScreenSize {
            columns: number(columns)?,
            rows: number(rows)?,
        })
    });
    size.ok_or_else(|| {
        BadValue::new(
            "the value must be columns and rows, each from 1 to 1000",
            "use a value such as 80x24",
        )
    })
}

/// `NAME=VALUE`.
pub(super) fn argument(text: &str) -> Result<(String, String), BadValue> {
    let pair = text
        .split_once('=')
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| {
        BadValue::new(
            "the value must be a name, = and a value",
            "use a value such as path=src",
        )
    })
}

/// The name that a client gives an input.
pub(super) fn key(text: &str) -> Result<String, BadValue> {
    let fits = (1..=MAX_CMD_ID).contains(&text.len());
    fits.then(|| text.to_owned()).ok_or_else(|| {
        BadValue::new(
            format!("the value must have 1 to {MAX_CMD_ID} bytes"),
            "use a short value such as build-42",
        )
    })
}

/// `90s`, `10m`, `2h`, `30d`; a plain number is seconds.
pub(super) fn time(text: &str) -> Result<Duration, BadValue> {
    let plain = text.parse().map(Duration::from_secs);
    let time = plain.ok().or_else(|| humantime::parse_duration(text).ok());
    time.filter(|time| *time >= Duration::from_secs(1))
        .ok_or_else(|| {
            BadValue::new(
                "the value must be a time of at least 1 second",
                "use a time such as 90s, 10m, 2h or 30d",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_or_is_seconds() {
        let seconds = |text| time(text).ok().map(|time| time.as_secs());
        let times = ["90", "90s", "10m", "1h 30m", "30d", "1week"].map(seconds);
        assert_eq!(
            times,
            [
                Some(90),
                Some(90),
                Some(600),
                Some(5_400),
                Some(2_592_000),
                Some(604_800)
            ]
        );
        for wrong in [
            "",
            "0",
            "0s",
            "-5",
            "soon",
            "999ms",
            "10x",
            "99999999999999999999",
        ] {
            assert_eq!(
                time(wrong).unwrap_err().to_string(),
                "the value must be a time of at least 1 second",
                "{wrong}"
            );
        }
    }
}
