//! The messages of a commit: the proof that a batch is durable, and the refusal that returns the batch.

use std::fmt;
use std::future::Future;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::error::{DiskFault, ErrorKind};
use crate::frame::{EncodeError, Encoder, Frames, RecordId};

/// Records that a caller passes to [`Journal::append`](crate::Journal::append) as one atomic batch: either all of them
/// are in the log or none.
pub trait Records: Send + 'static {
    /// Writes the records, in order. Called on the journal thread, again if the batch is appended again; it must
    /// give the same records each time. A panic refuses the batch.
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError>;

    /// The lowest format of a segment that may hold these records, 1 or 2. A batch that asks for more than the newest
    /// segment has starts a new segment, so that a program that reads only lower formats refuses the session instead of
    /// skipping the records. Called once, by the append.
    fn format(&self) -> u32 {
        1
    }
}

/// Proof that the batch is durable. Only the journal creates it; it cannot be cloned, mapped or deserialized.
pub struct Committed<T> {
    batch: T,
    place: BatchPosition,
}

/// The records of a committed batch.
#[derive(Clone, Copy)]
pub(crate) struct BatchPosition {
    first: u64,
    last: RecordId,
    time: u64,
    /// The seal record, if the segment was sealed right after this batch.
    pub(crate) seal: Option<RecordId>,
}

impl<T> Committed<T> {
    /// The committed batch.
    pub fn get(&self) -> &T {
        &self.batch
    }

    /// The committed batch; consumes the proof.
    pub fn into_inner(self) -> T {
        self.batch
    }

    /// The seqs of the batch's records, in order.
    pub fn seqs(&self) -> RangeInclusive<u64> {
        self.place.first..=self.place.last.seq
    }

    /// The time in the batch's records, in microseconds since 1970.
    pub fn time(&self) -> u64 {
        self.place.time
    }

    /// The last record of the batch, for [`Journal::checkpoint`](crate::Journal::checkpoint).
    pub fn mark(&self) -> RecordId {
        self.place.last
    }

    /// The seal record, if the segment was sealed right after this batch: with a checkpoint there, no record of the
    /// segment is read again.
    pub fn seal(&self) -> Option<RecordId> {
        self.place.seal
    }
}

impl<T> fmt::Debug for Committed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed")
            .field("seqs", &self.seqs())
            .finish_non_exhaustive()
    }
}

/// A batch that was not committed, returned to the caller. `batch` is `None` only when the journal thread died with it.
///
/// If the process crashes before the next successful commit, recovery may still find the whole batch: bytes that
/// reached the disk before the refusal cannot always be removed.
pub struct Refused<T> {
    pub batch: Option<T>,
    pub why: Refusal,
}

/// The reason why a batch was not committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The disk refused; the log was rolled back to the commit before.
    #[error("the journal cannot be written: {0}")]
    Disk(DiskFault),
    /// No space or quota left. A `suspended` record still fits through `append_reserved`.
    #[error("the journal cannot be written, because the disk is full: {0}")]
    Full(DiskFault),
    /// [`MAX_QUEUE`](crate::MAX_QUEUE) batches are waiting already.
    #[error("the journal's queue is full")]
    Busy,
    /// An earlier batch was refused and its caller has not read the result yet.
    #[error("an earlier batch was refused")]
    Behind,
    #[error("the journal is closed")]
    Closed,
    /// A line over 1 MiB or a batch over its bounds.
    #[error("{0}")]
    TooLarge(EncodeError),
    #[error("{0}")]
    Encode(EncodeError),
}

impl Refusal {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Disk(fault) | Self::Full(fault) => fault.kind(),
            Self::Busy | Self::Behind => ErrorKind::Retry,
            Self::Closed => ErrorKind::Unavailable,
            Self::TooLarge(error) | Self::Encode(error) => error.kind(),
        }
    }

    /// Whether the batch itself is the reason, not the disk or another batch.
    pub(super) fn unstorable(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::Encode(_))
    }
}

