//! Blobs: payloads too large for a line, named by the digest of their bytes.
//!
//! A blob is written to a temporary file, flushed, renamed, and its directory flushed; only then may a record name it.

mod quota;
mod spool;
mod store;
mod view;

pub use protocol::blob::{BlobRef, Digest, NotADigest, StreamGap};
pub use quota::BLOB_BYTES;
pub use spool::{Spool, SpoolEnd};
pub use store::Blobs;
pub use view::BlobView;

use crate::error::{DiskFault, ErrorKind};

/// The lines of a blob to read; for [`BlobView::lines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineWindow {
    /// From this line on, counted from 1.
    From(u64),
    Tail,
}

/// Lines read from a blob by [`BlobView::lines`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobLines {
    /// The number of the first line, from 1.
    pub first: u64,
    /// Raw bytes, each without its line break; cut at the caller's bound.
    pub lines: Vec<Vec<u8>>,
    pub total: u64,
    /// The byte bound cut the last line shown (with `Tail`: the first) or left lines out.
    pub cut: bool,
}

/// Why a blob was not stored or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    #[error("{0}")]
    Disk(#[from] DiskFault),
    #[error("the session is closed")]
    Closed,
    #[error("blob {0} is missing")]
    Missing(Digest),
    /// The bytes do not match the digest.
    #[error("blob {0} is damaged")]
    Damaged(Digest),
    /// Larger than the caller's limit.
    #[error("the blob has {len} bytes; the limit is {limit} bytes; read a part of it")]
    TooLarge { len: u64, limit: u64 },
    /// The session's blobs have reached their quota, and records reference all of them.
    #[error(
        "the session's blobs have reached the limit of {bound} bytes; continue in a new session"
    )]
    Full {
        /// [`Options::blob_bytes`](crate::Options::blob_bytes).
        bound: u64,
    },
}

impl BlobError {
    /// Tells the caller whether to retry, to free space or to give up.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Disk(fault) => fault.kind(),
            Self::Closed => ErrorKind::Unavailable,
            Self::Missing(_) | Self::Damaged(_) => ErrorKind::Corrupt,
            Self::TooLarge { .. } => ErrorKind::FixInput,
            Self::Full { .. } => ErrorKind::Exhausted,
        }
    }
}
