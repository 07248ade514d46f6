//! A pod that is being worked in, from another terminal.

use crate::scene::{Scene, fifo, finish, reached};
use serde_json::json;
use std::fs;
use std::process::Child;

/// A run in the pod `held` whose command waits at a gate.
fn held(scene: &Scene) -> Child {
    fifo(&scene.file("started"));
    fifo(&scene.file("gate"));
    let command = "echo $$ > started; read line < gate; echo through";
    let model = scene.script(
        "held.jsonl",
        &[
            json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] }),
            json!({ "text": "done" }),
            json!({ "text": "also done" }),
        ],
    );
    let run = scene
        .command(&["run", "--pod", "held", "-m", &model, "go"])
        .spawn()
        .unwrap();
    reached(&scene.file("started"));
    run
}

#[test]
fn only_one_works_in_a_pod_and_others_may_look() {
    let scene = Scene::new();
    let run = held(&scene);
    let pid = format!("by process {}, which started", run.id());
    let model = scene.script("other.jsonl", &[json!({ "text": "x" })]);
    // A second run is its client: its model is chosen already.
    let refused = scene
        .yoi(&["run", "--pod", "held", "-m", &model, "me too"])
        .ends(2);
    refused.says(&[
        "held is running: --model applies only when a pod starts",
        "yoi stop held",
    ]);
    scene.yoi(&["run", "-c", "-m", &model, "me too"]).ends(2);
    let client = scene.command(&["run", "-c", "me too"]).spawn().unwrap();
    scene
        .yoi(&["undo", "held"])
        .ends(75)
        .says(&["held is working"]);
    scene
        .yoi(&["rm", "held"])
        .ends(75)
        .says(&["in use by process", &pid]);
    scene
        .yoi(&["rm", "held", "--purge"])
        .ends(75)
        .says(&["in use by process"]);
    scene.yoi(&["ls"]).ends(0).prints(&["held", "working"]);
    scene
        .yoi(&["log", "held"])
        .ends(0)
        .prints(&["> go", "Bash echo"]);
    scene
        .yoi(&["verify", "held"])
        .ends(0)
        .prints(&["records intact"]);
    let json = scene
        .yoi(&["run", "--json", "--pod", "held", "-m", &model, "x"])
        .ends(2)
        .lines();
    assert_eq!(json.last().unwrap()["exit"], 2);
    while scene.yoi(&["status", "held", "--json"]).ends(0).json()["queued"] == json!([]) {}
    fs::write(scene.file("gate"), "on\n").unwrap();
    assert_eq!(finish(run).ends(0).out, "done\n");
    // The run ends when its own prompt is done: what waits is kept for the next one, if it was not begun.
    let client = finish(client);
    assert!(
        client.code() == Some(0) || client.err.contains("input 2 is kept"),
        "{client:?}"
    );
    assert_eq!(scene.sound("held"), 1);
    assert_eq!(
        scene.yoi(&["ls", "--json"]).ends(0).json()[0]["state"],
        "stopped"
    );
}

#[test]
fn two_new_runs_do_not_meet() {
    let scene = Scene::new();
    let model = scene.script("s.jsonl", &[json!({ "text": "done" })]);
    let start = |args: &[&str]| {
        scene
            .command(&[&["run", "-m", &model][..], args, &["x"]].concat())
            .spawn()
            .unwrap()
    };
    let runs: Vec<Child> = (0..6).map(|_| start(&[])).collect();
    runs.into_iter().for_each(|run| drop(finish(run).ends(0)));
    assert_eq!(scene.pods().len(), 6);
    let same: Vec<Child> = (0..6).map(|_| start(&["--pod", "same"])).collect();
    for run in same {
        let done = finish(run);
        // The script has one answer: a later one finds no more, or finds the pod live or busy.
        assert!(matches!(done.code(), Some(0 | 2 | 75 | 78)), "{done:?}");
    }
    scene.sound("same");
}
