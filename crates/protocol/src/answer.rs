//! What comes with an answer of a model: why it stopped, its tokens and their cost. Does not depend on models.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer is finished.
    EndTurn,
    /// The answer ends with tool calls.
    ToolUse,
    /// The output limit cut the answer.
    MaxTokens,
    /// The model, or a filter of the provider, refused.
    Refusal,
    /// The provider paused: it continues the answer when the answer so far is sent back.
    Paused,
    /// Another reason of the provider, verbatim.
    Other(String),
}

/// Why a complete answer does not do what the prompt asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortfall {
    /// The prompt was not understood; nothing was changed or run.
    NotUnderstood,
    /// The prompt was understood and tried, without success.
    NotDone,
    /// A check of the host did not accept the answer. No model reports it.
    NotAccepted,
}

plain_bodies! {
    /// Tokens, as the provider counts them.
    Usage: Copy {
        /// Cached ones included.
        input: u64,
        output: u64,
        /// Of `input`, from the provider's cache.
        cached: u64,
        // Tokens of `input` that the provider wrote to its cache, if cache writes have a price of their own.
        #[schemars(skip)]
        cache_write =: u64,
        /// Of `output`, spent on thinking; absent where the provider does not say.
        reasoning =: u64,
    }
}

impl Usage {
    /// The sum. Saturates, because a provider may report any number.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cached: self.cached.saturating_add(more.cached),
            cache_write: self.cache_write.saturating_add(more.cache_write),
            reasoning: self.reasoning.saturating_add(more.reasoning),
        }
    }

    /// All tokens, read and written.
    #[must_use]
    pub fn tokens(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// What came since `before`, an earlier sum.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
            cached: self.cached.saturating_sub(before.cached),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
            reasoning: self.reasoning.saturating_sub(before.reasoning),
        }
    }
}

/// An amount of money in billionths of a US dollar. Integers, so that a sum is the same in every order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    const DOLLAR: f64 = 1e9;

    /// An amount of `count` billionths.
    #[must_use]
    pub const fn billionths(count: u64) -> Self {
        Self(count)
    }

    /// The number of billionths.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }

    /// Converts an amount of a setting: 0 to a billion dollars, rounded to a billionth. `None` outside of this range.
    #[must_use]
    pub fn of_dollars(dollars: f64) -> Option<Self> {
        let whole = (dollars * Self::DOLLAR).round();
        (0.0..=1e18).contains(&whole).then_some(Self(whole as u64))
    }

    /// The amount in dollars, for people and scripts.
    #[must_use]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / Self::DOLLAR
    }

    /// The sum; saturates.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }

    /// What came since `before`, an earlier sum.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self(self.0.saturating_sub(before.0))
    }
}

/// `$0.05`; less than a cent to a hundredth of one.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("$0"),
            1..100_000 => f.write_str("<$0.0001"),
            100_000..10_000_000 => write!(f, "${:.4}", self.dollars()),
            10_000_000.. => write!(f, "${:.2}", self.dollars()),
        }
    }
}
