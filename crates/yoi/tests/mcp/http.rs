//! Servers that are reached over HTTP, on this machine.

use super::{SYSTEM_PATH, finish, lines, run_calls, scene, yoi};
use crate::scene::{Done, Scene};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A key that no file and no output may have.
const KEY: &str = "key-9876543210-canary";

/// A server that runs until it is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(scene: &Scene, words: &str) -> Self {
        scene.write("far_server.py", include_str!("far_server.py"));
        let mut child = Command::new("python3")
            .arg(scene.file("far_server.py"))
            .args(words.split(' '))
            .env("PATH", SYSTEM_PATH)
            .env("KEY", KEY)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}/mcp?of=test", port.trim());
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What a server was asked, in order.
fn requests(scene: &Scene) -> Vec<Value> {
    let read = |line: &String| serde_json::from_str(line).unwrap();
    lines(&scene.file("requests")).iter().map(read).collect()
}

fn add(scene: &Scene, server: &Server) -> Done {
    let args = ["mcp", "add", "far", "--allow-calls", "--url", &server.url];
    yoi(scene, &args)
}

/// (the tool, its status, what its result has).
const RESULTS: &[(&str, &str, &str)] = &[
    ("echo", "ok", "said echo"),
    ("stream", "ok", "streamed"),
    ("gr__e", "ok", "said größe"),
    (
        "cut",
        "error",
        "ended its answer before the result; the call may have happened",
    ),
    // It read the call on a kept connection, and closed that.
    ("lost", "error", "the call may have happened"),
    (
        "busy",
        "error",
        "status 503 (come back later); the call may have happened",
    ),
    (
        "large",
        "error",
        "is over 16 MiB; the call may have happened",
    ),
    (
        "flood",
        "error",
        "10000 lines or 64 MiB after one request; the call may have happened",
    ),
    (
        "unsaid",
        "error",
        "something else than a result; the call may have happened",
    ),
    ("wrong", "error", "error -32602: no such words"),
    ("refused", "error", "status 403: it wants a key"),
    ("forgets", "ok", "said forgets"),
];

fn calls_over_http(era: &str) -> Vec<Value> {
    let scene = scene().unwrap();
    let server = Server::start(&scene, era);
    add(&scene, &server).ends(0).prints(&[if era == "modern" {
        "added far: 12 tools, 1 left out"
    } else {
        "added far: 13 tools"
    }]);
    let calls: Vec<_> = RESULTS
        .iter()
        .map(|(tool, ..)| (format!("mcp__far__{tool}"), json!({ "region": "eu west" })))
        .collect();
    let calls: Vec<_> = calls
        .iter()
        .map(|(name, of)| (name.as_str(), of.clone()))
        .collect();
    let (results, run) = run_calls(&scene, "p", &calls);
    assert_eq!(results.len(), RESULTS.len(), "{run:?}");
    for ((tool, status, has), (got, text)) in RESULTS.iter().zip(&results) {
        assert_eq!(got, status, "{tool}: {text}");
        assert!(text.contains(has), "{tool}: {text}");
    }
    let asked = requests(&scene);
    let called = |tool: &str| {
        let of = asked.iter().filter(|of| of["method"] == "tools/call");
        of.filter(|of| of["of"]["params"]["name"] == tool).count()
    };
    // One that was not carried out is sent again, no other.
    for tool in ["echo", "cut", "lost", "busy", "unsaid", "wrong"] {
        assert_eq!(called(tool), 1, "{tool}");
    }
    assert_eq!(called("forgets"), if era == "legacy" { 2 } else { 1 });
    let answered = asked.iter().find(|of| of["id"] == "p").unwrap();
    assert_eq!(answered["of"]["result"], json!({}));
    scene.sound("p");
    asked
}

#[test]
fn a_modern_server_is_asked_without_a_session() {
    if scene().is_none() {
        return;
    }
    for of in calls_over_http("modern") {
        let headers = &of["headers"];
        let is_echo = of["of"]["params"]["name"] == "echo";
        let region = if is_echo {
            json!("eu west")
        } else {
            Value::Null
        };
        assert_eq!(headers["mcp-param-region"], region, "{of}");
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28", "{of}");
        assert_eq!(headers["mcp-session-id"], Value::Null, "{of}");
        assert_eq!(headers["mcp-method"], of["method"], "{of}");
    }
}

#[test]
fn a_server_that_names_the_modern_version_is_asked_again() {
    let Some(scene) = scene() else { return };
    let server = Server::start(&scene, "modern picky");
    add(&scene, &server)
        .ends(0)
        .prints(&["protocol 2026-07-28"]);
    let methods: Vec<Value> = requests(&scene)
        .iter()
        .map(|of| of["method"].clone())
        .collect();
    assert_eq!(
        methods,
        ["server/discover", "server/discover", "tools/list"]
    );
}

