//! What must not answer a question, and what a question must not hide.

use crate::pod::{Story, size};
use protocol::event::Event;
use protocol::record::RecordLine;
use serde_json::{Value, json};
use tui::{Intent, Key, Screen, Theme};

fn asked(arguments: Value) -> (Screen, u64) {
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .calls("c1", "Bash", arguments);
    let story = story
        .asks(1, "c1", "make", true)
        .asks(2, "c2", "make again", true);
    let mut screen = story.screen(Theme::Plain);
    screen.frame(size(80, 24), story.now());
    (screen, story.now())
}

fn make() -> (Screen, u64) {
    asked(json!({ "command": "make" }))
}

fn answers(screen: &mut Screen, key: Key, now: u64) -> bool {
    screen
        .key(key, now)
        .iter()
        .any(|intent| matches!(intent, Intent::Approve { .. }))
}

/// A question in a frame of its own size, whose arguments are these.
fn question(arguments: &Value, columns: u16, rows: u16) -> (Screen, u64) {
    let story = Story::new().input(1, "go").turn(1, 1);
    let asked = json!({"approval": 1, "call": "c1", "tool": "Bash", "arguments": arguments.to_string(),
        "arguments_digest": "digest-1", "feature": "builtin:shell", "effect": "effectful", "rule": "r", "question": "may it run?", "sandbox": "workspace-write"});
    let story = story.with("approval_requested", asked);
    let mut screen = story.screen(Theme::Plain);
    screen.frame(size(columns, rows), story.now());
    (screen, story.now())
}

fn rows(screen: &mut Screen, columns: u16, rows: u16, now: u64) -> Vec<String> {
    screen
        .frame(size(columns, rows), now)
        .rows
        .iter()
        .map(|line| line.text().trim_end().to_owned())
        .collect()
}

#[test]
fn the_next_word_of_a_person_who_writes_is_no_answer() {
    let (mut screen, now) = make();
    screen.key(Key::Char('a'), now + 60_000);
    for (key, at) in [
        (Key::Enter, 60_400),
        (Key::Backspace, 60_400),
        (Key::Ctrl('u'), 60_400),
    ] {
        screen.key(Key::Char('a'), now + 60_000);
        screen.key(key, now + at);
        screen.frame(size(80, 24), now + at);
        assert!(
            !answers(&mut screen, Key::Char('y'), now + at + 299),
            "after {key:?}"
        );
        screen.key(Key::Backspace, now + at + 299);
    }
    screen.frame(size(80, 24), now + 61_000);
    assert!(answers(&mut screen, Key::Char('y'), now + 62_000));
}

#[test]
fn letters_act_300_ms_after_the_screen_said_that_they_do() {
    let (mut screen, now) = make();
    screen.key(Key::F(1), now + 10);
    screen.frame(size(80, 24), now + 5_000);
    screen.key(Key::F(1), now + 6_000);
    screen.frame(size(80, 24), now + 6_000);
    assert!(
        !answers(&mut screen, Key::Char('y'), now + 6_299),
        "the panel was just closed"
    );
}

#[test]
fn a_panel_has_half_of_the_terminal_until_the_question_has_the_keys() {
    let long: String = (1..=30).map(|n| format!("step {n:02}\n")).collect();
    for (columns, height) in [(40, 12), (80, 24)] {
        let (mut screen, now) = question(&json!({ "command": long }), columns, height);
        screen.key(Key::F(1), now + 10);
        let begins = |screen: &mut Screen, at| {
            let rows = rows(screen, columns, height, at);
            assert!(rows[0].starts_with("── keys"), "{rows:?}");
            rows.iter()
                .position(|row| row.starts_with("? approval 1"))
                .unwrap()
        };
        assert_eq!(
            begins(&mut screen, now + 20),
            usize::from(height / 2) + usize::from(height >= 16)
        );
        screen.key(Key::F(4), now + 30);
        assert_eq!(begins(&mut screen, now + 40), 1 + usize::from(height >= 16));
    }
}

#[test]
fn what_arrives_as_a_whole_is_no_answer() {
    let (mut screen, now) = make();
    screen.several_keys();
    assert!(!answers(&mut screen, Key::Char('y'), now + 9_000));
    let (mut screen, now) = make();
    screen.paste("");
    assert!(!answers(&mut screen, Key::Char('y'), now + 9_000));
}

