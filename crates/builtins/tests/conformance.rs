//! Every built-in against the contract that any feature is held to. New ones are covered by standing in a list.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use builtins::policies::{self, OPT_IN, Settings};
use builtins::skills::{self, Origin, SkillEntry, Skills};
use builtins::{Now, all};
use pod::feature::{FeatureId, FeatureModule};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use testkit::{Check, CheckOutcome, CheckResult, Conformance, FeatureHost, Shared, conformance};

/// Settings for those that cannot do without any.
fn settings(id: &FeatureId) -> Settings {
    let keys = match id.name() {
        "write-policy" => json!({"scopes": ["src"]}),
        "notify-person" => json!({"command": ["true"]}),
        "confirm-gate" => json!({"tools": ["Bash"], "timeout": "10m"}),
        "dedup" => json!({"min_bytes": 1}),
        "output-validate" => json!({"schema": {"type": "object"}}),
        "redact" => json!({"patterns": ["canary-[0-9]+"]}),
        "github" => json!({"owner": "octocat", "repo": "hello"}),
        "gitlab" => json!({"project": "group/hello"}),
        "jira" => {
            json!({"project": "PROJ", "base_url": "https://example.atlassian.net", "token": {"secret": "jira"}})
        }
        "slack" => json!({"token": {"secret": "slack"}}),
        "fireflies" => json!({"token": {"secret": "fireflies"}}),
        "clickup" => json!({"list": "90", "token": {"secret": "clickup"}}),
        "work-item" => json!({"read_first": true}),
        _ => json!({}),
    };
    keys.as_object().unwrap().clone()
}

/// Arguments that do the work, where those that only fit the schema do not; and some that take long.
fn examples() -> Vec<(&'static str, Value)> {
    vec![
        ("Read", json!({"path": "a.txt"})),
        (
            "Edit",
            json!({"path": "a.txt", "edits": [{"old": "two", "new": "three"}]}),
        ),
        ("Write", json!({"path": "new/b.txt", "content": "b\n"})),
        ("Grep", json!({"pattern": "o"})),
        ("Skill", json!({"name": "demo"})),
        ("Bash", json!({"command": "cat a.txt"})),
        ("Bash", json!({"command": "sleep 30"})),
        ("JobStart", json!({"command": "true"})),
        (
            "MemoryWrite",
            json!({"name": "how-to-build", "description": "How it is built.", "kind": "procedure", "text": "With cargo."}),
        ),
        (
            "WorkItemCreate",
            json!({"title": "Mend it", "body": "It fails."}),
        ),
        (
            "ScheduleCreate",
            json!({"text": "Look again.", "in_minutes": 5}),
        ),
        (
            "RouteNote",
            json!({"title": "Fix the parser", "text": "It fails."}),
        ),
    ]
}

/// A skill in the root that the host of these checks offers.
fn a_skill() -> Skills {
    let skill = SkillEntry {
        name: "demo".to_owned(),
        description: "How to demonstrate.".to_owned(),
        dir: "demo".into(),
        origin: Origin::Project,
    };
    Skills(vec![skill], None)
}

fn instance(id: &FeatureId) -> Arc<dyn FeatureModule> {
    if *id == skills::ID {
        return Arc::new(a_skill());
    }
    if let Some(found) = all(|_| String::new())
        .into_iter()
        .find(|module| module.descriptor().id == *id)
    {
        return found;
    }
    let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let now: Now = Arc::new(move || began);
    let mut found = policies::with_settings(
        &BTreeMap::from([(id.clone(), settings(id))]),
        |i| i == id,
        &now,
    )
    .unwrap();
    found.remove(0)
}

fn host() -> FeatureHost {
    let host = ["jira", "slack", "fireflies", "clickup"]
        .iter()
        .fold(FeatureHost::new(), |host, name| {
            host.secret(name, "of-a-provider-1")
        });
    std::fs::write(host.project().join("a.txt"), "one\ntwo\n").unwrap();
    let skill = host.project().join("root-0/demo");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "Do it.\n").unwrap();
    host
}

/// With the providers that a consumer of services needs beside it.
fn host_of(id: &FeatureId) -> FeatureHost {
    if ![builtins::notes_router::ID, builtins::work_item_intake::ID].contains(id) {
        return host();
    }
    let beside = [builtins::memory::ID, builtins::work_item::ID];
    beside
        .iter()
        .fold(host(), |host, id| host.with(Shared(instance(id))))
}

fn held(id: &FeatureId) -> Conformance {
    let of = id.clone();
    let on = id.clone();
    let conformance = conformance(move || Shared(instance(&of))).on(move || host_of(&on));
    examples()
        .into_iter()
        .fold(conformance, |held, (tool, arguments)| {
            held.example(tool, arguments)
        })
}

#[test]
fn every_built_in_keeps_the_contract() {
    let ids: Vec<_> = all(|_| String::new())
        .into_iter()
        .map(|module| module.descriptor().id)
        .chain(OPT_IN)
        .chain([skills::ID])
        .collect();
    assert!(ids.len() >= 10, "{ids:?}");
    let findings: Vec<(FeatureId, Vec<CheckResult>)> = std::thread::scope(|scope| {
        let started: Vec<_> = ids
            .into_iter()
            .map(|id| scope.spawn(move || (id.clone(), held(&id).findings())))
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut broken = Vec::new();
    for (id, findings) in &findings {
        // Their states are changed by background tasks only, or by jobs, which need a pod that keeps running; tests of
        // their own kill those at every point.
        let untried = |finding: &CheckResult| {
            let by_tasks = [
                builtins::jobs::ID,
                builtins::notify_person::ID,
                builtins::work_item_intake::ID,
            ]
            .contains(id);
            by_tasks
                && finding.check == Check::State
                && matches!(finding.held, CheckOutcome::NotTried(_))
        };
        let bad = findings
            .iter()
            .filter(|finding| finding.held != CheckOutcome::Yes && !untried(finding));
        broken.extend(bad.map(|finding| format!("{id} {finding}")));
        assert_eq!(findings.len(), Check::ALL.len(), "{id}");
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}
