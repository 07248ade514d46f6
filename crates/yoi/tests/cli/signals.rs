//! Ending a run from outside.

use crate::endpoint::{Endpoint, Reply};
use crate::scene::{Scene, fifo, finish, gone, reached, signal};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

/// What a command does that stays when it is asked to go, and says that it was asked. It spins: a shell that waits for
/// a program it starts just then runs its trap only when that program has ended.
const STUBBORN: &str = "trap 'echo asked > asked' TERM; echo $$ > started; while :; do :; done";

/// What a command does that waits.
const PATIENT: &str = "echo $$ > started; sleep 600";

/// A run whose command says its process id and does not end.
fn endless(scene: &Scene, flags: &[&str], command: &str) -> (Child, String) {
    fifo(&scene.file("started"));
    fifo(&scene.file("asked"));
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command, "timeout_s": 3600 } }] });
    let model = scene.script("endless.jsonl", &[call, json!({ "text": "going on" })]);
    let run = scene
        .command(&[&["run", "-m", &model][..], flags, &["go"]].concat())
        .spawn()
        .unwrap();
    let pid = reached(&scene.file("started"));
    (run, pid.trim().to_owned())
}

fn outcome(scene: &Scene) -> Option<String> {
    let records = scene.records("p");
    let last = records
        .iter()
        .rfind(|record| record["k"] == "turn_finished")?;
    last["outcome"]["outcome"].as_str().map(str::to_owned)
}

#[test]
fn one_signal_cancels_the_turn_and_closes_it() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let scene = Scene::new();
        let (run, pid) = endless(&scene, &["--pod", "p"], PATIENT);
        signal(run.id(), sent);
        finish(run)
            .ends(code)
            .says(&["cancelled", "continue with `yoi run --pod p"]);
        assert!(gone(&pid));
        assert_eq!(outcome(&scene).as_deref(), Some("cancelled"));
        assert_eq!(scene.sound("p"), 1);
        let model = format!("scripted:{}", scene.path("endless.jsonl").display());
        let next = scene.yoi(&["run", "-c", "-m", &model, "go on"]).ends(0);
        assert!(
            !next.err.contains("restored"),
            "a closed turn needs no repair: {}",
            next.err
        );
    }
}

#[test]
fn a_second_signal_leaves_at_once_and_takes_the_children_along() {
    let scene = Scene::new();
    let (run, pid) = endless(&scene, &["--pod", "p"], STUBBORN);
    signal(run.id(), Signal::INT);
    reached(&scene.file("asked"));
    signal(run.id(), Signal::TERM);
    // The second signal's own code: the first did not get to end the run.
    finish(run).ends(143);
    assert!(gone(&pid), "no child survives");
    let model = format!("scripted:{}", scene.path("endless.jsonl").display());
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go on"])
        .ends(0);
    assert_eq!(scene.sound("p"), 1);
}

#[test]
fn leaving_at_once_leaves_nothing_of_an_ephemeral_run() {
    let scene = Scene::new();
    let (run, pid) = endless(&scene, &["--ephemeral"], STUBBORN);
    signal(run.id(), Signal::TERM);
    reached(&scene.file("asked"));
    signal(run.id(), Signal::INT);
    finish(run).ends(130);
    assert!(gone(&pid));
    let kept: Vec<PathBuf> = scene
        .left_behind()
        .into_iter()
        .filter(|p| p.to_string_lossy().contains("ephemeral"))
        .collect();
    assert_eq!(kept, Vec::<PathBuf>::new());
}

#[test]
fn a_signal_while_the_model_is_silent() {
    let (asked, told) = mpsc::channel();
    let endpoint = Endpoint::start(move |_, _| {
        asked.send(()).unwrap();
        Reply::Hang(Vec::new())
    });
    let scene = Scene::new();
    scene.config(&endpoint.config(""));
    let run = scene
        .command(&["run", "--pod", "p", "go"])
        .env("FAKE_KEY", "k")
        .spawn()
        .unwrap();
    told.recv().unwrap();
    signal(run.id(), Signal::INT);
    finish(run).ends(130);
    assert_eq!(outcome(&scene).as_deref(), Some("cancelled"));
    scene.sound("p");
}

#[test]
fn a_hangup_that_was_ignored_from_the_start_stays_ignored() {
    let scene = Scene::new();
    fifo(&scene.file("started"));
    fifo(&scene.file("gate"));
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": "echo x > started; read line < gate" } }] });
    let model = scene.script("gate.jsonl", &[call, json!({ "text": "done" })]);
    let plain = scene.command(&["run", "-m", &model, "go"]);
    let mut nohup = Command::new("sh");
    nohup
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args());
    nohup.env_clear().envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    nohup
        .current_dir(scene.path("project"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let run = nohup.spawn().unwrap();
    reached(&scene.file("started"));
    signal(run.id(), Signal::HUP);
    fs::write(scene.file("gate"), "on\n").unwrap();
    assert_eq!(finish(run).ends(0).out, "done\n");
}

#[test]
fn a_reader_that_holds_stdout_does_not_hold_the_end() {
    let scene = Scene::new();
    let long = "a line that nobody reads\n".repeat(20_000);
    let model = scene.script("long.jsonl", &[json!({ "text": long })]);
    let mut run = scene.command(&["run", "-m", &model, "go"]).spawn().unwrap();
    // It has begun to print, and the pipe holds less than the answer: it waits for a reader that reads no more.
    let mut held = run.stdout.take().unwrap();
    held.read_exact(&mut [0]).unwrap();
    signal(run.id(), Signal::TERM);
    finish(run).ends(143);
    drop(held);
}
