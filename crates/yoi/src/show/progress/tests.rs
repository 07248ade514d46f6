//! What a terminal gets of events.

use super::cells::LiveBlock;
use super::*;
use pod::control::{Alert, AlertLevel, OutputPart};
use pod::record::{ItemAdded, Request, ToolFinished, ToolStarted};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tui::Theme;

/// Both outputs of a terminal, in the order of writing.
#[derive(Clone, Default)]
struct Terminal(Arc<Mutex<String>>);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .unwrap()
            .push_str(std::str::from_utf8(bytes).unwrap());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn style(look: Option<Look>) -> OutputStyle {
    let json = false;
    let quiet = false;
    let colour = false;
    OutputStyle {
        json,
        terminal: true,
        quiet,
        stream: true,
        colour,
        cells: look,
        answer: look,
    }
}

fn seen(events: Vec<Event>) -> String {
    seen_with(None, events)
}

fn seen_with(look: Option<Look>, events: Vec<Event>) -> String {
    let terminal = Terminal::default();
    let style = style(look);
    let mut screen = RunOutput::new(style, terminal.clone(), terminal.clone());
    events.iter().for_each(|event| screen.event(event));
    screen.finish();
    terminal.0.lock().unwrap().clone()
}

fn text(text: &str) -> Event {
    Event::Delta {
        turn: 1,
        request: 1,
        delta: Delta::Text { text: text.into() },
    }
}

fn answer(text: &str) -> Event {
    let item = Item::Assistant { text: text.into() };
    Event::Record {
        seq: 1,
        record: Arc::new(Record::from(ItemAdded { item })),
    }
}

fn retrying() -> Event {
    Event::Delta {
        turn: 1,
        request: 1,
        delta: Delta::Retrying {
            attempt: 1,
            delay_ms: 1000,
            why: "cut".into(),
        },
    }
}

#[test]
fn progress_and_answer_never_share_a_line() {
    let alert = || {
        Event::Alert(Alert {
            level: AlertLevel::Warning,
            from: None,
            text: "look".to_owned(),
        })
    };
    let table: [(Vec<Event>, &str); 10] = [
        (
            vec![
                text("one"),
                text("two"),
                answer("one"),
                answer("two"),
                text("x"),
                answer("x"),
            ],
            "onetwo\nx\n",
        ),
        (
            vec![text("an "), text("answer"), answer("an answer")],
            "an answer\n",
        ),
        (vec![text("line\n"), answer("line\n")], "line\n"),
        (vec![answer("unstreamed")], "unstreamed\n"),
        (vec![text("an "), answer("an answer")], "an answer\n"),
        (
            vec![text("an "), alert(), text("answer"), answer("an answer")],
            "an \n! look\nanswer\n",
        ),
        (
            vec![text("half"), retrying(), text("whole"), answer("whole")],
            "half\n! cut; attempt 2 in 1.0 s\nwhole\n",
        ),
        (vec![text("half")], "half\n"),
        (vec![text("\u{1b}[2J"), answer("\u{1b}[2J")], "\\u{1b}[2J\n"),
        (
            vec![
                text("a\u{200b}👩"),
                text("\u{200d}"),
                answer("a\u{200b}👩\u{200d}👧"),
            ],
            "a\\u{200b}👩\u{200d}👧\n",
        ),
    ];
    for (events, expected) in table {
        assert_eq!(seen(events), expected);
    }
}

fn record(record: impl Into<Record>) -> Event {
    Event::Record {
        seq: 1,
        record: Arc::new(record.into()),
    }
}

fn called(id: &str, name: &str, arguments: &str) -> Event {
    let id = id.to_owned().try_into().unwrap();
    let name = name.to_owned();
    let arguments = arguments.to_owned();
    record(ItemAdded {
        item: Item::ToolCall {
            id,
            name,
            arguments,
        },
    })
}

fn started(id: &str) -> Event {
    let started = json!({
        "call": id, "name": "Bash", "feature": "f", "generation": 1, "arguments": "{}", "arguments_digest": "",
        "effect": "effectful", "idempotency_key": "k",
    });
    record(serde_json::from_value::<ToolStarted>(started).unwrap())
}

fn ended(id: &str, status: &str, summary: &str, content: &str) -> Event {
    let outcome = json!({ "status": status, "summary": summary, "content": content });
    let exit = summary
        .strip_prefix("exit ")
        .and_then(|rest| rest.split(' ').next()?.parse::<i32>().ok());
    let done = json!({ "call": id, "outcome": outcome, "ms": 1500, "warnings": ["look"],
        "command": exit.map(|exit| json!({ "exit": exit })) });
    record(serde_json::from_value::<ToolFinished>(done).unwrap())
}

const CALL: &str = "c00000001";

