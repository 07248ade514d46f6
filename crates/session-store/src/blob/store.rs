//! Writing blobs: durable first, then named. The caller reports which blobs the records reference.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::quota::QuotaState;
use super::{BlobError, BlobRef, BlobView, Digest, Spool};
use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::ops::{Ops, Stored};
use crate::session::{Options, Probe};

/// The most digests remembered as durable; a forgotten one costs a read of the blob.
const REMEMBERED: usize = 4096;
/// The name prefix of files that are not blobs yet.
const UNNAMED: &str = "tmp-";

/// Stores the blobs of an open session; clones share the state. It writes and flushes on the caller's thread.
#[derive(Clone)]
pub struct Blobs {
    inner: Arc<Inner>,
}

struct Inner {
    ops: Ops,
    dir: PathBuf,
    view: BlobView,
    probe: Probe,
    closed: Arc<AtomicBool>,
    names: AtomicU64,
    durable: Mutex<Durable>,
    bound: u64,
    quota: Mutex<QuotaState>,
}

/// Blobs and directories that this process knows to be durable.
#[derive(Default)]
struct Durable {
    blobs: HashSet<Digest>,
    /// `blobs` itself and its 256 parts, each with its own name.
    dirs: HashSet<PathBuf>,
}

/// A temporary file that is removed on drop unless it became a blob.
pub(super) struct Unnamed {
    ops: Ops,
    pub(super) file: DiskFile,
    named: bool,
}

impl Blobs {
    pub(crate) fn new(ops: Ops, dir: &Path, options: &Options, closed: Arc<AtomicBool>) -> Self {
        let view = BlobView::new(dir);
        let probe = Arc::clone(&options.probe);
        let dir = dir.to_path_buf();
        let names = AtomicU64::new(0);
        let durable = Mutex::default();
        let bound = options.blob_bytes;
        let quota = Mutex::default();
        Self {
            inner: Arc::new(Inner {
                ops,
                dir,
                view,
                probe,
                closed,
                names,
                durable,
                bound,
                quota,
            }),
        }
    }

    /// Opens the blobs of a session that is not open, without its lock.
    pub(crate) fn apart(ops: &Ops, dir: &Path, options: &Options) -> Self {
        Self::new(ops.clone(), dir, options, Arc::default())
    }

    /// Sets which blobs the records reference. All other blobs stored so far may be removed, the oldest first, when a
    /// new blob would exceed the session's quota; if there are none, storing fails with [`BlobError::Full`]. Before the
    /// first call all blobs count as referenced, and so do blobs stored after a call. The next new blob reads every
    /// blob's length, but no content.
    pub fn refer(&self, referenced: HashSet<Digest>) -> Result<(), BlobError> {
        self.alive()?;
        self.quota().set_referenced(referenced);
        Ok(())
    }

