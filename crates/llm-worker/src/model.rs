//! The interface to a model: a dialect that encodes requests, and a stream of events. Knows no turn.

use crate::error::ErrorKind;
use crate::item::ProviderSignature;
use crate::projection::{Dialect, ModelRequest};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Where a model's events go; bounded, so a slow host slows the stream.
pub type EventSink = mpsc::Sender<ModelEvent>;

/// How many events may wait between a model and the turn.
pub const EVENT_QUEUE: usize = 256;

/// Sends one request, streams one answer.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// `provider/name`, as in `openai/gpt-4.1`, or `offline`.
    fn name(&self) -> &str;

    /// How requests are encoded for this model.
    fn dialect(&self) -> Arc<dyn Dialect>;

    /// The most tokens one answer may have; the vendor's own limit when `None`. Stands in the surface.
    fn max_output(&self) -> Option<u32> {
        None
    }

    /// What its tokens cost, where that is known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Streams the answer into `events`, ending with exactly one [`ModelEvent::Stop`] before `Ok`.
    /// Retries inside are announced by [`ModelEvent::Retrying`], which voids what came before it.
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    /// A stream that ended without a stop reason, a refusal by the endpoint, retries used up.
    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError>;
}

/// One event of an answer. Tool calls are numbered by `index` from 0 in order of appearance.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// More answer text.
    Text(String),
    /// More reasoning text.
    Reasoning(String),
    /// Ends the reasoning so far, with what the vendor wants back; without reasoning before it, what is sealed is
    /// not shown.
    Sealed(ProviderSignature),
    /// A tool call begins; sent once per index.
    CallStarted { index: usize, name: String },
    /// More of a call's raw argument text.
    CallArguments { index: usize, fragment: String },
    /// Tokens counted so far; the last one counts.
    Usage(Usage),
    /// The answer says that what was asked for is not done. Only a model that knows this for certain sends it, before
    /// its stop; no vendor's words are judged.
    Shortfall(Shortfall),
    /// Everything since the request began is void; it will be sent again after `delay`.
    Retrying {
        /// Which attempt failed, from 1.
        attempt: u32,
        delay: Duration,
        why: String,
    },
    /// The answer is whole.
    Stop(StopReason),
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It said all it wanted.
    EndTurn,
    /// It wants tools run.
    ToolUse,
    /// Its output limit cut it.
    MaxTokens,
    /// It, or a filter, refused.
    Refusal,
    /// The vendor wants the answer so far sent back, to go on with it.
    Paused,
    /// A vendor's other reason, verbatim.
    Other(String),
}

/// Why a whole answer is not what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortfall {
    /// The prompt was not understood; nothing was changed or run.
    NotUnderstood,
    /// What was asked for was tried and did not succeed.
    NotDone,
}

/// Tokens of one answer, as its vendor counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    pub output: u64,
    /// Tokens of `input` that came from the vendor's cache.
    pub cached: u64,
    /// Tokens of `input` that the vendor put into its cache, where that has a price of its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// The sum. Counts are a vendor's, so they stop at the end of their range.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cached: self.cached.saturating_add(more.cached),
            cache_write: self.cache_write.saturating_add(more.cache_write),
        }
    }

    /// What came since `before`, an earlier sum.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
            cached: self.cached.saturating_sub(before.cached),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
        }
    }
}

/// Billionths of a US dollar, whole, so that a sum is the same in every order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    const DOLLAR: f64 = 1e9;

    /// So many billionths.
    #[must_use]
    pub const fn billionths(count: u64) -> Self {
        Self(count)
    }

    /// How many billionths.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }

    /// An amount a person wrote: from 0 to a billion dollars, rounded to a billionth.
    #[must_use]
    pub fn of_dollars(dollars: f64) -> Option<Self> {
        let whole = (dollars * Self::DOLLAR).round();
        (0.0..=1e18).contains(&whole).then_some(Self(whole as u64))
    }

    /// For people and scripts.
    #[must_use]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / Self::DOLLAR
    }

    /// The sum, up to the end of the range.
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

