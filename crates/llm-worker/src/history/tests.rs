//! What is a history and what is not.

use super::{Counters, History, HistoryError};
use crate::ErrorKind;
use crate::item::{CallId, Item, ResultStatus, ToolOutcome};
use crate::projection::{Neutral, Surface, neutral};
use std::sync::Arc;

fn surface(generation: u64) -> Surface {
    Surface {
        generation,
        model: "m".into(),
        system: "s".into(),
        tools: Vec::new(),
        max_output: None,
        effort: None,
        thinking: false,
        media: Vec::new(),
    }
}

fn id(number: u64) -> CallId {
    CallId::new(number).unwrap()
}

fn user() -> Item {
    Item::user("go")
}

fn call(number: u64) -> Item {
    Item::ToolCall {
        id: id(number),
        name: "Read".into(),
        arguments: "{".into(),
    }
}

fn result(number: u64) -> Item {
    Item::ToolResult {
        id: id(number),
        outcome: ToolOutcome::of(ResultStatus::Ok, "a\nb"),
    }
}

fn restore(items: &[Item], calls: u64) -> Result<History, HistoryError> {
    History::restore(
        surface(2),
        Arc::new(Neutral),
        items,
        Counters { calls, requests: 4 },
    )
}

#[test]
fn every_call_has_one_result_and_a_number_that_rises() {
    use HistoryError::{Numbered, Unanswered, Unasked};
    let cases: &[(&[Item], u64, Result<(), HistoryError>)] = &[
        (&[], 0, Ok(())),
        (&[user(), call(1), call(2), result(2), result(1)], 2, Ok(())),
        (&[call(1), result(1), call(7), result(7)], 9, Ok(())),
        (&[call(1), user()], 1, Err(Unanswered(id(1)))),
        (&[call(1), result(1), result(1)], 1, Err(Unasked(id(1)))),
        (&[result(3)], 3, Err(Unasked(id(3)))),
        (
            &[call(2), result(2), call(1), result(1)],
            2,
            Err(Numbered(id(1))),
        ),
        (
            &[call(1), result(1), call(1), result(1)],
            2,
            Err(Numbered(id(1))),
        ),
        (&[call(3), result(3)], 2, Err(Numbered(id(3)))),
    ];
    for (items, calls, wanted) in cases {
        let got = restore(items, *calls);
        assert_eq!(
            got.as_ref().map(|_| ()).map_err(|error| *error),
            *wanted,
            "{items:?}"
        );
        match got {
            Ok(history) => {
                // Results stand in the order of their calls.
                let mut wanted = items.to_vec();
                if let [
                    ..,
                    two @ Item::ToolResult { .. },
                    one @ Item::ToolResult { .. },
                ] = &mut wanted[..]
                {
                    std::mem::swap(one, two);
                }
                assert_eq!(
                    neutral::decode(&history.body().to_vec()).unwrap().items,
                    wanted
                );
                assert_eq!(
                    history.counters(),
                    Counters {
                        calls: *calls,
                        requests: 4
                    }
                );
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt),
        }
    }
}
