//! One journal at all doors: a log, a run, an attached person in plain lines and one on a full screen read the same words.

use super::Screen;
use crate::commands::log::Transcript;
use crate::show::progress::{OutputStyle, RunOutput};
use pod::record::Record;
use protocol::event::Event;
use protocol::record::{RecordBody, RecordLine};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tui::transcript::said;
use tui::{Key, ScreenSize, Theme, Tone};

const JOURNALS: [&str; 3] = [
    include_str!("../../../../../fuzz/seeds/journal/run.jsonl"),
    include_str!("../../../../../fuzz/seeds/journal/jobs.jsonl"),
    include_str!("../../../../../fuzz/seeds/journal/tasks.jsonl"),
];

/// Both outputs of a run.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Kinds that no recorded journal of this test has.
fn others() -> String {
    let by = json!({ "client": "yoi attach", "role": "driver", "uid": 1, "name": "ana" });
    let rule = json!({ "tool": "Bash", "program": "git", "subcommand": ["diff", "log"], "decision": "allow" });
    let call = "c00000007";
    let bodies = [
        (
            "suspended",
            json!({ "reason": "paused by `yoi attach`", "cause": "person", "by": by }),
        ),
        (
            "resumed",
            json!({ "cause": "budget", "more": ["steps", "time"], "by": by }),
        ),
        ("pinned", json!({ "pin": 3, "text": "keep this", "by": by })),
        ("unpinned", json!({ "pin": 3, "by": by })),
        ("compact_requested", json!({ "drop_turns": true, "by": by })),
        ("rules_forgotten", json!({ "rules": [rule], "by": by })),
        (
            "client_call",
            json!({ "tool": "Todo", "feature": "f", "arguments": "{\"add\":\"tests\"}", "by": by }),
        ),
        (
            "feature_note",
            json!({ "feature": "f", "text": "three files" }),
        ),
        ("gap", json!({ "first": 3, "last": 5, "reason": "torn" })),
        (
            "recovery",
            json!({ "class": "torn_tail", "cut_bytes": 17, "quarantine": "q", "open_calls": 2, "open_turn": true,
                "ended_processes": 0, "down_us": 62_000_000 }),
        ),
        (
            "verdict",
            json!({ "decision": "again", "rule": "r", "reason": "words", "hook": "h", "feature": "f" }),
        ),
        (
            "verdict",
            json!({ "decision": "abort", "rule": "r", "reason": "too much", "hook": "h", "feature": "f" }),
        ),
        (
            "item",
            json!({ "item": { "type": "tool_call", "id": call, "name": "Move", "arguments": "{}" } }),
        ),
        (
            "file_changed",
            json!({ "call": null, "path": "/a/b", "before": null, "mode": null, "after": "d" }),
        ),
        (
            "approval_requested",
            json!({ "approval": 1, "call": call, "tool": "Move", "feature": "f", "effect": "effectful",
                "arguments": "{}", "arguments_digest": "d", "definition_digest": "d", "resources_digest": "d",
                "question": "may it?", "rule": "r", "sandbox": "off" }),
        ),
        (
            "approval_resolved",
            json!({ "approval": 1, "decision": "allow", "scope": "pod", "arguments_digest": "d", "by": by }),
        ),
        (
            "tool_started",
            json!({ "call": call, "name": "Move", "feature": "f", "generation": 1, "arguments": "{}",
                "arguments_digest": "d", "effect": "effectful", "idempotency_key": "k", "escalation": "network",
                "hosts": ["a.test"] }),
        ),
        (
            "tool_repeated",
            json!({ "call": call, "run": 2, "after_ms": 5, "status": "error", "hook": "h", "feature": "f" }),
        ),
        (
            "directory_moved",
            json!({ "call": call, "from": "/a", "to": "/b" }),
        ),
        (
            "directory_moved",
            json!({ "call": null, "from": "/b", "to": "/a" }),
        ),
        (
            "tool_finished",
            json!({ "call": call, "outcome": { "status": "refused", "summary": "a person denied it" }, "ms": 0 }),
        ),
        (
            "turn_finished",
            json!({ "turn": 9, "outcome": { "outcome": "aborted", "reason": "a gate" }, "by": by }),
        ),
    ];
    let line = |(at, (kind, mut body)): (usize, (&str, Value))| {
        let version = 1;
        let head = json!({ "q": at + 1, "t": 1_780_000_000_000_000_u64, "k": kind, "v": version });
        body.as_object_mut()
            .unwrap()
            .extend(head.as_object().unwrap().clone());
        format!("{body}\n")
    };
    bodies.into_iter().enumerate().map(line).collect()
}

