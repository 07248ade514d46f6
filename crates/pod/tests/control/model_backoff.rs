//! A model that cannot be reached: a pod that stays holds the turn, and sends its request again until it is answered.

use crate::fixtures::{live as opened, pod, sound};
use crate::staying::until;
use llm_worker::effect::Outcome;
use llm_worker::{ErrorKind, Item, ModelError};
use pod::control::{Activity, HostMode, NewInput, PodStatus, SubmitError};
use pod::feature::*;
use pod::record::HoldCause;
use protocol::status::ModelRetry;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{LivePod, PodUnderTest, ScriptedAnswer};

const REASON: &str = "connection refused";

fn unreached() -> ScriptedAnswer {
    fails(ErrorKind::Unavailable)
}

fn fails(kind: ErrorKind) -> ScriptedAnswer {
    ScriptedAnswer::new().fail(ModelError {
        kind,
        message: REASON.to_owned(),
        help: None,
    })
}

/// A pod that stays, whose model cannot be reached this many times and then answers.
fn stays(failures: usize, answers: usize) -> PodUnderTest {
    let failures = (0..failures).map(|_| unreached());
    let answers = (0..answers).map(|_| ScriptedAnswer::text("here"));
    let mut pod = pod(failures.chain(answers).collect(), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    pod
}

fn new(text: &str) -> NewInput {
    NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    }
}

/// Sends these inputs at once, and waits until the request of the first one has failed.
fn failing(live: &LivePod, inputs: &[&str]) -> PodStatus {
    live.ask(live.client().pause(None)).unwrap();
    for text in inputs {
        live.ask(live.client().send(new(text))).unwrap();
    }
    live.ask(live.client().resume(None)).unwrap();
    waiting(live, 1)
}

/// Waits until requests have failed this often, all in all.
fn waiting(live: &LivePod, pauses: usize) -> PodStatus {
    let failed = || {
        live.pod
            .points
            .came()
            .iter()
            .filter(|point| *point == "model:waits")
            .count()
    };
    live.ask(until(&live.client(), |status| {
        failed() == pauses && status.model_wait.is_some()
    }));
    live.ask(live.client().status()).unwrap()
}

fn left(status: &PodStatus) -> Option<u64> {
    status.model_wait.as_ref().map(|wait| wait.retry_in_s)
}

fn sent(live: &LivePod) -> usize {
    live.pod.script.bodies().len()
}

// Five attempts in 7 s ended the turn of an unattended pod for good: it was idle, and a resume changed nothing.
#[test]
fn the_request_is_sent_again_after_each_pause_until_the_model_answers() {
    let live = opened(stays(5, 2));
    let mut status = failing(&live, &["0", "1"]);
    let since_ms = status.model_wait.as_ref().unwrap().since_ms;
    assert!(since_ms.is_some());
    for (failures, pause) in [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480)] {
        let wait = ModelRetry {
            reason: REASON.to_owned(),
            retry_in_s: pause,
            since_ms,
        };
        assert_eq!(
            (status.turns, status.requests, &status.model_wait),
            (1, 1, &Some(wait))
        );
        assert_eq!(
            (status.activity, status.queued.len()),
            (
                Activity::Working {
                    turn: 1,
                    requests: 1
                },
                1
            )
        );
        live.advance(Duration::from_secs(pause - 1));
        status = live.ask(live.client().status()).unwrap();
        assert_eq!((left(&status), sent(&live)), (Some(1), failures));
        live.advance(Duration::from_secs(1));
        if failures < 5 {
            status = waiting(&live, failures + 1);
        }
    }
    status = live.settled();
    assert_eq!(
        (status.turns, status.requests, status.model_wait),
        (2, 2, None)
    );
    let over = live.close();
    let bodies = over.pod.script.bodies();
    assert!(
        bodies.len() == 7 && bodies[..6].iter().all(|body| *body == bodies[0]),
        "nothing is asked twice"
    );
    sound(&over.pod, "a model that could not be reached");
}

