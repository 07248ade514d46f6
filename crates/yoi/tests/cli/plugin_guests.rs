//! The example whose tools and gates guests answer, from its grant to a run.

use crate::plugins::{SYSTEM_PATH, has_python};
use crate::scene::{Scene, finish};
use serde_json::json;

const DIR: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/plugins/review-first"
);

#[test]
fn a_gate_of_guests_is_shown_granted_and_asked() {
    if !has_python() {
        return;
    }
    let scene = Scene::new();
    scene.yoi(&["plugin", "check", DIR]).ends(0);
    scene.yoi(&["plugin", "add", DIR]).ends(0);
    // A new package is that example under another name, with a tool of its own.
    scene
        .yoi(&["plugin", "new", "acme-first", "--python"])
        .ends(0);
    scene.yoi(&["plugin", "check", "acme-first"]).ends(0);
    let listed = scene.yoi(&["grant"]).ends(0);
    for line in [
        "guests run `python3 -B {package}/guest.py`",
        "gate review-before-push at PreToolCall",
        "state branches, kept for the session",
    ] {
        assert!(listed.out.contains(line), "{line}: {}", listed.out);
    }
    scene.yoi(&["grant", "plugin:review-first"]).ends(0);
    let push = json!({ "calls": [{ "name": "Bash", "arguments": { "command": "echo git push origin fix" } }] });
    let review = json!({ "calls": [{ "name": "Reviewed", "arguments": { "branch": "fix" } }] });
    let script = [push.clone(), review, push, json!({ "text": "done" })];
    let model = scene.script("push.jsonl", &script);
    let run = |args: &[&str]| {
        let mut command = scene.command(args);
        finish(command.env("PATH", SYSTEM_PATH).spawn().unwrap())
    };
    run(&["run", "--pod", "p", "-m", &model, "go"]).ends(0);
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("{text}: {log}"));
    let denied = at("this branch was not reviewed");
    let reviewed = at("1 reviewed");
    assert!(denied < reviewed, "{log}");
    assert_eq!(
        log.matches("this branch was not reviewed").count(),
        1,
        "{log}"
    );
    scene.yoi(&["verify", "p"]).ends(0);
    // Without a sandbox no guest is started, and a gate that is not asked would allow.
    let off = run(&["run", "--sandbox", "off", "-m", &model, "go"]).ends(78);
    assert!(off.err.contains("lacks its gates"), "{}", off.err);
}

const COUNTS: &str = r#"
from yoi_guest import Feature

feature = Feature()


@feature.tool("acme_ids")
def ids():
    return "2 ids", "first\nsecond", {"ids": [1, 2]}


feature.run()
"#;

const COUNTS_MANIFEST: &str = r#"
[package]
name = "acme"
version = "0.1.0"

[features.main]
runtime = "guest"
guest = { program = "python3", args = ["-B", "{package}/guest.py"] }

[[features.main.tools]]
name = "acme_ids"
about = "List ids."
effect = "read_only"
schema = { type = "object", additionalProperties = false }
"#;

#[test]
fn data_of_a_guest_is_in_the_log_and_not_in_the_answer() {
    if !has_python() {
        return;
    }
    let scene = Scene::new();
    let kit = include_str!("../../../../docs/plugins/sdk/yoi_guest.py");
    for (file, text) in [
        ("plugin.toml", COUNTS_MANIFEST),
        ("guest.py", COUNTS),
        ("yoi_guest.py", kit),
    ] {
        scene.write(&format!("acme/{file}"), text);
    }
    scene.yoi(&["plugin", "add", "acme"]).ends(0);
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    let call = json!({ "calls": [{ "name": "acme_ids", "arguments": {} }] });
    let model = scene.script("ids.jsonl", &[call, json!({ "text": "done" })]);
    let mut command = scene.command(&["run", "--pod", "p", "-m", &model, "go"]);
    finish(command.env("PATH", SYSTEM_PATH).spawn().unwrap()).ends(0);
    let lines = scene.yoi(&["log", "--json", "p"]).ends(0).out;
    let data = r#""data":{"value":{"ids":[1,2]}}"#;
    assert_eq!(lines.matches(data).count(), 1, "{lines}");
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    assert!(log.contains("data: 13 bytes (--full)"), "{log}");
    let log = scene.yoi(&["log", "--full", "p"]).ends(0).out;
    assert!(log.contains(r#"data: {"ids":[1,2]}"#), "{log}");
    scene.yoi(&["verify", "p"]).ends(0);
}
