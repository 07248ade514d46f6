//! Decides when a failed request is retried: a limited number of times, with growing waits, or with the wait that the
//! endpoint asks for, up to a limit. Sends nothing; clock and randomness are passed in.

use crate::failure::Failure;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of attempts and the waits between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The number of all attempts, the first included; at least 1.
    pub attempts: u32,
    /// The wait after the first failure; doubled after each.
    pub first: Duration,
    /// The longest wait chosen by this policy.
    pub longest: Duration,
    /// The longest wait that an endpoint may ask for; a longer one is an error that names it.
    pub patience: Duration,
}

impl RetryPolicy {
    /// Five attempts over about ten seconds: enough for a short overload, without a long wait for a server that is
    /// down.
    pub const USUAL: Self = Self {
        attempts: 5,
        first: Duration::from_millis(500),
        longest: Duration::from_secs(30),
        patience: Duration::from_secs(120),
    };

    /// The decision after attempt number `attempt` (from 1). `jitter` in 0..1 shortens this policy's waits by up to
    /// half, so that many clients do not retry at once; a wait that the endpoint asked for is kept exactly.
    pub(crate) fn after(&self, attempt: u32, failure: &Failure, jitter: f64) -> RetryDecision {
        if !failure.passing() {
            return RetryDecision::GiveUp;
        }
        if let Some(asked) = failure.wait().filter(|asked| *asked > self.patience) {
            return RetryDecision::TooLong(asked);
        }
        if attempt >= self.attempts {
            return RetryDecision::GiveUp;
        }
        let doubled = self.first.saturating_mul(2u32.saturating_pow(attempt.saturating_sub(1)));
        let own = doubled.min(self.longest).mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0);
        RetryDecision::Again(failure.wait().unwrap_or(own))
    }
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

/// The wait a `Retry-After` value asks for: seconds, or an HTTP date (none when it has passed).
pub(crate) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = UNIX_EPOCH + Duration::from_secs(http_date(value)?);
    Some(then.duration_since(now).unwrap_or_default())
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`. The two obsolete forms are not read.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split_once(", ")?.1.split(' ').collect();
    let [day, month, year, clock, "GMT"] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let parts: Vec<u64> = clock.split(':').map_while(|part| part.parse().ok()).collect();
    let [hour, minute, second] = parts[..] else { return None };
    if !(1..=31).contains(&day) || !(1970..=9999).contains(&year) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days of the proleptic Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests;
