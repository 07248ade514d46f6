//! Temporary directories of children: one per call, and one for caches of tools, below one private directory per spawner.

use crate::scratch::{Scratch, make_private, remove};
use crate::{Ambient, Error};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The private directory.
#[derive(Debug)]
pub(super) struct TempBase {
    scratch: Scratch,
    next: AtomicU64,
}

/// What caches are below; no call has this name, for each ends in a number.
const CACHES: &str = "cache";

/// One call's directory; removed with all its content when dropped.
#[derive(Debug)]
pub(super) struct CallTemp {
    path: PathBuf,
}

impl TempBase {
    /// Below `parent`, where those of processes that are gone are removed.
    pub(super) fn create(ambient: &Ambient, parent: &Path) -> Result<Self, Error> {
        Ok(Self { scratch: Scratch::create(ambient, parent, "yoi-")?, next: AtomicU64::new(0) })
    }

    pub(super) fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Where tools keep caches for all calls, made by the first of them.
    pub(super) fn caches(&self) -> Result<PathBuf, Error> {
        let path = self.path().join(CACHES);
        // A child may have put something else there: what is below is as much its own, and its loss.
        make_private(&path).or_else(|error| path.symlink_metadata().map(drop).map_err(|_| error))?;
        Ok(path)
    }

    pub(super) fn for_call(&self, call: &str) -> Result<CallTemp, Error> {
        let path = self.path().join(format!("{call}-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        make_private(&path)?;
        Ok(CallTemp { path })
    }
}

impl CallTemp {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CallTemp {
    fn drop(&mut self) {
        // It goes with the directory around it at the latest.
        remove(&self.path).unwrap_or_default();
    }
}
