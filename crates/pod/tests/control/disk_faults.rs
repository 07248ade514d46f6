//! The n-th operation of the disk fails, for every n of a run.

use crate::fixtures::{
    Changed, changer, echo, pod, printer, ran_once, said, sound, told_what_is_durable,
};
use llm_worker::ToolEffect;
use llm_worker::tool::{FileChange, Touch};
use pod::control::{Event, Fatal};
use pod::host::HostError;
use pod::record::Record;
use std::sync::Arc;
use testkit::{
    EIO, ENOSPC, FailingDisk, Fault, FnTool, ModelScript, PodRun, PodUnderTest, RunEnd,
    ScriptedAnswer, within,
};

/// More operations than the run here has.
const PLENTY: usize = 1000;

fn scene() -> (PodUnderTest, Vec<FnTool>, Changed) {
    let changed = Changed::default();
    let tools = vec![changer("Change", &changed), printer("Print", 4000)];
    let both = || ScriptedAnswer::calls(&[("Change", "{}"), ("Print", "{}")]);
    (
        pod(
            vec![both(), both(), ScriptedAnswer::text("done")],
            tools.clone(),
        ),
        tools,
        changed,
    )
}

fn first(fault: Fault, n: usize) -> (PodUnderTest, Vec<FnTool>, Changed, PodRun) {
    let (pod, tools, changed) = scene();
    pod.disk.fail_at(n, fault);
    let ran = pod.run("first");
    (pod, tools, changed, ran)
}

fn check(fault: Fault, n: usize) -> bool {
    let what = format!("{fault:?} at operation {n}");
    let (mut pod, tools, changed, ran) = within(&what.clone(), move || first(fault, n));
    let reached = pod.disk.operations() > n;
    match (&ran.how, fault) {
        (RunEnd::Ended(end), _) => assert!(end.answer.is_some(), "{what}: {end:?}"),
        (RunEnd::NotOpened(_), _) => assert!(ran.events.is_empty(), "{what}"),
        (
            RunEnd::Failed(HostError::Fatal(Fatal::Journal(_)) | HostError::Read(_)),
            Fault::Ever(_),
        ) => {}
        // One refusal is got over by the one retry.
        (RunEnd::Failed(_) | RunEnd::Killed, _) => panic!("{what}: {:?}", ran.how),
    }
    pod.revive();
    pod.script = ModelScript::new([ScriptedAnswer::text("went on")]);
    let again = pod.run("again");
    assert_eq!(again.end().answer.as_deref(), Some("went on"), "{what}");
    let log = pod.records();
    if !matches!(ran.how, RunEnd::NotOpened(_)) {
        told_what_is_durable(&ran, &log, 0, &what);
    }
    ran_once(&tools, &what);
    for path in changed.lock().unwrap().iter() {
        let recorded = |(_, record): &(u64, Record)| matches!(record, Record::FileChanged(f) if f.path == *path);
        assert!(
            log.iter().any(recorded),
            "{what}: {path} was changed and no record says so"
        );
    }
    sound(&pod, &what);
    reached
}

fn sweep(fault: Fault) {
    for n in 0.. {
        assert!(n < PLENTY);
        if !check(fault, n) {
            assert!(n > 60, "{n} operations");
            break;
        }
    }
}

#[test]
fn a_disk_that_fails_once_costs_one_retry() {
    sweep(Fault::Once(EIO));
}

#[test]
fn a_disk_that_is_full_once_costs_one_retry() {
    sweep(Fault::Short(ENOSPC));
}

#[test]
fn a_failed_disk_ends_the_run_and_keeps_what_was_reported() {
    sweep(Fault::Ever(EIO));
}

#[test]
fn a_full_disk_ends_the_run_and_keeps_what_was_reported() {
    sweep(Fault::Ever(ENOSPC));
}

