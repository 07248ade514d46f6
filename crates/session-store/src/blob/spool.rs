//! Writing a stream into a blob in bounded space.

use std::fmt;

use blake3::Hasher;

use super::store::Unnamed;
use super::{BlobError, BlobRef, Blobs, Digest, StreamGap};

/// The bytes kept of a stream's beginning, and again of its end.
const KEEP: u64 = 32 << 20;

/// Writes a stream of unknown length into a blob; made by [`Blobs::spool`]. The first and the last 32 MiB are kept.
/// Dropped without [`finish`](Self::finish), it leaves nothing.
pub struct Spool {
    blobs: Blobs,
    head: Unnamed,
    stored: Hasher,
    length: u64,
    /// A ring buffer for the end of the stream, used once the beginning is full.
    ring: Option<Unnamed>,
    behind: u64,
    whole: Hasher,
}

/// The result of a finished spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolEnd {
    pub blob: BlobRef,
    /// Bytes of the whole stream.
    pub total: u64,
    /// Digest of the whole stream; the blob's when nothing was left out.
    pub whole: Digest,
    pub gap: Option<StreamGap>,
}

impl Spool {
    pub(super) fn new(blobs: Blobs) -> Result<Self, BlobError> {
        let head = blobs.unnamed()?;
        Ok(Self {
            blobs,
            head,
            stored: Hasher::new(),
            length: 0,
            ring: None,
            behind: 0,
            whole: Hasher::new(),
        })
    }

    /// Adds bytes. After an error the spool can only be dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.blobs.alive()?;
        self.whole.update(bytes);
        let room = usize::try_from(KEEP - self.length).unwrap_or(usize::MAX);
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        if !first.is_empty() {
            self.append(first)?;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            self.turn(rest)
        }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.length + self.behind
    }

    /// Stores the kept bytes as a durable blob.
    pub fn finish(mut self) -> Result<SpoolEnd, BlobError> {
        let total = self.total();
        let whole = Digest::from(&self.whole);
        let gap = (self.behind > KEEP).then_some(StreamGap {
            at: KEEP,
            dropped: self.behind.saturating_sub(KEEP),
        });
        if let Some(ring) = self.ring.take() {
            // The oldest byte is at the position of the next write.
            let oldest = if gap.is_some() { self.behind % KEEP } else { 0 };
            self.copy(&ring, oldest, self.behind.min(KEEP))?;
            self.copy(&ring, 0, oldest)?;
        }
        let blob = BlobRef {
            digest: Digest::from(&self.stored),
            len: self.length,
        };
        let Self { blobs, head, .. } = self;
        blobs.store(head, blob)?;
        Ok(SpoolEnd {
            blob,
            total,
            whole,
            gap,
        })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.blobs
            .ops()
            .write_at(&self.head.file, bytes, self.length)?;
        self.stored.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn turn(&mut self, mut bytes: &[u8]) -> Result<(), BlobError> {
        let ring = match self.ring.take() {
            Some(ring) => ring,
            None => self.blobs.unnamed()?,
        };
        while !bytes.is_empty() {
            let at = self.behind % KEEP;
            let room = usize::try_from(KEEP - at).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.blobs.ops().write_at(&ring.file, now, at)?;
            self.behind += now.len() as u64;
            bytes = later;
        }
        self.ring = Some(ring);
        Ok(())
    }

    fn copy(&mut self, ring: &Unnamed, from: u64, to: u64) -> Result<(), BlobError> {
        let ops = self.blobs.ops().clone();
        ops.blocks(&ring.file, from, to, |block, _| self.append(block))
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool")
            .field("total", &self.total())
            .finish_non_exhaustive()
    }
}
