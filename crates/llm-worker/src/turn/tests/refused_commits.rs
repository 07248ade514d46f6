//! A disk that refuses: at every commit of a story, the machine stops and makes the same commit again.

use super::rig::{EarlyEnd, Owed, Rig};
use crate::effect::{Input, Outcome};

const STORY: &[&[&str]] = &[
    &["t:look", "c:ok", "c:no", "c:ok", "tools"],
    &["t:fine", "end"],
];

/// Pays until commit number `nth` is in flight; `false` when the story has no more.
fn go_to_commit(rig: &mut Rig, nth: usize) -> bool {
    loop {
        rig.drain();
        if rig.owed.is_empty() {
            return false;
        }
        if rig.commits.len() + 1 == nth && matches!(rig.owed.first(), Some(Owed::Commit(_))) {
            return true;
        }
        rig.pay(0).unwrap();
    }
}

#[test]
fn every_commit_can_be_refused_and_is_made_again() {
    let natural = Rig::new(STORY).run().durable;
    let mut refused = 0;
    for nth in 1.. {
        let mut rig = Rig::new(STORY);
        if !go_to_commit(&mut rig, nth) {
            break;
        }
        for _ in 0..3 {
            rig.refuse(0);
            assert!(!rig.poll(), "went on without its disk");
            rig.turn().handle(Input::Resume).unwrap();
            assert!(!rig.turn().suspended());
            assert!(rig.poll());
        }
        let rig = rig.run();
        assert_eq!(rig.durable, natural, "commit {nth}");
        refused = nth;
    }
    assert_eq!(refused, 5);
}

#[test]
fn calls_that_run_may_end_while_suspended_and_nothing_starts() {
    let mut rig = Rig::new(&[&["c:ok", "c:ok", "c:ok", "tools"], &["t:fine", "end"]]);
    assert!(go_to_commit(&mut rig, 2));
    rig.pay(0).unwrap();
    rig.drain();
    rig.pay(0).unwrap();
    rig.drain();
    let commit = rig
        .owed
        .iter()
        .position(|owed| matches!(owed, Owed::Commit(_)))
        .unwrap();
    rig.refuse(commit);
    rig.pay(0).unwrap();
    rig.pay(0).unwrap();
    assert!(!rig.poll());
    rig.turn().handle(Input::Resume).unwrap();
    let rig = rig.run();
    assert!(
        rig.transcript()
            .contains("| result1:Ok | result2:Ok result3:Ok request2 |"),
        "{}",
        rig.transcript()
    );
}

#[test]
fn an_early_end_while_suspended_waits_for_the_disk() {
    for ((first, second), nth) in EarlyEnd::BOTH
        .into_iter()
        .flat_map(|both| (1..=5).map(move |nth| (both, nth)))
    {
        let mut rig = Rig::new(STORY);
        assert!(go_to_commit(&mut rig, nth));
        rig.refuse(0);
        rig.end_early(first);
        rig.drain();
        assert!(rig.turn().suspended());
        rig.end_early(second);
        rig.turn().handle(Input::Resume).unwrap();
        let rig = rig.run();
        let wanted = if nth == 5 {
            Outcome::Done
        } else {
            first.outcome()
        };
        assert_eq!(rig.outcome, Some(wanted), "{nth}: {}", rig.transcript());
    }
}
