//! The words of records about budgets: whose they are, and what they limit. Does not depend on how they are counted.

use serde::{Deserialize, Serialize};

/// Whose budget it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// Of one input: all turns that work on it.
    Run,
    /// Of all turns of a pod.
    Pod,
}

/// What a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    Steps,
    Cost,
    Tokens,
    Time,
}

impl BudgetKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Steps, Self::Cost, Self::Tokens, Self::Time];

    /// As in the log.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Time => "time",
        }
    }
}
