//! `phase-recorder`: what is kept, within which bounds, through kills.

use builtins::phase_recorder::{
    MAX_DETAIL, MAX_PHASES, PHASES, Phase, PhaseRecorder, PhaseStatus, Phases,
};
use llm_worker::ResultStatus;
use pod::record::Record;
use serde_json::json;
use testkit::{FeatureHost, FeatureUnderTest, killed_anywhere};

fn host() -> FeatureUnderTest {
    FeatureHost::new().install(PhaseRecorder)
}

fn names(phases: &Phases) -> Vec<&str> {
    phases
        .phases
        .iter()
        .map(|phase| phase.name.as_str())
        .collect()
}

#[test]
fn a_phase_is_recorded_once_by_its_name() {
    let mut host = host();
    let said = host.call(
        "record_phase",
        json!({"name": "build", "status": "started", "detail": "of the crate"}),
    );
    assert_eq!(said.text(), "build: started; 1 phase recorded");
    host.call("record_phase", json!({"name": "test", "status": "skipped"}));
    host.restart();
    let said = host.call(
        "record_phase",
        json!({"name": "build", "status": "failed", "detail": "two errors"}),
    );
    assert_eq!(said.text(), "build: failed; 2 phases recorded");
    let build = Phase {
        name: "build".into(),
        status: PhaseStatus::Failed,
        detail: "two errors".into(),
    };
    let test = Phase {
        name: "test".into(),
        status: PhaseStatus::Skipped,
        detail: String::new(),
    };
    assert_eq!(
        host.state(&PHASES),
        Phases {
            forgotten: 0,
            phases: vec![build, test]
        }
    );
}

#[test]
fn the_oldest_go_and_are_counted() {
    let mut host = host();
    let detail = "\"".repeat(MAX_DETAIL);
    let arguments: Vec<String> = (0..MAX_PHASES + 3)
        .map(|n| {
            json!({"name": format!("{n}{}", "\\".repeat(60)), "status": "done", "detail": detail})
                .to_string()
        })
        .collect();
    for arguments in &arguments {
        assert_eq!(
            host.call_raw("record_phase", arguments).status,
            ResultStatus::Ok
        );
    }
    let phases = host.state(&PHASES);
    assert_eq!((phases.forgotten, phases.phases.len()), (3, MAX_PHASES));
    assert!(names(&phases)[0].starts_with("3\\"));
}

#[test]
fn what_does_not_fit_says_why_and_changes_nothing() {
    let mut host = host();
    let long = "x".repeat(MAX_DETAIL + 1);
    let cases = [
        (json!({"name": "", "status": "done"}), "the name is empty"),
        (json!({"name": "a\nb", "status": "done"}), "line break"),
        (
            json!({"name": "a".repeat(65), "status": "done"}),
            "at most 64",
        ),
        (
            json!({"name": "a", "status": "done", "detail": long}),
            "at most 300",
        ),
        (json!({"name": "a", "status": "begun"}), "started"),
        (json!({"name": "a"}), "status"),
    ];
    for (arguments, why) in cases {
        let said = host.call("record_phase", arguments.clone());
        assert!(
            said.status == ResultStatus::Error && said.text().contains(why),
            "{arguments}: {said:?}"
        );
    }
    assert_eq!(host.state(&PHASES), Phases::default());
}

#[test]
fn killed_anywhere_a_phase_that_was_recorded_is_there() {
    let kills = killed_anywhere(
        host,
        |host| {
            for name in ["one", "two"] {
                host.call("record_phase", json!({"name": name, "status": "done"}));
            }
        },
        |host, at| {
            let recorded = |(_, record)| match record {
                Record::ToolFinished(ended) if ended.outcome.status == ResultStatus::Ok => {
                    Some(ended.outcome.summary)
                }
                _ => None,
            };
            let promised: Vec<String> = host.records().into_iter().filter_map(recorded).collect();
            let phases = host.state(&PHASES);
            assert!(
                ["one", "two"].starts_with(&names(&phases)),
                "{at}: {phases:?}"
            );
            assert!(
                names(&phases).len() >= promised.len(),
                "{at}: {promised:?} {phases:?}"
            );
            // What is live goes on from what the log says.
            let said = host
                .calls(&[("record_phase", r#"{"name":"three","status":"done"}"#)])
                .pop()
                .unwrap();
            assert!(
                said.text()
                    .contains(&format!("{} phase", phases.phases.len() + 1)),
                "{at}: {said:?}"
            );
        },
    );
    assert!(kills > 10);
}
