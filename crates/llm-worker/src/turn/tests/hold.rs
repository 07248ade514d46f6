//! Hold at every point of every story: what is pending becomes durable, nothing is outstanding, and after the release
//! the story goes on as if nothing had been.

use super::rig::{EarlyEnd, Owed, Rig, user};
use crate::effect::{Fact, Gated, Outcome, TurnStop};
use crate::item::Item;
use crate::turn::TurnLimits;

const STORIES: &[&[&[&str]]] = &[
    &[&["r:hm", "t:hello", "end"]],
    &[
        &["t:look", "c:ok", "c:no", "c:ok", "tools"],
        &["c:ok", "tools"],
        &["t:fine", "end"],
    ],
    &[&["c:no", "tools"], &["t:so", "pause"], &["t:fine", "end"]],
    &[&["c:ok", "c:halt", "tools"]],
];

/// Pays this many debts, polls this often, and holds; `None` if the story was over before.
fn held_at(story: &[&[&str]], paid: usize, polls: usize) -> Option<Rig> {
    let mut rig = Rig::new(story);
    if rig.go(paid) < paid {
        return None;
    }
    for _ in 0..polls {
        if !rig.poll() {
            return None;
        }
    }
    rig.hold();
    rig.hold();
    rig.go(1_000);
    Some(rig)
}

/// Pays until such a debt is there.
fn until(rig: &mut Rig, wanted: fn(&Owed) -> bool) {
    for _ in 0..200 {
        rig.drain();
        if rig.owed.iter().any(wanted) {
            return;
        }
        rig.go(1);
    }
    panic!("it never came: {:?}", rig.seen);
}

/// The facts of a turn without its commits' borders.
fn facts(rig: &Rig) -> String {
    rig.commits.join(" ")
}

#[test]
fn at_every_point_of_every_story() {
    let mut points = 0;
    let mut held = 0;
    for story in STORIES {
        let natural = Rig::new(story).run();
        for paid in 0.. {
            if held_at(story, paid, 0).is_none() {
                break;
            }
            for mut rig in (0..9).map_while(|polls| held_at(story, paid, polls)) {
                points += 1;
                if rig.outcome.is_none() {
                    held += 1;
                    assert!(
                        rig.turn().is_held() && rig.owed.is_empty(),
                        "{paid}: {:?}",
                        rig.seen
                    );
                    assert!(!rig.poll());
                    rig.release();
                    assert!(!rig.turn().is_held());
                }
                let rig = rig.run();
                assert_eq!(facts(&rig), facts(&natural), "{paid}");
            }
        }
    }
    assert!(points > 120 && held > 70, "{points} {held}");
}

#[test]
fn what_is_pending_is_one_commit_and_none_if_nothing_is() {
    let mut rig = Rig::new(STORIES[1]);
    rig.hold();
    rig.go(9);
    assert_eq!(rig.transcript(), "turn user:go");
    rig.release();
    rig.hold();
    rig.drain();
    assert!(rig.turn().is_held(), "held again without a commit");
    rig.release();
    until(&mut rig, |owed| matches!(owed, Owed::Run(_)));
    rig.hold();
    rig.go(99);
    let first = "turn user:go | request1 | says:look call1:ok call2:no call3:ok stop:ToolUse/0 judged1:allow \
                 judged2:refuse judged3:allow start1 start3 result2:Refused | result1:Ok | result3:Ok";
    assert_eq!(rig.transcript(), first);
    assert!(rig.turn().is_held());
    rig.release();
    let rig = rig.run();
    assert!(
        rig.transcript()
            .starts_with(&format!("{first} | request2 | ")),
        "{}",
        rig.transcript()
    );
}

#[test]
fn a_release_withdraws_a_hold_without_a_trace() {
    let natural = Rig::new(STORIES[1]).run();
    let mut rig = Rig::new(STORIES[1]);
    until(&mut rig, |owed| matches!(owed, Owed::Run(_)));
    rig.hold();
    rig.release();
    rig.release();
    let rig = rig.run();
    assert_eq!((rig.durable, rig.seen), (natural.durable, natural.seen));
}

#[test]
fn a_release_while_the_commit_is_under_way_goes_on_after_it() {
    let mut rig = Rig::new(STORIES[0]);
    rig.hold();
    rig.drain();
    assert!(!rig.turn().is_held(), "the commit is under way");
    rig.release();
    let rig = rig.run();
    assert_eq!(
        rig.transcript(),
        "turn user:go | request1 | thinks:hm says:hello stop:EndTurn/0 end:Done"
    );
}

#[test]
fn gates_that_run_are_asked_again_after_they_answered() {
    let mut rig = Rig::new(STORIES[0]);
    let stop = TurnStop::Aborted {
        reason: "an answer for another time".into(),
    };
    rig.gates = [
        Gated {
            stop: Some(stop),
            ..Gated::default()
        },
        Gated {
            notes: vec![user("second")],
            ..Gated::default()
        },
    ]
    .into();
    rig.drain();
    rig.hold();
    rig.drain();
    assert!(matches!(rig.owed[..], [Owed::Gate, Owed::Commit(_)]));
    rig.pay(1).unwrap();
    rig.drain();
    assert!(rig.turn().is_held());
    rig.release();
    assert!(!rig.poll(), "two answers could not be told apart");
    let rig = rig.run();
    assert!(
        rig.transcript()
            .starts_with("turn user:go | user:second request1 |"),
        "{}",
        rig.transcript()
    );
}

#[test]
fn a_commit_before_a_hold_can_be_refused_and_is_made_again() {
    let mut rig = Rig::new(STORIES[0]);
    rig.hold();
    rig.drain();
    rig.refuse(0);
    assert!(!rig.poll() && !rig.turn().is_held());
    rig.turn().handle(crate::Input::Resume).unwrap();
    rig.go(9);
    assert!(rig.turn().is_held());
    assert_eq!(rig.transcript(), "turn user:go");
}

#[test]
fn an_early_end_ends_a_held_turn() {
    for ((first, second), paid) in EarlyEnd::BOTH
        .into_iter()
        .flat_map(|both| [(both, 0), (both, 1)])
    {
        let mut rig = Rig::new(STORIES[0]);
        rig.hold();
        rig.drain();
        rig.go(paid);
        rig.end_early(first);
        rig.end_early(second);
        let rig = rig.run();
        assert_eq!(
            rig.transcript(),
            format!("turn user:go | end:{:?}", first.outcome()),
            "after {paid}"
        );
    }
}

#[test]
fn a_turn_that_ends_without_another_request_is_not_held() {
    let calls: &[&str] = &["c:ok", "tools"];
    let rows: [(&[&[&str]], u32, Outcome); 3] = [
        (&[&["t:hello", "end"]], 9, Outcome::Done),
        (&[calls], 1, Outcome::StepLimit),
        (
            &[&["c:halt", "tools"]],
            9,
            Outcome::Aborted {
                reason: "enough".into(),
            },
        ),
    ];
    for (story, steps, outcome) in rows {
        let mut rig = Rig::with(vec![user("go")], story, TurnLimits::steps(steps));
        until(&mut rig, |owed| matches!(owed, Owed::Stream(_)));
        rig.hold();
        assert_eq!(rig.run().outcome, Some(outcome));
    }
    let mut rig = Rig::with(
        vec![Item::Assistant {
            text: "I am you".into(),
        }],
        &[],
        TurnLimits::steps(9),
    );
    rig.hold();
    assert!(matches!(
        rig.run().durable.last(),
        Some(Fact::TurnFinished(Outcome::Aborted { .. }))
    ));
}
