//! State that cannot be written, and state that is damaged.

use crate::scene::{Done, Scene, finish};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Runs a shell's words around the program: `"$@"` is the program and its arguments.
fn around(scene: &Scene, words: &str, args: &[&str]) -> Done {
    let plain = scene.command(args);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", words, "sh"])
        .arg(plain.get_program())
        .args(plain.get_args());
    shell.env_clear().envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell
        .current_dir(scene.path("project"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(shell.spawn().unwrap())
}

fn listing(scene: &Scene, times: usize) -> String {
    let call = json!({ "calls": [{ "name": "List", "arguments": {} }] });
    let answers: Vec<Value> = std::iter::repeat_n(call, times)
        .chain([json!({ "text": "done" })])
        .collect();
    scene.script("listing.jsonl", &answers)
}

#[test]
fn a_state_directory_that_is_a_file() {
    let scene = Scene::new();
    let model = listing(&scene, 0);
    fs::remove_dir(scene.path("state")).unwrap();
    fs::write(scene.path("state"), "").unwrap();
    scene
        .yoi(&["run", "-m", &model, "x"])
        .ends(74)
        .says(&["error: ", "state"]);
    scene.yoi(&["ls"]).ends(74).says(&["state"]);
    scene.yoi(&["doctor"]).ends(1).prints(&["✗ state"]);
    scene
        .yoi(&["run", "--ephemeral", "-m", &model, "x"])
        .ends(0);
}

#[test]
fn a_state_directory_that_is_read_only() {
    let scene = Scene::new();
    let model = listing(&scene, 0);
    fs::set_permissions(scene.path("state"), Permissions::from_mode(0o500)).unwrap();
    if fs::create_dir(scene.path("state/probe")).is_ok() {
        fs::remove_dir(scene.path("state/probe")).unwrap();
        println!(
            "skipped: permissions do not hold this user back; a file in the directory's place is tried elsewhere"
        );
        return;
    }
    let done = scene.yoi(&["run", "-m", &model, "x"]).ends(74);
    done.says(&[
        "ermission denied",
        "set XDG_STATE_HOME to a writable directory, or use --ephemeral",
    ]);
    scene.yoi(&["doctor"]).ends(1).prints(&["✗ state"]);
    fs::set_permissions(scene.path("state"), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_not_the_end() {
    let scene = Scene::new();
    let model = listing(&scene, 200);
    let done = around(
        &scene,
        "ulimit -f 100; exec \"$@\"",
        &["run", "--pod", "p", "-m", &model, "x"],
    )
    .ends(74);
    done.says(&[
        "error: ",
        "ulimit -f",
        "help: raise the limit with `ulimit -f`, then run `yoi run --pod p",
    ]);
    let verified = scene.yoi(&["verify", "p", "--json"]).ends(0).json();
    assert!(verified["records"].as_u64().unwrap() > 10, "{verified}");
    let tiny = around(
        &scene,
        "ulimit -f 0; exec \"$@\"",
        &["run", "--pod", "q", "-m", &model, "x"],
    )
    .ends(74);
    tiny.says(&["error: "]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go on"])
        .ends(0);
    scene.sound("p");
}

#[test]
fn a_full_disk() {
    let scene = Scene::new();
    let model = listing(&scene, 400);
    let words = "mount -t tmpfs -o size=256k none \"$XDG_STATE_HOME\" 2>/dev/null || exit 99; \"$@\"; echo run $?; \
                 \"$1\" verify p; echo verify $?; \"$1\" log p >/dev/null; echo log $?";
    let own = format!("exec unshare --user --map-root-user --mount sh -c '{words}' sh \"$@\"");
    let done = around(&scene, &own, &["run", "--pod", "p", "-m", &model, "x"]);
    if !done.out.contains("run ") {
        println!(
            "skipped: no mount of one's own here ({}); a limit on file sizes is tried elsewhere",
            done.err.trim()
        );
        return;
    }
    done.prints(&["run 74", "records intact", "verify 0", "log 0"])
        .says(&["no storage space"]);
}

#[test]
fn a_damaged_journal_is_named_and_left_as_it_is() {
    let scene = Scene::new();
    let model = listing(&scene, 3);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "look around"])
        .ends(0);
    let path = scene.log_file("p");
    let good = fs::read(&path).unwrap();
    let text = String::from_utf8(good.clone()).unwrap();
    let at = text.find("\"k\":\"response\"").unwrap();
    let mut bad = good.clone();
    bad[at + 6] ^= 1;
    fs::write(&path, &bad).unwrap();
    scene
        .yoi(&["verify", "p"])
        .ends(65)
        .says(&["the pod `p` is damaged: ", "are lost", "help: "]);
    assert_eq!(
        scene.yoi(&["verify", "p", "--json"]).ends(65).json()["ok"],
        false
    );
    let log = scene.yoi(&["log", "p"]).ends(65);
    assert!(
        log.out.contains("> look around") && !log.out.contains("turn 1: done"),
        "{}",
        log.out
    );
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "x"])
        .ends(65)
        .says(&["yoi verify p", "--salvage NEW"]);
    scene.yoi(&["undo", "p"]).ends(65);
    scene.yoi(&["diff", "p"]).ends(65);
    scene.yoi(&["ls"]).ends(0).prints(&["p ", "damaged"]);
    scene.yoi(&["doctor"]);
    assert_eq!(fs::read(&path).unwrap(), bad, "nothing touched it");
    fs::write(&path, &good).unwrap();
    scene.sound("p");
    // Bytes behind the end are a crash's, not damage: they are set aside.
    fs::write(&path, [&good[..], b"{\"c\":\"12345678\",\"n\":"].concat()).unwrap();
    scene.yoi(&["verify", "p"]).ends(0).prints(&[
        "after the last complete record; the next run moves them",
        "records intact",
    ]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "on"])
        .says(&["that followed the last complete record were moved"]);
    scene.sound("p");
    scene.yoi(&["rm", "p", "--purge"]).ends(0);
}

