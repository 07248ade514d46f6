//! Schedules against known clock changes, and against a clock that is walked minute by minute.

use super::{Cron, Interval};
use jiff::Timestamp;

mod by_minutes;
pub(crate) mod dice;

fn ms(time: &str) -> u64 {
    let time: Timestamp = time.parse().unwrap();
    time.as_millisecond().try_into().unwrap()
}

fn shown(wall_ms: u64) -> String {
    Timestamp::from_millisecond(wall_ms.try_into().unwrap())
        .unwrap()
        .to_string()
}

#[track_caller]
fn cron(expression: &str, zone: &str) -> Cron {
    Cron::parse(expression, zone).unwrap_or_else(|why| panic!("{expression} in {zone}: {why}"))
}

/// The times after `from`, as UTC.
#[track_caller]
fn times(expression: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let cron = cron(expression, zone);
    let next = |after: &u64| cron.next_after(*after);
    std::iter::successors(Some(ms(from)), next)
        .skip(1)
        .take(count)
        .map(shown)
        .collect()
}

#[test]
fn fields_lists_ranges_steps_and_names() {
    for (expression, wanted) in [
        (
            "0 9 * * *",
            ["2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z"],
        ),
        (
            "59 23 31 12 *",
            ["2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"],
        ),
        (
            "*/15 * * * *",
            ["2026-11-23T00:15:00Z", "2026-11-23T00:30:00Z"],
        ),
        (
            "10-30/20,7 4 * * *",
            ["2026-11-23T04:07:00Z", "2026-11-23T04:10:00Z"],
        ),
        (
            "0 0 * feb-MAR *",
            ["2027-02-01T00:00:00Z", "2027-02-02T00:00:00Z"],
        ),
        (
            "0 0 * * fri-sun",
            ["2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z"],
        ),
        (
            "0 0 * * 7",
            ["2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"],
        ),
        (
            "0 0 * * Sun",
            ["2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"],
        ),
        // Both day fields are restricted: one of them is enough.
        (
            "0 0 25 * SAT",
            ["2026-11-25T00:00:00Z", "2026-11-28T00:00:00Z"],
        ),
        // One that begins with `*` does not restrict, so both must match: a Saturday that is a 1st, 11th, 21st or 31st.
        (
            "0 0 */10 * SAT",
            ["2027-05-01T00:00:00Z", "2027-07-31T00:00:00Z"],
        ),
        (
            "0 0 29 2 *",
            ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
        ),
    ] {
        assert_eq!(
            times(expression, "UTC", "2026-11-23T00:00:00Z", 2),
            wanted,
            "{expression}"
        );
    }
}

/// 2100 has no 29 February, and one on a Sunday or a Friday is rare.
#[test]
fn the_rarest_date_is_found() {
    let found = times("0 0 29 2 */5", "UTC", "2072-03-01T00:00:00Z", 3);
    assert_eq!(
        found,
        [
            "2088-02-29T00:00:00Z",
            "2092-02-29T00:00:00Z",
            "2104-02-29T00:00:00Z"
        ]
    );
}

