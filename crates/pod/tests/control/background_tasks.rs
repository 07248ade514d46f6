//! Background tasks of a pod that stays: when they run, what the journal says of each run, and what a run that misbehaves
//! costs.

use crate::fixtures::{live, pod, sound};
use llm_worker::ToolEffect;
use pod::control::{Activity, HostMode, NewInput};
use pod::feature::*;
use pod::record::{BackgroundTask, Record, TaskRunState};
use protocol::method::StopRun;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use testkit::{
    ENOSPC, Fault, Latch, LiveEnd, LivePod, ModelScript, Over, PATIENCE, PodUnderTest,
    ScriptedAnswer,
};

const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 40,
    per_turn: 9,
};
const HOUR: Duration = Duration::from_secs(60 * 60);

const HOURLY: TaskKey = TaskKey::new("hourly", ToolEffect::Effectful).every(HOUR);
const ASKED: TaskKey = TaskKey::new("asked", ToolEffect::Effectful).on_request();
const LOOKS: TaskKey = TaskKey::new("looks", ToolEffect::ReadOnly).every(HOUR);

type Began = Vec<(u64, u32)>;
type Work = Pin<Box<dyn Future<Output = TaskResult> + Send>>;
type Body = Arc<dyn Fn(BackgroundTaskContext, FeatureNotifySink) -> Work + Send + Sync>;

/// A feature with one task.
#[derive(Clone)]
struct Worker {
    name: &'static str,
    key: TaskKey,
    body: Body,
    /// The run numbers and attempts that began.
    began: Arc<(Mutex<Began>, Condvar)>,
    handle: Arc<Mutex<Option<TaskHandle>>>,
}

struct Live(Worker, FeatureNotifySink);

impl Live {
    async fn work(self: Arc<Self>, cx: BackgroundTaskContext) -> TaskResult {
        self.0.began.0.lock().unwrap().push((cx.run, cx.attempt));
        self.0.began.1.notify_all();
        (self.0.body)(cx, self.1.clone()).await
    }
}

impl FeatureModule for Worker {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(FeatureId::builtin(self.name)).version("1.0.0");
        builder
            .request(CapabilityRequest::required(NOTIFY, "to wake"))
            .background_task(&self.key)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live(self.clone(), ctx.notifications()?));
        ctx.background_tasks().run(&self.key, &live, Live::work)?;
        if self.key.name() == "asked" {
            *self.handle.lock().unwrap() = Some(ctx.background_tasks().handle(&self.key)?);
        }
        Ok(())
    }
}

impl Worker {
    fn new(
        name: &'static str,
        key: TaskKey,
        body: impl Fn(BackgroundTaskContext, FeatureNotifySink) -> Work + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            key,
            body: Arc::new(body),
            began: Arc::default(),
            handle: Arc::default(),
        }
    }

    fn quick(key: TaskKey) -> Self {
        Self::new("worker", key, |_, _| Box::pin(async { Ok(()) }))
    }

    /// Each run wakes the model.
    fn waking(key: TaskKey) -> Self {
        Self::new("worker", key, |cx, sink| {
            Box::pin(async move {
                sink.wake_model(format!("run {}", cx.run)).await?;
                Ok(())
            })
        })
    }

    fn began(&self) -> Began {
        self.began.0.lock().unwrap().clone()
    }

    /// Waits until this many runs have begun.
    fn begins(&self, runs: usize) {
        let (began, changed) = &*self.began;
        let waited = changed
            .wait_timeout_while(began.lock().unwrap(), PATIENCE, |began| began.len() < runs)
            .unwrap();
        assert!(!waited.1.timed_out(), "{} of {runs} runs", waited.0.len());
    }
}

fn stays(workers: &[Worker], answers: usize) -> PodUnderTest {
    let mut pod = pod(
        (0..answers)
            .map(|n| ScriptedAnswer::text(&format!("answer {n}")))
            .collect(),
        Vec::new(),
    );
    pod.mode = HostMode::Stay { missing: None };
    pod.features = workers
        .iter()
        .map(|worker| {
            let grants = vec![
                NOTIFY,
                HostCapability::ContributeBackgroundTask { name: "*".into() },
            ];
            (Arc::new(worker.clone()) as Arc<dyn FeatureModule>, grants)
        })
        .collect();
    pod
}