/// The watcher hears of the refusal before the run goes on, and the log says that it went on.
#[test]
fn a_refusal_is_told_at_once_and_logged_when_it_is_over() {
    let gate = testkit::Latch::new("asked");
    let disk = gate.clone();
    let told = gate.clone();
    let pod = pod(
        vec![
            ScriptedAnswer::text("half").wait_at(&gate),
            ScriptedAnswer::text("done"),
        ],
        Vec::new(),
    );
    let failing: FailingDisk = pod.disk.clone();
    // Between the request's record and the answer's.
    pod.points.at("request", 0, move || {
        failing.fail_at(0, Fault::Once(EIO));
        disk.open();
    });
    let ran = pod.run("first");
    assert_eq!(told.came(), 1);
    assert_eq!(ran.end().answer.as_deref(), Some("half"));
    let at = |wanted: fn(&Event) -> bool| ran.events.iter().position(wanted);
    let suspended = at(|event| matches!(event, Event::Suspended { .. })).unwrap();
    let finished = at(
        |e| matches!(e, Event::Record { record, .. } if matches!(**record, Record::TurnFinished(_))),
    );
    let resumed =
        at(|e| matches!(e, Event::Record { record, .. } if matches!(**record, Record::Resumed(_))));
    assert!(
        suspended < finished.unwrap() && finished < resumed,
        "{:?}",
        ran.events
    );
    told_what_is_durable(&ran, &pod.records(), 0, "resumed");
}

/// When the run is given up, a call that asks for leave to change a file is refused at once, not after its grace.
#[test]
fn nobody_gets_leave_from_a_pod_that_gives_up() {
    let changed = Changed::default();
    let seen = Arc::clone(&changed);
    // It asks when it is told to end, which is when nobody answers any more.
    let slow = FnTool::new("Slow", ToolEffect::Effectful, move |cx, _| {
        let seen = Arc::clone(&seen);
        async move {
            cx.cancel.cancelled().await;
            let after = Some("00".repeat(32));
            cx.host
                .file_changing(FileChange {
                    path: "/p/a".into(),
                    before: None,
                    mode: None,
                    after,
                    made: None,
                })
                .await?;
            seen.lock().unwrap().push("/p/a".to_owned());
            said("changed")
        }
    })
    .touching(vec![Touch::Write("a".into())]);
    let quick = echo("Quick", ToolEffect::ReadOnly);
    let mut pod = pod(
        vec![ScriptedAnswer::calls(&[("Slow", "{}"), ("Quick", "{}")])],
        vec![slow, quick],
    );
    // A call that runs would hold the retry for ever.
    pod.paused = false;
    let disk = pod.disk.clone();
    pod.points
        .at("tool:ended", 0, move || disk.fail_at(0, Fault::Ever(EIO)));
    let began = std::time::Instant::now();
    let ran = within("given up", move || (pod.run("first"), pod)).0;
    assert!(
        matches!(ran.how, RunEnd::Failed(HostError::Fatal(Fatal::Journal(_)))),
        "{:?}",
        ran.how
    );
    assert!(changed.lock().unwrap().is_empty());
    assert!(
        began.elapsed() < pod::foreign::GRACE,
        "it waited out the grace"
    );
}

/// A commit whose writer is gone is never answered again: the run ends, it does not wait.
#[test]
fn a_journal_that_dies_ends_the_run() {
    let (reference, _, _) = scene();
    reference.run("first").end();
    let written = reference
        .points
        .came()
        .iter()
        .filter(|name| *name == "journal:written")
        .count();
    assert!(written > 5);
    for nth in 0..written {
        let what = format!("dead at write {nth}");
        let (mut pod, tools, _) = scene();
        pod.points.at("journal:written", nth, || {
            std::panic::resume_unwind(Box::new("the writer dies"))
        });
        let (ran, again) = within(&what.clone(), move || {
            let ran = pod.run("first");
            pod.revive();
            pod.script = ModelScript::new([ScriptedAnswer::text("went on")]);
            (ran, pod)
        });
        // How commits are grouped is a matter of time: that write may not have come.
        let ended = matches!(ran.how, RunEnd::Ended(_)) && nth > 5;
        assert!(
            ended || matches!(ran.how, RunEnd::Failed(HostError::Fatal(Fatal::Journal(_)))),
            "{what}: {:?}",
            ran.how
        );
        again.run("again").end();
        ran_once(&tools, &what);
        sound(&again, &what);
    }
}
