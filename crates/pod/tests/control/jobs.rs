//! Jobs of a feature: commands that outlive what started them. When they are recorded, what follows from their end, and
//! what a kill, a stop and a full disk leave of them.

use crate::fixtures::{live, pod, sound};
use authority::{Confinement, EnvPolicy, SandboxMode, Spawner};
use llm_worker::{ErrorKind, ToolEffect};
use pod::control::{Activity, HostMode, SubmitError};
use pod::feature::*;
use pod::record::{ChildProcess, JobEnd, JobEndKind, JobStarter, Record, TaskRunState, Who};
use protocol::method::StopRun;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::{ENOSPC, Fault, LivePod, Over, PATIENCE, PodUnderTest, ScriptedAnswer};

const AFTER: TaskKey = TaskKey::new("after", ToolEffect::Effectful).on_child_end();
const STARTS: TaskKey = TaskKey::new("starts", ToolEffect::ReadOnly).on_request();

/// A job that ends when the file is there, and one that ends by itself after minutes.
const WAITS: &str = "echo ready; while ! [ -e done ]; do sleep 0.01; done; exit 3";
const LONG: &str = "echo ready; exec sleep 300";

/// What started a run, and the jobs that had ended.
type Told = (TriggerKind, Vec<u64>);

/// A feature with a handle for jobs, a task that runs after each, and one that starts a job.
#[derive(Clone, Default)]
struct Builder {
    jobs: Arc<Mutex<Option<JobHandle>>>,
    starts: Arc<Mutex<Option<TaskHandle>>>,
    told: Arc<Mutex<Vec<Told>>>,
    project: std::path::PathBuf,
    id: &'static str,
}

impl FeatureModule for Builder {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(FeatureId::builtin(self.id)).version("1.0.0");
        let runs = CapabilityRequest::required(HostCapability::ANY_PROGRAM, "to run jobs");
        builder
            .request(runs)
            .background_task(&AFTER)
            .background_task(&STARTS)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(self.clone());
        *self.jobs.lock().unwrap() = Some(ctx.services().jobs()?);
        ctx.background_tasks().run(&AFTER, &live, Self::after)?;
        ctx.background_tasks().run(&STARTS, &live, Self::start)?;
        *self.starts.lock().unwrap() = Some(ctx.background_tasks().handle(&STARTS)?);
        Ok(())
    }
}

impl Builder {
    async fn after(self: Arc<Self>, cx: BackgroundTaskContext) -> TaskResult {
        self.told.lock().unwrap().push((cx.trigger, cx.jobs));
        Ok(())
    }

    async fn start(self: Arc<Self>, cx: BackgroundTaskContext) -> TaskResult {
        self.handle().start(self.shell(LONG), &cx).await?;
        Ok(())
    }

    fn handle(&self) -> JobHandle {
        self.jobs.lock().unwrap().clone().unwrap()
    }

    fn shell(&self, script: &str) -> NewJob {
        NewJob {
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            cwd: self.project.clone(),
            command: format!("sh -c\n'{script}'"),
            deadline: Duration::from_secs(3600),
            most: MAX_JOBS_OF_FEATURE,
        }
    }

    fn list(&self) -> Vec<ChildProcess> {
        self.handle().list().unwrap()
    }

    fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }
}

/// With a name of its own: all tests are in one process, which ends what is left of a job by its mark.
fn spawner() -> Spawner {
    static PODS: AtomicU32 = AtomicU32::new(1);
    let tag = format!("s-{}/1", PODS.fetch_add(1, Ordering::Relaxed));
    let confinement = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
    Spawner::new(&ambient::claim(), confinement, env, tag).unwrap()
}

