//! Gates before a call: what fails, refuses; the host comes first; the first refusal ends the chain.

use crate::rig::*;
use async_trait::async_trait;
use llm_worker::ResultStatus;
use llm_worker::effect::Outcome;
use pod::feature::HookKey;
use pod::hook::{
    Change, Gate, Hook, HookFailure, PreToolCall, PublicPreToolCallDecision, ToolArguments,
    ToolCallView, Verdict,
};
use pod::permission::{Rule, RuleDecision};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_millis(60);

const fn key() -> HookKey<PreToolCall> {
    HookKey::new("bad").deadline(DEADLINE)
}

/// A gate that awaits for ever.
struct Sleeper;

#[async_trait]
impl Hook<PreToolCall> for Sleeper {
    async fn call(&self, _: &ToolCallView) -> Result<PublicPreToolCallDecision, HookFailure> {
        std::future::pending().await
    }
}

/// Runs one call under a gate and checks that it was refused, named and journaled, and that the turn went on.
fn denied(what: &str, bad: Installed, expected: &str) {
    let (pod, said) = pod(&["hello"], vec![bad]);
    let began = Instant::now();
    let ran = pod.run("go");
    assert_eq!(ran.end().outcome, Outcome::Done, "{what}: the turn goes on");
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{what}: {:?}",
        began.elapsed()
    );
    assert!(said.words().is_empty(), "{what}: it ran");
    let [verdict] = &verdicts(&pod)[..] else {
        panic!("{what}: {:?}", verdicts(&pod))
    };
    assert_eq!(verdict.decision.word(), "refuse", "{what}");
    let gate = &verdict.gate;
    let reason = verdict.decision.reason();
    assert_eq!(
        (gate.hook.as_deref(), gate.feature.as_deref()),
        (Some("bad"), Some("builtin:guard")),
        "{what}"
    );
    assert!(gate.ms.is_some(), "{what}");
    assert!(
        reason.contains("builtin:guard") && reason.contains(expected),
        "{what}: {}",
        reason
    );
    let results = results(&pod);
    assert_eq!(
        (results.len(), results[0].outcome.status),
        (1, ResultStatus::Refused),
        "{what}"
    );
    assert!(
        results[0].outcome.summary.contains("builtin:guard"),
        "{what}: {}",
        results[0].outcome.summary
    );
}

#[test]
fn a_gate_that_fails_denies_and_is_named() {
    // Printing a panic's trace can take longer than the short deadline of the others.
    let patient = HookKey::<PreToolCall>::new("bad");
    denied(
        "panics",
        gate("builtin:guard", patient, |_| panic!("boom")),
        "panicked after",
    );
    let descriptor = builder("builtin:guard").gate(&key()).build();
    denied(
        "sleeps",
        hook("builtin:guard", descriptor, key(), Arc::new(Sleeper)),
        "did not return within 60ms",
    );
    let late = |_: &ToolCallView| {
        std::thread::sleep(DEADLINE + Duration::from_millis(40));
        Verdict::allow()
    };
    denied(
        "answers late",
        gate("builtin:guard", key(), late),
        "later than its deadline of 60ms",
    );
    let stop = Arc::new(AtomicBool::new(false));
    let spins = Arc::clone(&stop);
    let spin = move |_: &ToolCallView| {
        while !spins.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        Verdict::allow()
    };
    denied(
        "spins",
        gate("builtin:guard", key(), spin),
        "did not return within 60ms",
    );
    stop.store(true, Ordering::Relaxed);
}

#[test]
fn a_stuck_gate_denies_and_loses_one_thread() {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicUsize::new(0));
    let spins = Arc::clone(&stop);
    let counts = Arc::clone(&asked);
    let spin = move |_: &ToolCallView| {
        counts.fetch_add(1, Ordering::Relaxed);
        while !spins.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Verdict::allow()
    };
    let words = ["a"; 12];
    let (pod, said) = pod(&words, vec![gate("builtin:guard", key(), spin)]);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!((asked.load(Ordering::Relaxed), said.words().len()), (1, 0));
    assert_eq!(decisions(&pod), ["refuse"; 12]);
    stop.store(true, Ordering::Relaxed);
}

#[test]
fn a_gate_is_never_suspended() {
    let (pod, said) = pod(
        &["a", "b", "c", "d", "e"],
        vec![gate(
            "builtin:guard",
            HookKey::<PreToolCall>::new("bad"),
            |_| panic!("again"),
        )],
    );
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!(
        (decisions(&pod), said.words().len()),
        (vec!["refuse"; 5], 0)
    );
}