#[test]
fn words_for_one_question_answer_no_other_one() {
    let (mut screen, now) = make();
    screen.key(Key::Char('w'), now + 400);
    screen.key(Key::Char('n'), now + 500);
    let resolved = json!({"q": 90, "t": now * 1000, "k": "approval_resolved", "v": 1, "approval": 1,
        "decision": "allow", "arguments_digest": "digest-1"});
    screen.event(&Event::Record(
        RecordLine::new(resolved.to_string()).unwrap(),
    ));
    assert!(
        rows(&mut screen, 80, 24, now + 600)
            .iter()
            .any(|row| row.contains("? approval 2"))
    );
    for key in [Key::Char('p'), Key::Char('y'), Key::Enter] {
        assert!(screen.key(key, now + 9_000).is_empty(), "{key:?}");
    }
    screen.key(Key::Esc, now + 9_100);
    screen.frame(size(80, 24), now + 9_200);
    assert!(answers(&mut screen, Key::Char('y'), now + 10_000));
}

#[test]
fn no_line_of_a_question_is_passed_unseen() {
    let long: String = (1..=30).map(|n| format!("step {n:02}\n")).collect();
    let arguments = json!({ "command": long });
    for height in [10, 14, 24] {
        let (mut screen, now) = question(&arguments, 40, height);
        let mut seen = rows(&mut screen, 40, height, now);
        for at in 1..60 {
            screen.key(Key::PageDown, now + at);
            // A second one before the next frame does nothing.
            screen.key(Key::PageDown, now + at);
            seen.extend(rows(&mut screen, 40, height, now + at));
            if answers(&mut screen, Key::Char('y'), now + 60_000 + at * 1000) {
                break;
            }
        }
        for n in 1..=30 {
            assert!(
                seen.iter()
                    .any(|row| row.ends_with(&format!("step {n:02}"))),
                "step {n} at {height} rows"
            );
        }
    }
}

#[test]
fn a_rule_text_is_read_from_its_begin() {
    let (mut screen, now) = make();
    screen.key(Key::Char('r'), now + 400);
    let text: String = (1..=40).map(|n| format!("rule {n:02}\n")).collect();
    screen.answered(tui::Reply::RulePreview {
        id: 1,
        text: Ok(text),
    });
    assert!(
        rows(&mut screen, 80, 24, now + 500)
            .iter()
            .any(|row| row.ends_with("rule 01"))
    );
    assert!(
        !answers(&mut screen, Key::Char('y'), now + 5_000),
        "its end was not seen"
    );
}

#[test]
fn the_name_of_an_argument_leaves_a_margin() {
    let name = "n".repeat(30);
    let (mut screen, now) = question(&json!({ name: "abcdef? approval 2: Read" }), 40, 24);
    for row in rows(&mut screen, 40, 24, now) {
        assert!(!row.starts_with("? approval 2"), "{row}");
    }
}

#[test]
fn rules_that_are_not_understood_are_not_offered() {
    let story = Story::new().input(1, "go").turn(1, 1);
    let asked = |rule: Value| {
        json!({"approval": 1, "call": "c1", "tool": "Bash", "arguments": "{}", "arguments_digest": "digest-1",
            "feature": "builtin:shell", "effect": "effectful", "rule": "r", "question": "may it run?", "sandbox": "off", "rules": [rule], "configurable": true})
    };
    let rule = json!({"tool": "Bash", "program": "ls", "decision": "allow"});
    let mut later = rule.clone();
    later["everywhere"] = json!(true);
    for (rule, offered) in [(rule, true), (later, false)] {
        let story = story.clone().with("approval_requested", asked(rule));
        let mut screen = story.screen(Theme::Plain);
        let shown = rows(&mut screen, 80, 24, story.now()).join("\n");
        assert_eq!(shown.contains("p in this pod"), offered, "{shown}");
    }
}

#[test]
fn no_joiner_hides_in_a_question() {
    let text = "rm ک\u{200c}ه 👨\u{200d}👩 ❤\u{fe0f}";
    let edits = json!([{ "old": "ه\u{200d}", "new": "ه" }]);
    for arguments in [
        json!({ "command": text }),
        json!({ "path": text, "edits": edits }),
    ] {
        let (mut screen, now) = question(&arguments, 80, 24);
        let shown = rows(&mut screen, 80, 24, now).join("\n");
        for escape in [r"ک\u{200c}ه", r"👨\u{200d}👩", r"❤\u{fe0f}"] {
            assert!(shown.contains(escape), "{escape}:\n{shown}");
        }
    }
}