/// Texts differ in margins and in where lines are broken.
fn plain(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| *word != "▎");
    words.collect::<Vec<_>>().join(" ")
}

/// The words of a record that each door has which shows it.
fn words(body: &RecordBody) -> Option<String> {
    match body {
        RecordBody::ItemAdded(added) => added.item.name.clone().or(added.item.text.clone()),
        RecordBody::ToolFinished(done) if done.outcome.status != "ok" => {
            done.outcome.summary.split(" in ").next().map(str::to_owned)
        }
        body => said(body).map(|said| said.text),
    }
    .map(|words| plain(&words))
}

/// Whether a log, an attached person and a run show the record.
fn shows(body: &RecordBody) -> [bool; 4] {
    match body {
        // A run shows one turn: its calls, its questions, and what ends it. The question of a call is a panel of the screen.
        RecordBody::ItemAdded(added) => {
            let is_shown = added.item.r#type != "reasoning";
            [is_shown, is_shown, true, is_shown]
        }
        RecordBody::ToolFinished(_) => [true; 4],
        RecordBody::ApprovalRequested(_) => [true, true, false, true],
        RecordBody::VerdictGiven(verdict) => {
            let is_of_call = verdict.call.is_some();
            let ends = verdict.decision == "abort";
            [!is_of_call, !is_of_call, true, ends]
        }
        RecordBody::BackgroundTask(run) => {
            let fails = said(body).is_some_and(|said| said.tone != Tone::Dim);
            [true, fails || run.state == "orphaned", fails, false]
        }
        _ => [true, true, true, false],
    }
}

/// A record had other words at each of its doors, so that nobody could search one for what another said.
#[test]
fn a_record_has_the_same_words_at_all_doors() {
    let mut seen = std::collections::BTreeSet::new();
    let extra = others();
    for journal in JOURNALS.into_iter().chain([extra.as_str()]) {
        let status = json!({ "pod": "p", "state": "idle", "turns": 0, "requests": 0, "model": "m", "seq": 0,
            "usage": { "input": 0, "output": 0, "cached": 0 },
            "host": { "pid": 1, "since_us": 0, "version": "1", "sandbox": "off", "cwd": "/" } });
        let mut log = Transcript::new(false);
        let mut attached = Screen {
            name: "p".to_owned(),
            transcript: Transcript::new(false),
            status: serde_json::from_value(status).unwrap(),
            retried: None,
            turn: None,
            changed_from: None,
        };
        let mut screen = tui::Screen::before_any_record("p", Theme::Plain);
        let written = Written::default();
        let style = OutputStyle {
            json: false,
            terminal: false,
            quiet: false,
            stream: true,
            colour: false,
            cells: None,
            answer: None,
        };
        let mut run = RunOutput::new(style, written.clone(), written.clone());
        let mut wanted = Vec::new();
        for line in journal.lines() {
            let line = RecordLine::new(line.to_owned()).unwrap();
            let head = line.header().unwrap();
            let record =
                Record::decode(&head.kind, head.version, line.as_str().as_bytes()).unwrap();
            let body = RecordBody::from(&record);
            assert_eq!(body.kind(), record.kind(), "{record:?}");
            let in_log = log.numbered(head.seq, &record, head.time_us);
            let in_lines = attached.text(&line);
            run.record_of_line(&record, line.as_str());
            screen.event(&Event::Record(line));
            if let Some(words) = words(&body) {
                let shown = [in_log, in_lines].map(|text| plain(&text.unwrap_or_default()));
                wanted.push((head.kind, words, shows(&body), shown));
            }
        }
        run.finish();
        let in_run = plain(&String::from_utf8(written.0.lock().unwrap().clone()).unwrap());
        screen.key(Key::Ctrl('o'), 0);
        let size = ScreenSize {
            columns: 2000,
            rows: 2000,
        };
        let rows = screen.frame(size, 0).rows;
        let on_screen: Vec<String> = rows.iter().map(|row| row.text()).collect();
        let on_screen = plain(&on_screen.join("\n"));
        for (kind, words, shows, [in_log, in_lines]) in wanted {
            for (door, text, shows) in [
                ("log", &in_log, shows[0]),
                ("attach --plain", &in_lines, shows[1]),
                ("screen", &on_screen, shows[2]),
                ("run", &in_run, shows[3]),
            ] {
                // Who ended a turn stands before its time on a screen, and a run cuts what is long.
                let words = words.chars().take(90).collect::<String>();
                assert!(
                    !shows || text.contains(&words),
                    "{door}: {kind}: no `{words}` in\n{text}"
                );
            }
            seen.insert(kind);
        }
    }
    assert!(seen.len() > 24, "{seen:?}");
}
