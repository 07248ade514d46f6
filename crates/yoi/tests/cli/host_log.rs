//! The log of the host that `YOI_LOG` switches on: what is in it, what never is, and that no run depends on it.

use crate::endpoint::{Endpoint, Reply, calls, text};
use crate::scene::{Done, Scene, finish};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Runs the program with this filter.
fn with(scene: &Scene, filter: &str, args: &[&str]) -> Done {
    finish(
        scene
            .command(args)
            .env("YOI_LOG", filter)
            .env("FAKE_KEY", "canary-6f1d0a9c7be24")
            .spawn()
            .unwrap(),
    )
}

/// A model that reads a file with a marked argument, and marked texts everywhere.
fn marked(scene: &Scene) -> String {
    scene.write("marked-argument.txt", "marked-result\n");
    let read =
        json!({ "calls": [{ "name": "Read", "arguments": { "path": "marked-argument.txt" } }] });
    scene.script("script.jsonl", &[read, json!({ "text": "marked-answer" })])
}

/// In this order, and each behind the one before it.
#[track_caller]
fn in_order(log: &str, words: &[&str]) {
    let mut rest = log;
    for word in words {
        rest = rest
            .split_once(word)
            .unwrap_or_else(|| panic!("`{word}` is not behind the others in\n{log}"))
            .1;
    }
}

#[test]
fn turns_steps_calls_and_commits_are_in_it_and_no_contents() {
    let scene = Scene::new();
    let model = marked(&scene);
    let run = ["run", "--pod", "p", "-m", &model, "marked-prompt"];
    with(&scene, "debug", &run).ends(0);
    let path = scene.pod("p").join("host.log");
    let log = fs::read_to_string(&path).unwrap();
    let spans = [
        "INFO pod::host opened the session existed=false",
        "INFO pod::control::turn turn{turn=1}: begins",
        "turn{turn=1}:step{request=1 bytes=",
        "call{call=c00000001 tool=Read feature=builtin:files effect=ReadOnly}: begins",
        "ends after",
        "status=Ok bytes=",
        "}: ends after",
        "turn{turn=1}:step{request=2 bytes=",
        "turn{turn=1}: ends after",
        "outcome=done",
    ];
    in_order(&log, &spans);
    in_order(
        &log,
        &[
            "DEBUG pod::control::pipeline commit{records=",
            "first=verdict",
            "begins",
            "ends after",
        ],
    );
    for line in log.lines() {
        assert!(
            line.starts_with("20") && line.as_bytes()[23] == b'Z',
            "a time in UTC: {line}"
        );
    }
    assert!(
        !log.contains("marked-"),
        "no prompt, argument, result or answer:\n{log}"
    );
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // At a higher level there is less, and a later run goes on with the file.
    with(
        &scene,
        "warn,pod::control::turn=info",
        &["run", "--pod", "p", "list the files"],
    )
    .ends(0);
    let both = fs::read_to_string(&path).unwrap();
    let second = both.strip_prefix(&log).unwrap();
    in_order(second, &["turn{turn=2}: begins", "turn{turn=2}: ends"]);
    assert!(
        !second.contains("commit{") && !second.contains("call{"),
        "{second}"
    );
    // Nothing else minds the file.
    scene.sound("p");
    scene.yoi(&["ls"]).ends(0).prints(&["p"]);
    scene.yoi(&["verify", "p", "--salvage", "copy"]).ends(0);
    assert!(
        !scene.pod("copy").join("host.log").exists(),
        "a copy is of what is on record"
    );
    scene.yoi(&["rm", "p", "--purge"]).ends(0);
    assert_eq!(scene.pods(), ["copy"]);
    // Off, there is none.
    scene.yoi(&["run", "--pod", "q", "list the files"]).ends(0);
    for off in ["", "off"] {
        with(&scene, off, &["run", "--pod", "q", "list the files"]).ends(0);
    }
    assert!(!scene.pod("q").join("host.log").exists());
}

