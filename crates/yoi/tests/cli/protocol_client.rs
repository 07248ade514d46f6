//! The Python client of the protocol, `docs/protocol/client.py`, with a live pod.

use crate::hosts::Host;
use crate::scene::{Done, Scene, finish};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::process::{Command, Stdio};

const CLIENT: &str = include_str!("../../../../docs/protocol/client.py");

/// Lines of the client at most.
const MAX_LINES: usize = 60;

/// Runs the client; none without Python.
fn run(scene: &Scene, text: &str, mark: Option<&str>) -> Option<Done> {
    let path = scene.path("client.py");
    fs::write(&path, CLIENT).unwrap();
    let mut command = Command::new("python3");
    command
        .arg(path)
        .arg(scene.pod("p"))
        .arg(text)
        .env_remove("YOI_CALL");
    if let Some(mark) = mark {
        command.env("YOI_CALL", mark);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    match command.spawn() {
        Ok(child) => Some(finish(child)),
        Err(error) => {
            println!("skipped: python3 cannot be started: {error}");
            None
        }
    }
}

#[test]
fn the_client_of_the_documents_follows_and_drives_a_pod() {
    assert!(CLIENT.lines().count() <= MAX_LINES);
    let scene = Scene::new();
    let model = scene.script(
        "two.jsonl",
        &[json!({ "text": "one" }), json!({ "text": "two" })],
    );
    let host = Host::start(&scene, &["-m", &model]);
    let Some(first) = run(&scene, "go", None) else {
        return host.end(Signal::TERM);
    };
    assert_eq!(first.ends(0).out, "> go\none\n");
    // It begins with the newest records.
    assert_eq!(
        run(&scene, "go on", None).unwrap().ends(0).out,
        "> go\none\n> go on\ntwo\n"
    );
    // A process that a pod started only views.
    let refused = run(&scene, "more", Some("c00000001")).unwrap();
    assert_eq!(
        refused.ends(1).says(&["not_allowed"]).out,
        "> go\none\n> go on\ntwo\n"
    );
    let queued = scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "input_queued");
    let by: Vec<_> = queued
        .map(|record| record["by"]["client"].clone())
        .collect();
    assert_eq!(by, [json!("client.py"), json!("client.py")]);
    host.end(Signal::TERM);
    run(&scene, "too late", None)
        .unwrap()
        .ends(1)
        .says(&["no connection"]);
}
