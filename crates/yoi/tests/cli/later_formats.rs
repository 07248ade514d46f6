//! A pod that a newer program wrote: an older one refuses it and changes nothing.
//!
//! `YOI_TEST_OLDER` is the program of commit 9a7446b, which reads format 1: `.ci/long` builds it. Without it, this program
//! is the older one, of a pod with a format that does not exist yet.

use crate::scene::{Scene, finish};
use serde_json::{Value, json};
use session_store::{EncodeError, Frames, Options, Records, Session};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// An input that was queued and withdrawn.
struct Withdrawn;

impl Records for Withdrawn {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        frames.record(
            "input_queued",
            1,
            &json!({ "input": 2, "text": "never to be sent" }),
        )?;
        frames
            .record("input_withdrawn", 1, &json!({ "input": 2 }))
            .map(drop)
    }

    fn format(&self) -> u32 {
        2
    }
}

/// A pod `p` of one run, whose newest segment is of format 2; gives the model of another run.
fn newer(scene: &Scene) -> String {
    let model = scene.script(
        "answers",
        &[json!({ "text": "hello" }), json!({ "text": "another" })],
    );
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "one"])
        .ends(0);
    let options = Options::new("s-1", Arc::new(|| 1_790_000_000_000_000));
    let opened = Session::open(&scene.pod("p"), options).unwrap();
    opened.journal.append(Withdrawn).wait().unwrap();
    opened.journal.close();
    model
}

/// The same, but old results left its context.
fn pruned(scene: &Scene) -> String {
    scene.write(
        "long.txt",
        "a line that is read again and again\n".repeat(400),
    );
    let read = json!({ "calls": [{ "name": "Read", "arguments": { "path": "long.txt" } }] });
    let mut answers = vec![read; 12];
    answers.extend([json!({ "text": "done" }), json!({ "text": "another" })]);
    let model = scene.script("answers", &answers);
    scene.config(&format!("[models.\"{model}\"]\ncontext = 40000\n"));
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "one"])
        .ends(0);
    // The older program does not know these keys.
    scene.config("");
    assert!(
        scene
            .records("p")
            .iter()
            .any(|record| record["k"] == "pruned")
    );
    model
}

/// Changes the format of the newest segment to 3.
fn of_tomorrow(scene: &Scene) {
    let path = scene.log_file("p");
    let log = fs::read_to_string(&path).unwrap();
    let (first, rest) = log.split_once('\n').unwrap();
    let changed = first.replace("\"format\":2", "\"format\":3");
    let crc = changed.as_bytes()[15..].iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg())
        })
    });
    fs::write(
        &path,
        format!("{}{:08x}{}\n{rest}", &changed[..6], !crc, &changed[14..]),
    )
    .unwrap();
}

/// Every file below a directory, with its mode and bytes. The text in LOCK names the last process that tried.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(path) = left.pop() {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        if path.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            all.insert(path, (mode, Vec::new()));
        } else {
            let bytes = if path.ends_with("LOCK") {
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            all.insert(path, (mode, bytes));
        }
    }
    all
}

/// The program that is the older one: this one, or the one that was built for this.
fn older(scene: &Scene, program: Option<&OsString>, args: &[&str]) -> crate::scene::Done {
    let plain = scene.command(args);
    let mut command = Command::new(program.map_or(plain.get_program(), |program| program));
    command
        .args(plain.get_args())
        .current_dir(scene.path("project"))
        .env_clear();
    command.envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped());
    finish(
        command
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap(),
    )
}

#[test]
fn a_pod_of_a_later_format_is_refused_and_stays_as_it_is() {
    refused_and_unchanged(newer);
}

#[test]
fn a_pod_with_another_view_is_refused_and_stays_as_it_is() {
    refused_and_unchanged(pruned);
}

fn refused_and_unchanged(make: fn(&Scene) -> String) {
    let program = std::env::var_os("YOI_TEST_OLDER");
    let scene = Scene::new();
    let model = make(&scene);
    if program.is_none() {
        of_tomorrow(&scene);
    }
    let before = tree(&scene.pod("p"));
    let message = match &program {
        Some(_) => "has journal format 2, this build reads 1",
        None => "has journal format 3; this build reads formats 1 and 2",
    };
    let words = ["error: ", message, "help: use a newer "];
    let named = ["run", "-m", &model, "--pod", "p", "more"];
    let newest = ["run", "-m", &model, "-c", "more"];
    let mut refused: Vec<&[&str]> = vec![&named, &newest, &["undo", "p"]];
    let reading: [&[&str]; 5] = [
        &["verify", "p"],
        &["verify", "p", "--json"],
        &["log", "p"],
        &["log", "p", "--json"],
        &["diff", "p"],
    ];
    // What only reads did not look at the format in that program; it shows what it knows.
    let (shown, also) = reading.split_at(if program.is_some() { reading.len() } else { 0 });
    refused.extend(also);
    if program.is_none() {
        refused.push(&["verify", "p", "--salvage", "copy"]);
    }
    for args in shown {
        // Its `verify` says which requests it cannot rebuild.
        older(&scene, program.as_ref(), args).ends(0);
        assert!(tree(&scene.pod("p")) == before, "{args:?}");
    }
    for args in refused {
        older(&scene, program.as_ref(), args).ends(65).says(&words);
        assert!(tree(&scene.pod("p")) == before, "{args:?}");
    }
    assert_eq!(scene.pods(), ["p"]);
}

#[test]
fn a_pod_of_format_2_is_read() {
    let scene = Scene::new();
    newer(&scene);
    scene.yoi(&["verify", "p"]).ends(0);
    let records = scene.records("p");
    let formats: Vec<&Value> = records
        .iter()
        .filter(|record| record["k"] == "segment")
        .map(|r| &r["format"])
        .collect();
    assert_eq!(formats, [1, 2]);
    assert_eq!(records.last().unwrap()["k"], "input_withdrawn");
}
