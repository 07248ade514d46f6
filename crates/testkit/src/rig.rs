//! A pod in a temporary directory, run, killed and opened again in this process.

use crate::clock::ManualClock;
use crate::disk::FailingDisk;
use crate::latch::PATIENCE;
use crate::model::ModelScript;
use crate::points::{KillPoints, Killed};
use crate::tool::FnTool;
use authority::{Access, Ambient, Redactor, SandboxMode, Spawner, Workspace};
use pod::control::{
    ActorEnd, Callbacks, Client, Event, HostMode, Outbox, Permission, PodLimits, RunLimits, TurnEnd,
};
use pod::feature::{
    CapabilityPolicy, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, FeatureRegistry, FeatureRegistryBuilder, HostCapability, HostServices,
    InstallOutcome, ToolContribution, ToolDeclaration,
};
use pod::foreign::{GRACE, MAX_THREADS};
use pod::host::{
    self, CrashCleanup, HostError, OpenReport, Opening, PodConfig, PodDeps, SystemText,
};
use pod::permission::{HostTerms, Layer, Person, Policy, Rule, RuleDecision, SandboxState};
use pod::record::{HostStarted, Record};
use pod::session::fold::SessionState;
use pod::session::restore::{Restored, decode};
use pod::session::view::ContextPolicy;
use session_store::{
    BLOB_BYTES, Journal, OpenError, Opened, Options, Reader, Session, SessionRecords,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

/// How long a session is tried to be opened: a child that another test of this process starts has a copy of the lock until
/// it runs its program.
const INHERITED: Duration = Duration::from_secs(2);

/// The parts of a pod for tests of the host: change them, then run, kill and reopen the pod. Every call is permitted by
/// default.
pub struct PodUnderTest {
    root: tempfile::TempDir,
    pub dir: PathBuf,
    pub project: PathBuf,
    pub clock: ManualClock,
    pub disk: FailingDisk,
    /// The points of the store and of the actor.
    pub points: KillPoints,
    pub script: Arc<ModelScript>,
    pub tools: Vec<FnTool>,
    /// Further features, each with its granted capabilities; their workspace is the project.
    pub features: Vec<(Arc<dyn FeatureModule>, Vec<HostCapability>)>,
    /// Keeps secrets out of texts that features write and show.
    pub redactor: Redactor,
    pub limits: RunLimits,
    pub pod_limits: PodLimits,
    pub context_policy: ContextPolicy,
    /// The time that a cancelled call may continue.
    pub grace: Duration,
    /// Whether time advances only when nothing else can run. A running call stops it.
    pub paused: bool,
    /// Whether the pod stays when no input comes.
    pub mode: HostMode,
    /// The environment note for the model.
    pub environment: Arc<Mutex<String>>,
    /// The size of a journal segment, in bytes.
    pub segment_bytes: u64,
    pub blob_bytes: u64,
    /// Starts the children of features; none if they have no such grant.
    pub spawner: Option<Spawner>,
    /// The number of children that recovery reports as ended, or the reason why some may remain.
    pub survivors: Arc<Mutex<Result<u32, String>>>,
    /// Adds to what the host offers to features.
    pub offer: Arc<dyn Fn(HostServices) -> HostServices + Send + Sync>,
    permission: Arc<Permission>,
}

/// How a run ended.
#[derive(Debug)]
pub enum RunEnd {
    Ended(TurnEnd),
    NotOpened(OpenError),
    /// The pod was not opened, or it failed.
    Failed(HostError),
    Killed,
}

/// The result of [`PodUnderTest::run`].
#[derive(Debug)]
pub struct PodRun {
    pub how: RunEnd,
    /// The report of opening, if the pod was opened.
    pub found: Option<OpenReport>,
    pub events: Vec<Event>,
    /// The journal's watermark at the end.
    pub durable: u64,
    pub flushes: u64,
}

impl PodRun {
    /// The turn's end; panics when there was none.
    pub fn end(&self) -> &TurnEnd {
        match &self.how {
            RunEnd::Ended(end) => end,
            RunEnd::NotOpened(error) => panic!("not opened: {error}"),
            RunEnd::Failed(error) => panic!("the run failed: {error}"),
            RunEnd::Killed => panic!("the run was killed"),
        }
    }

    /// The records that the watcher received.
    #[must_use]
    pub fn records(&self) -> Vec<(u64, Record)> {
        let record = |event: &Event| match event {
            Event::Record { seq, record } => Some((*seq, (**record).clone())),
            Event::Delta { .. } | Event::Suspended { .. } | Event::Alert(_) => None,
        };
        self.events.iter().filter_map(record).collect()
    }
}

/// The terms of a host without flags: a remedy is its debug text, which tests search for.
pub const TERMS: HostTerms = HostTerms {
    read: "Read",
    shell: "Bash",
    jobs: "JobStart",
    run: |command| serde_json::json!({ "command": command }).to_string(),
    remedy: |remedy| format!("{remedy:?}"),
};

impl PodUnderTest {
    /// A pod with this script and these tools, in a memory file system if there is one.
    #[must_use]
    pub fn new(ambient: &Ambient, script: Arc<ModelScript>, tools: Vec<FnTool>) -> Self {
        let root = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .expect("a directory");
        let dir = root.path().join("session");
        let project = root.path().join("project");
        std::fs::create_dir(&project).expect("a project");
        let workspace =
            Workspace::open(ambient, &project, &project, Access::ReadWrite).expect("a workspace");
        let rule = Rule::new("*", RuleDecision::Allow);
        let policy = Policy::new(
            TERMS,
            vec![Layer::new("testkit", vec![rule]).expect("a rule")],
        );
        let now = SandboxState {
            mode: SandboxMode::Off,
            enforced: false,
        };
        let disk = FailingDisk::default();
        Self {
            dir,
            project: workspace.project().to_owned(),
            clock: ManualClock::at(1_790_000_000_000_000),
            points: KillPoints::new(disk.clone()),
            disk,
            script,
            tools,
            features: Vec::new(),
            redactor: Redactor::default(),
            limits: RunLimits {
                max_steps: 100,
                tool_concurrency: 8,
                max_cost: None,
                max_tokens: None,
                max_wall: None,
            },
            pod_limits: PodLimits::default(),
            context_policy: ContextPolicy::default(),
            grace: GRACE,
            paused: true,
            mode: HostMode::Run,
            environment: Arc::new(Mutex::new("here and now".to_owned())),
            segment_bytes: 16 << 20,
            blob_bytes: BLOB_BYTES,
            spawner: None,
            survivors: Arc::new(Mutex::new(Ok(0))),
            offer: Arc::new(|services| services),
            permission: Arc::new(Permission {
                policy,
                workspace,
                sandbox: now,
                person: Person::Never,
            }),
            root,
        }
    }

    /// What judges its calls.
    #[must_use]
    pub fn permission(&self) -> Arc<Permission> {
        Arc::clone(&self.permission)
    }

    /// Judges calls in this sandbox, by the default table alone.
    pub fn sandboxed(&mut self, sandbox: SandboxState) {
        let policy = Policy::new(TERMS, Vec::new());
        let Permission { workspace, .. } = (*self.permission).clone();
        self.permission = Arc::new(Permission {
            policy,
            workspace,
            sandbox,
            person: self.permission.person,
        });
    }

    /// Judges calls by these rules alone, instead of allowing everything.
    pub fn judge_by(&mut self, rules: Vec<Rule>) {
        self.judge_by_layers(vec![Layer::new("testkit", rules).expect("rules")]);
    }

    /// As [`Self::judge_by`], by several layers.
    pub fn judge_by_layers(&mut self, layers: Vec<Layer>) {
        let policy = Policy::new(TERMS, layers);
        self.permission = Arc::new(Permission {
            policy,
            ..(*self.permission).clone()
        });
    }

    /// Whether a person can answer what rules and gates ask.
    pub fn asks(&mut self, person: Person) {
        self.permission = Arc::new(Permission {
            person,
            ..(*self.permission).clone()
        });
    }

    /// Creates or opens the session's store.
    ///
    /// # Errors
    /// The store's error.
    pub fn store(&self) -> Result<Opened, OpenError> {
        self.resume().map(|(opened, _)| opened)
    }

    /// Like [`store`](Self::store), with the records to fold.
    ///
    /// # Errors
    /// The store's error.
    pub fn resume(&self) -> Result<(Opened, SessionRecords), OpenError> {
        let points = self.points.clone();
        let options = Options {
            disk: Arc::new(self.disk.clone()),
            probe: Arc::new(move |name| points.reach(name)),
            segment_bytes: self.segment_bytes,
            blob_bytes: self.blob_bytes,
            ..Options::new("s-1", self.clock.clock())
        };
        let until = Instant::now() + INHERITED;
        loop {
            match Session::resume(&self.dir, options.clone()) {
                Err(OpenError::NoSuch(_)) => {
                    return Session::create(&self.dir, options)
                        .map(|opened| (opened, SessionRecords::default()));
                }
                Err(OpenError::Busy { .. }) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                other => return other,
            }
        }
    }

    /// Opens the pod, takes one input through a turn and closes it.
    ///
    /// # Panics
    /// The store cannot be opened for another reason than a kill, or the pod panics.
    #[must_use]
    pub fn run(&self, text: &str) -> PodRun {
        self.run_until(text, &CancellationToken::new())
    }

    /// Like [`run`](Self::run), with a token that cancels the turn.
    ///
    /// # Panics
    /// As [`PodUnderTest::run`].
    #[must_use]
    pub fn run_until(&self, text: &str, cancel: &CancellationToken) -> PodRun {
        self.run_watched(text, cancel, listen)
    }

    /// Like [`run`](Self::run), with a watcher that reads events at its own pace.
    ///
    /// # Panics
    /// As [`PodUnderTest::run`].
    #[must_use]
    pub fn run_watched(
        &self,
        text: &str,
        cancel: &CancellationToken,
        watch: impl FnOnce(Receiver<Event>) -> Vec<Event> + Send + 'static,
    ) -> PodRun {
        self.points.start();
        let (mut ran, opened) = match self.begin() {
            Ok(opened) => (
                PodRun {
                    how: RunEnd::Killed,
                    found: None,
                    events: Vec::new(),
                    durable: 0,
                    flushes: 0,
                },
                opened,
            ),
            Err(ran) => return *ran,
        };
        let journal = opened.0.journal.clone();
        let (outbox, events) = Outbox::watched();
        let watcher = thread::spawn(move || watch(events));
        let mut builder = Builder::new_current_thread();
        let runtime = builder
            .enable_all()
            .max_blocking_threads(MAX_THREADS)
            .start_paused(self.paused)
            .build();
        let runtime = runtime.expect("a runtime");
        let callbacks = Callbacks::with_grace(runtime.handle().clone(), self.grace);
        let done = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async {
                let opening = self.opening(opened)?;
                let start = self.start(&opening, outbox, callbacks);
                let (actor, client, found) = host::open(opening, start).await?;
                ran.found = Some(found);
                let asks = async move {
                    let end = client.submit(text).await;
                    client.close("done").await;
                    end
                };
                let (end, over) = tokio::join!(asks, actor.run(cancel.clone()));
                over.result?;
                Ok(end?)
            })
        }));
        match &done {
            // The threads of a killed process end, too.
            Err(_) => runtime.shutdown_timeout(PATIENCE),
            // Does not wait for calls that never return.
            Ok(_) => runtime.shutdown_background(),
        }
        ran.how = match done {
            Ok(Ok(end)) => RunEnd::Ended(end),
            Ok(Err(error)) => RunEnd::Failed(error),
            Err(panic) if panic.is::<Killed>() => RunEnd::Killed,
            Err(panic) => resume_unwind(panic),
        };
        journal.close();
        (ran.durable, ran.flushes) = (journal.durable(), journal.flushes());
        ran.events = watcher.join().expect("a watcher that does not panic");
        ran
    }

    /// Opens the pod and runs it for the clients of `work`, until one of them closes it or the last one is dropped.
    ///
    /// # Panics
    /// The pod cannot be opened.
    #[must_use]
    pub fn serve<T>(&self, outbox: Outbox, work: impl AsyncFnOnce(Client) -> T) -> (T, ActorEnd) {
        self.serve_with(outbox, |_| {}, work)
    }

    /// Like [`serve`](Self::serve), with a changed configuration.
    ///
    /// # Panics
    /// As [`PodUnderTest::serve`].
    #[must_use]
    pub fn serve_with<T>(
        &self,
        outbox: Outbox,
        change: impl FnOnce(&mut PodConfig),
        work: impl AsyncFnOnce(Client) -> T,
    ) -> (T, ActorEnd) {
        let mut builder = Builder::new_current_thread();
        let runtime = builder
            .enable_all()
            .max_blocking_threads(MAX_THREADS)
            .start_paused(self.paused)
            .build();
        let runtime = runtime.expect("a runtime");
        let done = runtime.block_on(async {
            let opening = self
                .opening(self.resume().expect("a session"))
                .expect("a log that folds");
            let mut start = self.start(
                &opening,
                outbox,
                Callbacks::with_grace(runtime.handle().clone(), self.grace),
            );
            change(&mut start);
            let (actor, client, _) = host::open(opening, start).await.expect("a pod that opens");
            tokio::join!(work(client), actor.run(CancellationToken::new()))
        });
        runtime.shutdown_background();
        done
    }

    /// Opens the store; if a kill or a disk fault ended the opening, returns the result of the run.
    fn begin(&self) -> Result<(Opened, SessionRecords), Box<PodRun>> {
        let over = |how| {
            Box::new(PodRun {
                how,
                found: None,
                events: Vec::new(),
                durable: 0,
                flushes: 0,
            })
        };
        match catch_unwind(AssertUnwindSafe(|| self.resume())) {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(error)) => Err(over(RunEnd::NotOpened(error))),
            Err(panic) if panic.is::<Killed>() => Err(over(RunEnd::Killed)),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Folds the session's records, for opening the pod.
    ///
    /// # Errors
    /// The host's error.
    pub fn opening(&self, opened: (Opened, SessionRecords)) -> Result<Opening, HostError> {
        let ended = self
            .survivors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let end_survivors = |_: &str| ended.clone();
        let files = Some(&self.permission.workspace);
        Opening::of(
            &self.dir,
            opened,
            &CrashCleanup {
                now: self.clock.clock()(),
                end_survivors: &end_survivors,
                files,
            },
        )
    }

    /// The configuration for opening the pod.
    #[must_use]
    pub fn start(&self, opening: &Opening, outbox: Outbox, callbacks: Callbacks) -> PodConfig {
        let points = self.points.clone();
        let place = self.project.display().to_string();
        PodConfig {
            about: HostStarted {
                version: "0".to_owned(),
                pid: 1,
                project: place.clone(),
                cwd: place,
                sandbox: "off".to_owned(),
                config_digest: String::new(),
                add_dirs: Vec::new(),
                add_write_dirs: Vec::new(),
                launch: None,
            },
            system: vec![SystemText::of_host("You are under test.")],
            environment: Box::new({
                let environment = Arc::clone(&self.environment);
                move || {
                    environment
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clone()
                }
            }),
            mode: self.mode.clone(),
            parts: PodDeps {
                registry: Arc::new(self.registry(opening)),
                permission: Arc::clone(&self.permission),
                model: Arc::clone(&self.script) as Arc<dyn llm_worker::Model>,
                callbacks,
                outbox,
                limits: self.limits,
                pod_limits: self.pod_limits,
                context_policy: self.context_policy,
                probe: Arc::new(move |name: &str| points.reach(name)),
                clock: self.clock.clock(),
            },
        }
    }

    /// Installs all features; panics if one is not installed completely.
    fn registry(&self, opening: &Opening) -> FeatureRegistry {
        let id = FeatureId::builtin("testkit");
        let mut policy =
            CapabilityPolicy::nothing().grant(id.clone(), HostCapability::tool("*"), "testkit");
        for (feature, grants) in &self.features {
            let of = feature.descriptor().id;
            policy = grants.iter().fold(policy, |policy, grant| {
                policy.grant(of.clone(), grant.clone(), "testkit")
            });
        }
        let tools = Arc::new(Tools {
            id,
            tools: self.tools.clone(),
        });
        let builder = FeatureRegistryBuilder::new(policy).with(tools);
        let builder =
            builder.with_all(self.features.iter().map(|(feature, _)| Arc::clone(feature)));
        let services =
            HostServices::none().root(HostCapability::WORKSPACE, self.permission.workspace.clone());
        let services = services.link(opening.link()).redact(self.redactor.clone());
        let services = self.spawner.iter().fold(services, |services, spawner| {
            services.spawner(spawner.derive())
        });
        let registry = builder.install(&(self.offer)(services));
        for feature in &registry.report().features {
            assert_eq!(feature.outcome, InstallOutcome::Installed, "{feature:?}");
        }
        registry
    }

    /// Removes all planned faults and kills, as for a new process.
    pub fn revive(&self) {
        self.disk.repair();
        self.points.forget();
    }

    /// The log's records, oldest first, each with its seq.
    #[must_use]
    pub fn records(&self) -> Vec<(u64, Record)> {
        read(&self.dir)
    }

    /// The session restored from the log.
    #[must_use]
    pub fn restored(&self) -> Restored {
        Restored::from_frames(Reader::open(&self.dir).expect("a session").frames())
            .expect("a log that folds")
    }

    /// The state folded from the log.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.restored().state
    }

    /// The temporary directory, removed when this value is dropped.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A journal of the session, for crafted records; the pod must not be running.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.store().expect("a session").journal
    }
}

