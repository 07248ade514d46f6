//! `builtin:confirm-gate`: what it asks about, when a question ends as every command shows it, and the denial at the end.

use crate::hosts::{Host, until};
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::{Value, json};

/// A scene whose model writes a file, which no rule asks about.
fn scene(timeout: &str) -> (Scene, String) {
    let scene = Scene::new();
    let keys = format!(
        "enabled = true\ntools = [\"Write\"]\npatterns = [\"^made$\"]\ntimeout = \"{timeout}\"\n"
    );
    scene.config(&format!("[features.\"builtin:confirm-gate\"]\n{keys}"));
    let write =
        |path: &str| json!({ "name": "Write", "arguments": { "path": path, "content": "x" } });
    let answers = [
        json!({ "calls": [write("other"), write("made")] }),
        json!({ "text": "understood" }),
    ];
    let model = scene.script("s.jsonl", &answers);
    (scene, model)
}

fn records(scene: &Scene, kind: &str) -> Vec<Value> {
    scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == kind)
        .collect()
}

#[test]
fn every_command_shows_when_a_question_ends() {
    let (scene, model) = scene("2h");
    let host = Host::start(&scene, &["go", "-m", &model]);
    until("the pod waits", || {
        scene.yoi(&["status", "p", "--json"]).ends(0).json()["state"] == "waiting"
    });
    until("the other call has run", || scene.file("other").exists());
    assert!(!scene.file("made").exists());
    let asked = "builtin:confirm-gate (gate `confirm-gate`): may Write run with `^made$`?";
    let ends = ["denied in 1 h ", "Z) if nobody answers"];
    scene
        .yoi(&["approve"])
        .ends(0)
        .prints(&[asked, ends[0], ends[1]]);
    scene.yoi(&["ls"]).ends(0).prints(&[
        "waiting for approval 1: builtin:confirm-gate",
        ends[0],
        ends[1],
    ]);
    scene
        .yoi(&["status", "p"])
        .ends(0)
        .prints(&["may Write run", ends[0], ends[1]]);
    let expires = &records(&scene, "approval_requested")[0]["expires"];
    assert_eq!(expires["after_ms"], 7_200_000);
    let listed = scene.yoi(&["approve", "--json"]).ends(0).json();
    assert_eq!(&listed[0]["expires"], expires);
    let status = scene.yoi(&["status", "p", "--json"]).ends(0).json();
    assert_eq!(status["approvals"][0]["expires_ms"], expires["at_ms"]);
    scene
        .yoi(&["send", "p", "more"])
        .ends(0)
        .says(&["p waits for approval 1", ends[0], ends[1]]);
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["approval 1: builtin:confirm-gate", "; denied at 20"]);
    host.end(Signal::TERM);
    // Also from the files.
    scene
        .yoi(&["status", "p"])
        .ends(0)
        .prints(&[ends[0], ends[1]]);
}

#[test]
fn what_nobody_answers_is_denied_and_the_turn_goes_on() {
    let (scene, model) = scene("1s");
    let host = Host::start(&scene, &["go", "-m", &model]);
    until("the turn is done", || {
        !records(&scene, "turn_finished").is_empty()
    });
    assert_eq!(
        records(&scene, "turn_finished")[0]["outcome"]["outcome"],
        "done"
    );
    assert!(!scene.file("made").exists());
    let [resolved] = &records(&scene, "approval_resolved")[..] else {
        panic!()
    };
    assert_eq!(
        (&resolved["decision"], &resolved["by"]),
        (&json!("deny"), &Value::Null)
    );
    let late = scene.yoi(&["approve", "p", "1"]).ends(1);
    late.says(&["approval 1 was already denied: nobody answered within 1s"]);
    scene.yoi(&["log", "p"]).ends(0).prints(&[
        "approval 1: denied: nobody answered within 1s",
        "understood",
    ]);
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn a_run_without_a_person_is_refused() {
    let (scene, model) = scene("1s");
    let done = scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .ends(3);
    done.says(&[
        "may Write run with `^made$`?",
        "this run cannot ask for approval",
    ]);
    assert!(scene.file("other").exists() && !scene.file("made").exists());
    assert!(records(&scene, "approval_requested").is_empty());
}
