//! A directory, features installed over it, and a host that takes note of file changes.

use authority::{Access, Workspace};
use llm_worker::tool::{CallHost, DirectoryMove, Excerpt, FileChange, LineRange, Prepared};
use llm_worker::{CallId, ErrorKind, ToolContext, ToolError, ToolOutput, ToolResult};
use pod::feature::{
    CapabilityPolicy, FeatureId, FeatureModule, FeatureRegistry, FeatureRegistryBuilder,
    HostCapability, HostServices, InstallOutcome,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;

/// 2026-01-31T12:00:00Z.
pub(crate) const NOON: u64 = 1_769_860_800;

/// What somebody else does while a change is recorded.
type Meanwhile = Box<dyn Fn(&Path) + Send + Sync>;

/// The host's side of every call.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) told: Mutex<Vec<FileChange>>,
    pub(crate) moved: Mutex<Vec<DirectoryMove>>,
    pub(crate) refuses_from: Option<usize>,
    pub(crate) meanwhile: Option<Meanwhile>,
}

#[async_trait::async_trait]
impl CallHost for Recorder {
    fn write_output(&self, _: &[u8]) -> Result<(), ToolError> {
        panic!("these tools answer small things")
    }

    fn read_output(&self, _: &str, _: LineRange) -> Result<Excerpt, ToolError> {
        panic!("nobody asks")
    }

    async fn file_changing(&self, change: FileChange) -> Result<u64, ToolError> {
        // Recording takes time, in which other calls go on.
        tokio::task::yield_now().await;
        assert_eq!(
            std::fs::read(&change.path).ok(),
            change.before,
            "told before it happens: {}",
            change.path.display()
        );
        if self
            .refuses_from
            .is_some_and(|from| self.told.lock().unwrap().len() >= from)
        {
            return Err(ToolError::new(
                ErrorKind::Unavailable,
                "the journal is suspended",
            ));
        }
        if let Some(meanwhile) = &self.meanwhile {
            meanwhile(&change.path);
        }
        self.told.lock().unwrap().push(change);
        Ok(1)
    }

    async fn directory_moving(&self, moving: DirectoryMove) -> Result<(), ToolError> {
        tokio::task::yield_now().await;
        assert!(
            moving.from.is_dir() && !moving.to.exists(),
            "told before it happens: {moving:?}"
        );
        if self
            .refuses_from
            .is_some_and(|from| self.told.lock().unwrap().len() >= from)
        {
            return Err(ToolError::new(
                ErrorKind::Unavailable,
                "the journal is suspended",
            ));
        }
        self.moved.lock().unwrap().push(moving);
        Ok(())
    }
}

/// Features over a directory.
pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) registry: FeatureRegistry,
    pub(crate) host: Arc<Recorder>,
}

/// A wall clock that tests set.
#[derive(Clone)]
pub(crate) struct Seconds(pub(crate) Arc<AtomicU64>);

impl Seconds {
    pub(crate) fn noon() -> Self {
        Self(Arc::new(AtomicU64::new(NOON)))
    }

    pub(crate) fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> Arc<dyn Fn() -> SystemTime + Send + Sync> {
        let seconds = Arc::clone(&self.0);
        Arc::new(move || UNIX_EPOCH + Duration::from_secs(seconds.load(Ordering::Relaxed)))
    }
}

/// A feature with what it is granted.
pub(crate) type Granted = (Arc<dyn FeatureModule>, Vec<HostCapability>);

pub(crate) fn policy(features: &[Granted]) -> CapabilityPolicy {
    let held = |(module, held): &Granted| {
        let id: FeatureId = module.descriptor().id;
        held.iter()
            .cloned()
            .map(move |capability| (id.clone(), capability))
            .collect::<Vec<_>>()
    };
    let rows = features.iter().flat_map(held);
    rows.fold(CapabilityPolicy::nothing(), |policy, (id, capability)| {
        policy.grant(id, capability, "test")
    })
}

pub(crate) fn root(path: &Path, access: Access) -> Workspace {
    Workspace::open(&ambient::claim(), path, path, access).unwrap()
}

impl Rig {
    /// Installs features; each root is a directory of its name.
    pub(crate) fn new(features: Vec<Granted>, roots: &[&'static str]) -> Self {
        let rig = Self::with(features, roots, Recorder::default());
        let report = rig.registry.report();
        assert!(
            report
                .features
                .iter()
                .all(|f| f.outcome == InstallOutcome::Installed),
            "{report:#?}"
        );
        rig
    }

    pub(crate) fn with(features: Vec<Granted>, roots: &[&'static str], host: Recorder) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let offer = |services: HostServices, name: &&'static str| {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).unwrap();
            services.root(*name, root(&path, Access::ReadWrite))
        };
        let services = roots.iter().fold(HostServices::none(), offer);
        let builder = FeatureRegistryBuilder::new(policy(&features));
        let registry = builder
            .with_all(features.into_iter().map(|(module, _)| module))
            .install(&services);
        Self {
            dir,
            registry,
            host: Arc::new(host),
        }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    pub(crate) fn text(&self, below: &str) -> String {
        std::fs::read_to_string(self.path(below)).unwrap_or_else(|error| panic!("{below}: {error}"))
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        self.registry
            .tools()
            .definitions()
            .into_iter()
            .map(|definition| definition.name)
            .collect()
    }

    pub(crate) fn prepare(&self, tool: &str, arguments: &Value) -> Result<Prepared, String> {
        let tool = &self.registry.tools().get(tool).unwrap().tool;
        tool.prepare(&arguments.to_string())
            .map_err(|error| error.to_string())
    }

    pub(crate) fn context(&self) -> ToolContext {
        ToolContext {
            call: CallId::new(1).unwrap(),
            cancel: CancellationToken::new(),
            deadline: Duration::from_secs(60),
            host: Arc::clone(&self.host) as Arc<dyn CallHost>,
        }
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let prepared = self.prepare(tool, &arguments).unwrap();
        block_on(prepared.run(self.context()))
    }

    pub(crate) fn ok(&self, tool: &str, arguments: Value) -> ToolOutput {
        let shown = arguments.to_string();
        self.call(tool, arguments)
            .unwrap_or_else(|error| panic!("{tool} {shown}: {error}"))
    }

    /// The words of a refusal of this kind.
    pub(crate) fn refused(&self, tool: &str, arguments: Value, kind: ErrorKind) -> String {
        let error = self.call(tool, arguments.clone()).unwrap_err();
        assert_eq!(error.kind, kind, "{tool} {arguments}: {error}");
        error.message
    }

    /// Every file below, relative, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        fn below(base: &Path, dir: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    below(base, &path, found);
                    found.push(format!("{}/", path.strip_prefix(base).unwrap().display()));
                } else {
                    found.push(path.strip_prefix(base).unwrap().display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        below(self.dir.path(), self.dir.path(), &mut found);
        found.sort();
        found
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
