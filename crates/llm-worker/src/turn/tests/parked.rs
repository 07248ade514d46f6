//! Calls that wait for a person: what runs beside them, what an answer does, and how a turn ends with them.

use super::rig::{EarlyEnd, Grouped, Owed, Rig, call_id, surface};
use crate::effect::{Effect, Fact, Input, Outcome};
use crate::history::{Counters, History, HistoryError};
use crate::item::{ResultStatus, ToolOutcome};
use crate::turn::{IllegalInput, TurnLimits};
use std::collections::BTreeSet;
use std::sync::Arc;

const BESIDE: &[&[&str]] = &[&["c:ask", "c:ok", "c:ask-no", "tools"], &["t:fine", "end"]];

fn transcript(story: &[&[&str]], answers_first: bool) -> String {
    let mut rig = Rig::new(story);
    loop {
        rig.drain();
        let answer = |owed: &Owed| matches!(owed, Owed::Answer(_)) == answers_first;
        let Some(place) = rig
            .owed
            .iter()
            .position(answer)
            .or_else(|| (!rig.owed.is_empty()).then_some(0))
        else {
            break;
        };
        rig.pay(place).unwrap();
    }
    rig.check_end();
    rig.transcript()
}

#[test]
fn other_calls_run_while_one_waits_and_no_request_is_sent() {
    let asked = "turn user:go request1 | call1:ask call2:ok call3:ask-no stop:ToolUse/0 judged1:ask judged2:allow \
                 judged3:ask parked1 parked3 start2 | ";
    let beside = "result2:Ok | answer1 start1 | result1:Ok | answer3 result3:Refused | request2 | \
                  says:fine stop:EndTurn/0 end:Done";
    assert_eq!(transcript(BESIDE, false), format!("{asked}{beside}"));
    let first = transcript(BESIDE, true);
    assert!(
        first.starts_with(asked) && first.contains("answer1 start1"),
        "{first}"
    );
}

#[test]
fn an_answer_is_committed_at_once_and_the_call_runs_after_it() {
    let mut rig = Rig::new(&[&["c:ask", "tools"]]);
    rig.go(5);
    while !matches!(rig.owed[..], [Owed::Answer(_)]) {
        rig.pay(0).unwrap();
        rig.drain();
    }
    assert!(rig.turn().is_waiting(0) && rig.turn().is_parked(call_id(1)));
    rig.pay(0).unwrap();
    assert!(!rig.turn().is_waiting(0));
    assert!(matches!(rig.turn().poll(), Some(Effect::Commit(request))
        if matches!(request.facts(), [Fact::Resolved(1), Fact::Started { .. }])));
    let again = Input::Resolved {
        id: call_id(1),
        resolution: 1,
        run: Err("late".to_owned()),
    };
    assert_eq!(
        rig.turn().handle(again),
        Err(IllegalInput::Call(call_id(1)))
    );
}

/// Plays until nothing but answers of a person is awaited.
fn waiting(story: &[&[&str]]) -> Rig {
    let mut rig = Rig::new(story);
    loop {
        rig.drain();
        let Some(place) = rig
            .owed
            .iter()
            .position(|owed| !matches!(owed, Owed::Answer(_)))
        else {
            return rig;
        };
        rig.pay(place).unwrap();
    }
}

#[test]
fn a_cancel_ends_the_waiting_calls_and_a_leave_keeps_them() {
    let mut rig = waiting(BESIDE);
    rig.end_early(EarlyEnd::Cancel);
    let rig = rig.run();
    assert!(
        rig.transcript()
            .ends_with("result2:Ok | result1:Cancelled result3:Cancelled end:Cancelled"),
        "{}",
        rig.transcript()
    );
    let mut rig = waiting(BESIDE);
    rig.end_early(EarlyEnd::Leave);
    let rig = rig.run();
    assert_eq!(rig.outcome, Some(Outcome::Waiting));
    assert!(
        rig.transcript().ends_with("result2:Ok | end:Waiting"),
        "{}",
        rig.transcript()
    );
}

