//! Temporary directories of children: one per call, below one private directory per spawner.

use crate::Error;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How deep a tree is made removable when plain removal failed.
const MAX_DEPTH: usize = 64;

/// The private directory; removed with all its content when dropped.
#[derive(Debug)]
pub(super) struct TempBase {
    path: PathBuf,
    next: AtomicU64,
}

/// One call's directory; removed with all its content when dropped.
#[derive(Debug)]
pub(super) struct CallTemp {
    path: PathBuf,
}

impl TempBase {
    /// Creates `yoi-<pid>-<16 hex digits>` below `parent`, and removes those of processes that are gone.
    pub(super) fn create(parent: &Path) -> Result<Self, Error> {
        remove_stale(parent);
        let name = format!("yoi-{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish());
        let path = parent.join(name);
        make_private(&path)?;
        let path = path.canonicalize().map_err(|error| Error::io("open", &path, error))?;
        Ok(Self { path, next: AtomicU64::new(0) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn for_call(&self, call: &str) -> Result<CallTemp, Error> {
        let path = self.path.join(format!("{call}-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        make_private(&path)?;
        Ok(CallTemp { path })
    }
}

impl CallTemp {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempBase {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

impl Drop for CallTemp {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn make_private(path: &Path) -> Result<(), Error> {
    let made = std::fs::DirBuilder::new().mode(0o700).create(path);
    made.map_err(|error| Error::io("create temporary directory", path, error))
}

/// What cannot be removed stays for the next start: nothing depends on its absence.
fn remove(path: &Path) {
    if std::fs::remove_dir_all(path).is_err() {
        open_up(path, MAX_DEPTH);
        std::fs::remove_dir_all(path).unwrap_or_default();
    }
}

/// Some programs make directories read-only, which keeps their owner from emptying them.
fn open_up(dir: &Path, depth: usize) {
    if depth == 0 {
        return;
    }
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700)).unwrap_or_default();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path(), depth - 1);
        }
    }
}

fn remove_stale(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(pid_in) else { continue };
        let ours = entry.path().symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == own);
        if ours && !Path::new("/proc").join(pid.to_string()).exists() {
            remove(&entry.path());
        }
    }
}

fn pid_in(name: &str) -> Option<u32> {
    let (pid, random) = name.strip_prefix("yoi-")?.split_once('-')?;
    (random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| pid.parse().ok())?
}
