//! Payloads too large for a line, addressed by the digest of their bytes.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{DiskFault, ErrorKind};

/// BLAKE3 of a blob's bytes; 64 lower-case hexadecimal digits in text and JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// A blob as a record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    /// Of the stored bytes.
    pub digest: Digest,
    /// Stored bytes.
    pub len: u64,
}

/// Bytes of a stream that were not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Where in the stored bytes the kept head ends and the kept tail begins.
    pub at: u64,
    /// Bytes left out there.
    pub dropped: u64,
}

/// Which lines of a blob to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// From this line on, counted from 1.
    From(u64),
    /// The last ones.
    Tail,
}

/// Some lines of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The number of the first one shown, from 1.
    pub first: u64,
    /// Raw bytes, each without its line break; cut at the caller's bound.
    pub lines: Vec<Vec<u8>>,
    /// Lines in the whole blob.
    pub total: u64,
    /// The byte bound cut the last line shown (with `Tail`: the first) or left lines out.
    pub cut: bool,
}

/// Why a blob was not stored or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// The disk refused.
    #[error("{0}")]
    Disk(#[from] DiskFault),
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
    /// There is no such blob.
    #[error("blob {0} is missing")]
    Missing(Digest),
    /// Its bytes are not those that were stored.
    #[error("blob {0} is damaged")]
    Damaged(Digest),
    /// More than the caller wanted in memory.
    #[error("blob of {len} bytes is over the limit of {limit}; read a part of it")]
    TooLarge {
        /// Its length.
        len: u64,
        /// The caller's bound.
        limit: u64,
    },
}

impl BlobError {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Disk(fault) => fault.kind(),
            Self::Closed => ErrorKind::Unavailable,
            Self::Missing(_) | Self::Damaged(_) => ErrorKind::Corrupt,
            Self::TooLarge { .. } => ErrorKind::FixInput,
        }
    }
}

/// The blobs of a session, for its writer. Works on the caller's thread.
#[derive(Clone, Debug)]
pub struct Blobs {}

/// The blobs of a session, for reading.
#[derive(Clone, Debug)]
pub struct BlobView {
    dir: PathBuf,
}

/// A stream on its way into a blob: the first and the last 32 MiB are kept.
#[derive(Debug)]
pub struct Spool {}

/// What a spool has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolEnd {
    /// The stored bytes.
    pub blob: BlobRef,
    /// Bytes of the whole stream.
    pub total: u64,
    /// Digest of the whole stream; the blob's when nothing was left out.
    pub whole: Digest,
    /// What was left out.
    pub gap: Option<Gap>,
}

impl Blobs {
    /// Stores `bytes` durably; when it returns, a record may name them. Two flushes for new bytes (more for the
    /// first blobs of a session), none for bytes stored before.
    pub fn put(&self, _bytes: &[u8]) -> Result<BlobRef, BlobError> {
        todo!()
    }

    /// Starts a stream.
    pub fn spool(&self) -> Result<Spool, BlobError> {
        todo!()
    }

    /// For reading.
    #[must_use]
    pub fn view(&self) -> &BlobView {
        todo!()
    }
}

impl Spool {
    /// Adds bytes.
    pub fn write(&mut self, _bytes: &[u8]) -> Result<(), BlobError> {
        todo!()
    }

    /// Bytes so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        todo!()
    }

    /// Makes what is kept a durable blob. A spool dropped instead leaves nothing.
    pub fn finish(self) -> Result<SpoolEnd, BlobError> {
        todo!()
    }
}

impl BlobView {
    /// The whole blob, verified. `limit` bounds the bytes held in memory.
    pub fn read(&self, _digest: &Digest, _limit: u64) -> Result<Vec<u8>, BlobError> {
        todo!()
    }

    /// At most `lines` lines and `max_bytes` bytes of it, the whole verified on the way. A stream's gap ends a line.
    pub fn lines(&self, _digest: &Digest, _gap: Option<Gap>, _window: Window, _lines: usize, _max_bytes: usize) -> Result<Lines, BlobError> {
        todo!()
    }

    /// Verifies without keeping; the length.
    pub fn verify(&self, _digest: &Digest) -> Result<u64, BlobError> {
        todo!()
    }

    /// Where the blob is or would be.
    #[must_use]
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.to_string();
        self.dir.join(hex.get(..2).unwrap_or_default()).join(&hex)
    }
}

impl Digest {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest")]
pub struct NotADigest(String);

impl TryFrom<String> for Digest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, NotADigest> {
        text.parse()
    }
}

impl std::str::FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let bytes: Vec<u8> = text
            .as_bytes()
            .chunks(2)
            .map_while(|pair| match pair {
                [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
                _ => None,
            })
            .collect();
        match <[u8; 32]>::try_from(bytes) {
            Ok(bytes) if text.len() == 64 => Ok(Self(bytes)),
            Ok(_) | Err(_) => Err(NotADigest(text.to_owned())),
        }
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}
