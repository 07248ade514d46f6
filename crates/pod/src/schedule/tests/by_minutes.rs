//! Random expressions against a clock on the wall that is read once a minute, as a cron daemon would. A failing seed is
//! printed.

use super::dice::{Dice, are_many, seeds};
use super::{Cron, ms, shown};
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

const MINUTE: u64 = 60_000;

/// Places and times around which clocks change; the last is an ordinary day.
const CHANGES: &[(&str, &str)] = &[
    ("Europe/Berlin", "2027-03-28T01:00:00Z"),
    ("Europe/Berlin", "2027-10-31T01:00:00Z"),
    ("America/New_York", "2027-03-14T07:00:00Z"),
    ("America/New_York", "2027-11-07T06:00:00Z"),
    ("Australia/Lord_Howe", "2027-04-03T15:00:00Z"),
    ("Australia/Lord_Howe", "2027-10-02T15:30:00Z"),
    ("Asia/Kolkata", "2027-01-31T18:30:00Z"),
];

/// A field as text, and the values that it means.
fn field(dice: &mut Dice, low: i8, high: i8, stars: usize) -> (String, Vec<i8>) {
    let mut any =
        || low + i8::try_from(dice.below(usize::try_from(high - low + 1).unwrap())).unwrap();
    let one = any();
    let two = any();
    let from = one.min(two);
    let upto = one.max(two);
    match dice.below(3 + stars) {
        0 => (format!("{one},{two}"), vec![one, two]),
        1 => (format!("{from}-{upto}"), (from..=upto).collect()),
        2 => (
            format!("{from}-{upto}/2,{low}"),
            (from..=upto).step_by(2).chain([low]).collect(),
        ),
        3 => ("*/7".to_owned(), (low..=high).step_by(7).collect()),
        _ => ("*".to_owned(), (low..=high).collect()),
    }
}

struct Written {
    text: String,
    fields: [Vec<i8>; 5],
    /// Whether both day fields are restricted.
    either_day: bool,
}

fn written(dice: &mut Dice) -> Written {
    let minutes = field(dice, 0, 59, 1);
    let hours = field(dice, 0, 23, 4);
    let days = field(dice, 1, 31, 6);
    let months = field(dice, 1, 12, 40);
    let weekdays = field(dice, 0, 6, 6);
    let either_day = !days.0.starts_with('*') && !weekdays.0.starts_with('*');
    let text = [&minutes.0, &hours.0, &days.0, &months.0, &weekdays.0]
        .map(String::as_str)
        .join(" ");
    Written {
        text,
        fields: [minutes.1, hours.1, days.1, months.1, weekdays.1],
        either_day,
    }
}

impl Written {
    fn matches(&self, local: DateTime) -> bool {
        let [minutes, hours, days, months, weekdays] = &self.fields;
        let day = days.contains(&local.day());
        let weekday = weekdays.contains(&local.weekday().to_sunday_zero_offset());
        let date = if self.either_day {
            day || weekday
        } else {
            day && weekday
        };
        date && minutes.contains(&local.minute())
            && hours.contains(&local.hour())
            && months.contains(&local.month())
    }

    /// Every due minute of some days.
    fn due(&self, zone: &TimeZone, from: u64, upto: u64) -> Vec<u64> {
        let every_hour = self.fields[1]
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len()
            == 24;
        let local = |wall: u64| {
            zone.to_datetime(Timestamp::from_millisecond(wall.try_into().unwrap()).unwrap())
        };
        let mut newest = local(from);
        let mut due = Vec::new();
        let mut wall = from;
        while wall < upto {
            wall += MINUTE;
            let now = local(wall);
            let mut is_due = every_hour && self.matches(now);
            while newest < now {
                newest = newest.checked_add(1.minute()).unwrap();
                is_due |= !every_hour && self.matches(newest);
            }
            due.extend(is_due.then_some(wall));
        }
        due
    }
}

fn play(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let (name, change) = CHANGES[dice.below(CHANGES.len())];
    let zone = TimeZoneDatabase::bundled().get(name).unwrap();
    let written = written(&mut dice);
    let Ok(cron) = Cron::parse(&written.text, name) else {
        return 0;
    };
    let from = ms(change) - 12 * 60 * MINUTE;
    let upto = ms(change) + 12 * 60 * MINUTE;
    let due = written.due(&zone, from, upto);
    // The clock has shown nothing before `from`, so the first hours may lack what it repeats.
    for _ in 0..20 {
        let wall = from + 3 * 60 * MINUTE + dice.below(20 * 60 * 60_000) as u64;
        let wanted = due.iter().copied().find(|due| *due > wall);
        let found = cron.next_after(wall).filter(|found| *found <= upto);
        let told = || {
            format!(
                "seed {seed}: {} in {name} after {}",
                written.text,
                shown(wall)
            )
        };
        assert_eq!(found.map(shown), wanted.map(shown), "{}", told());
        let newest = due.iter().copied().rfind(|due| *due <= wall && *due > from);
        assert_eq!(
            cron.newest(from, wall).map(shown),
            newest.map(shown),
            "the newest, {}",
            told()
        );
    }
    due.len()
}

#[test]
fn random_expressions_agree() {
    let due: usize = seeds().map(play).sum();
    assert!(
        due > 5_000 || !are_many(&seeds()),
        "{due} times were due: hardly anything was compared"
    );
}
