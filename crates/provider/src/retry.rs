//! Decides when a failed request is retried: a limited number of times, with growing waits, or with the wait that the
//! endpoint asks for, up to a limit. Sends nothing; clock and randomness are passed in.

use crate::failure::{Failure, RetryAdvice};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The number of attempts and the waits between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The number of all attempts, the first included; at least 1.
    pub attempts: u32,
    /// Of these, the attempts that may have brought a part of an answer, which the provider may charge for.
    pub begun: u32,
    /// No attempt begins when this time has passed since the first one failed.
    pub total: Duration,
    /// The wait after the first failure; doubled after each.
    pub first: Duration,
    /// The longest wait chosen by this policy.
    pub longest: Duration,
    /// The longest wait that an endpoint may ask for; a longer one is an error that names it.
    pub patience: Duration,
}

impl RetryPolicy {
    /// About three minutes: enough for an overload or the restart of a server. A server that lets requests time out gets
    /// two of them.
    pub const USUAL: Self = Self {
        attempts: 20,
        begun: 5,
        total: Duration::from_secs(180),
        first: Duration::from_millis(500),
        longest: Duration::from_secs(30),
        patience: Duration::from_secs(120),
    };

    /// Whether the attempt after these is the last one.
    pub(crate) fn is_last(&self, failed: Attempts) -> bool {
        failed.attempt + 1 >= self.attempts || failed.begun + 1 >= self.begun
    }

    /// The decision after these attempts. `jitter` in 0..1 shortens this policy's waits by up to
    /// half, so that many clients do not retry at once. A wait that the endpoint asked for is kept exactly, if it is longer.
    pub(crate) fn after(&self, failed: Attempts, failure: &Failure, jitter: f64) -> RetryDecision {
        let Attempts {
            attempt,
            begun,
            elapsed,
        } = failed;
        if !failure.passing() {
            return RetryDecision::GiveUp;
        }
        if let Some(asked) = failure.wait().filter(|asked| *asked > self.patience) {
            return RetryDecision::TooLong(asked);
        }
        if attempt >= self.attempts || begun >= self.begun || elapsed >= self.total {
            return RetryDecision::GiveUp;
        }
        let doubled = self
            .first
            .saturating_mul(2u32.saturating_pow(attempt.saturating_sub(1)));
        let own = doubled
            .min(self.longest)
            .mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0);
        RetryDecision::Again(failure.wait().unwrap_or_default().max(own))
    }
}

/// The failed attempts of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attempts {
    /// The number of the newest one, from 1.
    pub(crate) attempt: u32,
    /// How many brought a part of an answer.
    pub(crate) begun: u32,
    /// The time since the first one failed.
    pub(crate) elapsed: Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    Again(Duration),
    /// The endpoint asks for a longer wait than [`RetryPolicy::patience`].
    TooLong(Duration),
    GiveUp,
}

/// A future that resolves after a wait.
pub type SleepFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Timer, clock and randomness for retries.
#[derive(Clone)]
pub struct Pacing {
    pub sleep: Arc<dyn Fn(Duration) -> SleepFuture + Send + Sync>,
    /// A number in 0..1, different each time.
    pub jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// The wall clock, for `Retry-After` dates.
    pub now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Pacing {
    /// The runtime's timer, the system's clock and the hasher's random keys: for the composition root.
    #[must_use]
    pub fn system() -> Self {
        Self {
            sleep: Arc::new(|wait| Box::pin(tokio::time::sleep(wait))),
            jitter: Arc::new(|| RandomState::new().hash_one(0) as f64 / u64::MAX as f64),
            now: Arc::new(SystemTime::now),
        }
    }
}

/// What the headers of a refusal say about another attempt, as vendors' own clients read them: `retry-after-ms`, else
/// `retry-after` in seconds or as a date (none when it has passed), and `x-should-retry`.
pub(crate) fn advice<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> RetryAdvice {
    // Sent twice, it is a list.
    let first =
        |name: &str| Some(header(name)?.trim_matches(|c: char| c.is_whitespace() || c == '"'));
    let number = |name: &str, unit: f64| {
        let text = first(name)?.split(',').next()?.trim_end_matches('s');
        Duration::try_from_secs_f64(text.trim().parse::<f64>().ok()? / unit).ok()
    };
    let date = || {
        let then =
            httpdate::parse_http_date(&first("retry-after")?.replace("+0000", "GMT")).ok()?;
        Some(then.duration_since(now).unwrap_or_default())
    };
    let wait = number("retry-after-ms", 1000.0)
        .or_else(|| number("retry-after", 1.0))
        .or_else(date);
    let again = header("x-should-retry").and_then(|value| value.trim().parse().ok());
    RetryAdvice { wait, again }
}

#[cfg(test)]
mod tests;
