//! Appends framed records durably, recovers a prefix of them, and reports what was lost.
//!
//! One session is one directory: an append-only log of JSON lines, larger payloads beside it, and the lock of its only
//! writer. This crate knows frames, bytes, flushes and files. It does not know what a record means: it checks the
//! spelling of kinds (it writes only `segment`, `seal` and `gap` itself), never parses bodies, and leaves the state
//! that a log folds to to the caller. It reads no clock and no random numbers; the clock is passed in.
//!
//! Start with [`Session::create`] or [`Session::open`], write with [`Journal::append`], read with [`Reader`]. A
//! [`Committed`] value proves that a batch is durable; only the journal creates one.
#![deny(clippy::wildcard_enum_match_arm)]

mod blob;
mod checkpoint;
mod damage;
mod disk;
mod error;
mod frame;
mod journal;
mod ops;
mod reader;
mod session;

pub use blob::{
    BLOB_BYTES, BlobError, BlobLines, BlobRef, BlobView, Blobs, Digest, LineWindow, NotADigest,
    Spool, SpoolEnd, StreamGap,
};
pub use checkpoint::{Checkpoint, MAX_CHECKPOINT_BYTES};
pub use damage::{Damage, ReadError, TailDamage};
pub use disk::{Disk, DiskFile, Op, RealDisk};
pub use error::{DiskFault, ErrorKind};
pub use frame::{
    EncodeError, FrameError, Frames, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, MAX_LINE, OwnedFrame,
    RecordId,
};
pub use journal::{Commit, Committed, Journal, MAX_QUEUE, Records, Refusal, Refused};
pub use reader::{Following, FrameIter, Reader, Tail};
pub use session::{
    Clock, OpenError, Opened, Options, Owner, Probe, Recovered, Salvaged, Session, SessionLock,
    SessionRecordIter, SessionRecords,
};
