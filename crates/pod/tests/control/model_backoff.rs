//! A model that cannot be reached: a pod that stays does not end the turn of every waiting input one after the other.

use crate::fixtures::{live as opened, pod, sound};
use llm_worker::effect::Outcome;
use llm_worker::{ErrorKind, ModelError};
use pod::control::{Activity, HostMode, ModelWait, NewInput, PodStatus, SubmitError};
use pod::feature::*;
use pod::record::HoldCause;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{LivePod, PodUnderTest, ScriptedAnswer};

const REASON: &str = "connection refused";

fn unreached() -> ScriptedAnswer {
    fails(ErrorKind::Unavailable)
}

fn fails(kind: ErrorKind) -> ScriptedAnswer {
    ScriptedAnswer::new().fail(ModelError { kind, message: REASON.to_owned(), help: None })
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
    NewInput { text: text.to_owned(), ..NewInput::default() }
}

/// Hands in this many inputs at once, and waits until the turn of the first one has failed.
fn failed_once(live: &LivePod, inputs: usize) -> PodStatus {
    live.ask(async {
        let client = live.client();
        client.pause(None).await.unwrap();
        for input in 0..inputs {
            client.send(new(&format!("{input}"))).await.unwrap();
        }
        client.resume(None).await.unwrap();
    });
    live.until(|status| matches!(status.last_outcome, Some(Outcome::ModelFailed { .. })))
}

fn waits(seconds: u64) -> Option<ModelWait> {
    Some(ModelWait { reason: REASON.to_owned(), retry_in_s: seconds })
}

#[test]
fn one_turn_after_each_pause_until_the_model_answers() {
    let live = opened(stays(5, 2));
    let mut status = failed_once(&live, 7);
    for (turns, pause) in [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480)] {
        assert_eq!((status.turns, status.requests, &status.model_wait), (turns, turns, &waits(pause)));
        live.advance(Duration::from_secs(pause - 1));
        status = live.ask(live.client().status()).unwrap();
        assert_eq!((status.turns, status.queued.len() as u64, &status.model_wait), (turns, 7 - turns, &waits(1)));
        // It is the timer that begins the next turn, and no question.
        let mut folded = live.client().folded();
        folded.borrow_and_update();
        live.advance(Duration::from_secs(1));
        live.ask(folded.changed()).unwrap();
        status = live.until(|status| status.turns > turns && status.activity == Activity::Idle);
    }
    // The one that was answered ended the pauses.
    status = live.settled();
    assert_eq!((status.turns, status.requests, status.model_wait), (7, 7, None));
    let over = live.close();
    // The failed inputs are in the history of the request that was answered.
    assert_eq!(over.pod.script.requests()[5].items.len(), 7, "six inputs and the environment");
    sound(&over.pod, "a model that could not be reached");
}

#[test]
fn a_new_input_a_resume_and_a_restart_try_at_once() {
    let live = opened(stays(3, 3));
    assert_eq!(failed_once(&live, 4).requests, 1);
    live.ask(live.client().send(new("are you there?"))).unwrap();
    let status = live.until(|status| status.requests == 2 && status.model_wait.is_some());
    assert_eq!((status.queued.len(), status.model_wait), (3, waits(60)));
    live.ask(live.client().resume(None)).unwrap();
    let status = live.until(|status| status.requests == 3 && status.model_wait.is_some());
    assert_eq!((status.queued.len(), status.model_wait), (2, waits(120)));
    // Nothing is in the log about it.
    let again = opened(live.close().pod);
    let status = again.settled();
    assert_eq!((status.turns, status.requests, status.last_outcome), (5, 5, Some(Outcome::Done)));
    sound(&again.close().pod, "a restart");
}

const NOTIFY: HostCapability = HostCapability::EmitModelNotification { max_bytes: 40, per_turn: 9 };

type Sink = Arc<Mutex<Option<FeatureNotifySink>>>;

/// A feature that leaves its sink here.
fn waker(sink: &Sink) -> Arc<dyn FeatureModule> {
    let builder = FeatureDescriptor::builder("builtin:clock".parse().unwrap()).version("1.0.0");
    let descriptor = builder.request(CapabilityRequest::required(NOTIFY, "to wake")).build();
    let sink = Arc::clone(sink);
    testkit::feature(descriptor, move |ctx: &mut FeatureInstallContext<'_>| {
        *sink.lock().unwrap() = Some(ctx.notifications()?);
        Ok(())
    })
}

#[test]
fn a_notification_that_wakes_waits_too_and_without_anything_due_nothing_is_waited_for() {
    let sink = Sink::default();
    let mut pod = stays(1, 1);
    pod.features.push((waker(&sink), vec![NOTIFY]));
    let live = opened(pod);
    let status = failed_once(&live, 1);
    assert_eq!((status.turns, status.model_wait), (1, None));
    let sink = sink.lock().unwrap().clone().unwrap();
    live.ask(sink.wake_model("it is time")).unwrap();
    let status = live.ask(live.client().status()).unwrap();
    assert_eq!((status.notices, status.turns, status.model_wait), (1, 1, waits(30)));
    live.advance(Duration::from_secs(30));
    let status = live.settled();
    assert_eq!((status.notices, status.turns, status.last_outcome), (0, 2, Some(Outcome::Done)));
    sound(&live.close().pod, "a wake that waited");
}

#[test]
fn a_run_does_not_wait() {
    let mut pod = stays(3, 0);
    pod.mode = HostMode::Run;
    let live = LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.events));
    let client = live.client();
    let ends = live.ask(async { tokio::join!(client.submit("one"), client.submit("two"), client.submit("three")) });
    for end in <[_; 3]>::from(ends) {
        assert!(matches!(end.unwrap().outcome, Outcome::ModelFailed { .. }));
    }
    assert_eq!(live.close().pod.script.bodies().len(), 3);
}

// A quota that was used up at night, or a key that was withdrawn, ended the turn of every input that waited.
#[test]
fn a_model_that_refuses_the_pod_costs_one_turn() {
    for (kind, cause) in [(ErrorKind::Exhausted, HoldCause::Budget), (ErrorKind::Denied, HoldCause::Required)] {
        let mut pod = pod(vec![fails(kind), ScriptedAnswer::text("here"), ScriptedAnswer::text("here")], Vec::new());
        pod.mode = HostMode::Stay { missing: None };
        let mut live = opened(pod);
        failed_once(&live, 3);
        let status = live.settled();
        let held = status.held.unwrap();
        assert_eq!((status.turns, status.queued.len(), held.cause, held.reason.as_str()), (1, 2, cause, REASON));
        if kind == ErrorKind::Denied {
            let refused = live.ask(live.client().resume(None));
            assert!(matches!(refused, Err(SubmitError::Required(_))), "{refused:?}");
            // The next start may have another key.
            live = opened(live.close().pod);
        } else {
            live.ask(live.client().resume(None)).unwrap();
        }
        let status = live.settled();
        assert_eq!((status.turns, status.queued.len(), status.held), (3, 0, None), "{kind:?}");
        sound(&live.close().pod, "a model that refused");
    }
}
