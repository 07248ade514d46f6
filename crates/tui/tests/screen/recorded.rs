//! Screens of recorded journals: what a person would have seen at their end.

use crate::pod::{BEGIN, drawn, size};
use protocol::event::Event;
use protocol::record::RecordLine;
use tui::{Screen, Theme};

const JOURNALS: [&str; 4] = [
    include_str!("../../../fuzz/seeds/journal/run.jsonl"),
    include_str!("../../../fuzz/seeds/journal/approvals.jsonl"),
    include_str!("../../../fuzz/seeds/journal/jobs.jsonl"),
    include_str!("../../../fuzz/seeds/journal/tasks.jsonl"),
];

#[test]
fn recorded_journals() {
    let frame = |journal: &str| {
        let mut screen = Screen::before_any_record("recorded", Theme::Plain);
        for line in journal.lines() {
            screen.event(&Event::Record(RecordLine::new(line.to_owned()).unwrap()));
        }
        drawn(&screen.frame(size(100, 40), BEGIN), 100)
    };
    insta::assert_snapshot!(JOURNALS.map(frame).join("\n"));
}
