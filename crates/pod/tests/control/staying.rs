//! A pod that stays: its queue, its holds and what ends them, also across restarts.

use crate::fixtures::{add_slow, echo, pod, sound, waits};
use crate::fixtures::{more, moved};
use llm_worker::ToolEffect;
use llm_worker::effect::Outcome;
use pod::control::{Activity, Client, HostMode, NewInput, Outbox, PodStatus, SubmitError};
use pod::record::{HoldCause, InputLimits, InputMode};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::{FnTool, PATIENCE, PodUnderTest, ScriptedAnswer};
use tokio::sync::Notify;

const STAY: HostMode = HostMode::Stay { missing: None };

fn stays(answers: Vec<ScriptedAnswer>, tools: Vec<FnTool>) -> PodUnderTest {
    let mut pod = pod(answers, tools);
    pod.mode = STAY;
    pod
}

fn input(text: &str) -> NewInput {
    NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    }
}

fn steered(text: &str) -> NewInput {
    NewInput {
        mode: InputMode::Steer,
        ..input(text)
    }
}

/// What the model read from people, in order.
fn users(pod: &PodUnderTest) -> Vec<String> {
    let text = |item| match item {
        llm_worker::Item::User { text, .. } => Some(text),
        _ => None,
    };
    pod.restored().items.into_iter().filter_map(text).collect()
}

/// The names of the kinds, from the first of this one on.
fn kinds_from(pod: &PodUnderTest, first: &str) -> Vec<String> {
    let kinds = pod
        .records()
        .into_iter()
        .map(|(_, record)| record.kind().to_owned());
    kinds.skip_while(|kind| kind != first).collect()
}

/// Waits until this holds of the pod.
pub(crate) async fn until(client: &Client, wanted: impl Fn(&PodStatus) -> bool) {
    let began = Instant::now();
    loop {
        let status = client.status().await.unwrap();
        if wanted(&status) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{status:?}");
        tokio::task::yield_now().await;
    }
}

fn is_idle(status: &PodStatus) -> bool {
    status.activity == Activity::Idle
}

#[test]
fn its_start_is_in_the_log_before_anybody_asks_anything() {
    let pod = stays(Vec::new(), Vec::new());
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        let mut folded = client.folded();
        folded.wait_for(|seq| *seq >= 4).await.unwrap();
        assert_eq!(client.status().await.unwrap().activity, Activity::Idle);
        client.close("enough").await;
    });
    end.result.unwrap();
    let kinds = kinds_from(&pod, "host_started");
    assert_eq!(
        kinds,
        [
            "host_started",
            "features",
            "surface",
            "grants_used",
            "host_stopped"
        ]
    );
    sound(&pod, "a start without an input");
}

#[test]
fn a_steered_input_joins_the_next_step_and_a_queued_one_waits() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let answers = vec![
        ScriptedAnswer::calls(&[("Wait", "{}")]),
        ScriptedAnswer::text("one, steered"),
        ScriptedAnswer::text("two"),
    ];
    let pod = stays(answers, vec![waits(&runs, &ends)]);
    let (answers, end) = pod.serve(Outbox::unwatched(), async |client| {
        let first = client.send(input("one")).await.unwrap();
        runs.notified().await;
        let second = client.send(input("two")).await.unwrap();
        let steer = client.send(steered("left")).await.unwrap();
        assert_eq!(client.status().await.unwrap().queued.len(), 2);
        ends.notify_one();
        let answers = [first.end().await, steer.end().await, second.end().await];
        client.close("done").await;
        answers.map(|end| end.unwrap().answer.unwrap().to_string())
    });
    end.result.unwrap();
    assert_eq!(answers, ["one, steered", "one, steered", "two"]);
    assert_eq!(users(&pod), ["one", "left", "two"]);
    assert_eq!(end.state.turns, 2);
    sound(&pod, "a steered input");
}

/// It was meant for that turn, so it comes before what waited.
#[test]
fn a_steered_input_without_a_further_step_begins_the_next_turn() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let answers = vec![
        ScriptedAnswer::calls(&[("Wait", "{}")]),
        ScriptedAnswer::text("steered"),
        ScriptedAnswer::text("two"),
    ];
    let mut pod = stays(answers, vec![waits(&runs, &ends)]);
    pod.limits.max_steps = 1;
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        let first = client.send(input("one")).await.unwrap();
        runs.notified().await;
        client.send(input("two")).await.unwrap();
        let steer = client.send(steered("left")).await.unwrap();
        ends.notify_one();
        assert_eq!(first.end().await.unwrap().outcome, Outcome::StepLimit);
        assert_eq!(
            client.status().await.unwrap().held.unwrap().cause,
            HoldCause::Budget
        );
        client.resume(None).await.unwrap();
        steer.end().await.unwrap();
        until(&client, is_idle).await;
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(users(&pod), ["one", "left", "two"]);
    sound(&pod, "a steered input that was late");
}