#[test]
fn without_a_pod_it_goes_to_standard_error() {
    let scene = Scene::new();
    let model = marked(&scene);
    let done = with(
        &scene,
        "info",
        &["run", "--ephemeral", "-q", "-m", &model, "marked-prompt"],
    )
    .ends(0);
    in_order(
        &done.err,
        &[
            "turn{turn=1}: begins",
            "tool=Read",
            "turn{turn=1}: ends after",
        ],
    );
    assert_eq!(done.out, "marked-answer\n");
    assert!(!done.err.contains("marked-"), "{}", done.err);
    assert_eq!(scene.left_behind(), Vec::<std::path::PathBuf>::new());
    let quiet = scene
        .yoi(&["run", "--ephemeral", "-q", "-m", &model, "x"])
        .ends(0);
    assert_eq!(quiet.err, "");
}

#[test]
fn failed_requests_are_in_it_and_no_key() {
    const KEY: &str = "canary-6f1d0a9c7be24";
    let scene = Scene::new();
    let endpoint = Endpoint::start(|number, _| match number {
        0 => Reply::Status(
            "503 Service Unavailable",
            "retry-after: 0\r\n",
            format!("{{\"error\":\"busy {KEY}\"}}"),
        ),
        1 => calls(&[("Read", json!({ "path": "key.txt" }).to_string())]),
        2 => text("done"),
        _ => Reply::Status(
            "401 Unauthorized",
            "",
            json!({ "error": { "message": format!("bad {KEY}") } }).to_string(),
        ),
    });
    scene
        .write("key.txt", format!("{KEY}\n"))
        .config(&endpoint.config(""));
    with(&scene, "trace", &["run", "--pod", "p", "look"]).ends(0);
    with(&scene, "trace", &["run", "--pod", "p", "again"]).ends(78);
    let log = fs::read_to_string(scene.pod("p").join("host.log")).unwrap();
    let words = [
        "WARN pod::control::turn turn{turn=1}:step{request=1 ",
        "the request failed and is sent again attempt=1 delay=",
        "turn{turn=2}:step{request=3 ",
        "the request failed kind=Denied",
        "outcome=model_failed",
    ];
    in_order(&log, &words);
    assert!(!log.contains(KEY) && !log.contains("busy"), "{log}");
}

#[test]
fn a_filter_that_is_none_ends_a_run_before_it_begins() {
    let scene = Scene::new();
    for filter in ["verbose", "pod=", "info,", "pod=debug=info"] {
        let done = with(&scene, filter, &["run", "x"]).ends(78);
        done.says(&[
            &format!("error: YOI_LOG={filter}: the value must be error, warn, info, debug, trace or off\n"),
            "help: use such a level",
        ]);
    }
    assert_eq!(scene.pods(), Vec::<String>::new());
    // It is no key of the configuration.
    for args in [&["config", "show"][..], &["ls"], &["run", "list the files"]] {
        let done = with(&scene, "info", args).ends(0);
        assert!(
            !done.err.contains("YOI_LOG") && !done.out.contains("YOI_LOG"),
            "{}{}",
            done.out,
            done.err
        );
    }
}

#[test]
fn a_log_that_cannot_be_written_is_a_warning() {
    let scene = Scene::new();
    scene.yoi(&["run", "--pod", "p", "list the files"]).ends(0);
    let path = scene.pod("p").join("host.log");
    fs::create_dir(&path).unwrap();
    with(&scene, "info", &["run", "--pod", "p", "list the files"])
        .ends(0)
        .says(&["warning: the log of the host cannot be written: "]);
    fs::remove_dir(&path).unwrap();
    // A device that is always full, as a disk would be.
    if Path::new("/dev/full").exists() {
        let stderr = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = scene.command(&["run", "--ephemeral", "list the files"]);
        finish(
            command
                .env("YOI_LOG", "trace")
                .stderr(stderr)
                .spawn()
                .unwrap(),
        )
        .ends(0);
    }
}

#[test]
fn a_recovery_is_in_it() {
    let scene = Scene::new();
    scene.yoi(&["run", "--pod", "p", "list the files"]).ends(0);
    let log = scene.log_file("p");
    let text = fs::read_to_string(&log).unwrap();
    // As after a kill in the middle of a record.
    fs::write(&log, format!("{text}{{\"k\":\"turn_st")).unwrap();
    with(&scene, "warn", &["run", "--pod", "p", "list the files"]).ends(0);
    let log = fs::read_to_string(scene.pod("p").join("host.log")).unwrap();
    in_order(
        &log,
        &["WARN pod::host recovered the session crashed=false cut=13 "],
    );
}
