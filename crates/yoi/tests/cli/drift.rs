//! A pod that goes on with other features than at its last start: what is told, to whom, and what needs consent.

use crate::hosts::Host;
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::{Value, json};
use session_store::{EncodeError, Frames, Options, Records, Session};
use std::sync::Arc;

fn loop_detect(keys: &str) -> String {
    format!("[features.\"builtin:loop-detect\"]\n{keys}\n")
}

/// A scene whose pod `p` ran once with this configuration.
fn ran(config: &str) -> Scene {
    let scene = Scene::new();
    scene
        .config(config)
        .yoi(&["run", "--pod", "p", "list the files"])
        .ends(0);
    scene
}

fn of_kind(scene: &Scene, kind: &str) -> Vec<Value> {
    scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == kind)
        .collect()
}

#[test]
fn a_guard_that_changed_needs_consent() {
    let cases = [
        (
            "enabled = true\nwindow = 9",
            "builtin:loop-detect has its setting `window` changed from 3 to 9",
        ),
        (
            "enabled = false",
            "builtin:loop-detect was switched off by $XDG_CONFIG_HOME/yoi/config.toml:2 (guard loop-detect, guard loop-detect-answers)",
        ),
        (
            "",
            "builtin:loop-detect is not switched on any more (guard loop-detect, guard loop-detect-answers)",
        ),
    ];
    for (keys, told) in cases {
        let scene = ran(&loop_detect("enabled = true"));
        let before = scene.records("p").len();
        scene.config(&loop_detect(keys));
        let ways: [&[&str]; 3] = [
            &["run", "--pod", "p", "list the files"],
            &["run", "-c", "list the files"],
            &["start", "p"],
        ];
        for way in ways {
            scene
                .yoi(way)
                .ends(78)
                .says(&[told, "help: ", "`yoi start p --adopt`"]);
            assert_eq!(
                scene.records("p").len(),
                before,
                "{way:?}: a refusal that is recorded would be an acceptance"
            );
        }
        let warned = format!("warning: since the last start, {told}");
        scene
            .yoi(&["run", "--pod", "p", "-q", "--adopt", "list the files"])
            .ends(0)
            .says(&[&warned]);
        let silent = scene.yoi(&["run", "--pod", "p", "list the files"]).ends(0);
        assert!(
            !silent.err.contains("since the last start"),
            "{}",
            silent.err
        );
        scene.sound("p");
    }
}

#[test]
fn a_live_pod_takes_the_consent_of_its_start() {
    let scene = ran(&loop_detect("enabled = true"));
    scene.config(&loop_detect("enabled = true\nwindow = 9"));
    scene.yoi(&["start", "p", "-q"]).ends(78);
    let host = Host::start(&scene, &["--adopt"]);
    host.end(Signal::TERM);
    Host::start(&scene, &[]).end(Signal::TERM);
    assert!(
        of_kind(&scene, "host_started").last().unwrap()["launch"]
            .get("adopt")
            .is_none()
    );
}

#[test]
fn the_difference_between_two_starts_names_the_setting() {
    let scene = ran(&loop_detect("enabled = true"));
    scene.config(&loop_detect("enabled = true\nwindow = 9"));
    scene
        .yoi(&["run", "--pod", "p", "--adopt", "list the files"])
        .ends(0);
    scene.config(&loop_detect("enabled = false"));
    scene
        .yoi(&["run", "--pod", "p", "--adopt", "list the files"])
        .ends(0);
    scene
        .yoi(&["features", "p", "--diff", "1..2"])
        .ends(0)
        .prints(&["builtin:loop-detect", "~ setting window: 3 → 9"]);
    let off = "~ state: installed → disabled";
    let shown = scene
        .yoi(&["features", "p", "--diff", "2..3"])
        .ends(0)
        .prints(&["builtin:loop-detect", off]);
    for hidden in ["settings_digest", "grants_digest", "code"] {
        assert!(!shown.out.contains(hidden), "{}", shown.out);
    }
}

#[test]
fn the_model_is_told_once_what_it_no_longer_has() {
    let scene = ran("");
    scene.config("[features.\"builtin:shell\"]\nenabled = false\n");
    let told = "builtin:shell no longer offers Bash";
    scene
        .yoi(&["run", "--pod", "p", "list the files"])
        .ends(0)
        .says(&[told]);
    let model_was_told = || {
        let notes = of_kind(&scene, "system_item");
        notes
            .iter()
            .filter(|note| {
                note["text"]
                    .as_str()
                    .is_some_and(|text| text.contains(told))
            })
            .count()
    };
    assert_eq!(model_was_told(), 1);
    scene.yoi(&["run", "--pod", "p", "list the files"]).ends(0);
    assert_eq!(model_was_told(), 1);
    scene.config("");
    let back = scene.yoi(&["run", "--pod", "p", "list the files"]).ends(0);
    back.says(&["since the last start, builtin:shell is new"]);
    scene.sound("p");
}

/// The report of an older program.
struct Older(Value);

impl Records for Older {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        frames
            .record("features", 1, &json!({ "report": self.0 }))
            .map(drop)
    }
}

#[test]
fn a_journal_without_digests_has_no_drift() {
    let scene = ran(&loop_detect("enabled = true"));
    let mut report = of_kind(&scene, "features").pop().unwrap()["report"].take();
    report.as_object_mut().unwrap().remove("digest");
    for feature in report["features"].as_array_mut().unwrap() {
        for key in [
            "body",
            "settings",
            "settings_digest",
            "grants_digest",
            "attached_by",
        ] {
            feature.as_object_mut().unwrap().remove(key);
        }
    }
    let session = of_kind(&scene, "host_started")[0]["session"]
        .as_str()
        .map(str::to_owned);
    let options = Options::new(
        session.unwrap_or_else(|| "s-1".to_owned()),
        Arc::new(|| 1_790_000_000_000_000),
    );
    let opened = Session::open(&scene.pod("p"), options).unwrap();
    opened.journal.append(Older(report)).wait().unwrap();
    opened.journal.close();
    scene.config("");
    let gone_on = scene.yoi(&["run", "--pod", "p", "list the files"]).ends(0);
    assert!(
        !gone_on.err.contains("since the last start"),
        "{}",
        gone_on.err
    );
}

/// A required feature that is off stops the pod, and its report is no consent to its absence.
#[test]
fn a_start_that_lacked_a_required_guard_accepts_nothing() {
    let scene = ran(&loop_detect("required = true"));
    scene.config(&loop_detect("enabled = false\nrequired = true"));
    scene
        .yoi(&["run", "--pod", "p", "list the files"])
        .ends(78)
        .says(&["is required by"]);
    scene.config("");
    scene
        .yoi(&["run", "--pod", "p", "list the files"])
        .ends(78)
        .says(&["builtin:loop-detect is not switched on any more"]);
}