#[test]
fn what_waits_can_be_edited_withdrawn_and_moved() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let mut answers = vec![ScriptedAnswer::calls(&[("Wait", "{}")])];
    answers.extend(["one", "four", "two"].map(ScriptedAnswer::text));
    let pod = stays(answers, vec![waits(&runs, &ends)]);
    let (withdrawn, end) = pod.serve(Outbox::unwatched(), async |client| {
        let first = client.send(input("one")).await.unwrap();
        runs.notified().await;
        let mut sent = Vec::new();
        for text in ["two", "three", "four"] {
            sent.push(client.send(input(text)).await.unwrap());
        }
        let [two, three, four] = [sent[0].input, sent[1].input, sent[2].input];
        client
            .edit(two, "two, edited".to_owned(), None)
            .await
            .unwrap();
        client.withdraw(three, None).await.unwrap();
        client.tell(moved(four, Some(two)), None).await.unwrap();
        // An input that a turn took, or that is gone, cannot be changed.
        for taken in [first.input, three, 99] {
            let error = client.withdraw(taken, None).await.unwrap_err();
            assert!(
                matches!(error, SubmitError::NotWaiting(input) if input == taken),
                "{error}"
            );
        }
        assert!(client.tell(moved(two, Some(three)), None).await.is_err());
        let waiting: Vec<_> = client
            .status()
            .await
            .unwrap()
            .queued
            .into_iter()
            .map(|waiting| waiting.text.to_string())
            .collect();
        assert_eq!(waiting, ["four", "two, edited"]);
        ends.notify_one();
        let mut sent = sent.into_iter();
        let last = sent.next().unwrap().end();
        let withdrawn = sent.next().unwrap().end().await;
        last.await.unwrap();
        client.close("done").await;
        withdrawn
    });
    end.result.unwrap();
    assert!(
        matches!(withdrawn, Err(SubmitError::NotWaiting(3))),
        "{withdrawn:?}"
    );
    assert_eq!(users(&pod), ["one", "four", "two, edited"]);
    sound(&pod, "a changed queue");
}

#[test]
fn a_cancel_holds_what_waits_until_somebody_says_something() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let answers = vec![
        ScriptedAnswer::calls(&[("Wait", "{}")]),
        ScriptedAnswer::text("two"),
        ScriptedAnswer::text("three"),
    ];
    let pod = stays(answers, vec![waits(&runs, &ends)]);
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        let first = client.send(input("one")).await.unwrap();
        runs.notified().await;
        client.send(input("two")).await.unwrap();
        client.cancel(None).await;
        assert_eq!(first.end().await.unwrap().outcome, Outcome::Cancelled);
        let status = client.status().await.unwrap();
        assert_eq!(
            (status.held.unwrap().cause, status.queued.len()),
            (HoldCause::Cancel, 1)
        );
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(end.state.turns, 1);
    // The hold outlives the process; the next words end it.
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        assert_eq!(
            client.status().await.unwrap().held.unwrap().cause,
            HoldCause::Cancel
        );
        client
            .send(input("three"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(users(&pod), ["one", "two", "three"]);
    sound(&pod, "a held queue");
}

/// Everything is durable while it waits, and a step that began before the pause is finished.
#[test]
fn a_pause_holds_the_running_turn_before_its_next_request() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let answers = vec![
        ScriptedAnswer::calls(&[("Wait", "{}")]),
        ScriptedAnswer::text("done"),
    ];
    let pod = stays(answers, vec![waits(&runs, &ends)]);
    let (outcome, end) = pod.serve(Outbox::unwatched(), async |client| {
        let first = client.send(input("one")).await.unwrap();
        runs.notified().await;
        client.pause(None).await.unwrap();
        assert_eq!(
            client.status().await.unwrap().activity,
            Activity::Working {
                turn: 1,
                requests: 1
            }
        );
        ends.notify_one();
        until(&client, |status| {
            status.activity == Activity::Paused { turn: 1 }
        })
        .await;
        assert_eq!(pod.script.requests().len(), 1);
        assert_eq!(
            kinds_from(&pod, "tool_finished").len(),
            1,
            "the result is on disk, and nothing after it"
        );
        client.resume(None).await.unwrap();
        let outcome = first.end().await.unwrap().outcome;
        client.close("done").await;
        outcome
    });
    end.result.unwrap();
    assert_eq!(outcome, Outcome::Done);
    sound(&pod, "a paused turn");
}

