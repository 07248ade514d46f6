//! The budget of a pod: counted over all its turns and starts, held where it is used up, and granted once more.

use crate::fixtures::more;
use crate::fixtures::{echo, pod, sound};
use llm_worker::ToolEffect;
use llm_worker::effect::Outcome;
use pod::control::{
    Activity, Client, HostMode, NewInput, Outbox, PodLimits, PodStatus, Reload, RunLimits,
    SubmitError,
};
use pod::record::{BudgetKind, BudgetScope, HoldCause, Record, Resumed, Who};
use pod::session::fold::Hold;
use std::time::Instant;
use testkit::{ModelScript, PATIENCE, PodUnderTest, RunEnd, ScriptedAnswer};

const STAY: HostMode = HostMode::Stay { missing: None };

fn calls(count: usize) -> Vec<ScriptedAnswer> {
    (0..count)
        .map(|_| ScriptedAnswer::calls(&[("Echo", "{}")]))
        .collect()
}

/// A pod that may send so many requests in all; the model goes on for ever.
fn limited(max_steps: u64) -> PodUnderTest {
    let mut pod = pod(calls(20), vec![echo("Echo", ToolEffect::ReadOnly)]);
    pod.mode = STAY;
    pod.pod_limits.max_steps = Some(max_steps);
    pod
}

fn input(text: &str) -> NewInput {
    NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    }
}

async fn until(client: &Client, wanted: impl Fn(&PodStatus) -> bool) -> PodStatus {
    let began = Instant::now();
    loop {
        let status = client.status().await.unwrap();
        if wanted(&status) {
            return status;
        }
        assert!(began.elapsed() < PATIENCE, "{status:?}");
        tokio::task::yield_now().await;
    }
}

/// Waits until the pod is held and rests.
async fn held(client: &Client) -> Hold {
    until(client, |status| {
        status.held.is_some() && status.activity == Activity::Idle
    })
    .await
    .held
    .unwrap()
}

fn person() -> Who {
    Who {
        client: "yoi resume".to_owned(),
        role: "driver".to_owned(),
        uid: 1000,
        name: None,
    }
}

/// What was granted once more, and by whom.
fn grants(pod: &PodUnderTest) -> Vec<Resumed> {
    let granted = |(_, record)| match record {
        Record::Resumed(resumed) if !resumed.more.is_empty() => Some(resumed),
        _ => None,
    };
    pod.records().into_iter().filter_map(granted).collect()
}

