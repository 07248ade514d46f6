//! What a guest asks of the host within a request: each thing is bounded, and refused by name without its grant.

use super::adapter;
use plugin::MANIFEST;
use pod::feature::StateKey;
use pod::record::Record;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use testkit::{FeatureHost, FeatureUnderTest};

const FEATURE: &str = r#"
[package]
name = "asks"
version = "1.0.0"

[features.main]
runtime = "guest"
guest = { program = "python3", args = ["-B", "{package}/guest.py"] }
tasks = [{ name = "count", effect = "read_only", triggers = [{ trigger = "interval", every_ms = 60000 }] }]
states = [{ name = "runs" }]
REQUESTS

[[features.main.tools]]
name = "asks_save"
about = "Ask with a path."
effect = "idempotent"
touches = [{ is = "write", at = "/path" }]
schema = { type = "object", properties = { path = { type = "string" }, method = { type = "string" }, params = { type = "object" } }, required = ["path", "method", "params"], additionalProperties = false }

[[features.main.tools]]
name = "asks_read"
about = "Ask."
effect = "read_only"
schema = { type = "object", properties = { method = { type = "string" }, params = { type = "object" }, data = { type = "integer" } }, required = ["method", "params"], additionalProperties = false }
"#;

const REQUESTS: &str = r#"
requests = [
    { capability = "scoped_fs", root = "workspace", read = true, write = true, execute = false, need = "required", reason = "to test" },
    { capability = "process", programs = ["printf", "cat"], network = true, need = "required", reason = "to test" },
    { capability = "emit_user_alert", need = "required", reason = "to test" },
]
"#;

const GUEST: &str = r#"
import json
from yoi_guest import Feature, Failure

feature = Feature()
runs = feature.state("runs")


def asked(method, params):
    if "handle" in params:
        params["handle"] = "".join(params["handle"])
    try:
        answer = json.dumps(feature.ask(method, **params))
        return answer if len(answer) < 1000 else answer[:200] + answer[-200:]
    except Failure as failure:
        return f"{failure.kind}: {failure}"


@feature.tool("asks_save")
def save(path, method, params):
    return asked(method, params)


@feature.tool("asks_read")
def read(method, params, data=0):
    return asked(method, params), "", ["x" * data]


@feature.task("count")
def count(run):
    runs.update(lambda old: (old or []) + [[run["task"], run["trigger"], run["attempt"]]])
    if len(runs.get()) > 1:
        raise Failure("counted twice")


feature.run()
"#;

fn host(dir: &Path, requests: &str) -> FeatureUnderTest {
    fs::write(dir.join(MANIFEST), FEATURE.replace("REQUESTS", requests)).unwrap();
    fs::write(dir.join("guest.py"), GUEST).unwrap();
    fs::copy(
        super::super::package("sdk").join("yoi_guest.py"),
        dir.join("yoi_guest.py"),
    )
    .unwrap();
    FeatureHost::new().permit_all().install(adapter(dir))
}

fn read(host: &mut FeatureUnderTest, method: &str, params: &Value) -> String {
    let arguments = json!({ "method": method, "params": params });
    host.call("asks_read", arguments).text()
}

