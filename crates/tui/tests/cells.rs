//! Whatever a model, a tool or a file says: no line is too wide, nothing acts on a terminal, nothing is lost.

use authority::text::{Lines, find};
use proptest::prelude::*;
use std::time::Duration;
use tui::{
    CallBody, CallCell, CallState, Line, Span, Theme, Tone, diff, finished, joined, labelled,
    markdown,
};

/// Texts with what is difficult in Markdown, for widths and for terminals.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,12}",
        2 => Just(" ".to_owned()),
        2 => Just("\n".to_owned()),
        2 => r"[-*_#>`~|+.:!&;<\[\]()\\\t0-9 \r]{1,6}",
        1 => "(日本|語|한국|👩\u{200d}👧|🇩🇪|e\u{301}|\u{301}|❤\u{fe0f}|क्षि|مرحبا){1,4}",
        1 => "(\u{1b}\\[2J|\u{202e}|\u{200b}|\u{7}|\u{9b}|\u{2028}|&#x202e;|&#8203;|&#27;|\u{feff}|\u{0}|\u{200d})",
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Narrow ones more often.
fn width() -> impl Strategy<Value = usize> {
    prop_oneof![1_usize..6, 1_usize..100]
}

fn cell(body: CallBody<'_>, state: CallState, name: &str, text: &str, width: usize) -> Vec<Line> {
    CallCell {
        name,
        subject: text,
        state,
        took: Duration::from_secs(75),
        summary: text,
        body,
    }
    .lines(width)
}

/// What every cell makes of a text.
fn all(text: &str, width: usize) -> Vec<Line> {
    let whole = Line::of_output(text, Tone::Plain);
    let margin = Line::of("  • ", Tone::Dim);
    let mut lines = markdown(text, width, Theme::Plain);
    lines.extend(markdown(text, width, Theme::Colour));
    lines.extend(diff("a.rs", text, width, 20));
    lines.extend(diff(
        "a.py",
        &format!("@@ -1,2 +1,2 @@\n-{text}\n+{text}"),
        width,
        20,
    ));
    for state in [
        CallState::Running,
        CallState::Waiting,
        CallState::Ok,
        CallState::Failed,
        CallState::Refused,
    ] {
        for body in [
            CallBody::Nothing,
            CallBody::Output(text),
            CallBody::Diff(text),
        ] {
            lines.extend(cell(body, state, "Bash", text, width));
        }
        lines.push(CallCell { state, ..EMPTY }.running(width));
    }
    lines.extend(cell(CallBody::Nothing, CallState::Ok, text, text, width));
    lines.extend(labelled("error:", Tone::Failed, text, width));
    lines.extend(joined([text, "3 steps", text], Tone::Dim, width));
    lines.extend(whole.wrap(width, &margin, &Line::of("    ", Tone::Plain)));
    lines.extend(whole.chop(width, &margin, &margin));
    lines.push(whole.cut(width));
    lines
}

const EMPTY: CallCell<'static> = CallCell {
    name: "",
    subject: "",
    state: CallState::Running,
    took: Duration::ZERO,
    summary: "",
    body: CallBody::Nothing,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_wider_and_nothing_acts_on_a_terminal(text in text(), width in width()) {
        for line in all(&text, width) {
            prop_assert!(line.width() <= width, "{} of {width}: {:?}", line.width(), line.text());
            prop_assert_eq!(line.ansi(Theme::Plain), line.text());
            let shown = line.ansi(Theme::Colour);
            let mut parts = shown.split("\u{1b}[");
            let mut bare = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let (code, text) = part.split_once('m').unwrap();
                prop_assert!(code.chars().all(|c| c.is_ascii_digit() || c == ';'), "{}", code);
                bare.push_str(text);
            }
            prop_assert_eq!(bare, line.text());
            let acts = line.text().chars().find(|c| c.is_control());
            prop_assert_eq!(acts, None);
        }
    }

    #[test]
    fn nothing_misleads(text in text(), width in width()) {
        // A break may part a joiner from what it joins; the character itself was judged before.
        let shaping = |c: char| matches!(c, '\u{200c}' | '\u{200d}' | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
        for line in all(&text, width) {
            let shown: String = line.text().chars().filter(|c| !shaping(*c)).collect();
            prop_assert_eq!(find(&shown, Lines::One), None, "{:?}", shown);
        }
        let span = Line::of(&text, Tone::Plain);
        prop_assert_eq!(find(&span.text(), Lines::One), None);
    }

    #[test]
    fn wrapping_loses_no_text(text in text(), width in 12_usize..60) {
        let line = Line::of_output(&text, Tone::Plain).with(&text, Tone::Strong);
        let bare = |text: &str| text.replace(' ', "");
        let joined = |lines: Vec<Line>| lines.iter().map(Line::text).collect::<String>();
        let none = Line::default();
        prop_assert_eq!(bare(&joined(line.wrap(width, &none, &none))), bare(&line.text()));
        prop_assert_eq!(joined(line.chop(width, &none, &none)), line.text());
    }

    #[test]
    fn markdown_keeps_every_word(blocks in proptest::collection::vec(block(), 1..8), width in 12_usize..90) {
        let source = blocks.iter().map(|(source, _)| format!("{source}\n\n")).collect::<String>();
        let words = blocks.iter().flat_map(|(_, words)| words);
        let shown: String = markdown(&source, width, Theme::Colour).iter().map(Line::text).collect();
        let shown: String = shown.chars().filter(char::is_ascii_alphabetic).collect();
        prop_assert_eq!(shown, words.map(String::as_str).collect::<String>());
    }

    #[test]
    fn a_streamed_text_looks_like_the_whole(blocks in proptest::collection::vec(block(), 1..8), step in 1_usize..30) {
        let source = blocks.iter().map(|(source, _)| format!("{source}\n\n")).collect::<String>();
        let mut pending = String::new();
        let mut lines = Vec::new();
        let mut show = |part: &str| {
            let shown = markdown(part, 60, Theme::Colour);
            if !lines.is_empty() && !shown.is_empty() {
                lines.push(Line::default());
            }
            lines.extend(shown);
        };
        for piece in source.as_bytes().chunks(step) {
            pending.push_str(std::str::from_utf8(piece).unwrap());
            let now = finished(&pending);
            show(&pending.drain(..now).collect::<String>());
        }
        show(&pending);
        prop_assert_eq!(lines, markdown(&source, 60, Theme::Colour));
    }
}

