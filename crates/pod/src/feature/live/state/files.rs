//! State that outlives its session: one file each, replaced atomically, on a thread of its own. Handles only JSON.

use super::MAX_STATE;
use crate::feature::FeatureId;
use crate::record::FeatureState;
use crate::session::stage_number;
use authority::{ErrorKind, Stamp, Workspace};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Updates that may wait for the disk.
const QUEUE: usize = 64;

/// Time that a closing pod waits for the last updates.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest file: the longest value and the fields around it.
const MAX_FILE: u64 = MAX_STATE as u64 + 4096;

type FileJob = Box<dyn FnOnce() + Send>;

/// The thread that writes state files; clones share it. It starts with the first job, and ends with the last clone or
/// when it is told to finish.
#[derive(Clone, Default)]
pub(crate) struct Keeper(Arc<Mutex<FileJobs>>);

/// A job of the keeper's thread.
#[derive(Default)]
enum FileJobs {
    #[default]
    Idle,
    Working {
        queue: SyncSender<FileJob>,
        /// Disconnects when the thread has done everything.
        done: Receiver<()>,
    },
    Finished,
}

/// The reason why a job was not queued.
pub(super) enum NotQueued {
    Full,
    Closed,
}

impl Keeper {
    pub(super) fn queue(&self, job: FileJob) -> Result<(), NotQueued> {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*jobs, FileJobs::Idle) {
            let (queue, receiver) = sync_channel::<FileJob>(QUEUE);
            let (working, done) = sync_channel::<()>(0);
            let work = move || {
                // Completing an update drops values of a feature, whose code may panic.
                receiver
                    .into_iter()
                    .for_each(|job| drop(catch_unwind(AssertUnwindSafe(job))));
                drop(working);
            };
            if thread::Builder::new()
                .name("state-files".to_owned())
                .spawn(work)
                .is_err()
            {
                return Err(NotQueued::Full);
            }
            *jobs = FileJobs::Working { queue, done };
        }
        match &*jobs {
            FileJobs::Working { queue, .. } => {
                queue.try_send(job).map_err(|refused| match refused {
                    TrySendError::Full(_) => NotQueued::Full,
                    TrySendError::Disconnected(_) => NotQueued::Closed,
                })
            }
            FileJobs::Idle | FileJobs::Finished => Err(NotQueued::Closed),
        }
    }

    /// Accepts no more jobs, and waits until queued ones are written, at most [`FINAL_WRITE_TIMEOUT`]; blocks.
    pub(crate) fn finish(&self) {
        let jobs = std::mem::replace(
            &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner),
            FileJobs::Finished,
        );
        if let FileJobs::Working { queue, done } = jobs {
            drop(queue);
            match done.recv_timeout(FINAL_WRITE_TIMEOUT) {
                Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

pub(super) struct StateFile {
    dir: Workspace,
    path: PathBuf,
    /// The number of staged updates, the same for every process: the next update removes the staged file of a dead
    /// process.
    number: u64,
    /// The file's stamp when the value in memory was read from it or written to it; none if there was no file.
    stamp: Mutex<Option<Stamp>>,
}

/// The content of a file with its stamp; none if there is no file.
pub(super) type FileContent = (Option<FeatureState>, Option<Stamp>);

/// The reason why a value was not written.
pub(super) enum NotWritten {
    /// Another process wrote meanwhile.
    Changed,
    /// The disk refused, or the grant was revoked.
    Refused(String),
}

impl StateFile {
    /// The file of a feature's state below `dir`; a feature's name becomes a directory's.
    pub(super) fn new(dir: Workspace, feature: &FeatureId, name: &str) -> Self {
        let folder = feature.to_string().replace(':', ".").replace('/', "+");
        let path = dir.project().join(folder).join(format!("{name}.json"));
        let number = stage_number(&[path.as_os_str().as_bytes()]);
        Self {
            dir,
            path,
            number,
            stamp: Mutex::default(),
        }
    }

    /// Reads the file. The content counts as known only after [`Self::adopt`].
    pub(super) fn read(&self) -> Result<FileContent, String> {
        let refused = |error: &dyn std::fmt::Display| format!("{}: {error}", self.path.display());
        let at = self.dir.inside(&self.path).map_err(|e| refused(&e))?;
        let meta = match self.dir.metadata(&at) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::FixInput => return Ok((None, None)),
            Err(error) => return Err(refused(&error)),
        };
        let file = self.dir.open_file(&at).map_err(|e| refused(&e))?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| refused(&e))?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(refused(&format!(
                "it has more than {MAX_FILE} bytes; move it away to start with an empty state"
            )));
        }
        let state = serde_json::from_slice(&bytes).map_err(|e| {
            refused(&format!(
                "it cannot be read: {e}; move it away to start with an empty state"
            ))
        })?;
        Ok((Some(state), Some(meta.stamp)))
    }

    /// The value with this stamp is now in memory: the next one may replace it.
    pub(super) fn adopt(&self, stamp: Option<Stamp>) {
        *self.stamp() = stamp;
    }

    fn stamp(&self) -> MutexGuard<'_, Option<Stamp>> {
        self.stamp.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the file, unless another process changed it since it was read or written here.
    pub(super) fn write(&self, state: &FeatureState) -> Result<(), NotWritten> {
        let refused = |error: &dyn std::fmt::Display| NotWritten::Refused(error.to_string());
        let mut bytes = serde_json::to_vec(state).map_err(|e| refused(&e))?;
        bytes.push(b'\n');
        let mut stamp = self.stamp();
        let at = self.dir.inside(&self.path).map_err(|e| refused(&e))?;
        match self
            .dir
            .stage_over(&at, *stamp, self.number, &bytes)
            .and_then(|staged| staged.publish())
        {
            Ok(ours) => {
                *stamp = Some(ours);
                Ok(())
            }
            Err(_) if self.dir.metadata(&at).ok().map(|meta| meta.stamp) != *stamp => {
                Err(NotWritten::Changed)
            }
            Err(error) => Err(refused(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    // A closing pod writes a full queue to its end, and nothing after it.
    #[test]
    fn finishing_waits_for_what_is_queued_and_takes_nothing_more() {
        let keeper = Keeper::default();
        let done = Arc::new(AtomicUsize::new(0));
        let (open, gate) = channel::<()>();
        let (begun, first) = channel::<()>();
        let count = |done: &Arc<AtomicUsize>| {
            let done = Arc::clone(done);
            Box::new(move || {
                done.fetch_add(1, Ordering::SeqCst);
            })
        };
        let held = Box::new(move || {
            begun.send(()).unwrap();
            gate.recv().unwrap();
            // An update that does not wait has ended by now.
            thread::sleep(Duration::from_millis(20));
        });
        assert!(keeper.queue(held).is_ok());
        first.recv().unwrap();
        for _ in 0..QUEUE {
            assert!(keeper.queue(count(&done)).is_ok());
        }
        assert!(matches!(keeper.queue(count(&done)), Err(NotQueued::Full)));
        // `finish` may have started to wait or not: in both cases every job is done.
        let finishing = thread::spawn({
            let keeper = keeper.clone();
            move || keeper.finish()
        });
        open.send(()).unwrap();
        finishing.join().unwrap();
        assert_eq!(done.load(Ordering::SeqCst), QUEUE);
        assert!(matches!(keeper.queue(count(&done)), Err(NotQueued::Closed)));
        keeper.finish();
    }
}
