//! What the agent asks of the program that it is part of: pods by name. Each call may block for as long as a pod takes to
//! start.

use client::ClientError;
use std::path::{Path, PathBuf};

/// A pod that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedPod {
    pub name: String,
    /// Where its socket is.
    pub dir: PathBuf,
}

/// A pod that a client can open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedPod {
    pub name: String,
    /// Its working directory, absolute.
    pub cwd: String,
    /// The beginning of its first input.
    pub title: Option<String>,
    /// When it last recorded something, as RFC 3339 has it.
    pub updated: Option<String>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRefusal {
    /// There is no such pod.
    pub is_unknown: bool,
    /// What failed, on what and why, in one line.
    pub message: String,
    /// The next step.
    pub help: Option<String>,
}

impl PodRefusal {
    /// A refusal with what to do about it.
    #[must_use]
    pub fn new(message: impl Into<String>, help: Option<String>) -> Self {
        Self {
            is_unknown: false,
            message: message.into(),
            help,
        }
    }

    /// There is no pod of this name.
    #[must_use]
    pub fn unknown(name: &str) -> Self {
        Self {
            is_unknown: true,
            message: format!("there is no session `{name}`"),
            help: Some("session/list or `yoi ls` lists the sessions".to_owned()),
        }
    }
}

/// The pods of a user.
pub trait PodOpener: Send + Sync + 'static {
    /// Creates a pod that works in this directory and stays, and starts it.
    ///
    /// # Errors
    /// The directory cannot be used, or the pod cannot start.
    fn create(&self, cwd: &Path) -> Result<OpenedPod, PodRefusal>;

    /// The pod of this name, started if it does not run; with a directory, only if it works there.
    ///
    /// # Errors
    /// There is none, it works elsewhere, or it cannot start.
    fn open(&self, name: &str, cwd: Option<&Path>) -> Result<OpenedPod, PodRefusal>;

    /// Stops a pod in good order and starts it again in this mode of the sandbox.
    ///
    /// # Errors
    /// It goes on as it was, or was stopped and cannot start.
    fn restart(&self, name: &str, mode: &str) -> Result<(), PodRefusal>;

    /// The newest pods first, at most `most`; with a directory, those that work there.
    ///
    /// # Errors
    /// They cannot be listed.
    fn list(&self, cwd: Option<&Path>, most: usize) -> Result<Vec<ListedPod>, PodRefusal>;

    /// The text that a file of this pod had before a change, by the digest in its record. None if it is not kept, is no
    /// text or has more than `most` bytes.
    fn text_before(&self, name: &str, digest: &str, most: u64) -> Option<String>;

    /// The words for what failed between a client and this pod.
    fn explain(&self, name: &str, error: ClientError) -> PodRefusal;
}
