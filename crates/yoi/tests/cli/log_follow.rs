//! `yoi log --follow` beside a run, and its ends.

use crate::scene::{Done, Scene, fifo, finish, reached, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout};

/// A log that is followed.
struct Followed {
    child: Child,
    lines: BufReader<ChildStdout>,
    seen: Vec<String>,
}

impl Followed {
    fn start(scene: &Scene, args: &[&str]) -> Self {
        let mut child = scene
            .command(&[&["log", "-f"], args].concat())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Reads up to the first line that has these words.
    fn until(&mut self, words: &str) -> &mut Self {
        while self.seen.last().is_none_or(|line| !line.contains(words)) {
            let mut line = String::new();
            assert!(
                self.lines.read_line(&mut line).unwrap() > 0,
                "no `{words}` in {:#?}",
                self.seen
            );
            self.seen.push(line);
        }
        self
    }

    fn interrupted(self) -> Done {
        signal(self.child.id(), Signal::INT);
        drop(self.lines);
        finish(self.child)
    }
}

/// A run in the pod `held` whose command waits at a gate.
fn held(scene: &Scene) -> Child {
    fifo(&scene.file("started"));
    fifo(&scene.file("gate"));
    let command = "echo $$ > started; read line < gate; echo through";
    let call = json!({ "name": "Bash", "arguments": { "command": command } });
    let model = scene.script(
        "held.jsonl",
        &[json!({ "calls": [call] }), json!({ "text": "done" })],
    );
    let run = scene
        .command(&["run", "--pod", "held", "-m", &model, "go"])
        .spawn()
        .unwrap();
    reached(&scene.file("started"));
    run
}

#[test]
fn a_run_is_followed_through_its_end_and_into_the_next() {
    let scene = Scene::new();
    let run = held(&scene);
    let mut text = Followed::start(&scene, &["held"]);
    let mut records = Followed::start(&scene, &["held", "--json"]);
    let mut late = Followed::start(&scene, &["held", "--json", "--from", "9"]);
    text.until("Bash echo");
    records.until("\"k\":\"tool_started\"");
    fs::write(scene.file("gate"), "on\n").unwrap();
    finish(run).ends(0);
    text.until("through").until("── turn 1: done");
    let model = scene.script(
        "more.jsonl",
        &[
            json!({}),
            json!({ "text": "done" }),
            json!({ "text": "and more" }),
        ],
    );
    scene
        .yoi(&["run", "--pod", "held", "-m", &model, "go on"])
        .ends(0);
    text.until("> go on").until("and more");
    for followed in [&mut records, &mut late] {
        followed
            .until("host_stopped")
            .until("\"k\":\"host_started\"")
            .until("host_stopped");
    }
    // What was printed is what a look at the end prints.
    let shown: Vec<String> = scene
        .yoi(&["log", "held"])
        .out
        .lines()
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(shown.starts_with(&text.seen), "{:#?}", text.seen);
    let all = scene.yoi(&["log", "held", "--json"]).out;
    assert_eq!(records.seen.concat(), all);
    let seq = |line: &String| serde_json::from_str::<Value>(line).unwrap()["q"].as_u64();
    assert_eq!(seq(&late.seen[0]), Some(9));
    assert!(all.ends_with(&late.seen.concat()));
    for followed in [text, records, late] {
        let done = followed.interrupted();
        assert_eq!(
            (done.status.signal(), done.err.as_str()),
            (Some(2), ""),
            "a shell calls it 130"
        );
    }
}

#[test]
fn it_ends_when_the_pod_is_removed_and_when_nobody_reads() {
    let scene = Scene::new();
    let model = scene.script("s.jsonl", &[json!({ "text": "one" })]);
    for remove in [&["rm", "p"][..], &["rm", "p", "--purge"]] {
        scene
            .yoi(&["run", "--pod", "p", "-m", &model, "go"])
            .ends(0);
        let mut followed = Followed::start(&scene, &["p"]);
        followed.until("turn 1");
        let mut unread = Followed::start(&scene, &["p"]);
        unread.until("turn 1");
        drop(unread.lines);
        let done = finish(unread.child).ends(0);
        assert_eq!(done.err, "");
        scene.yoi(remove).ends(0);
        // Another pod of that name is another pod.
        scene
            .yoi(&["run", "--pod", "p", "-m", &model, "go"])
            .ends(0);
        let mut rest = String::new();
        while followed.lines.read_line(&mut rest).unwrap() > 0 {}
        assert_eq!(rest, "");
        finish(followed.child)
            .ends(69)
            .says(&["error: p was removed", "help: "]);
        scene.yoi(&["rm", "p", "--purge"]).ends(0);
    }
}
