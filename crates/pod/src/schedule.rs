//! When something is due by the wall clock: cron expressions in a time zone, and intervals. Pure: the time is handed in,
//! and the time zones are those of this program, so the machine's files and settings change nothing. Does not depend on
//! what runs.
//!
//! Times are milliseconds since 1970 by the wall clock.

mod field;
mod zone;

pub use zone::Zone;

use field::{Field, Kind};
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

/// Longest cron expression, in bytes.
const MAX_EXPRESSION: usize = 256;

/// How far ahead a time is searched for: every date and day of the week meet within 40 years, also around 2100, which
/// has no 29 February.
const MAX_YEARS: i16 = 48;

/// Most of a step back of the clock for which cron times are not repeated: what time synchronisation corrects.
pub const MAX_STEP_BACK_MS: u64 = 5 * 60 * 1000;

/// A cron expression in a time zone.
///
/// Five fields, parted by spaces: minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or `JAN`-`DEC`), day of
/// the week (0-7 or `SUN`-`SAT`; 0 and 7 are Sunday). A field is a list of values, ranges (`9-17`) and `*`, each with an
/// optional step (`*/15`, `9-17/2`). If both day fields are restricted, a day that matches one of them is enough; a field
/// that begins with `*` does not restrict. Names are read in any case.
///
/// When clocks change, an expression that names hours is about times of day, and runs once for each: a time that is
/// skipped is due at the first moment after the gap, together with others that are skipped; a time that comes twice is due
/// the first time. An expression of every hour (`*`) is about a distance: nothing is made up for a gap, and both passes of
/// a repeated hour count, so that `*/15 * * * *` never pauses for an hour.
#[derive(Clone, Debug)]
pub struct Cron {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
    zone: TimeZone,
}

impl Cron {
    /// Reads an expression of five fields and a name of the IANA time zone database, such as `Europe/Berlin` or `UTC`.
    ///
    /// # Errors
    /// For people: which field or name is wrong, and what is expected. Also for a date that does not exist, such as
    /// 30 February.
    pub fn parse(expression: &str, time_zone: &str) -> Result<Self, String> {
        if expression.len() > MAX_EXPRESSION {
            return Err(format!(
                "the expression has {} bytes; at most {MAX_EXPRESSION} are allowed",
                expression.len()
            ));
        }
        let fields: Vec<&str> = expression.split_ascii_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            let count = fields.len();
            let wanted = "expected 5: minute, hour, day of the month, month, day of the week";
            return Err(format!(
                "the expression has {count} field{}; {wanted}",
                if count == 1 { "" } else { "s" }
            ));
        };
        let Zone(zone) = Zone::parse(time_zone)?;
        let cron = Self {
            minutes: Field::parse(minutes, Kind::Minute)?,
            hours: Field::parse(hours, Kind::Hour)?,
            days: Field::parse(days, Kind::Day)?,
            months: Field::parse(months, Kind::Month)?,
            weekdays: Field::parse(weekdays, Kind::Weekday)?,
            zone,
        };
        if !cron.has_a_date() {
            return Err(format!("no month in `{months}` has a day in `{days}`"));
        }
        Ok(cron)
    }

    /// The first time after this one. `None` only at the end of the calendar, in the year 9999.
    #[must_use]
    pub fn next_after(&self, wall_ms: u64) -> Option<u64> {
        let after = timestamp(wall_ms)?;
        let next = if self.hours.is_full() {
            self.next_passing(after)
        } else {
            self.next_of_day(after)
        };
        u64::try_from(next?.as_millisecond()).ok()
    }

    /// The first time after the last one that was served, or after now if there was none. May have passed. A last time in
    /// the future is from before the clock was set back: if by at most [`MAX_STEP_BACK_MS`], the times up to it are not
    /// repeated.
    #[must_use]
    pub fn next_due(&self, last_due: Option<u64>, now: u64) -> Option<u64> {
        self.next_after(
            last_due
                .filter(|due| *due <= now.saturating_add(MAX_STEP_BACK_MS))
                .unwrap_or(now),
        )
    }

    /// The newest time that is later than `from` and not later than `upto`: of several missed ones the one that counts.
    #[must_use]
    pub fn newest(&self, from: u64, upto: u64) -> Option<u64> {
        let within = |start: u64| self.next_after(start).filter(|due| *due <= upto);
        let mut back = 60_000u64;
        let mut newest = loop {
            let start = upto.saturating_sub(back).max(from);
            match within(start) {
                Some(due) => break due,
                None if start <= from => return None,
                None => back = back.saturating_mul(2),
            }
        };
        while let Some(due) = within(newest) {
            newest = due;
        }
        Some(newest)
    }

    /// The next time of an expression that names hours. The moment of a local time never moves back as local times go on,
    /// so the first local time whose moment is later is the one.
    fn next_of_day(&self, after: Timestamp) -> Option<Timestamp> {
        let mut local = self.zone.to_datetime(after);
        loop {
            local = self.first_from(next_minute(local)?)?;
            let moment = self.moment(local)?;
            if moment > after {
                return Some(moment);
            }
        }
    }

    /// When a local time is due: at its first moment, or, if it is skipped, when the gap ends.
    fn moment(&self, local: DateTime) -> Option<Timestamp> {
        let moment = self.zone.to_ambiguous_timestamp(local);
        match moment.offset() {
            AmbiguousOffset::Unambiguous { offset }
            | AmbiguousOffset::Fold { before: offset, .. } => offset.to_timestamp(local).ok(),
            AmbiguousOffset::Gap { after, .. } => {
                let before_the_gap = after.to_timestamp(local).ok()?;
                self.zone
                    .following(before_the_gap)
                    .next()
                    .map(|change| change.timestamp())
            }
        }
    }

    /// The next time of an expression of every hour: each moment whose local time matches.
    fn next_passing(&self, after: Timestamp) -> Option<Timestamp> {
        let mut from = after.checked_add(1.millisecond()).ok()?;
        loop {
            let offset = self.zone.to_offset(from);
            let change = self
                .zone
                .following(from)
                .next()
                .map(|change| change.timestamp());
            let local = self.first_from(this_or_next_minute(offset.to_datetime(from))?)?;
            let moment = offset.to_timestamp(local).ok()?;
            match change {
                Some(change) if change <= moment => from = change,
                _ => return Some(moment),
            }
        }
    }

    /// The first local time that matches, from this minute on, whether or not the clock shows it.
    fn first_from(&self, from: DateTime) -> Option<DateTime> {
        let last_year = from.year().saturating_add(MAX_YEARS);
        let mut date = from.date();
        let mut hour = from.hour();
        let mut minute = from.minute();
        while date.year() <= last_year {
            if !self.months.has(date.month()) {
                date = date.first_of_month().checked_add(1.month()).ok()?;
            } else if let Some((hour, minute)) = self.first_of_day(date, hour, minute) {
                return Some(date.at(hour, minute, 0, 0));
            } else {
                date = date.tomorrow().ok()?;
            }
            (hour, minute) = (0, 0);
        }
        None
    }

    fn first_of_day(&self, date: Date, hour: i8, minute: i8) -> Option<(i8, i8)> {
        if !self.is_a_day(date) {
            return None;
        }
        let in_this_hour = self
            .minutes
            .first_from(minute)
            .filter(|_| self.hours.has(hour));
        in_this_hour.map(|minute| (hour, minute)).or_else(|| {
            let hour = self.hours.first_from(hour + 1)?;
            Some((hour, self.minutes.first_from(0)?))
        })
    }

    fn is_a_day(&self, date: Date) -> bool {
        let day = self.days.has(date.day());
        let weekday = self.weekdays.has(date.weekday().to_sunday_zero_offset());
        if self.days.is_restricted() && self.weekdays.is_restricted() {
            day || weekday
        } else {
            day && weekday
        }
    }

    /// Whether some year has a date that matches.
    fn has_a_date(&self) -> bool {
        let either = self.days.is_restricted() && self.weekdays.is_restricted();
        let longest = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let fits = |(month, days): (i8, i8)| {
            self.months.has(month) && self.days.first_from(1).is_some_and(|d| d <= days)
        };
        either || (1..).zip(longest).any(fits)
    }
}