/// Waits until this many runs have ended, by the log.
fn ended(live: &LivePod, runs: usize) {
    live.until(|status| {
        let ended = |(_, record): &(u64, Record)| matches!(record, Record::BackgroundTask(run) if run.state != TaskRunState::Running);
        live.pod.records().iter().filter(|(seq, _)| *seq <= status.folded).filter(|record| ended(record)).count() >= runs
    });
}

fn runs(pod: &PodUnderTest) -> Vec<BackgroundTask> {
    let run = |(_, record)| match record {
        Record::BackgroundTask(run) => Some(run),
        _ => None,
    };
    pod.records().into_iter().filter_map(run).collect()
}

fn states(pod: &PodUnderTest) -> Vec<(u64, TaskRunState)> {
    runs(pod)
        .into_iter()
        .map(|run| (run.run, run.state))
        .collect()
}

fn input(text: &str) -> NewInput {
    NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    }
}

#[test]
fn an_effectful_run_is_in_the_log_before_it_begins_and_another_once_it_ended() {
    use TaskRunState::{Completed, Running};
    for (key, expected) in [
        (
            HOURLY,
            vec![(1, Running), (1, Completed), (2, Running), (2, Completed)],
        ),
        (LOOKS, vec![(1, Completed), (2, Completed)]),
    ] {
        let dir = Arc::new(Mutex::new(None::<std::path::PathBuf>));
        let place = Arc::clone(&dir);
        let worker = Worker::new("worker", key, move |cx, _| {
            let place = Arc::clone(&place);
            Box::pin(async move {
                let dir = place.lock().unwrap().clone().unwrap();
                let frames = session_store::Reader::open(&dir)
                    .unwrap()
                    .frames()
                    .map(|frame| frame.unwrap());
                let began = frames
                    .filter(|frame| frame.kind == "background_task")
                    .count();
                assert!(
                    key.name() == "looks" || began as u64 == cx.run * 2 - 1,
                    "{began} before {}",
                    cx.run
                );
                Ok(())
            })
        });
        let pod = stays(std::slice::from_ref(&worker), 0);
        *dir.lock().unwrap() = Some(pod.dir.clone());
        let live = live(pod);
        assert_eq!(worker.began(), [], "an interval begins with a pause");
        for run in 1..=2 {
            live.advance(HOUR);
            ended(&live, run);
        }
        let over = live.close();
        assert_eq!(states(&over.pod), expected, "{}", key.name());
        assert_eq!(worker.began(), [(1, 1), (2, 1)]);
        sound(&over.pod, "background tasks");
    }
}

#[test]
fn run_due_returns_when_all_that_was_due_has_ended() {
    let rare = TaskKey::new("rare", ToolEffect::Effectful).every(HOUR * 2);
    let hourly = Worker::quick(LOOKS);
    let rare = Worker::new("rare", rare, |_, _| Box::pin(async { Ok(()) }));
    let live = live(stays(&[hourly.clone(), rare.clone()], 0));
    let ends = || {
        assert!(live.run_due().tasks.iter().all(|task| task.run.is_none()));
        states(&live.pod)
            .iter()
            .filter(|(_, state)| *state == TaskRunState::Completed)
            .count()
    };
    assert_eq!(ends(), 0);
    live.advance(HOUR);
    assert_eq!((ends(), ends()), (1, 1));
    live.advance(HOUR);
    assert_eq!(ends(), 3);
    assert_eq!((hourly.began().len(), rare.began().len()), (2, 1));
    sound(&live.close().pod, "what was due");
}

