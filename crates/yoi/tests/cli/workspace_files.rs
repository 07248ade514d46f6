//! What a run may touch, and files that are not as one expects.

use crate::scene::{Done, Scene, fifo, finish};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

/// A run that makes these calls in one step and is then done.
pub(crate) fn calling(scene: &Scene, flags: &[&str], calls: &[(&str, Value)]) -> Done {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(name, arguments)| json!({ "name": name, "arguments": arguments }))
        .collect();
    let model = scene.script(
        "calls.jsonl",
        &[json!({ "calls": calls }), json!({ "text": "done" })],
    );
    scene.yoi(&[&["run", "--json", "-m", &model][..], flags, &["go"]].concat())
}

/// Status and summary of each result, in the order of the calls.
pub(crate) fn results(done: &Done) -> Vec<(String, String)> {
    let mut finished: Vec<Value> = done
        .lines()
        .into_iter()
        .filter(|line| line["k"] == "tool_finished")
        .collect();
    finished.sort_by_key(|line| line["call"].as_str().unwrap().to_owned());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    finished
        .iter()
        .map(|line| {
            (
                text(&line["outcome"]["status"]),
                text(&line["outcome"]["summary"]),
            )
        })
        .collect()
}

#[track_caller]
fn expect(done: &Done, expected: &[(&str, &str)]) {
    let found = results(done);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((status, summary), (expected_status, part)) in found.iter().zip(expected) {
        assert!(
            status == expected_status && summary.contains(part),
            "{status}: {summary}\nexpected {expected_status}: {part}"
        );
    }
}

fn write(path: &str) -> (&'static str, Value) {
    ("Write", json!({ "path": path, "content": "new\n" }))
}

#[test]
fn read_only_writes_nothing() {
    let scene = Scene::new();
    let calls = [
        write("a.txt"),
        ("Bash", json!({ "command": "echo x > b.txt" })),
    ];
    for flags in [&["--read-only"][..], &["--sandbox", "read-only"]] {
        let done = calling(&scene, flags, &calls);
        let found = results(&done);
        assert_eq!(found[0].0, "refused", "{found:?}");
        assert!(!scene.file("a.txt").exists() && !scene.file("b.txt").exists());
    }
}

#[test]
fn a_home_or_a_root_as_project_is_read_only() {
    let scene = Scene::new();
    let model = scene.script(
        "home.jsonl",
        &[
            json!({ "calls": [{ "name": "Write", "arguments": { "path": "a", "content": "" } }] }),
            json!({ "text": "no" }),
        ],
    );
    let mut command = scene.command(&["run", "--pod", "p", "--sandbox", "off", "-m", &model, "go"]);
    command.current_dir(scene.path("home"));
    finish(command.spawn().unwrap())
        .ends(3)
        .says(&["is read-only in this run, because it is"]);
    assert!(!scene.path("home/a").exists());
    let started = scene
        .records("p")
        .into_iter()
        .find(|record| record["k"] == "host_started")
        .unwrap();
    assert_eq!(
        started["sandbox"], "read-only",
        "what is journaled is what was in force"
    );
}

#[test]
fn the_sandbox_off_is_warned_of() {
    let scene = Scene::new();
    let model = scene.script("s.jsonl", &[json!({ "text": "done" })]);
    scene
        .yoi(&["run", "--sandbox", "off", "-m", &model, "go"])
        .ends(0)
        .says(&["warning: the sandbox is off"]);
    scene.config("[sandbox]\nmode = \"off\"\n");
    scene
        .yoi(&["run", "-m", &model, "go"])
        .ends(0)
        .says(&["warning: the sandbox is off"]);
    scene.yoi(&["doctor"]).prints(&["the sandbox is off"]);
}

#[test]
fn a_directory_is_added_and_others_are_not() {
    let scene = Scene::new();
    fs::create_dir(scene.path("other")).unwrap();
    let other = scene.path("other/a.txt");
    let calls = [write(other.to_str().unwrap())];
    expect(&calling(&scene, &[], &calls), &[("refused", "")]);
    assert!(!other.exists());
    let other_dir = scene.path("other");
    expect(
        &calling(&scene, &["--add-dir", other_dir.to_str().unwrap()], &calls),
        &[("refused", "")],
    );
    expect(
        &calling(
            &scene,
            &["--add-write-dir", other_dir.to_str().unwrap()],
            &calls,
        ),
        &[("ok", "created")],
    );
    expect(
        &calling(&scene, &["--add-write-dir", "../other"], &calls),
        &[("ok", "")],
    );
    assert_eq!(fs::read_to_string(other).unwrap(), "new\n");
}

