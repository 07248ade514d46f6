//! `record:MODEL`: what an endpoint answered, as a script that plays again.
//!
//! The streams and scripts in `tests/recorded` are both ours: streams in each vendor's documented format, served on
//! loopback, and what a recording made of them. With a change of either, the scripts are made again by this test's own
//! words: it prints what it got.

use crate::endpoint::{Endpoint, Reply};
use crate::scene::{Scene, finish};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../recorded/", $name))
    };
}

/// An API, its streams in order, the script they make, and the answer.
const SESSIONS: [(&str, [&str; 2], &str, &str); 2] = [
    (
        "anthropic",
        [recorded!("anthropic-1.sse"), recorded!("anthropic-2.sse")],
        recorded!("anthropic.jsonl"),
        "a.txt has two lines.\n",
    ),
    (
        "openai-chat",
        [recorded!("openai-1.sse"), recorded!("openai-2.sse")],
        recorded!("openai.jsonl"),
        "a.txt has two lines.\n",
    ),
];

fn recordings(scene: &Scene) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(scene.path("state/yoi/recordings")) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_recorded_run_plays_again() {
    for (api, streams, script, answer) in SESSIONS {
        let endpoint = Endpoint::start(move |n, _| Reply::Stream(streams[n.min(1)].to_owned()));
        let scene = Scene::new();
        scene
            .config(&endpoint.speaking(api, ""))
            .write("a.txt", "one\ntwo\n");
        let run = scene.command(&[
            "run",
            "--pod",
            "live",
            "-m",
            "record:fake/one",
            "how long is a.txt?",
        ]);
        let done = finish({ run }.env("FAKE_KEY", "k").spawn().unwrap()).ends(0);
        assert_eq!(done.out, answer);
        done.says(&[
            "record:fake/one",
            "answers are written to ",
            "recordings/fake-one-",
        ]);
        let files = recordings(&scene);
        assert_eq!(files.len(), 1);
        assert_eq!(
            fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let made = fs::read_to_string(&files[0]).unwrap();
        assert_eq!(
            made, script,
            "{api}: the script that was made stands on the left"
        );
        assert_eq!(scene.sound("live"), 2);
        let model = format!("scripted:{}", files[0].display());
        let again = scene
            .yoi(&["run", "--pod", "again", "-m", &model, "how long is a.txt?"])
            .ends(0);
        assert_eq!(again.out, answer);
        assert_eq!(scene.sound("again"), 2);
        let calls = |pod: &str| -> Vec<_> {
            let records = scene.records(pod);
            let started = records
                .into_iter()
                .filter(|record| record["k"] == "tool_started");
            started
                .map(|record| (record["name"].clone(), record["arguments"].clone()))
                .collect()
        };
        assert_eq!(calls("live"), calls("again"));
    }
}

#[test]
fn nothing_is_recorded_of_what_was_no_answer() {
    let scene = Scene::new();
    scene
        .yoi(&["run", "-m", "record:nope", "x"])
        .ends(78)
        .says(&["`nope` is not a model"]);
    let cut = scene.script(
        "cut.jsonl",
        &[serde_json::json!({ "text": "half", "cut": true })],
    );
    scene
        .yoi(&["run", "-m", &format!("record:{cut}"), "x"])
        .ends(5);
    let doctor = scene
        .command(&["doctor"])
        .env("YOI_MODEL", "record:offline")
        .spawn()
        .unwrap();
    assert!(
        finish(doctor)
            .out
            .contains("✓ model          record:offline")
    );
    assert_eq!(recordings(&scene), Vec::<PathBuf>::new());
    scene
        .yoi(&["run", "-m", "record:offline", "list the files"])
        .ends(0);
    assert_eq!(recordings(&scene).len(), 1);
    fs::remove_dir_all(scene.path("state/yoi/recordings")).unwrap();
    fs::write(scene.path("state/yoi/recordings"), "").unwrap();
    scene
        .yoi(&["run", "-m", "record:offline", "list the files"])
        .ends(5)
        .says(&["the recording: "]);
}
