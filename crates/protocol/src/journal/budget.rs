//! The words of records about budgets: whose they are, and what they limit. Does not depend on how they are counted.

words! {
    /// Whose budget it is.
    BudgetScope {
        /// Of one input: all turns that work on it.
        Run = "run",
        /// Of all turns of a pod.
        Pod = "pod",
    }
    /// What a budget limits.
    BudgetKind: PartialOrd Ord {
        Steps = "steps",
        Cost = "cost",
        Tokens = "tokens",
        Time = "time",
    }
}

impl BudgetKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Steps, Self::Cost, Self::Tokens, Self::Time];
}
