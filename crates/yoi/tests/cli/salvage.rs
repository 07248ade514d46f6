//! A pod whose journal is damaged: what is lost is named, nothing is done on top of it, and a copy of the rest goes on.

use crate::scene::Scene;
use pod::control::Batch;
use pod::record::Record;
use pod::session::restore::decode;
use serde_json::{Value, json};
use session_store::{Options, Reader, Session};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// A pod `p` of three runs, each of which writes the same file, in segments of a few records each; answers them in order.
fn sealed(scene: &Scene) -> Vec<PathBuf> {
    let mut answers = Vec::new();
    for run in ["one", "two", "three"] {
        let content = format!("{run}\n");
        let write = json!({ "calls": [{ "name": "Write", "arguments": { "path": "a.txt", "content": content } }] });
        answers
            .extend([json!({ "calls": [{ "name": "Read", "arguments": { "path": "a.txt" } }] })]);
        answers.extend([write, json!({ "text": "written" })]);
    }
    let model = scene.script("answers", &answers);
    for run in ["one", "two", "three"] {
        scene
            .yoi(&["run", "--pod", "whole", "-m", &model, run])
            .ends(0);
    }
    // A segment gets 16 MiB long: the same records are written again, in shorter ones.
    let options = Options {
        segment_bytes: 8000,
        ..Options::new("s-1", Arc::new(|| 1_790_000_000_000_000))
    };
    let opened = Session::create(&scene.pod("p"), options).unwrap();
    for frame in Reader::open(&scene.pod("whole")).unwrap().frames() {
        let record = decode(&frame.unwrap()).unwrap();
        if !matches!(record, Record::Other { .. }) {
            opened
                .journal
                .append(Batch::of(vec![record]))
                .wait()
                .unwrap();
        }
    }
    opened.journal.close();
    fs::rename(
        scene.pod("whole").join("blobs"),
        scene.pod("p").join("blobs"),
    )
    .unwrap();
    fs::remove_dir_all(scene.pod("whole")).unwrap();
    let mut segments: Vec<_> = fs::read_dir(scene.pod("p").join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    segments.sort();
    assert!(segments.len() > 3, "{segments:?}");
    segments
}

fn model(scene: &Scene) -> String {
    scene.script("more", &vec![json!({ "text": "went on" }); 20])
}

/// The first record of that kind in a sealed segment is not what it was.
fn damage(segments: &[PathBuf], kind: &str) -> u64 {
    let marked = format!("\"k\":\"{kind}\"");
    let (_newest, sealed) = segments.split_last().unwrap();
    let file = sealed
        .iter()
        .find(|file| fs::read_to_string(file).unwrap().contains(&marked))
        .unwrap();
    let text = fs::read_to_string(file).unwrap();
    let line = text.lines().find(|line| line.contains(&marked)).unwrap();
    let seq = serde_json::from_str::<Value>(line).unwrap()["q"]
        .as_u64()
        .unwrap();
    fs::remove_file(file).unwrap();
    fs::write(
        file,
        text.replacen(line, &line.replacen("\"v\":1", "\"v\":3", 1), 1),
    )
    .unwrap();
    seq
}

#[test]
fn damage_in_a_sealed_segment_is_named_and_a_copy_goes_on() {
    let scene = Scene::new();
    let segments = sealed(&scene);
    let model = model(&scene);
    scene.yoi(&["verify", "p"]).ends(0);
    let seq = damage(&segments, "tool_finished");
    // Where the next batch began is unknown.
    let next = seq + 1;
    let found = scene.yoi(&["verify", "p"]).ends(65);
    found
        .says(&[
            "the pod `p` is damaged: 2 records are lost",
            "--salvage NEW",
        ])
        .prints(&[&format!("lost: records {seq} to {next} (at byte ")]);
    let refused = scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go on"])
        .ends(65);
    refused.says(&[
        &format!("the pod `p` is damaged: records {seq} to {next} are lost (at byte "),
        "`yoi verify p --salvage NEW`",
    ]);

    scene
        .yoi(&["verify", "p", "--salvage", "q"])
        .ends(0)
        .prints(&[&format!("lost: records {seq} to {next} (")]);
    let ran = scene
        .yoi(&["run", "--pod", "q", "-m", &model, "go on"])
        .ends(0);
    assert_eq!(ran.out, "went on\n");
    ran.says(&[&format!(
        "restored from a damaged journal: records {seq} to {next} are lost"
    )]);
    let good = scene.yoi(&["verify", "q"]).ends(0);
    good.prints(&[
        &format!(
            "records {seq} to {next} are lost: this pod was restored from a damaged journal (record {seq} at byte"
        ),
        "depend on lost records",
    ]);
    let told = scene.yoi(&["log", "q"]).ends(0);
    told.prints(&[
        &format!("! records {seq} to {next} are lost"),
        "to the model, from yoi: This session was restored",
        "went on",
    ]);
    // And again, as any other pod.
    let again = scene
        .yoi(&["run", "--pod", "q", "-m", &model, "and on"])
        .ends(0);
    assert!(!again.err.contains("damaged"), "{}", again.err);
    scene.yoi(&["verify", "q"]).ends(0);
    let rows = scene.yoi(&["ls", "--json"]).ends(0).json();
    let states: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["name"], &row["state"]))
        .collect();
    assert_eq!(
        states,
        [
            (&json!("p"), &json!("damaged")),
            (&json!("q"), &json!("stopped"))
        ]
    );
}

#[test]
fn undo_takes_back_only_what_it_knows() {
    // The first change is known: what was there before it stands.
    let scene = Scene::new();
    damage(&sealed(&scene), "turn_finished");
    scene.yoi(&["verify", "p", "--salvage", "q"]).ends(0);
    scene
        .yoi(&["undo", "q"])
        .ends(0)
        .prints(&["removed: ", "are lost; their file changes are unknown"]);
    assert!(!scene.file("a.txt").exists());

    // It is lost: the change behind it began with something that nobody knows the beginning of.
    let scene = Scene::new();
    damage(&sealed(&scene), "file_changed");
    scene.yoi(&["verify", "p", "--salvage", "q"]).ends(0);
    let left = scene.yoi(&["undo", "q"]).ends(1);
    left.prints(&[
        "skipped: ",
        "records before its first known change are lost",
    ]);
    assert_eq!(scene.read("a.txt"), "three\n");
}