#[test]
fn a_run_that_was_missed_while_the_pod_was_down_runs_once() {
    let worker = Worker::quick(HOURLY);
    let first = live(stays(std::slice::from_ref(&worker), 0));
    first.advance(HOUR);
    first.run_due();
    let pod = first.close().pod;
    pod.clock.advance(10 * 3_600_000_000 + 60_000_000);
    let again = live(pod);
    again.run_due();
    // The next one is due an hour after the newest that was missed.
    again.advance(Duration::from_secs(58 * 60));
    assert_eq!(worker.began().len(), 2);
    again.advance(Duration::from_secs(2 * 60));
    again.run_due();
    assert_eq!(worker.began(), [(1, 1), (2, 1), (3, 1)]);
    sound(&again.close().pod, "a missed run");
}

#[test]
fn a_feature_runs_its_task_now_and_at_a_time() {
    let worker = Worker::quick(ASKED);
    let live = live(stays(std::slice::from_ref(&worker), 0));
    let handle = worker.handle.lock().unwrap().clone().unwrap();
    handle.run_now().unwrap();
    live.run_due();
    let at = |after: u64| {
        std::time::UNIX_EPOCH
            + Duration::from_micros(live.pod.clock.now())
            + Duration::from_secs(after)
    };
    handle.run_at(at(100)).unwrap();
    handle.run_at(at(50)).unwrap();
    live.run_due();
    live.advance(Duration::from_secs(49));
    assert_eq!(worker.began().len(), 1);
    live.advance(Duration::from_secs(1));
    live.run_due();
    handle.run_at(at(50)).unwrap();
    handle.clear().unwrap();
    live.ask(live.client().status());
    live.advance(HOUR);
    let over = live.close();
    assert_eq!(worker.began(), [(1, 1), (2, 1)]);
    sound(&over.pod, "requested runs");
}

#[test]
fn a_run_wakes_the_pod_once() {
    let worker = Worker::waking(HOURLY);
    let live = live(stays(std::slice::from_ref(&worker), 2));
    for turn in 1..=2 {
        live.advance(HOUR);
        live.until(|status| status.turns == turn && status.activity == Activity::Idle);
    }
    live.run_due();
    let over = live.close();
    assert_eq!((over.state().turns, over.state().notices.len()), (2, 0));
    sound(&over.pod, "woken by a task");
}

/// What a run does wrong ends that run, says so, and costs no turn.
#[test]
fn a_run_that_misbehaves_costs_only_itself() {
    use TaskRunState::{Failed, TimedOut};
    let gate = Latch::new("blocked");
    let held = gate.clone();
    const SHORT: Duration = Duration::from_millis(300);
    let cases: Vec<(&str, Worker, TaskRunState, &str)> = vec![
        (
            "fails",
            Worker::new("a", HOURLY, |_, _| {
                Box::pin(async { Err(TaskError::new("no luck\u{1b}[2J")) })
            }),
            Failed,
            "no luck",
        ),
        (
            "panics",
            Worker::new("b", HOURLY, |_, _| Box::pin(async { panic!("on purpose") })),
            Failed,
            "it panicked: on purpose",
        ),
        (
            "waits for ever",
            Worker::new("c", HOURLY.deadline(SHORT), |_, _| {
                Box::pin(std::future::pending())
            }),
            TimedOut,
            "did not stop",
        ),
        (
            "heeds its deadline",
            Worker::new("d", HOURLY.deadline(SHORT), |cx, _| {
                Box::pin(async move {
                    cx.cancel.cancelled().await;
                    Err(TaskError::new("too slow"))
                })
            }),
            TimedOut,
            "too slow",
        ),
        (
            "holds its thread",
            Worker::new("e", HOURLY.deadline(SHORT), move |_, _| {
                let held = held.clone();
                Box::pin(async move {
                    held.pass_blocking();
                    Ok(())
                })
            }),
            TimedOut,
            "did not stop",
        ),
    ];
    for (what, worker, state, words) in cases {
        let mut pod = stays(std::slice::from_ref(&worker), 1);
        // Simulated time does not wait for the thread of a run that heeds its deadline.
        pod.grace = if words == "did not stop" { SHORT } else { HOUR };
        let live = live(pod);
        live.advance(HOUR);
        worker.begins(1);
        // Deadline and both graces.
        for _ in 0..9 {
            live.advance(SHORT);
        }
        ended(&live, 1);
        let end = live.ask(async {
            live.client()
                .send(input("go on"))
                .await
                .unwrap()
                .end()
                .await
                .unwrap()
        });
        assert_eq!(end.answer.as_deref(), Some("answer 0"), "{what}");
        // Code that did not return is not called again.
        live.advance(HOUR);
        if words == "did not stop" {
            live.ask(live.client().status());
            assert_eq!(worker.began().len(), 1, "{what}");
        } else {
            worker.begins(2);
        }
        let over = live.close();
        let last = runs(&over.pod)
            .into_iter()
            .rfind(|run| run.run == 1)
            .unwrap();
        assert_eq!(last.state, state, "{what}: {last:?}");
        let reason = last.reason.unwrap();
        assert!(
            reason.contains(words) && !reason.contains('\u{1b}'),
            "{what}: {reason}"
        );
        sound(&over.pod, what);
    }
    gate.open();
}