fn stays() -> (PodUnderTest, Builder) {
    let mut pod = pod(vec![ScriptedAnswer::text("answer")], Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    pod.spawner = Some(spawner());
    let builder = Builder {
        project: pod.project.clone(),
        id: "builder",
        ..Builder::default()
    };
    let tasks = HostCapability::ContributeBackgroundTask { name: "*".into() };
    pod.features = vec![(
        Arc::new(builder.clone()),
        vec![HostCapability::ANY_PROGRAM, tasks],
    )];
    (pod, builder)
}

fn jobs(pod: &PodUnderTest) -> Vec<(u64, Option<JobEnd>)> {
    let job = |(_, record)| match record {
        Record::ChildProcess(job) => Some((job.job, job.ended)),
        _ => None,
    };
    pod.records().into_iter().filter_map(job).collect()
}

fn kinds(pod: &PodUnderTest) -> Vec<(u64, Option<JobEndKind>)> {
    jobs(pod)
        .into_iter()
        .map(|(job, end)| (job, end.map(|end| end.how)))
        .collect()
}

fn start(live: &LivePod, builder: &Builder, script: &str) -> Result<u64, JobError> {
    live.ask(
        builder
            .handle()
            .start(builder.shell(script), JobStarter::Run(99)),
    )
}

/// Waits until the output of a job is this.
fn said(builder: &Builder, job: u64, text: &str) {
    let began = Instant::now();
    while builder.handle().tail(job, 1000).unwrap().text != text {
        assert!(
            began.elapsed() < PATIENCE,
            "{:?}",
            builder.handle().tail(job, 1000)
        );
        std::thread::yield_now();
    }
}

/// Whether a process runs; one that has ended and was not waited for does not.
fn runs(job: &ChildProcess) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", job.pid)).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn until_ended(live: &LivePod, ends: usize) {
    live.until(|_| {
        jobs(&live.pod)
            .iter()
            .filter(|(_, end)| end.is_some())
            .count()
            >= ends
    });
}

fn file(pod: &PodUnderTest, name: &str) {
    std::fs::write(pod.project.join(name), "").unwrap();
}

/// The answer comes behind the record, which names the client.
#[test]
fn a_client_stops_a_job_of_any_feature() {
    let (pod, builder) = stays();
    let live = live(pod);
    assert_eq!(start(&live, &builder, LONG).unwrap(), 1);
    said(&builder, 1, "ready\n");
    let by = Who {
        client: "yoi attach".to_owned(),
        role: "driver".to_owned(),
        uid: 0,
        name: None,
    };
    let client = live.client();
    assert!(matches!(
        live.ask(client.stop_job(2, Some(by.clone()))),
        Err(SubmitError::NoJob(2))
    ));
    live.ask(client.stop_job(1, Some(by.clone()))).unwrap();
    let ended = jobs(&live.pod).pop().unwrap().1.unwrap();
    assert_eq!(ended.how, JobEndKind::Stopped);
    assert_eq!(
        ended.reason.as_deref(),
        Some("a person stopped it with `yoi attach`")
    );
    assert!(!runs(&builder.list()[0]));
    assert!(matches!(
        live.ask(client.stop_job(1, Some(by))),
        Err(SubmitError::NoJob(1))
    ));
    assert!(matches!(
        live.ask(client.tell(
            StopRun {
                run: 7,
                ..StopRun::default()
            },
            None
        )),
        Err(SubmitError::NoRun(7))
    ));
    sound(&live.close().pod, "a job that a client stopped");
}

#[test]
fn a_job_is_recorded_read_and_its_end_runs_a_task() {
    let (pod, builder) = stays();
    let live = live(pod);
    assert_eq!(start(&live, &builder, WAITS).unwrap(), 1);
    said(&builder, 1, "ready\n");
    let jobs = builder.list();
    let [job] = &jobs[..] else { panic!("{jobs:?}") };
    assert!(runs(job) && job.start > 0 && job.ended.is_none());
    assert_eq!(job.command, format!("sh -c '{WAITS}'"));
    assert_eq!(
        kinds(&live.pod),
        [(1, None)],
        "its start is durable before its number is given out"
    );
    file(&live.pod, "done");
    live.until(|_| builder.told().len() == 1);
    assert_eq!(builder.told(), [(TriggerKind::ChildEnded, vec![1])]);
    let ended = builder.list()[0].clone();
    assert!(!runs(&ended));
    assert_eq!(
        ended.ended.as_ref().map(|end| (end.how, end.code)),
        Some((JobEndKind::Exited, Some(3)))
    );
    assert_eq!(
        builder.handle().tail(1, 1000).unwrap().bytes,
        6,
        "its output stays"
    );
    let unknown = builder.handle().tail(2, 9).unwrap_err();
    assert_eq!(
        (unknown.kind(), unknown.to_string().as_str()),
        (ErrorKind::FixInput, "there is no job 2")
    );
    let over = live.close();
    assert_eq!(kinds(&over.pod), [(1, None), (1, Some(JobEndKind::Exited))]);
    sound(&over.pod, "a job");
}

