//! Gates that see a whole answer before its calls are judged, and gates that see a request that brought none.

use crate::rig::*;
use llm_worker::effect::Outcome;
use llm_worker::{ErrorKind, ModelError};
use pod::feature::HookKey;
use pod::hook::{AnswerView, ErrorView, PostAssistant, TurnError, Verdict};
use pod::record::{HoldCause, Record};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{PodUnderTest, ScriptedAnswer};

fn reviewed(
    says: impl Fn(&AnswerView) -> Verdict<PostAssistant> + Send + Sync + 'static,
) -> Installed {
    gate("builtin:a", HookKey::<PostAssistant>::new("a"), says)
}

#[test]
fn an_answer_is_seen_whole_before_its_calls_are_judged() {
    let seen: Arc<Mutex<Vec<AnswerView>>> = Arc::default();
    let sees = Arc::clone(&seen);
    let (pod, said) = pod(
        &["one"],
        vec![reviewed(move |answer| {
            sees.lock().unwrap().push(answer.clone());
            Verdict::allow()
        })],
    );
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!(said.words(), ["one"]);
    let seen = seen.lock().unwrap();
    let calls: Vec<_> = seen[0]
        .calls
        .iter()
        .map(|call| (call.tool.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("Say", r#"{"word":"one"}"#)]);
    assert_eq!(
        (seen[1].text.as_str(), seen[1].calls.len(), seen[1].request),
        ("done", 0, 2)
    );
    assert_eq!(
        decisions(&pod),
        ["allow", "allow", "allow"],
        "of both answers and of the call"
    );
}

#[test]
fn an_answer_that_a_gate_refuses_runs_nothing_and_ends_the_turn() {
    type Says = fn(&AnswerView) -> Verdict<PostAssistant>;
    let cases: [(&str, Says, &[&str]); 3] = [
        ("refused", |_| Verdict::abort("not this"), &["one"]),
        ("failed", |_| panic!("not this"), &["one"]),
        ("without calls", |_| Verdict::abort("not this"), &[]),
    ];
    for (what, says, words) in cases {
        let (pod, said) = pod(words, vec![reviewed(says)]);
        let ran = pod.run("go");
        let Outcome::Aborted { reason } = &ran.end().outcome else {
            panic!("{what}: {:?}", ran.end())
        };
        assert!(reason.contains("not this"), "{what}: {reason}");
        assert!(
            said.words().is_empty() && pod.script.requests().len() == 1,
            "{what}"
        );
        let kinds: Vec<_> = pod
            .records()
            .iter()
            .map(|(_, record)| record.kind().to_owned())
            .collect();
        assert!(
            kinds.contains(&"item".to_owned()) && kinds.contains(&"response".to_owned()),
            "{what}: it is kept"
        );
        assert!(!kinds.contains(&"tool_started".to_owned()), "{what}");
        let again = pod.run("go on");
        assert!(
            !matches!(again.end().outcome, Outcome::Done),
            "{what}: the log folds: {:?}",
            again.end()
        );
    }
}

fn failure(kind: ErrorKind, message: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().say("half").fail(ModelError {
        kind,
        message: message.to_owned(),
        help: None,
    })
}

fn failing(features: Vec<Installed>, failures: &[(ErrorKind, &str)]) -> PodUnderTest {
    let (pod, _) = pod(&[], features);
    pod.script.clear();
    failures
        .iter()
        .for_each(|(kind, message)| pod.script.add(failure(*kind, message)));
    pod.script.add(ScriptedAnswer::text("whole"));
    pod
}

fn judged(says: impl Fn(&ErrorView) -> Verdict<TurnError> + Send + Sync + 'static) -> Installed {
    gate("builtin:e", HookKey::<TurnError>::new("e"), says)
}

#[test]
fn what_may_pass_is_sent_again_and_what_may_not_is_not() {
    type Failures<'a> = &'a [(ErrorKind, &'a str)];
    let overloaded = (ErrorKind::Retry, "529 overloaded");
    let cases: [(&str, Failures<'_>, usize, Option<&str>); 4] = [
        ("529", &[overloaded], 2, Some("whole")),
        ("400", &[(ErrorKind::FixInput, "400 bad request")], 1, None),
        ("three times", &[overloaded; 3], 4, Some("whole")),
        ("not four times", &[overloaded; 4], 4, None),
    ];
    for (what, failures, requests, answer) in cases {
        let pod = failing(
            vec![judged(|_| Verdict::retry(Duration::from_millis(1)))],
            failures,
        );
        let ran = pod.run("go");
        assert_eq!(pod.script.requests().len(), requests, "{what}");
        assert_eq!(ran.end().answer.as_deref(), answer, "{what}");
        let kept = pod
            .records()
            .iter()
            .filter(|(_, record)| record.kind() == "request")
            .count();
        assert_eq!(
            kept, 1,
            "{what}: it is one request, and its bytes are the same"
        );
        let bodies = pod.script.bodies();
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{what}");
        assert_eq!(
            decisions(&pod)
                .iter()
                .filter(|word| **word == "retry")
                .count(),
            failures.len(),
            "{what}"
        );
    }
}

#[test]
fn a_gate_that_gives_up_or_fails_ends_the_turn_as_without_it() {
    type Says = fn(&ErrorView) -> Verdict<TurnError>;
    let cases: [Says; 2] = [|_| Verdict::give_up(), |_| panic!("no")];
    for says in cases {
        let pod = failing(vec![judged(says)], &[(ErrorKind::Retry, "529")]);
        let ran = pod.run("go");
        assert!(
            matches!(
                ran.end().outcome,
                Outcome::ModelFailed {
                    kind: ErrorKind::Retry,
                    ..
                }
            ),
            "{:?}",
            ran.end()
        );
        assert_eq!(
            (pod.script.requests().len(), ran.end().paused.as_deref()),
            (1, None)
        );
    }
}

#[test]
fn a_gate_may_have_a_person_look_after_a_failure() {
    let again = gate("builtin:a", HookKey::<TurnError>::new("a"), |_| {
        Verdict::retry(Duration::ZERO)
    });
    let pod = failing(
        vec![again, judged(|_| Verdict::pause("look at the bill"))],
        &[(ErrorKind::Retry, "529")],
    );
    let ran = pod.run("go");
    assert!(
        ran.end()
            .paused
            .as_deref()
            .is_some_and(|why| why.contains("look at the bill")),
        "pause wins"
    );
    assert_eq!(pod.script.requests().len(), 1);
    assert_eq!(
        pod.state().held.map(|hold| hold.cause),
        Some(HoldCause::Gate)
    );
    assert!(
        pod.records()
            .iter()
            .any(|(_, record)| matches!(record, Record::Suspended(_)))
    );
}
