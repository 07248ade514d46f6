//! What a session has used, to tell what was used since some point of it.

use crate::record::BudgetKind;
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
        for kind in kinds {
            match kind {
                BudgetKind::Steps => self.requests = later.requests,
                BudgetKind::Cost => self.cost = later.cost,
                BudgetKind::Tokens => self.usage = later.usage,
                BudgetKind::Time => self.wall_us = later.wall_us,
            }
        }
    }

    /// The time in which a turn worked.
    #[must_use]
    pub fn wall(self) -> Duration {
        Duration::from_micros(self.wall_us)
    }
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
        let (worked, waited) = (begun.at(105 * SECOND, true), 900 * SECOND);
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
