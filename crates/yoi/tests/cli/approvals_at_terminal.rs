//! What waits for approval is answered at a terminal, and only by what is typed behind the question.

use crate::approvals::Asked;
use crate::hosts::newest;
use crate::person::AtTerminal;
use rustix::process::Signal;

const PROMPT: &str = "allow this call? y: once; n, or n WORDS for the model: deny; s: not now: ";

#[test]
fn the_inbox_takes_answers_that_are_typed_behind_the_question() {
    let asked = Asked::start();
    let scene = &asked.scene;
    let mut person = AtTerminal::start(scene, "y\ny\n", &["approve"]);
    for shown in [
        "p 1  Bash (sandbox off)",
        "command: echo ran >> made",
        "requires your approval",
    ] {
        person.sees(shown);
    }
    person.sees(PROMPT);
    for nothing in ["\n", "always\n", "yy\n", "p\n"] {
        person.types(nothing);
        person.sees(PROMPT);
    }
    assert_eq!(
        asked.kinds("approval_resolved"),
        0,
        "what was typed before, or is no answer, answers nothing"
    );
    person.types("y\n");
    person.sees("allowed: Bash echo ran >> made");
    person.ends(0);
    asked.done();
    assert_eq!(scene.read("made"), "ran\n");
    AtTerminal::start(scene, "", &["approve"]).ends(0);
    asked.host.as_ref().unwrap().end(Signal::TERM);
    scene.sound("p");
}

/// So that no part of it looks like a line of the command.
#[test]
fn a_question_that_is_wider_than_the_terminal_goes_on_behind_a_margin() {
    let asked = Asked::start();
    let mut person = AtTerminal::start_drawing(&asked.scene, 44, false, &["approve"]);
    person.sees("p 1  Bash (sandbox off)\r\n    command: echo ran >> made\r\n");
    person.sees("\r\n    │ ");
    person.sees("for the model: deny; s: not now: ");
    person.types("s\n");
    let shown = person.ends(0);
    let begins = |line: &str| {
        line.starts_with("p 1  Bash") || line.starts_with("  ") || line.trim().is_empty()
    };
    assert!(
        shown
            .lines()
            .all(|line| begins(line) && line.chars().count() <= 44),
        "{shown}"
    );
    asked.host.as_ref().unwrap().end(Signal::TERM);
}

#[test]
fn what_is_not_answered_goes_on_waiting() {
    let asked = Asked::start();
    let scene = &asked.scene;
    for leave in ["s\n", "\u{4}"] {
        let mut person = AtTerminal::start(scene, "", &["approve", "p"]);
        person.sees(PROMPT);
        person.types(leave);
        person.ends(0);
    }
    let listed = AtTerminal::start(scene, "", &["approve", "--json"]).ends(0);
    assert!(
        listed.contains("\"approval\":1") && !listed.contains(PROMPT),
        "{listed}"
    );
    assert_eq!(
        (asked.state(), asked.kinds("approval_resolved")),
        ("waiting".into(), 0)
    );
    let mut person = AtTerminal::start(scene, "", &["approve"]);
    person.sees(PROMPT);
    person.types("n not today\n");
    person.sees("denied: Bash");
    person.ends(0);
    asked.done();
    let result = newest(scene, "tool_finished").unwrap();
    assert_eq!(
        result["outcome"]["summary"],
        "a person denied this call: not today"
    );
    asked.host.as_ref().unwrap().end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn an_answer_behind_another_one_says_which_counts() {
    let asked = Asked::start();
    let scene = &asked.scene;
    let mut person = AtTerminal::start(scene, "", &["approve"]);
    person.sees(PROMPT);
    scene.yoi(&["approve", "p", "1", "--deny"]).ends(0);
    person.types("y\n");
    person.sees("approval 1 was already denied by yoi approve");
    person.ends(1);
    asked.done();
    assert!(!scene.file("made").exists());
    asked.host.as_ref().unwrap().end(Signal::TERM);
}