#[test]
fn a_link_out_of_the_project_is_outside() {
    let scene = Scene::new();
    fs::write(scene.path("secret.txt"), "secret").unwrap();
    symlink(scene.path("secret.txt"), scene.file("link.txt")).unwrap();
    symlink(scene.path("home"), scene.file("dir")).unwrap();
    symlink("loop", scene.file("loop")).unwrap();
    let calls = [
        ("Read", json!({ "path": "link.txt" })),
        write("link.txt"),
        write("dir/new.txt"),
        ("Read", json!({ "path": "../secret.txt" })),
        ("Read", json!({ "path": "loop" })),
    ];
    let done = calling(&scene, &[], &calls);
    let found = results(&done);
    assert!(
        found.iter().take(4).all(|(status, _)| status == "refused"),
        "{found:?}"
    );
    assert_ne!(found[4].0, "ok", "{found:?}");
    assert_eq!(
        fs::read_to_string(scene.path("secret.txt")).unwrap(),
        "secret"
    );
    assert!(!scene.path("home/new.txt").exists());
}

#[test]
fn odd_files_are_clear_errors_or_clear_results() {
    let scene = Scene::new();
    scene
        .write("latin.txt", b"caf\xe9\n")
        .write("ok.txt", "needle\n");
    fs::File::create(scene.file("huge.bin"))
        .unwrap()
        .set_len(100_000_000)
        .unwrap();
    let lines: Vec<u8> = b"a line of a long text file\n"
        .iter()
        .copied()
        .cycle()
        .take(27 * 4_000_000)
        .collect();
    scene.write("huge.txt", lines);
    fifo(&scene.file("fifo"));
    let calls = [
        ("Read", json!({ "path": "huge.bin" })),
        ("Read", json!({ "path": "huge.txt", "limit": 3 })),
        ("Read", json!({ "path": "fifo" })),
        ("Read", json!({ "path": "latin.txt" })),
        ("Read", json!({ "path": "." })),
        ("Read", json!({ "path": "nothing.txt" })),
        ("Grep", json!({ "pattern": "needle" })),
        ("List", json!({ "totals": true })),
    ];
    let done = calling(&scene, &[], &calls).ends(0);
    let found = results(&done);
    assert!(
        found[0].0 == "error" && found[0].1.contains("binary"),
        "{:?}",
        found[0]
    );
    assert!(
        found[2].0 == "error" && found[2].1.contains("fifo"),
        "{:?}",
        found[2]
    );
    assert!(found[4].0 == "error" && found[5].0 == "error", "{found:?}");
    assert!(found[6].1.contains("1 match in 1 file"), "{:?}", found[6]);
    assert!(matches!(found[1].0.as_str(), "ok" | "error"));
    assert_eq!(found[7].0, "ok");
    let answer = scene.yoi(&["run", "how many files are here?"]).ends(0);
    assert!(!answer.out.is_empty());
}

#[test]
fn a_directory_that_cannot_be_read_is_passed_over_aloud() {
    let scene = Scene::new();
    scene
        .write("closed/a.txt", "needle\n")
        .write("open/b.txt", "needle\n");
    fs::set_permissions(scene.file("closed"), Permissions::from_mode(0o000)).unwrap();
    // Root reads it all the same.
    let readable = fs::read_dir(scene.file("closed")).is_ok();
    let done = calling(
        &scene,
        &[],
        &[
            ("Grep", json!({ "pattern": "needle" })),
            ("List", json!({ "path": "closed" })),
        ],
    );
    let done = done.ends(0);
    fs::set_permissions(scene.file("closed"), Permissions::from_mode(0o700)).unwrap();
    let found = results(&done);
    assert!(
        found[0].0 == "ok"
            && found[0]
                .1
                .contains(if readable { "2 matches" } else { "1 match" }),
        "{found:?}"
    );
    for line in done
        .lines()
        .iter()
        .filter(|line| line["k"] == "tool_finished")
    {
        let content = line["outcome"]["content"].as_str().unwrap();
        assert_eq!(
            content.contains("could not be read"),
            !readable,
            "{content}"
        );
    }
}
