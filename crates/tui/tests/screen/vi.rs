//! The keys of vi in the composer.

use crate::pod::does;
use crate::pod::{BEGIN, Story, drawn, size, types};
use protocol::method::Cancel;
use protocol::status::DeliveryMode;
use serde_json::json;
use tui::{Intent, Key, Screen, Theme};

fn begun() -> Screen {
    let mut screen = Story::new().screen(Theme::Plain);
    screen.use_vi_keys();
    screen
}

/// The texts that are written, with `|` before the caret.
fn written(screen: &mut Screen) -> String {
    let frame = screen.frame(size(60, 24), BEGIN);
    let (column, at) = frame.cursor.unwrap();
    let rows: Vec<String> = frame.rows.iter().map(tui::Line::text).collect();
    let first = rows.iter().position(|row| row.starts_with("› ")).unwrap();
    let mut texts = Vec::new();
    for (row, text) in rows
        .iter()
        .enumerate()
        .skip(first)
        .take(rows.len() - 1 - first)
    {
        let mut text: String = text.chars().skip(2).collect();
        if row == usize::from(at) {
            let before = text
                .char_indices()
                .map(|(start, _)| start)
                .nth(usize::from(column) - 2);
            text.insert(before.unwrap_or(text.len()), '|');
        }
        texts.push(text);
    }
    texts.join("/")
}

/// Writes a text with the caret at `|`, then types keys; `^` is Esc.
fn after(text: &str, keys: &str) -> String {
    let mut screen = begun();
    let (before, behind) = text.split_once('|').unwrap();
    screen.paste(&format!("{before}{behind}"));
    behind
        .chars()
        .for_each(|_| drop(screen.key(Key::Left, BEGIN)));
    press(&mut screen, keys);
    written(&mut screen)
}

fn press(screen: &mut Screen, keys: &str) {
    for key in keys.chars() {
        screen.key(if key == '^' { Key::Esc } else { Key::Char(key) }, BEGIN);
    }
}

#[test]
fn each_key_does_what_it_does_in_vi() {
    for (text, keys, wanted) in [
        // Moves, each within its line.
        ("one two|", "^", "one tw|o"),
        ("|one", "^h", "|one"),
        ("|one", "^ll", "on|e"),
        ("|one", "^lll", "on|e"),
        ("a\n|bc", "^h", "a/|bc"),
        ("|ab\ncd", "^lll", "a|b/cd"),
        ("ab\nc|d", "^k", "|ab/cd"),
        ("a|b\ncd", "^j", "ab/|cd"),
        ("|one.two three", "^w", "one|.two three"),
        ("|one.two three", "^www", "one.two |three"),
        ("|one\n\ntwo", "^w", "one/|/two"),
        ("|one", "^w", "on|e"),
        ("one two|", "^b", "one |two"),
        ("one two|", "^bb", "|one two"),
        ("|one two", "^e", "on|e two"),
        ("|one two", "^ee", "one tw|o"),
        ("one two|", "^0", "|one two"),
        ("|one two", "^$", "one tw|o"),
        // Cuts, and what was cut.
        ("|abc", "^x", "|bc"),
        ("abc|", "^x", "a|b"),
        ("|abc", "^xp", "b|ac"),
        ("|one two", "^wD", "one| "),
        ("|one two", "^wDp", "one tw|o"),
        ("|one two", "^wCthree", "one three|"),
        ("one\n|two\nthree", "^dd", "one/|three"),
        ("one\n|two", "^dd", "|one"),
        ("|one", "^dd", "|"),
        ("one\n|two\nthree", "^ddp", "one/three/|two"),
        ("one\n  |two", "^kddp", "  two/|one"),
        ("one\n|two", "^ccsix", "one/six|"),
        ("|one", "^dx", "|one"),
        ("|one", "^p", "|one"),
        ("a\n\n|b", "^kddp", "a/b/|"),
        // Letters write again.
        ("  o|ne", "^Ix", "  x|one"),
        ("|one", "^ix", "x|one"),
        ("|one", "^ax", "ox|ne"),
        ("o|ne", "^Ax", "onex|"),
        ("o|ne\ntwo", "^ox", "one/x|/two"),
        ("|", "^ax", "x|"),
        // Undo, also of a cut of two keys and of a paste.
        ("one\n|two", "^ddu", "one/|two"),
        ("|abc", "^xpu", "|bc"),
        ("|日本語 text", "^x", "|本語 text"),
        ("|one", "^q", "|one"),
    ] {
        assert_eq!(after(text, keys), wanted, "{text:?} {keys:?}");
    }
}

#[test]
fn a_paste_that_is_one_piece_is_cut_and_pasted_whole() {
    let mut screen = begun();
    screen.paste("1\n2\n3\n4\n5");
    press(&mut screen, "a^0xpp");
    let sent = screen.key(Key::Enter, BEGIN);
    let text = "a1\n2\n3\n4\n51\n2\n3\n4\n5".to_owned();
    assert!(
        sent.contains(&Intent::Send {
            text,
            mode: DeliveryMode::Queue
        }),
        "{sent:?}"
    );
    assert_eq!(written(&mut screen), "|");
    press(&mut screen, "p");
    assert_eq!(
        written(&mut screen),
        "p|",
        "the next input begins in the mode that writes"
    );
}

#[test]
fn escape_leaves_the_writing_mode_before_it_ends_the_turn() {
    let mut screen = Story::new().input(1, "go").turn(1, 1).screen(Theme::Plain);
    screen.use_vi_keys();
    assert!(
        !screen
            .key(Key::Esc, BEGIN)
            .contains(&does(Cancel::default()))
    );
    assert!(
        screen
            .key(Key::Esc, BEGIN + 5000)
            .contains(&does(Cancel::default()))
    );
    // Without these keys it does so at once.
    let mut screen = Story::new().input(1, "go").turn(1, 1).screen(Theme::Plain);
    assert!(
        screen
            .key(Key::Esc, BEGIN)
            .contains(&does(Cancel::default()))
    );
}

#[test]
fn a_letter_that_is_a_command_answers_no_question() {
    let story =
        Story::new()
            .input(1, "go")
            .turn(1, 1)
            .calls("c1", "Bash", json!({"command": "make"}));
    let story = story.asks(1, "c1", "make", false);
    let asked = |normal: bool| {
        let mut screen = story.screen(Theme::Plain);
        screen.use_vi_keys();
        screen.frame(size(80, 24), story.now());
        if normal {
            screen.key(Key::Esc, story.now());
        }
        screen.frame(size(80, 24), story.now() + 1000);
        screen
            .key(Key::Char('y'), story.now() + 2000)
            .iter()
            .any(|intent| matches!(intent, Intent::Approve { .. }))
    };
    assert_eq!([true, false].map(asked), [false, true]);
}

#[test]
fn the_status_line_says_the_mode() {
    let mut shown = Vec::new();
    for columns in [40, 80] {
        let mut screen = begun();
        types(&mut screen, "text", BEGIN);
        shown.push(drawn(
            &screen.frame(size(columns, 10), BEGIN),
            usize::from(columns),
        ));
        screen.key(Key::Esc, BEGIN);
        shown.push(drawn(
            &screen.frame(size(columns, 10), BEGIN),
            usize::from(columns),
        ));
    }
    insta::assert_snapshot!(shown.join("\n"));
}
