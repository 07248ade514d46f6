//! What is retried, and how long it waits.

use super::*;
use crate::vendor_error::VendorError;
use http_client::HttpErrorKind;

fn status(status: u16, wait: Option<u64>, label: &str) -> Failure {
    let error = VendorError { labels: vec![label.to_owned()], ..VendorError::saying("no") };
    Failure::refused(Some(status), wait.map(Duration::from_secs), &error, "m".to_owned())
}

#[test]
fn what_is_retried_and_how_long_it_waits() {
    let plain = |cause| Failure::new(cause, "m");
    let ms = |ms| RetryDecision::Again(Duration::from_millis(ms));
    let table = [
        ("first wait", 1, plain(HttpErrorKind::Connect), 0.0, ms(500)),
        ("jitter takes half at most", 1, plain(HttpErrorKind::Connect), 1.0, ms(250)),
        ("doubled", 3, plain(HttpErrorKind::Cut), 0.0, ms(2000)),
        ("bounded", 4, plain(HttpErrorKind::Timeout), 0.0, ms(4000)),
        ("attempts used up", 5, plain(HttpErrorKind::Timeout), 0.0, RetryDecision::GiveUp),
        ("malformed", 1, plain(HttpErrorKind::Malformed), 0.0, ms(500)),
        ("TLS", 1, plain(HttpErrorKind::Tls), 0.0, RetryDecision::GiveUp),
        ("asked for", 1, status(429, Some(7), ""), 0.9, ms(7000)),
        ("asked for nothing", 1, status(503, Some(0), ""), 0.9, ms(0)),
        ("at the bound", 1, status(503, Some(120), ""), 0.0, ms(120_000)),
        ("over the bound", 1, status(429, Some(121), ""), 0.0, RetryDecision::TooLong(Duration::from_secs(121))),
        ("over the bound, last", 5, status(429, Some(121), ""), 0.0, RetryDecision::TooLong(Duration::from_secs(121))),
        ("quota", 1, status(429, Some(1), "insufficient_quota"), 0.0, RetryDecision::GiveUp),
        ("not invalid in mid-stream", 1, status(400, None, ""), 0.0, RetryDecision::GiveUp),
    ];
    for (case, attempt, failure, jitter, want) in table {
        assert_eq!(RetryPolicy::USUAL.after(attempt, &failure, jitter), want, "{case}");
    }
    for code in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        assert_eq!(RetryPolicy::USUAL.after(1, &status(code, None, ""), 0.0), ms(500), "{code}");
    }
    for code in [400, 401, 402, 403, 404, 413, 422, 501] {
        assert_eq!(RetryPolicy::USUAL.after(1, &status(code, None, ""), 0.0), RetryDecision::GiveUp, "{code}");
    }
    let patient = RetryPolicy { attempts: 40, ..RetryPolicy::USUAL };
    assert_eq!(patient.after(39, &plain(HttpErrorKind::Cut), 0.0), ms(30_000), "no overflow, and bounded");
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
