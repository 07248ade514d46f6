//! Digests of the file content that the model has seen. Reads no file.

use blake3::Hash;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many files are remembered. The one noted longest ago is forgotten first and must then be read again.
pub const MAX_SEEN: usize = 4096;

/// Whether the model has seen a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadState {
    /// It was never shown, or was forgotten.
    Never,
    /// Other content was shown.
    Changed,
    /// This content was shown.
    Current,
}

/// Path to digest, bounded.
#[derive(Debug, Default)]
pub(crate) struct ReadFiles {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    files: HashMap<PathBuf, (Hash, u64)>,
    order: BTreeMap<u64, PathBuf>,
    next: u64,
}

impl ReadFiles {
    /// Records that the model knows this content, because it was shown or written by the model.
    pub(crate) fn note(&self, path: &Path, digest: Hash) {
        let mut inner = self.lock();
        let stamp = inner.next;
        inner.next += 1;
        if let Some((_, old)) = inner.files.insert(path.to_owned(), (digest, stamp)) {
            inner.order.remove(&old);
        }
        inner.order.insert(stamp, path.to_owned());
        if inner.files.len() > MAX_SEEN
            && let Some((_, oldest)) = inner.order.pop_first()
        {
            inner.files.remove(&oldest);
        }
    }

    /// Forgets the file.
    pub(crate) fn forget(&self, path: &Path) {
        let mut inner = self.lock();
        if let Some((_, stamp)) = inner.files.remove(path) {
            inner.order.remove(&stamp);
        }
    }

    /// Forgets all files in this directory.
    pub(crate) fn forget_below(&self, dir: &Path) {
        let mut inner = self.lock();
        let Inner { files, order, .. } = &mut *inner;
        files.retain(|path, _| !path.starts_with(dir));
        order.retain(|_, path| !path.starts_with(dir));
    }

    pub(crate) fn known(&self, path: &Path, digest: Hash) -> ReadState {
        match self.lock().files.get(path) {
            None => ReadState::Never,
            Some((seen, _)) if *seen == digest => ReadState::Current,
            Some(_) => ReadState::Changed,
        }
    }

    /// A poisoned lock is fine: a panic leaves the map consistent.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The oldest goes first, and reading a file again makes it young.
    #[test]
    fn the_registry_is_bounded() {
        let seen = ReadFiles::default();
        let digest = blake3::hash(b"x");
        for n in 0..MAX_SEEN {
            seen.note(Path::new(&format!("/{n}")), digest);
        }
        seen.note(Path::new("/0"), digest);
        seen.note(Path::new("/new"), digest);
        let got = ["/0", "/1", "/2", "/new"].map(|path| seen.known(Path::new(path), digest));
        assert_eq!(
            got,
            [
                ReadState::Current,
                ReadState::Never,
                ReadState::Current,
                ReadState::Current
            ]
        );
        let inner = seen.lock();
        assert_eq!((inner.files.len(), inner.order.len()), (MAX_SEEN, MAX_SEEN));
    }

    #[test]
    fn other_content_is_told_from_none() {
        let seen = ReadFiles::default();
        seen.note(Path::new("/a"), blake3::hash(b"one"));
        assert_eq!(
            seen.known(Path::new("/a"), blake3::hash(b"two")),
            ReadState::Changed
        );
        seen.forget(Path::new("/a"));
        assert_eq!(
            seen.known(Path::new("/a"), blake3::hash(b"one")),
            ReadState::Never
        );
    }
}
