//! The interface to a model: a dialect that encodes requests, and a stream of events. Does not depend on turns.

use crate::error::ErrorKind;
use crate::item::ProviderSignature;
use crate::projection::{Dialect, ModelRequest};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The channel into which a model sends its events; bounded, so a slow host slows the stream.
pub type EventSink = mpsc::Sender<ModelEvent>;

/// The number of events that may wait between a model and the turn.
pub const EVENT_QUEUE: usize = 256;

/// A model that answers requests: sends one request at a time and streams the answer. Implemented by providers and by
/// test models; called by the host.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// `provider/name`, as in `openai/gpt-4.1`, or `offline`.
    fn name(&self) -> &str;

    /// How requests are encoded for this model.
    fn dialect(&self) -> Arc<dyn Dialect>;

    /// The most tokens one answer may have; the provider's limit when `None`. Part of the surface.
    fn max_output(&self) -> Option<u32> {
        None
    }

    /// The price of the model's tokens, if known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// The most tokens that a request and its answer may have together, if known.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Streams the answer into `events`, ending with exactly one [`ModelEvent::Stop`] before `Ok`.
    /// The model announces its own retries by [`ModelEvent::Retrying`], which voids the events before it.
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
    /// Ends the reasoning so far with the provider's signature. Without reasoning text before it, the sealed reasoning
    /// is not shown.
    Sealed(ProviderSignature),
    /// A tool call begins; sent once per index.
    CallStarted { index: usize, name: String },
    /// More of a call's raw argument text.
    CallArguments { index: usize, fragment: String },
    /// Tokens counted so far; the last one counts.
    Usage(Usage),
    /// The answer does not do what the prompt asked for. Only a model that knows this for certain sends it, before its
    /// stop; the text of providers' answers is not interpreted.
    Shortfall(Shortfall),
    /// A sentence for people about the request, such as a long silence. Not a part of the answer.
    Notice(String),
    /// Everything since the request began is void; it will be sent again after `delay`.
    Retrying {
        /// Which attempt failed, from 1.
        attempt: u32,
        delay: Duration,
        why: String,
    },
    /// The answer is complete.
    Stop(StopReason),
}

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

/// Why a complete answer does not do what the prompt asked for; see [`ModelEvent::Shortfall`].
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

/// Tokens of one or more answers, as their provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    pub output: u64,
    /// Tokens of `input` that came from the provider's cache.
    pub cached: u64,
    /// Tokens of `input` that the provider wrote to its cache, if cache writes have a price of their own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
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

/// The price of a million tokens of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Input tokens that are neither read from nor written to the provider's cache.
    pub input: Cost,
    pub output: Cost,
    pub cached_input: Cost,
    pub cache_write: Cost,
}

impl Price {
    /// Every token is free.
    pub const FREE: Self = Self {
        input: Cost(0),
        output: Cost(0),
        cached_input: Cost(0),
        cache_write: Cost(0),
    };

    /// The cost of these tokens, rounded up to a billionth.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Cost {
        let Usage {
            input,
            output,
            cached,
            cache_write,
        } = *usage;
        let plain = input.saturating_sub(cached).saturating_sub(cache_write);
        let parts = [
            (plain, self.input),
            (output, self.output),
            (cached, self.cached_input),
            (cache_write, self.cache_write),
        ];
        // Four products of two 64-bit numbers could exceed 128 bits by one bit; no provider counts that far.
        let sum = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens) * u128::from(price.0))
        });
        Cost(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// The error of a request that got no complete answer.
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
        let of = |input, output, cached, cache_write| {
            price
                .of(&Usage {
                    input,
                    output,
                    cached,
                    cache_write,
                })
                .dollars()
        };
        assert_eq!(of(1_000_000, 0, 0, 0), 3.0);
        assert_eq!(of(0, 1_000_000, 0, 0), 15.0);
        assert_eq!(of(1_000_000, 0, 1_000_000, 0), 0.3);
        assert_eq!(of(1_000_000, 0, 0, 1_000_000), 3.75);
        assert_eq!(
            of(1_000, 100, 600, 300),
            0.0003 + 0.0015 + 0.00018 + 0.001_125
        );
        // A vendor whose parts are more than its whole is not paid back.
        assert_eq!(of(0, 0, 10, 0), 0.000_003);
        let usage = Usage {
            input: u64::MAX,
            output: u64::MAX,
            cached: 0,
            cache_write: 0,
        };
        assert_eq!(price.of(&usage), Cost(u64::MAX));
        let thousandth = Price {
            input: Cost(1),
            ..Price::FREE
        };
        assert_eq!(
            thousandth.of(&Usage {
                input: 1,
                ..Usage::default()
            }),
            Cost(1),
            "a begun billionth is one"
        );
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
        let one = Usage {
            input: 10,
            output: 4,
            cached: 3,
            cache_write: 2,
        };
        let two = Usage {
            input: 7,
            output: 1,
            cached: 0,
            cache_write: 5,
        };
        assert_eq!(one.plus(two).since(one), two);
        assert_eq!(one.since(one.plus(two)), Usage::default());
        assert_eq!(
            dollars(1.5).plus(dollars(0.25)).since(dollars(1.5)),
            dollars(0.25)
        );
    }
}
