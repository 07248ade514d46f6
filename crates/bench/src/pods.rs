//! A pod in this process: the built-in features, a model that asks for the same calls again and again, and counters
//! read at each request.

use crate::counting::{CountingDialect, CountingDisk, Traffic};
use async_trait::async_trait;
use authority::{Access, Ambient, SandboxMode, Workspace};
use llm_worker::effect::Outcome;
use llm_worker::model::EventSink;
use llm_worker::projection::Dialect;
use llm_worker::{ErrorKind, Model, ModelError, ModelEvent, ModelRequest, StopReason, Usage};
use pod::control::{Callbacks, HostMode, Outbox, Permission, PodLimits, RunLimits};
use pod::feature::{
    CapabilityPolicy, FeatureId, FeatureRegistry, FeatureRegistryBuilder, HostCapability,
    HostServices, PodLink,
};
use pod::host::{self, CrashCleanup, Opening, PodConfig, PodDeps, SystemText};
use pod::permission::{HostTerms, Person, Policy, SandboxState};
use pod::record::HostStarted;
use pod::session::view::ContextPolicy;
use provider::openai_chat::{Chat, Flavour};
use session_store::{Clock, Opened, Options, Reader, Session, SessionRecords};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// The counters as they stood when a request reached the model.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// When.
    pub at: Instant,
    /// When the model began to answer.
    pub marked: Instant,
    /// Flushes since the session was opened, opening included.
    pub flushes: u64,
    /// Bytes written to the session.
    pub written: u64,
    /// Bytes the request's encoder has made.
    pub encoded: u64,
    /// Bytes of this request.
    pub body: u64,
    /// Bytes of it, from its beginning, that stood in the request before it.
    pub kept: u64,
    /// Memory of this process in use, in bytes; asked at every hundredth request.
    pub private: u64,
}

/// What a model asks for until it says that it is done.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    /// Answers with calls.
    pub steps: usize,
    /// Calls in each of them.
    pub calls: usize,
    /// Lines that each call reads, of [`LINE`] bytes with their number; a call that finds nothing, if 0.
    pub lines: usize,
    /// Tokens that the model takes.
    pub window: Option<u64>,
}

/// Bytes of a line of what is read, without its number.
pub const LINE: usize = 60;

/// Lines of the file that is read.
const LINES: usize = 10_000;

/// The model's tokens are of this many bytes.
pub const BYTES_PER_TOKEN: u64 = 4;

/// How often the memory is asked for.
const ASKED: usize = 100;

/// A model that asks for harmless calls, then says that it is done.
pub struct Chain {
    asks: Asks,
    dialect: Arc<CountingDialect>,
    traffic: Arc<Traffic>,
    marks: Mutex<Vec<Mark>>,
    /// The body of the newest request.
    newest: Mutex<Vec<u8>>,
}

#[async_trait]
impl Model for Chain {
    fn name(&self) -> &str {
        "bench/chain"
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        self.dialect.clone()
    }

    fn context_window(&self) -> Option<u64> {
        self.asks.window
    }

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        let step = self.mark(&request);
        let usage = Usage {
            input: request.body().len / BYTES_PER_TOKEN,
            ..Usage::default()
        };
        let Asks {
            steps,
            calls,
            lines,
            ..
        } = self.asks;
        let gone = |_| ModelError {
            kind: ErrorKind::Cancelled,
            message: "nobody listens".to_owned(),
            help: None,
        };
        events.send(ModelEvent::Usage(usage)).await.map_err(gone)?;
        if step > steps {
            events
                .send(ModelEvent::Text("done".to_owned()))
                .await
                .map_err(gone)?;
            return events
                .send(ModelEvent::Stop(StopReason::EndTurn))
                .await
                .map_err(gone);
        }
        for index in 0..calls {
            let (name, fragment) = match lines {
                0 => ("Glob", r#"{"pattern":"*.absent"}"#.to_owned()),
                // Neighbouring calls read different lines.
                lines => {
                    let first = 1 + (step * calls + index) * lines % (LINES - lines);
                    (
                        "Read",
                        format!(r#"{{"path":"lines","offset":{first},"limit":{lines}}}"#),
                    )
                }
            };
            events
                .send(ModelEvent::CallStarted {
                    index,
                    name: name.to_owned(),
                })
                .await
                .map_err(gone)?;
            events
                .send(ModelEvent::CallArguments { index, fragment })
                .await
                .map_err(gone)?;
        }
        events
            .send(ModelEvent::Stop(StopReason::ToolUse))
            .await
            .map_err(gone)
    }
}

impl Chain {
    fn mark(&self, request: &ModelRequest) -> usize {
        let at = Instant::now();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut marks = self.marks.lock().unwrap();
        let private = match marks.len() % ASKED {
            0 => crate::machine::usage(std::process::id()).private,
            _ => 0,
        };
        let kept = self.kept(request);
        marks.push(Mark {
            at,
            marked: Instant::now(),
            flushes: count(&self.traffic.flushes),
            written: count(&self.traffic.written),
            encoded: count(&self.dialect.bytes),
            body: request.body().len,
            kept,
            private,
        });
        marks.len()
    }

    /// Bytes of the request, from its beginning, that stood in the one before it.
    fn kept(&self, request: &ModelRequest) -> u64 {
        if self.asks.window.is_none() {
            return 0;
        }
        let body = request.body().to_vec();
        let mut newest = self.newest.lock().unwrap();
        let kept = body
            .iter()
            .zip(&*newest)
            .take_while(|(one, two)| one == two)
            .count();
        *newest = body;
        kept as u64
    }
}

/// A place for one pod: a project and, in memory where there is such a place, a session.
pub struct PodPlace {
    root: TempDir,
}

impl Default for PodPlace {
    fn default() -> Self {
        Self::new()
    }
}

impl PodPlace {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        let root = crate::machine::scratch();
        std::fs::create_dir(root.path().join("project")).unwrap();
        Self { root }
    }

