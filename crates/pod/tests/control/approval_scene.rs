//! A pod that asks a person about calls, and the answers of people.

use crate::fixtures::{echo, live, pod};
use llm_worker::tool::Touch;
use llm_worker::{StopReason, ToolEffect};
use pod::control::{Activity, ApprovalAnswer, Client, HostMode, PodStatus, SubmitError};
use pod::feature::author::*;
use pod::permission::{Person, Rule, RuleDecision};
use pod::record::{ApprovalRequested, ApprovalResolved, ApprovalScope, Record, ToolStarted, Who};
use std::sync::Arc;
use std::time::Duration;
use testkit::{FnTool, LivePod, ModelScript, Over, PodUnderTest, ScriptedAnswer};

/// The arguments of the call that asks: as the model writes them.
pub(crate) const ARGUMENTS: &str = r#"{"path":"a","times":2}"#;

/// A rule that asks about the calls of `Deploy`; all others are allowed.
pub(crate) fn asking() -> Vec<Rule> {
    vec![
        Rule::new("*", RuleDecision::Allow),
        Rule::new("Deploy", RuleDecision::Ask),
    ]
}

/// A pod that stays, with two effectful tools that touch different things; one of them asks.
pub(crate) fn scene(answers: Vec<ScriptedAnswer>) -> (PodUnderTest, [FnTool; 2]) {
    let tools = [
        echo("Deploy", ToolEffect::Effectful).touching(vec![Touch::Session]),
        echo("Echo", ToolEffect::Effectful).touching(vec![Touch::Write("echoed".into())]),
    ];
    let mut pod = pod(answers, tools.to_vec());
    pod.mode = HostMode::Stay { missing: None };
    pod.judge_by(asking());
    pod.asks(Person::Later);
    (pod, tools)
}

/// An answer with a call that asks and one that does not, and the answer behind them.
pub(crate) fn deploys() -> Vec<ScriptedAnswer> {
    let calls = ScriptedAnswer::new()
        .call(0, "Deploy", ARGUMENTS)
        .call(1, "Echo", "{}");
    vec![
        calls.stop(StopReason::ToolUse),
        ScriptedAnswer::text("deployed"),
    ]
}

/// A feature whose gate asks about calls of these tools, each for a time.
pub(crate) struct Confirms(pub(crate) Vec<(&'static str, Duration)>);

const CONFIRM: HookKey<PreToolCall> = HookKey::new("confirm");

impl FeatureModule for Confirms {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("confirms"))
            .version("1.0.0")
            .gate(&CONFIRM)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.hooks()
            .gate(&CONFIRM, &Arc::new(self.0.clone()), confirmed)
            .map(drop)
    }
}

fn confirmed(asks: &Vec<(&'static str, Duration)>, call: &ToolCallView) -> Verdict<PreToolCall> {
    match asks.iter().find(|(tool, _)| *tool == call.tool) {
        Some((_, time)) => Verdict::ask("may it?").expires_after(*time),
        None => Verdict::allow(),
    }
}

/// A pod that stays, whose gate asks about calls of `Deploy` for ten minutes, and of `Echo` as long as `echo` says.
pub(crate) fn expiring(
    answers: Vec<ScriptedAnswer>,
    echo: Option<Duration>,
) -> (PodUnderTest, [FnTool; 2]) {
    let (mut pod, tools) = scene(answers);
    pod.judge_by(vec![Rule::new("*", RuleDecision::Allow)]);
    let asks = [
        Some(("Deploy", TEN_MINUTES)),
        echo.map(|time| ("Echo", time)),
    ]
    .into_iter()
    .flatten()
    .collect();
    pod.features.push((
        Arc::new(Confirms(asks)),
        vec![HostCapability::hook::<PreToolCall>()],
    ));
    (pod, tools)
}

/// The time for an answer.
pub(crate) const TEN_MINUTES: Duration = Duration::from_secs(600);

/// A person at a client.
pub(crate) fn person(client: &str) -> Option<Who> {
    Some(Who {
        client: client.to_owned(),
        role: "approver".to_owned(),
        uid: 1000,
        name: None,
    })
}

/// A person's answer to this question.
pub(crate) fn allow(asked: &ApprovalRequested) -> ApprovalAnswer {
    ApprovalAnswer {
        approval: asked.approval,
        allow: true,
        scope: ApprovalScope::Once,
        arguments_digest: asked.arguments_digest.clone(),
        words: None,
        by: person("one"),
    }
}

pub(crate) fn deny(asked: &ApprovalRequested, words: &str) -> ApprovalAnswer {
    ApprovalAnswer {
        allow: false,
        words: Some(words.to_owned()),
        by: person("two"),
        ..allow(asked)
    }
}

/// Sends an input, and waits until the pod waits for a person and nothing else runs.
pub(crate) fn asked(live: &LivePod) -> Vec<Arc<ApprovalRequested>> {
    live.ask(live.client().send(pod::control::NewInput {
        text: "go".to_owned(),
        ..Default::default()
    }))
    .unwrap();
    waits(live).approvals
}

pub(crate) fn waits(live: &LivePod) -> PodStatus {
    live.until(|status| matches!(status.activity, Activity::Waiting { .. }))
}

pub(crate) fn answer(
    live: &LivePod,
    answer: ApprovalAnswer,
) -> Result<ApprovalResolved, SubmitError> {
    live.ask(live.client().approve(answer))
}

/// Opens the pod again, with these further answers of the model.
pub(crate) fn again(mut pod: PodUnderTest, answers: Vec<ScriptedAnswer>) -> LivePod {
    pod.revive();
    pod.script = ModelScript::new(answers);
    live(pod)
}

pub(crate) fn idle(live: LivePod) -> Over {
    live.until(|status| {
        status.activity == Activity::Idle && status.queued.is_empty() && status.approvals.is_empty()
    });
    live.close()
}

pub(crate) fn both(
    live: &LivePod,
    one: ApprovalAnswer,
    two: ApprovalAnswer,
) -> [Result<ApprovalResolved, SubmitError>; 2] {
    let [a, b]: [Client; 2] = [live.client(), live.client()];
    let (one, two) = live.ask(async { tokio::join!(a.approve(one), b.approve(two)) });
    [one, two]
}

pub(crate) fn requested(pod: &PodUnderTest) -> Vec<ApprovalRequested> {
    let asked = |(_, record)| match record {
        Record::ApprovalRequested(asked) => Some(asked),
        _ => None,
    };
    pod.records().into_iter().filter_map(asked).collect()
}

pub(crate) fn resolved(pod: &PodUnderTest) -> Vec<ApprovalResolved> {
    let answer = |(_, record)| match record {
        Record::ApprovalResolved(answer) => Some(answer),
        _ => None,
    };
    pod.records().into_iter().filter_map(answer).collect()
}

/// The starts of calls of `Deploy`.
pub(crate) fn deployments(pod: &PodUnderTest) -> Vec<ToolStarted> {
    let start = |(_, record)| match record {
        Record::ToolStarted(started) if started.name == "Deploy" => Some(started),
        _ => None,
    };
    pod.records().into_iter().filter_map(start).collect()
}