#[test]
fn a_paused_pod_stays_paused_after_a_restart() {
    let pod = stays(vec![ScriptedAnswer::text("one")], Vec::new());
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        client.pause(None).await.unwrap();
        client.send(input("one")).await.unwrap();
        client.close("done").await;
    });
    end.result.unwrap();
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        let status = client.status().await.unwrap();
        assert_eq!(
            (status.held.unwrap().cause, status.queued.len()),
            (HoldCause::Person, 1)
        );
        client.resume(None).await.unwrap();
        until(&client, |status| status.turns > 0 && is_idle(status)).await;
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(users(&pod), ["one"]);
}

/// The next start continues where the last one ended, without a request.
#[test]
fn a_turn_that_ends_because_the_host_leaves_goes_on_at_the_next_start() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let answers = vec![
        ScriptedAnswer::calls(&[("Wait", "{}")]),
        ScriptedAnswer::text("went on"),
    ];
    let pod = stays(answers, vec![waits(&runs, &ends)]);
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        client.send(input("one")).await.unwrap();
        runs.notified().await;
        client.leave("the machine is restarted").await;
    });
    end.result.unwrap();
    assert_eq!(
        (&end.state.last_outcome, &end.state.held),
        (&Some(Outcome::Interrupted), &None)
    );
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        until(&client, |status| status.last_outcome == Some(Outcome::Done)).await;
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(
        (end.state.turns, end.state.last_answer.as_deref()),
        (2, Some("went on"))
    );
    assert_eq!(users(&pod), ["one"]);
    sound(&pod, "work that went on");
}

/// A person ended the turn: the next start must not go on with it by itself.
#[test]
fn a_turn_that_was_cancelled_before_the_host_leaves_stays_cancelled() {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let pod = stays(
        vec![ScriptedAnswer::calls(&[("Wait", "{}")])],
        vec![waits(&runs, &ends)],
    );
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        client.send(input("one")).await.unwrap();
        runs.notified().await;
        client.cancel(None).await;
        client.leave("the machine is restarted").await;
    });
    end.result.unwrap();
    assert_eq!(end.state.last_outcome, Some(Outcome::Cancelled));
    assert_eq!(
        end.state.held.map(|hold| hold.cause),
        Some(HoldCause::Cancel)
    );
}

#[test]
fn a_pod_that_lacks_something_keeps_what_it_is_told_until_a_start_that_has_it() {
    let mut pod = stays(vec![ScriptedAnswer::text("one")], Vec::new());
    pod.mode = HostMode::Stay {
        missing: Some("SOME_KEY is not set".to_owned()),
    };
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        client.send(input("one")).await.unwrap();
        let refused = client.resume(None).await.unwrap_err();
        assert!(
            matches!(&refused, SubmitError::Required(why) if why.contains("SOME_KEY")),
            "{refused}"
        );
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!((end.state.turns, end.state.queued.len()), (0, 1));
    pod.mode = STAY;
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        until(&client, |status| status.turns > 0 && is_idle(status)).await;
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(end.state.last_answer.as_deref(), Some("one"));
}

#[test]
fn an_input_limits_its_turn_also_after_a_restart() {
    let answers = vec![
        ScriptedAnswer::calls(&[("Echo", "{}")]),
        ScriptedAnswer::text("never"),
    ];
    let mut pod = stays(answers, vec![echo("Echo", ToolEffect::ReadOnly)]);
    pod.mode = HostMode::Stay {
        missing: Some("a key".to_owned()),
    };
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        let limits = Some(InputLimits {
            max_steps: Some(1),
            ..InputLimits::default()
        });
        client
            .send(NewInput {
                limits,
                ..input("one")
            })
            .await
            .unwrap();
        client.close("done").await;
    });
    end.result.unwrap();
    pod.mode = STAY;
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        until(&client, |status| status.last_outcome.is_some()).await;
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(end.state.last_outcome, Some(Outcome::StepLimit));
}

