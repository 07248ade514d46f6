//! Guests: the example in Python is the feature of docs/FEATURES.md, and one that does not keep the contract costs its own
//! answer.

mod asks;

use super::{Adapted, package, read};
use plugin::{Content, DeclarativeFeature, MANIFEST};
use pod::hook::PreToolCall;
use pod::record::Record;
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

/// Whether a machine has Node; a test that needs it says that it is left out.
fn has_node() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = std::env::split_paths(&path).any(|dir| dir.join("node").is_file());
    if !has {
        eprintln!("left out: there is no node in PATH");
    }
    has
}

/// The test of `docs/template`, whose feature is written in Rust. Gives the records of its pod without times, digests and the
/// name of the package.
fn push_waits_for_a_review(name: &str) -> Vec<String> {
    let mut host = FeatureHost::new().install(adapter(&package(name)));
    let push = || shell_call("git push origin fix");
    assert!(matches!(
        host.ask::<PreToolCall>(push()),
        Ruling::Deny { .. }
    ));
    let refused = host.call("Bash", json!({"command": "git push origin fix"}));
    assert_eq!(
        host.call("Reviewed", json!({"branch": "fix"})).text(),
        "1 reviewed"
    );
    host.kill();
    assert_eq!(host.ask::<PreToolCall>(push()), Ruling::Allow);
    let kept = |record: &Record| {
        matches!(
            record,
            Record::ToolFinished(_)
                | Record::FeatureState(_)
                | Record::VerdictGiven(_)
                | Record::ItemAdded(_)
        )
    };
    let records = host.records().into_iter();
    let records = records
        .filter(|(_, record)| kept(record))
        .map(|(_, mut record)| {
            match &mut record {
                Record::ToolFinished(finished) => finished.ms = 0,
                Record::VerdictGiven(verdict) => verdict.gate.ms = None,
                _ => {}
            }
            serde_json::to_string(&record)
                .unwrap()
                .replace(name, "review-first")
        });
    records.chain([refused.text()]).collect()
}

#[test]
fn a_push_waits_for_a_review_that_no_kill_forgets() {
    push_waits_for_a_review("review-first");
}

#[test]
fn the_same_feature_in_node_gives_the_same_transcript() {
    if !has_node() {
        return;
    }
    let python = push_waits_for_a_review("review-first");
    let node = push_waits_for_a_review("review-first-node");
    assert!(python.len() > 3, "{python:?}");
    assert_eq!(python, node);
}

#[test]
fn the_example_with_guests_in_node_keeps_the_contract() {
    if has_node() {
        super::example_keeps_the_contract("review-first-node");
    }
}

#[test]
fn the_example_with_guests_in_python_keeps_the_contract() {
    super::example_keeps_the_contract("review-first");
}

#[test]
fn the_example_has_the_kit() {
    let kit = |dir: &str, file: &str| fs::read_to_string(package(dir).join(file)).unwrap();
    for (dir, file) in [
        ("review-first", "yoi_guest.py"),
        ("review-first-node", "yoi_guest.mjs"),
    ] {
        assert_eq!(kit("sdk", file), kit(dir, file));
    }
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

/// (what a tool does, what its call ends with): the checks of a transport that are not about gates.
const CALLS: &[(&str, &str)] = &[
    ("os._exit(3)", "ended with exit 3"),
    ("time.sleep(60)", "did not answer within"),
    (
        "[os.write(1, b'x' * 65536) for _ in iter(int, 1)]",
        "over 1 MiB",
    ),
    ("answer({'summary': 'it works'}, id=7)", "not made"),
];

#[test]
fn a_call_whose_guest_does_not_keep_the_contract_ends_as_unknown() {
    for (does, says) in CALLS {
        let dir = tempfile::tempdir().unwrap();
        let manifest = HOSTILE.replace("read_only\"", "effectful\"\ndeadline_ms = 2000");
        fs::write(dir.path().join(MANIFEST), manifest).unwrap();
        let guest = GUEST.replace("answer({\"summary\": \"it works\"})", does);
        fs::write(dir.path().join("guest.py"), guest).unwrap();
        let host = FeatureHost::new().permit_all();
        let mut host = host.install(adapter(dir.path()));
        for _ in 0..2 {
            let ended = host.call("hostile_works", json!({}));
            let text = ended.text();
            let is_unknown = text.contains("whether the call took effect is not known");
            assert!(text.contains(says) && is_unknown, "{does}: {text}");
        }
    }
}

#[test]
fn a_guest_that_speaks_before_its_greeting_is_not_asked() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(MANIFEST), HOSTILE).unwrap();
    let first = "say('{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{\"text\":\"x\"}}')\nfor line in sys.stdin:";
    let guest = GUEST.replace("for line in sys.stdin:", first);
    fs::write(dir.path().join("guest.py"), guest).unwrap();
    let mut host = FeatureHost::new().install(adapter(dir.path()));
    let refused = host.call("hostile_works", json!({}));
    assert!(
        refused.text().contains("it spoke before it answered"),
        "{}",
        refused.text()
    );
}

/// What a hook withholds may stand in what its guest writes beside its answer.
#[test]
fn the_standard_error_of_a_guest_that_saw_a_whole_result_is_in_no_note() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = hostile(dir.path(), "os.write(2, b'a plain slip'); os._exit(3)");
    // The note is written by the time a call has ended that was made after it.
    let fail = |host: &mut testkit::FeatureUnderTest| {
        let ruling = host.ask::<PreToolCall>(shell_call("ls"));
        assert!(matches!(ruling, Ruling::Deny { .. }), "{ruling:?}");
        assert_eq!(host.call("hostile_works", json!({})).text(), "it works");
    };
    fail(&mut host);
    let has = |host: &testkit::FeatureUnderTest, text: &str| {
        host.notes().iter().any(|note| note.contains(text))
    };
    assert!(has(&host, "a plain slip"), "{:?}", host.notes());
    drop(host);
    let hook = "{ name = \"hide\", point = \"tool_shape\" },";
    let manifest = HOSTILE.replace("hooks = [", &format!("hooks = [{hook}"));
    fs::write(dir.path().join(MANIFEST), manifest).unwrap();
    let hide = "if request['params'].get('hook') == 'hide':\n        os.write(2, b'seen: ' + json.dumps(request['params']['view']).encode())\n        answer({'change': 'unchanged'})\n    elif";
    let guest = GUEST
        .replace(
            "if request[\"method\"] == \"initialize\"",
            &format!("{hide} request[\"method\"] == \"initialize\""),
        )
        .replace("HOSTILE", "os._exit(3)");
    fs::write(dir.path().join("guest.py"), guest).unwrap();
    let mut host = FeatureHost::new().install(adapter(dir.path()));
    assert_eq!(host.call("hostile_works", json!({})).text(), "it works");
    fail(&mut host);
    assert!(!has(&host, "it works"), "{:?}", host.notes());
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
