//! `format`: results of servers in fewer tokens, stored as they came; redacted before and after.

use crate::rig::{clock, play, pod, settings, texts};
use builtins::format::ID;
use builtins::{policies, redact};
use llm_worker::{ToolContext, ToolEffect, ToolOutput};
use pod::feature::HostCapability;
use pod::hook::ToolShape;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use testkit::{FnTool, PodUnderTest};

const CANARY: &str = "sk-canary4711";

/// The canary as JSON may have it: decoding it puts it together.
const HIDDEN: &str = "\\u0073k-canary4711";

fn tool(name: &'static str, content: String) -> FnTool {
    let answers = move |_: ToolContext, _| {
        let content = content.clone();
        async move {
            Ok(ToolOutput {
                summary: "answered".into(),
                content,
                data: None,
            })
        }
    };
    FnTool::new(name, ToolEffect::ReadOnly, answers)
}

fn rows(count: usize, name: &str) -> String {
    let rows: Vec<Value> = (0..count)
        .map(|i| json!({"id": i, "name": name, "state": "open"}))
        .collect();
    serde_json::to_string_pretty(&json!({ "items": rows }))
        .unwrap()
        .replace(CANARY, HIDDEN)
}

/// What the model got of one call, under these settings.
fn shown(keys: Value, tool: FnTool, name: &'static str) -> (PodUnderTest, String) {
    let (mut pod, _) = pod(&ID, keys, vec![tool]);
    pod.features[0].1.push(HostCapability::hook::<ToolShape>());
    play(&pod, &[&[(name, "{}")]]).end();
    let text = texts(&pod).remove(0);
    (pod, text)
}

#[test]
fn rows_of_a_server_are_a_table_and_are_stored_as_they_came() {
    let sent = rows(40, "x");
    let (pod, text) = shown(
        json!({}),
        tool("mcp__a__rows", sent.clone()),
        "mcp__a__rows",
    );
    assert!(
        text.contains("items (40 rows):\nid,name,state\n0,x,open\n"),
        "{text}"
    );
    assert!(
        text.contains("[shorter than the result; WholeOutput("),
        "{text}"
    );
    assert!(text.len() * 3 < sent.len(), "{text}");
    assert!(has(&pod.dir, &sent), "the result is not stored as it came");
}

#[test]
fn other_tools_and_short_results_stay_as_they_are() {
    let long = rows(40, "x");
    let (_, text) = shown(json!({}), tool("Bash", long.clone()), "Bash");
    assert!(text.ends_with(&long), "{text}");
    let (_, text) = shown(json!({"tools": ["Bash"]}), tool("Bash", long), "Bash");
    assert!(text.contains("items (40 rows):"), "{text}");
    let (_, text) = shown(json!({}), tool("mcp__a__b", rows(1, "x")), "mcp__a__b");
    assert!(text.ends_with(&rows(1, "x")), "{text}");
    let log: String = (0..900)
        .map(|i| format!("2026-11-28T10:00:00Z step {i}\n"))
        .collect();
    let (_, text) = shown(json!({}), tool("mcp__a__log", log.clone()), "mcp__a__log");
    assert!(text.ends_with(&log), "{text}");
    let keys = json!({"tools": ["mcp__a__log"], "by_tool": {"mcp__a__log": 300}});
    let (_, text) = shown(keys, tool("mcp__a__log", log), "mcp__a__log");
    assert!(
        text.contains(" lines left out]") && text.contains("step 899\n"),
        "{text}"
    );
}

#[test]
fn a_result_over_the_budget_says_what_is_missing() {
    let keys = json!({"by_tool": {"mcp__a__rows": 400}});
    let (_, text) = shown(keys, tool("mcp__a__rows", rows(400, "x")), "mcp__a__rows");
    assert!(text.contains(" of 400 elements left out]"), "{text}");
}

/// Whether one of the files of a session has these bytes.
fn has(dir: &Path, bytes: &str) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return has(&path, bytes);
        }
        let all = std::fs::read(&path).unwrap_or_default();
        all.windows(bytes.len())
            .any(|part| part == bytes.as_bytes())
    })
}

#[test]
fn what_is_redacted_is_in_no_byte_in_either_order() {
    for (name, sent) in [
        ("plain", rows(40, "x").replace('x', CANARY)),
        ("hidden", rows(40, CANARY)),
    ] {
        assert_ne!(sent.contains(CANARY), sent.contains(HIDDEN), "{name}");
        for first in [true, false] {
            let all = BTreeMap::from([
                (ID, settings(json!({}))),
                (redact::ID, settings(json!({"patterns": ["sk-[a-z0-9]+"]}))),
            ]);
            let now = clock(&Arc::new(AtomicU64::new(0)));
            let modules = policies::with_settings(&all, |id| all.contains_key(id), &now).unwrap();
            let (mut pod, _) = pod(&ID, json!({}), vec![tool("mcp__a__rows", sent.clone())]);
            let mut grants = pod.features.remove(0).1;
            grants.push(HostCapability::hook::<ToolShape>());
            pod.features = modules
                .into_iter()
                .map(|module| (module, grants.clone()))
                .collect();
            if first {
                pod.features.reverse();
            }
            let ran = play(&pod, &[&[("mcp__a__rows", "{}")]]);
            assert!(
                !format!("{:?}", ran.events).contains(CANARY),
                "{name} {first}: an event"
            );
            ran.end();
            assert!(!has(&pod.dir, CANARY), "{name} {first}: a file");
            assert!(
                !format!("{:?}", pod.script.requests()).contains(CANARY),
                "{name} {first}: a request"
            );
            let text = texts(&pod).remove(0);
            assert_eq!(
                text.contains("items (40 rows):"),
                name == "plain",
                "{name} {first}: {text}"
            );
        }
    }
}
