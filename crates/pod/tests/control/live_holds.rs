//! What holds a pod that stays, and what lets it go on.

use crate::fixtures::{echo, live, pod, sound};
use llm_worker::effect::Outcome;
use llm_worker::{StopReason, ToolEffect};
use pod::control::{Activity, Fatal, HostMode, NewInput, PodStatus, SubmitError};
use pod::feature::*;
use pod::hook::{PreRequest, RequestView, Verdict};
use pod::record::Record;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use testkit::{
    ENOSPC, Fault, Latch, LiveEnd, LivePod, Over, PATIENCE, PodUnderTest, ScriptedAnswer,
};

fn stays(answers: Vec<ScriptedAnswer>) -> PodUnderTest {
    let mut pod = pod(answers, vec![echo("Echo", ToolEffect::Effectful)]);
    pod.mode = HostMode::Stay { missing: None };
    pod
}

fn new(text: &str) -> NewInput {
    NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    }
}

fn send(live: &LivePod, text: &str) -> u64 {
    live.ask(live.client().send(new(text))).unwrap().input
}

fn status(live: &LivePod) -> PodStatus {
    live.ask(live.client().status()).unwrap()
}

/// Waits for something that no record tells.
pub(crate) fn spin(live: &LivePod, wanted: impl Fn(&PodStatus) -> bool) {
    let began = Instant::now();
    while !wanted(&status(live)) {
        assert!(began.elapsed() < PATIENCE, "{:?}", status(live));
        std::thread::yield_now();
    }
}

/// While gates run nothing of the turn is in the log. The hold does not wait for them; they are asked again later.
#[test]
fn a_pause_while_gates_run_makes_the_turn_wait_and_asks_them_again() {
    const KEY: HookKey<PreRequest> = HookKey::new("slow");
    let gate = Latch::new("the gate");
    let asked = Arc::new(AtomicUsize::new(0));
    let passed = gate.clone();
    let counted = Arc::clone(&asked);
    let slow = Arc::new(move |_: &RequestView| {
        counted.fetch_add(1, Ordering::SeqCst);
        passed.pass_blocking();
        Verdict::allow()
    });
    let descriptor = FeatureDescriptor::builder("builtin:slow".parse().unwrap())
        .version("1.0.0")
        .gate(&KEY)
        .build();
    let id = descriptor.id.clone();
    let install = move |ctx: &mut FeatureInstallContext<'_>| {
        let hook: Arc<dyn pod::hook::Hook<PreRequest>> = slow.clone();
        ctx.hooks()
            .register(HookContribution::new(id.clone(), &KEY, hook))
            .map(drop)
    };
    let mut pod = stays(vec![ScriptedAnswer::text("done")]);
    pod.features = vec![(
        testkit::feature(descriptor, install),
        vec![HostCapability::hook::<PreRequest>()],
    )];
    let live = live(pod);
    send(&live, "one");
    gate.wait_for(1);
    live.ask(live.client().pause(None)).unwrap();
    let held = live.until(|status| matches!(status.activity, Activity::Paused { turn: 1 }));
    assert_eq!(
        (held.requests, held.queued.len()),
        (0, 0),
        "the input is in the log, and nothing was sent"
    );
    gate.open();
    live.ask(live.client().resume(None)).unwrap();
    let status = live.settled();
    assert_eq!(
        (status.requests, status.last_outcome),
        (1, Some(Outcome::Done))
    );
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    sound(&live.close().pod, "a pause while gates run");
}

#[test]
fn results_are_in_the_log_while_the_turn_waits_and_a_cancel_ends_it() {
    let calls = Latch::new("the calls");
    let asks = ScriptedAnswer::new()
        .wait_at(&calls)
        .call(0, "Echo", "{}")
        .stop(StopReason::ToolUse);
    let live = live(stays(vec![asks]));
    send(&live, "one");
    live.until(|status| status.requests == 1);
    live.ask(live.client().pause(None)).unwrap();
    calls.open();
    live.until(|status| matches!(status.activity, Activity::Paused { turn: 1 }));
    let last = live.pod.records().pop().unwrap().1;
    assert!(matches!(last, Record::ToolFinished(_)), "{last:?}");
    live.ask(live.client().cancel(None));
    let status = live.until(|status| status.activity == Activity::Idle);
    assert_eq!(status.last_outcome, Some(Outcome::Cancelled));
    assert!(status.held.is_some(), "a person paused it");
    sound(&live.close().pod, "a cancel while paused");
}

#[test]
fn a_client_may_pause_a_pod_that_has_just_begun() {
    let pod = stays(Vec::new());
    let start = pod.points.hold("journal:encoded", 0);
    let live = LivePod::open(pod).unwrap_or_else(|_| panic!("not opened"));
    start.wait_for(1);
    let client = live.client();
    let late = start.clone();
    live.ask(async {
        let opens = async {
            // The pod has read what came before this question.
            assert!(client.status().await.unwrap().held.is_none());
            late.open();
        };
        tokio::join!(client.pause(None), opens).0
    })
    .unwrap();
    assert!(status(&live).held.is_some());
    assert!(live.close().state().held.is_some());
}