#[test]
fn wrong_expressions_are_named() {
    let late = format!("0 0 1 1 {}", "1,".repeat(200));
    for (expression, zone, wanted) in [
        ("", "UTC", "the expression has 0 fields; expected 5"),
        (
            "*",
            "UTC",
            "has 1 field; expected 5: minute, hour, day of the month, month, day of the week",
        ),
        ("0 0 * * * *", "UTC", "has 6 fields"),
        ("@daily", "UTC", "has 1 field;"),
        ("60 * * * *", "UTC", "`60` in the minute: expected 0 to 59"),
        ("0 24 * * *", "UTC", "`24` in the hour: expected 0 to 23"),
        (
            "0 0 0 * *",
            "UTC",
            "`0` in the day of the month: expected 1 to 31",
        ),
        (
            "0 0 1 13 *",
            "UTC",
            "`13` in the month: expected 1 to 12 or JAN to DEC",
        ),
        (
            "0 0 1 * FEB",
            "UTC",
            "`FEB` in the day of the week: expected 0 to 7 or SUN to SAT",
        ),
        ("+5 * * * *", "UTC", "`+5` in the minute"),
        ("5- * * * *", "UTC", "`` in the minute"),
        ("5,, * * * *", "UTC", "`` in the minute"),
        (
            "30-10 * * * *",
            "UTC",
            "`30-10` in the minute: the range goes backwards",
        ),
        (
            "0 0 * * sat-mon",
            "UTC",
            "`sat-mon` in the day of the week: the range goes backwards",
        ),
        (
            "*/0 * * * *",
            "UTC",
            "`*/0` in the minute: a step is 1 to 59",
        ),
        (
            "*/61 * * * *",
            "UTC",
            "`*/61` in the minute: a step is 1 to 59",
        ),
        (
            "5/15 * * * *",
            "UTC",
            "`5/15` in the minute: a step follows `*` or a range",
        ),
        ("0 0 30 2 *", "UTC", "no month in `2` has a day in `30`"),
        (
            "0 0 31 4,6,9,11 *",
            "UTC",
            "no month in `4,6,9,11` has a day in `31`",
        ),
        (
            "* * * * *",
            "Europe/Berln",
            "`Europe/Berln` is not a time zone; expected a name such as Europe/Berlin",
        ),
        ("* * * * *", "", "`` is not a time zone"),
        ("* * * * *", "a\nb", "`a\\nb` is not a time zone"),
        (late.as_str(), "UTC", "at most 256 are allowed"),
    ] {
        let why = Cron::parse(expression, zone).unwrap_err();
        assert!(why.contains(wanted), "{expression:?}: {why}");
    }
}

/// Clocks go from 02:00 to 03:00 on 28 March 2027 in Berlin, from 02:00 to 03:00 on 14 March 2027 in New York, and from
/// 02:00 to 02:30 on 3 October 2027 on Lord Howe Island.
#[test]
fn a_skipped_time_is_due_when_the_gap_ends() {
    for (expression, zone, from, wanted) in [
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2027-03-27T02:00:00Z",
            ["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"],
        ),
        (
            "30 2 * * *",
            "America/New_York",
            "2027-03-13T08:00:00Z",
            ["2027-03-14T07:00:00Z", "2027-03-15T06:30:00Z"],
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2027-10-02T00:00:00Z",
            ["2027-10-02T15:30:00Z", "2027-10-03T15:15:00Z"],
        ),
        // Several skipped times, and the one at the end of the gap, are due once.
        (
            "0,20,40 2,3 * * *",
            "Europe/Berlin",
            "2027-03-28T00:00:00Z",
            ["2027-03-28T01:00:00Z", "2027-03-28T01:20:00Z"],
        ),
        // A whole day that Samoa skipped.
        (
            "0 9 30 12 *",
            "Pacific/Apia",
            "2011-12-01T00:00:00Z",
            ["2011-12-30T10:00:00Z", "2012-12-29T19:00:00Z"],
        ),
    ] {
        assert_eq!(
            times(expression, zone, from, 2),
            wanted,
            "{expression} in {zone}"
        );
    }
}