#[test]
fn a_status_has_every_task_with_its_runs() {
    let gate = Latch::new("running");
    let held = gate.clone();
    let slow = Worker::new("slow", LOOKS, move |_, _| {
        let held = held.clone();
        Box::pin(async move {
            held.pass().await;
            Ok(())
        })
    });
    let once = Restart::OnFailure {
        max: 1,
        within: HOUR,
        backoff: Duration::from_secs(1),
    };
    let fails = |_, _| -> Work { Box::pin(async { Err(TaskError::new("no luck")) }) };
    let failing = Worker::new("failing", HOURLY.restart(once), fails);
    let live = live(stays(
        &[slow.clone(), failing.clone(), Worker::quick(LOOKS)],
        0,
    ));
    let start_ms = live.pod.clock.now() / 1000;
    let hour_ms = 3_600_000;
    let tasks = |live: &LivePod| {
        let all = live.ask(live.client().status()).unwrap().tasks;
        all.into_iter()
            .map(|task| (task.feature.clone(), task))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let idle = tasks(&live);
    assert_eq!(idle.len(), 3);
    assert!(
        idle.values()
            .all(|task| task.next_due_ms == Some(start_ms + hour_ms) && task.last.is_none()),
        "{idle:?}"
    );
    live.advance(HOUR);
    gate.wait_for(1);
    failing.begins(1);
    ended(&live, 2);
    live.advance(Duration::from_secs(2));
    failing.begins(2);
    ended(&live, 3);
    let seen = tasks(&live);
    let [failing, slow, quick] =
        ["builtin:failing", "builtin:slow", "builtin:worker"].map(|name| &seen[name]);
    // A run without effects has no record before it ends.
    let open = slow.run.as_ref().unwrap();
    assert_eq!(
        (open.due_ms, open.since_ms, open.trigger.as_str()),
        (start_ms + hour_ms, start_ms + hour_ms, "interval")
    );
    assert_eq!(
        (failing.off.as_deref(), failing.next_due_ms),
        (Some("failed 2 times within 1h"), None)
    );
    let last = failing.last.as_ref().unwrap();
    assert_eq!(
        (last.state.as_str(), last.attempt, last.reason.as_deref()),
        ("failed", 2, Some("no luck"))
    );
    assert_eq!(failing.failures_ms.len(), 2);
    assert_eq!(
        (quick.off.as_ref(), quick.next_due_ms),
        (None, Some(start_ms + 2 * hour_ms))
    );
    assert_eq!(
        quick.last.as_ref().map(|last| last.state.as_str()),
        Some("completed")
    );
    gate.open();
    ended(&live, 4);
    sound(&live.close().pod, "a status");
}

#[test]
fn the_end_of_an_effectful_run_waits_for_the_disk() {
    let worker = Worker::quick(HOURLY);
    let live = live(stays(std::slice::from_ref(&worker), 0));
    let disk = live.pod.disk.clone();
    live.pod.points.at("task:ended", 0, move || {
        disk.fail_at(0, Fault::Ever(ENOSPC))
    });
    live.advance(HOUR);
    worker.begins(1);
    refused(&live);
    assert_eq!(states(&live.pod), [(1, TaskRunState::Running)]);
    live.pod.disk.repair();
    live.advance(Duration::from_secs(30));
    ended(&live, 1);
    live.advance(HOUR);
    ended(&live, 2);
    sound(&live.close().pod, "a full disk");
}

fn asked(worker: &Worker) {
    worker
        .handle
        .lock()
        .unwrap()
        .clone()
        .unwrap()
        .run_now()
        .unwrap();
}

fn refused(live: &LivePod) {
    while live.ask(live.client().status()).unwrap().disk.is_none() {
        std::thread::yield_now();
    }
}

// A start that the disk refused was kept for a retry, and the next durable start began its run instead. The log, which then
// had the later run first, could not be folded.
#[test]
fn a_refused_start_is_not_overtaken() {
    let [one, two] =
        ["one", "two"].map(|name| Worker::new(name, ASKED, |_, _| Box::pin(async { Ok(()) })));
    let live = live(stays(&[one.clone(), two.clone()], 0));
    live.pod.disk.fail_at(0, Fault::Ever(ENOSPC));
    asked(&one);
    refused(&live);
    live.pod.disk.repair();
    asked(&two);
    ended(&live, 1);
    assert_eq!((one.began(), two.began()), (vec![], vec![(2, 1)]));
    live.advance(Duration::from_secs(60));
    ended(&live, 2);
    assert_eq!(one.began(), [(3, 1)]);
    let over = live.close();
    let running = TaskRunState::Running;
    let completed = TaskRunState::Completed;
    assert_eq!(
        states(&over.pod),
        [(2, running), (2, completed), (3, running), (3, completed)]
    );
    sound(&over.pod, "a refused start");
}

// The end of a run waited for its retry, while the start of the next run of that task was written.
#[test]
fn a_refused_end_is_not_overtaken() {
    let worker = Worker::quick(ASKED);
    let live = live(stays(std::slice::from_ref(&worker), 0));
    let disk = live.pod.disk.clone();
    live.pod.points.at("task:ended", 0, move || {
        disk.fail_at(0, Fault::Ever(ENOSPC))
    });
    asked(&worker);
    worker.begins(1);
    refused(&live);
    live.pod.disk.repair();
    asked(&worker);
    ended(&live, 2);
    let over = live.close();
    let running = TaskRunState::Running;
    let completed = TaskRunState::Completed;
    assert_eq!(
        states(&over.pod),
        [(1, running), (1, completed), (2, running), (2, completed)]
    );
    sound(&over.pod, "a refused end");
}

#[test]
fn a_pod_that_ends_cancels_its_runs_and_says_so() {
    let worker = Worker::new("worker", HOURLY, |cx, _| {
        Box::pin(async move {
            cx.cancel.cancelled().await;
            Err(TaskError::new("cancelled"))
        })
    });
    let live = live(stays(std::slice::from_ref(&worker), 0));
    live.advance(HOUR);
    live.until(|status| live.folded(status.folded).open_tasks().count() == 1);
    let over = live.close();
    assert_eq!(
        states(&over.pod),
        [(1, TaskRunState::Running), (1, TaskRunState::Cancelled)]
    );
    let log = over.pod.records();
    assert!(
        matches!(log.last(), Some((_, Record::HostStopped(_)))),
        "{:?}",
        log.last()
    );
    sound(&over.pod, "a stop");
}

/// The task itself goes on: it is due again an hour later.
#[test]
fn a_client_stops_a_run_and_the_task_goes_on() {
    let worker = Worker::new("worker", HOURLY, |cx, _| {
        Box::pin(async move {
            cx.cancel.cancelled().await;
            Err(TaskError::new("cancelled"))
        })
    });
    let live = live(stays(std::slice::from_ref(&worker), 0));
    live.advance(HOUR);
    worker.begins(1);
    live.until(|status| live.folded(status.folded).open_tasks().count() == 1);
    live.ask(live.client().tell(
        StopRun {
            run: 1,
            ..StopRun::default()
        },
        None,
    ))
    .unwrap();
    live.until(|status| {
        status
            .tasks
            .iter()
            .all(|task| task.run.is_none() && task.off.is_none())
    });
    live.advance(HOUR);
    worker.begins(2);
    let over = live.close();
    let running = TaskRunState::Running;
    let cancelled = TaskRunState::Cancelled;
    assert_eq!(
        states(&over.pod),
        [(1, running), (1, cancelled), (2, running), (2, cancelled)]
    );
    let reasons = over
        .pod
        .records()
        .into_iter()
        .filter_map(|(_, record)| match record {
            Record::BackgroundTask(BackgroundTask { reason, .. }) => reason,
            _ => None,
        });
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        ["a person stopped it", "the pod ended"]
    );
    sound(&over.pod, "a run that a client stopped");
}

