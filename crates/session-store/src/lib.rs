//! Append framed records durably, recover a prefix, say what was torn.
//!
//! One session is one directory: an append-only log of JSON lines, larger payloads beside it, and the lock of its
//! one writer. This crate knows frames, bytes, flushes and files. It does not know what a record means: kinds are
//! strings it checks the spelling of (its own `segment` and `seal` apart), bodies are JSON objects it never looks into, and
//! the state that a log folds to is somebody else's. It reads no clock and draws no random number; both are given.
//!
//! The way in is [`Session::create`] or [`Session::open`], the way to write is [`Journal::append`], the way to read
//! is [`Reader`]. What was durable is proved by a [`Committed`] value, which nothing else can make.
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
    BLOB_BYTES, BlobError, BlobLines, BlobRef, BlobView, Blobs, Digest, LineWindow, NotADigest, Spool, SpoolEnd,
    StreamGap,
};
pub use checkpoint::{Checkpoint, MAX_CHECKPOINT_BYTES};
pub use damage::{Class, Damage, ReadError};
pub use disk::{Disk, DiskFile, Op, RealDisk};
pub use error::{DiskFault, ErrorKind};
pub use frame::{Bad, EncodeError, Frames, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, MAX_LINE, OwnedFrame, RecordId};
pub use journal::{Commit, Committed, Journal, MAX_QUEUE, Records, Refusal, Refused};
pub use reader::{Following, FrameIter, Reader, Tail};
pub use session::{
    Clock, OpenError, Opened, Options, Owner, Past, PastFrames, Probe, Recovered, Salvaged, Session, SessionLock,
};
