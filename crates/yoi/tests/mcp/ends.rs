//! How servers end.

use super::{SYSTEM_PATH, add, allow, run_calls, scene, starts, yoi};
use serde_json::json;
use std::time::{Duration, Instant};

/// A call that the server never answers.
const HANG: &str = "    elif method == \"tools/call\":\n        note(\"hangs\", str(me)); import time; time.sleep(600)\n";

/// Waits until a file has a line, and gives it.
fn line_of(path: &std::path::Path) -> String {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if let Some(line) = text.lines().next() {
            return line.to_owned();
        }
        assert!(Instant::now() < until, "no line in {path:?}");
        std::thread::yield_now();
    }
}

/// Whether a process has the server's program and is no zombie.
fn servers() -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let of = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("cmdline")).ok();
    entries
        .filter_map(of)
        .filter(|line| line.contains(MARK))
        .count()
}

/// No other process of this machine has this word.
const MARK: &str = concat!(
    "yoi-test-",
    env!("CARGO_PKG_VERSION"),
    "-server-that-is-killed"
);

#[test]
fn no_server_is_left_when_its_pod_is_killed() {
    let Some(scene) = scene() else { return };
    let text = include_str!("server.py").replace(
        "    elif method == \"tools/call\":\n",
        &format!("{HANG}    elif method == \"none\":\n"),
    );
    scene.write("server.py", text);
    add(&scene, "fake", &format!("modern {MARK}"));
    allow(&scene, &["mcp__fake__echo"]);
    let call = json!({ "calls": [{ "name": "mcp__fake__echo", "arguments": {} }] });
    let model = scene.script("hang.jsonl", &[call, json!({ "text": "done" })]);
    let args = ["run", "--pod", "p", "-m", &model, "go"];
    let mut run = scene
        .command(&args)
        .env("PATH", SYSTEM_PATH)
        .spawn()
        .unwrap();
    line_of(&scene.file("hangs"));
    assert!(servers() > 0, "it runs");
    run.kill().unwrap();
    run.wait().unwrap();
    let killed = Instant::now();
    while servers() > 0 {
        assert!(
            killed.elapsed() < Duration::from_secs(1),
            "a server is left"
        );
        std::thread::yield_now();
    }
    // The next start says what is known of the call, and calls nothing.
    let before = starts(&scene);
    let answers = [json!({ "text": "used" }), json!({ "text": "done" })];
    let model = scene.script("on.jsonl", &answers);
    yoi(&scene, &["run", "--pod", "p", "-m", &model, "go on"]).ends(0);
    assert_eq!(starts(&scene), before);
    scene.sound("p");
}

#[test]
fn a_server_that_writes_without_end_holds_up_nothing() {
    let Some(scene) = scene() else { return };
    add(&scene, "fake", "legacy floods");
    allow(&scene, &["mcp__fake__nothing"]);
    let call = [("mcp__fake__nothing", json!({}))];
    let (results, run) = run_calls(&scene, "p", &call);
    assert_eq!((run.code(), results.len()), (Some(0), 1), "{run:?}");
    scene.sound("p");
    let server = super::server(&scene);
    let args = ["mcp", "add", "other", "--", "python3", &server];
    yoi(&scene, &[&args[..], &["legacy", "endless"]].concat())
        .ends(69)
        .says(&["its list of tools is over 4 MiB"]);
}