/// What a million tokens of each sort cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Read, neither from nor into the vendor's cache.
    pub input: Cost,
    pub output: Cost,
    pub cached_input: Cost,
    pub cache_write: Cost,
}

impl Price {
    /// Nothing.
    pub const FREE: Self = Self { input: Cost(0), output: Cost(0), cached_input: Cost(0), cache_write: Cost(0) };

    /// What these tokens cost, a begun billionth counted whole.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Cost {
        let Usage { input, output, cached, cache_write } = *usage;
        let plain = input.saturating_sub(cached).saturating_sub(cache_write);
        let parts =
            [(plain, self.input), (output, self.output), (cached, self.cached_input), (cache_write, self.cache_write)];
        // Four products of two 64-bit numbers could be one bit over 128; no vendor counts that far.
        let sum = parts
            .iter()
            .fold(0_u128, |sum, (tokens, price)| sum.saturating_add(u128::from(*tokens) * u128::from(price.0)));
        Cost(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// A request that brought no whole answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// `Unavailable` (retries used up, cannot connect), `Denied` (key refused), `FixInput` (the endpoint calls
    /// the request invalid), `Exhausted` (quota, context length), `Cancelled`, `Bug`.
    pub kind: ErrorKind,
    pub message: String,
    pub help: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(dollars: f64) -> Cost {
        Cost::of_dollars(dollars).unwrap()
    }

    #[test]
    fn each_sort_of_token_has_its_price() {
        let price = Price {
            input: dollars(3.0),
            output: dollars(15.0),
            cached_input: dollars(0.3),
            cache_write: dollars(3.75),
        };
        let of = |input, output, cached, cache_write| price.of(&Usage { input, output, cached, cache_write }).dollars();
        assert_eq!(of(1_000_000, 0, 0, 0), 3.0);
        assert_eq!(of(0, 1_000_000, 0, 0), 15.0);
        assert_eq!(of(1_000_000, 0, 1_000_000, 0), 0.3);
        assert_eq!(of(1_000_000, 0, 0, 1_000_000), 3.75);
        assert_eq!(of(1_000, 100, 600, 300), 0.0003 + 0.0015 + 0.00018 + 0.001_125);
        // A vendor whose parts are more than its whole is not paid back.
        assert_eq!(of(0, 0, 10, 0), 0.000_003);
        let usage = Usage { input: u64::MAX, output: u64::MAX, cached: 0, cache_write: 0 };
        assert_eq!(price.of(&usage), Cost(u64::MAX));
        let thousandth = Price { input: Cost(1), ..Price::FREE };
        assert_eq!(thousandth.of(&Usage { input: 1, ..Usage::default() }), Cost(1), "a begun billionth is one");
    }

    #[test]
    fn money_is_shown_as_a_person_reads_it() {
        let table = [
            (0.0, "$0"),
            (0.000_05, "<$0.0001"),
            (0.0042, "$0.0042"),
            (0.0099, "$0.0099"),
            (0.01, "$0.01"),
            (0.05, "$0.05"),
            (12.345, "$12.35"),
        ];
        for (amount, shown) in table {
            assert_eq!(dollars(amount).to_string(), shown);
        }
        for bad in [-0.01, f64::NAN, f64::INFINITY, 2e9] {
            assert_eq!(Cost::of_dollars(bad), None, "{bad}");
        }
    }

    #[test]
    fn sums_come_apart_again() {
        let one = Usage { input: 10, output: 4, cached: 3, cache_write: 2 };
        let two = Usage { input: 7, output: 1, cached: 0, cache_write: 5 };
        assert_eq!(one.plus(two).since(one), two);
        assert_eq!(one.since(one.plus(two)), Usage::default());
        assert_eq!(dollars(1.5).plus(dollars(0.25)).since(dollars(1.5)), dollars(0.25));
    }
}
