//! Turns that make a call which no model proposed: one commit before it runs, one behind it, and no request.

use super::rig::{Ack, EarlyEnd, Grouped, Host, Owed, Rig, Turn, call_id, surface, user};
use crate::effect::{Effect, Fact, Input, NewCall, Outcome};
use crate::history::{Counters, History};
use crate::item::{CallId, Item};
use crate::turn::TurnLimits;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Plays until nothing but answers of a person is awaited.
fn begun(name: &str) -> Rig {
    let mut rig = Rig::new(&[]).calling(name);
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
fn the_turn_ends_with_the_result_and_sends_nothing() {
    let rows = [
        ("ok", "judged1:allow start1 | result1:Ok end:Done"),
        ("no", "judged1:refuse result1:Refused | end:Done"),
        ("fly", "judged1:invalid result1:Error | end:Done"),
        ("halt", "judged1:abort result1:Refused end:Aborted"),
        (
            "ask",
            "judged1:ask parked1 | answer1 start1 | result1:Ok end:Done",
        ),
        (
            "ask-no",
            "judged1:ask parked1 | answer1 result1:Refused | end:Done",
        ),
    ];
    for (name, rest) in rows {
        let rig = Rig::new(&[]).calling(name).run();
        assert_eq!(
            rig.transcript(),
            format!("turn user:go call1:{name} {rest}")
        );
        assert!(
            !rig.seen
                .iter()
                .any(|seen| seen.starts_with("send") || seen == "gate"),
            "{:?}",
            rig.seen
        );
    }
}

#[test]
fn an_early_end_is_that_of_any_turn() {
    for (how, _) in EarlyEnd::BOTH {
        let mut rig = Rig::new(&[]).calling("ok");
        rig.drain();
        rig.end_early(how);
        let end = how.outcome();
        assert_eq!(
            rig.run().transcript(),
            format!("turn user:go call1:ok result1:Cancelled end:{end:?}")
        );
    }
    let mut rig = begun("ask");
    rig.end_early(EarlyEnd::Leave);
    assert_eq!(rig.run().outcome, Some(Outcome::Waiting));
}

#[test]
fn a_call_that_waited_ends_its_next_turn_too() {
    let mut rig = begun("ask");
    rig.end_early(EarlyEnd::Leave);
    let items = rig.run().items();
    let parked = BTreeSet::from([call_id(1)]);
    let counters = Counters {
        calls: 1,
        requests: 0,
    };
    let history =
        History::restore_parked(surface(1), Arc::new(Grouped), &items, counters, &parked).unwrap();
    let mut turn = Turn::go_on(history, parked, TurnLimits::steps(5)).ending_with_calls();
    let answer = Input::Resolved {
        id: call_id(1),
        resolution: 1,
        run: Err("denied".to_owned()),
    };
    let mut answer = Some(answer);
    loop {
        match turn.poll() {
            Some(Effect::Commit(request)) => turn.handle(Input::Committed(Ack(request))).unwrap(),
            Some(Effect::Finished(outcome)) => break assert_eq!(outcome, Outcome::Done),
            Some(other) => panic!("{other:?}"),
            None => turn.handle(answer.take().unwrap()).unwrap(),
        }
    }
}

#[test]
fn what_cannot_be_stored_leaves_no_result_without_its_call() {
    for (name, commits) in [("ok", "turn end:Aborted"), ("no", "turn end:Aborted")] {
        let mut rig = Rig::new(&[]).calling(name);
        while !matches!(rig.owed[..], [Owed::Commit(_)]) {
            rig.drain();
            if let [Owed::Judge(_)] = rig.owed[..] {
                rig.pay(0).unwrap();
            }
        }
        rig.cannot_store(0).unwrap();
        assert_eq!(rig.run().transcript(), commits, "{name}");
    }
}

#[test]
fn without_a_number_for_the_call_the_turn_says_so() {
    let counters = Counters {
        calls: CallId::MAX,
        requests: 0,
    };
    let history =
        History::restore(surface(1), Arc::new(Grouped), Vec::<Item>::new(), counters).unwrap();
    let call = NewCall {
        name: "ok".to_owned(),
        arguments: "{}".to_owned(),
    };
    let mut turn = Turn::start_call(history, vec![user("go")], call, TurnLimits::steps(5));
    let Some(Effect::Commit(request)) = turn.poll() else {
        panic!("a commit")
    };
    let is_end =
        |fact: &Fact<Host>| matches!(fact, Fact::TurnFinished(Outcome::ModelFailed { .. }));
    assert!(
        request.facts().last().is_some_and(is_end),
        "{:?}",
        request.facts()
    );
}
