//! Sessions are pods: created, prompted, cancelled, asked about, and told again by another process.

use super::{Editor, Stays};
use crate::scene::{Scene, fifo, reached, signal};
use rustix::process::Signal;
use serde_json::{Value, json};

const TEXT: &str = "agent_message_chunk";

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

fn pair(one: &str, two: &str) -> (String, String) {
    (one.to_owned(), two.to_owned())
}

/// A model that reads a file, changes it and says so.
fn changes_a_file(scene: &Scene) -> String {
    scene.write("a.txt", "one\n");
    let edits = json!([{ "old": "one", "new": "two" }]);
    let answers = [
        json!({ "reasoning": "I look first.", "calls": [call("Read", json!({ "path": "a.txt" }))] }),
        json!({ "text": "It says one.", "calls": [call("Edit", json!({ "path": "a.txt", "edits": edits }))] }),
        json!({ "text": "It says two now." }),
        json!({ "text": "Nothing else." }),
    ];
    scene.script("s.jsonl", &answers)
}

#[test]
fn a_prompt_is_a_turn_of_a_pod_that_stays() {
    let scene = Scene::new();
    let model = changes_a_file(&scene);
    let _pods = Stays(&scene);
    let mut editor = Editor::ready(&scene, &["-m", &model]);
    let session = editor.new_session(&scene);
    assert_eq!(session, "project");
    let prompt = editor.prompt(&session, "change it");
    assert_eq!(editor.stopped(prompt), "end_turn");
    // Everything was told before the answer.
    let wanted = [
        pair("agent_thought_chunk", "I look first."),
        pair(TEXT, "It says one."),
        pair(TEXT, "It says two now."),
    ];
    assert_eq!(editor.messages(), wanted);
    let calls = [
        pair("Read a.txt", "completed"),
        pair("Edit a.txt", "completed"),
    ];
    assert_eq!(editor.calls(), calls);
    let path = scene.file("a.txt").canonicalize().unwrap();
    let is_diff = |content: &Value| {
        content["type"] == "diff"
            && content["path"] == path.to_str().unwrap()
            && content["oldText"] == "one"
            && content["newText"] == "two"
    };
    let of_edit = |told: &&Value| told["update"]["kind"] == "edit";
    let edit = &editor.told.iter().find(of_edit).unwrap()["update"];
    assert!(
        edit["content"].as_array().unwrap().iter().any(is_diff),
        "{edit}"
    );
    assert_eq!(edit["locations"][0]["path"], path.to_str().unwrap());
    assert_eq!(scene.read("a.txt"), "two\n");
    // Another session of the directory has another name.
    assert_eq!(editor.new_session(&scene), "project-2");
    assert_eq!(editor.leave(), (Some(0), String::new()));
    let status = scene.yoi(&["status", "project", "--json"]).ends(0).json();
    assert_eq!(status["state"], "idle");
    scene.sound("project");
}

#[test]
fn what_cannot_be_done_is_an_error_and_ends_nothing() {
    let scene = Scene::new();
    let _pods = Stays(&scene);
    let mut editor = Editor::start(&scene, &["-m", "offline"]);
    let (code, says) = editor.fails("session/new", json!({ "cwd": "/", "mcpServers": [] }));
    assert_eq!(code, -32600);
    assert!(says.contains("send `initialize` first"), "{says}");
    let hello =
        json!({ "protocolVersion": 7, "clientCapabilities": { "session": { "notices": {} } } });
    assert_eq!(editor.call("initialize", hello)["protocolVersion"], 1);
    for (method, params, code, words) in [
        (
            "session/fork",
            json!({}),
            -32601,
            "no method `session/fork`",
        ),
        ("session/new", json!({ "cwd": 3 }), -32602, "do not fit"),
        (
            "session/new",
            json!({ "cwd": "a", "mcpServers": [] }),
            -32602,
            "not absolute",
        ),
        (
            "session/new",
            json!({ "cwd": "/none", "mcpServers": [] }),
            -32603,
            "/none is not a directory",
        ),
        (
            "session/load",
            json!({ "sessionId": "../x", "cwd": "/", "mcpServers": [] }),
            -32002,
            "no session",
        ),
        (
            "session/load",
            json!({ "sessionId": "other", "cwd": "/", "mcpServers": [] }),
            -32002,
            "`yoi ls` lists",
        ),
        (
            "session/prompt",
            json!({ "sessionId": "other", "prompt": [{ "type": "text", "text": "x" }] }),
            -32002,
            "session/load opens it",
        ),
        (
            "session/list",
            json!({ "cursor": "2" }),
            -32602,
            "no such page",
        ),
    ] {
        let (found, says) = editor.fails(method, params);
        assert_eq!(found, code, "{method}: {says}");
        assert!(says.contains(words), "{method}: {says}");
    }
    for line in ["", "{", "[]", "\u{1}"] {
        editor.write(line);
    }
    for code in [-32700, -32600, -32700] {
        let answer = editor.read().unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(code))
        );
    }
    // Servers of the editor are not used, and it says so.
    let server = json!({ "name": "db", "command": "/bin/db", "args": [], "env": [] });
    let params = json!({ "cwd": scene.path("project"), "mcpServers": [server] });
    let session = editor.call("session/new", params)["sessionId"].clone();
    editor.until_told(|update| {
        let says = update["title"].as_str().unwrap_or_default();
        update["sessionUpdate"] == "notice" && says.contains("(db): `yoi mcp add`")
    });
    let prompt = json!({ "sessionId": session, "prompt": [] });
    assert_eq!(editor.fails("session/prompt", prompt).0, -32602);
    assert_eq!(editor.leave(), (Some(0), String::new()));
}

