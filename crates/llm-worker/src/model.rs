//! The interface to a model: a dialect that encodes requests, and a stream of events. Does not depend on turns.

use crate::ErrorKind;
use crate::item::{MediaType, ProviderSignature};
use crate::projection::{Dialect, ModelRequest};
use async_trait::async_trait;
pub use protocol::answer::{Cost, Shortfall, StopReason, Usage};
pub use protocol::tool::Effort;
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

    /// What is asked of the model's thinking. Part of the surface.
    fn thinking(&self) -> Thinking {
        Thinking::default()
    }

    /// The types of files that the model reads. Part of the surface.
    fn media(&self) -> &[MediaType] {
        &[]
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

/// What is asked of a model's thinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thinking {
    /// How much; the vendor's default when `None`.
    pub effort: Option<Effort>,
    /// Its text is asked for, where the vendor sends it on request only.
    pub shown: bool,
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
        input: Cost::billionths(0),
        output: Cost::billionths(0),
        cached_input: Cost::billionths(0),
        cache_write: Cost::billionths(0),
    };

    /// The cost of these tokens, rounded up to a billionth.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Cost {
        let Usage {
            input,
            output,
            cached,
            cache_write,
            reasoning: _,
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
            sum.saturating_add(u128::from(*tokens) * u128::from(price.count()))
        });
        Cost::billionths(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
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
                    reasoning: 0,
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
            reasoning: 0,
        };
        assert_eq!(price.of(&usage), Cost::billionths(u64::MAX));
        let thousandth = Price {
            input: Cost::billionths(1),
            ..Price::FREE
        };
        assert_eq!(
            thousandth.of(&Usage {
                input: 1,
                ..Usage::default()
            }),
            Cost::billionths(1),
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
            reasoning: 0,
        };
        let two = Usage {
            input: 7,
            output: 1,
            cached: 0,
            cache_write: 5,
            reasoning: 0,
        };
        assert_eq!(one.plus(two).since(one), two);
        assert_eq!(one.since(one.plus(two)), Usage::default());
        assert_eq!(
            dollars(1.5).plus(dollars(0.25)).since(dollars(1.5)),
            dollars(0.25)
        );
    }
}
