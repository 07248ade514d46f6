//! The screen that prints what is finished: each cell once, in order, and never again.

use crate::pod::{BEGIN, Story, size, text, types};
use serde_json::json;
use tui::{Key, Line, Screen, Theme};

fn texts(lines: &[Line]) -> Vec<String> {
    lines
        .iter()
        .map(|line| line.text().trim_end().to_owned())
        .collect()
}

/// What a frame prints, and what it draws below.
fn drawn(screen: &mut Screen, now: u64) -> (Vec<String>, Vec<String>) {
    let (printed, frame) = screen.inline_frame(size(60, 20), now);
    assert!(
        frame.rows.len() <= 20
            && frame
                .rows
                .iter()
                .chain(&printed)
                .all(|row| row.width() <= 60)
    );
    if let Some((column, row)) = frame.cursor {
        assert!(column < 60 && usize::from(row) < frame.rows.len());
    }
    (texts(&printed), texts(&frame.rows))
}

fn story() -> Story {
    let command = json!({ "command": "make" });
    let story = Story::new()
        .input(1, "build it")
        .turn(1, 1)
        .says("I run make.");
    let story = story
        .calls("c1", "Bash", command.clone())
        .starts("c1", "Bash", command);
    let story = story
        .ends("c1", "ok", "exit 0", "built")
        .says("It is built.")
        .response()
        .finished(1);
    story
        .input(2, "and again")
        .turn(2, 2)
        .says("Done before.")
        .finished(2)
}

#[test]
fn each_cell_is_printed_once_and_in_order_wherever_frames_fall() {
    let story = story();
    let whole = {
        let mut screen = story.screen(Theme::Plain);
        drawn(&mut screen, story.now()).0
    };
    for wanted in [
        "> build it",
        "I run make.",
        "It is built.",
        "> and again",
        "Done before.",
    ] {
        assert_eq!(
            whole.iter().filter(|row| *row == wanted).count(),
            1,
            "{wanted}: {whole:#?}"
        );
    }
    for every in 1..6 {
        let mut screen = Story::new().screen(Theme::Plain);
        let mut printed = Vec::new();
        for (at, event) in story.events().iter().enumerate() {
            screen.event(event);
            if at % every == 0 {
                printed.extend(drawn(&mut screen, story.now()).0);
            }
        }
        printed.extend(drawn(&mut screen, story.now()).0);
        assert_eq!(printed, whole, "a frame after {every} events");
        assert_eq!(drawn(&mut screen, story.now()).0, Vec::<String>::new());
    }
}

#[test]
fn what_still_changes_is_drawn_below_and_printed_when_it_is_finished() {
    let story = story();
    let end = story
        .lines
        .iter()
        .position(|line| line.as_str().contains("tool_finished"))
        .unwrap();
    let mut screen = Story::new().screen(Theme::Plain);
    story.events()[..end]
        .iter()
        .for_each(|event| screen.event(event));
    let (printed, below) = drawn(&mut screen, story.now());
    assert!(
        printed.contains(&"I run make.".to_owned())
            && !printed.iter().any(|row| row.contains("Bash")),
        "{printed:#?}"
    );
    assert!(
        below.iter().any(|row| row.contains("Bash make")),
        "{below:#?}"
    );
    screen.event(&story.events()[end]);
    let (printed, below) = drawn(&mut screen, story.now());
    assert!(
        printed.iter().any(|row| row.contains("Bash make"))
            && !below.iter().any(|row| row.contains("Bash"))
    );
}

#[test]
fn of_an_answer_under_way_the_end_is_seen() {
    let story = Story::new().input(1, "go").turn(1, 1);
    let mut screen = story.screen(Theme::Plain);
    drawn(&mut screen, story.now());
    (0..50).for_each(|n| screen.event(&text(&format!("line {n}\n\n"))));
    let (printed, below) = drawn(&mut screen, story.now());
    assert_eq!(printed, Vec::<String>::new());
    assert!(
        below.len() == 20 && below.iter().any(|row| row == "line 49"),
        "{below:#?}"
    );
}

#[test]
fn a_question_waits_below_and_keys_that_need_a_screen_do_nothing() {
    let story =
        Story::new()
            .input(1, "go")
            .turn(1, 1)
            .calls("c1", "Bash", json!({ "command": "make" }));
    let story = story.asks(1, "c1", "make", true);
    let mut screen = story.screen(Theme::Plain);
    let (printed, below) = drawn(&mut screen, story.now());
    assert!(
        printed.iter().any(|row| row == "> go") && !printed.iter().any(|row| row.contains("Bash")),
        "{printed:#?}"
    );
    assert!(
        below.iter().any(|row| row == "? approval 1: Bash"),
        "{below:#?}"
    );
    for key in [
        Key::PageUp,
        Key::WheelUp,
        Key::CtrlHome,
        Key::AltUp,
        Key::Ctrl('f'),
    ] {
        screen.key(key, BEGIN);
        let (printed, now) = drawn(&mut screen, BEGIN);
        assert_eq!(printed, Vec::<String>::new(), "{key:?}");
        assert!(
            now.iter().any(|row| row == "? approval 1: Bash")
                && !now.iter().any(|row| row.contains("copies")),
            "{key:?}"
        );
    }
    types(&mut screen, "a text", BEGIN);
    assert!(
        drawn(&mut screen, BEGIN)
            .1
            .iter()
            .any(|row| row == "› a text")
    );
    screen.key(Key::F(1), BEGIN);
    assert!(
        drawn(&mut screen, BEGIN)
            .1
            .iter()
            .any(|row| row.starts_with("── keys"))
    );
}