/// A run that wakes the pod, up to the end of the turn. Returns whether the pod survived.
fn story(pod: PodUnderTest) -> Over {
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return *over,
    };
    let passed = || {
        live.try_until(|status| live.folded(status.folded).hosted)?;
        live.advance(HOUR);
        live.try_until(|status| status.turns == 1 && status.activity == Activity::Idle)
    };
    match passed() {
        Some(_) => live.close(),
        None => live.wait(),
    }
}

#[test]
fn killed_anywhere_a_run_has_one_end_and_wakes_once() {
    let reference = story(stays(&[Worker::waking(HOURLY)], 9));
    let points = reference.pod.points.numbered();
    for expected in [
        "commit:background_task",
        "task:running",
        "task:ended",
        "background_task",
    ] {
        assert!(
            points.iter().any(|(name, _)| name == expected),
            "no {expected} in {points:?}"
        );
    }
    for (name, nth) in points {
        let what = format!("killed at {name} {nth}");
        let worker = Worker::waking(HOURLY);
        let pod = stays(std::slice::from_ref(&worker), 9);
        pod.points.kill(&name, nth);
        let Over { mut pod, end, .. } = story(pod);
        assert!(
            matches!(
                end,
                LiveEnd::Killed | LiveEnd::Ended(_) | LiveEnd::NotOpened(_)
            ),
            "{what}"
        );
        pod.revive();
        pod.script = ModelScript::new((0..9).map(|_| ScriptedAnswer::text("went on")));
        let live = live(pod);
        let before = worker.began().len();
        let goes_on = || {
            live.try_settled()?;
            // The schedule goes on.
            live.advance(HOUR);
            worker.begins(before + 1);
            live.try_settled()
        };
        let over = if goes_on().is_some() {
            live.close()
        } else {
            live.wait()
        };
        assert_eq!(over.failure(), None, "{what}");
        let runs = runs(&over.pod);
        for (run, _) in worker.began() {
            let ends: Vec<_> = runs
                .iter()
                .filter(|record| record.run == run && record.state != TaskRunState::Running)
                .collect();
            assert_eq!(ends.len(), 1, "{what}: run {run} has {ends:?}");
        }
        let mut began: Vec<_> = worker.began().into_iter().map(|(run, _)| run).collect();
        let all = began.len();
        began.dedup();
        assert_eq!(began.len(), all, "{what}: a run began twice: {began:?}");
        let woken = |run: u64| {
            let text = format!("run {run}");
            let said = |(_, record): &(u64, Record)| matches!(record, Record::NotificationQueued(n) if n.text == text);
            over.pod
                .records()
                .iter()
                .filter(|record| said(record))
                .count()
        };
        assert!(began.iter().all(|run| woken(*run) <= 1), "{what}");
        assert!(over.state().open_tasks().next().is_none(), "{what}");
        sound(&over.pod, &what);
    }
}
