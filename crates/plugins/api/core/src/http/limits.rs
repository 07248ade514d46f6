//! How long a vendor asks to wait. Times are taken from its own clock, the header `Date`.

use http_client::{HeaderMap, StatusCode, header};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// How often a GET is sent.
pub const TRIES: u32 = 3;
/// The longest wait within a call; with a longer one the call fails and says when to try again.
pub const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// The wait where a vendor says that there were too many requests and not for how long.
const USUAL_WAIT: Duration = Duration::from_secs(60);
/// A longer wait is shown as this one.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

const REMAINING: [&str; 2] = ["x-ratelimit-remaining", "ratelimit-remaining"];
const RESET: [&str; 2] = ["x-ratelimit-reset", "ratelimit-reset"];

/// When a vendor takes requests again.
#[derive(Default)]
pub(super) struct Limits {
    is_by_path: bool,
    /// By path, or for all of them by an empty one; those that are over leave.
    until: Mutex<BTreeMap<String, Instant>>,
}

impl Limits {
    pub(super) fn by_path() -> Self {
        Self {
            is_by_path: true,
            ..Self::default()
        }
    }

    /// How long to wait before the next request of this path.
    pub(super) fn left(&self, path: &str) -> Option<Duration> {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        until.retain(|_, until| *until > now);
        let until = until.get(self.key(path))?;
        Some(until.saturating_duration_since(now))
    }

    fn key<'a>(&self, path: &'a str) -> &'a str {
        let is_by_path = self.is_by_path.then_some(path);
        let path = is_by_path.and_then(|path| path.split('?').next());
        path.unwrap_or_default()
    }

    /// Takes note of an answer: returns how long to wait if it is a refusal because of limits.
    pub(super) fn note(
        &self,
        path: &str,
        headers: &HeaderMap,
        status: StatusCode,
    ) -> Option<Duration> {
        let is_spent = REMAINING
            .iter()
            .any(|name| text(headers, name) == Some("0"));
        let asked = asked(headers);
        let is_refusal = match status.as_u16() {
            429 => true,
            403 => is_spent || asked.is_some(),
            503 => asked.is_some(),
            _ => false,
        };
        if !is_refusal && !is_spent {
            return None;
        }
        let wait = asked.or_else(|| is_spent.then(|| reset(headers)).flatten());
        // A vendor that counts without saying until when refuses by itself.
        let wait = wait.or(is_refusal.then_some(USUAL_WAIT))?.min(MAX_WAIT);
        if let Some(end) = Instant::now().checked_add(wait) {
            let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
            until.insert(self.key(path).to_owned(), end);
        }
        is_refusal.then_some(wait)
    }
}

/// What `Retry-After` asks for: seconds, or a date.
fn asked(headers: &HeaderMap) -> Option<Duration> {
    let after = text(headers, header::RETRY_AFTER.as_str())?.trim();
    if let Ok(seconds) = after.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(after).ok()?;
    Some(at.duration_since(now(headers)?).unwrap_or_default())
}

/// How long it takes until the vendor counts anew: it says seconds since 1970, or seconds from now.
fn reset(headers: &HeaderMap) -> Option<Duration> {
    /// Of a time that began in 2001, no wait.
    const A_TIME: u64 = 1_000_000_000;
    let reset = RESET.iter().find_map(|name| text(headers, name))?;
    let seconds: u64 = reset.trim().parse().ok()?;
    if seconds < A_TIME {
        return Some(Duration::from_secs(seconds));
    }
    let now = now(headers)?.duration_since(UNIX_EPOCH).ok()?;
    Some(Duration::from_secs(seconds).saturating_sub(now))
}

/// The vendor's clock.
fn now(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, header::DATE.as_str())?).ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The pause after an attempt that failed by itself.
pub(super) fn backoff(attempt: u32) -> Duration {
    Duration::from_millis(500u64 << attempt.min(4))
}

/// `try again in 42 s`.
pub(super) fn until(wait: Duration) -> String {
    let seconds = wait.as_secs().max(1);
    match seconds {
        ..=120 => format!("try again in {seconds} s"),
        _ => format!("try again in {} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_client::{HeaderValue, header::HeaderName};

    #[test]
    fn waits_are_read_in_each_form() {
        const DATE: (&str, &str) = ("date", "Sun, 31 Jan 2027 12:00:00 GMT");
        type Headers = &'static [(&'static str, &'static str)];
        let rows: [(u16, Headers, Option<u64>); 11] = [
            (200, &[], None),
            (429, &[("retry-after", "7")], Some(7)),
            (429, &[], Some(60)),
            (
                429,
                &[DATE, ("retry-after", "Sun, 31 Jan 2027 12:00:30 GMT")],
                Some(30),
            ),
            // A date in the past, and one without a clock to compare it with.
            (
                429,
                &[DATE, ("retry-after", "Sun, 31 Jan 2027 11:00:00 GMT")],
                Some(0),
            ),
            (
                429,
                &[("retry-after", "Sun, 31 Jan 2027 12:00:30 GMT")],
                Some(60),
            ),
            (429, &[("retry-after", "soon")], Some(60)),
            (403, &[], None),
            (
                403,
                &[
                    DATE,
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1801396810"),
                ],
                Some(10),
            ),
            (
                403,
                &[("ratelimit-remaining", "0"), ("ratelimit-reset", "12")],
                Some(12),
            ),
            (403, &[("retry-after", "99999999999")], Some(24 * 60 * 60)),
        ];
        for (status, headers, wanted) in rows {
            let map: HeaderMap = headers
                .iter()
                .map(|(name, value)| {
                    let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                    (name, HeaderValue::from_str(value).unwrap())
                })
                .collect();
            let got = Limits::default().note("/x", &map, StatusCode::from_u16(status).unwrap());
            assert_eq!(
                got.map(|wait| wait.as_secs()),
                wanted,
                "{status} {headers:?}"
            );
        }
        assert_eq!(until(Duration::from_secs(121)), "try again in 3 min");
        assert_eq!(until(Duration::ZERO), "try again in 1 s");
    }

    #[test]
    fn a_vendor_may_limit_each_path_by_itself() {
        let refused =
            |of: &Limits| of.note("/a?x=1", &HeaderMap::new(), StatusCode::TOO_MANY_REQUESTS);
        let all = Limits::default();
        let each = Limits::by_path();
        assert!(refused(&all).is_some() && refused(&each).is_some());
        assert!(all.left("/a").is_some() && all.left("/b").is_some());
        assert!(each.left("/a?x=2").is_some() && each.left("/b").is_none());
    }
}
