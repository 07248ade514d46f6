//! The pod behind a socket, as far as its clients can reach it.

use super::message::{HostFacts, ReloadReport, Undone};
use crate::exit::Failure;
use pod::control::{BetweenTurns, Client};
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Undoes the file changes after a record, in the pod of this directory and name.
pub(crate) type UndoInPod = fn(&Path, &str, u64, BetweenTurns, &Handle) -> Undone;

/// The end of a pod: why it was not an orderly one.
pub(crate) type PodEnd = Result<(), Failure>;

/// What clients of a pod can reach.
pub(crate) struct LivePod {
    pub(crate) client: Client,
    pub(crate) dir: PathBuf,
    pub(crate) name: String,
    /// Undoes file changes of a pod of this process.
    pub(crate) undo: UndoInPod,
    pub(crate) facts: HostFacts,
    pub(crate) reloads: watch::Receiver<ReloadReport>,
    /// The runtime of the control thread.
    pub(crate) runtime: Handle,
    /// How the pod ended, once it has.
    pub(crate) end: watch::Receiver<Option<PodEnd>>,
}
