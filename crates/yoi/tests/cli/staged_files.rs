//! What a killed run had written beside a file.

use crate::scene::{Scene, finish, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Long enough that writing it takes a while.
const LINES: usize = 300_000;
/// How often a run is killed until one was writing; the first, nearly always.
const TRIES: usize = 20;

fn staged(scene: &Scene) -> Vec<PathBuf> {
    let entries = fs::read_dir(scene.file(""))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(".yoi-")
        })
        .collect()
}

/// Kills a run as soon as something is beside its file; nothing if it was gone again by then.
fn killed(flags: &[&str]) -> Option<Scene> {
    let scene = Scene::new();
    fs::write(
        scene.file("long.txt"),
        format!("begin\n{}", "a line of text\n".repeat(LINES)),
    )
    .unwrap();
    let edit = json!({ "path": "long.txt", "edits": [{ "old": "begin", "new": "changed" }] });
    let read =
        json!({ "calls": [{ "name": "Read", "arguments": { "path": "long.txt", "limit": 3 } }] });
    let edit = json!({ "calls": [{ "name": "Edit", "arguments": edit }] });
    let script = scene.script("edit.jsonl", &[read, edit, json!({ "text": "done" })]);
    let mut run = scene
        .command(&[&["run", "-m", &script][..], flags, &["go"]].concat())
        .spawn()
        .unwrap();
    while staged(&scene).is_empty() && run.try_wait().unwrap().is_none() {}
    if run.try_wait().unwrap().is_none() {
        signal(run.id(), Signal::KILL);
    }
    finish(run);
    (!staged(&scene).is_empty()).then_some(scene)
}

#[test]
fn any_next_start_removes_what_a_killed_run_wrote_beside_a_file() {
    for flags in [&[][..], &["--ephemeral"], &["--pod", "p"]] {
        let scene = (0..TRIES)
            .find_map(|_| killed(flags))
            .expect("a run that is killed while it writes");
        let hello = scene.script("hello.jsonl", &[json!({ "text": "hello" })]);
        scene.yoi(&["run", "-m", &hello, "hello"]).ends(0);
        assert_eq!(staged(&scene), Vec::<PathBuf>::new(), "{flags:?}");
        assert!(
            fs::read_to_string(scene.file("long.txt"))
                .unwrap()
                .starts_with("begin\n")
        );
    }
}

/// What stands in the project.
fn inside(scene: &Scene) -> Vec<String> {
    let entries = fs::read_dir(scene.file(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// The call of a model, and what came of it.
fn called(scene: &Scene, limit: &str, name: &str, arguments: &Value) -> String {
    let read = json!({ "name": "Read", "arguments": { "path": "f.txt", "limit": 3 } });
    let calls = [read, json!({ "name": name, "arguments": arguments })]
        .map(|call| json!({ "calls": [call] }));
    let script = scene.script(
        "calls.jsonl",
        &[&calls[..], &[json!({ "text": "done" })]].concat(),
    );
    let run = scene.command(&["run", "--pod", "p", "-m", &script, "go"]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", &format!("ulimit -f {limit}; exec \"$@\""), "sh"])
        .arg(run.get_program())
        .args(run.get_args());
    limited.env_clear().envs(
        run.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    limited.current_dir(run.get_current_dir().unwrap_or(&scene.file("")));
    limited
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(limited.spawn().unwrap());
    let records = scene.records("p");
    records
        .iter()
        .rfind(|record| record["k"] == "tool_finished")
        .unwrap()["outcome"]
        .to_string()
}

/// The name is longer than a file system takes, which shows when its directories are there.
#[test]
fn a_file_that_cannot_be_made_leaves_no_directory() {
    let scene = Scene::new();
    let path = format!("deep/er/{}", "n".repeat(300));
    let outcome = called(
        &scene,
        "unlimited",
        "Write",
        &json!({ "path": path, "content": "x\n" }),
    );
    assert!(outcome.contains("too long"), "{outcome}");
    assert_eq!(inside(&scene), [".git"]);
}

/// As on a full disk: a write is cut short, and the next one refused.
#[test]
fn a_file_that_cannot_be_written_whole_leaves_nothing() {
    let scene = Scene::new();
    scene.write("f.txt", "x\n".repeat(2000));
    let edits = json!([{ "old": "x", "new": "y".repeat(2000), "replace_all": true }]);
    let outcome = called(
        &scene,
        "2048",
        "Edit",
        &json!({ "path": "f.txt", "edits": edits }),
    );
    assert!(outcome.contains("ulimit -f"), "{outcome}");
    assert_eq!(inside(&scene), [".git", "f.txt"]);
    assert_eq!(scene.read("f.txt"), "x\n".repeat(2000));
}