    /// The session's directory.
    #[must_use]
    pub fn session(&self) -> PathBuf {
        self.root.path().join("session")
    }

    /// Records of the session.
    #[must_use]
    pub fn records(&self) -> u64 {
        Reader::open(&self.session()).map_or(0, |reader| reader.durable())
    }

    /// Opens the session, making it the first time.
    #[must_use]
    pub fn open(&self, disk: &CountingDisk) -> (Opened, SessionRecords) {
        let mut options = Options::new("bench", clock());
        options.disk = Arc::new(disk.clone());
        let dir = self.session();
        if dir.exists() {
            return Session::resume(&dir, options).unwrap();
        }
        (
            Session::create(&dir, options).unwrap(),
            SessionRecords::default(),
        )
    }

    /// One run to its end: `steps` model steps of `calls` calls each, and the last answer.
    #[must_use]
    pub fn run(&self, ambient: &Ambient, steps: usize, calls: usize) -> Vec<Mark> {
        self.run_of(
            ambient,
            Asks {
                steps,
                calls,
                lines: 0,
                window: None,
            },
        )
    }

    /// One run to its end.
    #[must_use]
    pub fn run_of(&self, ambient: &Ambient, asks: Asks) -> Vec<Mark> {
        let disk = CountingDisk::default();
        let dialect = Arc::new(CountingDialect::new(Arc::new(Chat(Flavour::Compatible))));
        let traffic = disk.0.clone();
        let chain = Arc::new(Chain {
            asks,
            dialect,
            traffic,
            marks: Mutex::default(),
            newest: Mutex::default(),
        });
        let opened = self.open(&disk);
        let project = self.root.path().join("project");
        if asks.lines > 0 {
            let lines = (1..=LINES).map(|number| format!("{number:0>width$}\n", width = LINE - 1));
            std::fs::write(project.join("lines"), lines.collect::<String>()).unwrap();
        }
        let workspace = Workspace::open(ambient, &project, &project, Access::ReadWrite).unwrap();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(64)
            .build()
            .unwrap();
        let after = CrashCleanup {
            now: clock()(),
            end_survivors: &|_| Ok(0),
            files: None,
        };
        let opening = Opening::of(&self.session(), opened, &after).unwrap();
        let parts = PodDeps {
            registry: Arc::new(registry(workspace.clone(), opening.link())),
            permission: Arc::new(permission(workspace)),
            model: chain.clone(),
            callbacks: Callbacks::new(runtime.handle().clone()),
            outbox: Outbox::unwatched(),
            limits: RunLimits {
                max_steps: u32::MAX,
                tool_concurrency: 8,
                max_cost: None,
                max_tokens: None,
                max_wall: None,
            },
            pod_limits: PodLimits::default(),
            context_policy: ContextPolicy::default(),
            probe: Arc::new(|_| {}),
            clock: clock(),
        };
        let start = PodConfig {
            about: about(&project),
            system: vec![SystemText::of_host("You are measured.")],
            environment: Box::new(|| "Somewhere, some day.".to_owned()),
            mode: HostMode::Run,
            parts,
        };
        let outcome = runtime.block_on(async {
            let (actor, client, _) = host::open(opening, start).await.unwrap();
            let asks = async move {
                let end = client.submit("Go.").await.unwrap();
                client.close("done").await;
                end
            };
            let (end, over) = tokio::join!(asks, actor.run(CancellationToken::new()));
            over.result.unwrap();
            end.outcome
        });
        assert_eq!(outcome, Outcome::Done);
        let marks = chain.marks.lock().unwrap().clone();
        assert_eq!(marks.len(), asks.steps + 1);
        marks
    }
}

/// Copies a session that no process holds.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The built-in features without a way to start children.
#[must_use]
pub fn registry(workspace: Workspace, link: PodLink) -> FeatureRegistry {
    let grants = [
        ("files", HostCapability::WRITE_WORKSPACE),
        ("search", HostCapability::READ_WORKSPACE),
    ];
    let policy = grants
        .into_iter()
        .fold(CapabilityPolicy::nothing(), |policy, (name, files)| {
            let id = FeatureId::builtin(name);
            policy
                .grant(id.clone(), HostCapability::tool("*"), "bench")
                .grant(id, files, "bench")
        });
    let services = HostServices::none()
        .root(HostCapability::WORKSPACE, workspace)
        .link(link);
    FeatureRegistryBuilder::new(policy)
        .with_all(builtins::all(|remedy| format!("{remedy:?}")))
        .install(&services)
}

fn permission(workspace: Workspace) -> Permission {
    let now = SandboxState {
        mode: SandboxMode::WorkspaceWrite,
        enforced: true,
    };
    let terms = HostTerms {
        read: "Read",
        shell: "Bash",
        jobs: "JobStart",
        run: |command| serde_json::json!({ "command": command }).to_string(),
        remedy: |remedy| format!("{remedy:?}"),
    };
    Permission {
        policy: Policy::new(terms, Vec::new()),
        workspace,
        sandbox: now,
        person: Person::Never,
    }
}

fn about(project: &Path) -> HostStarted {
    HostStarted {
        version: "0".to_owned(),
        pid: 1,
        project: project.display().to_string(),
        cwd: project.display().to_string(),
        sandbox: "workspace-write".to_owned(),
        config_digest: String::new(),
        add_dirs: Vec::new(),
        add_write_dirs: Vec::new(),
        launch: None,
    }
}

/// Ticks a microsecond at each look.
fn clock() -> Clock {
    let ticks = AtomicU64::new(1_790_000_000_000_000);
    Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed))
}