#[test]
fn a_lost_session_of_an_older_server_begins_anew() {
    if scene().is_none() {
        return;
    }
    let asked = calls_over_http("legacy");
    let first = |method: &str| asked.iter().find(|of| of["method"] == method).unwrap();
    // The modern probe is what the server refuses.
    assert_eq!(
        first("server/discover")["headers"]["mcp-session-id"],
        Value::Null
    );
    assert_eq!(first("initialize")["headers"], json!({}));
    let session = json!({ "mcp-session-id": "s1", "mcp-protocol-version": "2025-06-18" });
    assert_eq!(first("notifications/initialized")["headers"], session);
    assert_eq!(first("tools/list")["headers"], session);
    let ended = asked.iter().find(|of| of["http"] == "DELETE").unwrap();
    assert_eq!(ended["headers"], session);
}

#[test]
fn a_key_goes_to_its_server_and_nowhere_else() {
    let Some(scene) = scene() else { return };
    scene.config("[secrets]\ntracker = { env = \"TRACKER\" }\n");
    let server = Server::start(&scene, "modern locked");
    let given = |args: &[&str]| {
        let mut command = scene.command(args);
        command.env("PATH", SYSTEM_PATH).env("TRACKER", KEY);
        finish(command.spawn().unwrap())
    };
    // A refusal of the key is no reason to speak in the older era.
    add(&scene, &server)
        .ends(69)
        .says(&["status 401: it wants a key", "--bearer SECRET"]);
    assert_eq!(requests(&scene).len(), 1);
    let keys = ["--bearer", "tracker", "--header-secret", "X-Key=tracker"];
    let args = ["mcp", "add", "far", "--allow-calls", "--url", &server.url];
    let added = given(&[&args[..], &keys].concat()).ends(0);
    let call = json!({ "calls": [{ "name": "mcp__far__echo", "arguments": {} }] });
    let model = scene.script("call.jsonl", &[call, json!({ "text": "done" })]);
    let run = given(&["run", "--pod", "p", "-m", &model, "go"]).ends(0);
    for of in &requests(&scene)[1..] {
        assert_eq!(of["headers"]["authorization"], format!("Bearer {KEY}"));
        assert_eq!(of["headers"]["x-key"], KEY);
    }
    let kept = std::fs::read_to_string(scene.path("state/yoi/mcp/far.json")).unwrap();
    let log = yoi(&scene, &["log", "--json", "p"]).ends(0);
    assert!(log.out.contains("said echo"), "{log:?}");
    let shown = yoi(&scene, &["mcp", "show", "far"]).ends(0);
    let shown = shown.prints(&["is at: http://127.0.0.1:", "bearer: tracker", "X-Key"]);
    for text in [&kept, &log.out, &added.out, &run.out, &run.err, &shown.out] {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[test]
fn an_address_is_used_as_it_was_added_or_not_at_all() {
    let Some(scene) = scene() else { return };
    let server = Server::start(&scene, "modern moved");
    add(&scene, &server)
        .ends(69)
        .says(&["redirects to /elsewhere"]);
    assert_eq!(requests(&scene).len(), 1);
    drop(server);
    for url in [
        "http://example.org/mcp",
        "http://192.168.7.7/mcp",
        "ftp://127.0.0.1/",
        "nothing",
    ] {
        yoi(&scene, &["mcp", "add", "far", "--url", url]).ends(2);
    }
    let server = Server::start(&scene, "modern");
    add(&scene, &server).ends(0);
    let call = [("mcp__far__echo", json!({}))];
    // Nothing is sent where a run only reads; without a sandbox there is nothing to confine.
    let count = |mode: &str| {
        scene.config(&format!("[sandbox]\nmode = \"{mode}\"\n"));
        let before = requests(&scene).len();
        run_calls(&scene, mode, &call);
        requests(&scene).len() - before
    };
    assert_eq!(count("read-only"), 0);
    assert_eq!(count("off"), 3);
    // Nobody is there any more.
    drop(server);
    let (results, run) = run_calls(&scene, "q", &call);
    assert_eq!(results.len(), 1, "{run:?}");
    assert!(results[0].1.contains("nothing was called"), "{results:?}");
}

// What a server may answer differently the second time was sent again on a new connection.
#[test]
fn what_is_not_idempotent_is_sent_once() {
    let Some(scene) = scene() else { return };
    let server = Server::start(&scene, "modern resources");
    add(&scene, &server).ends(0).prints(&["resources"]);
    let calls = [
        ("mcp__far__echo", json!({})),
        ("mcp__far__read_resource", json!({ "uri": "a:1" })),
    ];
    let (results, run) = run_calls(&scene, "p", &calls);
    let statuses: Vec<&str> = results.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(statuses, ["ok", "error"], "{run:?}");
    let asked = requests(&scene);
    let read = asked.iter().filter(|of| of["method"] == "resources/read");
    assert_eq!(read.count(), 1);
    scene.sound("p");
}
