//! How long the pauses are, and what ends a row of failures.

use super::*;
use llm_worker::{StopReason, Usage};

fn retrying(delay: Duration) -> ModelEvent {
    ModelEvent::Retrying {
        attempt: 1,
        delay,
        why: "no route".to_owned(),
    }
}

/// Seconds of this many pauses in a row.
fn pauses(backoff: &mut ModelBackoff, count: usize) -> Vec<u64> {
    (0..count)
        .map(|_| backoff.next_pause().1.as_secs())
        .collect()
}

#[test]
fn the_pauses_double_up_to_a_quarter_of_an_hour() {
    let mut backoff = ModelBackoff::default();
    assert_eq!(
        pauses(&mut backoff, 8),
        [30, 60, 120, 240, 480, 900, 900, 900]
    );
    assert_eq!(pauses(&mut backoff, 200).last(), Some(&900));
    assert_eq!(backoff.next_pause().0, 209);
}

#[tokio::test(start_paused = true)]
async fn only_a_whole_answer_ends_the_row_of_failures() {
    let parts = [
        ModelEvent::Text("half".to_owned()),
        ModelEvent::Reasoning("hm".to_owned()),
        ModelEvent::CallStarted {
            index: 0,
            name: "Read".to_owned(),
        },
        ModelEvent::Usage(Usage::default()),
    ];
    for (event, next, since_ms) in parts.into_iter().map(|part| (part, 60, 1)).chain([(
        ModelEvent::Stop(StopReason::EndTurn),
        30,
        7,
    )]) {
        let mut backoff = ModelBackoff::default();
        backoff.next_pause();
        backoff.take(&retrying(Duration::from_millis(29_001)), 1000);
        let wait = ModelRetry {
            reason: "no route".to_owned(),
            retry_in_s: 30,
            since_ms: Some(1),
        };
        assert_eq!(backoff.wait(), Some(wait), "{event:?}");
        backoff.take(&event, 5000);
        assert_eq!(backoff.wait(), None, "{event:?}");
        backoff.take(&retrying(Duration::ZERO), 7000);
        let again = backoff.wait().map(|wait| (wait.retry_in_s, wait.since_ms));
        assert_eq!(
            (again, backoff.next_pause().1.as_secs()),
            (Some((0, Some(since_ms))), next),
            "{event:?}"
        );
    }
}