/// (what is asked, its parameters, what the answer has).
fn table(project: &Path) -> Vec<(&'static str, Value, &'static str)> {
    let at = |name: &str| project.join(name).display().to_string();
    let fs = |path: &str| json!({ "root": "workspace", "path": path });
    fs::write(project.join("one.txt"), "first\nsecond\n").unwrap();
    fs::write(project.join("binary"), [0xff, 0xfe]).unwrap();
    fs::write(project.join("long"), "é".repeat(600_000)).unwrap();
    fs::write(project.join(".env"), "KEY=1").unwrap();
    vec![
        (
            "fs.read",
            fs(&at("one.txt")),
            r#""text": "first\nsecond\n""#,
        ),
        ("fs.read", fs(&at("long")), r#""next": 786432"#),
        (
            "fs.read",
            fs(&at("binary")),
            "fix_input: the file is not UTF-8",
        ),
        (
            "fs.read",
            fs(&at(".env")),
            "denied: this file may hold secrets",
        ),
        ("fs.read", fs("/etc/passwd"), "denied: "),
        (
            "fs.read",
            json!({ "root": "other", "path": "x" }),
            "denied: the root `other` was not granted",
        ),
        (
            "fs.read",
            json!({ "path": "x" }),
            "fix_input: params: missing field `root`",
        ),
        (
            "fs.list",
            fs(&project.display().to_string()),
            r#""name": "one.txt""#,
        ),
        (
            "fs.write",
            json!({ "root": "workspace", "path": at("new"), "text": "x" }),
            "denied: a call with effects was not granted",
        ),
        (
            "process.run",
            json!({ "program": "printf", "args": ["%s!", "a b"] }),
            r#""output": "a b!""#,
        ),
        (
            "process.run",
            json!({ "program": "cat", "input": "in" }),
            r#""output": "in""#,
        ),
        (
            "process.run",
            json!({ "program": "cat", "args": ["/dev/zero"] }),
            "it wrote over 786432 bytes",
        ),
        (
            "process.run",
            json!({ "program": "python3" }),
            "denied: the program `python3` was not granted",
        ),
        (
            "http.request",
            json!({ "url": "https://example.org/" }),
            "denied: the host example.org:443 was not granted",
        ),
        ("http.request", json!({ "url": "nothing" }), "fix_input: "),
        (
            "service.call",
            json!({ "service": "acme.bell.v1", "method": "ring" }),
            "denied: the service `acme.bell.v1` was not granted",
        ),
        (
            "notify",
            json!({ "text": "x" }),
            "denied: emit_model_notification was not granted",
        ),
        ("alert", json!({ "text": "look" }), "null"),
        ("output.write", json!({ "text": "before it" }), "null"),
        (
            "output.read",
            json!({ "handle": "o-none" }),
            "fix_input: the output `o-none` cannot be read",
        ),
        ("nothing", json!({}), "bug: the host has no such method"),
    ]
}

#[test]
fn each_thing_that_a_guest_asks_for_has_a_grant_and_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host(dir.path(), REQUESTS);
    for (method, params, has) in table(host.project()) {
        let answer = read(&mut host, method, &params);
        assert!(answer.contains(has), "{method} {params}: {answer:.300}");
    }
    assert_eq!(host.alerts().len(), 1);
}

#[test]
fn without_requests_nothing_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host(dir.path(), "");
    for (method, params, _) in table(host.project()) {
        if matches!(method, "output.write" | "output.read" | "nothing") || params == json!({}) {
            continue;
        }
        let answer = read(&mut host, method, &params);
        let refused = ["denied: ", "fix_input: "];
        assert!(
            refused.iter().any(|kind| answer.starts_with(kind)),
            "{method} {params}: {answer:.300}"
        );
    }
}

#[test]
fn a_guest_reads_an_output_only_where_its_call_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host(dir.path(), "");
    let text = "a line of another call\n".repeat(5000);
    read(&mut host, "output.write", &json!({ "text": text }));
    let output = host
        .records()
        .into_iter()
        .find_map(|(_, record)| match record {
            Record::ToolFinished(finished) => finished.output,
            _ => None,
        });
    let handle = output.unwrap().handle;
    let named = read(
        &mut host,
        "output.read",
        &json!({ "handle": handle, "lines": 1 }),
    );
    assert!(named.contains("a line of another call"), "{named}");
    // The guest puts it together.
    let parts = json!({ "handle": handle.split_at(1) });
    let guessed = read(&mut host, "output.read", &parts);
    let refusal = "denied: an output that no argument of the call names was not granted";
    assert_eq!(guessed, refusal);
    let wrong = read(&mut host, "output.read", &json!({ "handle": "o-none" }));
    assert!(!wrong.contains(&handle), "{wrong}");
}

#[test]
fn a_file_that_a_guest_writes_is_in_the_journal_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host(dir.path(), REQUESTS);
    let path = host.project().join("new.txt");
    let other = host.project().join("other.txt");
    let mut save = |named: &Path, path: &Path| {
        let params = json!({ "root": "workspace", "path": path, "text": "whole" });
        let arguments = json!({ "path": named, "method": "fs.write", "params": params });
        host.call("asks_save", arguments).text()
    };
    assert_eq!(save(&path, &path), r#"{"bytes": 5}"#);
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    assert!(save(&path, &other).starts_with("denied: "));
    assert!(!other.exists());
    let changed = host
        .records()
        .into_iter()
        .filter(|(_, record)| matches!(record, Record::FileChanged(_)));
    assert_eq!(changed.count(), 1);
}