/// A block, and its words in order.
fn block() -> impl Strategy<Value = (String, Vec<String>)> {
    let words = proptest::collection::vec("[a-z]{1,9}", 1..14);
    (words, 0..10).prop_map(|(words, kind)| {
        let lines = |first: &str, rest: &str| {
            let parts: Vec<String> = words.chunks(3).map(|part| part.join(" ")).collect();
            format!("{first}{}", parts.join(&format!("\n{rest}")))
        };
        let source = match kind {
            0 => format!("## {}", words.join(" ")),
            1 => lines("- ", "- "),
            2 => lines("* ", "  * "),
            3 => lines("> ", "> "),
            4 => lines("```\n", "") + "\n```",
            5 => lines("    ", "    "),
            6 => format!("1. {}", words.join("\n\n   ")),
            7 => format!(
                "| {} |\n|{}\n| {} |",
                words.join(" | "),
                "---|".repeat(words.len()),
                ["x"].repeat(words.len()).join(" | ")
            ),
            8 => format!("{}\n===", words.join(" ")),
            _ => words.iter().map(|word| format!("*{word}* ")).collect(),
        };
        // The cells of a narrow table stand beside their titles.
        if kind == 7 {
            (lines("", ""), words)
        } else {
            (source, words)
        }
    })
}

#[test]
fn what_stands_is_finished_and_what_may_change_is_not() {
    let table = [
        ("", 0),
        ("a line", 0),
        ("a line\n", 0),
        ("a line\n\n", 8),
        ("a line\nand one\n\nnext", 16),
        ("# title\n", 8),
        ("# title\ntext\n", 8),
        ("title\n===\n", 0),
        ("---\n", 4),
        ("- a\n- b\n\n", 0),
        ("- a\n- b\n\ntext\n", 9),
        ("```\ncode\n\nmore\n", 0),
        ("```\ncode\n```\n", 13),
        ("````\ncode\n```\n", 0),
        ("~~~\n```\n~~~\n", 12),
        ("| a |\n|---|\n| b |\n", 0),
        ("| a |\n|---|\n| b |\n\n", 19),
        ("> a\n\n", 0),
        ("> a\n\ntext\n\n", 11),
    ];
    for (source, end) in table {
        assert_eq!(finished(source), end, "{source:?}");
    }
}

#[test]
fn times_are_short() {
    let shown = |ms| tui::duration(Duration::from_millis(ms));
    assert_eq!(
        [40, 3_000, 9_940, 12_900, 75_000].map(shown),
        ["0.0 s", "3 s", "9.9 s", "12 s", "1 min 15 s"]
    );
    let minute = 60_000;
    let long = [
        minute,
        60 * minute,
        61 * minute + 5_000,
        24 * 60 * minute,
        3_000 * 60 * minute + 59 * minute,
    ];
    assert_eq!(
        long.map(shown),
        ["1 min", "1 h", "1 h 1 min", "1 d", "125 d"]
    );
}

#[test]
fn spans_of_one_meaning_are_one() {
    let mut line = Line::of("a", Tone::Ok);
    line.push(Span::new("b", Tone::Ok));
    line.push(Span::new("c", Tone::Plain));
    assert_eq!(line.ansi(Theme::Colour), "\u{1b}[32mab\u{1b}[0mc");
    assert_eq!(line.ansi(Theme::Plain), "abc");
}
