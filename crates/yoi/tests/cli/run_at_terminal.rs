//! `yoi run` asks the person at its terminal, and nobody and nothing else answers there.

use crate::approvals::bash;
use crate::hosts::until;
use crate::person::AtTerminal;
use crate::scene::{Scene, signal};
use rustix::process::Signal;
use serde_json::json;

const PROMPT: &str = "allow this call? y: once; p: in this pod; r: by a rule (shown first); n, or n WORDS for the model: deny; Ctrl-D: leave it waiting: ";

/// A project in which `touch` asks, and a model that calls it.
fn scene() -> (Scene, String) {
    let scene = Scene::new();
    scene.config(
        "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"ask\"\n",
    );
    let answers = [
        json!({ "text": "I touch it", "calls": [bash("touch made")] }),
        json!({ "text": "all is done" }),
    ];
    let model = scene.script("s.jsonl", &answers);
    (scene, model)
}

fn run(scene: &Scene, model: &str, typed: &str, more: &[&str]) -> AtTerminal {
    AtTerminal::start(
        scene,
        typed,
        &[&["run", "--pod", "r", "-m", model, "go"], more].concat(),
    )
}

/// A run that has asked.
fn asked(scene: &Scene, model: &str, more: &[&str]) -> AtTerminal {
    let mut person = run(scene, model, "y\ny\n", more);
    for shown in [
        "I touch it",
        "? approval 1: Bash (sandbox workspace-write)",
        "command: touch made",
        "requires your approval",
    ] {
        person.sees(shown);
    }
    person.sees("`p` allows it and later calls of this pod that match: Bash touch made");
    person.sees(PROMPT);
    person
}

/// It still waits, and can be answered later.
fn left(scene: &Scene) {
    let records = scene.records("r");
    let last = |kind: &str| {
        records
            .iter()
            .rev()
            .find(|record| record["k"] == kind)
            .cloned()
    };
    assert_eq!(
        last("turn_finished").unwrap()["outcome"]["outcome"],
        "waiting"
    );
    assert!(last("approval_resolved").is_none() && last("tool_started").is_none());
    scene
        .yoi(&["approve"])
        .ends(0)
        .prints(&["r 1  Bash", "`yoi start r`, then `yoi approve r 1`"]);
    assert!(!scene.file("made").exists());
}

#[test]
fn what_is_typed_behind_the_question_counts_and_the_run_goes_on() {
    let (scene, model) = scene();
    let mut person = asked(&scene, &model, &[]);
    assert!(
        !scene.file("made").exists(),
        "what was typed before answered"
    );
    person.types("\n");
    person.sees(PROMPT);
    person.types("y\n");
    person.sees("all is done");
    person.ends(0);
    assert!(scene.file("made").exists());
    let answer = scene
        .records("r")
        .into_iter()
        .find(|record| record["k"] == "approval_resolved")
        .unwrap();
    assert_eq!(
        (&answer["decision"], &answer["by"]["client"]),
        (&json!("allow"), &json!("yoi run"))
    );
    scene.sound("r");
}

#[test]
fn a_denial_reaches_the_model() {
    let (scene, model) = scene();
    let mut person = asked(&scene, &model, &[]);
    person.types("n not here\n");
    person.sees("a person denied this call: not here");
    person.ends(3);
    assert!(!scene.file("made").exists());
    scene.sound("r");
}

#[test]
fn the_end_of_input_leaves_it_waiting() {
    let (scene, model) = scene();
    let mut person = asked(&scene, &model, &[]);
    person.types("\u{4}");
    let shown = person.ends(6);
    assert!(shown.contains("a call waits for your approval"), "{shown}");
    left(&scene);
}

#[test]
fn sigterm_leaves_it_waiting() {
    let (scene, model) = scene();
    let person = asked(&scene, &model, &[]);
    signal(person.pid(), Signal::TERM);
    person.ends(6);
    left(&scene);
}

#[test]
fn the_time_limit_leaves_it_waiting() {
    let (scene, model) = scene();
    asked(&scene, &model, &["--timeout", "15s"]).ends(6);
    left(&scene);
}

#[test]
fn a_run_that_loses_the_foreground_leaves_it_waiting() {
    let (scene, model) = scene();
    let script =
        format!("set -m; $YOI run --pod r -m {model} go; bg >bg.out; wait %1; echo ended $?");
    let mut person = AtTerminal::start_by_script(&scene, "", &script);
    person.sees(PROMPT);
    person.types("\u{1a}");
    person.sees("ended 6");
    person.ends(0);
    left(&scene);
}

#[test]
fn ctrl_c_cancels() {
    let (scene, model) = scene();
    let mut person = asked(&scene, &model, &[]);
    person.types("\u{3}");
    person.ends(130);
    let records = scene.records("r");
    let end = records
        .iter()
        .rev()
        .find(|record| record["k"] == "turn_finished")
        .unwrap();
    assert_eq!(end["outcome"]["outcome"], "cancelled");
    scene
        .yoi(&["approve"])
        .ends(0)
        .prints(&["no call waits for approval"]);
    assert!(!scene.file("made").exists());
    scene.sound("r");
}

#[test]
fn another_terminal_can_answer() {
    let (scene, model) = scene();
    let mut person = asked(&scene, &model, &[]);
    scene
        .yoi(&["approve", "r", "1"])
        .ends(0)
        .prints(&["allowed: Bash touch made"]);
    person.sees("all is done");
    person.ends(0);
    assert!(scene.file("made").exists());
    scene.sound("r");
}

#[test]
fn piped_input_is_no_answer() {
    let (scene, model) = scene();
    let script = format!("yes y | head -c 60000 | $YOI run --pod r -m {model} go");
    let mut person = AtTerminal::start_by_script(&scene, "", &script);
    person.sees(PROMPT);
    assert!(!scene.file("made").exists());
    person.types("n\n");
    person.sees("a person denied this call");
    person.ends(3);
    assert!(!scene.file("made").exists());
}

#[test]
fn where_nobody_is_to_be_asked_the_call_is_refused() {
    for flag in ["--no-ask", "--quiet", "--json"] {
        let (scene, model) = scene();
        let shown = run(&scene, &model, "y\ny\n", &[flag]).ends(3);
        assert!(!shown.contains("allow this call?"), "{flag}: {shown}");
        assert!(
            scene
                .records("r")
                .iter()
                .all(|record| record["k"] != "approval_requested"),
            "{flag}"
        );
        assert!(!scene.file("made").exists(), "{flag}");
    }
    // In the background of its terminal.
    let (scene, model) = scene();
    let script = format!("set -m; $YOI run --pod r -m {model} go & wait %1; echo ended $?");
    let mut person = AtTerminal::start_by_script(&scene, "y\n", &script);
    person.sees("ended 3");
    person.ends(0);
    assert!(!scene.file("made").exists());
}

#[test]
fn other_calls_of_the_answer_go_on_while_it_asks() {
    let (scene, _) = scene();
    let write =
        |path: &str| json!({ "name": "Write", "arguments": { "path": path, "content": "x" } });
    let calls = json!({ "calls": [write(".env"), write("other")] });
    let model = scene.script("t.jsonl", &[calls, json!({ "text": "all is done" })]);
    let mut person = run(&scene, &model, "", &[]);
    person.sees(PROMPT);
    until("the other call has run", || scene.file("other").exists());
    person.types("y\n");
    person.sees("all is done");
    person.ends(0);
    assert!(scene.file(".env").exists());
    scene.sound("r");
}
