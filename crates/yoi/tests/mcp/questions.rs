//! Questions of servers: asked by an approval, also after the pod was killed, and answered in the call that follows.

use super::{lines, run_calls, scene, server, yoi};
use crate::scene::{Scene, gone, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What the server of each era gets for a yes.
const YES: &[(&str, &str)] = &[
    (
        "modern",
        r#"[{"q": {"action": "accept", "content": {"sure": true}}}, "s1"]"#,
    ),
    (
        "legacy",
        r#"{"action": "accept", "content": {"sure": true}}"#,
    ),
];

/// The process of the pod `p`; a test that fails leaves none.
pub(super) struct Host(u32);

impl Host {
    pub(super) fn start(scene: &Scene, flags: &[&str]) -> Self {
        let args = [&["start", "p", "--json", "-q"], flags].concat();
        let answer = yoi(scene, &args).ends(0).json();
        Self(u32::try_from(answer["pid"].as_u64().unwrap()).unwrap())
    }

    pub(super) fn end(&self, with: Signal) {
        signal(self.0, with);
        until("its end", || gone(&self.0.to_string()));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if !gone(&self.0.to_string()) {
            self.end(Signal::KILL);
        }
    }
}

pub(super) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "not seen: {what}"
        );
        std::thread::yield_now();
    }
}

pub(super) fn status(scene: &Scene) -> Value {
    yoi(scene, &["status", "p", "--json"]).ends(0).json()
}

/// Whether the model has given its last answer.
pub(super) fn is_done(scene: &Scene) -> bool {
    let mut records = scene.records("p").into_iter();
    records.any(|record| record["k"] == "turn_finished" && record["outcome"]["outcome"] == "done")
}

/// A pod whose model calls the tool that asks, and again after each result.
fn asking(era: &str) -> Option<(Scene, Host)> {
    let scene = scene()?;
    let server = server(&scene);
    let add = [
        "mcp",
        "add",
        "fake",
        "--allow-calls",
        "--",
        "python3",
        &server,
        era,
    ];
    yoi(&scene, &add).ends(0);
    let call = json!({ "calls": [{ "name": "mcp__fake__asks", "arguments": { "of": 3 } }] });
    let script = [call.clone(), call, json!({ "text": "done" })];
    let model = scene.script("asks.jsonl", &script);
    let host = Host::start(&scene, &["go", "-m", &model]);
    until("a question", || status(&scene)["state"] == "waiting");
    Some((scene, host))
}

#[test]
fn a_question_outlives_a_kill_and_its_call_goes_on() {
    for (era, yes) in YES {
        let Some((scene, host)) = asking(era) else {
            return;
        };
        let asks =
            "the MCP server fake asks, and calls this tool again with the answer: Delete 3 files?";
        yoi(&scene, &["approve"])
            .ends(0)
            .prints(&[asks, r#"{"sure":true}"#]);
        assert_eq!(lines(&scene.file("calls")).len(), 1, "{era}");
        host.end(Signal::KILL);
        let host = Host::start(&scene, &[]);
        until("the question", || status(&scene)["state"] == "waiting");
        yoi(&scene, &["approve"]).ends(0).prints(&[asks]);
        yoi(&scene, &["approve", "p", "1"]).ends(0);
        until("the end of the turn", || is_done(&scene));
        let log = yoi(&scene, &["log", "p"]).ends(0);
        assert_eq!(lines(&scene.file("calls")).len(), 2, "{era}: {}", log.out);
        let answers = lines(&scene.file("answers"));
        assert_eq!(answers.last().map(String::as_str), Some(*yes), "{era}");
        let accepted = answers.iter().filter(|answer| answer.contains("accept"));
        assert_eq!(accepted.count(), 1, "{era}: {answers:?}");
        log.prints(&[
            "the server asks a person before it goes on: Delete 3 files?",
            "deleted",
        ]);
        host.end(Signal::TERM);
        scene.sound("p");
    }
}

#[test]
fn a_no_is_no_call() {
    for (era, _) in YES {
        let Some((scene, host)) = asking(era) else {
            return;
        };
        yoi(&scene, &["approve", "p", "1", "--deny"]).ends(0);
        until("the end of the turn", || is_done(&scene));
        assert_eq!(lines(&scene.file("calls")).len(), 1, "{era}");
        let answers = lines(&scene.file("answers"));
        assert!(
            answers.iter().all(|answer| !answer.contains("accept")),
            "{era}: {answers:?}"
        );
        host.end(Signal::TERM);
        scene.sound("p");
    }
}

#[test]
fn a_call_that_went_on_without_an_answer_has_its_result() {
    let Some(scene) = scene() else { return };
    let server = server(&scene);
    let start = ["--allow-calls", "--", "python3", &server, "legacy"];
    yoi(&scene, &[&["mcp", "add", "fake"], &start[..]].concat()).ends(0);
    let call = [("mcp__fake__asks", json!({ "of": 4 }))];
    let (results, run) = run_calls(&scene, "p", &call);
    assert_eq!(results.len(), 1, "{run:?}");
    let (status, text) = &results[0];
    assert_eq!(status, "ok", "{text}");
    assert!(text.contains("nobody agreed"), "{text}");
    let told = "the MCP server fake asked a person, was told that nobody answered, and went on: Delete 3 files?";
    let records = json!(scene.records("p")).to_string();
    assert!(records.contains(told), "{records}");
    assert_eq!(lines(&scene.file("calls")).len(), 1);
}

// What one server wanted back went to another one to which a person had given its name.
#[test]
fn a_question_is_of_the_server_that_was_pinned() {
    let Some(scene) = scene() else { return };
    scene.write("other.py", include_str!("server.py"));
    let call = json!({ "calls": [{ "name": "mcp__fake__asks", "arguments": { "of": 3 } }] });
    let turn = [call, json!({ "text": "done" })];
    let model = scene.script("asks.jsonl", &[&turn[..], &turn, &turn].concat());
    let run = || {
        yoi(
            &scene,
            &["run", "--pod", "p", "--adopt", "-m", &model, "go"],
        )
    };
    let other = scene.file("other.py").to_str().unwrap().to_owned();
    for (server, runs) in [(&server(&scene), 1), (&other, 2)] {
        let start = [
            "--replace",
            "--allow-calls",
            "--",
            "python3",
            server,
            "modern",
        ];
        yoi(&scene, &[&["mcp", "add", "fake"], &start[..]].concat()).ends(0);
        let done = run();
        let records = scene.records("p");
        let finished: Vec<_> = records
            .iter()
            .filter(|of| of["k"] == "tool_finished")
            .collect();
        assert_eq!(finished.len(), runs, "{done:?}");
        let text = finished[runs - 1]["outcome"].to_string();
        assert!(
            text.contains("the server asks a person before it goes on"),
            "{text}"
        );
    }
    assert!(lines(&scene.file("answers")).is_empty());
    // The same server again: its question waits.
    let done = run();
    assert_eq!(done.code(), Some(3), "{done:?}");
}