#[test]
fn the_first_refusal_ends_the_chain_and_is_journaled() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let says = |name: &'static str, verdict: fn() -> PublicPreToolCallDecision| {
        let asked = Arc::clone(&asked);
        gate(
            &format!("builtin:{name}"),
            HookKey::<PreToolCall>::new(name),
            move |_: &ToolCallView| {
                asked.lock().unwrap().push(name);
                verdict()
            },
        )
    };
    let features = vec![
        says("c", Verdict::allow),
        says("b", || Verdict::deny("not today")),
        says("a", Verdict::allow),
    ];
    let (pod, said) = pod(&["hello"], features);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!(
        (asked.lock().unwrap().clone(), said.words().len()),
        (vec!["a", "b"], 0)
    );
    let verdicts = verdicts(&pod);
    let told: Vec<_> = verdicts
        .iter()
        .map(|v| (v.decision.word(), v.gate.hook.as_deref().unwrap()))
        .collect();
    assert_eq!(told, [("allow", "a"), ("refuse", "b")]);
    assert_eq!(
        verdicts[1].decision.reason(),
        "builtin:b (gate `b`): not today"
    );
}

#[test]
fn a_failure_ends_the_chain_like_any_refusal() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&seen);
    let bad = gate("builtin:a", HookKey::<PreToolCall>::new("a"), |_| {
        panic!("boom")
    });
    let behind = gate("builtin:b", HookKey::<PreToolCall>::new("b"), move |_| {
        counts.fetch_add(1, Ordering::Relaxed);
        Verdict::allow()
    });
    let (pod, said) = pod(&["hello"], vec![bad, behind]);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!((seen.load(Ordering::Relaxed), said.words().len()), (0, 0));
}

#[test]
fn a_gate_allows_and_the_host_still_says_why() {
    let (pod, said) = pod(
        &["hello"],
        vec![gate("builtin:a", HookKey::<PreToolCall>::new("a"), |_| {
            Verdict::allow()
        })],
    );
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!(said.words(), ["hello"]);
    let verdicts = verdicts(&pod);
    let hooks: Vec<_> = verdicts.iter().map(|v| v.gate.hook.as_deref()).collect();
    assert_eq!(hooks, [Some("a"), None]);
}

#[test]
fn a_feature_neither_sees_nor_approves_what_the_host_denies() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&seen);
    let approve = gate(
        "builtin:yes",
        HookKey::<PreToolCall>::new("yes"),
        move |_: &ToolCallView| {
            counts.fetch_add(1, Ordering::Relaxed);
            Verdict::allow()
        },
    );
    let (mut pod, said) = pod(&["hello"], vec![approve]);
    pod.judge_by(vec![Rule::new("*", RuleDecision::Deny)]);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!((seen.load(Ordering::Relaxed), said.words().len()), (0, 0));
    assert_eq!(decisions(&pod), ["refuse"]);
}

#[test]
fn an_abort_ends_the_turn() {
    let stop = gate("builtin:stop", HookKey::<PreToolCall>::new("stop"), |_| {
        Verdict::abort("enough")
    });
    let (pod, said) = pod(&["a", "b"], vec![stop]);
    let outcome = pod.run("go").end().outcome.clone();
    assert_eq!(
        outcome,
        Outcome::Aborted {
            reason: "builtin:stop (gate `stop`): enough".to_owned()
        }
    );
    assert_eq!((decisions(&pod), said.words().len()), (vec!["abort"], 0));
}

#[test]
fn gates_see_calls_of_one_answer_in_their_order() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let watch = gate(
        "builtin:watch",
        HookKey::<PreToolCall>::new("watch"),
        move |call: &ToolCallView| {
            sees.lock().unwrap().push(call.call.number());
            Verdict::allow()
        },
    );
    // The first call is the slowest to come to its gate.
    let slow = transform(
        "builtin:slow",
        HookKey::<ToolArguments>::new("slow"),
        |call: &ToolCallView| {
            std::thread::sleep(Duration::from_millis(60 / call.call.number()));
            Change::Unchanged
        },
    );
    let (mut pod, _) = pod(&[], vec![watch, slow]);
    let calls: Vec<_> = (0..8).map(|_| ("Say", r#"{"word":"x"}"#)).collect();
    let answers = vec![
        testkit::ScriptedAnswer::calls(&calls),
        testkit::ScriptedAnswer::text("done"),
    ];
    pod.script = testkit::ModelScript::new(answers);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!(*seen.lock().unwrap(), (1..=8).collect::<Vec<_>>());
}

#[test]
fn the_refusing_verdict_of_each_point_is_its_own() {
    use pod::hook::{PreRequest, PromptSubmit, TurnEnd};
    use pod::record::Decision;
    let reason = || "x".to_owned();
    assert!(matches!(
        PreToolCall::refusal(reason()),
        Decision::Refuse { .. }
    ));
    assert!(matches!(
        PromptSubmit::refusal(reason()),
        Decision::Abort { .. }
    ));
    assert!(matches!(
        PreRequest::refusal(reason()),
        Decision::Abort { .. }
    ));
    assert!(matches!(TurnEnd::refusal(reason()), Decision::Pause { .. }));
}