#[test]
fn an_answer_that_was_not_on_its_way_is_not_given_when_the_host_leaves() {
    for (how, end) in [
        (EarlyEnd::Leave, "| end:Waiting"),
        (EarlyEnd::Cancel, "| result1:Cancelled end:Cancelled"),
    ] {
        let mut rig = waiting(&[&["c:ask", "tools"]]);
        rig.pay(0).unwrap();
        rig.end_early(how);
        let rig = rig.run();
        assert!(
            rig.transcript().ends_with(end) && !rig.transcript().contains("answer"),
            "{}",
            rig.transcript()
        );
    }
}

#[test]
fn the_next_turn_goes_on_with_the_waiting_calls() {
    let mut rig = waiting(&[&["c:ok", "c:ask", "tools"]]);
    rig.end_early(EarlyEnd::Leave);
    let rig = rig.run();
    let items = rig.items();
    let counters = Counters {
        calls: 2,
        requests: 1,
    };
    let restore = |parked: &[u64]| {
        let parked: BTreeSet<_> = parked.iter().copied().map(call_id).collect();
        History::restore_parked(surface(1), Arc::new(Grouped), &items, counters, &parked)
    };
    assert_eq!(
        restore(&[]).unwrap_err(),
        HistoryError::Unanswered(call_id(2))
    );
    assert_eq!(
        restore(&[1, 2]).unwrap_err(),
        HistoryError::NotOpen(call_id(1))
    );
    let parked = BTreeSet::from([call_id(2)]);
    let mut turn = super::rig::Turn::go_on(restore(&[2]).unwrap(), parked, TurnLimits::steps(5));
    let Some(Effect::Commit(request)) = turn.poll() else {
        panic!("the start is a commit")
    };
    assert_eq!(request.facts(), [Fact::TurnStarted]);
    turn.handle(Input::Committed(super::rig::Ack(request)))
        .unwrap();
    assert!(
        turn.poll().is_none() && turn.is_waiting(0),
        "no request while a call waits"
    );
    let run = Err("denied".to_owned());
    turn.handle(Input::Resolved {
        id: call_id(2),
        resolution: 2,
        run,
    })
    .unwrap();
    let Some(Effect::Commit(request)) = turn.poll() else {
        panic!("the answer is a commit")
    };
    assert!(matches!(
        request.facts(),
        [
            Fact::Resolved(2),
            Fact::Finished {
                outcome: ToolOutcome {
                    status: ResultStatus::Refused,
                    ..
                },
                ..
            }
        ]
    ));
    turn.handle(Input::Committed(super::rig::Ack(request)))
        .unwrap();
    assert!(matches!(turn.poll(), Some(Effect::Gate)), "then it goes on");
}

#[test]
fn a_cut_answer_or_an_aborted_turn_asks_nobody() {
    let rig = Rig::new(&[&["c:ask", "c:halt", "tools"]]).run();
    assert!(
        rig.transcript()
            .ends_with("judged1:ask judged2:abort result1:Cancelled result2:Refused end:Aborted"),
        "{}",
        rig.transcript()
    );
    let mut rig = Rig::new(&[&["c:ask", "max"], &["t:x", "end"]]);
    while !rig.owed.is_empty() || rig.poll() {
        rig.drain();
        if !rig.owed.is_empty() {
            rig.pay(0).unwrap();
        }
    }
    assert!(!rig.transcript().contains("parked"), "{}", rig.transcript());
    // The verdicts of a person belong to parked calls only.
    let mut rig = Rig::new(&[&["c:ok", "tools"]]);
    rig.go(3);
    let stray = Input::Resolved {
        id: call_id(1),
        resolution: 1,
        run: Err(String::new()),
    };
    assert_eq!(
        rig.turn().handle(stray),
        Err(IllegalInput::Call(call_id(1)))
    );
}
