//! What a pod tells, made up: records, deltas, a status.

use protocol::event::{AlertEvent, AlertLevel, DeltaEvent, DeltaPart, Event};
use protocol::method::Verb;
use protocol::method::{Attached, Draft, RecordPage, Role};
use protocol::record::RecordLine;
use protocol::status::Status;
use serde_json::{Value, json};
use tui::Intent;
use tui::{Frame, Key, Screen, ScreenSize, Theme};

/// When the story begins, in milliseconds since 1970.
pub(crate) const BEGIN: u64 = 1_790_000_000_000;

/// Writes records with numbers that rise and a second between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub(crate) lines: Vec<RecordLine>,
}

impl Story {
    pub(crate) fn new() -> Self {
        let surface =
            json!({"surface": {"generation": 1, "model": "toy", "tools": [{"name": "Bash"}]}});
        let host = json!({"version": "0.1.0", "pid": 7, "project": "/p", "cwd": "/src/app", "sandbox": "workspace-write"});
        Self::default()
            .with("host_started", host)
            .with("surface", surface)
    }

    pub(crate) fn with(mut self, kind: &str, body: Value) -> Self {
        let seq = self.lines.len() as u64 + 1;
        let mut line = json!({"q": seq, "t": (BEGIN + seq * 1000) * 1000, "k": kind, "v": 1});
        line.as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        self.lines.push(RecordLine::new(line.to_string()).unwrap());
        self
    }

    pub(crate) fn input(self, input: u64, text: &str) -> Self {
        let by = json!({"client": "yoi attach", "role": "driver", "uid": 0});
        self.with(
            "input_queued",
            json!({"input": input, "text": text, "by": by}),
        )
    }

    pub(crate) fn turn(self, turn: u64, input: u64) -> Self {
        let begun = self
            .with("turn_started", json!({"turn": turn}))
            .with("input_consumed", json!({"input": input}));
        begun.with(
            "request",
            json!({"number": turn, "generation": 1, "items": 1, "bytes": 10}),
        )
    }

    pub(crate) fn item(self, item: Value) -> Self {
        self.with("item", json!({"item": item}))
    }

    pub(crate) fn says(self, text: &str) -> Self {
        self.item(json!({"type": "assistant", "text": text}))
    }

    pub(crate) fn calls(self, call: &str, name: &str, arguments: Value) -> Self {
        self.item(json!({"type": "tool_call", "id": call, "name": name, "arguments": arguments.to_string()}))
    }

    pub(crate) fn response(self) -> Self {
        let usage = json!({"input": 12_000, "output": 340, "cached": 0});
        self.with(
            "response",
            json!({"stop": "tool_use", "usage": usage, "cost": 42_000_000}),
        )
    }

    pub(crate) fn starts(self, call: &str, name: &str, arguments: Value) -> Self {
        let fields = json!({"call": call, "name": name, "feature": "builtin:shell",
            "arguments": arguments.to_string(), "effect": "effectful"});
        self.with("tool_started", fields)
    }

    pub(crate) fn ends(self, call: &str, status: &str, summary: &str, content: &str) -> Self {
        let outcome = json!({"status": status, "summary": summary, "content": content});
        let mut body = json!({"call": call, "outcome": outcome, "ms": 1500});
        let exit = summary
            .strip_prefix("exit ")
            .and_then(|rest| rest.split(' ').next()?.parse::<i32>().ok());
        if let Some(exit) = exit {
            body["command"] = json!({"exit": exit});
        }
        self.with("tool_finished", body)
    }

    pub(crate) fn asks(self, approval: u64, call: &str, command: &str, rules: bool) -> Self {
        let rule = json!({"tool": "Bash", "program": "cargo", "subcommand": ["test"], "decision": "allow"});
        let rules = if rules { vec![rule] } else { vec![] };
        let fields = json!({"approval": approval, "call": call, "tool": "Bash", "feature": "builtin:shell",
            "effect": "effectful", "arguments": json!({"command": command}).to_string(),
            "arguments_digest": format!("digest-{approval}"), "question": "the rule `Bash: ask` requires your approval",
            "rule": "Bash: ask", "command": parts(command), "sandbox": "workspace-write", "rules": rules, "configurable": true,
            "expires": {"at_ms": BEGIN + 600_000, "after_ms": 600_000}});
        self.with("approval_requested", fields)
    }

