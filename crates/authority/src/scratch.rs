//! A private temporary directory that is removed with its owner. Does not depend on its content.

use crate::remove::{MAX_TIME, open, remove};
use crate::{Ambient, Error, ErrorKind};
use rustix::fs::CWD;
use rustix::io::Errno;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long one start may spend on removing stale directories; the next start continues.
pub(crate) const MAX_STALE: Duration = Duration::from_secs(1);

/// Attempts to create a directory that another starting process removes as stale.
const TRIES: usize = 8;

/// A private directory below another one; removed with all its content when dropped.
///
/// A lock on the directory itself marks it as in use: no file inside affects the lock, and it ends with the process.
/// Process numbers would not do: they are reused, and differ between containers.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    removed: bool,
    _held: File,
}

impl Scratch {
    /// Creates `<prefix><pid>-<16 hex digits>` below `parent`, and removes this user's directories of such names
    /// there that no process holds.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(_: &Ambient, parent: &Path, prefix: &str) -> Result<Self, Error> {
        Self::below(parent, prefix)
    }

    /// As [`Scratch::create`], for a handle that was given the directory.
    pub(crate) fn below(parent: &Path, prefix: &str) -> Result<Self, Error> {
        remove_stale(parent, prefix, Instant::now() + MAX_STALE);
        for _ in 0..TRIES {
            let random = RandomState::new().build_hasher().finish();
            let path = parent.join(format!("{prefix}{}-{random:016x}", std::process::id()));
            make_private(&path)?;
            let held = match open(CWD, &path) {
                Ok(held) => File::from(held),
                // Another starting process removed it as stale.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(Error::io("open", &path, error)),
            };
            // If directories cannot be locked, none is treated as stale.
            held.lock().ok();
            // Until it was locked, another start could find and remove it.
            if same(&held, &path) {
                let path = path
                    .canonicalize()
                    .map_err(|error| Error::io("open", &path, error))?;
                return Ok(Self {
                    path,
                    removed: false,
                    _held: held,
                });
            }
        }
        let shown = crate::escape(parent);
        Err(Error::new(
            ErrorKind::Unavailable,
            format!("{shown}: another process removes each new directory at once"),
        ))
    }

    /// This user's directories of such names below `parent` whose owners are dead. Each is locked while its file is
    /// kept, so that no other process removes it.
    pub fn left<'a>(
        _: &Ambient,
        parent: &Path,
        prefix: &'a str,
    ) -> impl Iterator<Item = (PathBuf, File)> + use<'a> {
        unheld(parent, prefix)
    }

    /// The path, with links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now and reports errors, which a drop cannot.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(mut self) -> Result<(), Error> {
        self.removed = true;
        remove(&self.path, Instant::now() + MAX_TIME)
            .map_err(|error| Error::io("remove", &self.path, error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.removed {
            // The next start removes the rest.
            remove(&self.path, Instant::now() + MAX_TIME).ok();
        }
    }
}

pub(crate) fn make_private(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().mode(0o700).create(path);
    made.map_err(|error| unmade(path, error))
}

/// What is wrong where a temporary directory cannot be created.
pub(crate) fn unmade(path: &Path, error: std::io::Error) -> Error {
    match (error.kind(), path.parent()) {
        (std::io::ErrorKind::NotFound, Some(parent)) => {
            let text = format!(
                "the directory for temporary files, {}, does not exist; create it, or set TMPDIR to an existing directory",
                crate::escape(parent)
            );
            Error::new(ErrorKind::Unavailable, text)
        }
        _ => Error::io("create temporary directory", path, error),
    }
}

fn remove_stale(parent: &Path, prefix: &str, until: Instant) {
    for (path, _held) in unheld(parent, prefix) {
        remove(&path, until).ok();
    }
}

/// This user's directories of such names that were not locked; each is locked while its file is kept.
pub(crate) fn unheld<'a>(
    parent: &Path,
    prefix: &'a str,
) -> impl Iterator<Item = (PathBuf, File)> + use<'a> {
    let own = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named = entries.filter(move |entry| {
        entry
            .file_name()
            .to_str()
            .is_some_and(|name| named(name, prefix))
    });
    named.filter_map(move |entry| {
        let path = entry.path();
        // Checked before opening, which may change its permissions.
        entry
            .metadata()
            .ok()
            .filter(|meta| meta.is_dir() && meta.uid() == own)?;
        let held = File::from(open(CWD, &path).ok()?);
        let free = held.metadata().is_ok_and(|meta| meta.uid() == own) && held.try_lock().is_ok();
        (free && same(&held, &path)).then_some((path, held))
    })
}

fn named(name: &str, prefix: &str) -> bool {
    let parts = name
        .strip_prefix(prefix)
        .and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(pid, random)| {
        pid.parse::<u32>().is_ok()
            && random.len() == 16
            && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn same(held: &File, path: &Path) -> bool {
    let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
    held.metadata().is_ok_and(|held| {
        path.symlink_metadata()
            .is_ok_and(|named| id(held) == id(named))
    })
}

#[cfg(test)]
mod tests;
