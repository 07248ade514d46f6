//! What a terminal gets of events.

use super::*;
use pod::control::{Alert, AlertLevel};
use pod::record::ItemAdded;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Both outputs of a terminal, in the order of writing.
#[derive(Clone, Default)]
struct Terminal(Arc<Mutex<String>>);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn seen(events: Vec<Event>) -> String {
    let terminal = Terminal::default();
    let style = OutputStyle { json: false, terminal: true, quiet: false, stream: true, colour: false };
    let mut screen = RunOutput::new(style, terminal.clone(), terminal.clone());
    events.iter().for_each(|event| screen.event(event));
    screen.end_line();
    terminal.0.lock().unwrap().clone()
}

fn text(text: &str) -> Event {
    Event::Delta { turn: 1, request: 1, delta: Delta::Text(text.into()) }
}

fn answer(text: &str) -> Event {
    let item = Item::Assistant { text: text.into() };
    Event::Record { seq: 1, record: Arc::new(Record::from(ItemAdded { item })) }
}

fn retrying() -> Event {
    Event::Delta {
        turn: 1,
        request: 1,
        delta: Delta::Retrying { attempt: 1, delay: Duration::from_secs(1), why: "cut".into() },
    }
}

#[test]
fn a_call_is_shown_by_what_it_is_about() {
    assert_eq!(brief(r#"{"content":"long text","path":"a.rs"}"#), "a.rs long text");
    assert_eq!(brief(r#"{"glob":"*.rs","path":".","pattern":"fn","limit":3}"#), "fn . *.rs limit=3");
    assert_eq!(brief("{cut"), "{cut");
}

#[test]
fn progress_and_answer_never_share_a_line() {
    let alert = || Event::Alert(Alert { level: AlertLevel::Warning, from: None, text: "look".to_owned() });
    let table: [(Vec<Event>, &str); 10] = [
        (vec![text("one"), text("two"), answer("one"), answer("two"), text("x"), answer("x")], "onetwo\nx\n"),
        (vec![text("an "), text("answer"), answer("an answer")], "an answer\n"),
        (vec![text("line\n"), answer("line\n")], "line\n"),
        (vec![answer("unstreamed")], "unstreamed\n"),
        (vec![text("an "), answer("an answer")], "an answer\n"),
        (vec![text("an "), alert(), text("answer"), answer("an answer")], "an \n! look\nanswer\n"),
        (vec![text("half"), retrying(), text("whole"), answer("whole")], "half\n! cut; attempt 2 in 1.0 s\nwhole\n"),
        (vec![text("half")], "half\n"),
        (vec![text("\u{1b}[2J"), answer("\u{1b}[2J")], "\\u{1b}[2J\n"),
        (vec![text("a\u{200b}👩"), text("\u{200d}"), answer("a\u{200b}👩\u{200d}👧")], "a\\u{200b}👩\u{200d}👧\n"),
    ];
    for (events, expected) in table {
        assert_eq!(seen(events), expected);
    }
}
