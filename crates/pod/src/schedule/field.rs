//! One field of a cron expression, as a set of numbers. Does not depend on dates.

/// Which field it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
}

const MONTHS: &[&str] = &[
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day of the month",
            Self::Month => "month",
            Self::Weekday => "day of the week",
        }
    }

    /// The lowest and the highest value that people may write.
    fn bounds(self) -> (u8, u8) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
        }
    }

    /// Names of the values, from the lowest on.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => MONTHS,
            Self::Weekday => WEEKDAYS,
            Self::Minute | Self::Hour | Self::Day => &[],
        }
    }
}

/// The values of a field, one bit each; never empty. Sunday is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    bits: u64,
    is_full: bool,
    is_restricted: bool,
}

impl Field {
    pub(super) fn parse(text: &str, kind: Kind) -> Result<Self, String> {
        let mut bits = 0;
        for part in text.split(',') {
            bits |= part_bits(part, kind)?;
        }
        let (low, high) = kind.bounds();
        if kind == Kind::Weekday {
            bits = (bits | bits >> 7) & 0x7f;
        }
        let all = if kind == Kind::Weekday {
            0x7f
        } else {
            range_bits(low, high, 1)
        };
        Ok(Self {
            bits,
            is_full: bits == all,
            is_restricted: !text.starts_with('*'),
        })
    }

    pub(super) fn has(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| self.bits.checked_shr(value).unwrap_or(0) & 1 == 1)
    }

    /// The lowest value that is not lower than this one.
    pub(super) fn first_from(self, value: i8) -> Option<i8> {
        let from = u32::try_from(value).ok()?;
        let rest = self.bits.checked_shr(from).unwrap_or(0);
        if rest == 0 {
            None
        } else {
            i8::try_from(from + rest.trailing_zeros()).ok()
        }
    }

    /// Whether every value is in it.
    pub(super) fn is_full(self) -> bool {
        self.is_full
    }

    /// Whether it does not begin with `*`.
    pub(super) fn is_restricted(self) -> bool {
        self.is_restricted
    }
}

/// A value, a range or `*`, with an optional step.
fn part_bits(part: &str, kind: Kind) -> Result<u64, String> {
    let (low, high) = kind.bounds();
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(step_of(step, part, kind)?)),
        None => (part, None),
    };
    let (from, upto) = match (range, range.split_once('-')) {
        ("*", _) => (low, high - u8::from(kind == Kind::Weekday)),
        (_, Some((from, upto))) => (value(from, kind)?, value(upto, kind)?),
        (_, None) if step.is_some() => {
            return Err(format!(
                "`{part}` in the {}: a step follows `*` or a range",
                kind.name()
            ));
        }
        (_, None) => value(range, kind).map(|value| (value, value))?,
    };
    // `FRI-SUN`: the week ends with Sunday as well as it begins with it.
    let upto = if kind == Kind::Weekday && upto == 0 && from > 0 {
        7
    } else {
        upto
    };
    if from > upto {
        return Err(format!(
            "`{part}` in the {}: the range goes backwards",
            kind.name()
        ));
    }
    Ok(range_bits(from, upto, step.unwrap_or(1)))
}

fn step_of(text: &str, part: &str, kind: Kind) -> Result<u8, String> {
    let (_, high) = kind.bounds();
    let step = number(text).filter(|step| (1..=high).contains(step));
    step.ok_or_else(|| {
        format!(
            "`{}` in the {}: a step is 1 to {high}",
            part.escape_debug(),
            kind.name()
        )
    })
}

fn value(text: &str, kind: Kind) -> Result<u8, String> {
    let (low, high) = kind.bounds();
    let named = || {
        kind.names()
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text))
    };
    let named = || named().and_then(|at| Some(u8::try_from(at).ok()? + low));
    let value = number(text)
        .filter(|value| (low..=high).contains(value))
        .or_else(named);
    value.ok_or_else(|| {
        let names = match kind.names() {
            [first, .., last] => format!(" or {first} to {last}"),
            _ => String::new(),
        };
        format!(
            "`{}` in the {}: expected {low} to {high}{names}",
            text.escape_debug(),
            kind.name()
        )
    })
}

/// Digits alone: no sign, no spaces.
fn number(text: &str) -> Option<u8> {
    text.parse()
        .ok()
        .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn range_bits(from: u8, upto: u8, step: u8) -> u64 {
    (from..=upto)
        .step_by(usize::from(step))
        .fold(0, |bits, value| bits | 1 << value)
}
