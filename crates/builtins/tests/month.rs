//! A pod with a schedule, a watch and jobs, left alone in simulated time: killed again and again, its disk full twice.
//! Alone in its process, whose threads and descriptors are counted.
//!
//! Three days; `YOI_TEST_DAYS=30` makes it a month.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use authority::{Confinement, EnvPolicy, SandboxMode, Spawner};
use builtins::policies::{self, Settings};
use builtins::{Now, jobs, schedule, watch};
use pod::control::{Activity, HostMode, NewInput};
use pod::feature::{FeatureId, HostCapability};
use pod::hook::{Event, PreRequest};
use pod::record::{Record, TaskRunState};
use pod::session::resume::resume;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};
use testkit::{
    ENOSPC, Fault, LiveEnd, LivePod, ModelScript, Over, PATIENCE, PodUnderTest, ScriptedAnswer,
};

const MINUTE: Duration = Duration::from_secs(60);
/// Between two starts of the pod.
const LEG: Duration = Duration::from_secs(3 * 60 * 60);
const LEGS_A_DAY: u64 = 8;
/// Between two due times of the schedule.
const EVERY_US: u64 = 6 * 3_600_000_000;
/// Bytes of memory that may come on top in the last two thirds: the log and what is folded from it grow.
const MORE_MEMORY: u64 = 48 << 20;

/// Threads and descriptors that may come on top: one for each start would be more.
const SLACK: usize = 4;

fn days() -> u64 {
    std::env::var("YOI_TEST_DAYS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3)
}

/// xorshift64*
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

fn settings(value: &Value) -> Settings {
    value.as_object().unwrap().clone()
}

fn stays() -> PodUnderTest {
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new([]), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    let confinement = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
    pod.spawner =
        Some(Spawner::new(&ambient::claim(), confinement, env, "s-1/1".to_owned()).unwrap());
    let prompts = json!([{ "name": "sweep", "cron": "0 */6 * * *", "text": "Sweep." }]);
    let keys = [
        (
            schedule::ID,
            json!({ "time_zone": "UTC", "prompts": prompts }),
        ),
        (watch::ID, json!({})),
        (jobs::ID, json!({})),
    ];
    let all: BTreeMap<FeatureId, Settings> = keys
        .iter()
        .map(|(id, keys)| (id.clone(), settings(keys)))
        .collect();
    let clock = pod.clock.clone();
    let now: Now = std::sync::Arc::new(move || UNIX_EPOCH + Duration::from_micros(clock.now()));
    let grants = vec![
        HostCapability::tool("*"),
        HostCapability::hook::<PreRequest>(),
        HostCapability::hook::<Event>(),
        HostCapability::SESSION_STATE,
        HostCapability::READ_WORKSPACE,
        HostCapability::ANY_PROGRAM,
        HostCapability::EmitUserAlert,
        HostCapability::ANY_BACKGROUND_TASK,
        schedule::NOTIFY,
        watch::NOTIFY,
        jobs::NOTIFY,
    ];
    let modules = policies::with_settings(&all, |id| all.contains_key(id), &now).unwrap();
    pod.features = modules
        .into_iter()
        .map(|module| (module, grants.clone()))
        .collect();
    pod
}

/// Waits until nothing runs and nothing is due; none once the pod is dead. `jobs`: also no job runs.
fn rests(live: &LivePod, jobs: bool) -> Option<()> {
    // What features have requested is taken before the answer.
    live.ask(live.client().status())?;
    let rests = live.try_until(|status| {
        let now_ms = live.pod.clock.now() / 1000;
        let idle = status.activity == Activity::Idle && status.queued.is_empty();
        let due = |ms: Option<u64>| ms.is_some_and(|due| due <= now_ms);
        let tasks = || {
            status
                .tasks
                .iter()
                .all(|task| task.run.is_none() && !due(task.next_due_ms))
        };
        idle && tasks() && {
            // The log is read only where it can tell more.
            let state = (status.notices > 0 || jobs).then(|| live.folded(status.folded));
            state.is_none_or(|state| {
                state.open_jobs().count() == 0 && !state.notices.values().any(|notice| notice.wake)
            })
        }
    });
    rests.map(drop)
}

/// A start, three hours, and the end. `full`: in which of its half hours the disk is full.
fn leg(mut pod: PodUnderTest, number: u64, full: Option<u64>) -> Over {
    let job = ScriptedAnswer::calls(&[(
        "JobStart",
        &json!({ "command": "echo hi; exit 3" }).to_string(),
    )]);
    let answers = std::iter::once(job).chain((0..60).map(|_| ScriptedAnswer::text("well")));
    pod.script = ModelScript::new(answers);
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return *over,
    };
    let passed = || {
        fs::write(
            live.pod.project.join(format!("note-{}", number % 50)),
            number.to_string(),
        )
        .unwrap();
        // Killed in three turns in a row, it waits for a person.
        if live.ask(live.client().status())?.held.is_some() {
            live.ask(live.client().resume(None)).ok()?;
        }
        rests(&live, false)?;
        live.ask(live.client().send(NewInput {
            text: format!("go {number}"),
            ..NewInput::default()
        }))
        .ok()?;
        rests(&live, true)?;
        let steps = LEG.as_secs() / MINUTE.as_secs() / 30;
        for half_hour in 0..steps {
            let is_full = full == Some(half_hour);
            if is_full {
                live.pod.disk.fail_at(0, Fault::Ever(ENOSPC));
            }
            live.try_advance(29 * MINUTE)?;
            if is_full {
                live.ask(live.client().status())?;
                live.pod.disk.repair();
            }
            if !is_full {
                // A run that is due has a minute of the pod's time.
                rests(&live, false)?;
            }
            live.try_advance(MINUTE)?;
            rests(&live, false)?;
        }
        rests(&live, true)
    };
    match passed() {
        Some(()) => live.close(),
        None => live.wait(),
    }
}

