//! The example whose tools and gates guests answer, from its grant to a run.

use crate::plugins::{SYSTEM_PATH, has_python};
use crate::scene::{Scene, finish};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

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
    let checked = scene.yoi(&["plugin", "check", DIR]).ends(0);
    checked.prints(&["tool Reviewed: Note that a branch was reviewed."]);
    scene.yoi(&["plugin", "add", DIR]).ends(0);
    // A new package is that example under another name, with a tool of its own.
    scene
        .yoi(&["plugin", "new", "acme-first", "--python"])
        .ends(0);
    scene.yoi(&["plugin", "check", "acme-first"]).ends(0);
    scene.yoi(&["plugin", "new", "acme-node", "--node"]).ends(0);
    let node = scene.yoi(&["plugin", "check", "acme-node"]);
    node.prints(&["guests run `node {package}/guest.mjs`"]);
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

/// The package itself; its gate allows all; its tool dies.
const EXAMPLES: [(&str, &str, &[&str]); 3] = [
    ("", "", &["4 passed, 0 failed"]),
    (
        "return deny(",
        "return allow() or (",
        &[
            "failed  reviewed.json 3 (Bash): exit 0 instead of exit 1; output: ",
            "3 passed, 1 failed",
        ],
    ),
    (
        "def reviewed(branch):",
        "def reviewed(branch):\n    import os; os._exit(3)",
        &[
            "failed  reviewed.json 1 (Reviewed): exit 1 instead of exit 0; output: ",
            "ended with exit 3",
            "ok      reviewed.json 3 (Bash)",
        ],
    ),
];

#[test]
fn examples_of_guests_are_runs_with_the_package_alone() {
    let scene = Scene::new();
    let test = |dir: &str| {
        let mut command = scene.command(&["plugin", "test", dir]);
        finish(command.env("PATH", SYSTEM_PATH).spawn().unwrap())
    };
    test(&DIR.replace("review-first", "review-first-lua"))
        .ends(0)
        .prints(&["4 passed, 0 failed"]);
    test(&DIR.replace("review-first", "stac-lua"))
        .ends(0)
        .prints(&["12 passed, 0 failed"]);
    if SYSTEM_PATH
        .split(':')
        .any(|dir| Path::new(dir).join("node").is_file())
    {
        test(&DIR.replace("review-first", "review-first-node"))
            .ends(0)
            .prints(&["4 passed, 0 failed"]);
    }
    if !has_python() {
        return;
    }
    for (from, to, prints) in EXAMPLES {
        let dir = if from.is_empty() { "first" } else { "changed" };
        for file in [
            "plugin.toml",
            "guest.py",
            "yoi_guest.py",
            "tests/reviewed.json",
        ] {
            let text = fs::read_to_string(Path::new(DIR).join(file)).unwrap();
            assert!(file != "guest.py" || text.contains(from));
            let text = match file {
                "guest.py" if !from.is_empty() => text.replace(from, to),
                _ => text,
            };
            scene.write(&format!("{dir}/{file}"), &text);
        }
        let done = test(dir);
        let code = if from.is_empty() { 0 } else { 1 };
        done.ends(code).prints(prints);
    }
    // Nothing of it is left in what the person has.
    assert!(!scene.path("state/yoi/pods").join("example").exists());
}

