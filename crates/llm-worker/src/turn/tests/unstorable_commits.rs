//! Commits that can never be stored: the turn ends, and what is durable is closed.

use super::rig::{EarlyEnd, Owed, Rig};
use crate::effect::{Input, Outcome};
use crate::item::ResultStatus;
use crate::turn::IllegalInput;

const STORY: &[&[&str]] = &[
    &["t:look", "c:ok", "c:no", "c:ok", "tools"],
    &["t:fine", "end"],
];

/// Pays until commit number `nth` is in flight, and answers its place; the commit before anything else.
fn go_to_commit(rig: &mut Rig, nth: usize) -> usize {
    for _ in 0..200 {
        rig.drain();
        let commit = rig
            .owed
            .iter()
            .position(|owed| matches!(owed, Owed::Commit(_)));
        match commit {
            Some(place) if rig.commits.len() + 1 == nth => return place,
            place => rig.pay(place.unwrap_or(0)).unwrap(),
        }
    }
    panic!("commit {nth} never came: {:?}", rig.seen);
}

/// The commits after the one with this number, which could not be stored.
fn without(nth: usize) -> Rig {
    let mut rig = Rig::new(STORY);
    let place = go_to_commit(&mut rig, nth);
    rig.cannot_store(place).unwrap();
    let rig = rig.run();
    assert_eq!(
        rig.outcome,
        Some(Outcome::Aborted {
            reason: "too large".into()
        }),
        "commit {nth}"
    );
    rig
}

#[test]
fn the_turn_ends_with_what_is_left() {
    let first = "turn user:go request1";
    let answer = "says:look call1:ok call2:no call3:ok stop:ToolUse/0 judged1:allow judged2:refuse judged3:allow start1 \
                  start3 result2:Refused";
    let rows = [
        (1, "turn end:Aborted".to_owned()),
        (2, format!("{first} | end:Aborted")),
        (
            3,
            format!("{first} | {answer} | result1:Ok | result3:Cancelled end:Aborted"),
        ),
        (
            4,
            format!("{first} | {answer} | result1:Ok | result3:Ok end:Aborted"),
        ),
        (
            5,
            format!("{first} | {answer} | result1:Ok | result3:Ok request2 | end:Aborted"),
        ),
    ];
    for (nth, commits) in rows {
        assert_eq!(without(nth).transcript(), commits, "commit {nth}");
    }
}

#[test]
fn a_result_that_cannot_be_stored_keeps_its_status_and_says_so() {
    let rig = without(3);
    let item = rig
        .items()
        .into_iter()
        .find(|item| matches!(item, crate::Item::ToolResult { id, .. } if id.number() == 1));
    let Some(crate::Item::ToolResult { outcome, .. }) = item else {
        panic!("a result")
    };
    assert_eq!(
        (outcome.status, &*outcome.text()),
        (
            ResultStatus::Ok,
            "the call ended, but its result could not be stored"
        )
    );
    assert!(
        rig.seen.contains(&"cancel 3".to_owned()),
        "the other call is ended"
    );
}

#[test]
fn a_result_beside_a_request_gets_a_second_chance() {
    let mut rig = Rig::new(STORY);
    let place = go_to_commit(&mut rig, 4);
    rig.cannot_store(place).unwrap();
    let place = go_to_commit(&mut rig, 4);
    rig.cannot_store(place).unwrap();
    let rig = rig.run();
    assert!(
        rig.transcript()
            .ends_with(" | result1:Ok | result3:Ok end:Aborted"),
        "{}",
        rig.transcript()
    );
    assert!(format!("{:?}", rig.durable).contains("could not be stored"));
}

#[test]
fn an_end_that_cannot_be_stored_is_the_hosts_to_handle() {
    let mut rig = Rig::new(STORY);
    for nth in [1, 1] {
        let place = go_to_commit(&mut rig, nth);
        match rig.cannot_store(place) {
            Ok(()) => assert_eq!(rig.outcome, None),
            Err(error) => {
                assert_eq!(error, IllegalInput::EndUnstorable);
                assert!(rig.turn().suspended());
                rig.turn().handle(Input::Resume).unwrap();
                assert_eq!(rig.run().transcript(), "turn end:Aborted");
                return;
            }
        }
    }
    panic!("nothing was left to drop");
}

#[test]
fn another_end_is_tried_before_the_host_gives_up() {
    let mut rig = Rig::new(&[&["fail:no route"]]);
    let place = go_to_commit(&mut rig, 2);
    rig.cannot_store(place).unwrap();
    assert_eq!(
        rig.run().transcript(),
        "turn user:go request1 | end:Aborted"
    );
}

#[test]
fn an_early_end_gives_the_reason_why_it_is_incomplete() {
    for ((first, _), nth) in EarlyEnd::BOTH
        .into_iter()
        .flat_map(|both| (1..=5).map(move |nth| (both, nth)))
    {
        let mut rig = Rig::new(STORY);
        let place = go_to_commit(&mut rig, nth);
        rig.end_early(first);
        rig.cannot_store(place).unwrap();
        let rig = rig.run();
        assert_eq!(
            rig.outcome,
            Some(Outcome::Aborted {
                reason: "too large".into()
            }),
            "commit {nth}"
        );
    }
}

#[test]
fn a_hold_that_cannot_be_stored_ends_the_turn() {
    let mut rig = Rig::new(STORY);
    rig.hold();
    let place = go_to_commit(&mut rig, 1);
    rig.cannot_store(place).unwrap();
    assert_eq!(rig.run().transcript(), "turn end:Aborted");
}
