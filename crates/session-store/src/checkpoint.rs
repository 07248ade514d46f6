//! Checkpoints: the caller's state folded from the records up to a seal, kept beside the log so that opening need not
//! read those records again.
//!
//! A checkpoint is derived data in the caller's format; the log is the truth. A missing or damaged checkpoint, or one
//! of another log, is ignored, so it is never flushed. There is one file, replaced by the next checkpoint.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::blob::Digest;
use crate::error::DiskFault;
use crate::frame::RecordId;
use crate::ops::Ops;

/// The longest checkpoint, in bytes: it is read into memory whole.
pub const MAX_CHECKPOINT_BYTES: usize = 64 << 20;
/// The head line is far shorter.
const MAX_HEAD: usize = 256;
/// The bytes before the digest, and those between the digest and the bytes that it covers.
const OPENING: &[u8] = b"{\"digest\":\"";
const BEHIND: &[u8] = b"\",";
const DIGITS: usize = 64;

/// The caller's state after a committed record, as stored by [`Journal::checkpoint`](crate::Journal::checkpoint) and
/// returned when the session is opened or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    mark: RecordId,
    version: u32,
    bytes: Vec<u8>,
}

/// The first line without the digest. The digest covers everything behind itself.
#[derive(Serialize, Deserialize)]
struct About {
    seq: u64,
    crc: u32,
    version: u32,
    bytes: u64,
}

impl Checkpoint {
    pub(crate) fn new(mark: RecordId, version: u32, bytes: Vec<u8>) -> Self {
        Self {
            mark,
            version,
            bytes,
        }
    }

    /// The seq of the last record that the state includes.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.mark.seq
    }

    /// The version of the caller's format.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The caller's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn mark(&self) -> RecordId {
        self.mark
    }

    /// Writes the checkpoint and replaces the previous one.
    pub(crate) fn write(&self, ops: &Ops, dir: &Path) -> Result<(), DiskFault> {
        ops.create_dir(&index(dir))?;
        let path = path(dir);
        let unnamed = index(dir).join("fold.tmp");
        let file = ops.create_afresh(&unnamed)?;
        let written = ops
            .write_at(&file, &self.encode(), 0)
            .and_then(|()| ops.rename(&unnamed, &path));
        if written.is_err() {
            drop(ops.remove(&unnamed));
        }
        written
    }

    fn encode(&self) -> Vec<u8> {
        let RecordId { seq, crc } = self.mark;
        let about = About {
            seq,
            crc,
            version: self.version,
            bytes: self.bytes.len() as u64,
        };
        let about = serde_json::to_string(&about).unwrap_or_default();
        let covered = [about.trim_start_matches('{').as_bytes(), b"\n", &self.bytes].concat();
        let digest = Digest::of(&covered).to_string();
        [OPENING, digest.as_bytes(), BEHIND, &covered].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (digest, covered) = bytes.strip_prefix(OPENING)?.split_at_checked(DIGITS)?;
        let covered = covered.strip_prefix(BEHIND)?;
        if Digest::of(covered).to_string().as_bytes() != digest {
            return None;
        }
        let (head, bytes) = covered.split_at_checked(memchr::memchr(b'\n', covered)?)?;
        let about: About = serde_json::from_slice(&[b"{", head].concat()).ok()?;
        let bytes = bytes.get(1..)?.to_vec();
        let About {
            seq,
            crc,
            version,
            bytes: length,
        } = about;
        (length == bytes.len() as u64).then_some(Self {
            mark: RecordId { seq, crc },
            version,
            bytes,
        })
    }

    /// Reads the stored checkpoint, if it is intact. The caller checks whether it belongs to the log.
    pub(crate) fn read(ops: &Ops, dir: &Path) -> Option<Self> {
        // An unreadable checkpoint is no error: its state can be computed from the log.
        let file = ops.open(&path(dir), false).ok()??;
        let length = usize::try_from(ops.length(&file).ok()?).ok()?;
        if length > MAX_CHECKPOINT_BYTES + MAX_HEAD {
            return None;
        }
        let mut bytes = vec![0; length];
        let read = ops.read_at(&file, &mut bytes, 0).ok()?;
        Self::decode(bytes.get(..read)?)
    }
}

fn index(dir: &Path) -> PathBuf {
    dir.join("idx")
}

fn path(dir: &Path) -> PathBuf {
    index(dir).join("fold.ckpt")
}