/// Writes a package whose guest is this program in Python, adds and grants it, and runs calls of its tool.
fn with_guest(
    scene: &Scene,
    manifest: &str,
    guest: &str,
    calls: &[(&str, Value)],
    vars: &[(&str, &str)],
) {
    let kit = include_str!("../../../../docs/plugins/sdk/yoi_guest.py");
    for (file, text) in [
        ("plugin.toml", manifest),
        ("guest.py", guest),
        ("yoi_guest.py", kit),
    ] {
        scene.write(&format!("acme/{file}"), text);
    }
    scene.yoi(&["plugin", "add", "acme"]).ends(0);
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    let call = |(name, arguments): &(&str, Value)| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let mut answers: Vec<Value> = calls.iter().map(call).collect();
    answers.push(json!({ "text": "done" }));
    let model = scene.script("calls.jsonl", &answers);
    let mut command = scene.command(&["run", "--pod", "p", "-m", &model, "go"]);
    command.env("PATH", SYSTEM_PATH).envs(vars.iter().copied());
    finish(command.spawn().unwrap()).ends(0);
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
    with_guest(
        &scene,
        COUNTS_MANIFEST,
        COUNTS,
        &[("acme_ids", json!({}))],
        &[],
    );
    let lines = scene.yoi(&["log", "--json", "p"]).ends(0).out;
    let data = r#""data":{"value":{"ids":[1,2]}}"#;
    assert_eq!(lines.matches(data).count(), 1, "{lines}");
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    assert!(log.contains("data: 13 bytes (--full)"), "{log}");
    let log = scene.yoi(&["log", "--full", "p"]).ends(0).out;
    assert!(log.contains(r#"data: {"ids":[1,2]}"#), "{log}");
    scene.yoi(&["verify", "p"]).ends(0);
}

const REACHES: &str = r#"
import sys
from yoi_guest import Feature

feature = Feature()


@feature.tool("acme_fetch")
def fetch(url, path):
    secret = {"header": "authorization", "name": "tracker", "prefix": "Bearer "}
    got = feature.ask("http.request", method="POST", url=url, body="{}", secret=secret)
    feature.ask("fs.write", root="workspace", path=path, text=got["body"])
    return f"{got['status']}: {got['body']}"


@feature.tool("acme_fails")
def fails():
    print("what only people read", file=sys.stderr)
    sys.stderr.flush()
    sys.exit(3)


feature.run()
"#;

/// Serves nobody: a connection would be one that a secret goes to.
fn unserved() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    (listener, port)
}

// A feature with two hosts could send the key of one to the other.
#[test]
fn a_secret_goes_only_to_the_hosts_that_its_grant_names() {
    if !has_python() {
        return;
    }
    let at = |ports: [u16; 2]| {
        let [one, other] = ports.map(|port| format!("\"127.0.0.1:{port}\""));
        format!("{one}, {other}")
    };
    // (the hosts of the secret, whether it may go to the first and the second of two).
    let rows = [("", [false, false]), ("FIRST", [true, false])];
    for (hosts, may) in rows {
        let (listeners, ports): (Vec<_>, Vec<_>) = [unserved(), unserved()].into_iter().unzip();
        let first = ports[0];
        let second = ports[1];
        let bound = match hosts {
            "" => String::new(),
            _ => format!(", hosts = [\"127.0.0.1:{first}\"]"),
        };
        let manifest = REACHES_MANIFEST
            .replace("\"127.0.0.1:PORT\"", &at([first, second]))
            .replace("id = \"tracker\"", &format!("id = \"tracker\"{bound}"));
        let scene = Scene::new();
        scene.config("[secrets]\ntracker = { env = \"TRACKER\" }\n");
        let mut calls = Vec::new();
        for (port, may) in ports.iter().zip(may) {
            if !may {
                let url = format!("http://127.0.0.1:{port}/issues");
                calls.push(("acme_fetch", json!({ "url": url, "path": "kept.txt" })));
            }
        }
        let vars = [("TRACKER", "t0ken-of-a-tracker")];
        with_guest(&scene, &manifest, REACHES, &calls, &vars);
        let log = scene.yoi(&["log", "p"]).ends(0).out;
        for ((listener, port), may) in listeners.iter().zip(&ports).zip(may) {
            let refused = format!("the secret `tracker` may not go to 127.0.0.1:{port}");
            assert_eq!(log.contains(&refused), !may, "{log}");
            assert!(listener.accept().is_err(), "it connected to {port}");
        }
        let shown = scene.yoi(&["plugin", "show", "acme"]).ends(0).out;
        let says = match hosts {
            "" => "SecretRef(tracker): ".to_owned(),
            _ => format!("SecretRef(tracker for 127.0.0.1:{first}): "),
        };
        assert!(shown.contains(&says), "{shown}");
    }
}

const REACHES_MANIFEST: &str = r#"
[package]
name = "acme"
version = "0.1.0"

[features.main]
runtime = "guest"
guest = { program = "python3", args = ["-B", "{package}/guest.py"] }
requests = [
    { capability = "scoped_fs", root = "workspace", read = true, write = true, execute = false, need = "required", reason = "to keep what it reads" },
    { capability = "endpoint", purpose = "tracker", at = ["127.0.0.1:PORT"], need = "required", reason = "to read issues" },
    { capability = "secret_ref", id = "tracker", need = "required", reason = "to read issues" },
]

[[features.main.tools]]
name = "acme_fetch"
about = "Fetch."
effect = "idempotent"
touches = [{ is = "write", at = "/path" }]
schema = { type = "object", properties = { url = { type = "string" }, path = { type = "string" } }, required = ["url", "path"], additionalProperties = false }

[[features.main.tools]]
name = "acme_fails"
about = "Fail."
effect = "read_only"
schema = { type = "object", additionalProperties = false }
"#;

/// A server repeats what it is sent, so an answer is where a guest would learn a secret.
#[test]
fn a_guest_reaches_a_host_with_a_secret_that_it_never_has() {
    if !has_python() {
        return;
    }
    const VALUE: &str = "t0ken-of-a-tracker";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 4096];
        let mut seen = String::new();
        while !seen.ends_with("{}") {
            let many = stream.read(&mut bytes).unwrap();
            seen.push_str(std::str::from_utf8(&bytes[..many]).unwrap());
        }
        let line = seen
            .lines()
            .find(|line| line.starts_with("authorization"))
            .unwrap();
        let body = format!("you sent {line}");
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
    });
    let scene = Scene::new();
    scene.config("[secrets]\ntracker = { env = \"TRACKER\" }\n");
    // The secret is bound to one of two hosts.
    let bound = format!("id = \"tracker\", hosts = [\"127.0.0.1:{port}\"]");
    let manifest = REACHES_MANIFEST
        .replace("PORT\"", &format!("{port}\", \"127.0.0.1:1\""))
        .replace("id = \"tracker\"", &bound);
    let url = format!("http://127.0.0.1:{port}/issues");
    let calls = [
        ("acme_fetch", json!({ "url": url, "path": "kept.txt" })),
        ("acme_fails", json!({})),
    ];
    with_guest(&scene, &manifest, REACHES, &calls, &[("TRACKER", VALUE)]);
    server.join().unwrap();
    let kept = "you sent authorization: Bearer ‹secret tracker›";
    assert_eq!(scene.read("kept.txt"), kept);
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    assert!(log.contains(&format!("200: {kept}")), "{log}");
    // The end of its standard error is for people; the model gets the kind and the message.
    let told = |text: &str| log.matches(text).count();
    assert_eq!(told("what only people read"), 1, "{log}");
    assert!(log.contains("ended with exit 3"), "{log}");
    let lines = scene.yoi(&["log", "--json", "p"]).ends(0).out;
    let note = lines
        .lines()
        .find(|line| line.contains("what only people read"))
        .unwrap();
    assert!(note.contains(r#""k":"feature_note""#), "{note}");
    assert!(!lines.contains(VALUE));
    scene.yoi(&["undo", "p"]).ends(0);
    assert!(!scene.file("kept.txt").exists());
    scene.yoi(&["verify", "p"]).ends(0);
}