#[test]
fn limits_of_the_process_are_told_as_what_they_are() {
    let scene = Scene::new();
    let model = listing(&scene, 1);
    for files in [4, 6, 10, 16, 31, 32, 33, 36] {
        let words = format!("ulimit -n {files}; exec \"$@\"");
        let done = around(
            &scene,
            &words,
            &["run", "--pod", &format!("p{files}"), "-m", &model, "x"],
        );
        assert!(
            !done.err.contains("uncategorized") && !done.err.contains("panicked"),
            "{files}: {}",
            done.err
        );
        assert!(
            done.code() == Some(0) || done.err.contains("ulimit -n"),
            "{files}: {:?} {}",
            done.code(),
            done.err
        );
    }
}

#[test]
fn a_missing_directory_for_temporary_files_is_named() {
    let scene = Scene::new();
    let model = listing(&scene, 0);
    let words = "TMPDIR=/absent/tmp; export TMPDIR; exec \"$@\"";
    let done = around(&scene, words, &["run", "--ephemeral", "-m", &model, "x"]);
    done.says(&[
        "directory for temporary files, /absent/tmp, does not exist",
        "TMPDIR",
    ]);
    assert!(
        !around(&scene, words, &["run", "-m", &model, "x"])
            .err
            .contains("list the directory")
    );
}

/// What a kill in the first moments of a pod leaves: nothing was acknowledged, so nothing is lost.
#[test]
fn a_pod_that_was_hardly_begun_is_empty_and_not_damaged() {
    let leavings: [&[&str]; 6] = [
        &[],
        &["LOCK"],
        &["LOCK", "log/"],
        &["LOCK", "log/", "log/00000000000000000001.tmp"],
        &["LOCK", "log/", "blobs/", "idx/", "RESERVE"],
        &[
            "LOCK",
            "log/",
            "blobs/",
            "blobs/tmp-0",
            "idx/",
            "quarantine/",
            "RESERVE",
        ],
    ];
    for left in leavings {
        let scene = Scene::new();
        let model = listing(&scene, 0);
        fs::create_dir_all(scene.pod("p")).unwrap();
        for name in left {
            let path = scene.pod("p").join(name);
            if name.ends_with('/') {
                fs::create_dir(path).unwrap()
            } else {
                fs::write(path, "").unwrap()
            }
        }
        let listed = scene.yoi(&["ls"]).ends(0).prints(&["p ", "empty", "never"]);
        assert!(!listed.out.contains("damaged"), "{left:?}: {}", listed.out);
        for command in ["log", "verify", "diff"] {
            let done = scene.yoi(&[command, "p"]).ends(1);
            done.says(&[
                "p is empty",
                "before the first record",
                "`yoi run --pod p \"PROMPT\"`",
            ]);
        }
        let doctor = scene.yoi(&["doctor"]);
        assert!(
            doctor.out.contains("p is empty") && !doctor.out.contains("✗ journal"),
            "{left:?}: {}",
            doctor.out
        );
        scene.yoi(&["run", "--pod", "p", "-m", &model, "x"]).ends(0);
        scene.yoi(&["verify", "p"]).ends(0);
    }
}