#[test]
fn a_session_is_told_again_by_another_process_after_kills() {
    let scene = Scene::new();
    let model = changes_a_file(&scene);
    let _pods = Stays(&scene);
    let mut editor = Editor::ready(&scene, &["-m", &model]);
    let session = editor.new_session(&scene);
    let prompt = editor.prompt(&session, "change it");
    assert_eq!(editor.stopped(prompt), "end_turn");
    let before = editor.messages();
    let calls = editor.calls();
    let pid = scene.yoi(&["status", "project", "--json"]).ends(0).json()["pid"].clone();
    signal(editor.child.id(), Signal::KILL);
    signal(u32::try_from(pid.as_u64().unwrap()).unwrap(), Signal::KILL);
    let mut editor = Editor::ready(&scene, &[]);
    let elsewhere = json!({ "sessionId": session, "cwd": scene.path("home"), "mcpServers": [] });
    let (code, says) = editor.fails("session/load", elsewhere);
    assert_eq!(code, -32603);
    assert!(says.contains("project works in"), "{says}");
    let here = json!({ "sessionId": session, "cwd": scene.path("project"), "mcpServers": [] });
    editor.call("session/load", here);
    let mut wanted = before;
    wanted.insert(0, pair("user_message_chunk", "change it"));
    assert_eq!(editor.messages(), wanted);
    assert_eq!(editor.calls(), calls);
    // Every update of the journal has its record, and these rise.
    let seqs: Vec<u64> = editor
        .told
        .iter()
        .filter_map(|told| told["_meta"]["yoi"]["seq"].as_u64())
        .collect();
    assert!(seqs.is_sorted() && seqs.len() >= 9, "{seqs:?}");
    let prompt = editor.prompt("project", "what else?");
    assert_eq!(editor.stopped(prompt), "end_turn");
    assert_eq!(editor.messages().last(), Some(&pair(TEXT, "Nothing else.")));
    let listed = editor.call("session/list", json!({ "cwd": scene.path("project") }));
    assert_eq!(listed["sessions"][0]["sessionId"], "project");
    assert_eq!(listed["sessions"][0]["title"], "change it");
    let none = editor.call("session/list", json!({ "cwd": scene.path("home") }));
    assert_eq!(none["sessions"], json!([]));
    editor.leave();
    scene.sound("project");
}

#[test]
fn a_cancelled_prompt_is_answered_as_cancelled() {
    let scene = Scene::new();
    fifo(&scene.file("started"));
    fifo(&scene.file("gate"));
    let command = "echo $$ > started; read line < gate";
    let answers = [
        json!({ "calls": [call("Bash", json!({ "command": command }))] }),
        json!({ "text": "again" }),
    ];
    let model = scene.script("s.jsonl", &answers);
    let _pods = Stays(&scene);
    let mut editor = Editor::ready(&scene, &["-m", &model]);
    let session = editor.new_session(&scene);
    let prompt = editor.prompt(&session, "wait");
    reached(&scene.file("started"));
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.stopped(prompt), "cancelled");
    assert_eq!(editor.calls()[0].1, "failed");
    let prompt = editor.prompt(&session, "go on");
    assert_eq!(editor.stopped(prompt), "end_turn");
    assert_eq!(editor.messages(), [pair(TEXT, "again")]);
    editor.leave();
    scene.sound("project");
}

#[test]
fn two_editors_see_one_truth_and_the_first_answer_counts() {
    let scene = Scene::new();
    let bash = |command: &str| call("Bash", json!({ "command": command }));
    let answers = [
        json!({ "calls": [bash("echo ran >> made")] }),
        json!({ "text": "made", "calls": [bash("echo again >> made")] }),
        json!({ "text": "denied" }),
    ];
    let model = scene.script("s.jsonl", &answers);
    let _pods = Stays(&scene);
    let mut one = Editor::ready(&scene, &["-m", &model, "--sandbox", "off"]);
    let session = one.new_session(&scene);
    let mut two = Editor::ready(&scene, &[]);
    let here = json!({ "sessionId": session, "cwd": scene.path("project"), "mcpServers": [] });
    two.call("session/load", here);
    let prompt = one.prompt(&session, "make it");
    let method = "session/request_permission";
    let asked = [one.next_asked(method), two.next_asked(method)];
    assert_eq!(asked[0]["params"], asked[1]["params"]);
    assert_eq!(
        asked[0]["params"]["toolCall"]["title"],
        "Bash echo ran >> made"
    );
    two.choose(&asked[1], "allow_once");
    // The other one is told that nobody waits for its answer.
    let taken_back = one.next_asked("$/cancel_request");
    assert_eq!(taken_back["params"]["requestId"], asked[0]["id"]);
    one.choose(&asked[0], "reject_once");
    let asked = [one.next_asked(method), two.next_asked(method)];
    // A client that cannot ask decides nothing.
    let outcome = json!({ "outcome": { "outcome": "cancelled" } });
    two.send(json!({ "id": asked[1]["id"], "result": outcome }));
    one.choose(&asked[0], "reject_once");
    assert_eq!(one.stopped(prompt), "end_turn");
    assert_eq!(scene.read("made"), "ran\n");
    two.until_told(|update| update["content"]["text"] == "denied");
    let calls = [
        pair("Bash echo ran >> made", "completed"),
        pair("Bash echo again >> made", "failed"),
    ];
    assert_eq!((one.calls(), two.calls()), (calls.to_vec(), calls.to_vec()));
    let mut seen = one.messages();
    seen.insert(0, pair("user_message_chunk", "make it"));
    assert_eq!(two.messages(), seen);
    one.leave();
    two.leave();
    scene.sound("project");
}
