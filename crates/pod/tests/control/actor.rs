//! One task serves every client, between turns and in them.

use crate::fixtures::{echo, pod, sound, waits};
use llm_worker::effect::Outcome;
use llm_worker::{ErrorKind, ToolEffect};
use pod::control::{
    Event, Fatal, HostMode, MAX_INLINE_INPUT, NewInput, Outbox, RunLimits, SubmitError,
};
use pod::host::PodConfig;
use pod::record::{HoldCause, Record};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use testkit::{EIO, Fault, PodUnderTest, ScriptedAnswer};
use tokio::sync::Notify;
use tokio::task::JoinSet;

fn kinds(pod: &PodUnderTest) -> Vec<String> {
    pod.records()
        .iter()
        .map(|(_, record)| record.kind().to_owned())
        .collect()
}

#[test]
fn inputs_of_a_running_turn_are_accepted_and_get_a_turn_each() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let answers = vec![
        ScriptedAnswer::calls(&[("Wait", "{}")]),
        ScriptedAnswer::text("one"),
        ScriptedAnswer::text("two"),
        ScriptedAnswer::text("three"),
    ];
    let pod = pod(answers, vec![waits(&runs, &ends)]);
    let (ended, end) = pod.serve(Outbox::unwatched(), async |client| {
        let second = client.clone();
        let third = client.clone();
        tokio::join!(client.submit("first"), async {
            runs.notified().await;
            // Both are in the log before the turn goes on.
            let mut folded = second.folded();
            let before = *folded.borrow_and_update();
            tokio::join!(second.submit("second"), third.submit("third"), async {
                folded.wait_for(|seq| *seq >= before + 2).await.unwrap();
                ends.notify_one();
            })
        })
    });
    end.result.unwrap();
    let (first, (second, third, ())) = ended;
    let answer =
        |end: Result<pod::control::TurnEnd, SubmitError>| end.unwrap().answer.unwrap().to_string();
    assert_eq!(answer(first), "one");
    assert_eq!([answer(second), answer(third)], ["two", "three"]);
    assert_eq!(
        (end.state.inputs, end.state.turns, end.state.queued.len()),
        (3, 3, 0)
    );
    assert_eq!(kinds(&pod).last().unwrap(), "host_stopped");
    sound(&pod, "three inputs");
}

#[test]
fn a_client_cancels_one_turn_and_not_those_after_it() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let answers = vec![
        ScriptedAnswer::calls(&[("Wait", "{}")]),
        ScriptedAnswer::text("done"),
    ];
    let pod = pod(answers, vec![waits(&runs, &ends)]);
    let (outcomes, end) = pod.serve(Outbox::unwatched(), async |client| {
        // Nothing is under way: nothing happens.
        client.cancel(None).await;
        let cancels = async {
            runs.notified().await;
            client.cancel(None).await;
        };
        let (first, ()) = tokio::join!(client.submit("first"), cancels);
        [
            first.unwrap().outcome,
            client.submit("second").await.unwrap().outcome,
        ]
    });
    end.result.unwrap();
    assert_eq!(outcomes, [Outcome::Cancelled, Outcome::Done]);
    sound(&pod, "a cancelled turn");
}

/// A watcher that takes nothing holds the stream back, and features; never a client.
#[test]
fn a_client_is_heard_while_the_watcher_takes_nothing() {
    let answer = (0..3000).fold(ScriptedAnswer::new(), |answer, n| {
        answer.say(&format!("{n} "))
    });
    let mut pod = pod(vec![answer], Vec::new());
    pod.paused = false;
    let (outbox, events) = Outbox::watched();
    let (outcome, end) = pod.serve(outbox, async |client| {
        let cancels = async {
            while events.len() < events.max_capacity() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // Behind the channel the backlog fills, and then the stream is held back.
            tokio::time::sleep(Duration::from_millis(300)).await;
            client.cancel(None).await;
        };
        let (first, ()) = tokio::join!(client.submit("first"), cancels);
        drop(events);
        first.unwrap().outcome
    });
    end.result.unwrap();
    assert_eq!(outcome, Outcome::Cancelled);
}

#[test]
fn a_pod_closes_behind_its_turn_and_takes_nothing_after_that() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let mut pod = pod(
        vec![
            ScriptedAnswer::calls(&[("Wait", "{}")]),
            ScriptedAnswer::text("done"),
        ],
        vec![waits(&runs, &ends)],
    );
    pod.paused = false;
    let ((first, late), end) = pod.serve(Outbox::unwatched(), async |client| {
        let closes = async {
            runs.notified().await;
            client.close("enough").await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            ends.notify_one();
            client.submit("too late").await
        };
        tokio::join!(client.submit("first"), closes)
    });
    end.result.unwrap();
    assert_eq!(first.unwrap().outcome, Outcome::Done);
    assert!(matches!(late, Err(SubmitError::Closed)), "{late:?}");
    let last = pod.records().pop().unwrap().1;
    assert!(
        matches!(&last, Record::HostStopped(stopped) if stopped.reason == "enough"),
        "{last:?}"
    );
    assert_eq!(end.state.inputs, 1);
}

