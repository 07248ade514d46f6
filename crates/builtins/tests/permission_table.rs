//! What the default table says of each built-in tool in each sandbox, for a run that cannot ask: recorded, and kept.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

use authority::{Confinement, EnvPolicy, SandboxMode, Spawner};
use builtins::policies::{self, OPT_IN, Settings};
use builtins::{Now, all};
use llm_worker::{ToolEffect, ToolOutput};
use pod::feature::{FeatureId, FeatureModule, HostCapability};
use pod::hook::{PreRequest, PreToolCall, ToolOutcome};
use pod::permission::SandboxState;
use pod::record::Record;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// Calls of the built-in tools: what they name decides.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("Read", json!({"path": "a.txt"})),
        ("Read", json!({"path": "/etc/hostname"})),
        ("Read", json!({"path": ".env"})),
        ("Write", json!({"path": "b.txt", "content": "b"})),
        ("Write", json!({"path": "/etc/b.txt", "content": "b"})),
        ("Write", json!({"path": ".git/hooks/x", "content": "b"})),
        (
            "Edit",
            json!({"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}),
        ),
        ("Grep", json!({"pattern": "o"})),
        ("Glob", json!({"pattern": "*"})),
        ("Bash", json!({"command": "true"})),
        ("Bash", json!({"command": "cat .env"})),
        ("ReadOutput", json!({"handle": "x"})),
        ("TaskCreate", json!({"title": "Mend it"})),
        ("TaskList", json!({})),
        (
            "record_phase",
            json!({"name": "build", "status": "started"}),
        ),
        ("ListFeatures", json!({})),
        ("ScheduleList", json!({})),
        (
            "ScheduleCreate",
            json!({"text": "Look again.", "in_minutes": 5}),
        ),
    ]
}

/// A tool with a foreign schema that names nothing.
fn foreign(effect: ToolEffect, name: &str) -> FnTool {
    FnTool::new(name, effect, |_, _| async { Ok(ToolOutput::default()) })
}

fn module(id: &FeatureId) -> Arc<dyn FeatureModule> {
    let now: Now = Arc::new(|| UNIX_EPOCH);
    let settings = BTreeMap::from([(id.clone(), Settings::new())]);
    policies::with_settings(&settings, |other| other == id, &now)
        .unwrap()
        .remove(0)
}

/// The decision about each call, and the rule that made it.
fn judged(sandbox: SandboxState, calls: &[(&str, Value)]) -> Vec<(String, String)> {
    let arguments: Vec<_> = calls
        .iter()
        .map(|(tool, arguments)| (*tool, arguments.to_string()))
        .collect();
    let proposed: Vec<_> = arguments
        .iter()
        .map(|(tool, arguments)| (*tool, arguments.as_str()))
        .collect();
    let script = ModelScript::new([
        ScriptedAnswer::calls(&proposed),
        ScriptedAnswer::text("done"),
    ]);
    let tools = vec![
        foreign(ToolEffect::ReadOnly, "FarRead"),
        foreign(ToolEffect::Effectful, "FarWrite"),
    ];
    let ambient = ambient::claim();
    let mut pod = PodUnderTest::new(&ambient, script, tools);
    pod.paused = false;
    let off = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
    pod.spawner = Some(Spawner::new(&ambient, off, env, "s-1/1".into()).unwrap());
    std::fs::write(pod.project.join("a.txt"), "one\n").unwrap();
    let ids = OPT_IN
        .into_iter()
        .filter(|id| ["phase-recorder", "list-features", "schedule"].contains(&id.name()));
    let modules = all(|_| String::new())
        .into_iter()
        .chain(ids.map(|id| module(&id)));
    let grants = vec![
        HostCapability::tool("*"),
        HostCapability::hook::<PreRequest>(),
        HostCapability::hook::<PreToolCall>(),
        HostCapability::hook::<ToolOutcome>(),
        HostCapability::WRITE_WORKSPACE,
        HostCapability::ANY_PROGRAM,
        HostCapability::SESSION_STATE,
        HostCapability::ANY_BACKGROUND_TASK,
        builtins::task::NOTIFY,
        builtins::schedule::NOTIFY,
        builtins::list_features::RECORDS,
    ];
    pod.features = modules.map(|module| (module, grants.clone())).collect();
    pod.sandboxed(sandbox);
    pod.run("go").end();
    let judged = pod
        .records()
        .into_iter()
        .filter_map(|(_, record)| match record {
            Record::VerdictGiven(verdict) => verdict
                .call
                .map(|call| (call, (verdict.decision.word().to_owned(), verdict.rule))),
            _ => None,
        });
    judged.collect::<BTreeMap<_, _>>().into_values().collect()
}

#[test]
fn each_built_in_tool_keeps_its_row_in_each_sandbox() {
    let mut calls = calls();
    let built_in = calls.len();
    calls.extend([("FarRead", json!({})), ("FarWrite", json!({}))]);
    let sandboxes = [
        ("read-only", SandboxMode::ReadOnly, true),
        ("workspace-write", SandboxMode::WorkspaceWrite, true),
        ("not enforced", SandboxMode::WorkspaceWrite, false),
        ("off", SandboxMode::Off, false),
    ];
    let mut table = String::new();
    for (name, mode, enforced) in sandboxes {
        let judged = judged(SandboxState { mode, enforced }, &calls);
        assert_eq!(judged.len(), calls.len(), "{judged:#?}");
        for (at, ((tool, arguments), (decision, rule))) in calls.iter().zip(judged).enumerate() {
            if at < built_in {
                writeln!(table, "{name} | {tool} {arguments} | {decision} | {rule}").unwrap();
            } else if *tool == "FarWrite" {
                let row = if name == "read-only" {
                    "in read-only mode: deny"
                } else {
                    "service: ask"
                };
                assert!(
                    decision == "refuse" && rule.contains(row),
                    "{name}: {tool}: {decision} by {rule}"
                );
            } else {
                assert_eq!(decision, "allow", "{name}: {tool} by {rule}");
            }
        }
    }
    let kept = include_str!("permission_table.txt");
    assert_eq!(table, kept, "the table changed:\n{table}");
}