/// Collects every event.
fn listen(mut events: Receiver<Event>) -> Vec<Event> {
    let mut told = Vec::new();
    while let Some(event) = events.blocking_recv() {
        told.push(event);
    }
    told
}

/// The records of a session without a writer.
#[must_use]
pub fn read(dir: &Path) -> Vec<(u64, Record)> {
    let frames = Reader::open(dir).expect("a session").frames();
    let record = |frame: Result<session_store::OwnedFrame, _>| {
        let frame = frame.expect("a whole frame");
        (frame.seq, decode(&frame).expect("a body that reads"))
    };
    frames.map(record).collect()
}

/// The one feature that contributes the tools.
pub(crate) struct Tools {
    pub(crate) id: FeatureId,
    pub(crate) tools: Vec<FnTool>,
}

impl FeatureModule for Tools {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(self.id.clone());
        self.tools
            .iter()
            .fold(builder, |builder, tool| {
                let mut declared = ToolDeclaration::of(llm_worker::Tool::definition(tool).clone());
                declared.deadline_ms = u64::try_from(tool.deadline.as_millis()).unwrap_or(u64::MAX);
                declared.for_clients = tool.for_clients;
                builder.foreign_tool(declared)
            })
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        for tool in &self.tools {
            ctx.tools().register(ToolContribution::new(
                self.id.clone(),
                Arc::new(tool.clone()),
                Vec::new(),
            ))?;
        }
        Ok(())
    }
}