#[test]
fn what_two_clients_say_in_the_same_words_is_two_inputs() {
    let pod = pod(
        ["one", "two"].map(ScriptedAnswer::text).to_vec(),
        Vec::new(),
    );
    let (ends, end) = pod.serve(Outbox::unwatched(), async |client| {
        let ends = tokio::join!(client.submit("go on"), client.submit("go on"));
        [ends.0.unwrap().outcome, ends.1.unwrap().outcome]
    });
    end.result.unwrap();
    assert_eq!(ends, [Outcome::Done, Outcome::Done]);
    assert_eq!((end.state.inputs, end.state.queued.len()), (2, 0));
    sound(&pod, "twice the same");
}

#[test]
fn a_cancel_behind_an_input_or_a_close_is_handled() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let answers = vec![
        ScriptedAnswer::calls(&[("Wait", "{}")]),
        ScriptedAnswer::text("done"),
    ];
    let pod = pod(answers, vec![waits(&runs, &ends)]);
    let (outcomes, end) = pod.serve(Outbox::unwatched(), async |client| {
        // It is stored on another thread first.
        let large = "x".repeat(MAX_INLINE_INPUT + 1);
        let (early, ()) = tokio::join!(client.submit(&large), client.cancel(None));
        let cancels = async {
            runs.notified().await;
            client.close("enough").await;
            client.cancel(None).await;
            client.submit("too late").await
        };
        let (second, late) = tokio::join!(client.submit("second"), cancels);
        assert!(matches!(late, Err(SubmitError::Closed)), "{late:?}");
        [early.unwrap().outcome, second.unwrap().outcome]
    });
    end.result.unwrap();
    assert_eq!(outcomes, [Outcome::Cancelled, Outcome::Cancelled]);
    sound(&pod, "cancelled twice");
}

#[test]
fn an_input_limits_its_own_turn_and_few_may_wait() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let calls = |name| ScriptedAnswer::calls(&[(name, "{}")]);
    let mut answers = vec![calls("Wait"), ScriptedAnswer::text("one")];
    answers.extend((0..63).map(|n| ScriptedAnswer::text(&n.to_string())));
    answers.push(calls("Echo"));
    let mut pod = pod(
        answers,
        vec![waits(&runs, &ends), echo("Echo", ToolEffect::ReadOnly)],
    );
    pod.paused = false;
    let ((first, others), end) = pod.serve(Outbox::unwatched(), async |client| {
        let tight = RunLimits {
            max_steps: 1,
            ..client.limits()
        };
        let mut others = JoinSet::new();
        let submits = async {
            runs.notified().await;
            for n in 0..70 {
                let (client, limits) = (
                    client.clone(),
                    if n == 63 { tight } else { client.limits() },
                );
                others.spawn(async move {
                    client
                        .submit_input(NewInput {
                            text: format!("input {n}"),
                            limits: Some(limits.into()),
                            ..NewInput::default()
                        })
                        .await
                });
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            ends.notify_one();
        };
        let (first, ()) = tokio::join!(client.submit("first"), submits);
        (first.unwrap().outcome, others.join_all().await)
    });
    end.result.unwrap();
    let busy = others
        .iter()
        .filter(|end| matches!(end, Err(SubmitError::Busy)))
        .count();
    let limited = others
        .iter()
        .filter(|end| matches!(end, Ok(end) if end.outcome == Outcome::StepLimit))
        .count();
    assert_eq!((first, busy, limited), (Outcome::Done, 6, 1));
    let done = others
        .iter()
        .filter(|end| matches!(end, Ok(end) if end.outcome == Outcome::Done))
        .count();
    assert_eq!((done, end.state.inputs, end.state.turns), (63, 65, 65));
}

/// Also between turns the log says why it ends, and so does the watcher; nobody who asked waits for ever.
#[test]
fn a_disk_that_fails_between_turns_ends_the_pod_with_its_reason() {
    let mut pod = pod(vec![ScriptedAnswer::text("one")], Vec::new());
    pod.paused = false;
    let (outbox, mut events) = Outbox::watched();
    let (late, end) = pod.serve(outbox, async |client| {
        client.submit("first").await.unwrap();
        pod.disk.fail_at(0, Fault::Once(EIO));
        let again = pod.disk.clone();
        let fails = async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            again.fail_at(0, Fault::Once(EIO));
        };
        tokio::join!(client.submit("second"), fails).0
    });
    assert!(matches!(late, Err(SubmitError::Closed)), "{late:?}");
    assert!(
        matches!(end.result, Err(Fatal::Journal(_))),
        "{:?}",
        end.result
    );
    let last = pod.records().pop().unwrap().1;
    assert!(matches!(&last, Record::Suspended(_)), "{last:?}");
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        told.push(event);
    }
    let suspended = told
        .iter()
        .filter(|event| matches!(event, Event::Suspended { .. }))
        .count();
    assert_eq!(suspended, 2, "{told:?}");
    assert!(
        matches!(told.last(), Some(Event::Record { record, .. }) if record.kind() == "suspended"),
        "{told:?}"
    );
}

