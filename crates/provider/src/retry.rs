//! When a failed request is sent again: a bounded number of times, waiting longer each time, and as long as the
//! endpoint asks up to a bound. Sends nothing; time and chance are handed in.

use crate::failure::Failure;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often and how patiently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; at least 1.
    pub attempts: u32,
    /// The wait after the first failure; doubled after each.
    pub first: Duration,
    /// The longest wait of our own choosing.
    pub longest: Duration,
    /// The longest wait an endpoint may ask for; more is an error that says when.
    pub patience: Duration,
}

impl RetryPolicy {
    /// Five attempts over about ten seconds: what a passing overload takes, without keeping a person waiting for
    /// a server that is not there.
    pub const USUAL: Self = Self {
        attempts: 5,
        first: Duration::from_millis(500),
        longest: Duration::from_secs(30),
        patience: Duration::from_secs(120),
    };

    /// What follows attempt number `attempt` (from 1). `jitter` in 0..1 takes up to half off our own waits, so that
    /// many clients do not return at once; a wait the endpoint asked for is kept to the letter.
    pub(crate) fn after(&self, attempt: u32, failure: &Failure, jitter: f64) -> Next {
        if !failure.passing() {
            return Next::GiveUp;
        }
        if let Some(asked) = failure.wait().filter(|asked| *asked > self.patience) {
            return Next::TooLong(asked);
        }
        if attempt >= self.attempts {
            return Next::GiveUp;
        }
        let doubled = self.first.saturating_mul(2u32.saturating_pow(attempt.saturating_sub(1)));
        let own = doubled.min(self.longest).mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0);
        Next::Again(failure.wait().unwrap_or(own))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Again(Duration),
    /// The endpoint asks for more patience than there is.
    TooLong(Duration),
    GiveUp,
}

/// A future that ends when a wait is over.
pub type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Time and chance.
#[derive(Clone)]
pub struct Pacing {
    pub sleep: Arc<dyn Fn(Duration) -> Waiting + Send + Sync>,
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
mod tests {
    use super::*;
    use crate::vendor_error::VendorError;
    use http_client::Cause;

    fn status(status: u16, wait: Option<u64>, label: &str) -> Failure {
        let error = VendorError { labels: vec![label.to_owned()], ..VendorError::saying("no") };
        Failure::refused(Some(status), wait.map(Duration::from_secs), &error, "m".to_owned())
    }

    #[test]
    fn what_is_retried_and_how_long_it_waits() {
        let plain = |cause| Failure::new(cause, "m");
        let ms = |ms| Next::Again(Duration::from_millis(ms));
        let table = [
            ("first wait", 1, plain(Cause::Connect), 0.0, ms(500)),
            ("jitter takes half at most", 1, plain(Cause::Connect), 1.0, ms(250)),
            ("doubled", 3, plain(Cause::Cut), 0.0, ms(2000)),
            ("bounded", 4, plain(Cause::Timeout), 0.0, ms(4000)),
            ("attempts used up", 5, plain(Cause::Timeout), 0.0, Next::GiveUp),
            ("malformed", 1, plain(Cause::Malformed), 0.0, ms(500)),
            ("TLS", 1, plain(Cause::Tls), 0.0, Next::GiveUp),
            ("asked for", 1, status(429, Some(7), ""), 0.9, ms(7000)),
            ("asked for nothing", 1, status(503, Some(0), ""), 0.9, ms(0)),
            ("at the bound", 1, status(503, Some(120), ""), 0.0, ms(120_000)),
            ("over the bound", 1, status(429, Some(121), ""), 0.0, Next::TooLong(Duration::from_secs(121))),
            ("over the bound, last", 5, status(429, Some(121), ""), 0.0, Next::TooLong(Duration::from_secs(121))),
            ("quota", 1, status(429, Some(1), "insufficient_quota"), 0.0, Next::GiveUp),
            ("not invalid in mid-stream", 1, status(400, None, ""), 0.0, Next::GiveUp),
        ];
        for (case, attempt, failure, jitter, want) in table {
            assert_eq!(RetryPolicy::USUAL.after(attempt, &failure, jitter), want, "{case}");
        }
        for code in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            assert_eq!(RetryPolicy::USUAL.after(1, &status(code, None, ""), 0.0), ms(500), "{code}");
        }
        for code in [400, 401, 402, 403, 404, 413, 422, 501] {
            assert_eq!(RetryPolicy::USUAL.after(1, &status(code, None, ""), 0.0), Next::GiveUp, "{code}");
        }
        let patient = RetryPolicy { attempts: 40, ..RetryPolicy::USUAL };
        assert_eq!(patient.after(39, &plain(Cause::Cut), 0.0), ms(30_000), "no overflow, and bounded");
    }

    #[test]
    fn retry_after_in_seconds_and_as_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777 - 30);
        let table = [
            ("5", Some(5.0)),
            (" 0.25 ", Some(0.25)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30.0)),
            ("Sun, 06 Nov 1994 08:48:37 GMT", Some(0.0)),
            ("Thu, 29 Feb 1996 00:00:00 GMT", Some(41_440_253.0)),
            ("-1", None),
            ("soon", None),
            ("Sun, 06 Nov 1994 08:49 GMT", None),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
        ];
        for (value, want) in table {
            assert_eq!(retry_after(value, now).map(|wait| wait.as_secs_f64()), want, "{value}");
        }
    }

    #[test]
    fn the_system_jitter_varies_within_its_range() {
        let jitter = Pacing::system().jitter;
        let drawn: Vec<f64> = (0..32).map(|_| jitter()).collect();
        assert!(drawn.iter().all(|x| (0.0..=1.0).contains(x)) && drawn.iter().any(|x| x != &drawn[0]), "{drawn:?}");
    }
}