fn entries(dir: &str) -> usize {
    fs::read_dir(dir).unwrap().count()
}

fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap();
    line.trim()
        .strip_suffix(" kB")
        .unwrap()
        .parse::<u64>()
        .unwrap()
        << 10
}

fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let of = |entry: fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => size(&entry.path()),
        false => entry.metadata().unwrap().len(),
    };
    entries.map(of).sum()
}

/// What the journal has of the schedule, for a test that fails; times in minutes.
fn schedule(pod: &PodUnderTest) -> String {
    let minutes = |ms: u64| ms / 60_000 % (1000 * 24 * 60);
    let own = |feature: &str| feature == schedule::ID.to_string();
    let line = |(seq, record)| match record {
        Record::HostStarted(_) => Some(format!("record {seq}: start")),
        Record::BackgroundTask(run) if own(&run.feature) => {
            let at = minutes(run.at_ms);
            let due = minutes(run.due_ms);
            Some(format!(
                "record {seq}: {at} run {} {:?}, due {due} {:?}",
                run.run, run.state, run.reason
            ))
        }
        Record::NotificationQueued(queued) if own(&queued.feature) => {
            Some(format!("record {seq}: {:?}", queued.key))
        }
        _ => None,
    };
    let lines: Vec<String> = pod.records().into_iter().filter_map(line).collect();
    format!(
        "{}\n{} the end",
        lines.join("\n"),
        minutes(pod.clock.now() / 1000)
    )
}

