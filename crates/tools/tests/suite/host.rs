//! A project in a temporary directory and a host that takes note.

use async_trait::async_trait;
use authority::{Access, Ambient, Workspace};
use llm_worker::tool::{CallHost, DirectoryMove, Excerpt, FileChange, LineRange};
use llm_worker::{CallId, ErrorKind, ToolContext, ToolError, ToolOutput, ToolResult};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tools::PathRemedy;

/// A host's words of a remedy.
pub(crate) fn words(remedy: PathRemedy<'_>) -> String {
    format!("try {remedy:?}")
}

/// A file's change as the host was told, and what the file held at that moment.
pub(crate) struct Told {
    pub(crate) change: FileChange,
    pub(crate) held: Option<Vec<u8>>,
}

#[derive(Default)]
pub(crate) struct FakeHost {
    pub(crate) output: Mutex<Vec<u8>>,
    pub(crate) told: Mutex<Vec<Told>>,
    pub(crate) moved: Mutex<Vec<DirectoryMove>>,
    pub(crate) warned: Mutex<Vec<String>>,
    pub(crate) earlier: Option<Excerpt>,
    pub(crate) asked: Mutex<Vec<(String, LineRange)>>,
    pub(crate) refuses_changes: bool,
    pub(crate) refuses_output: bool,
    /// What somebody else does while a change is recorded.
    pub(crate) meanwhile: Option<fn(&Path)>,
}

#[async_trait]
impl CallHost for FakeHost {
    fn write_output(&self, bytes: &[u8]) -> Result<(), ToolError> {
        if self.refuses_output {
            return Err(ToolError::new(ErrorKind::Unavailable, "the disk is full"));
        }
        self.output.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn warn(&self, text: &str) {
        self.warned.lock().unwrap().push(text.to_owned());
    }

    fn read_output(&self, handle: &str, window: LineRange) -> Result<Excerpt, ToolError> {
        self.asked.lock().unwrap().push((handle.to_owned(), window));
        let unknown = || ToolError::new(ErrorKind::FixInput, "no such handle");
        self.earlier.clone().ok_or_else(unknown)
    }

    async fn file_changing(&self, change: FileChange) -> Result<u64, ToolError> {
        if self.refuses_changes {
            return Err(ToolError::new(
                ErrorKind::Unavailable,
                "the journal is suspended",
            ));
        }
        // Committing takes time, in which other calls go on.
        tokio::task::yield_now().await;
        let held = std::fs::read(&change.path).ok();
        if let Some(meanwhile) = self.meanwhile {
            meanwhile(&change.path);
        }
        self.told.lock().unwrap().push(Told { change, held });
        Ok(1)
    }

    async fn directory_moving(&self, moving: DirectoryMove) -> Result<(), ToolError> {
        if self.refuses_changes {
            return Err(ToolError::new(
                ErrorKind::Unavailable,
                "the journal is suspended",
            ));
        }
        tokio::task::yield_now().await;
        if let Some(meanwhile) = self.meanwhile {
            meanwhile(&moving.to);
        }
        self.moved.lock().unwrap().push(moving);
        Ok(())
    }
}

impl FakeHost {
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warned.lock().unwrap().clone()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }
}

pub(crate) struct Project {
    pub(crate) dir: TempDir,
}

impl Project {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let project = Self {
            dir: TempDir::new().unwrap(),
        };
        for (path, bytes) in files {
            project.put(path, bytes);
        }
        project
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> String {
        std::fs::read(self.root().join(path))
            .unwrap()
            .escape_ascii()
            .to_string()
    }

    pub(crate) fn workspace(&self, access: Access) -> Workspace {
        Workspace::open(&ambient(), &self.root(), &self.root(), access).unwrap()
    }

    /// Every name below the root, for finding what was left behind.
    pub(crate) fn names(&self) -> Vec<String> {
        fn below(dir: &Path, names: &mut Vec<String>) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                names.push(
                    path.file_name()
                        .unwrap()
                        .as_bytes()
                        .escape_ascii()
                        .to_string(),
                );
                if path.is_dir() && !path.is_symlink() {
                    below(&path, names);
                }
            }
        }
        let mut names = Vec::new();
        below(&self.root(), &mut names);
        names.sort();
        names
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a test is its own composition root"
)]
pub(crate) fn ambient() -> Ambient {
    ambient::claim()
}

pub(crate) fn context(host: &Arc<FakeHost>) -> ToolContext {
    ToolContext {
        call: CallId::new(1).unwrap(),
        cancel: CancellationToken::new(),
        deadline: Duration::from_secs(600),
        host: host.clone(),
    }
}

pub(crate) fn cancelled() -> ToolContext {
    let cx = context(&Arc::default());
    cx.cancel.cancel();
    cx
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Arguments as a host parses them.
pub(crate) fn args<A: serde::de::DeserializeOwned>(json: serde_json::Value) -> A {
    serde_json::from_value(json).unwrap()
}

#[track_caller]
pub(crate) fn ok(result: ToolResult) -> ToolOutput {
    let output = result.unwrap();
    assert!(
        output.content.len() <= tools::CONTENT_MAX,
        "{} bytes",
        output.content.len()
    );
    assert!(output.summary.len() <= tools::SUMMARY_MAX && !output.summary.contains('\n'));
    output
}

#[track_caller]
pub(crate) fn failed(result: ToolResult, kind: ErrorKind) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind, kind, "{}", error.message);
    assert!(error.message.len() <= tools::SUMMARY_MAX && !error.message.contains('\n'));
    error.message
}
