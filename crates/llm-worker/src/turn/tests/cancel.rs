//! Cancel at every point of every story: nothing is sent or run after it, and the record still ends whole.

use super::rig::{Owed, Rig};
use crate::effect::{Fact, Outcome};

const STORIES: &[&[&[&str]]] = &[
    &[&["r:hm", "t:hello", "end"]],
    &[&["t:look", "c:ok", "c:no", "c:ok", "c:fly", "tools"], &["c:ok", "tools"], &["t:fine", "end"]],
    &[&["c:halt", "c:ok", "tools"]],
    &[&["c:ok", "c:ok", "max"], &["t:x", "retry", "t:y", "fail:cut"]],
];

/// Runs a story with a cancel after `paid` payments, `polls` polls later; answers whether the story was still going.
fn cancelled(story: &[&[&str]], paid: usize, polls: usize, last_first: bool) -> Option<Rig> {
    let mut rig = Rig::new(story);
    if rig.go(paid) < paid {
        return None;
    }
    for _ in 0..polls {
        if !rig.poll() {
            return None;
        }
    }
    rig.cancel();
    rig.cancel();
    rig.drain();
    while !rig.owed.is_empty() {
        let place = if last_first { rig.owed.len() - 1 } else { 0 };
        rig.pay(place).unwrap();
        rig.drain();
    }
    rig.check_end();
    Some(rig)
}

#[test]
fn at_every_point_of_every_story() {
    let mut points = 0;
    for story in STORIES {
        let mut paid = 0;
        while let Some(rig) = cancelled(story, paid, 0, false) {
            let too_late = rig.outcome != Some(Outcome::Cancelled);
            let natural = Rig::new(story).run();
            assert!(!too_late || rig.durable == natural.durable, "{paid}: {}", rig.transcript());
            for (polls, last_first) in (0..9).flat_map(|polls| [(polls, false), (polls, true)]) {
                points += usize::from(cancelled(story, paid, polls, last_first).is_some());
            }
            paid += 1;
        }
    }
    assert!(points > 250, "only {points} points");
}

/// One row per phase: how far the story goes before the cancel, and the commits from there on.
#[test]
fn each_phase_has_its_way_out() {
    let story: &[&[&str]] = &[&["t:look", "c:ok", "c:no", "c:ok", "tools"], &["t:fine", "end"]];
    let first = "turn user:go request1 | ";
    let whole = "says:look call1:ok call2:no call3:ok stop:ToolUse/0 ";
    let started = "judged1:allow judged2:refuse judged3:allow start1 start3 result2:Refused | ";
    let rows: &[(&str, usize, usize, String)] = &[
        ("ungated", 0, 0, "turn user:go end:Cancelled".into()),
        ("gating", 0, 1, "turn user:go end:Cancelled".into()),
        ("sending, not handed out", 1, 0, format!("{first}end:Cancelled")),
        ("sending", 1, 1, format!("{first}end:Cancelled")),
        ("cleared", 2, 0, format!("{first}end:Cancelled")),
        ("streaming", 2, 1, format!("{first}end:Cancelled")),
        ("streaming a call", 7, 0, format!("{first}end:Cancelled")),
        (
            "judging, nothing judged",
            13,
            0,
            format!("{first}{whole}result1:Cancelled result2:Cancelled result3:Cancelled end:Cancelled"),
        ),
        (
            "judging, two judged",
            15,
            0,
            format!(
                "{first}{whole}judged1:allow judged2:refuse result1:Cancelled result2:Refused result3:Cancelled end:Cancelled"
            ),
        ),
        ("starting", 16, 1, format!("{first}{whole}{started}result1:Cancelled result3:Cancelled end:Cancelled")),
        (
            "started, nothing handed out",
            17,
            0,
            format!("{first}{whole}{started}result1:Cancelled result3:Cancelled end:Cancelled"),
        ),
        (
            "one handed out, one not",
            17,
            1,
            format!("{first}{whole}{started}result3:Cancelled | result1:Cancelled end:Cancelled"),
        ),
        ("running both", 17, 2, format!("{first}{whole}{started}result1:Cancelled | result3:Cancelled end:Cancelled")),
        ("one done", 18, 0, format!("{first}{whole}{started}result1:Ok | result3:Cancelled end:Cancelled")),
    ];
    for (name, paid, polls, commits) in rows {
        let rig = cancelled(story, *paid, *polls, false).expect(name);
        assert_eq!(rig.transcript(), *commits, "{name}");
    }
}

#[test]
fn a_cancel_tells_the_stream_and_the_open_calls() {
    let story: &[&[&str]] = &[&["t:look", "c:ok", "c:ok", "tools"]];
    let streaming = cancelled(story, 3, 0, false).unwrap();
    assert_eq!(streaming.seen.iter().filter(|what| *what == "cancel model").count(), 1);
    let running = cancelled(story, 13, 2, false).unwrap();
    assert!(running.seen.contains(&"cancel 1".to_owned()) && running.seen.contains(&"cancel 2".to_owned()));
}

#[test]
fn a_call_that_ended_well_in_spite_of_the_cancel_says_so() {
    let mut rig = Rig::new(&[&["c:ok", "tools"]]);
    while !matches!(rig.owed.last(), Some(Owed::Run(_))) {
        rig.go(1);
        rig.drain();
    }
    rig.turn().handle(crate::Input::Cancel).unwrap();
    rig.pay(0).unwrap();
    let rig = rig.run();
    assert!(rig.transcript().ends_with("start1 | result1:Ok end:Cancelled"), "{}", rig.transcript());
    assert!(rig.durable.contains(&Fact::TurnFinished(Outcome::Cancelled)));
}
