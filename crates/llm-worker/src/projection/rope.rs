//! An append-only byte buffer: full chunks are shared, the tail is copied, the digest is updated with each append. Does
//! not depend on items.

use std::sync::Arc;

/// Bytes per shared chunk: large enough that a long body is a few hundred pointers, small enough that copying
/// one tail per request does not show.
pub(super) const CHUNK: usize = 32 * 1024;

#[derive(Clone, Default)]
pub(super) struct Rope {
    chunks: Vec<Arc<[u8]>>,
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
                self.chunks.push(Arc::from(self.tail.as_slice()));
                self.tail.clear();
            }
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
        chunks.push(Arc::from(last));
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
    /// BLAKE3 of them, lower-case hex.
    pub digest: String,
    pub items: u64,
    chunks: Vec<Arc<[u8]>>,
}

impl Body {
    /// The bytes in order, at most 32 KiB at a time but for the last one, which also holds the closing bytes.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = &Arc<[u8]>> {
        self.chunks.iter()
    }

    /// All bytes in one piece: for models in this process and for tests.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.chunks.concat()
    }
}