/// When an interval is due next.
///
/// A missed time is due once: [`Interval::newest`] names the newest one, from which the next one follows. The wall clock may
/// be set: [`Interval::bounded`] keeps a due time within one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    every_ms: u64,
}

impl Interval {
    /// An interval of at least one millisecond.
    #[must_use]
    pub fn new(every_ms: u64) -> Self {
        Self {
            every_ms: every_ms.max(1),
        }
    }

    /// The next time after one that was due, or after now if there was none: never later than one interval from now. May
    /// have passed.
    #[must_use]
    pub fn next_after(self, last_due: Option<u64>, now: u64) -> u64 {
        self.bounded(last_due.unwrap_or(now).saturating_add(self.every_ms), now)
    }

    /// The due time, or one interval from now if that is earlier: the clock was set back.
    #[must_use]
    pub fn bounded(self, due: u64, now: u64) -> u64 {
        due.min(now.saturating_add(self.every_ms))
    }

    /// The newest of the times `due`, `due + every`, … that have passed; `due` if none has.
    #[must_use]
    pub fn newest(self, due: u64, now: u64) -> u64 {
        due.saturating_add(now.saturating_sub(due) / self.every_ms * self.every_ms)
    }
}

fn timestamp(wall_ms: u64) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(wall_ms).ok()?).ok()
}

fn next_minute(local: DateTime) -> Option<DateTime> {
    local
        .date()
        .at(local.hour(), local.minute(), 0, 0)
        .checked_add(1.minute())
        .ok()
}

fn this_or_next_minute(local: DateTime) -> Option<DateTime> {
    if local.second() == 0 && local.subsec_nanosecond() == 0 {
        Some(local)
    } else {
        next_minute(local)
    }
}

#[cfg(test)]
pub(crate) mod tests;