/// Every run and every job has one end, every notice came once, and the schedule missed no time.
fn holds(pod: &PodUnderTest, began_us: u64) {
    let mut runs: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
    let mut started: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
    let mut keys = BTreeSet::new();
    let mut sweeps = 0;
    let mut told = 0;
    for (seq, record) in pod.records() {
        match record {
            Record::BackgroundTask(run) if run.state == TaskRunState::Running => {
                runs.entry(run.run).or_default().0 += 1
            }
            Record::BackgroundTask(run) => runs.entry(run.run).or_default().1 += 1,
            Record::ChildProcess(child) if child.ended.is_none() => {
                started.entry(child.job).or_default().0 += 1
            }
            Record::ChildProcess(child) => started.entry(child.job).or_default().1 += 1,
            Record::NotificationQueued(queued) => {
                sweeps += u64::from(queued.feature == schedule::ID.to_string());
                told += usize::from(queued.feature == jobs::ID.to_string());
                let key = queued.key.map(|key| (queued.feature, key));
                assert!(
                    key.is_none() || keys.insert(key.clone()),
                    "record {seq}: {key:?} came twice"
                );
            }
            _ => {}
        }
    }
    assert!(
        runs.values()
            .all(|(began, ended)| *began <= 1 && *ended == 1),
        "{runs:?}"
    );
    assert!(
        started.values().all(|times| *times == (1, 1)),
        "{started:?}"
    );
    assert_eq!(told, started.len(), "jobs whose end was told");
    assert_eq!(
        sweeps,
        pod.clock.now() / EVERY_US - began_us / EVERY_US,
        "times of the schedule: {}",
        schedule(pod)
    );
    let resumed = resume(pod.resume().unwrap().1).unwrap().restored;
    assert_eq!(resumed, pod.restored(), "from the checkpoint");
    assert!(!resumed.state.turn_open && resumed.state.open_calls.is_empty());
}

#[test]
fn a_pod_that_is_left_alone_loses_nothing_and_grows_no_more_than_its_log() {
    let mut pod = stays();
    let began_us = pod.clock.now();
    let legs = days() * LEGS_A_DAY;
    let mut held = Vec::new();
    let mut chance = Chance(0x5eed);
    let mut names = Vec::new();
    let mut kills = 0;
    let mut sizes = Vec::new();
    let mut used = Vec::new();
    for number in 0..legs {
        let full = (number == legs / 4 || number == legs / 2).then_some(2);
        // The first start shows the points; a start with a full disk, and the last one, are not killed.
        if !Vec::is_empty(&names) && full.is_none() && number + 1 < legs && chance.below(8) > 0 {
            let (name, nth): &(String, usize) = &names[chance.below(names.len())];
            pod.points.kill(name, *nth);
        }
        let Over {
            pod: after, end, ..
        } = leg(pod, number, full);
        pod = after;
        match end {
            LiveEnd::Ended(end) => {
                assert!(end.result.is_ok(), "start {number}: {:?}", end.result);
                names = pod.points.numbered();
            }
            LiveEnd::Killed | LiveEnd::NotOpened(_) => kills += 1,
            LiveEnd::Failed(error) => panic!("start {number}: {error}"),
        }
        pod.revive();
        if (number + 1) % (legs / 3) == 0 {
            sizes.push(size(&pod.dir));
            used.push(memory());
            held.push((entries("/proc/self/task"), entries("/proc/self/fd")));
        }
    }
    holds(&pod, began_us);
    println!(
        "{} days, {kills} kills, {} records",
        days(),
        pod.records().len()
    );
    println!("session: {sizes:?} bytes; memory: {used:?} bytes");
    assert!(kills * 2 > legs, "{kills} kills in {legs} starts");
    let [first, second, third] = sizes[..3] else {
        panic!("{sizes:?}")
    };
    assert!(
        third - second <= first / 2 * 3 + (256 << 10),
        "the session grows faster: {sizes:?}"
    );
    assert!(
        used[2] <= used[0] + MORE_MEMORY,
        "the process grows: {used:?}"
    );
    // From the first third on: some descriptors are opened once. Those of a pod that ended may take a moment.
    let (threads, descriptors) = held[0];
    let waits = Instant::now();
    while entries("/proc/self/task") > threads + SLACK
        || entries("/proc/self/fd") > descriptors + SLACK
    {
        assert!(
            waits.elapsed() < PATIENCE,
            "threads and descriptors: {held:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
