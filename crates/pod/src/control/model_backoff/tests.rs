//! Which ends of turns begin a pause, and how long it is.

use super::*;
use llm_worker::Usage;

fn end(outcome: Outcome, steps: u64) -> TurnEnd {
    let (answer, refused, shortfall, cost, paused) = (None, None, None, None, None);
    TurnEnd { outcome, answer, refused, shortfall, steps, usage: Usage::default(), cost, paused, held: None }
}

fn failed(kind: ErrorKind, steps: u64) -> TurnEnd {
    end(Outcome::ModelFailed { kind, message: "no route".to_owned(), help: None }, steps)
}

fn unreached() -> TurnEnd {
    failed(ErrorKind::Unavailable, 1)
}

/// Seconds of the pause after each of these.
fn pauses(ends: impl IntoIterator<Item = TurnEnd>) -> Vec<Option<u64>> {
    let mut backoff = ModelBackoff::default();
    let pause = |end: TurnEnd| {
        let pause = backoff.turn_ended(&end);
        assert_eq!(backoff.pause().map(|pause| pause.reason.as_str()), pause.map(|_| "no route"));
        pause.map(|pause| pause.as_secs())
    };
    ends.into_iter().map(pause).collect()
}

#[test]
fn the_pauses_double_up_to_a_quarter_of_an_hour() {
    let expected = [30, 60, 120, 240, 480, 900, 900, 900];
    assert_eq!(pauses((0..8).map(|_| unreached())), expected.map(Some));
    assert_eq!(pauses((0..200).map(|_| unreached())).last(), Some(&Some(900)));
}

#[test]
fn only_a_model_that_cannot_be_reached_begins_one_and_only_its_answer_resets_them() {
    let answered = [
        end(Outcome::Done, 1),
        end(Outcome::Refused, 1),
        end(Outcome::StepLimit, 1),
        end(Outcome::Cancelled, 2),
        failed(ErrorKind::Denied, 2),
    ];
    for turn in answered {
        let what = format!("{turn:?}");
        assert_eq!(pauses([unreached(), turn, unreached()]), [Some(30), None, Some(30)], "{what}");
    }
    let silent = [
        end(Outcome::Cancelled, 1),
        end(Outcome::Interrupted, 1),
        end(Outcome::Aborted { reason: String::new() }, 0),
        end(Outcome::CostLimit, 0),
        failed(ErrorKind::FixInput, 1),
    ];
    for turn in silent {
        let what = format!("{turn:?}");
        assert_eq!(pauses([unreached(), turn, unreached()]), [Some(30), None, Some(60)], "{what}");
    }
    // Its first request was answered.
    assert_eq!(pauses([unreached(), unreached(), failed(ErrorKind::Retry, 2)]), [Some(30), Some(60), Some(30)]);
}
