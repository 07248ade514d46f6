//! A program that changes a pod between turns: none begins meanwhile, and the pod does not end.

use crate::fixtures::{live, pod, sound};
use llm_worker::StopReason;
use pod::control::{Activity, HostMode, NewInput, SubmitError};
use pod::record::{FeatureNote, Record};
use testkit::{Latch, LivePod, PodUnderTest, ScriptedAnswer};

fn stays(answers: Vec<ScriptedAnswer>) -> PodUnderTest {
    let mut pod = pod(answers, Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    pod
}

fn send(live: &LivePod, text: &str) {
    let input = NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    };
    live.ask(live.client().send(input)).unwrap();
}

fn note(text: &str) -> Record {
    FeatureNote {
        feature: "testkit".to_owned(),
        text: text.to_owned(),
    }
    .into()
}

#[test]
fn no_turn_begins_while_it_lasts_and_it_lasts_once() {
    let live = live(stays(vec![ScriptedAnswer::text("done")]));
    let client = live.client();
    let lasts = live.ask(client.between_turns()).unwrap();
    let second = live.ask(client.between_turns());
    assert!(matches!(second, Err(SubmitError::Working)), "{second:?}");
    // The input is accepted, the records are appended, and nothing else happens.
    send(&live, "one");
    live.ask(lasts.append(vec![note("between")])).unwrap();
    let status = live.ask(client.status()).unwrap();
    assert_eq!(
        (status.activity, status.turns, status.queued.len()),
        (Activity::Idle, 0, 1)
    );
    drop(lasts);
    assert_eq!(live.settled().turns, 1);
    drop(live.ask(client.between_turns()).unwrap());
    let over = live.close();
    let records = over.pod.records();
    let kinds: Vec<_> = records.iter().map(|(_, record)| record.kind()).collect();
    let at = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap();
    assert!(
        at("input_queued") < at("feature_note") && at("feature_note") < at("turn_started"),
        "{kinds:?}"
    );
    sound(&over.pod, "records between turns");
}

#[test]
fn it_does_not_begin_while_a_turn_runs() {
    let answer = Latch::new("the answer");
    let live = live(stays(vec![
        ScriptedAnswer::new()
            .wait_at(&answer)
            .say("done")
            .stop(StopReason::EndTurn),
    ]));
    send(&live, "one");
    live.until(|status| status.requests == 1);
    let refused = live.ask(live.client().between_turns());
    assert!(matches!(refused, Err(SubmitError::Working)), "{refused:?}");
    answer.open();
    live.settled();
    drop(live.ask(live.client().between_turns()).unwrap());
    sound(&live.close().pod, "a turn that ran");
}

#[test]
fn a_close_waits_for_it_and_refuses_the_next() {
    let live = live(stays(Vec::new()));
    let client = live.client();
    let lasts = live.ask(client.between_turns()).unwrap();
    live.ask(client.close("enough"));
    let status = live.ask(client.status()).unwrap();
    assert_eq!(status.activity, Activity::Closing);
    let late = live.ask(client.between_turns());
    assert!(matches!(late, Err(SubmitError::Closed)), "{late:?}");
    // What was begun can be finished.
    live.ask(lasts.append(vec![note("before the end")]))
        .unwrap();
    drop((lasts, client));
    let over = live.wait();
    assert!(over.state().held.is_none());
    let records = over.pod.records();
    let kinds: Vec<_> = records.iter().map(|(_, record)| record.kind()).collect();
    assert!(
        kinds.ends_with(&["feature_note", "grants_used", "host_stopped"]),
        "{kinds:?}"
    );
}