#[test]
fn a_pod_that_nobody_asks_anything_writes_its_report_and_ends() {
    let pod = pod(Vec::new(), Vec::new());
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| drop(client));
    end.result.unwrap();
    assert_eq!(
        kinds(&pod),
        [
            "segment",
            "host_started",
            "features",
            "grants_used",
            "host_stopped"
        ]
    );
}

/// What was true when the pod began is not told a month later.
#[test]
fn each_turn_is_told_where_and_when_it_is() {
    let pod = pod(
        ["one", "two", "three"].map(ScriptedAnswer::text).to_vec(),
        Vec::new(),
    );
    let (_, end) = pod.serve(Outbox::unwatched(), async |client| {
        for day in ["monday", "monday", "tuesday"] {
            *pod.environment.lock().unwrap() = day.to_owned();
            client.submit("go").await.unwrap();
        }
    });
    end.result.unwrap();
    let told = |(_, record): (u64, Record)| match record {
        Record::SystemItem(pod::record::SystemItem::Environment { text, .. }) => Some(text),
        _ => None,
    };
    assert_eq!(
        pod.records()
            .into_iter()
            .filter_map(told)
            .collect::<Vec<_>>(),
        ["monday", "tuesday"]
    );
}

/// After a kill the use of weeks would be gone.
#[test]
fn what_grants_were_used_for_is_written_every_hour() {
    let pod = pod(
        ["one", "two", "three"].map(ScriptedAnswer::text).to_vec(),
        Vec::new(),
    );
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        for minutes in [0, 30, 31] {
            tokio::time::advance(Duration::from_secs(minutes * 60)).await;
            client.submit("go").await.unwrap();
        }
    });
    end.result.unwrap();
    let written = kinds(&pod);
    assert_eq!(
        written.iter().filter(|kind| *kind == "grants_used").count(),
        2,
        "{written:?}"
    );
    sound(&pod, "an hour");
}

/// Its handles still lead to the old directory: nothing may be written there.
#[test]
fn a_project_that_was_replaced_stops_the_turn_until_it_is_back() {
    let pod = pod(
        vec![ScriptedAnswer::text("one"), ScriptedAnswer::text("two")],
        vec![echo("Echo", ToolEffect::ReadOnly)],
    );
    let aside = pod.root().join("aside");
    let (outcomes, end) = pod.serve(Outbox::unwatched(), async |client| {
        let mut outcomes = vec![client.submit("first").await.unwrap().outcome];
        fs::rename(&pod.project, &aside).unwrap();
        fs::create_dir(&pod.project).unwrap();
        outcomes.push(client.submit("second").await.unwrap().outcome);
        fs::remove_dir(&pod.project).unwrap();
        fs::rename(&aside, &pod.project).unwrap();
        outcomes.push(client.submit("third").await.unwrap().outcome);
        outcomes
    });
    end.result.unwrap();
    let [first, second, third] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    let Outcome::Aborted { reason } = second else {
        panic!("{second:?}")
    };
    assert!(reason.contains("replaced after it was opened"), "{reason}");
    assert_eq!([first, third], [&Outcome::Done, &Outcome::Done]);
    // Neither input is lost: the last turn took both.
    assert_eq!(
        (
            end.state.inputs,
            end.state.queued.len(),
            pod.script.requests().len()
        ),
        (3, 0, 2)
    );
    sound(&pod, "a replaced project");
}

/// A fault of this program, that is. Its text is in the log, and no client waits for ever.
#[test]
fn a_panic_of_the_actor_ends_the_pod_with_its_cause_in_the_log() {
    let mut pod = pod(vec![ScriptedAnswer::text("never")], Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    let broken = |config: &mut PodConfig| {
        config.environment = Box::new(|| panic!("nothing describes this place"))
    };
    let (told, end) = pod.serve_with(Outbox::unwatched(), broken, async |client| {
        let waits = client
            .send(NewInput {
                text: "go".to_owned(),
                ..NewInput::default()
            })
            .await
            .unwrap();
        (waits.end().await, client.status().await)
    });
    assert!(matches!(told, (Err(SubmitError::Closed), None)), "{told:?}");
    let Err(fatal) = end.result else {
        panic!("it ended in good order")
    };
    assert_eq!(fatal.kind(), ErrorKind::Bug);
    let last = pod.records().pop().unwrap().1;
    let Record::Suspended(suspended) = last else {
        panic!("{last:?}")
    };
    assert_eq!(suspended.cause, Some(HoldCause::Bug));
    assert!(
        suspended.reason.contains("nothing describes this place"),
        "{}",
        suspended.reason
    );
    assert_eq!(
        (
            end.state.queued.len(),
            end.state.held.map(|hold| hold.cause)
        ),
        (1, Some(HoldCause::Bug))
    );
    assert_eq!(pod.state().queued.len(), 1, "what was accepted waits");
}