#[test]
fn a_new_input_a_resume_and_a_restart_try_at_once() {
    let live = opened(stays(3, 3));
    assert_eq!(left(&failing(&live, &["one", "two"])), Some(30));
    live.ask(live.client().send(new("are you there?"))).unwrap();
    assert_eq!(left(&waiting(&live, 2)), Some(60));
    live.ask(live.client().resume(None)).unwrap();
    let status = waiting(&live, 3);
    assert_eq!(
        (left(&status), status.queued.len(), sent(&live)),
        (Some(120), 2, 3)
    );
    // Nothing is in the log about it: the pod leaves the turn, and the next start goes on with it.
    let again = opened(live.close().pod);
    let status = again.settled();
    assert_eq!(
        (status.turns, status.requests, status.last_outcome),
        (4, 4, Some(Outcome::Done))
    );
    let pod = again.close().pod;
    let users = |item: &&Item| matches!(item, Item::User { .. });
    assert_eq!(pod.restored().items.iter().filter(users).count(), 3);
    sound(&pod, "a restart");
}

#[test]
fn a_pause_holds_the_attempts_and_a_cancel_ends_the_turn() {
    let live = opened(stays(2, 2));
    let client = live.client();
    failing(&live, &["one"]);
    live.ask(client.pause(None)).unwrap();
    live.ask(until(&client, |status| {
        status.activity == Activity::Paused { turn: 1 }
    }));
    live.advance(Duration::from_secs(3600));
    assert_eq!(
        (sent(&live), live.ask(client.status()).unwrap().model_wait),
        (1, None),
        "a person holds it"
    );
    live.ask(client.resume(None)).unwrap();
    assert_eq!(left(&waiting(&live, 2)), Some(60));
    live.ask(client.cancel(None));
    let status = live.settled();
    assert_eq!(
        (status.last_outcome, status.model_wait),
        (Some(Outcome::Cancelled), None)
    );
    assert_eq!(status.held.map(|hold| hold.cause), Some(HoldCause::Cancel));
    live.ask(client.send(new("two"))).unwrap();
    let status = live.settled();
    assert_eq!(
        (status.turns, status.last_outcome, sent(&live)),
        (2, Some(Outcome::Done), 3)
    );
    sound(
        &live.close().pod,
        "a turn that was cancelled while it waited for the model",
    );
}

#[test]
fn a_limit_of_the_input_ends_the_wait() {
    let mut pod = stays(9, 0);
    pod.limits.max_wall = Some(Duration::from_secs(60));
    let live = opened(pod);
    failing(&live, &["one"]);
    live.advance(Duration::from_secs(30));
    waiting(&live, 2);
    live.advance(Duration::from_secs(60));
    let status = live.settled();
    assert!(matches!(
        status.last_outcome,
        Some(Outcome::ModelFailed {
            kind: ErrorKind::Exhausted,
            ..
        })
    ));
    assert_eq!(
        (status.held.map(|hold| hold.cause), status.model_wait),
        (Some(HoldCause::Budget), None)
    );
    sound(&live.close().pod, "a wait that used up the time");
}

#[test]
fn a_kill_in_the_wait_loses_nothing() {
    for nth in 0..3 {
        let pod = stays(3, 2);
        pod.points.kill("model:waits", nth);
        let live = opened(pod);
        live.ask(live.client().pause(None)).unwrap();
        for text in ["one", "two"] {
            live.ask(live.client().send(new(text))).unwrap();
        }
        live.ask(live.client().resume(None)).unwrap();
        for (failed, pause) in [30, 60].into_iter().enumerate().take(nth) {
            waiting(&live, failed + 1);
            live.try_advance(Duration::from_secs(pause));
        }
        let pod = live.wait().pod;
        pod.revive();
        let live = opened(pod);
        let failures = 2 - nth;
        for (nth, pause) in [30, 60].into_iter().enumerate().take(failures) {
            waiting(&live, nth + 1);
            live.advance(Duration::from_secs(pause));
        }
        let status = live.settled();
        assert_eq!(
            (status.turns, status.last_outcome),
            (3, Some(Outcome::Done)),
            "{nth}"
        );
        let pod = live.close().pod;
        assert_eq!(pod.script.bodies().len(), 5, "{nth}");
        sound(&pod, "a kill in the wait");
    }
}

