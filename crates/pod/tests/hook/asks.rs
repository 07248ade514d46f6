//! Gates that ask a person: several questions are one approval, a later refusal stands, and nobody there is a refusal.

use crate::rig::*;
use llm_worker::effect::Outcome;
use pod::feature::HookKey;
use pod::hook::{PreToolCall, PublicPreToolCallDecision, ToolCallView, Verdict};
use pod::permission::{Person, Rule, RuleDecision};
use pod::record::{ApprovalRequested, Record};
use std::time::Duration;
use testkit::PodUnderTest;

fn says(name: &'static str, verdict: fn() -> PublicPreToolCallDecision) -> Installed {
    gate(
        &format!("builtin:{name}"),
        HookKey::<PreToolCall>::new(name),
        move |_: &ToolCallView| verdict(),
    )
}

fn requested(pod: &PodUnderTest) -> Vec<ApprovalRequested> {
    let asked = |(_, record)| match record {
        Record::ApprovalRequested(asked) => Some(asked),
        _ => None,
    };
    pod.records().into_iter().filter_map(asked).collect()
}

#[test]
fn several_questions_about_a_call_are_one_approval() {
    let gates = vec![
        says("a", || {
            Verdict::ask("is it reviewed?").expires_after(Duration::from_secs(90))
        }),
        says("b", || {
            Verdict::allow().expires_after(Duration::from_secs(1))
        }),
        says("c", || {
            Verdict::ask("is it\u{1b}[2J Friday?").expires_after(Duration::from_secs(60))
        }),
        says("d", || Verdict::ask("sure?")),
    ];
    let (mut pod, said) = pod(&["hello"], gates);
    pod.judge_by(vec![Rule::new("*", RuleDecision::Ask)]);
    pod.asks(Person::Later);
    assert_eq!(pod.run("go").end().outcome, Outcome::Waiting);
    assert!(said.words().is_empty());
    let [asked] = &requested(&pod)[..] else {
        panic!("{:?}", requested(&pod))
    };
    let lines: Vec<_> = asked.question.lines().collect();
    assert_eq!(
        lines[0],
        "Say requires your approval because of the rule `ask *` (testkit)"
    );
    assert_eq!(lines[1], "builtin:a (gate `a`): is it reviewed?");
    assert!(
        lines[2].starts_with("builtin:c (gate `c`): is it") && !asked.question.contains('\u{1b}'),
        "{lines:?}"
    );
    let gates: Vec<_> = asked.gates.iter().map(|gate| gate.hook.as_str()).collect();
    assert_eq!(
        (gates, asked.rules.len()),
        (vec!["a", "c", "d"], 0),
        "a rule is not offered past a gate"
    );
    assert_eq!(
        asked.expires.map(|expires| expires.after_ms),
        Some(60_000),
        "the earliest end"
    );
    assert_eq!(decisions(&pod), ["ask", "allow", "ask", "ask", "ask"]);
    let state = pod.state();
    assert_eq!(
        (state.approvals.open.len(), state.last_outcome),
        (1, Some(Outcome::Waiting))
    );
}

#[test]
fn a_refusal_after_a_question_stands() {
    let gates = vec![
        says("a", || Verdict::ask("may it?")),
        says("b", || Verdict::deny("never")),
    ];
    let (mut pod, said) = pod(&["hello"], gates);
    pod.asks(Person::Later);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert!(said.words().is_empty() && requested(&pod).is_empty());
    assert_eq!(decisions(&pod), ["ask", "refuse"]);
    assert_eq!(
        results(&pod)[0].outcome.summary,
        "builtin:b (gate `b`): never"
    );
}

#[test]
fn where_nobody_can_answer_a_question_is_a_refusal() {
    let (pod, said) = pod(
        &["hello"],
        vec![
            says("a", || Verdict::ask("may it?")),
            says("b", Verdict::allow),
        ],
    );
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert!(said.words().is_empty() && requested(&pod).is_empty());
    assert_eq!(decisions(&pod), ["refuse"]);
    let told = "builtin:a (gate `a`): may it? (this run cannot ask for approval)";
    assert_eq!(results(&pod)[0].outcome.summary, told);
}