#[test]
fn a_disk_that_is_full_for_five_minutes_makes_the_turn_wait() {
    let answer = Latch::new("the answer");
    let answers = vec![
        ScriptedAnswer::new()
            .wait_at(&answer)
            .say("one")
            .stop(StopReason::EndTurn),
        ScriptedAnswer::text("two"),
    ];
    let live = live(stays(answers));
    send(&live, "one");
    live.until(|status| status.requests == 1);
    live.pod.disk.fail_at(0, Fault::Ever(ENOSPC));
    answer.open();
    spin(&live, |status| status.disk.is_some());
    for _ in 0..10 {
        live.advance(Duration::from_secs(30));
        let refused = live.ask(live.client().send(new("two")));
        assert!(matches!(refused, Err(SubmitError::Disk(_))), "{refused:?}");
    }
    assert!(matches!(
        status(&live).activity,
        Activity::Working { turn: 1, .. }
    ));
    live.pod.disk.repair();
    live.advance(Duration::from_secs(30));
    live.until(|status| status.last_outcome == Some(Outcome::Done));
    send(&live, "two");
    let status = live.settled();
    assert_eq!((status.turns, status.disk), (2, None));
    let over = live.close();
    assert_eq!((over.state(), over.state().inputs), (&over.pod.state(), 2));
    let told = over
        .pod
        .records()
        .iter()
        .any(|(_, record)| matches!(record, Record::Resumed(_)));
    assert!(told, "readers of the log learn that it was full");
    sound(&over.pod, "a full disk");
}

fn ended_by_the_disk(over: &Over) -> bool {
    matches!(&over.end, LiveEnd::Ended(end) if matches!(end.result, Err(Fatal::Journal(_))))
}

/// Its starter waits for it and can tell a person why; a pod that waits for the disk cannot.
#[test]
fn a_start_that_the_disk_refuses_ends_soon() {
    for crashed in [false, true] {
        let mut pod = stays(vec![]);
        if crashed {
            // The next start finds a log without an end.
            pod.points.kill("host_started", 0);
            pod = LivePod::open(pod)
                .map_or_else(|over| *over, LivePod::wait)
                .pod;
            pod.revive();
        }
        let disk = pod.disk.clone();
        pod.points.at("commit:host_started", 0, move || {
            disk.fail_at(0, Fault::Ever(ENOSPC))
        });
        let over = match LivePod::open(pod) {
            Ok(live) => {
                spin(&live, |status| status.disk.is_some());
                live.advance(Duration::from_secs(2));
                live.wait()
            }
            Err(over) => *over,
        };
        assert!(ended_by_the_disk(&over), "{crashed}");
    }
}

/// A person waits for it. What waited for the disk is tried again at once.
#[test]
fn a_pod_that_is_asked_to_end_does_not_wait_for_the_disk() {
    for idle in [false, true] {
        let answer = Latch::new("the answer");
        let live = live(stays(vec![
            ScriptedAnswer::new()
                .wait_at(&answer)
                .say("one")
                .stop(StopReason::EndTurn),
        ]));
        if !idle {
            send(&live, "one");
            live.until(|status| status.requests == 1);
        }
        live.pod.disk.fail_at(0, Fault::Ever(ENOSPC));
        answer.open();
        if !idle {
            spin(&live, |status| status.disk.is_some());
            // Now the next attempt is half a minute away.
            (0..6).for_each(|_| live.advance(Duration::from_secs(30)));
        }
        live.ask(live.client().leave("stopped by the test"));
        if idle {
            spin(&live, |status| status.disk.is_some());
            live.advance(Duration::from_secs(2));
        }
        assert!(ended_by_the_disk(&live.wait()), "{idle}");
    }
}

/// The journal has room in reserve for it.
#[test]
fn an_end_that_the_disk_refused_once_is_recorded() {
    let live = live(stays(vec![]));
    live.pod.disk.fail_at(0, Fault::Once(ENOSPC));
    live.ask(live.client().close("closed by the test"));
    spin(&live, |status| status.disk.is_some());
    live.advance(Duration::from_secs(2));
    let over = live.wait();
    assert!(!over.state().hosted);
    assert!(matches!(
        over.pod.records().last(),
        Some((_, Record::HostStopped(_)))
    ));
}

/// Else the next turn takes the same input, and the one after it.
#[test]
fn a_turn_whose_beginning_cannot_be_stored_holds_the_queue() {
    let pod = stays(vec![ScriptedAnswer::text("fine")]);
    // As JSON it is over one mebibyte, the bound of a record.
    *pod.environment.lock().unwrap() = "\u{1}".repeat(200_000);
    let live = live(pod);
    send(&live, "one");
    let status = live.settled();
    assert!(
        matches!(status.last_outcome, Some(Outcome::Aborted { .. })),
        "{status:?}"
    );
    assert_eq!(
        (status.turns, status.queued.len(), status.held.is_some()),
        (1, 1, true)
    );
    "here".clone_into(&mut live.pod.environment.lock().unwrap());
    live.ask(live.client().resume(None)).unwrap();
    let status = live.settled();
    assert_eq!(
        (status.turns, status.queued.len(), status.last_outcome),
        (2, 0, Some(Outcome::Done))
    );
    sound(&live.close().pod, "a turn that could not begin");
}
