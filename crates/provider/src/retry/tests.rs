//! What is retried, and how long it waits.

use super::*;
use crate::vendor_error::VendorError;
use http_client::HttpErrorKind;
use std::time::UNIX_EPOCH;

fn status(status: u16, wait: Option<u64>, label: &str) -> Failure {
    let error = VendorError {
        labels: vec![label.to_owned()],
        ..VendorError::saying("no")
    };
    let advice = RetryAdvice {
        wait: wait.map(Duration::from_secs),
        again: None,
    };
    Failure::refused(Some(status), advice, &error, "m".to_owned())
}

/// The first of these attempts failed just now, and none brought a part of an answer.
fn nth(attempt: u32) -> Attempts {
    Attempts {
        attempt,
        ..Attempts::default()
    }
}

// Five attempts in 7 s ended the turns of a night, where others try for one to three minutes.
#[test]
fn a_request_is_tried_for_about_three_minutes() {
    for (jitter, most) in [(0.0, 13), (0.5, 16), (1.0, 19)] {
        for failure in [
            Failure::new(HttpErrorKind::Connect(None), "m"),
            status(429, None, ""),
            status(529, None, ""),
        ] {
            let mut failed = nth(1);
            while let RetryDecision::Again(delay) =
                RetryPolicy::USUAL.after(failed, &failure, jitter)
            {
                (failed.attempt, failed.elapsed) = (failed.attempt + 1, failed.elapsed + delay);
            }
            let seconds = failed.elapsed.as_secs();
            assert!(
                (180..=210).contains(&seconds) && failed.attempt <= most,
                "{jitter}: {seconds} s, {failed:?}"
            );
        }
    }
    let cut = Failure::new(HttpErrorKind::Cut, "m");
    let stall = Failure::new(HttpErrorKind::Timeout, "m");
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    // Each attempt that brought a part of an answer may be paid, and a stall takes its whole timeout.
    for (case, failed, failure, gives_up) in [
        (
            "the fourth answer that was cut",
            Attempts { begun: 4, ..nth(4) },
            &cut,
            false,
        ),
        (
            "the fifth answer that was cut",
            Attempts { begun: 5, ..nth(5) },
            &cut,
            true,
        ),
        ("cut before its first word", nth(5), &cut, false),
        ("the first stall", nth(1), &stall, false),
        (
            "the second stall",
            Attempts {
                elapsed: minutes(5),
                ..nth(2)
            },
            &stall,
            true,
        ),
    ] {
        let decision = RetryPolicy::USUAL.after(failed, failure, 0.0);
        assert_eq!(
            decision == RetryDecision::GiveUp,
            gives_up,
            "{case}: {decision:?}"
        );
    }
}

