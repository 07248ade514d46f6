//! `confirm-gate`: which calls it asks about, also where the rules allow them, and what happens when nobody answers.

use crate::rig::{pod, refused, turn};
use builtins::confirm_gate::ID;
use llm_worker::tool::Touch;
use llm_worker::{ResultStatus, ToolEffect, ToolOutput};
use pod::control::{Activity, ApprovalAnswer, HostMode, NewInput};
use pod::permission::Person;
use pod::record::{ApprovalDecision, ApprovalScope, Record};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{FnTool, LivePod, PodUnderTest, ScriptedAnswer};

fn tool(name: &str) -> FnTool {
    FnTool::new(name, ToolEffect::Effectful, |_, _| async {
        Ok(ToolOutput {
            summary: "ran".into(),
            ..Default::default()
        })
    })
}

#[test]
fn it_asks_about_the_tools_and_arguments_of_its_settings() {
    let push = r#"{"command":"git push \"all\""}"#;
    let cases = [
        (
            json!({"tools": ["Ship"]}),
            "{}",
            Some("may Ship run? (rule `tools`)"),
        ),
        (
            json!({"tools": ["*"]}),
            "{}",
            Some("may Ship run? (rule `tools`)"),
        ),
        (json!({"tools": ["Other"]}), "{}", None),
        (
            json!({"patterns": ["git +push"]}),
            push,
            Some("may Ship run with `git +push`? (rule `patterns`)"),
        ),
        (json!({"patterns": ["git pull"]}), push, None),
        // In the text as it is, in JSON as it is shown, and deep inside.
        (
            json!({"patterns": [r#"^git push "all"$"#]}),
            push,
            Some("rule `patterns`"),
        ),
        (
            json!({"patterns": [r#""force":true"#]}),
            r#"{"force":true}"#,
            Some("rule `patterns`"),
        ),
        (
            json!({"patterns": ["^main$"]}),
            r#"{"to":[{"branch":"main"}]}"#,
            Some("rule `patterns`"),
        ),
        // Both have to fit.
        (
            json!({"tools": ["Other"], "patterns": ["push"]}),
            push,
            None,
        ),
        (
            json!({"tools": ["Ship"], "patterns": ["push"]}),
            push,
            Some("rule `patterns`"),
        ),
        (json!({"tools": ["Ship"], "patterns": ["pull"]}), push, None),
    ];
    for (keys, arguments, asked) in cases {
        let (pod, _) = pod(&ID, keys.clone(), vec![tool("Ship")]);
        // Nobody can answer: each question is a refusal.
        let ended = turn(&pod, &[("Ship", arguments)]);
        assert_eq!(refused(&ended) == [0], asked.is_some(), "{keys}: {ended:?}");
        if let Some(question) = asked {
            let told = &ended[0].1;
            let sign = told.starts_with("builtin:confirm-gate (gate `confirm-gate`): ");
            assert!(sign && told.contains(question), "{keys}: {told}");
            assert!(
                told.ends_with(" (this run cannot ask for approval)"),
                "{keys}: {told}"
            );
        }
    }
}

// A job was started without the question: its tool has another name.
#[test]
fn every_tool_that_runs_a_command_counts_as_the_one_for_commands() {
    for (touches, asked) in [
        (vec![Touch::Shell("git push".into())], true),
        (vec![Touch::Read("a".into())], false),
    ] {
        let (pod, _) = pod(
            &ID,
            json!({"tools": ["Bash"]}),
            vec![tool("JobStart").touching(touches)],
        );
        assert_eq!(refused(&turn(&pod, &[("JobStart", "{}")])) == [0], asked);
    }
}

/// A pod that stays and asks about `Ship`, with one call of it and one of `Look`.
fn asked(keys: Value) -> (LivePod, FnTool) {
    let (mut pod, _) = pod(&ID, keys, vec![tool("Ship"), tool("Look")]);
    let ship = pod.tools[0].clone();
    (pod.mode, pod.paused) = (HostMode::Stay { missing: None }, true);
    pod.asks(Person::Later);
    pod.script
        .add(ScriptedAnswer::calls(&[("Ship", "{}"), ("Look", "{}")]));
    pod.script.add(ScriptedAnswer::text("done"));
    let live = LivePod::open(pod).unwrap_or_else(|over| panic!("{:?}", over.failure()));
    live.ask(live.client().send(NewInput {
        text: "go".to_owned(),
        ..NewInput::default()
    }))
    .unwrap();
    live.until(|status| matches!(status.activity, Activity::Waiting { .. }));
    (live, ship)
}

/// The result of `Ship`, and the resolution of its approval.
fn end(pod: &PodUnderTest) -> (ResultStatus, String, ApprovalDecision) {
    let records: Vec<_> = pod
        .records()
        .into_iter()
        .map(|(_, record)| record)
        .collect();
    let resolved = records.iter().find_map(|record| match record {
        Record::ApprovalResolved(resolved) => Some(resolved.decision),
        _ => None,
    });
    let result = records.iter().find_map(|record| match record {
        Record::ToolFinished(finished) if finished.call.number() == 1 => {
            Some(finished.outcome.clone())
        }
        _ => None,
    });
    let result = result.unwrap();
    (result.status, result.summary, resolved.unwrap())
}

#[test]
fn it_waits_for_a_person_and_denies_when_the_time_is_over() {
    let (live, ship) = asked(json!({"tools": ["Ship"], "timeout": "10m"}));
    let open = live.ask(live.client().status()).unwrap().approvals;
    assert_eq!(open[0].expires.unwrap().after_ms, 600_000);
    assert!(open[0].rules.is_empty(), "no rule passes by the gate");
    live.advance(Duration::from_secs(600));
    live.until(|status| status.activity == Activity::Idle);
    let over = live.close();
    let told = "this call needs a person's approval, and nobody answered within 10m".to_owned();
    assert_eq!(
        end(&over.pod),
        (ResultStatus::Refused, told, ApprovalDecision::Deny)
    );
    assert!(ship.ran().is_empty());
}

#[test]
fn without_a_time_it_waits_and_an_allowed_call_runs() {
    let (live, ship) = asked(json!({"tools": ["Ship"]}));
    live.advance(Duration::from_secs(365 * 24 * 60 * 60));
    let status = live.until(|status| matches!(status.activity, Activity::Waiting { .. }));
    let question = &status.approvals[0];
    let answer = ApprovalAnswer {
        approval: question.approval,
        allow: true,
        scope: ApprovalScope::Once,
        arguments_digest: question.arguments_digest.clone(),
        words: None,
        by: None,
    };
    live.ask(live.client().approve(answer)).unwrap();
    live.until(|status| status.activity == Activity::Idle);
    let over = live.close();
    assert_eq!(
        end(&over.pod),
        (ResultStatus::Ok, "ran".to_owned(), ApprovalDecision::Allow)
    );
    assert_eq!(ship.ran().len(), 1);
}