#[test]
fn a_job_is_stopped_and_its_end_is_durable_then() {
    let (pod, builder) = stays();
    let live = live(pod);
    start(&live, &builder, LONG).unwrap();
    let stopped = live.ask(builder.handle().stop(1)).unwrap();
    assert_eq!(stopped.ended.map(|end| end.how), Some(JobEndKind::Stopped));
    assert_eq!(
        kinds(&live.pod),
        [(1, None), (1, Some(JobEndKind::Stopped))]
    );
    assert!(live.ask(builder.handle().stop(1)).is_ok(), "it has ended");
    // Nobody but its caller is told of a command that cannot be started.
    let missing = NewJob {
        program: "no-such-program".into(),
        ..builder.shell("")
    };
    let refused = live
        .ask(builder.handle().start(missing, JobStarter::Run(1)))
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::FixInput, "{refused}");
    assert_eq!(start(&live, &builder, "true").unwrap(), 3);
    until_ended(&live, 3);
    live.advance(Duration::from_secs(1));
    live.until(|_| builder.told().iter().flat_map(|(_, jobs)| jobs).count() == 2);
    let numbers = |jobs: Vec<ChildProcess>| jobs.into_iter().map(|job| job.job).collect::<Vec<_>>();
    assert_eq!(numbers(builder.list()), [1, 3]);
    let second: Vec<_> = kinds(&live.pod)
        .into_iter()
        .filter(|(job, _)| *job == 2)
        .collect();
    assert_eq!(second, [(2, None), (2, Some(JobEndKind::NotStarted))]);
    sound(&live.close().pod, "a stopped job");
}

