//! The budget of a pod over all its turns, and the words for a budget that is used up. Does not depend on the log.

use super::limits::RunLimits;
use crate::record::{BudgetKind, BudgetScope, HoldCause, Suspended};
use crate::session::fold::SessionState;
use crate::session::spent::{COUNTED, Counted, Spent};
use llm_worker::Cost;
use std::time::Duration;

/// What a pod may use in all its turns together; a person can grant a part that is used up once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodLimits {
    /// Requests.
    pub max_steps: Option<u64>,
    pub max_cost: Option<Cost>,
    /// Read and written.
    pub max_tokens: Option<u64>,
    /// Time in which a turn worked.
    pub max_wall: Option<Duration>,
}

impl PodLimits {
    /// The limits as they are counted, in the order of [`COUNTED`].
    pub(super) fn units(self) -> [Option<u64>; COUNTED.len()] {
        let us = |most: Duration| u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        [
            self.max_steps,
            self.max_cost.map(Cost::count),
            self.max_tokens,
            self.max_wall.map(us),
        ]
    }

    fn of_units([steps, cost, tokens, us]: [Option<u64>; COUNTED.len()]) -> Self {
        Self {
            max_steps: steps,
            max_cost: cost.map(Cost::billionths),
            max_tokens: tokens,
            max_wall: us.map(Duration::from_micros),
        }
    }

    /// Each limit changed by what was used of its kind.
    fn by(self, used: Spent, change: fn(u64, u64) -> u64) -> Self {
        let mut units = self.units();
        for (most, row) in units.iter_mut().zip(&COUNTED) {
            *most = most.map(|most| change(most, (row.used)(used)));
        }
        Self::of_units(units)
    }

    /// The lower of both, or the one that there is, kind by kind.
    pub(super) fn meet(self, other: Self) -> Self {
        let mut units = self.units();
        for (most, other) in units.iter_mut().zip(other.units()) {
            *most = [*most, other].into_iter().flatten().min();
        }
        Self::of_units(units)
    }

    /// What is left of these limits after `used`.
    #[must_use]
    pub(super) fn less(self, used: Spent) -> Self {
        self.by(used, u64::saturating_sub)
    }

    /// The limits that `used` reaches.
    pub(super) fn rows_reached(self, used: Spent) -> impl Iterator<Item = &'static Counted> {
        let left = self.less(used).units().into_iter().zip(&COUNTED);
        left.filter_map(|(left, row)| (left == Some(0)).then_some(row))
    }

    /// The kinds of the limits that `used` reaches.
    #[must_use]
    pub fn reached(self, used: Spent) -> Vec<BudgetKind> {
        self.rows_reached(used).map(|row| row.kind).collect()
    }

    /// The limits of these kinds, in words.
    fn texts(self, kinds: &[BudgetKind]) -> Vec<String> {
        let all = self.units().into_iter().zip(&COUNTED);
        let asked = all.filter(|(_, row)| kinds.contains(&row.kind));
        asked
            .filter_map(|(most, row)| most.map(row.words))
            .collect()
    }
}

/// Budgets of these kinds that are used up.
pub(super) struct UsedUp<'a> {
    pub(super) scope: BudgetScope,
    pub(super) limits: PodLimits,
    pub(super) kinds: &'a [BudgetKind],
    /// Since the scope began; that of a pod, in all its turns.
    pub(super) used: Spent,
    /// Whether the pod got a part of it more than once.
    pub(super) is_renewed: bool,
}

impl UsedUp<'_> {
    /// The record that holds the pod: whose limit it is, and how much was used.
    pub(super) fn record(&self) -> Suspended {
        let Self {
            scope,
            limits,
            kinds,
            used,
            is_renewed,
        } = self;
        let whose = match scope {
            BudgetScope::Run => "the run",
            BudgetScope::Pod => "the pod",
        };
        let most = limits.texts(kinds);
        let again = if *is_renewed { " again" } else { "" };
        let reason = format!(
            "{whose} reached its limit of {}{again}; it used {}",
            most.join(" and "),
            all(*used)
        );
        Suspended {
            reason,
            cause: Some(HoldCause::Budget),
            budget: Some(*scope),
            by: None,
        }
    }
}

/// The end of a run that reached one of its own limits. `left` is what it had when its newest turn began, after `before`;
/// `used` is all that it used.
pub(super) fn run_stopped(
    left: RunLimits,
    before: Spent,
    used: Spent,
    kind: BudgetKind,
) -> Suspended {
    let limits = left.most().by(before, u64::saturating_add);
    UsedUp {
        scope: BudgetScope::Run,
        limits,
        kinds: &[kind],
        used,
        is_renewed: false,
    }
    .record()
}

/// What holds a pod that has used this of its budget, and `used` in all.
pub(super) fn pod_stopped(
    state: &SessionState,
    limits: PodLimits,
    used: Spent,
    kinds: &[BudgetKind],
) -> Suspended {
    let since = state.budget_since;
    let was_used = |row: &&Counted| kinds.contains(&row.kind) && (row.used)(since) > 0;
    let is_renewed = COUNTED.iter().find(was_used).is_some();
    UsedUp {
        scope: BudgetScope::Pod,
        limits,
        kinds,
        used,
        is_renewed,
    }
    .record()
}

/// All that was used; tokens if there are any, and a cost if it is known.
fn all(used: Spent) -> String {
    let is_told = |row: &&Counted| match row.kind {
        BudgetKind::Tokens => used.usage.tokens() > 0,
        BudgetKind::Cost => used.cost.is_some(),
        BudgetKind::Steps | BudgetKind::Time => true,
    };
    let [steps, cost, tokens, time] = &COUNTED;
    let told = [steps, tokens, cost, time].into_iter().filter(is_told);
    let mut parts: Vec<_> = told.map(|row| (row.words)((row.used)(used))).collect();
    let last = parts.pop().unwrap_or_default();
    format!("{} and {last}", parts.join(", "))
}

#[cfg(test)]
mod tests;
