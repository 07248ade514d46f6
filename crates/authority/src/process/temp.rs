//! Temporary directories of children: one for each call, and one for tools' caches, below one private directory for
//! each spawner.

use super::stale;
use crate::Error;
use crate::remove::remove;
use crate::scratch::{Scratch, make_private, unmade};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The prefix of a host's directory.
pub(super) const PREFIX: &str = "yoi-";

/// The part that children may use. The rest is the host's: its identity, and the lock that shows that it is alive.
const CALLS: &str = "calls";

/// What a helper keeps of the view of children.
const VIEW: &str = "view";

#[derive(Debug)]
pub(super) struct TempBase {
    path: PathBuf,
    /// Device and number of the directory at `path`, which the rules of the confinement name.
    id: (u64, u64),
    next: AtomicU64,
    tag: String,
    scratch: Scratch,
}

/// The directory of caches; no call has this name, because calls' names end in a number.
const CACHES: &str = "cache";

/// Stores below the person's cache directory.
const LINKED: &[&str] = &[".cache/pre-commit", ".cache/node-gyp"];

/// How long the removal of one call's directory may delay its result; the rest is removed with the parent directory.
const MAX_TIME: Duration = Duration::from_secs(2);

/// One call's directory; removed with all its content when dropped.
#[derive(Debug)]
pub(super) struct CallTemp {
    path: PathBuf,
}

impl TempBase {
    /// Whether it could be created below `parent`.
    pub(super) fn check(parent: &Path) -> Result<(), Error> {
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::access(parent, access)
            .map_err(|error| unmade(&parent.join(PREFIX), error.into()))
    }

    /// Creates it below `parent`, and removes the directories of dead hosts there unless their processes still run.
    pub(super) fn create(parent: &Path, tag: &str) -> Result<Self, Error> {
        // Locked directories are not removed.
        let kept = stale::with_processes(parent);
        let scratch = Scratch::below(parent, PREFIX)?;
        drop(kept);
        stale::note(scratch.path(), tag)
            .map_err(|error| Error::io("write in", scratch.path(), error))?;
        let path = scratch.path().join(CALLS);
        make_private(&path)?;
        let id = id(&path).map_err(|error| Error::io("look at", &path, error))?;
        Ok(Self {
            path,
            id,
            next: AtomicU64::new(0),
            tag: tag.to_owned(),
            scratch,
        })
    }

    /// Whether it is still there: cleaners of `/tmp` that do not look at locks remove what is weeks old. If only the
    /// host's identity is gone, that is written again.
    pub(super) fn stands(&self) -> bool {
        // Fails where it is there.
        stale::note(self.scratch.path(), &self.tag).ok();
        id(&self.path).is_ok_and(|id| id == self.id)
    }

    /// The directory that contains the calls' directories.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An empty directory that no child reaches.
    pub(super) fn view(&self) -> Result<PathBuf, Error> {
        let path = self.scratch.path().join(VIEW);
        make_private(&path)
            .or_else(|error| path.symlink_metadata().map(drop).map_err(|_| error))?;
        Ok(path)
    }

    /// The directory for tools' caches, shared by all calls; created on first use.
    pub(super) fn caches(&self) -> Result<PathBuf, Error> {
        let path = self.path().join(CACHES);
        // A child may have put something else there. Only children of this spawner use the directory, so only they are
        // affected.
        make_private(&path)
            .or_else(|error| path.symlink_metadata().map(drop).map_err(|_| error))?;
        Ok(path)
    }

    /// Has the cache directory lead to these stores, where programs look for them there. Called before there is a child.
    pub(super) fn link_stores<'a>(&self, stores: impl Iterator<Item = &'a Path>) -> io::Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let caches = self.caches().map_err(io::Error::other)?;
        let caches = rustix::fs::open(caches, flags, Mode::empty())?;
        for store in stores.filter(|store| LINKED.iter().any(|name| store.ends_with(name))) {
            let name = store.file_name().unwrap_or_default();
            rustix::fs::symlinkat(store, &caches, name)?;
        }
        Ok(())
    }

    pub(super) fn for_call(&self, call: &str) -> Result<CallTemp, Error> {
        let path = self.path().join(format!(
            "{call}-{}",
            self.next.fetch_add(1, Ordering::Relaxed)
        ));
        make_private(&path)?;
        Ok(CallTemp { path })
    }
}

fn id(dir: &Path) -> io::Result<(u64, u64)> {
    dir.symlink_metadata().map(|meta| (meta.dev(), meta.ino()))
}

impl CallTemp {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CallTemp {
    fn drop(&mut self) {
        // Best effort: it is removed with the parent directory at the latest.
        remove(&self.path, Instant::now() + MAX_TIME).ok();
    }
}