/// A caller that went away does not know the number of its job.
#[test]
fn a_job_whose_caller_went_away_is_stopped() {
    let (pod, builder) = stays();
    let live = live(pod);
    let handle = builder.handle();
    live.ask(async {
        // Long enough to be asked for, and not answered yet.
        let mut start = Box::pin(handle.start(builder.shell(LONG), JobStarter::Run(1)));
        std::future::poll_fn(|cx| {
            assert!(start.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    });
    until_ended(&live, 1);
    let all = kinds(&live.pod);
    assert!(
        matches!(
            all[..],
            [
                (1, None),
                (1, Some(JobEndKind::NotStarted | JobEndKind::Stopped))
            ]
        ),
        "{all:?}"
    );
    sound(&live.close().pod, "a caller that went");
}

#[test]
fn a_run_that_completed_names_the_jobs_that_it_left() {
    let (pod, builder) = stays();
    let live = live(pod);
    builder
        .starts
        .lock()
        .unwrap()
        .clone()
        .unwrap()
        .run_now()
        .unwrap();
    let run = |(_, record)| match record {
        Record::BackgroundTask(run) if run.task == "starts" => Some((run.state, run.jobs)),
        _ => None,
    };
    let runs = || {
        live.pod
            .records()
            .into_iter()
            .filter_map(run)
            .collect::<Vec<_>>()
    };
    // Only its end is recorded, with the next commit.
    live.until(|_| !builder.list().is_empty());
    live.ask(builder.handle().stop(1)).unwrap();
    live.until(|_| !runs().is_empty());
    assert!(
        matches!(&runs()[..], [(TaskRunState::Completed, jobs)] if jobs.len() <= 1),
        "{:?}",
        runs()
    );
    builder
        .starts
        .lock()
        .unwrap()
        .clone()
        .unwrap()
        .run_now()
        .unwrap();
    live.until(|_| builder.list().len() == 2);
    // The next commit is that of a job of another cause.
    start(&live, &builder, "true").unwrap();
    live.until(|_| runs().len() == 2);
    assert_eq!(runs()[1], (TaskRunState::Completed, vec![2]));
    sound(&live.close().pod, "a run that left a job");
}

#[test]
fn too_many_jobs_are_refused() {
    let (pod, builder) = stays();
    let live = live(pod);
    for number in 1..=8 {
        assert_eq!(start(&live, &builder, LONG).unwrap(), number);
    }
    let refused = start(&live, &builder, LONG).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.to_string().as_str()),
        (ErrorKind::Exhausted, "8 jobs run already; stop one first")
    );
    live.ask(builder.handle().stop(4)).unwrap();
    assert_eq!(start(&live, &builder, LONG).unwrap(), 9);
    let over = live.close();
    assert_eq!(over.state().open_jobs().count(), 0);
    let stopped = kinds(&over.pod)
        .into_iter()
        .filter(|(_, end)| *end == Some(JobEndKind::PodStopped))
        .count();
    assert_eq!(stopped, 8);
    assert!(matches!(
        over.pod.records().last(),
        Some((_, Record::HostStopped(_)))
    ));
    sound(&over.pod, "many jobs");
}

#[test]
fn a_job_is_in_the_log_before_it_runs() {
    let (pod, builder) = stays();
    let log = pod.dir.display().to_string();
    let live = live(pod);
    let looks = format!(
        "if grep -rq '\"k\":\"process\"' '{log}'; then echo recorded; else echo unknown; fi"
    );
    // Longer than the start of a process takes.
    let came = live
        .pod
        .points
        .came()
        .iter()
        .filter(|point| *point == "journal:encoded")
        .count();
    live.pod.points.at("journal:encoded", came, || {
        std::thread::sleep(Duration::from_millis(300))
    });
    start(&live, &builder, &looks).unwrap();
    until_ended(&live, 1);
    assert_eq!(builder.handle().tail(1, 100).unwrap().text, "recorded\n");
    sound(&live.close().pod, "a start");
}

/// Sixteen of two features run; the third has none that it could stop.
#[test]
fn the_jobs_of_all_features_are_bounded() {
    let (mut pod, one) = stays();
    let others = ["two", "three"].map(|id| Builder {
        project: pod.project.clone(),
        id,
        ..Builder::default()
    });
    let grants = pod.features[0].1.clone();
    pod.features.extend(
        others
            .iter()
            .map(|other| (Arc::new(other.clone()) as _, grants.clone())),
    );
    let live = live(pod);
    for builder in [&one, &others[0]] {
        assert!((0..MAX_JOBS_OF_FEATURE).all(|_| start(&live, builder, LONG).is_ok()));
    }
    let refused = start(&live, &others[1], LONG).unwrap_err().to_string();
    assert_eq!(
        refused,
        "16 jobs of all features run already; wait until one has ended"
    );
    let few = NewJob {
        most: 1,
        ..one.shell(LONG)
    };
    live.ask(one.handle().stop(1)).unwrap();
    assert!(
        live.ask(one.handle().start(few.clone(), JobStarter::Run(1)))
            .unwrap_err()
            .to_string()
            .starts_with("7 jobs")
    );
    assert_eq!(
        live.ask(others[1].handle().start(few.clone(), JobStarter::Run(1)))
            .unwrap(),
        17
    );
    let refused = live
        .ask(others[1].handle().start(few, JobStarter::Run(1)))
        .unwrap_err()
        .to_string();
    assert_eq!(refused, "1 job runs already; stop it first");
    sound(&live.close().pod, "jobs of three features");
}

// The output of a job was read as fast as it came, on the control thread, for as long as the job ran.
#[test]
fn a_flood_of_output_is_read_at_a_bounded_rate() {
    const AT_ONCE: u64 = 8 * 1024 * 1024 / 20;
    let (pod, builder) = stays();
    let live = live(pod);
    start(&live, &builder, "exec yes").unwrap();
    let read = || builder.handle().tail(1, 10).unwrap().bytes;
    for upto in [AT_ONCE, 2 * AT_ONCE] {
        let began = Instant::now();
        while read() < upto {
            assert!(began.elapsed() < PATIENCE, "{} of {upto}", read());
            std::thread::yield_now();
        }
        // The time stands still.
        std::thread::sleep(Duration::from_millis(50));
        assert!(read() < upto + 2 * 64 * 1024, "{}", read());
        live.advance(Duration::from_millis(50));
    }
    live.ask(builder.handle().stop(1)).unwrap();
    sound(&live.close().pod, "a flood");
}

/// The grace is part of the stop.
#[test]
fn a_pod_that_stops_kills_a_job_that_ignores_it() {
    let (pod, builder) = stays();
    let live = live(pod);
    start(
        &live,
        &builder,
        "trap '' TERM; echo ready; while :; do sleep 1; done",
    )
    .unwrap();
    said(&builder, 1, "ready\n");
    let job = builder.list()[0].clone();
    let client = live.client();
    let closes = std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(client.close("stop"));
    });
    while live
        .ask(live.client().status())
        .is_some_and(|status| status.activity != Activity::Closing)
    {
        std::thread::yield_now();
    }
    assert!(runs(&job));
    live.advance(authority::GRACE);
    closes.join().unwrap();
    let over = live.wait();
    assert!(!runs(&job));
    assert_eq!(
        kinds(&over.pod),
        [(1, None), (1, Some(JobEndKind::PodStopped))]
    );
    sound(&over.pod, "a stop");
}