/// Clocks go back from 03:00 to 02:00 on 31 October 2027 in Berlin, from 02:00 to 01:00 on 7 November 2027 in New York,
/// and from 02:00 to 01:30 on 4 April 2027 on Lord Howe Island.
#[test]
fn a_repeated_time_is_due_once() {
    for (expression, zone, from, wanted) in [
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2027-10-30T02:00:00Z",
            ["2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2027-11-06T08:00:00Z",
            ["2027-11-07T05:30:00Z", "2027-11-08T06:30:00Z"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2027-04-03T00:00:00Z",
            ["2027-04-03T14:45:00Z", "2027-04-04T15:15:00Z"],
        ),
        // From within the second pass.
        (
            "*/30 2,3 * * *",
            "Europe/Berlin",
            "2027-10-31T01:10:00Z",
            ["2027-10-31T02:00:00Z", "2027-10-31T02:30:00Z"],
        ),
    ] {
        assert_eq!(
            times(expression, zone, from, 2),
            wanted,
            "{expression} in {zone}"
        );
    }
}

/// By the rule for times of day, these would pause for an hour each autumn.
#[test]
fn an_expression_of_every_hour_never_pauses() {
    for (expression, zone, from) in [
        ("*/15 * * * *", "Europe/Berlin", "2027-10-31T00:30:00Z"),
        ("*/15 * * * *", "Europe/Berlin", "2027-03-28T00:30:00Z"),
        (
            "*/15 0-23 * * *",
            "America/New_York",
            "2027-11-07T05:00:00Z",
        ),
        (
            "*/15 * * * *",
            "Australia/Lord_Howe",
            "2027-04-03T14:00:00Z",
        ),
        ("*/15 * * * *", "Asia/Kolkata", "2027-04-03T14:00:00Z"),
    ] {
        let cron = cron(expression, zone);
        let mut due = ms(from);
        for _ in 0..12 {
            let next = cron.next_after(due).unwrap();
            assert_eq!(
                next,
                due + 15 * 60_000,
                "{expression} in {zone} after {}",
                shown(due)
            );
            due = next;
        }
    }
}

#[test]
fn zones_of_half_hours_and_any_case() {
    assert_eq!(
        times("0 9 * * *", "asia/kolkata", "2026-11-23T00:00:00Z", 1),
        ["2026-11-23T03:30:00Z"]
    );
    assert_eq!(
        times("0 9 * * *", "Asia/Kathmandu", "2026-11-23T00:00:00Z", 1),
        ["2026-11-23T03:15:00Z"]
    );
}

/// Between two milliseconds, at the ends of time, and long before the first rule of a zone.
#[test]
fn next_after_is_later_and_total() {
    let minutely = cron("* * * * *", "Europe/Berlin");
    let noon = ms("2026-11-23T12:00:00Z");
    assert_eq!(minutely.next_after(noon - 1), Some(noon));
    assert_eq!(minutely.next_after(noon), Some(noon + 60_000));
    assert_eq!(minutely.next_after(noon + 59_999), Some(noon + 60_000));
    assert_eq!(minutely.next_after(0), Some(60_000));
    let yearly = cron("0 0 1 1 *", "America/New_York");
    assert_eq!(yearly.next_after(0), Some(ms("1970-01-01T05:00:00Z")));
    for wall in [u64::MAX, i64::MAX as u64, ms("9999-12-30T21:59:00Z")] {
        assert_eq!(yearly.next_after(wall), None, "{wall}");
    }
}

#[test]
fn the_newest_missed_time_counts() {
    let nine = cron("0 9 * * MON-FRI", "Europe/Berlin");
    let friday = ms("2026-11-20T08:00:00Z");
    for (upto, wanted) in [
        ("2026-11-20T08:00:00Z", None),
        ("2026-11-23T07:59:59.999Z", None),
        ("2026-11-23T08:00:00Z", Some("2026-11-23T08:00:00Z")),
        ("2026-12-24T20:00:00Z", Some("2026-12-24T08:00:00Z")),
        ("2036-12-25T08:30:00Z", Some("2036-12-25T08:00:00Z")),
    ] {
        assert_eq!(
            nine.newest(friday, ms(upto)).map(shown).as_deref(),
            wanted,
            "{upto}"
        );
    }
    assert_eq!(nine.newest(friday, friday - 1), None);
}

#[test]
fn intervals_catch_up_once_and_heal() {
    let ten = Interval::new(10);
    assert_eq!(ten.next_after(None, 100), 110);
    assert_eq!(ten.next_after(Some(100), 104), 110);
    // Missed: the time that passed, of which the newest counts; the next one keeps the rhythm.
    assert_eq!(ten.next_after(Some(100), 157), 110);
    assert_eq!(ten.newest(110, 157), 150);
    assert_eq!(ten.next_after(Some(150), 157), 160);
    assert_eq!(ten.newest(110, 109), 110);
    assert_eq!(ten.newest(110, 119), 110);
    assert_eq!(ten.newest(110, 120), 120);
    // The clock was set back.
    assert_eq!(ten.next_after(Some(1_000), 100), 110);
    assert_eq!(ten.bounded(1_010, 100), 110);
    assert_eq!(ten.bounded(107, 100), 107);
    // Set to the end of time.
    assert_eq!(ten.next_after(Some(u64::MAX), u64::MAX), u64::MAX);
    assert_eq!(Interval::new(0).next_after(Some(5), 5), 6);
}
