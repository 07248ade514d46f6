//! Temporary directories of children: one per call, below one private directory per spawner.

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
