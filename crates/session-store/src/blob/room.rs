//! How much the blobs of a session take, and which of them may go. Touches no file.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Digest;
use crate::ops::Stored;

/// The most bytes of blobs in a session, unless it is opened with another bound.
pub const BLOB_BYTES: u64 = 1 << 30;

/// What is known of that.
#[derive(Default)]
pub(super) struct Known {
    /// What is referred to, if that was told and nobody has looked since.
    told: Option<HashSet<Digest>>,
    room: Option<Room>,
}

/// What is stored, and what nobody refers to of that.
pub(super) struct Room {
    bound: u64,
    used: u64,
    /// Oldest first; those that are no longer in `loose` were stored again.
    order: VecDeque<Digest>,
    loose: HashMap<Digest, u64>,
}

impl Known {
    /// Somebody is about to refer to it.
    pub(super) fn keep(&mut self, digest: &Digest) {
        match &mut self.room {
            Some(room) => room.keep(digest),
            None => {
                if let Some(told) = &mut self.told {
                    told.insert(*digest);
                }
            }
        }
    }

    /// These are referred to, and no others.
    pub(super) fn tell(&mut self, referenced: HashSet<Digest>) {
        (self.told, self.room) = (Some(referenced), None);
    }

    /// Takes a look at the disk, the first time.
    pub(super) fn look<E>(
        &mut self,
        bound: u64,
        found: impl FnOnce() -> Result<Vec<(Digest, Stored)>, E>,
    ) -> Result<&mut Room, E> {
        let room = match self.room.take() {
            Some(room) => room,
            None => Room::new(bound, found()?, self.told.take().as_ref()),
        };
        Ok(self.room.insert(room))
    }

    pub(super) fn seen(&mut self) -> Option<&mut Room> {
        self.room.as_mut()
    }
}

impl Room {
    /// Of what a look at the disk has found. Without `referenced`, everything is referred to.
    fn new(bound: u64, mut found: Vec<(Digest, Stored)>, referenced: Option<&HashSet<Digest>>) -> Self {
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
