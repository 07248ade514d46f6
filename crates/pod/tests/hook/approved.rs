//! Hooks and calls that waited for a person: an allowed call passes the points around a call, and a turn that waits has
//! not ended.

use crate::rig::*;
use llm_worker::effect::Outcome;
use llm_worker::{ToolEffect, ToolOutput};
use pod::control::{Activity, ApprovalAnswer, HostMode, NewInput};
use pod::feature::HookKey;
use pod::hook::{Change, ToolRun, ToolRunView, ToolShape, TurnEnd, TurnEndView, Verdict};
use pod::permission::{Person, Rule, RuleDecision};
use pod::record::{ApprovalScope, InputQueued, Record};
use std::sync::{Arc, Mutex};
use testkit::{FnTool, LivePod, ModelScript, PodUnderTest, ScriptedAnswer};

/// A pod that stays and asks about every call of `Deploy`.
fn asking(features: Vec<Installed>, answers: Vec<ScriptedAnswer>) -> PodUnderTest {
    let (mut pod, _) = pod(&[], features);
    let deploy = |_, _| async {
        Ok(ToolOutput {
            summary: "deployed".to_owned(),
            content: String::new(),
            data: None,
        })
    };
    pod.tools = vec![FnTool::new("Deploy", ToolEffect::Effectful, deploy)];
    pod.script = ModelScript::new(answers);
    pod.mode = HostMode::Stay { missing: None };
    pod.judge_by(vec![Rule::new("*", RuleDecision::Ask)]);
    pod.asks(Person::Later);
    pod
}

/// Sends an input, waits for the question, and stops the pod.
fn asked(pod: PodUnderTest) -> PodUnderTest {
    let Ok(live) = LivePod::open(pod) else {
        panic!("it does not open")
    };
    live.ask(live.client().send(NewInput {
        text: "go".to_owned(),
        ..NewInput::default()
    }))
    .unwrap();
    live.until(|status| matches!(status.activity, Activity::Waiting { .. }));
    let over = live.close();
    assert_eq!(over.state().last_outcome, Some(Outcome::Waiting));
    over.pod
}

/// Starts the pod again, allows what waits, and waits until nothing is left to do.
fn allowed(pod: PodUnderTest) -> PodUnderTest {
    pod.revive();
    let Ok(live) = LivePod::open(pod) else {
        panic!("it does not open")
    };
    let open = live
        .until(|status| matches!(status.activity, Activity::Waiting { .. }))
        .approvals;
    let answer = ApprovalAnswer {
        approval: open[0].approval,
        allow: true,
        scope: ApprovalScope::Once,
        arguments_digest: open[0].arguments_digest.clone(),
        words: None,
        by: None,
    };
    live.ask(live.client().approve(answer)).unwrap();
    live.until(|status| {
        status.activity == Activity::Idle && status.queued.is_empty() && status.approvals.is_empty()
    });
    live.close().pod
}

fn deploy() -> ScriptedAnswer {
    ScriptedAnswer::calls(&[("Deploy", "{}")])
}

#[test]
fn an_allowed_call_passes_the_points_around_a_call_and_a_waiting_turn_has_not_ended() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let seen = Arc::clone(&seen);
        move || seen.lock().unwrap().push(what)
    };
    let runs = note("run");
    let shapes = note("shape");
    let ends = note("end");
    let features = vec![
        transform(
            "builtin:a",
            HookKey::<ToolRun>::new("a"),
            move |_: &ToolRunView| {
                runs();
                Change::Replaced(ToolOutput {
                    summary: "in its place".to_owned(),
                    content: String::new(),
                    data: None,
                })
            },
        ),
        transform("builtin:b", HookKey::<ToolShape>::new("b"), move |_| {
            shapes();
            Change::Unchanged
        }),
        gate(
            "builtin:c",
            HookKey::<TurnEnd>::new("c"),
            move |_: &TurnEndView| {
                ends();
                Verdict::finish()
            },
        ),
    ];
    let pod = asked(asking(
        features,
        vec![deploy(), ScriptedAnswer::text("done")],
    ));
    assert!(
        seen.lock().unwrap().is_empty(),
        "while it waits nothing runs and nothing has ended: {seen:?}"
    );
    let pod = allowed(pod);
    assert_eq!(*seen.lock().unwrap(), ["run", "shape", "end"]);
    assert!(pod.tools[0].ran().is_empty());
    let [result] = &results(&pod)[..] else {
        panic!("{:?}", results(&pod))
    };
    assert_eq!(
        (result.outcome.text().as_str(), result.answered_by.is_some()),
        ("in its place", true)
    );
    assert_eq!(pod.state().last_outcome, Some(Outcome::Done));
}

#[test]
fn a_turn_that_waited_still_belongs_to_its_input() {
    let goes_on = gate(
        "builtin:v",
        HookKey::<TurnEnd>::new("v"),
        |_: &TurnEndView| Verdict::again("more"),
    );
    let answers = [
        vec![ScriptedAnswer::text("a"), deploy()],
        vec![ScriptedAnswer::text("b"); 9],
    ]
    .concat();
    let pod = allowed(asked(asking(vec![goes_on], answers)));
    let again = pod
        .records()
        .into_iter()
        .filter_map(|(_, record)| match record {
            Record::InputQueued(InputQueued {
                again: Some(again), ..
            }) => Some((again.of, again.nth)),
            _ => None,
        });
    assert_eq!(
        again.collect::<Vec<_>>(),
        [(1, 1), (1, 2), (1, 3)],
        "it is not counted anew"
    );
}
