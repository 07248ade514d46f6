//! The limits in force, of a run or of a pod. A project's file can only lower them.

use super::{Source, Sourced};
use crate::limits::{Amount, LIMITS, LimitRow};
use llm_worker::Cost;
use pod::control::{PodLimits, RunLimits};
use pod::record::BudgetKind;
use std::collections::BTreeMap;
use std::time::Duration;

/// The steps of a run where nothing else is said.
const STEPS: u64 = 500;

/// The limits, as far as there are any.
#[derive(Clone, Debug, Default)]
pub struct LimitSettings(BTreeMap<BudgetKind, Sourced<Amount>>);

impl LimitSettings {
    pub(super) fn built_in() -> Self {
        let steps = Sourced::built_in(Amount::Count(STEPS));
        Self([(BudgetKind::Steps, steps)].into())
    }

    /// The limit of a kind.
    pub fn get(&self, kind: BudgetKind) -> Option<&Sourced<Amount>> {
        self.0.get(&kind)
    }

    /// The source of a limit; empty where there is none.
    pub fn source(&self, kind: BudgetKind) -> &str {
        self.get(kind).map_or("", |limit| &limit.source)
    }

    pub(super) fn insert(&mut self, row: &LimitRow, amount: Sourced<Amount>) {
        self.0.insert(row.kind, amount);
    }

    /// Takes the limits that are set.
    pub fn set(
        &mut self,
        set: impl Fn(&LimitRow) -> Option<Amount>,
        source: impl Fn(&LimitRow) -> Source,
    ) {
        for row in LIMITS {
            if let Some(amount) = set(row) {
                self.insert(row, Sourced::new(amount, source(row)));
            }
        }
    }

    /// Takes those that lower a limit, or set one where there is none. What is no amount is taken, too, and then refused
    /// where everything in force is checked.
    pub fn narrow(
        &mut self,
        set: impl Fn(&LimitRow) -> Option<Amount>,
        source: impl Fn(&LimitRow) -> Source,
    ) {
        let known = self.clone();
        let is_lower = |row: &LimitRow, amount: &Amount| {
            !known
                .get(row.kind)
                .is_some_and(|known| *amount >= known.value)
        };
        self.set(
            |row| set(row).filter(|amount| is_lower(row, amount)),
            source,
        );
    }

    fn count(&self, kind: BudgetKind) -> Option<u64> {
        self.get(kind).and_then(|limit| limit.value.units())
    }

    /// As a pod counts them.
    pub fn of_pod(&self) -> PodLimits {
        PodLimits {
            max_steps: self.count(BudgetKind::Steps),
            max_cost: self.count(BudgetKind::Cost).map(Cost::billionths),
            max_tokens: self.count(BudgetKind::Tokens),
            max_wall: self.count(BudgetKind::Time).map(Duration::from_secs),
        }
    }

    /// As a run counts them.
    pub fn of_run(&self, tool_concurrency: usize) -> RunLimits {
        RunLimits::of(self.of_pod(), tool_concurrency)
    }
}