    /// The most bytes that all blobs may take.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.inner.bound
    }

    /// Stores `bytes` durably; when it returns, a record may name them. Two flushes for new bytes (up to two more
    /// the first time one of the 257 directories is needed), none for bytes this process has stored before.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobRef, BlobError> {
        let blob = BlobRef {
            digest: Digest::of(bytes),
            len: bytes.len() as u64,
        };
        if self.known(&blob)? {
            return Ok(blob);
        }
        let unnamed = self.unnamed()?;
        self.inner.ops.write_at(&unnamed.file, bytes, 0)?;
        self.store(unnamed, blob)
    }

    /// Starts a blob from a stream of unknown length.
    pub fn spool(&self) -> Result<Spool, BlobError> {
        Spool::new(self.clone())
    }

    /// The same blobs, for reading.
    #[must_use]
    pub fn view(&self) -> &BlobView {
        &self.inner.view
    }

    pub(super) fn ops(&self) -> &Ops {
        &self.inner.ops
    }

    pub(super) fn alive(&self) -> Result<(), BlobError> {
        if self.inner.closed.load(Ordering::Acquire) {
            Err(BlobError::Closed)
        } else {
            Ok(())
        }
    }

    pub(super) fn unnamed(&self) -> Result<Unnamed, BlobError> {
        self.alive()?;
        self.directory(self.inner.view.dir(), &self.inner.dir)?;
        let number = self.inner.names.fetch_add(1, Ordering::Relaxed);
        let path = self.inner.view.dir().join(format!("{UNNAMED}{number}"));
        let ops = self.inner.ops.clone();
        let file = ops.create_afresh(&path)?;
        Ok(Unnamed {
            ops,
            file,
            named: false,
        })
    }

    /// Renames a temporary file to its final name, durably.
    pub(super) fn store(&self, mut unnamed: Unnamed, blob: BlobRef) -> Result<BlobRef, BlobError> {
        let Inner {
            ops, view, probe, ..
        } = &*self.inner;
        self.alive()?;
        let reserved = self.reserve(&blob)?;
        probe("blob:written");
        ops.sync(&unnamed.file)?;
        probe("blob:synced");
        let path = view.path(&blob.digest);
        let shard = path.parent().unwrap_or(view.dir());
        self.directory(shard, view.dir())?;
        self.name(&unnamed, &path)?;
        unnamed.named = true;
        probe("blob:renamed");
        ops.sync_dir(shard)?;
        self.remember(blob.digest);
        reserved.taken();
        Ok(blob)
    }

    /// Renames a temporary file to its final name. The file that it replaces, a damaged blob or the same bytes stored
    /// concurrently, no longer counts.
    fn name(&self, unnamed: &Unnamed, path: &Path) -> Result<(), DiskFault> {
        let mut quota = self.quota();
        let before = self.inner.ops.stored(path)?.map_or(0, |stored| stored.len);
        self.inner.ops.rename(&unnamed.file.path, path)?;
        if let Some(quota) = quota.loaded() {
            quota.release(before);
        }
        Ok(())
    }

    /// Reserves quota for a blob and removes old unreferenced blobs to make room. A damaged blob that it replaces
    /// counts until then.
    fn reserve(&self, blob: &BlobRef) -> Result<Reserved<'_>, BlobError> {
        let mut quota = self.quota();
        let before = self
            .inner
            .ops
            .stored(&self.inner.view.path(&blob.digest))?
            .map_or(0, |stored| stored.len);
        let more = blob.len.saturating_sub(before);
        let quota = quota.load(self.inner.bound, || self.found())?;
        quota.mark_referenced(&blob.digest);
        while !quota.fits(more) {
            let full = BlobError::Full {
                bound: self.inner.bound,
            };
            let (digest, len) = quota.oldest().ok_or(full)?;
            // Removed from the set of durable blobs first, so that it no longer counts as stored. If its removal is not
            // durable, it only takes space.
            self.durable().blobs.remove(&digest);
            self.inner.ops.remove(&self.inner.view.path(&digest))?;
            quota.release(len);
        }
        quota.reserve(blob.len);
        Ok(Reserved {
            blobs: self,
            len: blob.len,
        })
    }

    /// Lists all blobs with their lengths and ages.
    fn found(&self) -> Result<Vec<(Digest, Stored)>, DiskFault> {
        let ops = &self.inner.ops;
        let view = &self.inner.view;
        let mut found = Vec::new();
        for digest in self.names()? {
            found.extend(
                ops.stored(&view.path(&digest))?
                    .map(|stored| (digest, stored)),
            );
        }
        Ok(found)
    }

    pub(crate) fn names(&self) -> Result<Vec<Digest>, DiskFault> {
        let ops = &self.inner.ops;
        let view = &self.inner.view;
        let mut names = Vec::new();
        for shard in ops.list(view.dir())?.iter().filter(|path| path.is_dir()) {
            let digest = |path: &PathBuf| path.file_name()?.to_str()?.parse::<Digest>().ok();
            names.extend(ops.list(shard)?.iter().filter_map(digest));
        }
        Ok(names)
    }

    /// Copies a blob of another session, if it is undamaged there.
    pub(crate) fn copy(&self, from: &Self, digest: &Digest) -> Result<(), BlobError> {
        let unnamed = self.unnamed()?;
        let mut at = 0;
        let mut refused = None;
        let len = from.inner.view.pieces(digest, |piece| {
            if refused.is_none() {
                refused = self.inner.ops.write_at(&unnamed.file, piece, at).err();
            }
            at += piece.len() as u64;
        })?;
        refused.map_or(Ok(()), Err)?;
        self.store(
            unnamed,
            BlobRef {
                digest: *digest,
                len,
            },
        )
        .map(drop)
    }

    fn quota(&self) -> std::sync::MutexGuard<'_, QuotaState> {
        self.inner
            .quota
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the blob is stored and durable. A damaged one is not, and will be replaced.
    fn known(&self, blob: &BlobRef) -> Result<bool, BlobError> {
        self.alive()?;
        // From here on it is not removed; if it was removed before, it is stored again.
        self.quota().mark_referenced(&blob.digest);
        if self.durable().blobs.contains(&blob.digest) {
            return Ok(true);
        }
        match self.inner.view.verify(&blob.digest) {
            // Its bytes were flushed before it got this name; the name may not have been.
            Ok(_) => {
                let path = self.inner.view.path(&blob.digest);
                self.inner
                    .ops
                    .sync_dir(path.parent().unwrap_or(&self.inner.dir))?;
                self.remember(blob.digest);
                Ok(true)
            }
            Err(BlobError::Missing(_) | BlobError::Damaged(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a directory and its name durable before the first file is put into it. A directory that is not empty is
    /// durable already.
    fn directory(&self, path: &Path, parent: &Path) -> Result<(), DiskFault> {
        if self.durable().dirs.contains(path) {
            return Ok(());
        }
        let ops = &self.inner.ops;
        if ops.create_dir(path)? || ops.list(path)?.is_empty() {
            ops.sync_dir(parent)?;
        }
        self.durable().dirs.insert(path.to_path_buf());
        Ok(())
    }

    fn remember(&self, digest: Digest) {
        let mut durable = self.durable();
        if durable.blobs.len() >= REMEMBERED {
            durable.blobs.clear();
        }
        durable.blobs.insert(digest);
    }

    fn durable(&self) -> std::sync::MutexGuard<'_, Durable> {
        self.inner
            .durable
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes temporary files of a crashed process; no record can name them. Errors are ignored: the files only take
    /// space.
    pub(crate) fn sweep(&self) {
        let left = self
            .inner
            .ops
            .list(self.inner.view.dir())
            .unwrap_or_default();
        let unnamed = |path: &PathBuf| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(UNNAMED))
        };
        for path in left.into_iter().filter(unnamed) {
            drop(self.inner.ops.remove(&path));
        }
    }
}

/// Quota reserved for a blob; released on drop unless the blob was stored.
struct Reserved<'a> {
    blobs: &'a Blobs,
    len: u64,
}

impl Reserved<'_> {
    fn taken(mut self) {
        self.len = 0;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(quota) = self.blobs.quota().loaded() {
            quota.release(self.len);
        }
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if !self.named {
            drop(self.ops.remove(&self.file.path));
        }
    }
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blobs")
            .field("dir", &self.inner.dir)
            .finish_non_exhaustive()
    }
}
