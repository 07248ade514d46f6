//! State that outlives its session: one file each, replaced in one step, on a thread of its own.

use super::MAX_STATE;
use crate::feature::FeatureId;
use crate::session::record::FeatureState;
use authority::{ErrorKind, Stamp, Workspace};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How many updates may wait for the disk.
const QUEUE: usize = 64;

/// How long a pod that lets go waits for the last updates.
const FAREWELL: Duration = Duration::from_secs(5);

/// The longest file: the longest value, and what stands around it.
const MAX_FILE: u64 = MAX_STATE as u64 + 4096;

type Job = Box<dyn FnOnce() + Send>;

/// The thread that writes; clones share it. It starts with the first job and ends with the last clone.
#[derive(Clone, Default)]
pub(crate) struct Keeper(Arc<Mutex<Option<SyncSender<Job>>>>);

impl Keeper {
    /// Queues a job behind those before it; gives up where there is no room, or no thread.
    pub(super) fn queue(&self, job: Job) -> bool {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.is_none() {
            let (sender, receiver) = sync_channel::<Job>(QUEUE);
            // A migration is a feature's code, and may panic.
            let work = move || receiver.into_iter().for_each(|job| drop(catch_unwind(AssertUnwindSafe(job))));
            *jobs = thread::Builder::new().name("state-files".to_owned()).spawn(work).ok().map(|_| sender);
        }
        jobs.as_ref().is_some_and(|jobs| match jobs.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        })
    }

    /// Waits until what is queued was written, at most [`FAREWELL`]; blocks.
    pub(crate) fn finish(&self) {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(jobs) = jobs else { return };
        let (done, all) = sync_channel::<()>(1);
        if jobs.try_send(Box::new(move || drop(done))).is_ok() {
            match all.recv_timeout(FAREWELL) {
                Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// One state's file.
pub(super) struct StateFile {
    dir: Workspace,
    path: PathBuf,
    /// The file as it was last read or written here.
    stamp: Mutex<Option<Stamp>>,
}

/// Why a value was not written.
pub(super) enum NotWritten {
    /// Somebody else wrote meanwhile.
    Changed,
    /// The disk, or the grant.
    Refused(String),
}

impl StateFile {
    /// The file of a feature's state below `dir`; a feature's name becomes a directory's.
    pub(super) fn new(dir: Workspace, feature: &FeatureId, name: &str) -> Self {
        let folder = feature.to_string().replace(':', ".").replace('/', "+");
        let path = dir.project().join(folder).join(format!("{name}.json"));
        Self { dir, path, stamp: Mutex::default() }
    }

    /// What is there; `None` when there is nothing yet.
    pub(super) fn read(&self) -> Result<Option<FeatureState>, String> {
        let refused = |error: &dyn std::fmt::Display| format!("{}: {error}", self.path.display());
        let at = self.dir.inside(&self.path).map_err(|e| refused(&e))?;
        let meta = match self.dir.metadata(&at) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::FixInput => return Ok(None),
            Err(error) => return Err(refused(&error)),
        };
        let file = self.dir.open_file(&at).map_err(|e| refused(&e))?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| refused(&e))?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(refused(&format!("more than {MAX_FILE} bytes; move it away to start anew")));
        }
        let state = serde_json::from_slice(&bytes)
            .map_err(|e| refused(&format!("it does not read: {e}; move it away to start anew")))?;
        *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) = Some(meta.stamp);
        Ok(Some(state))
    }

    /// Replaces the file, unless somebody else changed it since it was read or written here.
    pub(super) fn write(&self, state: &FeatureState) -> Result<(), NotWritten> {
        let refused = |error: &dyn std::fmt::Display| NotWritten::Refused(error.to_string());
        let mut bytes = serde_json::to_vec(state).map_err(|e| refused(&e))?;
        bytes.push(b'\n');
        let mut stamp = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = self.path.parent() {
            let folder = self.dir.inside(folder).map_err(|e| refused(&e))?;
            self.dir.create_dirs(&folder).map_err(|e| refused(&e))?;
        }
        let at = self.dir.inside(&self.path).map_err(|e| refused(&e))?;
        let written = self.dir.stage_over(&at, *stamp, &bytes).and_then(|staged| staged.publish());
        match written {
            Ok(()) => {
                *stamp = self.dir.metadata(&at).ok().map(|meta| meta.stamp);
                Ok(())
            }
            Err(_) if self.dir.metadata(&at).ok().map(|meta| meta.stamp) != *stamp => Err(NotWritten::Changed),
            Err(error) => Err(refused(&error)),
        }
    }
}