#[test]
fn a_limit_on_tokens_holds_the_pod_and_counts_for_each_input_anew() {
    // An answer of the script has eleven tokens.
    let answers = vec![
        ScriptedAnswer::calls(&[("Echo", "{}")]),
        ScriptedAnswer::calls(&[("Echo", "{}")]),
        ScriptedAnswer::text("one"),
        ScriptedAnswer::text("two"),
    ];
    let mut pod = stays(answers, vec![echo("Echo", ToolEffect::ReadOnly)]);
    pod.limits.max_tokens = Some(20);
    let (ends, end) = pod.serve(Outbox::unwatched(), async |client| {
        let first = client
            .send(input("one"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        until(&client, |status| status.held.is_some() && is_idle(status)).await;
        let held = client.status().await.unwrap().held.unwrap();
        client.resume(None).await.unwrap();
        until(&client, |status| {
            status.requests == 3 && status.last_outcome == Some(Outcome::Done)
        })
        .await;
        let second = client
            .send(input("two"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        client.close("done").await;
        (first, held, second)
    });
    end.result.unwrap();
    let (first, held, second) = ends;
    assert_eq!(
        (first.outcome, first.steps, first.usage.tokens()),
        (Outcome::TokenLimit, 2, 22)
    );
    assert_eq!(
        (held.cause, held.reason.as_str()),
        (
            HoldCause::Budget,
            "the run reached its limit of 20 tokens; it used 2 steps, 22 tokens and 0s"
        )
    );
    assert_eq!((second.outcome, second.steps), (Outcome::Done, 1));
    sound(&pod, "a limit on tokens");
}

#[test]
fn a_limit_on_time_holds_the_pod_and_counts_for_each_input_anew() {
    let call = || ScriptedAnswer::calls(&[("Slow", "{}")]);
    let mut pod = stays(
        vec![
            call(),
            call(),
            ScriptedAnswer::text("one"),
            ScriptedAnswer::text("two"),
        ],
        Vec::new(),
    );
    add_slow(&mut pod, 30);
    pod.limits.max_wall = Some(Duration::from_secs(60));
    let ((first, held, second), end) = pod.serve(Outbox::unwatched(), async |client| {
        let first = client
            .send(input("one"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        until(&client, |status| status.held.is_some() && is_idle(status)).await;
        let held = client.status().await.unwrap().held.unwrap();
        client.resume(None).await.unwrap();
        until(&client, |status| {
            status.requests == 3 && status.last_outcome == Some(Outcome::Done)
        })
        .await;
        let second = client
            .send(input("two"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        client.close("done").await;
        (first, held, second)
    });
    end.result.unwrap();
    assert_eq!((first.outcome, first.steps), (Outcome::TimeLimit, 2));
    assert_eq!(
        (held.cause, held.reason.as_str()),
        (
            HoldCause::Budget,
            "the run reached its limit of 1m; it used 2 steps, 22 tokens and 1m"
        )
    );
    assert_eq!((second.outcome, second.steps), (Outcome::Done, 1));
    sound(&pod, "a limit on time");
}

// `yoi resume` ended the hold of a limit, and the turn that it had ended was not continued, as the text said.
#[test]
fn a_resume_continues_the_turn_that_a_limit_ended() {
    let call = || ScriptedAnswer::calls(&[("Echo", r#"{"n":1}"#)]);
    let slow = || ScriptedAnswer::calls(&[("Slow", "{}")]);
    type Limit = fn(&mut PodUnderTest);
    let cases: [(Outcome, ScriptedAnswer, Limit); 4] = [
        (Outcome::StepLimit, call(), |pod| pod.limits.max_steps = 1),
        (Outcome::TokenLimit, call(), |pod| {
            pod.limits.max_tokens = Some(11)
        }),
        (Outcome::TimeLimit, slow(), |pod| {
            pod.limits.max_wall = Some(Duration::from_secs(20))
        }),
        (Outcome::StepLimit, call(), |pod| {
            pod.pod_limits.max_steps = Some(1)
        }),
    ];
    for (nth, (limit, first, limited)) in cases.into_iter().enumerate() {
        let echo = echo("Echo", ToolEffect::Effectful);
        let mut pod = stays(
            vec![first, ScriptedAnswer::text("all done")],
            vec![echo.clone()],
        );
        add_slow(&mut pod, 20);
        limited(&mut pod);
        let is_of_pod = nth == 3;
        let (end, over) = pod.serve(Outbox::unwatched(), async |client| {
            let end = client
                .send(input("one"))
                .await
                .unwrap()
                .end()
                .await
                .unwrap();
            client.close("a restart changes nothing").await;
            end
        });
        over.result.unwrap();
        assert_eq!(end.outcome, limit);
        let ((), over) = pod.serve(Outbox::unwatched(), async |client| {
            let held = client.status().await.unwrap();
            assert_eq!(
                (held.turns, held.held.map(|hold| hold.cause)),
                (1, Some(HoldCause::Budget)),
                "{limit:?}"
            );
            let resumed = if is_of_pod {
                client.tell(more(), None).await
            } else {
                client.resume(None).await
            };
            resumed.unwrap();
            until(&client, |status| status.last_outcome == Some(Outcome::Done)).await;
            client.close("done").await;
        });
        over.result.unwrap();
        let state = over.state;
        assert_eq!(
            (state.turns, state.requests, state.last_answer.as_deref()),
            (2, 2, Some("all done")),
            "{limit:?}"
        );
        assert_eq!(state.going_on.map(|on| on.input), Some(1), "{limit:?}");
        assert_eq!(users(&pod), ["one"]);
        let request = pod.script.requests().pop().unwrap();
        assert!(
            matches!(
                request.items.last(),
                Some(llm_worker::Item::ToolResult { .. })
            ),
            "{:?}",
            request.items.last()
        );
        assert!(echo.ran().len() <= 1, "no act is repeated");
        sound(&pod, "a turn that was continued");
    }
}
