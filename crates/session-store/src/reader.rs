//! Reading a log back, beside its writer and without its lock.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::blob::BlobView;
use crate::error::{DiskFault, ErrorKind};
use crate::frame::{Bad, OwnedFrame};
use crate::session::Class;

/// A look at a session's log. Takes no lock and sees what was durable when it was opened.
#[derive(Debug)]
pub struct Reader {}

/// The frames of a log in order, each checked; ends after the first error.
#[derive(Debug)]
pub struct FrameIter {}

/// The first bad record of a log, among those that had been durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} at byte {offset} of {}: {bad}; lost: {} to {}", segment.display(), lost.start(), lost.end())]
pub struct Damage {
    /// The seq that stood there.
    pub seq: u64,
    /// The file.
    pub segment: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What is wrong.
    pub bad: Bad,
    /// Known to have been durable and not readable in sequence any more.
    pub lost: RangeInclusive<u64>,
}

/// Why reading stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A durable record is damaged.
    #[error("{0}")]
    Damaged(Damage),
    /// There is no session in this directory.
    #[error("there is no session in {}", .0.display())]
    NoSuch(PathBuf),
    /// The disk refused.
    #[error("{0}")]
    Disk(#[from] DiskFault),
}

impl ReadError {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged(_) => ErrorKind::Corrupt,
            Self::NoSuch(_) => ErrorKind::FixInput,
            Self::Disk(fault) => fault.kind(),
        }
    }
}

/// What stands behind the last durable record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Clean,
    /// A writer holds the session: these bytes are being written.
    BeingWritten(u64),
    /// Whole batches that were not yet known to be durable; recovery keeps them. Bytes.
    Unproven(u64),
    /// Recovery will cut these bytes.
    Cut(Class, u64),
}

impl Reader {
    /// Opens the log of the session in `dir`.
    pub fn open(_dir: &Path) -> Result<Self, ReadError> {
        todo!()
    }

    /// The last seq this reader shows.
    #[must_use]
    pub fn durable(&self) -> u64 {
        todo!()
    }

    /// Every record from the first to [`durable`](Self::durable).
    #[must_use]
    pub fn frames(&self) -> FrameIter {
        todo!()
    }

    /// What stands behind the last durable record. Reads the whole log.
    pub fn tail(&self) -> Result<Tail, ReadError> {
        todo!()
    }

    /// The session's blobs.
    #[must_use]
    pub fn blobs(&self) -> BlobView {
        todo!()
    }
}

impl Iterator for FrameIter {
    type Item = Result<OwnedFrame, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
