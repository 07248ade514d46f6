//! What a session has used, to tell what was used since some point of it; and the table of what can be limited.

use crate::record::BudgetKind;
use llm_worker::effect::Outcome;
use llm_worker::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Requests, tokens, cost and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    pub requests: u64,
    pub usage: Usage,
    /// As far as prices were known; none if none was.
    pub cost: Option<Cost>,
    /// Time in which a turn worked, microseconds.
    pub wall_us: u64,
}

impl Spent {
    /// What was used since `before`, an earlier point of the same session.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            usage: self.usage.since(before.usage),
            cost: self
                .cost
                .map(|cost| cost.since(before.cost.unwrap_or_default())),
            wall_us: self.wall_us.saturating_sub(before.wall_us),
        }
    }

    /// With this usage of attempts without an answer.
    #[must_use]
    pub fn plus(self, usage: Usage, cost: Option<Cost>) -> Self {
        let cost = cost.map_or(self.cost, |more| {
            Some(self.cost.unwrap_or_default().plus(more))
        });
        Self {
            usage: self.usage.plus(usage),
            cost,
            ..self
        }
    }

    /// Takes these kinds from a later point of the session.
    pub(super) fn renew(&mut self, later: Self, kinds: &[BudgetKind]) {
        for row in COUNTED.iter().filter(|row| kinds.contains(&row.kind)) {
            (row.renew)(self, later);
        }
    }

    /// The time in which a turn worked.
    #[must_use]
    pub fn wall(self) -> Duration {
        Duration::from_micros(self.wall_us)
    }
}

/// What can be limited: how it is counted, and how it is told.
pub(crate) struct Counted {
    pub(crate) kind: BudgetKind,
    /// The word for its limit, and the outcome of a turn that reaches it.
    pub(crate) limit: &'static str,
    pub(crate) outcome: Outcome,
    /// Requests, billionths of a dollar, tokens, microseconds.
    pub(crate) used: fn(Spent) -> u64,
    renew: fn(&mut Spent, Spent),
    pub(crate) words: fn(u64) -> String,
    /// In the report of a start: its name, its unit, and how many of what is counted are one.
    pub(crate) report: (&'static str, &'static str, u64),
}

/// Every kind, in the order of [`BudgetKind::ALL`].
pub(crate) static COUNTED: [Counted; BudgetKind::ALL.len()] = [
    Counted {
        kind: BudgetKind::Steps,
        limit: "step",
        outcome: Outcome::StepLimit,
        used: |spent| spent.requests,
        renew: |spent, later| spent.requests = later.requests,
        words: |count| counted(count, "step"),
        report: ("turn.steps", "requests", 1),
    },
    Counted {
        kind: BudgetKind::Cost,
        limit: "cost",
        outcome: Outcome::CostLimit,
        used: |spent| spent.cost.unwrap_or_default().count(),
        renew: |spent, later| spent.cost = later.cost,
        words: |count| Cost::billionths(count).to_string(),
        report: ("turn.cost", "billionths of a dollar", 1),
    },
    Counted {
        kind: BudgetKind::Tokens,
        limit: "token",
        outcome: Outcome::TokenLimit,
        used: |spent| spent.usage.tokens(),
        renew: |spent, later| spent.usage = later.usage,
        words: |count| counted(count, "token"),
        report: ("turn.tokens", "tokens", 1),
    },
    Counted {
        kind: BudgetKind::Time,
        limit: "time",
        outcome: Outcome::TimeLimit,
        used: |spent| spent.wall_us,
        renew: |spent, later| spent.wall_us = later.wall_us,
        // In whole seconds.
        words: |us| humantime::format_duration(Duration::from_secs(us / 1_000_000)).to_string(),
        report: ("turn.wall", "seconds", 1_000_000),
    },
];

/// The limit that ended a turn, if one of these did; what its next request would contain has no part in that.
pub(crate) fn limit_of(outcome: &Outcome) -> Option<&'static Counted> {
    COUNTED.iter().find(|row| row.outcome == *outcome)
}

/// The kind whose limit ended a turn, and the word for it.
#[must_use]
pub fn limit_reached(outcome: &Outcome) -> Option<(BudgetKind, &'static str)> {
    limit_of(outcome).map(|row| (row.kind, row.limit))
}

fn counted(count: u64, what: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {what}{end}")
}

/// The most time between two records that counts: a call has at most an hour, and a longer step is the clock's.
pub const MAX_STEP: Duration = Duration::from_secs(3600);

/// The time in which turns worked, counted from the clocks of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkTime {
    /// The clock of the newest record, microseconds.
    newest_us: u64,
    worked_us: u64,
}

impl WorkTime {
    /// A record with this clock follows; `works` says whether a turn worked until then. A clock that was set back adds
    /// nothing, one that was set forward at most [`MAX_STEP`].
    #[must_use]
    pub(super) fn at(self, time_us: u64, works: bool) -> Self {
        Self {
            newest_us: time_us,
            worked_us: self.until(time_us, works),
        }
    }

    /// The time in which turns have worked by now.
    pub(super) fn until(self, now_us: u64, works: bool) -> u64 {
        let most = u64::try_from(MAX_STEP.as_micros()).unwrap_or(u64::MAX);
        let step = now_us.saturating_sub(self.newest_us).min(most);
        self.worked_us.saturating_add(if works { step } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn only_the_time_in_which_a_turn_works_counts() {
        let begun = WorkTime::default().at(100 * SECOND, false);
        assert_eq!(begun.until(105 * SECOND, true), 5 * SECOND);
        assert_eq!(begun.until(105 * SECOND, false), 0);
        let worked = begun.at(105 * SECOND, true);
        let waited = 900 * SECOND;
        assert_eq!(
            worked.at(waited, false).until(waited + SECOND, true),
            6 * SECOND
        );
    }

    #[test]
    fn a_clock_that_is_set_takes_nothing_back_and_costs_an_hour_at_most() {
        let begun = WorkTime::default()
            .at(100 * SECOND, false)
            .at(103 * SECOND, true);
        let back = begun.at(SECOND, true);
        assert_eq!(back.until(2 * SECOND, true), 4 * SECOND);
        let forward = begun.until(u64::MAX, true);
        assert_eq!(
            Duration::from_micros(forward),
            MAX_STEP + Duration::from_secs(3)
        );
        assert_eq!(
            WorkTime {
                newest_us: 0,
                worked_us: u64::MAX
            }
            .until(SECOND, true),
            u64::MAX
        );
    }
}
