//! What a part of a result is worth, when not all of it fits.

/// How the parts of a result share a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// As many parts as fit.
    ElementCount,
    /// The first parts; each is worth a little less than the one before it.
    Cascading,
    /// Large parts as well as small ones.
    SizeProportional,
    /// What starts a conversation before its answers.
    ThreadLevel,
    /// The first and the last parts.
    HeadTail,
}

/// One part of a result, as a strategy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPart {
    /// Its place among all parts, from 0.
    pub at: usize,
    /// How many parts there are.
    pub of: usize,
    /// What it costs whole.
    pub tokens: u64,
    /// Whether it answers another part.
    pub is_answer: bool,
}

impl Strategy {
    /// What a part is worth, from 1 on.
    pub fn value(self, part: ResultPart) -> u64 {
        let at = part.at as u64;
        let of = part.of.max(1) as u64;
        match self {
            Self::ElementCount => 1000,
            Self::Cascading => 1 + 1000 * of.saturating_sub(at) / of,
            Self::SizeProportional => part.tokens.max(1),
            Self::ThreadLevel if part.is_answer => 250,
            Self::ThreadLevel => 1000,
            // Steep, so that a somewhat longer last line does not lose to one of the first ones.
            Self::HeadTail => 1 + 1_000_000 / (1 + at.min(of.saturating_sub(at + 1))),
        }
    }
}

/// What a result consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// A list of things.
    List,
    /// A list in which things answer others.
    Thread,
    /// Lines of a program that ran.
    Log,
    /// Changes of files.
    Diff,
    /// Source text.
    Code,
    /// Any other text.
    Text,
}

impl DataKind {
    /// The strategy for it.
    pub const fn strategy(self) -> Strategy {
        match self {
            Self::List => Strategy::ElementCount,
            Self::Thread => Strategy::ThreadLevel,
            Self::Log => Strategy::HeadTail,
            Self::Diff | Self::Code | Self::Text => Strategy::Cascading,
        }
    }
}
