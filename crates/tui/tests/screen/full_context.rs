//! The question of a pod whose context is full: what it looks like, and which keys answer it.

use crate::pod::does;
use crate::pod::{SIZES, Story, drawn, size, types};
use protocol::method::Role;
use protocol::method::{Compact, Resume};
use serde_json::json;
use tui::{ConnectionState, Intent, Key, Reply, Screen, Theme};

/// A turn that ended because its next request did not fit.
fn full() -> Story {
    let story = Story::new()
        .input(1, "read all files")
        .turn(1, 1)
        .says("I read them.");
    story.with(
        "turn_finished",
        json!({"turn": 1, "outcome": {"outcome": "context_limit"}}),
    )
}

/// A provider that says so with an error made a hold that the screen did not show, and no question.
#[test]
fn a_provider_may_say_that_it_is_full() {
    let failed = |kind: &str, help: &str| {
        let outcome =
            json!({"outcome": "model_failed", "kind": kind, "message": "too long", "help": help});
        let story = Story::new()
            .input(1, "read all files")
            .turn(1, 1)
            .with("turn_finished", json!({"turn": 1, "outcome": outcome}));
        drawn(
            &story.screen(Theme::Plain).frame(size(80, 24), story.now()),
            80,
        )
    };
    let drops = "`yoi compact NAME --drop-turns` continues it";
    let table = [
        ("exhausted", drops, "waiting for you: the context is full"),
        (
            "exhausted",
            "add credit",
            "waiting for you (/resume): too long",
        ),
        ("denied", "check the key", "held: too long"),
        ("unavailable", "try again", "idle"),
    ];
    for (kind, help, status) in table {
        let frame = failed(kind, help);
        assert!(frame.contains(status), "{kind}: {frame}");
        assert_eq!(
            frame.contains("drop the oldest turns"),
            help == drops,
            "{kind}: {frame}"
        );
    }
}

/// Its screen, at which the question was seen for longer than the dead time.
fn asked() -> (Screen, u64) {
    let story = full();
    let mut screen = story.screen(Theme::Plain);
    screen.frame(size(80, 24), story.now());
    (screen, story.now() + 400)
}

fn shown(screen: &mut Screen, now: u64) -> String {
    drawn(&screen.frame(size(80, 24), now), 80)
}

fn presses(screen: &mut Screen, key: char, now: u64) -> Vec<Intent> {
    let intents = screen.key(Key::Char(key), now);
    intents
        .into_iter()
        .filter(|intent| !matches!(intent, Intent::SetDraft(_)))
        .collect()
}

#[test]
fn a_context_that_is_full() {
    let story = full();
    let frame = |(columns, rows)| {
        let mut screen = story.screen(Theme::Plain);
        drawn(
            &screen.frame(size(columns, rows), story.now()),
            usize::from(columns),
        )
    };
    insta::assert_snapshot!(SIZES.map(frame).join("\n"));
}

#[test]
fn each_key_does_what_its_command_does() {
    let answers = [
        ('1', drop_turns()),
        ('2', does(Resume::default())),
        ('3', Intent::Stop),
    ];
    for (key, intent) in answers {
        let (mut screen, now) = asked();
        assert_eq!(presses(&mut screen, key, now), [intent], "{key}");
        assert!(shown(&mut screen, now).contains("the answer is on its way"));
        assert!(
            presses(&mut screen, key, now + 1000).is_empty(),
            "{key} twice"
        );
        // After a refusal it can be answered again.
        screen.answered(Reply::Failed("no".to_owned()));
        screen.frame(size(80, 24), now + 1000);
        assert_eq!(
            presses(&mut screen, '2', now + 2000),
            [does(Resume::default())],
            "{key}"
        );
    }
}