/// Kilobytes of one answer in a long transcript; how many megabytes in all by default, and the variable that says more.
const ANSWER: usize = 500;
const TRANSCRIPT: usize = 20;
const VARIABLE: &str = "YOI_TEST_TRANSCRIPT_MB";
/// What `verify` may take of memory, in KiB, however long the transcript is.
const VERIFY_MEMORY: usize = 16 << 10;

#[test]
fn verify_holds_no_transcript_in_memory() {
    let scene = Scene::new();
    let size = std::env::var(VARIABLE).map_or(TRANSCRIPT, |text| text.parse().unwrap());
    let text = "word ".repeat((ANSWER << 10) / 5);
    let call = json!({ "name": "List", "arguments": {} });
    let answer = json!({ "text": text, "calls": [call] });
    let done = json!({ "text": "done" });
    let mut played = Vec::new();
    // A script has a bound, too, so there are several runs, each with a script that begins with what was answered.
    for _ in 0..size.div_ceil(TRANSCRIPT) {
        let before = played.len();
        played.resize(before + TRANSCRIPT * 1024 / ANSWER, answer.clone());
        played.push(done.clone());
        let model = scene.script("long.jsonl", &played);
        scene
            .yoi(&[
                "run",
                "--pod",
                "p",
                "--max-steps",
                "1000",
                "-m",
                &model,
                "x",
            ])
            .ends(0);
        played.fill(done.clone());
    }
    // Another surface, for which all that came before is read again.
    played.push(done);
    let other = scene.script("other.jsonl", &played);
    scene
        .yoi(&["run", "--pod", "p", "-m", &other, "again"])
        .ends(0);
    let words = format!("ulimit -d {VERIFY_MEMORY}; exec \"$@\"");
    around(&scene, &words, &["verify", "p"])
        .ends(0)
        .prints(&["rebuilt byte for byte"]);
}

/// The window in which results leave, in tokens of four bytes, and bytes of a result.
const VIEW: usize = 400_000;
const READ: usize = 24_000;
/// Steps of one run with calls each, and megabytes in all by default.
const READS: (usize, usize) = (25, 8);
const READ_TRANSCRIPT: usize = 8;
/// What `verify` may take of memory then, in KiB: the view twice, and what it takes of a short transcript.
const VIEW_MEMORY: usize = 10 << 10;

/// With many changes of the view, `verify` takes no more than for a view and what is about it.
#[test]
fn verify_holds_one_view_in_memory() {
    let scene = Scene::new();
    let size = std::env::var(VARIABLE).map_or(READ_TRANSCRIPT, |text| text.parse().unwrap());
    scene.write(
        "long.txt",
        "a line of fifty bytes, which is there many times.\n".repeat(READ / 50),
    );
    let read = json!({ "name": "Read", "arguments": { "path": "long.txt" } });
    let reads = json!({ "calls": vec![read; READS.1] });
    let mut played = Vec::new();
    for _ in 0..(size << 20).div_ceil(READS.0 * READS.1 * READ) {
        let before = played.len();
        played.resize(before + READS.0, reads.clone());
        played.push(json!({ "text": "done" }));
        let model = scene.script("long.jsonl", &played);
        scene.config(&format!("[models.\"{model}\"]\ncontext = {VIEW}\n"));
        scene
            .yoi(&[
                "run",
                "--pod",
                "p",
                "--max-steps",
                "1000",
                "-m",
                &model,
                "x",
            ])
            .ends(0);
        played.fill(json!({ "text": "done" }));
    }
    let log = fs::read_dir(scene.pod("p").join("log"))
        .unwrap()
        .map(|entry| fs::File::open(entry.unwrap().path()).unwrap());
    let lines = log
        .flat_map(|file| BufReader::new(file).lines())
        .map_while(Result::ok);
    let changes = lines
        .filter(|line| line.contains(r#""k":"pruned""#))
        .count();
    assert!(changes >= size, "{changes} changes of the view");
    let words = format!("ulimit -d {VIEW_MEMORY}; exec \"$@\"");
    around(&scene, &words, &["verify", "p"])
        .ends(0)
        .prints(&["rebuilt byte for byte"]);
}