#[test]
fn the_budget_of_a_pod_ends_a_turn_and_holds_the_pod_until_a_person_grants_it_once_more() {
    let mut pod = limited(3);
    pod.limits.max_steps = 2;
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        let run = client
            .send(input("one"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        assert_eq!((run.outcome, run.steps), (Outcome::StepLimit, 2));
        let first = held(&client).await;
        assert_eq!(run.held.as_deref(), Some(&first));
        assert_eq!(
            (first.cause, first.budget),
            (HoldCause::Budget, Some(BudgetScope::Run))
        );
        assert_eq!(
            first.reason,
            "the run reached its limit of 2 steps; it used 2 steps, 22 tokens and 0s"
        );
        // The turn goes on, and its run has its budget once more.
        client.resume(None).await.unwrap();
        until(&client, |status| {
            status.requests == 3 && status.held.is_some()
        })
        .await;
        let used_up = held(&client).await;
        assert_eq!(
            (used_up.cause, used_up.budget),
            (HoldCause::Budget, Some(BudgetScope::Pod))
        );
        assert_eq!(
            used_up.reason,
            "the pod reached its limit of 3 steps; it used 3 steps, 33 tokens and 0s"
        );
        // Inputs wait, and a resume alone is refused.
        client.send(input("two")).await.unwrap();
        let refused = client.resume(None).await.unwrap_err();
        assert!(
            matches!(&refused, SubmitError::Budget(reason) if *reason == used_up.reason),
            "{refused:?}"
        );
        assert_eq!(held(&client).await, used_up);
        client.tell(more(), Some(person())).await.unwrap();
        until(&client, |status| {
            status.requests == 5 && status.held.is_some()
        })
        .await;
        assert_eq!(held(&client).await.budget, Some(BudgetScope::Run));
        client.resume(None).await.unwrap();
        until(&client, |status| {
            status.requests == 6 && status.held.is_some()
        })
        .await;
        assert_eq!(
            client.status().await.unwrap().queued.len(),
            1,
            "it comes after the turn that a limit ended"
        );
        let again = held(&client).await.reason;
        assert_eq!(
            again,
            "the pod reached its limit of 3 steps again; it used 6 steps, 66 tokens and 0s"
        );
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(
        grants(&pod)
            .iter()
            .map(|grant| grant.more.as_slice())
            .collect::<Vec<_>>(),
        [[BudgetKind::Steps]]
    );
    assert_eq!(grants(&pod)[0].by, Some(person()));
    sound(&pod, "a budget of a pod");
}

#[test]
fn only_what_is_used_up_is_granted_once_more() {
    let mut pod = limited(2);
    // An answer of the script has eleven tokens.
    pod.pod_limits.max_tokens = Some(50);
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        client
            .send(input("one"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        for (requests, ends) in [(4, Outcome::StepLimit), (5, Outcome::TokenLimit)] {
            client.tell(more(), None).await.unwrap();
            until(&client, |status| {
                status.requests == requests && status.held.is_some()
            })
            .await;
            assert_eq!(client.status().await.unwrap().last_outcome, Some(ends));
        }
        let tokens = held(&client).await;
        assert_eq!(
            tokens.reason,
            "the pod reached its limit of 50 tokens; it used 5 steps, 55 tokens and 0s"
        );
        client.close("done").await;
    });
    end.result.unwrap();
    sound(&pod, "a grant of one kind");
}

#[test]
fn a_pod_that_has_used_its_budget_begins_no_turn_also_after_a_restart() {
    let pod = limited(2);
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        client
            .send(input("one"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        client.close("done").await;
    });
    end.result.unwrap();
    let turns = end.state.turns;
    // The hold is in the log, and so is what was used.
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        assert_eq!(held(&client).await.budget, Some(BudgetScope::Pod));
        client.send(input("two")).await.unwrap();
        client.resume(None).await.unwrap_err();
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(
        (end.state.turns, end.state.queued.iter().count()),
        (turns, 1)
    );
    // Lower limits hold a pod that was not held.
    let mut other = limited(9);
    other.script = ModelScript::new([ScriptedAnswer::text("done"), ScriptedAnswer::text("never")]);
    let ((), end) = other.serve(Outbox::unwatched(), async |client| {
        client
            .send(input("one"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        client.close("done").await;
    });
    end.result.unwrap();
    other.pod_limits.max_steps = Some(1);
    let ((), end) = other.serve(Outbox::unwatched(), async |client| {
        client.send(input("two")).await.unwrap();
        assert_eq!(held(&client).await.budget, Some(BudgetScope::Pod));
        assert_eq!(client.status().await.unwrap().queued.len(), 1);
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(end.state.turns, 1);
    sound(&other, "lower limits");
}

#[test]
fn higher_limits_of_a_reload_count_at_once() {
    let pod = limited(1);
    let limits: RunLimits = pod.limits;
    let permission = pod.permission();
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        client
            .send(input("one"))
            .await
            .unwrap()
            .end()
            .await
            .unwrap();
        client.resume(None).await.unwrap_err();
        let pod_limits = PodLimits {
            max_steps: Some(3),
            ..PodLimits::default()
        };
        let context_policy = pod::session::view::ContextPolicy::default();
        client
            .reload(Reload {
                limits,
                pod_limits,
                permission,
                price: None,
                context_window: None,
                context_policy,
            })
            .await;
        client.resume(None).await.unwrap();
        until(&client, |status| {
            status.requests == 3 && status.held.is_some()
        })
        .await;
        client.close("done").await;
    });
    end.result.unwrap();
    assert_eq!(grants(&pod), []);
    sound(&pod, "a reload");
}

/// Nobody can be asked there, so the turn ends at once, in the first start and in each after it.
#[test]
fn a_run_in_a_pod_that_has_used_its_budget_ends_before_its_first_request() {
    let mut pod = limited(2);
    pod.mode = HostMode::Run;
    for (nth, steps) in [(1, 2), (2, 0), (3, 0)] {
        let run = pod.run("go");
        let end = run.end();
        assert_eq!(
            (&end.outcome, end.steps),
            (&Outcome::StepLimit, steps),
            "start {nth}"
        );
        let held = end.held.as_ref().unwrap();
        assert_eq!(held.budget, Some(BudgetScope::Pod));
        assert!(
            held.reason
                .starts_with("the pod reached its limit of 2 steps; it used 2 steps"),
            "{}",
            held.reason
        );
    }
    sound(&pod, "runs");
}

/// The hold is in one batch with the end of its turn, and what was used is counted from records: no kill gives a pod more
/// than its budget.
#[test]
fn no_kill_gives_a_pod_more_than_its_budget() {
    let scene = || {
        let mut pod = limited(3);
        pod.mode = HostMode::Run;
        pod
    };
    let reference = scene();
    reference.run("one").end();
    let points = reference.points.numbered();
    assert!(points.iter().any(|(name, _)| name == "suspended"));
    // A checkpoint is stored on a thread of its own.
    for (name, nth) in points
        .iter()
        .filter(|(name, _)| name != "journal:checkpoint")
    {
        let what = format!("killed at {name} {nth}");
        let mut pod = scene();
        pod.points.kill(name, *nth);
        let first = pod.run("one");
        assert!(
            matches!(first.how, RunEnd::Killed | RunEnd::Failed(_)),
            "{what}: {:?}",
            first.how
        );
        let ended = pod.state().last_outcome == Some(Outcome::StepLimit);
        assert_eq!(
            ended,
            pod.state()
                .held
                .is_some_and(|hold| hold.budget == Some(BudgetScope::Pod)),
            "{what}"
        );
        pod.revive();
        pod.script = ModelScript::new(calls(9));
        let second = pod.run("two");
        let state = pod.state();
        assert_eq!(second.end().outcome, Outcome::StepLimit, "{what}");
        assert!(state.requests <= 3, "{what}: {} requests", state.requests);
        assert_eq!(state.held.unwrap().budget, Some(BudgetScope::Pod), "{what}");
        sound(&pod, &what);
    }
}