#[test]
fn other_letters_begin_an_input() {
    let (mut screen, now) = asked();
    types(&mut screen, "stop", now);
    assert!(shown(&mut screen, now).contains("› stop"));
    assert!(shown(&mut screen, now).contains("F4, then 1, 2 or 3"));
    assert!(presses(&mut screen, '3', now + 1000).is_empty());
    assert!(shown(&mut screen, now + 1000).contains("› stop3"));
    screen.key(Key::F(4), now + 1100);
    assert!(
        presses(&mut screen, '1', now + 1200).is_empty(),
        "within the dead time"
    );
    screen.frame(size(80, 24), now + 1200);
    assert_eq!(presses(&mut screen, '1', now + 2000), [drop_turns()]);
    assert!(shown(&mut screen, now + 2000).contains("› stop3"));
}

#[test]
fn a_key_from_before_the_question_answers_nothing() {
    let story = full();
    let mut screen = story.screen(Theme::Plain);
    screen.frame(size(80, 24), story.now());
    assert!(presses(&mut screen, '1', story.now() + 299).is_empty());
    for unseen in [Screen::several_keys, Screen::not_shown] {
        let (mut screen, now) = asked();
        unseen(&mut screen);
        assert!(presses(&mut screen, '3', now + 9000).is_empty());
    }
}

#[test]
fn who_may_not_write_here_may_not_answer() {
    let story = full();
    let mut viewer = Screen::begin(&story.attached(), Role::Viewer, Theme::Plain);
    assert!(shown(&mut viewer, story.now()).contains("cannot answer now"));
    assert!(viewer.key(Key::Char('1'), story.now() + 1000).is_empty());
    let (mut screen, now) = asked();
    screen.connection(ConnectionState::Lost("gone".to_owned()));
    assert!(presses(&mut screen, '1', now).is_empty());
}

#[test]
fn the_question_goes_with_the_hold() {
    let story = full();
    let (mut screen, now) = asked();
    assert!(screen.title().starts_with("1 waiting"));
    assert_eq!(
        screen.notification().as_deref(),
        Some("night waits for you: the context is full")
    );
    screen.key(Key::F(4), now);
    let over = story.with("compact_requested", json!({"drop_turns": true}));
    screen.event(over.events().last().unwrap());
    assert!(!shown(&mut screen, now).contains("the context is full: "));
    assert!(!shown(&mut screen, now).contains("1 drop"));
    assert!(presses(&mut screen, '1', now + 1000).is_empty());
    assert!(shown(&mut screen, now + 1000).contains("› 1"));
}

// A turn whose answer a gate at its end refused ended with "done" on the screen, and nothing told of the refusal.
#[test]
fn an_answer_that_is_not_accepted_is_not_done_on_the_screen() {
    let judged = |end_gates: Option<bool>, decisions: &[&str]| {
        let outcome = json!({"outcome": "done"});
        let finished = match end_gates {
            Some(end_gates) => json!({"turn": 1, "outcome": outcome, "end_gates": end_gates}),
            None => json!({"turn": 1, "outcome": outcome}),
        };
        let mut story = Story::new()
            .input(1, "go")
            .turn(1, 1)
            .says("Here it is.")
            .with("turn_finished", finished);
        for decision in decisions {
            let verdict = json!({"decision": decision, "rule": "turn_end", "reason": "no list",
                "hook": "check", "feature": "person:lists", "turn": 1});
            story = story.with("verdict", verdict);
        }
        let frame = story.screen(Theme::Plain).frame(size(80, 24), story.now());
        drawn(&frame, 80)
    };
    let refused = "the answer is not accepted by the hook check of person:lists";
    for (end_gates, decisions, line, is_refused) in [
        (None, &[][..], "turn 1: done", false),
        (Some(true), &[], "turn 1: answered", false),
        (Some(true), &["allow"], "turn 1: answered", false),
        (Some(true), &["allow", "again"], "turn 1: answered", true),
    ] {
        let frame = judged(end_gates, decisions);
        assert!(frame.contains(line), "{decisions:?}: {frame}");
        assert_eq!(frame.contains(refused), is_refused, "{frame}");
        assert_eq!(frame.contains("done"), line.ends_with("done"), "{frame}");
    }
}

fn drop_turns() -> Intent {
    does(Compact {
        drop_turns: true,
        ..Compact::default()
    })
}
