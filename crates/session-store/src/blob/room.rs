//! How much the blobs of a session take, and which of them may go.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Digest;
use crate::ops::Stored;

/// The most bytes of blobs in a session.
pub(crate) const BLOB_BYTES: u64 = 1 << 30;

/// What is stored, and what nobody refers to of that.
pub(super) struct Room {
    bound: u64,
    used: u64,
    /// Oldest first; those that are no longer in `loose` were stored again.
    order: VecDeque<Digest>,
    loose: HashMap<Digest, u64>,
}

impl Room {
    /// Of what a look at the disk has found. Without `referenced`, everything is referred to.
    pub(super) fn new(bound: u64, mut found: Vec<(Digest, Stored)>, referenced: Option<&HashSet<Digest>>) -> Self {
        let used = found.iter().map(|(_, stored)| stored.len).sum();
        found.retain(|(digest, _)| referenced.is_some_and(|referenced| !referenced.contains(digest)));
        found.sort_by_key(|(digest, stored)| (stored.modified, *digest));
        let order = found.iter().map(|(digest, _)| *digest).collect();
        let loose = found.into_iter().map(|(digest, stored)| (digest, stored.len)).collect();
        Self { bound, used, order, loose }
    }

    /// Somebody is about to refer to it.
    pub(super) fn keep(&mut self, digest: &Digest) {
        self.loose.remove(digest);
    }

    /// There is room for `len` more.
    pub(super) fn fits(&self, len: u64) -> bool {
        self.used.saturating_add(len) <= self.bound
    }

    /// The next one to go. It counts until it is [`gone`](Self::gone).
    pub(super) fn oldest(&mut self) -> Option<(Digest, u64)> {
        loop {
            let digest = self.order.pop_front()?;
            if let Some(len) = self.loose.remove(&digest) {
                return Some((digest, len));
            }
        }
    }

    pub(super) fn gone(&mut self, len: u64) {
        self.used = self.used.saturating_sub(len);
    }

    pub(super) fn came(&mut self, len: u64) {
        self.used = self.used.saturating_add(len);
    }
}