#[test]
fn a_job_ends_at_its_deadline() {
    let (pod, builder) = stays();
    let live = live(pod);
    start(&live, &builder, LONG).unwrap();
    live.advance(Duration::from_secs(3599));
    assert!(builder.list()[0].ended.is_none());
    live.advance(Duration::from_secs(1));
    until_ended(&live, 1);
    assert_eq!(
        kinds(&live.pod),
        [(1, None), (1, Some(JobEndKind::TimedOut))]
    );
    sound(&live.close().pod, "a deadline");
}

#[test]
fn a_full_disk_starts_no_job_and_delays_the_record_of_an_end() {
    let (pod, builder) = stays();
    let live = live(pod);
    start(&live, &builder, WAITS).unwrap();
    said(&builder, 1, "ready\n");
    live.pod.disk.fail_at(0, Fault::Ever(ENOSPC));
    let refused = start(&live, &builder, "touch ran; exec sleep 300").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    assert!(
        refused
            .to_string()
            .starts_with("the job was not started, because "),
        "{refused}"
    );
    assert!(!live.pod.project.join("ran").exists());
    file(&live.pod, "done");
    while live.ask(live.client().status()).unwrap().disk.is_none() {
        std::thread::yield_now();
    }
    assert_eq!(
        (kinds(&live.pod), builder.told().len()),
        (vec![(1, None)], 0)
    );
    live.pod.disk.repair();
    live.advance(Duration::from_secs(30));
    live.until(|_| builder.told().len() == 1);
    let over = live.close();
    assert_eq!(kinds(&over.pod), [(1, None), (1, Some(JobEndKind::Exited))]);
    sound(&over.pod, "a full disk");
}

#[test]
fn a_pod_that_does_not_stay_starts_no_job() {
    let (mut pod, builder) = stays();
    pod.mode = HostMode::Run;
    let live = LivePod::open(pod).ok().unwrap();
    let refused = start(&live, &builder, LONG).unwrap_err();
    assert!(
        refused.kind() == ErrorKind::Unavailable
            && refused
                .to_string()
                .starts_with("this pod ends with its run")
    );
    assert_eq!(kinds(&live.close().pod), []);
}

/// Starts a job, ends it, and stops.
fn story(pod: PodUnderTest, builder: &Builder) -> Over {
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return *over,
    };
    let passed = || {
        live.try_until(|status| live.folded(status.folded).hosted)?;
        start(&live, builder, WAITS).ok()?;
        file(&live.pod, "done");
        live.try_until(|_| builder.told().len() == 1)
    };
    match passed() {
        Some(_) => live.close(),
        None => live.wait(),
    }
}

#[test]
fn killed_anywhere_a_job_has_one_end_and_the_next_start_knows_it() {
    let (pod, builder) = stays();
    let points = story(pod, &builder).pod.points.numbered();
    assert!(
        ["commit:process", "process"]
            .iter()
            .all(|point| points.iter().any(|(name, _)| name == point))
    );
    for (name, nth) in points {
        let what = format!("killed at {name} {nth}");
        let (pod, builder) = stays();
        pod.points.kill(&name, nth);
        let Over { pod, .. } = story(pod, &builder);
        let recorded = kinds(&pod);
        let known: Option<ChildProcess> = builder
            .jobs
            .lock()
            .unwrap()
            .take()
            .and_then(|jobs| jobs.list().ok()?.pop());
        pod.revive();
        let live = live(pod);
        live.try_settled().unwrap();
        let job = builder.list().pop();
        assert!(
            job.iter().all(|job| job.ended.is_some() && !runs(job)),
            "{what}: {job:?}"
        );
        assert!(known.iter().all(|known| !runs(known)), "{what}");
        let over = live.close();
        let all = kinds(&over.pod);
        // What was written and not synced may be there or not.
        assert!(all.starts_with(&recorded), "{what}: {recorded:?}, {all:?}");
        let end = match &recorded[..] {
            [] if all.is_empty() => None,
            [_, end] => Some(*end),
            _ if all.last() == Some(&(1, Some(JobEndKind::Exited))) => all.last().copied(),
            _ => Some((1, Some(JobEndKind::Lost))),
        };
        assert_eq!(
            all,
            end.map_or(vec![], |end| vec![(1, None), end]),
            "{what}"
        );
        assert_eq!(
            job.map(|job| (job.job, job.ended.map(|end| end.how))),
            end,
            "{what}"
        );
        sound(&over.pod, &what);
    }
}