impl<T> Refused<T> {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.why.kind()
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T> std::error::Error for Refused<T> {}

type CommitResult<T> = Result<Committed<T>, (Refused<T>, Option<UnseenRefusal>)>;

/// The result of [`Journal::append`](crate::Journal::append), to be awaited. Dropping it loses the result, not the
/// batch.
#[must_use = "a commit that nobody waits for proves nothing"]
pub struct Commit<T> {
    answer: oneshot::Receiver<CommitResult<T>>,
}

impl<T> Commit<T> {
    /// Waits on this thread, which must not be one that runs async tasks.
    pub fn wait(self) -> Result<Committed<T>, Refused<T>> {
        open(self.answer.blocking_recv())
    }
}

impl<T> Future for Commit<T> {
    type Output = Result<Committed<T>, Refused<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(context).map(open)
    }
}

/// Unwraps the result; a refusal counts as seen from then on.
fn open<T>(
    answer: Result<CommitResult<T>, oneshot::error::RecvError>,
) -> Result<Committed<T>, Refused<T>> {
    match answer {
        Ok(Ok(done)) => Ok(done),
        Ok(Err((refused, _unseen))) => Err(refused),
        Err(_) => Err(Refused {
            batch: None,
            why: Refusal::Closed,
        }),
    }
}

/// Counts one refusal whose result was not read yet; dropped when it is read, or with its commit.
pub(crate) struct UnseenRefusal(Arc<AtomicUsize>);

impl UnseenRefusal {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }

    pub(crate) fn any(count: &AtomicUsize) -> bool {
        count.load(Ordering::SeqCst) > 0
    }
}

impl Drop for UnseenRefusal {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A batch in the queue.
pub(crate) struct QueueEntry {
    pub(crate) batch: Box<dyn QueuedBatch>,
    pub(crate) reserved: bool,
    /// The lowest format of a segment that may hold the batch.
    pub(crate) format: u32,
    pub(crate) generation: u64,
}

pub(crate) trait QueuedBatch: Send {
    fn encode(&self, encoder: &mut Encoder) -> Result<BatchPosition, EncodeError>;
    fn commit(self: Box<Self>, place: BatchPosition);
    fn refuse(self: Box<Self>, why: Refusal);
    /// Counts the refusal that will follow, before any result is sent.
    fn count_refusal(&mut self);
}

pub(crate) struct PendingBatch<T> {
    batch: T,
    answer: oneshot::Sender<CommitResult<T>>,
    unseen: Arc<AtomicUsize>,
    refusal_guard: Option<UnseenRefusal>,
}

impl<T: Records> PendingBatch<T> {
    pub(crate) fn new(batch: T, unseen: Arc<AtomicUsize>) -> (Self, Commit<T>) {
        let (answer, receiver) = oneshot::channel();
        (
            Self {
                batch,
                answer,
                unseen,
                refusal_guard: None,
            },
            Commit { answer: receiver },
        )
    }

    pub(crate) fn refuse(self, why: Refusal) {
        Box::new(self).refuse(why);
    }
}

impl<T: Records> QueuedBatch for PendingBatch<T> {
    fn encode(&self, encoder: &mut Encoder) -> Result<BatchPosition, EncodeError> {
        let bytes = encoder.bytes.len();
        let seq = encoder.seq;
        let done = catch_unwind(AssertUnwindSafe(|| {
            encoder.batch(|frames| self.batch.encode(frames))
        }));
        let seqs = done.unwrap_or_else(|_| {
            encoder.forget(bytes, seq);
            Err(EncodeError::Own("the batch's encoder panicked".to_owned()))
        })?;
        let last = RecordId {
            seq: *seqs.end(),
            crc: encoder.crc,
        };
        Ok(BatchPosition {
            first: *seqs.start(),
            last,
            time: encoder.time,
            seal: None,
        })
    }

    fn commit(self: Box<Self>, place: BatchPosition) {
        // An error means that the caller dropped its commit: the batch is durable all the same.
        drop(self.answer.send(Ok(Committed {
            batch: self.batch,
            place,
        })));
    }

    fn refuse(mut self: Box<Self>, why: Refusal) {
        if !why.unstorable() {
            self.count_refusal();
        }
        let Self {
            batch,
            answer,
            refusal_guard,
            ..
        } = *self;
        drop(answer.send(Err((
            Refused {
                batch: Some(batch),
                why,
            },
            refusal_guard,
        ))));
    }

    fn count_refusal(&mut self) {
        let unseen = &self.unseen;
        self.refusal_guard
            .get_or_insert_with(|| UnseenRefusal::new(unseen));
    }
}
