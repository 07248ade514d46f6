//! Appending batches; the result is a proof of durability. Does not depend on the meaning of records.
//!
//! [`Journal`] is the handle, [`writer`] the thread that writes, [`shared`] the state of both, [`commit`] the messages
//! and results, [`log`] the end of the log.

mod commit;
mod log;
mod shared;
mod writer;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

pub use commit::{Commit, Committed, Records, Refusal, Refused};

pub(crate) use log::LogEnd;
pub(crate) use shared::Shared;
pub(crate) use writer::{Writer, WriterParts};

use crate::checkpoint::{Checkpoint, MAX_CHECKPOINT_BYTES};
use crate::disk::Op;
use crate::error::DiskFault;
use crate::frame::{EncodeError, RecordId};
use crate::session::segment;
use commit::{PendingBatch, QueueEntry, UnseenRefusal};
use shared::WriterRequest;

/// Batches that may wait for the writer; one more is [`Refusal::Busy`].
pub const MAX_QUEUE: usize = 1024;

/// Appends batches to one open session, from any thread; clones share it. Dropping the last clone closes the session.
///
/// ```
/// use session_store::{EncodeError, Frames, Options, Reader, Records, Session};
/// use std::sync::Arc;
///
/// /// One record of the kind `note`.
/// struct Note(&'static str);
///
/// impl Records for Note {
///     fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
///         frames.record("note", 1, &serde_json::json!({"text": self.0}))?;
///         Ok(())
///     }
/// }
///
/// let parent = tempfile::tempdir()?;
/// let session = parent.path().join("session");
/// let clock = Arc::new(|| 1_790_000_000_000_000); // microseconds since 1970; a program gives its wall clock
/// let opened = Session::create(&session, Options::new("an-id", clock))?;
///
/// // Queued by the call. The answer comes when the record is on disk, as a proof that nothing else can make.
/// let committed = opened.journal.append(Note("hello")).wait().map_err(|refused| refused.to_string())?;
/// assert_eq!(opened.journal.durable(), *committed.seqs().end());
/// opened.journal.close();
///
/// // Seq 1 is the record that opens the segment.
/// assert_eq!(committed.seqs(), 2..=2);
/// assert_eq!(Reader::open(&session)?.durable(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    queue: SyncSender<WriterRequest>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Journal {
    pub(crate) fn start(writer: Writer, shared: Arc<Shared>) -> Result<Self, DiskFault> {
        let (queue, messages) = sync_channel(MAX_QUEUE);
        let path = writer.directory().to_path_buf();
        let thread = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&messages));
        let thread = thread.map_err(|e| DiskFault::new(Op::Open, &path, &e))?;
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                queue,
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Queues one atomic batch. It is queued by this call, not by polling; batches commit in the order of the calls.
    ///
    /// A batch that can never be stored ([`Refusal::TooLarge`], [`Refusal::Encode`]) is refused alone. When any other
    /// was refused, those behind it are refused too ([`Refusal::Behind`]) until the callers have read the result of
    /// every refused commit, so that nothing is committed on top of a batch that is missing. After that, appending
    /// again is the attempt to resume. Called from any thread; never waits.
    pub fn append<T: Records>(&self, batch: T) -> Commit<T> {
        self.queue(batch, false)
    }

    /// Like [`append`](Self::append), for the record that says why nothing else can be written: when the disk is
    /// full, the session's 64 KiB reserve is freed for it, and it does not wait behind refusals. It does not end
    /// the suspension.
    pub fn append_reserved<T: Records>(&self, batch: T) -> Commit<T> {
        self.queue(batch, true)
    }

    fn queue<T: Records>(&self, batch: T, reserved: bool) -> Commit<T> {
        let shared = &self.inner.shared;
        let generation = shared.generation.load(Ordering::SeqCst);
        let format = batch.format();
        let (pending, commit) = PendingBatch::new(batch, Arc::clone(&shared.unseen));
        if format > *segment::FORMATS.end() {
            pending.refuse(Refusal::Encode(EncodeError::Format(format)));
            return commit;
        }
        if !reserved && UnseenRefusal::any(&shared.unseen) {
            pending.refuse(Refusal::Behind);
            return commit;
        }
        let entry = QueueEntry {
            batch: Box::new(pending),
            reserved,
            format,
            generation,
        };
        match self.inner.queue.try_send(WriterRequest::Append(entry)) {
            Ok(()) => {}
            Err(TrySendError::Full(WriterRequest::Append(entry))) => {
                entry.batch.refuse(Refusal::Busy)
            }
            Err(TrySendError::Disconnected(WriterRequest::Append(entry))) => {
                entry.batch.refuse(Refusal::Closed)
            }
            // The request was an append.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
        commit
    }

    /// Stores the caller's state after a committed record as a checkpoint. `version` is the version of the caller's
    /// format. The next opening of the session returns both or nothing: a missing, damaged or older checkpoint only
    /// makes opening slower. A checkpoint over 64 MiB is not stored, nor one when the queue is full. Never waits.
    pub fn checkpoint(&self, mark: RecordId, version: u32, bytes: Vec<u8>) {
        if bytes.len() <= MAX_CHECKPOINT_BYTES {
            // No caller waits for the result.
            drop(
                self.inner
                    .queue
                    .try_send(WriterRequest::Checkpoint(Checkpoint::new(
                        mark, version, bytes,
                    ))),
            );
        }
    }

    /// The durable seq: every record up to it survives any crash.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.inner.shared.durable.load(Ordering::Acquire)
    }

    /// This writer's epoch, in every record it writes.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.inner.shared.epoch
    }

    /// Whether the disk refused the last ordinary batch that reached it.
    #[must_use]
    pub fn suspended(&self) -> bool {
        self.inner.shared.suspended.load(Ordering::Acquire)
    }

    /// Flushes (`fdatasync` and `fsync`) of this session since it was opened, opening and blobs included.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.inner.shared.flushes.load(Ordering::Relaxed)
    }

    /// Commits what is queued, ends the thread and releases the lock. Later batches are [`Refusal::Closed`].
    pub fn close(&self) {
        self.inner.close();
    }
}

impl Inner {
    fn close(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // A batch that owns the last handle drops it on the writer's own thread, which ends by itself then.
        let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id())
        else {
            return;
        };
        // If the thread has ended already, the join returns at once.
        drop(self.queue.send(WriterRequest::Close));
        if thread.join().is_err() {
            self.shared.suspended.store(true, Ordering::Release);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("epoch", &self.epoch())
            .field("durable", &self.durable())
            .finish_non_exhaustive()
    }
}
