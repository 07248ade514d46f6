//! What a pod costs whose background tasks wait: counted with 20 of them.

use crate::fixtures::pod;
use llm_worker::ToolEffect;
use pod::control::HostMode;
use pod::feature::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use testkit::{LivePod, PATIENCE, PodUnderTest};

const MINUTE: Duration = Duration::from_secs(60);
const TASKS: usize = 20;
const NAMES: [&str; 7] = ["one", "two", "three", "four", "five", "six", "seven"];

/// Some tasks, each due after a day and some hours, no two together.
struct Waits {
    id: FeatureId,
    keys: Vec<TaskKey>,
    ran: Arc<AtomicUsize>,
}

struct Live(Arc<AtomicUsize>);

impl Live {
    async fn work(self: Arc<Self>, _: BackgroundTaskContext) -> TaskResult {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl FeatureModule for Waits {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(self.id.clone()).version("1.0.0");
        self.keys
            .iter()
            .fold(builder, |builder, key| builder.background_task(key))
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live(self.ran.clone()));
        self.keys
            .iter()
            .try_for_each(|key| ctx.background_tasks().run(key, &live, Live::work).map(drop))
    }
}

/// A pod with 20 waiting tasks, and how many runs there were.
fn waits() -> (PodUnderTest, Arc<AtomicUsize>) {
    let mut pod = pod(Vec::new(), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    let ran = Arc::new(AtomicUsize::new(0));
    for (at, id) in ["first", "second", "third"].into_iter().enumerate() {
        let key = |(n, name): (usize, &&'static str)| {
            let after = 30 * 60 + 7 * u32::try_from(at * NAMES.len() + n).unwrap();
            TaskKey::new(name, ToolEffect::ReadOnly).every(after * MINUTE)
        };
        let keys = NAMES
            .iter()
            .enumerate()
            .map(key)
            .take(TASKS - at * NAMES.len())
            .collect();
        let feature = Waits {
            id: FeatureId::builtin(id),
            keys,
            ran: ran.clone(),
        };
        pod.features
            .push((Arc::new(feature), vec![HostCapability::ANY_BACKGROUND_TASK]));
    }
    (pod, ran)
}

#[test]
fn twenty_waiting_tasks_wake_a_pod_hourly_and_when_one_is_due() {
    let (pod, ran) = waits();
    let live = LivePod::open(pod).unwrap_or_else(|over| panic!("{:?}", over.failure()));
    let waiting = live.run_due();
    assert_eq!(
        waiting
            .tasks
            .iter()
            .filter(|task| task.next_due_ms.is_some())
            .count(),
        TASKS
    );
    let advance = |minutes: u32| {
        let before = live.pod.clock.reads();
        (0..minutes).for_each(|_| live.advance(MINUTE));
        live.run_due();
        live.pod.clock.reads() - before
    };
    // A look reads the clock twice; the questions of the test are some reads more.
    let day = advance(24 * 60);
    assert!(
        (24..=24 * 2 + 9).contains(&day),
        "{day} reads of the clock in a day"
    );
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    // The first is due after 30 hours, the last after 32 hours and 13 minutes.
    advance(5 * 60 + 59);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    advance(1);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    // Minute by minute: time that passes while a run waits for its thread is the run's deadline.
    for _ in 0..133 {
        advance(1);
    }
    assert_eq!(ran.load(Ordering::SeqCst), TASKS);
    assert_eq!(live.close().failure(), None);
}

/// How long an idle pod is watched; `.ci/long` sets a minute.
fn watched() -> Duration {
    let seconds = std::env::var("YOI_TEST_IDLE_S")
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

#[test]
fn the_control_thread_sleeps_while_twenty_tasks_wait() {
    let (mut pod, _) = waits();
    let thread = Arc::new(Mutex::new(PathBuf::new()));
    let here = thread.clone();
    // Installed by the control thread.
    pod.offer = Arc::new(move |services| {
        *here.lock().unwrap() = std::fs::read_link("/proc/thread-self").unwrap();
        services
    });
    let live =
        LivePod::open_in_real_time(pod).unwrap_or_else(|over| panic!("{:?}", over.failure()));
    live.run_due();
    let status = PathBuf::from("/proc")
        .join(&*thread.lock().unwrap())
        .join("status");
    let switches = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    let began = Instant::now();
    let mut before = 0;
    while before != switches() {
        assert!(began.elapsed() < PATIENCE, "it never rests");
        before = switches();
        // What a start leaves for later is over within a second.
        thread::sleep(Duration::from_millis(1500));
    }
    thread::sleep(watched());
    assert_eq!(switches(), before, "the control thread woke");
    live.run_due();
    // A wake counts when the thread sleeps again, which may be behind its answer.
    let asked = Instant::now();
    while switches() == before {
        assert!(asked.elapsed() < PATIENCE, "this shows nothing");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(live.close().failure(), None);
}