#[test]
fn long_data_is_written_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host(dir.path(), "");
    for many in [10, 900_000, 5_000_000] {
        let arguments = json!({ "method": "log", "params": { "text": "x" }, "data": many });
        assert_eq!(host.call("asks_read", arguments).text(), "null");
        let data = host
            .records()
            .into_iter()
            .rev()
            .find_map(|(_, record)| match record {
                Record::ToolFinished(finished) => finished.data,
                _ => None,
            });
        let data = data.unwrap();
        let bytes = data.output.map(|output| output.stored.bytes);
        let bytes = bytes.unwrap_or_else(|| data.value.unwrap().to_string().len() as u64);
        assert_eq!(bytes, many + 4);
    }
}

#[test]
fn a_guest_runs_a_background_task() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host(dir.path(), "");
    host.run_task("count").unwrap();
    let failed = host.run_task("count").unwrap_err();
    assert!(failed.to_string().contains("counted twice"), "{failed}");
    let runs = host.state(&StateKey::<Value>::new("runs", 1));
    assert_eq!(runs.as_array().map(Vec::len), Some(2), "{runs}");
}

const DIES: &str = r#"
import json, os, sys

def say(text): os.write(1, text.encode())
def die(): os.kill(os.getpid(), 9)
def answer(result): say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
def ask(method, params):
    say(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
    return json.loads(sys.stdin.readline())["result"]

child = os.fork()
if child == 0:
    os.close(0)
    os.close(1)
    import time; time.sleep(600)
with open(os.path.join(os.path.dirname(__file__), "pids"), "a") as pids: print(os.getpid(), child, file=pids)
for line in sys.stdin:
    request = json.loads(line)
    place = request["params"].get("arguments", {}).get("params", {}).get("place", "")
    if request["method"] == "initialize":
        answer({"contract": 1})
        continue
    if place == "before": die()
    now = ask("state.get", {"name": "runs"})
    if place == "asking":
        say(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "state.get", "params": {"name": "runs"}}) + "\n")
        die()
    ask("state.replace", {"name": "runs", "revision": now["revision"], "value": (now["value"] or 0) + 1})
    if place == "behind": die()
    if place == "within":
        say('{"jsonrpc": "2.0", "id"')
        die()
    answer({"summary": "done"})
    if place == "after": die()
"#;

fn count(host: &FeatureUnderTest, kind: fn(&Record) -> bool) -> usize {
    let records = host.records();
    records.iter().filter(|(_, record)| kind(record)).count()
}

/// What a guest starts must end with it, wherever it dies.
#[test]
fn a_guest_that_dies_anywhere_leaves_one_result_per_call_and_no_process() {
    let places = ["before", "asking", "behind", "within", "after"];
    let dir = tempfile::tempdir().unwrap();
    for (round, place) in places.into_iter().cycle().take(15).enumerate() {
        let mut host = host(dir.path(), "");
        fs::write(dir.path().join("guest.py"), DIES).unwrap();
        let arguments = json!({ "method": "x", "params": { "place": place } });
        // A third crash would switch it off.
        for _ in 0..2 {
            let outcome = host.call("asks_read", arguments.clone());
            let text = outcome.text();
            // That it died after its answer may be noticed only by the next call.
            let is_done = place == "after" && text.contains("done");
            // How its process ended is known a moment later than that its output did.
            let how = ["its process ended by signal 9", "it closed its output"];
            let is_lost = how.iter().any(|how| text.contains(how));
            assert!(is_done || is_lost, "{round} {place}: {text}");
        }
        let started = count(&host, |record| matches!(record, Record::ToolStarted(_)));
        let finished = count(&host, |record| matches!(record, Record::ToolFinished(_)));
        assert_eq!((started, finished), (2, 2), "{round} {place}");
        if round < places.len() {
            host.restart();
        }
        let kept = count(&host, |record| matches!(record, Record::FeatureState(_)));
        let fits = match place {
            "before" | "asking" => kept == 0,
            "after" => kept > 0,
            _ => kept == 2,
        };
        assert!(fits, "{round} {place}: {kept}");
    }
    let pids = fs::read_to_string(dir.path().join("pids")).unwrap();
    // One that died after its answer may still have been asked the second time.
    assert!(pids.lines().count() >= 25);
    let guest = dir.path().display().to_string();
    let is_guest = |pid: &&str| {
        let words = fs::read_to_string(Path::new("/proc").join(pid).join("cmdline"));
        words.is_ok_and(|words| words.contains(&guest))
    };
    let left: Vec<&str> = pids.split_whitespace().filter(is_guest).collect();
    assert_eq!(left, Vec::<&str>::new());
}