    pub(crate) fn finished(self, turn: u64) -> Self {
        self.with(
            "turn_finished",
            json!({"turn": turn, "outcome": {"outcome": "done"}}),
        )
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.lines.iter().cloned().map(Event::Record).collect()
    }

    /// When the newest record was written, in milliseconds.
    pub(crate) fn now(&self) -> u64 {
        BEGIN + self.lines.len() as u64 * 1000
    }

    /// A screen that attached after the first record and saw the others come.
    pub(crate) fn screen(&self, theme: Theme) -> Screen {
        let mut screen = Screen::begin(&attached(&[]), Role::Driver, theme);
        self.events().iter().for_each(|event| screen.event(event));
        screen
    }

    /// A screen that attached behind the last record.
    pub(crate) fn attached(&self) -> Attached {
        attached(&self.lines)
    }
}

/// The parts of a command as a host tells them, split in the simplest way; a rule asks about the last one.
fn parts(command: &str) -> Value {
    let mut from = 0;
    let mut parts = Vec::new();
    for part in command.split(" && ") {
        let program = part.split(' ').next().unwrap_or_default().len();
        parts.push(json!({"text": part, "at": [from, from + program]}));
        from += part.len() + 4;
    }
    parts.last_mut().unwrap()["asks"] = json!(true);
    json!({"field": "command", "parts": parts})
}

/// The answer to `attach` of a pod with these records.
pub(crate) fn attached(lines: &[RecordLine]) -> Attached {
    let mut model = client::model::PodModel::before_any_record("night");
    lines
        .iter()
        .for_each(|line| model.apply(&Event::Record(line.clone())));
    let status: Status = model.status().clone();
    let page = RecordPage {
        records: lines.to_vec(),
        first: 1,
    };
    Attached {
        status,
        draft: Draft::default(),
        page: Some(page),
    }
}

pub(crate) fn text(part: &str) -> Event {
    delta(DeltaPart::Text {
        text: part.to_owned(),
    })
}

pub(crate) fn delta(part: DeltaPart) -> Event {
    Event::Delta(DeltaEvent {
        turn: 1,
        request: 1,
        part,
    })
}

pub(crate) fn alert(text: &str) -> Event {
    Event::Alert(AlertEvent {
        level: AlertLevel::Warning,
        from: Some("ada:weather".to_owned()),
        text: text.to_owned(),
    })
}

pub(crate) const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (140, 45)];

pub(crate) fn size(columns: u16, rows: u16) -> ScreenSize {
    ScreenSize { columns, rows }
}

/// Types a text.
pub(crate) fn types(screen: &mut Screen, text: &str, now: u64) {
    text.chars()
        .for_each(|c| drop(screen.key(Key::Char(c), now)));
}

/// A frame with its edges and its caret.
pub(crate) fn drawn(frame: &Frame, columns: usize) -> String {
    let row = |(at, line): (usize, &tui::Line)| {
        let caret = frame
            .cursor
            .filter(|(_, row)| usize::from(*row) == at)
            .map(|(column, _)| column);
        let caret = caret.map_or_else(String::new, |column| format!(" ^{column}"));
        let text = line.text();
        format!("│{text}{}│{caret}\n", " ".repeat(columns - line.width()))
    };
    let rows: String = frame.rows.iter().enumerate().map(row).collect();
    format!(
        "┌{0:─<columns$}┐ {columns}x{1}\n{rows}",
        "",
        frame.rows.len()
    )
}

/// What has the pod do it.
pub(crate) fn does(verb: impl Into<Verb>) -> Intent {
    Intent::Do(verb.into())
}