#[test]
fn what_is_retried_and_how_long_it_waits() {
    let plain = |cause| Failure::new(cause, "m");
    let ms = |ms| RetryDecision::Again(Duration::from_millis(ms));
    let table = [
        (
            "first wait",
            1,
            plain(HttpErrorKind::Connect(None)),
            0.0,
            ms(500),
        ),
        (
            "jitter takes half at most",
            1,
            plain(HttpErrorKind::Connect(None)),
            1.0,
            ms(250),
        ),
        ("doubled", 3, plain(HttpErrorKind::Cut), 0.0, ms(2000)),
        ("bounded", 4, plain(HttpErrorKind::Timeout), 0.0, ms(4000)),
        (
            "growing to the bound",
            9,
            plain(HttpErrorKind::Connect(None)),
            0.0,
            ms(30_000),
        ),
        (
            "attempts used up",
            20,
            plain(HttpErrorKind::Timeout),
            0.0,
            RetryDecision::GiveUp,
        ),
        (
            "malformed",
            1,
            plain(HttpErrorKind::Malformed),
            0.0,
            ms(500),
        ),
        (
            "TLS",
            1,
            plain(HttpErrorKind::Tls),
            0.0,
            RetryDecision::GiveUp,
        ),
        ("asked for", 1, status(429, Some(7), ""), 0.9, ms(7000)),
        (
            "asked for nothing: our own wait",
            1,
            status(503, Some(0), ""),
            0.0,
            ms(500),
        ),
        (
            "asked for nothing again: it grows",
            3,
            status(503, Some(0), ""),
            0.0,
            ms(2000),
        ),
        (
            "asked for less than our own wait",
            4,
            status(429, Some(1), ""),
            0.0,
            ms(4000),
        ),
        (
            "at the bound",
            1,
            status(503, Some(120), ""),
            0.0,
            ms(120_000),
        ),
        (
            "over the bound",
            1,
            status(429, Some(121), ""),
            0.0,
            RetryDecision::TooLong(Duration::from_secs(121)),
        ),
        (
            "over the bound, last",
            20,
            status(429, Some(121), ""),
            0.0,
            RetryDecision::TooLong(Duration::from_secs(121)),
        ),
        (
            "quota",
            1,
            status(429, Some(1), "insufficient_quota"),
            0.0,
            RetryDecision::GiveUp,
        ),
        (
            "not invalid in mid-stream",
            1,
            status(400, None, ""),
            0.0,
            RetryDecision::GiveUp,
        ),
    ];
    for (case, attempt, failure, jitter, want) in table {
        assert_eq!(
            RetryPolicy::USUAL.after(nth(attempt), &failure, jitter),
            want,
            "{case}"
        );
    }
    for code in [408, 409, 425, 429, 500, 502, 503, 504, 521, 529] {
        assert_eq!(
            RetryPolicy::USUAL.after(nth(1), &status(code, None, ""), 0.0),
            ms(500),
            "{code}"
        );
    }
    let advised = |code, again| {
        let advice = RetryAdvice {
            wait: None,
            again: Some(again),
        };
        Failure::refused(
            Some(code),
            advice,
            &VendorError::saying("no"),
            "m".to_owned(),
        )
    };
    assert_eq!(
        RetryPolicy::USUAL.after(nth(1), &advised(409, false), 0.0),
        RetryDecision::GiveUp
    );
    assert_eq!(
        RetryPolicy::USUAL.after(nth(1), &advised(503, false), 0.0),
        RetryDecision::GiveUp
    );
    assert_eq!(
        RetryPolicy::USUAL.after(nth(1), &advised(400, true), 0.0),
        ms(500)
    );
    for code in [400, 401, 402, 403, 404, 413, 422, 501] {
        assert_eq!(
            RetryPolicy::USUAL.after(nth(1), &status(code, None, ""), 0.0),
            RetryDecision::GiveUp,
            "{code}"
        );
    }
    let patient = RetryPolicy {
        attempts: 40,
        ..RetryPolicy::USUAL
    };
    assert_eq!(
        patient.after(nth(39), &plain(HttpErrorKind::Cut), 0.0),
        ms(30_000),
        "no overflow, and bounded"
    );
}

/// pi#9595, librefang#4257: dates in the older forms were not read, and `Retry-After: 0` used up all attempts at once.
#[test]
fn the_headers_that_ask_to_wait() {
    let now = UNIX_EPOCH + Duration::from_secs(784_111_777 - 30);
    let after = |value| [("retry-after", value)];
    let both = |ms, seconds| [("retry-after-ms", ms), ("retry-after", seconds)];
    type Row<'a> = (&'a [(&'a str, &'a str)], Option<f64>);
    let table: [Row<'_>; 18] = [
        (&after("5"), Some(5.0)),
        (&after(" 0.25 "), Some(0.25)),
        (&after("0"), Some(0.0)),
        (&after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(30.0)),
        (&after("Sun, 06 Nov 1994 08:48:37 GMT"), Some(0.0)),
        (&after("Thu, 29 Feb 1996 00:00:00 GMT"), Some(41_440_253.0)),
        (&after("Sunday, 06-Nov-94 08:49:37 GMT"), Some(30.0)),
        (&after("Sun Nov  6 08:49:37 1994"), Some(30.0)),
        (&after("4s"), Some(4.0)),
        (&after("\"4\""), Some(4.0)),
        (&after("4, 4"), Some(4.0)),
        (&after("Sun, 06 Nov 1994 08:49:37 +0000"), Some(30.0)),
        (&after("-1"), None),
        (&after("soon"), None),
        (&after("Sun, 99 Nov 1994 08:49:37 GMT"), None),
        (&both("1500", "7"), Some(1.5)),
        (&both("soon", "7"), Some(7.0)),
        (&[], None),
    ];
    for (headers, want) in table {
        let read = advice(
            |name| {
                headers
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| *value)
            },
            now,
        );
        assert_eq!(
            read.wait.map(|wait| wait.as_secs_f64()),
            want,
            "{headers:?}"
        );
        assert_eq!(read.again, None);
    }
    for (value, want) in [
        ("true", Some(true)),
        ("false", Some(false)),
        ("maybe", None),
    ] {
        assert_eq!(
            advice(|name| (name == "x-should-retry").then_some(value), now).again,
            want,
            "{value}"
        );
    }
}

#[test]
fn the_system_jitter_varies_within_its_range() {
    let jitter = Pacing::system().jitter;
    let drawn: Vec<f64> = (0..32).map(|_| jitter()).collect();
    assert!(
        drawn.iter().all(|x| (0.0..=1.0).contains(x)) && drawn.iter().any(|x| x != &drawn[0]),
        "{drawn:?}"
    );
}
