//! The question of a pod whose context is full: what it looks like, and which keys answer it.

use crate::pod::{SIZES, Story, drawn, size, types};
use protocol::method::Role;
use serde_json::json;
use tui::{ConnectionState, Intent, Key, Reply, Screen, Theme};

/// A turn that ended because its next request did not fit.
fn full() -> Story {
    let story = Story::new().input(1, "read all files").turn(1, 1).says("I read them.");
    story.with("turn_finished", json!({"turn": 1, "outcome": {"outcome": "context_limit"}}))
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
    intents.into_iter().filter(|intent| !matches!(intent, Intent::SetDraft(_))).collect()
}

#[test]
fn a_context_that_is_full() {
    let story = full();
    let frame = |(columns, rows)| {
        let mut screen = story.screen(Theme::Plain);
        drawn(&screen.frame(size(columns, rows), story.now()), usize::from(columns))
    };
    insta::assert_snapshot!(SIZES.map(frame).join("\n"));
}

#[test]
fn each_key_does_what_its_command_does() {
    let answers =
        [('1', Intent::Compact { drop_turns: true }), ('2', Intent::Resume { more: false }), ('3', Intent::Stop)];
    for (key, intent) in answers {
        let (mut screen, now) = asked();
        assert_eq!(presses(&mut screen, key, now), [intent], "{key}");
        assert!(shown(&mut screen, now).contains("the answer is on its way"));
        assert!(presses(&mut screen, key, now + 1000).is_empty(), "{key} twice");
        // After a refusal it can be answered again.
        screen.answered(Reply::Failed("no".to_owned()));
        screen.frame(size(80, 24), now + 1000);
        assert_eq!(presses(&mut screen, '2', now + 2000), [Intent::Resume { more: false }], "{key}");
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
    assert!(presses(&mut screen, '1', now + 1200).is_empty(), "within the dead time");
    screen.frame(size(80, 24), now + 1200);
    assert_eq!(presses(&mut screen, '1', now + 2000), [Intent::Compact { drop_turns: true }]);
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
fn an_answer_of_before_is_no_news() {
    let story = Story::new().input(1, "go").turn(1, 1).calls("c1", "Bash", json!({"command": "make"}));
    let story = story.asks(1, "c1", "make", false);
    let allowed = json!({"approval": 1, "decision": "allow", "arguments_digest": "digest-1"});
    let story = story.with("approval_resolved", allowed);
    let news = "approval 1: allowed once";
    assert!(shown(&mut story.screen(Theme::Plain), story.now()).contains(news), "to who was there");
    let mut later = Screen::begin(&story.attached(), Role::Driver, Theme::Plain);
    assert!(!shown(&mut later, story.now()).contains(news));
}

#[test]
fn the_question_goes_with_the_hold() {
    let story = full();
    let (mut screen, now) = asked();
    assert!(screen.title().starts_with("1 waiting"));
    assert_eq!(screen.notification().as_deref(), Some("night waits for you: the context is full"));
    screen.key(Key::F(4), now);
    let over = story.with("compact_requested", json!({"drop_turns": true}));
    screen.event(over.events().last().unwrap());
    assert!(!shown(&mut screen, now).contains("the context is full: "));
    assert!(!shown(&mut screen, now).contains("1 drop"));
    assert!(presses(&mut screen, '1', now + 1000).is_empty());
    assert!(shown(&mut screen, now + 1000).contains("› 1"));
}
