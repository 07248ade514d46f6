//! The budget of a pod over all its turns, and the words for a budget that is used up. Does not depend on the log.

use super::limits::RunLimits;
use crate::record::{BudgetKind, BudgetScope, HoldCause, Suspended};
use crate::session::fold::SessionState;
use crate::session::spent::Spent;
use llm_worker::Cost;
use llm_worker::effect::Outcome;
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
    /// A run's limits, of which `used` was used before they were counted.
    fn of_run(left: RunLimits, used: Spent) -> Self {
        let RunLimits {
            max_steps,
            max_cost,
            max_tokens,
            max_wall,
            tool_concurrency: _,
        } = left;
        Self {
            max_steps: Some(u64::from(max_steps).saturating_add(used.requests)),
            max_cost: max_cost.map(|most| most.plus(used.cost.unwrap_or_default())),
            max_tokens: max_tokens.map(|most| most.saturating_add(used.usage.tokens())),
            max_wall: max_wall.map(|most| most.saturating_add(used.wall())),
        }
    }

    /// What is left of these limits after `used`.
    #[must_use]
    pub(super) fn less(self, used: Spent) -> Self {
        Self {
            max_steps: self
                .max_steps
                .map(|most| most.saturating_sub(used.requests)),
            max_cost: self
                .max_cost
                .map(|most| most.since(used.cost.unwrap_or_default())),
            max_tokens: self
                .max_tokens
                .map(|most| most.saturating_sub(used.usage.tokens())),
            max_wall: self.max_wall.map(|most| most.saturating_sub(used.wall())),
        }
    }

    /// The limits that `used` reaches.
    #[must_use]
    pub fn reached(self, used: Spent) -> Vec<BudgetKind> {
        let Self {
            max_steps,
            max_cost,
            max_tokens,
            max_wall,
        } = self.less(used);
        let is_over = |kind: &BudgetKind| match kind {
            BudgetKind::Steps => max_steps == Some(0),
            BudgetKind::Cost => max_cost == Some(Cost::default()),
            BudgetKind::Tokens => max_tokens == Some(0),
            BudgetKind::Time => max_wall == Some(Duration::ZERO),
        };
        BudgetKind::ALL.into_iter().filter(is_over).collect()
    }

    /// The limit of a kind, in words.
    fn text(self, kind: BudgetKind) -> Option<String> {
        match kind {
            BudgetKind::Steps => self.max_steps.map(steps),
            BudgetKind::Cost => self.max_cost.map(|most| most.to_string()),
            BudgetKind::Tokens => self.max_tokens.map(tokens),
            BudgetKind::Time => self.max_wall.map(time),
        }
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
        let most: Vec<_> = kinds.iter().filter_map(|kind| limits.text(*kind)).collect();
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
    let limits = PodLimits::of_run(left, before);
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
    let is_renewed = kinds.iter().any(|kind| match kind {
        BudgetKind::Steps => since.requests > 0,
        BudgetKind::Cost => since.cost.is_some_and(|cost| cost > Cost::default()),
        BudgetKind::Tokens => since.usage.tokens() > 0,
        BudgetKind::Time => since.wall_us > 0,
    });
    UsedUp {
        scope: BudgetScope::Pod,
        limits,
        kinds,
        used,
        is_renewed,
    }
    .record()
}

impl RunLimits {
    /// These limits within what is left to the pod.
    #[must_use]
    pub(super) fn within(self, left: PodLimits) -> Self {
        let max_steps = left
            .max_steps
            .map_or(u32::MAX, |steps| u32::try_from(steps).unwrap_or(u32::MAX));
        let PodLimits {
            max_steps: _,
            max_cost,
            max_tokens,
            max_wall,
        } = left;
        self.meet(Self {
            max_steps,
            tool_concurrency: usize::MAX,
            max_cost,
            max_tokens,
            max_wall,
        })
    }
}

/// The budget whose end a turn ended with.
pub(super) fn kind(outcome: &Outcome) -> Option<BudgetKind> {
    match outcome {
        Outcome::StepLimit => Some(BudgetKind::Steps),
        Outcome::CostLimit => Some(BudgetKind::Cost),
        Outcome::TokenLimit => Some(BudgetKind::Tokens),
        Outcome::TimeLimit => Some(BudgetKind::Time),
        Outcome::Done
        | Outcome::MaxTokens
        | Outcome::Refused
        | Outcome::Empty
        | Outcome::ModelFailed { .. }
        | Outcome::Cancelled
        | Outcome::ContextLimit
        | Outcome::Aborted { .. }
        | Outcome::Interrupted
        | Outcome::Waiting => None,
    }
}

fn all(used: Spent) -> String {
    let mut parts = vec![steps(used.requests)];
    parts.extend(
        Some(used.usage.tokens())
            .filter(|count| *count > 0)
            .map(tokens),
    );
    parts.extend(used.cost.map(|cost| cost.to_string()));
    parts.push(time(used.wall()));
    let last = parts.pop().unwrap_or_default();
    format!("{} and {last}", parts.join(", "))
}

fn steps(count: u64) -> String {
    if count == 1 {
        "1 step".to_owned()
    } else {
        format!("{count} steps")
    }
}

fn tokens(count: u64) -> String {
    if count == 1 {
        "1 token".to_owned()
    } else {
        format!("{count} tokens")
    }
}

/// In whole seconds.
fn time(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

#[cfg(test)]
mod tests;
