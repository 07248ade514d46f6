//! Guests: the example in Python is the feature of docs/FEATURES.md, and one that does not keep the contract costs its own
//! answer.

use super::{Adapted, package, read};
use plugin::{Content, DeclarativeFeature, MANIFEST};
use pod::hook::PreToolCall;
use serde_json::json;
use std::fs;
use std::path::Path;
use testkit::{FeatureHost, Ruling, shell_call};

fn adapter(package: &Path) -> Adapted {
    let manifest = fs::read_to_string(package.join(MANIFEST)).unwrap();
    let declared = read(&manifest).remove(0);
    let digest = Content::default().digest();
    Adapted(DeclarativeFeature::new(
        declared,
        package.to_owned(),
        digest,
        || Ok(()),
    ))
}

/// The test of `docs/template`, whose feature is written in Rust.
#[test]
fn a_push_waits_for_a_review_that_no_kill_forgets() {
    let mut host = FeatureHost::new().install(adapter(&package("review-first")));
    let push = || shell_call("git push origin fix");
    assert!(matches!(
        host.ask::<PreToolCall>(push()),
        Ruling::Deny { .. }
    ));
    assert_eq!(
        host.call("Reviewed", json!({"branch": "fix"})).text(),
        "1 reviewed"
    );
    host.kill();
    assert_eq!(host.ask::<PreToolCall>(push()), Ruling::Allow);
}

#[test]
fn the_example_with_guests_in_python_keeps_the_contract() {
    super::example_keeps_the_contract("review-first");
}

#[test]
fn the_example_has_the_kit() {
    let kit = |dir: &str| fs::read_to_string(package(dir).join("yoi_guest.py")).unwrap();
    assert_eq!(kit("sdk"), kit("review-first"));
}

const HOSTILE: &str = r#"
[package]
name = "hostile"
version = "1.0.0"

[features.main]
runtime = "guest"
guest = { program = "python3", args = ["-B", "{package}/guest.py"] }
hooks = [{ name = "judge", point = "pre_tool_call", deadline_ms = 1500 }]

[[features.main.tools]]
name = "hostile_works"
about = "Work."
effect = "read_only"
schema = { type = "object", additionalProperties = false }
"#;

/// Its tool works, and its gate allows its tool; of other calls it makes what stands in place of `HOSTILE`.
const GUEST: &str = r#"
import json, os, sys, time
def say(text): os.write(1, text.encode() + b"\n")
def answer(result, id=None):
    say(json.dumps({"jsonrpc": "2.0", "id": id or request["id"], "result": result}))
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize": answer({"contract": 1})
    elif request["method"] == "tool.call": answer({"summary": "it works"})
    elif request["params"]["view"]["tool"] == "hostile_works": answer({"decision": "allow"})
    else: HOSTILE
"#;

/// (what a gate does, what its refusal says).
const GATES: &[(&str, &str)] = &[
    ("time.sleep(60)", "did not answer within"),
    ("os._exit(3)", "ended with exit 3"),
    ("os.kill(os.getpid(), 9)", "ended by signal 9"),
    ("os.close(1); time.sleep(60)", "closed its output"),
    (
        "os.close(0); os.close(1); os.fork(); os.fork(); time.sleep(60)",
        "closed its output",
    ),
    ("say('{')", "not JSON-RPC"),
    ("os.write(1, b'\\xff\\n')", "not JSON-RPC"),
    ("say('null')", "not JSON-RPC"),
    ("say('[' * 100000)", "not JSON-RPC"),
    (
        "say(json.dumps({'jsonrpc': '2.0', 'id': request['id']}))",
        "neither a request nor an answer",
    ),
    (
        "answer({'decision': 'allow'}, id=request['id'] - 1)",
        "not made",
    ),
    ("answer({'decision': 'allow'}, id='x')", "not made"),
    ("answer({'decision': 'allowed'})", "allowed"),
    ("answer(None)", "invalid type: null"),
    ("raise ValueError()", "ended with exit 1"),
    (
        "[os.write(1, b'x' * 65536) for _ in iter(int, 1)]",
        "over 1 MiB",
    ),
    (
        "[say('{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{\"text\":\"x\"}}') for _ in iter(int, 1)]",
        "over 10000 lines",
    ),
];

/// Installed with a guest that makes this of calls.
fn hostile(dir: &Path, makes: &str) -> testkit::FeatureUnderTest {
    fs::write(dir.join(MANIFEST), HOSTILE).unwrap();
    fs::write(dir.join("guest.py"), GUEST.replace("HOSTILE", makes)).unwrap();
    FeatureHost::new().install(adapter(dir))
}

#[test]
fn a_gate_that_does_not_keep_the_contract_refuses_while_its_tool_works() {
    for (makes, says) in GATES {
        let dir = tempfile::tempdir().unwrap();
        let mut host = hostile(dir.path(), makes);
        for _ in 0..2 {
            let ruling = host.ask::<PreToolCall>(shell_call("ls"));
            let Ruling::Deny { reason } = ruling else {
                panic!("{makes}: {ruling:?}")
            };
            assert!(reason.contains(says), "{makes}: {reason}");
            let works = host.call("hostile_works", json!({}));
            assert_eq!(works.text(), "it works", "{makes}");
        }
    }
}

// A guest that crashes with each start would otherwise be started for ever.
#[test]
fn the_third_crash_switches_the_feature_off_and_says_so_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = hostile(dir.path(), "os._exit(3)");
    for number in 0..5 {
        let ruling = host.ask::<PreToolCall>(shell_call("ls"));
        let Ruling::Deny { reason } = ruling else {
            panic!("{ruling:?}")
        };
        let is_off = reason.contains("off until the next start");
        assert_eq!(is_off, number >= 3, "{reason}");
    }
    let refused = host.call("hostile_works", json!({}));
    assert!(
        refused.text().contains("off until the next start"),
        "{}",
        refused.text()
    );
    let notes = host.notes();
    let told = |note: &&String| note.contains("ended with exit 3");
    assert_eq!(notes.iter().filter(told).count(), 1, "{notes:?}");
}