#[test]
fn on_a_terminal_finished_blocks_and_calls_are_printed() {
    let command = r#"{"command":"make all","timeout_s":5}"#;
    let table = [
        (
            vec![text("one\n\ntw"), text("o"), answer("one\n\ntwo")],
            "\none\n\ntwo\n",
        ),
        (
            vec![text("a"), started(CALL), text("b"), answer("ab")],
            "\nab\n",
        ),
        (
            vec![
                text("# half\nof"),
                retrying(),
                text("whole"),
                answer("whole"),
            ],
            "\n# half\n\n! cut; attempt 2 in 1.0 s\n\nwhole\n",
        ),
        (
            vec![text("\u{1b}[2J"), answer("\u{1b}[2J")],
            "\n\\u{1b}[2J\n",
        ),
        (
            vec![
                called(CALL, "Bash", command),
                ended(CALL, "ok", "exit 0 in 1.5 s", "a\nb\n"),
            ],
            "✓ Bash make all · 1.5 s\n  a\n  b\nwarning: look\n",
        ),
        (
            vec![
                called(CALL, "Bash", command),
                ended(CALL, "error", "exit 2 in 1.5 s", "a\n"),
                answer("no"),
            ],
            "✗ Bash make all · 1.5 s\n  exit 2\n  a\nwarning: look\n\nno\n",
        ),
        (
            vec![ended(CALL, "refused", "not allowed", "")],
            "⊘ c00000001 · 1.5 s\n  not allowed\nwarning: look\n",
        ),
        (
            vec![
                called(CALL, "Edit", r#"{"path":"a"}"#),
                ended(CALL, "ok", "a: 1 replacement", "@@ -1,1 +1,1 @@\n-x\n+y"),
            ],
            "✓ Edit a · 1 replacement · 1.5 s\n  1 - x\n  1 + y\nwarning: look\n",
        ),
    ];
    for (events, expected) in table {
        assert_eq!(seen_with(Some(PLAIN), events), expected);
    }
}

fn take(cells: &mut Cells, event: &Event, now: Instant) {
    match event {
        Event::Record { record, .. } => drop(cells.record(record, PLAIN, now)),
        Event::Delta { delta, .. } => cells.delta(delta, true, now),
        Event::Suspended { .. } | Event::Alert(_) => {}
    }
}

const PLAIN: Look = Look::fixed(Theme::Plain, || 40);

#[test]
fn nothing_wakes_a_screen_on_which_nothing_changes() {
    let now = Instant::now();
    let at = |ms| now + Duration::from_millis(ms);
    let mut cells = Cells::new();
    let request = json!({
        "number": 1, "generation": 1, "items": 1, "projection": 1, "neutral_digest": "",
        "encoder": { "id": "d", "version": 1 }, "body_digest": "", "bytes": 1,
    });
    take(
        &mut cells,
        &record(serde_json::from_value::<Request>(request).unwrap()),
        now,
    );
    let seen = |cells: &Cells, answer: &str, ms| {
        let LiveBlock { lines, changes } = cells.live(answer, (30, 24), at(ms));
        let text: Vec<String> = lines.iter().map(Line::text).collect();
        (
            text.join("\n"),
            changes.map(|changes| changes.saturating_duration_since(now).as_millis()),
        )
    };
    let model = "◦ waiting for the model · ";
    assert_eq!(seen(&cells, "", 100), (String::new(), Some(2_000)));
    assert_eq!(
        seen(&cells, "", 3_700),
        (format!("{model}3 s"), Some(4_000))
    );
    take(
        &mut cells,
        &text("words of an answer that is longer than a line"),
        at(4_000),
    );
    assert_eq!(
        seen(
            &cells,
            "words of an answer that is longer than a line",
            4_100
        ),
        ("◦ longer than a line".to_owned(), None)
    );
    take(
        &mut cells,
        &called(CALL, "Bash", r#"{"command":"make"}"#),
        at(5_000),
    );
    take(&mut cells, &started(CALL), at(5_000));
    assert_eq!(seen(&cells, "", 5_100), (String::new(), Some(5_400)));
    assert_eq!(
        seen(&cells, "", 8_000),
        ("◦ Bash make · 3 s".to_owned(), Some(9_000))
    );
    let LiveBlock { lines, .. } = cells.live("", (12, 24), at(8_000));
    assert_eq!(lines[0].text(), "◦ Bash … · …");
    let part = |text: &str, anew| OutputPart {
        call: CALL.to_owned().try_into().unwrap(),
        turn: 1,
        request: 1,
        text: text.to_owned(),
        anew,
    };
    let call = "◦ Bash make · 3 s";
    cells.outputs(&[part("one\ntwo\n 1%\r 2%", true)]);
    assert_eq!(
        seen(&cells, "", 8_000),
        (format!("{call}\n  one\n  two\n   2%"), Some(9_000))
    );
    cells.outputs(&[part("\r 3%", false)]);
    assert_eq!(
        seen(&cells, "", 8_000).0,
        format!("{call}\n  one\n  two\n   3%")
    );
    let LiveBlock { lines, .. } = cells.live("", (12, 4), at(8_000));
    assert_eq!(lines.len(), 3, "a terminal of four rows has room for two");
    cells.outputs(&[part("x", true)]);
    assert_eq!(
        seen(&cells, "", 8_000).0,
        format!("{call}\n  x\n\n"),
        "what stands below does not jump"
    );
    take(
        &mut cells,
        &ended(CALL, "ok", "exit 0 in 1.5 s", ""),
        at(8_000),
    );
    take(
        &mut cells,
        &called(CALL, "Bash", r#"{"command":"make"}"#),
        at(5_000),
    );
    take(&mut cells, &started(CALL), at(5_000));
    assert_eq!(seen(&cells, "", 8_000).0, call);
}

#[test]
fn the_drawn_line_is_replaced_and_never_a_part_of_the_text() {
    static COLUMNS: AtomicUsize = AtomicUsize::new(20);
    let terminal = Terminal::default();
    let look = Look::fixed(Theme::Plain, || COLUMNS.load(Ordering::Relaxed));
    let mut screen = RunOutput::new(style(Some(look)), terminal.clone(), terminal.clone());
    let taken = || std::mem::take(&mut *terminal.0.lock().unwrap());
    let now = Instant::now();
    let calls = [
        called(CALL, "Bash", r#"{"command":"make a long line"}"#),
        started(CALL),
    ];
    calls.iter().for_each(|event| screen.event(event));
    let tick = |screen: &mut RunOutput<_, _>, ms| {
        screen.tick(now + Duration::from_millis(ms));
        taken()
    };
    assert_eq!(tick(&mut screen, 100), "");
    assert_eq!(tick(&mut screen, 2_900), "◦ Bash make … · 2 s");
    assert_eq!(tick(&mut screen, 2_980), "", "nothing changed");
    assert_eq!(tick(&mut screen, 4_900), "\r\u{1b}[K◦ Bash make … · 4 s");
    screen.event(&Event::Alert(Alert {
        level: AlertLevel::Warning,
        from: None,
        text: "look".to_owned(),
    }));
    assert_eq!(
        tick(&mut screen, 5_900),
        "\r\u{1b}[K! look\n◦ Bash make … · 5 s"
    );
    let output = |text: &str| OutputPart {
        call: CALL.to_owned().try_into().unwrap(),
        turn: 1,
        request: 1,
        text: text.to_owned(),
        anew: false,
    };
    screen.cells.outputs(&[output("one\ntwo")]);
    assert_eq!(
        tick(&mut screen, 6_100),
        "\r\u{1b}[K◦ Bash make … · 6 s\n  one\n  two"
    );
    screen.cells.outputs(&[output("\nthree\nfour\nfive")]);
    assert_eq!(tick(&mut screen, 6_110), "", "not so often");
    let again = "\r\u{1b}[K\u{1b}[A\u{1b}[K\u{1b}[A\u{1b}[K◦ Bash make … · 6 s\n  two\n  three\n  four\n  five";
    assert_eq!(tick(&mut screen, 6_200), again);
    // Where a broken line ends is not known: it stays.
    COLUMNS.store(12, Ordering::Relaxed);
    screen.event(&ended(CALL, "ok", "exit 0 in 1.5 s", ""));
    assert_eq!(tick(&mut screen, 6_900).split("✓").next().unwrap(), "\n");
    assert_eq!(screen.tick(now + Duration::from_secs(8)), None);
}

#[test]
fn an_answer_without_a_line_feed_is_not_held_back() {
    let terminal = Terminal::default();
    let mut screen = RunOutput::new(style(Some(PLAIN)), terminal.clone(), terminal.clone());
    screen.event(&text(&"a".repeat(MAX_BLOCK)));
    assert_eq!(*terminal.0.lock().unwrap(), "");
    screen.event(&text("b"));
    assert!(
        screen.pending.is_empty(),
        "{} bytes are held back",
        screen.pending.len()
    );
    assert!(terminal.0.lock().unwrap().ends_with("aab\n"));
}

#[test]
fn no_part_of_a_question_begins_as_a_line_of_the_host() {
    let asked = |text: &str| Shown::Text(text).text(Some(PLAIN));
    let host = "? approval 2: Read (sandbox off)";
    let padded = |column: usize, before: &str| {
        format!("{before}{}{host}\n", "x".repeat(column - before.len()))
    };
    // What fits can be copied.
    assert_eq!(
        asked("    command: touch made\n"),
        "    command: touch made\n"
    );
    assert_eq!(
        asked(&padded(40, "    command: ")),
        format!("    command: {}\n    │ {host}\n", "x".repeat(27))
    );
    let reason = format!("  why: {} {host} allow this call?\n", "x".repeat(32));
    assert_eq!(
        asked(&reason),
        format!(
            "  why: {}\n    │ {host}\n    │ allow this call?\n",
            "x".repeat(32)
        )
    );
    assert_eq!(
        asked(&format!("? approval 1: {} {host}\n", "x".repeat(25)))
            .lines()
            .nth(1),
        Some(&*format!("    │ {host}"))
    );
    assert_eq!(
        asked("  allow this call? y: once; n: deny; Ctrl-D: leave it: "),
        "  allow this call? y: once; n: deny;\n    │ Ctrl-D: leave it: "
    );
}
