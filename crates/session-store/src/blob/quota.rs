//! Accounting of blob space: bytes used, and which unreferenced blobs may be removed. Touches no file.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Digest;
use crate::ops::Stored;

/// The most bytes of blobs in a session, unless it is opened with another bound.
pub const BLOB_BYTES: u64 = 1 << 30;

/// The quota, or what is known before the blob directory has been listed.
#[derive(Default)]
pub(super) struct QuotaState {
    /// Referenced blobs as reported by the caller; used up when the directory is listed.
    referenced: Option<HashSet<Digest>>,
    quota: Option<Quota>,
}

/// Bytes used by all stored blobs, and the blobs that no record references.
pub(super) struct Quota {
    bound: u64,
    used: u64,
    /// Removal order, oldest first. Entries missing from `unreferenced` became referenced again.
    order: VecDeque<Digest>,
    unreferenced: HashMap<Digest, u64>,
}

impl QuotaState {
    /// Protects a blob from removal: a record is about to name it.
    pub(super) fn mark_referenced(&mut self, digest: &Digest) {
        match &mut self.quota {
            Some(quota) => quota.mark_referenced(digest),
            None => {
                if let Some(referenced) = &mut self.referenced {
                    referenced.insert(*digest);
                }
            }
        }
    }

    /// Replaces the set of referenced blobs; the directory is listed again on the next [`load`](Self::load).
    pub(super) fn set_referenced(&mut self, referenced: HashSet<Digest>) {
        (self.referenced, self.quota) = (Some(referenced), None);
    }

    /// Returns the quota; calls `found` to list the directory if that has not been done.
    pub(super) fn load<E>(
        &mut self,
        bound: u64,
        found: impl FnOnce() -> Result<Vec<(Digest, Stored)>, E>,
    ) -> Result<&mut Quota, E> {
        let quota = match self.quota.take() {
            Some(quota) => quota,
            None => Quota::new(bound, found()?, self.referenced.take().as_ref()),
        };
        Ok(self.quota.insert(quota))
    }

    /// The quota, if the directory has been listed.
    pub(super) fn loaded(&mut self) -> Option<&mut Quota> {
        self.quota.as_mut()
    }
}

impl Quota {
    /// Builds the quota from a directory listing. Without `referenced`, every blob counts as referenced.
    fn new(
        bound: u64,
        mut found: Vec<(Digest, Stored)>,
        referenced: Option<&HashSet<Digest>>,
    ) -> Self {
        let used = found.iter().map(|(_, stored)| stored.len).sum();
        found.retain(|(digest, _)| {
            referenced.is_some_and(|referenced| !referenced.contains(digest))
        });
        found.sort_by_key(|(digest, stored)| (stored.modified, *digest));
        let order = found.iter().map(|(digest, _)| *digest).collect();
        let unreferenced = found
            .into_iter()
            .map(|(digest, stored)| (digest, stored.len))
            .collect();
        Self {
            bound,
            used,
            order,
            unreferenced,
        }
    }

    /// Protects a blob from removal: a record is about to name it.
    pub(super) fn mark_referenced(&mut self, digest: &Digest) {
        self.unreferenced.remove(digest);
    }

    pub(super) fn fits(&self, len: u64) -> bool {
        self.used.saturating_add(len) <= self.bound
    }

    /// Takes the oldest unreferenced blob for removal; its bytes count until it is [`release`](Self::release)d.
    pub(super) fn oldest(&mut self) -> Option<(Digest, u64)> {
        loop {
            let digest = self.order.pop_front()?;
            if let Some(len) = self.unreferenced.remove(&digest) {
                return Some((digest, len));
            }
        }
    }

    pub(super) fn release(&mut self, len: u64) {
        self.used = self.used.saturating_sub(len);
    }

    pub(super) fn reserve(&mut self, len: u64) {
        self.used = self.used.saturating_add(len);
    }
}