const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 40,
    per_turn: 9,
};

type Sink = Arc<Mutex<Option<FeatureNotifySink>>>;

/// A feature that leaves its sink here.
fn waker(sink: &Sink) -> Arc<dyn FeatureModule> {
    let builder = FeatureDescriptor::builder("builtin:clock".parse().unwrap()).version("1.0.0");
    let descriptor = builder
        .request(CapabilityRequest::required(NOTIFY, "to wake"))
        .build();
    let sink = Arc::clone(sink);
    testkit::feature(descriptor, move |ctx: &mut FeatureInstallContext<'_>| {
        *sink.lock().unwrap() = Some(ctx.notifications()?);
        Ok(())
    })
}

#[test]
fn a_notification_that_wakes_waits_too() {
    let sink = Sink::default();
    let mut pod = stays(1, 2);
    pod.features.push((waker(&sink), vec![NOTIFY]));
    let live = opened(pod);
    failing(&live, &["one"]);
    let sink = sink.lock().unwrap().clone().unwrap();
    live.ask(sink.wake_model("it is time")).unwrap();
    let status = live.ask(live.client().status()).unwrap();
    assert_eq!(
        (status.notices, status.turns, left(&status), sent(&live)),
        (1, 1, Some(30), 1)
    );
    live.advance(Duration::from_secs(30));
    let status = live.settled();
    assert_eq!(
        (status.notices, status.turns, status.last_outcome),
        (0, 2, Some(Outcome::Done))
    );
    sound(&live.close().pod, "a wake that waited");
}

#[test]
fn a_run_does_not_wait() {
    let mut pod = stays(3, 0);
    pod.mode = HostMode::Run;
    let live = LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.events));
    let client = live.client();
    let ends = live.ask(async {
        tokio::join!(
            client.submit("one"),
            client.submit("two"),
            client.submit("three")
        )
    });
    for end in <[_; 3]>::from(ends) {
        assert!(matches!(end.unwrap().outcome, Outcome::ModelFailed { .. }));
    }
    assert_eq!(live.close().pod.script.bodies().len(), 3);
}

// A quota that was used up at night, or a key that was withdrawn, ended the turn of every input that waited.
#[test]
fn a_model_that_refuses_the_pod_costs_one_turn() {
    for (kind, cause) in [
        (ErrorKind::Exhausted, HoldCause::Budget),
        (ErrorKind::Denied, HoldCause::Required),
    ] {
        let mut pod = pod(
            vec![
                fails(kind),
                ScriptedAnswer::text("here"),
                ScriptedAnswer::text("here"),
            ],
            Vec::new(),
        );
        pod.mode = HostMode::Stay { missing: None };
        let mut live = opened(pod);
        for text in ["0", "1", "2"] {
            live.ask(live.client().send(new(text))).unwrap();
        }
        let status = live.settled();
        let held = status.held.unwrap();
        assert_eq!(
            (
                status.turns,
                status.queued.len(),
                held.cause,
                held.reason.as_str()
            ),
            (1, 2, cause, REASON)
        );
        if kind == ErrorKind::Denied {
            let refused = live.ask(live.client().resume(None));
            assert!(
                matches!(refused, Err(SubmitError::Required(_))),
                "{refused:?}"
            );
            // The next start may have another key.
            live = opened(live.close().pod);
        } else {
            live.ask(live.client().resume(None)).unwrap();
        }
        let status = live.settled();
        assert_eq!(
            (status.turns, status.queued.len(), status.held),
            (3, 0, None),
            "{kind:?}"
        );
        sound(&live.close().pod, "a model that refused");
    }
}
