//! The other points: input, request, end of turn, and what observers hear.

use crate::rig::*;
use llm_worker::effect::Outcome;
use pod::control::Event as Shown;
use pod::feature::HookKey;
use pod::hook::{
    Event, EventView, PreRequest, PromptSubmit, PromptView, RequestView, TurnEnd, TurnEndView,
    Verdict,
};
use pod::record::Record;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

fn aborted(outcome: &Outcome) -> &str {
    let Outcome::Aborted { reason } = outcome else {
        panic!("{outcome:?}")
    };
    reason
}

#[test]
fn a_refused_prompt_is_not_queued_and_its_refusal_is_journaled() {
    let says = |prompt: &PromptView| match prompt.text.contains("secret") {
        true => Verdict::abort("it names a secret"),
        false => Verdict::allow(),
    };
    let (pod, said) = pod(
        &["a"],
        vec![gate("builtin:p", HookKey::<PromptSubmit>::new("p"), says)],
    );
    let ran = pod.run("a secret");
    assert!(aborted(&ran.end().outcome).contains("it names a secret"));
    assert!(said.words().is_empty());
    assert!(
        !pod.records()
            .iter()
            .any(|(_, r)| matches!(r, Record::InputQueued(_) | Record::TurnStarted(_)))
    );
    assert_eq!(decisions(&pod), ["abort"]);
    assert_eq!(pod.run("go on").end().outcome, Outcome::Done);
    assert_eq!(said.words(), ["a"]);
}

#[test]
fn a_gate_for_inputs_with_a_schema_is_asked_about_no_others() {
    let prompts =
        |id: &str, key: HookKey<PromptSubmit>| gate(id, key, |_: &PromptView| Verdict::allow());
    let ends = |id: &str, key: HookKey<TurnEnd>| gate(id, key, |_: &TurnEndView| Verdict::finish());
    let gates = vec![
        prompts("builtin:a", HookKey::<PromptSubmit>::new("each-prompt")),
        prompts(
            "builtin:b",
            HookKey::<PromptSubmit>::new("prompt").with_output_schema(),
        ),
        ends("builtin:c", HookKey::<TurnEnd>::new("each-end")),
        ends(
            "builtin:d",
            HookKey::<TurnEnd>::new("end").with_output_schema(),
        ),
    ];
    let (pod, _) = pod(&[], gates);
    pod.run("go").end();
    let asked: Vec<_> = verdicts(&pod)
        .into_iter()
        .filter_map(|verdict| verdict.gate.hook)
        .collect();
    assert_eq!(asked, ["each-prompt", "each-end"]);
}

#[test]
fn a_request_gate_ends_the_turn_before_anything_is_sent() {
    let says = |request: &RequestView| match request.number {
        1 => Verdict::allow(),
        _ => Verdict::abort("one is enough"),
    };
    let (pod, said) = pod(
        &["a", "b"],
        vec![gate("builtin:r", HookKey::<PreRequest>::new("r"), says)],
    );
    let ran = pod.run("go");
    assert!(aborted(&ran.end().outcome).contains("one is enough"));
    assert_eq!((said.words().len(), pod.script.requests().len()), (1, 1));
    let own: Vec<_> = verdicts(&pod)
        .into_iter()
        .filter(|v| v.call.is_none())
        .map(|v| v.decision.word())
        .collect();
    assert_eq!(own, ["allow", "abort"]);
}

#[test]
fn a_pause_is_told_and_journaled_and_the_turn_stays_ended() {
    let says = |end: &TurnEndView| match end.steps {
        2 => Verdict::pause("look at it"),
        _ => Verdict::finish(),
    };
    let (pod, _) = pod(
        &["a"],
        vec![gate("builtin:e", HookKey::<TurnEnd>::new("e"), says)],
    );
    let ran = pod.run("go");
    assert_eq!(ran.end().outcome, Outcome::Done);
    assert!(
        ran.end()
            .paused
            .as_deref()
            .is_some_and(|reason| reason.contains("look at it"))
    );
    assert!(
        ran.events
            .iter()
            .any(|event| matches!(event, Shown::Alert(alert) if alert.text.contains("look at it")))
    );
    assert_eq!(decisions(&pod).last(), Some(&"pause"));
}

/// Its turn was cancelled while it was asked: its late answer is not that of the gates at the end.
#[test]
fn a_gate_whose_request_is_cancelled_does_not_speak_for_the_end() {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let slow = move |_: &RequestView| {
        token.cancel();
        std::thread::sleep(Duration::from_millis(300));
        Verdict::allow()
    };
    let end = |_: &TurnEndView| {
        std::thread::sleep(Duration::from_millis(600));
        Verdict::pause("look at it")
    };
    let gates = vec![
        gate("builtin:s", HookKey::<PreRequest>::new("s"), slow),
        gate("builtin:e", HookKey::<TurnEnd>::new("e"), end),
    ];
    let (mut pod, _) = pod(&["a"], gates);
    pod.paused = false;
    let ran = pod.run_until("go", &cancel);
    assert_eq!(ran.end().outcome, Outcome::Cancelled);
    assert!(
        ran.end()
            .paused
            .as_deref()
            .is_some_and(|reason| reason.contains("look at it")),
        "{:?}",
        ran.end()
    );
    assert_eq!(decisions(&pod), ["pause"]);
}

#[test]
fn an_observer_hears_durable_records_in_order() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let key = HookKey::<Event>::new("o");
    // Slower than the pod: it hears the last of it after the turn.
    let listen = move |event: &EventView| {
        std::thread::sleep(Duration::from_millis(10));
        hears
            .lock()
            .unwrap()
            .push((event.seq, event.record.kind().to_owned()));
    };
    let observer = hook(
        "builtin:o",
        builder("builtin:o").observe(&key).build(),
        key,
        Arc::new(listen),
    );
    let (pod, _) = pod(&["a"], vec![observer]);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    let heard = heard.lock().unwrap().clone();
    assert!(
        heard.iter().any(|(_, kind)| kind == "turn_finished"),
        "{heard:?}"
    );
    let log: Vec<_> = pod
        .records()
        .into_iter()
        .map(|(seq, record)| (seq, record.kind().to_owned()))
        .collect();
    assert!(heard.iter().all(|told| log.contains(told)) && heard.is_sorted_by_key(|(seq, _)| *seq));
}

#[test]
fn an_observer_that_hangs_is_off_the_path() {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::new(AtomicUsize::new(0));
    let hangs = Arc::clone(&stop);
    let counts = Arc::clone(&told);
    let key = || HookKey::<Event>::new("o").deadline(Duration::from_millis(50));
    let listen = move |_: &EventView| {
        counts.fetch_add(1, Ordering::Relaxed);
        while !hangs.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    };
    let observer = hook(
        "builtin:o",
        builder("builtin:o").observe(&key()).build(),
        key(),
        Arc::new(listen),
    );
    let (pod, said) = pod(&["a", "b", "c"], vec![observer]);
    let began = Instant::now();
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert_eq!((said.words().len(), told.load(Ordering::Relaxed)), (3, 1));
    stop.store(true, Ordering::Relaxed);
}
