//! An early end at every point of every story: nothing is sent or run after it, the record still ends whole, and the
//! first of `Cancel` and `Leave` decides how.

use super::rig::{EarlyEnd, Owed, Rig};
use crate::effect::{Fact, Outcome};

const STORIES: &[&[&[&str]]] = &[
    &[&["r:hm", "t:hello", "end"]],
    &[
        &["t:look", "c:ok", "c:no", "c:ok", "c:fly", "tools"],
        &["c:ok", "tools"],
        &["t:fine", "end"],
    ],
    &[&["c:halt", "c:ok", "tools"]],
    &[&["c:ask", "c:ok", "c:ask-no", "tools"], &["t:fine", "end"]],
    &[
        &["c:ok", "c:ok", "max"],
        &["t:x", "retry", "t:y", "fail:cut"],
    ],
];

/// Runs a story with both early ends after `paid` payments, `polls` polls later; `None` if the story was over before.
fn ended(
    both: (EarlyEnd, EarlyEnd),
    story: &[&[&str]],
    paid: usize,
    polls: usize,
    last_first: bool,
) -> Option<Rig> {
    let mut rig = Rig::new(story);
    if rig.go(paid) < paid {
        return None;
    }
    for _ in 0..polls {
        if !rig.poll() {
            return None;
        }
    }
    rig.end_early(both.0);
    rig.end_early(both.1);
    rig.drain();
    while !rig.owed.is_empty() {
        let place = if last_first { rig.owed.len() - 1 } else { 0 };
        rig.pay(place).unwrap();
        rig.end_early(both.1);
        rig.drain();
    }
    rig.check_end();
    Some(rig)
}

#[test]
fn at_every_point_of_every_story() {
    for both in EarlyEnd::BOTH {
        let mut points = 0;
        for story in STORIES {
            let mut paid = 0;
            while let Some(rig) = ended(both, story, paid, 0, false) {
                let left = rig.outcome == Some(Outcome::Waiting) && both.0 == EarlyEnd::Leave;
                let too_late = rig.outcome != Some(both.0.outcome()) && !left;
                let natural = Rig::new(story).run();
                assert!(
                    !too_late || rig.durable == natural.durable,
                    "{paid}: {}",
                    rig.transcript()
                );
                for (polls, last_first) in (0..9).flat_map(|polls| [(polls, false), (polls, true)])
                {
                    points += usize::from(ended(both, story, paid, polls, last_first).is_some());
                }
                paid += 1;
            }
        }
        assert!(points > 250, "only {points} points of {both:?}");
    }
}

/// One row per phase: how far the story goes before the early end, and the commits from there on.
#[test]
fn each_phase_has_its_way_out() {
    let story: &[&[&str]] = &[
        &["t:look", "c:ok", "c:no", "c:ok", "tools"],
        &["t:fine", "end"],
    ];
    let first = "turn user:go request1 | ";
    let whole = "says:look call1:ok call2:no call3:ok stop:ToolUse/0 ";
    let started = "judged1:allow judged2:refuse judged3:allow start1 start3 result2:Refused | ";
    let rows: &[(&str, usize, usize, String)] = &[
        ("before the gates", 0, 0, "turn user:go end:".into()),
        ("gating", 0, 1, "turn user:go end:".into()),
        ("sending, not handed out", 1, 0, format!("{first}end:")),
        ("sending", 1, 1, format!("{first}end:")),
        ("cleared", 2, 0, format!("{first}end:")),
        ("streaming", 2, 1, format!("{first}end:")),
        ("streaming a call", 7, 0, format!("{first}end:")),
        (
            "judging, nothing judged",
            13,
            0,
            format!("{first}{whole}result1:Cancelled result2:Cancelled result3:Cancelled end:"),
        ),
        (
            "judging, two judged",
            15,
            0,
            format!(
                "{first}{whole}judged1:allow judged2:refuse result1:Cancelled result2:Refused result3:Cancelled end:"
            ),
        ),
        (
            "starting",
            16,
            1,
            format!("{first}{whole}{started}result1:Cancelled result3:Cancelled end:"),
        ),
        (
            "started, nothing handed out",
            17,
            0,
            format!("{first}{whole}{started}result1:Cancelled result3:Cancelled end:"),
        ),
        (
            "one handed out, one not",
            17,
            1,
            format!("{first}{whole}{started}result3:Cancelled | result1:Cancelled end:"),
        ),
        (
            "running both",
            17,
            2,
            format!("{first}{whole}{started}result1:Cancelled | result3:Cancelled end:"),
        ),
        (
            "one done",
            18,
            0,
            format!("{first}{whole}{started}result1:Ok | result3:Cancelled end:"),
        ),
    ];
    for (both, (name, paid, polls, commits)) in EarlyEnd::BOTH
        .iter()
        .flat_map(|both| rows.iter().map(move |row| (both, row)))
    {
        let rig = ended(*both, story, *paid, *polls, false).expect(name);
        let end = format!("end:{:?}", both.0.outcome());
        assert_eq!(
            rig.transcript(),
            commits.replace("end:", &end),
            "{name}: {both:?}"
        );
    }
}

#[test]
fn an_early_end_tells_the_stream_and_the_open_calls_once() {
    let story: &[&[&str]] = &[&["t:look", "c:ok", "c:ok", "tools"]];
    for both in EarlyEnd::BOTH {
        let count = |rig: &Rig, what: &str| rig.seen.iter().filter(|seen| *seen == what).count();
        let streaming = ended(both, story, 3, 0, false).unwrap();
        assert_eq!(count(&streaming, "cancel model"), 1);
        let running = ended(both, story, 13, 2, false).unwrap();
        assert_eq!(
            (count(&running, "cancel 1"), count(&running, "cancel 2")),
            (1, 1)
        );
    }
}

#[test]
fn a_call_that_ended_well_in_spite_of_the_early_end_says_so() {
    for (how, _) in EarlyEnd::BOTH {
        let mut rig = Rig::new(&[&["c:ok", "tools"]]);
        while !matches!(rig.owed.last(), Some(Owed::Run(_))) {
            rig.go(1);
            rig.drain();
        }
        rig.end_early(how);
        rig.pay(0).unwrap();
        let rig = rig.run();
        assert!(
            rig.transcript().contains("start1 | result1:Ok end:"),
            "{}",
            rig.transcript()
        );
        assert_eq!(rig.durable.last(), Some(&Fact::TurnFinished(how.outcome())));
    }
}
