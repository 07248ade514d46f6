//! What a session offers beside prompts: modes, commands, plans, images.

use super::{Editor, Stays};
use crate::scene::Scene;
use crate::shown_files::png;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_mode_is_the_sandbox_of_the_next_start() {
    let scene = Scene::new();
    let write = json!({ "name": "Write", "arguments": { "path": "new", "content": "x\n" } });
    let answers = [
        json!({ "calls": [write] }),
        json!({ "text": "refused" }),
        json!({ "calls": [write] }),
        json!({ "text": "written" }),
    ];
    let model = scene.script("s.jsonl", &answers);
    let _pods = Stays(&scene);
    let mut one = Editor::ready(&scene, &["-m", &model]);
    let params = json!({ "cwd": scene.path("project"), "mcpServers": [] });
    let opened = one.call("session/new", params.clone());
    assert_eq!(opened["modes"]["currentModeId"], "workspace-write");
    let mut two = Editor::ready(&scene, &[]);
    let mut load = params;
    load["sessionId"] = json!("project");
    two.call("session/load", load);
    let mode = |mode: &str| json!({ "sessionId": "project", "modeId": mode });
    let (code, says) = one.fails("session/set_mode", mode("off"));
    assert_eq!((code, says.contains("`off`")), (-32602, true));
    one.call("session/set_mode", mode("read-only"));
    two.until_told(|update| update["currentModeId"] == "read-only");
    let prompt = one.prompt("project", "write it");
    assert_eq!(one.stopped(prompt), "end_turn");
    assert_eq!(one.calls()[0].1, "failed");
    assert!(!scene.file("new").exists());
    two.call("session/set_mode", mode("workspace-write"));
    one.until_told(|update| update["currentModeId"] == "workspace-write");
    let prompt = one.prompt("project", "now");
    assert_eq!(one.stopped(prompt), "end_turn");
    assert_eq!(scene.read("new"), "x\n");
    // The whole text of a new file, without one before.
    let is_new = |content: &Value| content["newText"] == "x\n" && content["oldText"].is_null();
    let shown = one.told.iter().any(|told| {
        let content = told["update"]["content"].as_array();
        told["update"]["status"] == "completed" && content.is_some_and(|all| all.iter().any(is_new))
    });
    assert!(shown);
    one.leave();
    two.leave();
    scene.sound("project");
}

#[test]
fn commands_of_the_pod_and_verbs_are_offered_and_obeyed() {
    let scene = Scene::new();
    let dir = scene.path("config/yoi/commands");
    fs::create_dir_all(&dir).unwrap();
    fs::write(
        dir.join("review.md"),
        "---\ndescription: reviews\n---\nReview $1.\n",
    )
    .unwrap();
    let task = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let calls = [
        task("TaskCreate", json!({ "title": "read" })),
        task("TaskCreate", json!({ "title": "write" })),
        task("TaskUpdate", json!({ "id": 1, "status": "done" })),
    ];
    let answers = [
        json!({ "calls": calls }),
        json!({ "text": "reviewed" }),
        json!({ "text": "on" }),
    ];
    let model = scene.script("s.jsonl", &answers);
    let _pods = Stays(&scene);
    let mut editor = Editor::ready(&scene, &["-m", &model]);
    let session = editor.new_session(&scene);
    editor.until_told(|update| {
        let commands = update["availableCommands"].as_array();
        let names = commands
            .into_iter()
            .flatten()
            .map(|command| &command["name"]);
        names
            .filter(|name| **name == "review" || **name == "resume")
            .count()
            == 2
    });
    let prompt = editor.prompt(&session, "/review main");
    assert_eq!(editor.stopped(prompt), "end_turn");
    let mut plans = editor
        .told
        .iter()
        .filter(|told| told["update"]["sessionUpdate"] == "plan");
    let entry = |title: &str, status: &str| json!({ "content": title, "priority": "medium", "status": status });
    let wanted = json!([entry("read", "completed"), entry("write", "pending")]);
    assert_eq!(plans.next_back().unwrap()["update"]["entries"], wanted);
    for (text, says) in [
        ("/pause", "Done."),
        ("/undo", "`yoi attach project` opens it"),
        ("/nothing", "no command"),
    ] {
        let prompt = editor.prompt(&session, text);
        assert_eq!(editor.stopped(prompt), "end_turn");
        let messages = editor.messages();
        assert!(
            messages.last().unwrap().1.contains(says),
            "{text}: {messages:?}"
        );
    }
    let block = json!([{ "type": "text", "text": "go on" }]);
    let (code, says) = editor.fails(
        "session/prompt",
        json!({ "sessionId": session, "prompt": block }),
    );
    assert_eq!(code, -32603);
    assert!(
        says.contains("project is held") && says.contains("`/resume`"),
        "{says}"
    );
    let prompt = editor.prompt(&session, "/resume");
    editor.stopped(prompt);
    let prompt = editor.prompt(&session, "go on");
    assert_eq!(editor.stopped(prompt), "end_turn");
    editor.leave();
    let inputs: Vec<Value> = scene
        .records("project")
        .into_iter()
        .filter(|record| record["k"] == "input_queued")
        .map(|record| record["text"].clone())
        .collect();
    assert_eq!(inputs, ["Review main.", "go on"]);
}

#[test]
fn an_image_and_a_resource_come_with_the_input() {
    let scene = Scene::new();
    let model = scene.script("s.jsonl", &[json!({ "text": "seen" })]);
    let _pods = Stays(&scene);
    let mut editor = Editor::ready(&scene, &["-m", &model]);
    let session = editor.new_session(&scene);
    let prompt = json!([
        { "type": "text", "text": "compare" },
        { "type": "image", "mimeType": "image/png", "data": STANDARD.encode(png(200)), "uri": "file:///p/x.png" },
        { "type": "resource", "resource": { "uri": "file:///p/a.rs", "text": "fn a() {}" } },
    ]);
    let prompt = editor.request(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    assert_eq!(editor.stopped(prompt), "end_turn");
    editor.leave();
    let records = scene.records("project");
    let input = records
        .iter()
        .find(|record| record["k"] == "input_queued")
        .unwrap();
    assert_eq!(input["attachments"][0]["media"], "image/png");
    assert_eq!(input["attachments"][0]["name"], "x.png");
    assert_eq!(
        input["text"],
        "compare\n\n<resource uri=\"/p/a.rs\">\nfn a() {}\n</resource>"
    );
    assert_eq!(input["by"]["client"], "yoi acp");
}
