//! An append-only byte buffer: full chunks are shared, the tail is copied, the digest is updated with each append. The bytes
//! of a file are not in it: it has the place of a blob, and is whole once the blobs were read. Does not depend on items.

use crate::item::Attachment;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes per shared chunk: large enough that a long body is a few hundred pointers, small enough that copying
/// one tail per request does not show.
pub(super) const CHUNK: usize = 32 * 1024;

#[derive(Clone, Debug)]
enum Part {
    Bytes(Arc<[u8]>),
    /// In base 64.
    Blob(Arc<Attachment>),
}

#[derive(Clone, Default)]
pub(super) struct Rope {
    chunks: Vec<Part>,
    tail: Vec<u8>, // always shorter than CHUNK
    hasher: Box<blake3::Hasher>,
    len: u64,
    /// Only digest and length are kept.
    measured: bool,
}

impl Rope {
    pub(super) fn measured() -> Self {
        Self {
            measured: true,
            ..Self::default()
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        let mut rest = if self.measured { &[] } else { bytes };
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(CHUNK - self.tail.len()));
            self.tail.extend_from_slice(now);
            rest = later;
            if self.tail.len() == CHUNK {
                self.end_chunk();
            }
        }
    }

    /// Adds the bytes of a file in base 64. The digest is of the blob's between two zero bytes instead, so that it can be
    /// computed without them.
    pub(super) fn write_blob(&mut self, file: &Attachment) {
        let digest = file.digest.to_string();
        for bytes in [b"\0", digest.as_bytes(), b"\0"] {
            self.hasher.update(bytes);
        }
        self.len = self.len.saturating_add(base64_len(file.bytes));
        if !self.measured {
            self.end_chunk();
            self.chunks.push(Part::Blob(Arc::new(file.clone())));
        }
    }

    fn end_chunk(&mut self) {
        if !self.tail.is_empty() {
            self.chunks
                .push(Part::Bytes(Arc::from(self.tail.as_slice())));
            self.tail.clear();
        }
    }

    /// These bytes and `end`, without keeping `end`.
    pub(super) fn body(&self, end: &[u8], items: u64) -> Body {
        let digest = self
            .hasher
            .clone()
            .update(end)
            .finalize()
            .to_hex()
            .to_string();
        let mut last = Vec::with_capacity(self.tail.len() + end.len());
        last.extend_from_slice(&self.tail);
        last.extend_from_slice(end);
        let mut chunks = Vec::with_capacity(self.chunks.len() + 1);
        chunks.extend_from_slice(&self.chunks);
        chunks.push(Part::Bytes(Arc::from(last)));
        Body {
            len: self.len + end.len() as u64,
            digest,
            items,
            chunks,
        }
    }
}

/// The bytes of one request. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Body {
    pub len: u64,
    /// BLAKE3 of them, lower-case hex; of a file, its digest between two zero bytes stands for the bytes.
    pub digest: String,
    pub items: u64,
    chunks: Vec<Part>,
}

impl Body {
    /// The bytes in order, at most 32 KiB at a time but for files and the last ones, which also have the closing bytes. Of
    /// files only those that were [read](Self::with_files).
    pub fn chunks(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.chunks.iter().filter_map(|part| match part {
            Part::Bytes(bytes) => Some(bytes),
            Part::Blob(_) => None,
        })
    }

    /// The files whose bytes it needs.
    pub fn files(&self) -> impl Iterator<Item = &Attachment> {
        self.chunks.iter().filter_map(|part| match part {
            Part::Bytes(_) => None,
            Part::Blob(file) => Some(&**file),
        })
    }

    /// The same with the bytes of all files, which `read` gives, in base 64. A file that occurs again is read once.
    ///
    /// # Errors
    /// As `read`.
    pub fn with_files<E>(
        mut self,
        mut read: impl FnMut(&Attachment) -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        let mut known = BTreeMap::new();
        for part in &mut self.chunks {
            let Part::Blob(file) = part else { continue };
            let bytes = match known.get(&file.digest) {
                Some(bytes) => Arc::clone(bytes),
                None => {
                    let text = STANDARD.encode(read(file)?);
                    let bytes: Arc<[u8]> = Arc::from(text.into_bytes());
                    known.insert(file.digest, Arc::clone(&bytes));
                    bytes
                }
            };
            *part = Part::Bytes(bytes);
        }
        Ok(self)
    }

    /// All bytes in one piece: for models in this process and for tests.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::new();
        self.chunks().for_each(|chunk| all.extend_from_slice(chunk));
        all
    }
}

/// How long so many bytes are in base 64.
fn base64_len(bytes: u64) -> u64 {
    bytes.div_ceil(3).saturating_mul(4)
}
