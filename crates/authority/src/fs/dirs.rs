//! Operations on whole directories: moving, removing, and using one as a lock. Their content is not read.

use super::locate::{Located, which};
use super::open::{parent, stat_at, step, synced, top, trouble};
use super::workspace::{Access, Workspace};
use crate::{Error, ErrorKind};
use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};

/// A directory used as a lock. Removed on drop, even if the grant was revoked meanwhile; after a crash it stays.
#[derive(Debug)]
pub struct LockDir {
    dir: OwnedFd,
    name: OsString,
    /// Device and inode, because another process may have removed the directory and created its own; `None` keeps it.
    made: Option<(u64, u64)>,
}

impl Workspace {
    /// Creates a directory that must not exist yet and removes it when the lock is dropped; `None` when it exists. Its
    /// parent must exist. Programs that create the same directory exclude each other.
    ///
    /// # Errors
    /// `FixInput` when the directory above does not exist; `Denied` for a read-only grant or by the system; `Revoked`.
    pub fn lock_dir(&self, at: &Located) -> Result<Option<LockDir>, Error> {
        let _use = self.enter_at(at, Access::ReadWrite)?;
        let (dir, leaf) = parent(at)?;
        match rustix::fs::mkdirat(&dir, leaf, Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                let name = leaf.to_owned();
                let made = which_at(&dir, leaf);
                Ok(Some(LockDir { dir, name, made }))
            }
            Err(Errno::EXIST) => Ok(None),
            Err(error) => Err(Error::io("create directory", at.path(), error)),
        }
    }

    /// Removes an empty directory; for undoing its creation.
    ///
    /// # Errors
    /// `FixInput` when there is none, or something is in it; `Denied` for a read-only grant or by the system;
    /// `Revoked`.
    pub fn remove_dir(&self, at: &Located) -> Result<(), Error> {
        let _use = self.enter_at(at, Access::ReadWrite)?;
        let (dir, leaf) = parent(at)?;
        let removed = rustix::fs::unlinkat(&dir, leaf, AtFlags::REMOVEDIR);
        removed.map_err(|error| match error {
            Errno::NOTEMPTY | Errno::EXIST => {
                let text = format!(
                    "remove {}: it is not empty; empty it first",
                    super::escape(at.path())
                );
                Error::new(ErrorKind::FixInput, text)
            }
            error => Error::io("remove directory", at.path(), error),
        })?;
        rustix::fs::fsync(synced(&dir, at)?)
            .map_err(|error| Error::io("remove directory", at.path(), error))
    }

    /// Renames a file or directory, durably. The new name must be free. Missing parent directories are created.
    ///
    /// # Errors
    /// `FixInput` when there is nothing to move, the new name is taken or lies below the old one; `Denied` for a
    /// read-only grant or by the system; `Revoked`. Except when only the last sync failed (`Unavailable`), nothing was
    /// moved, and the parent directories created for it are removed.
    pub fn rename(&self, from: &Located, to: &Located) -> Result<(), Error> {
        let _from = self.enter_at(from, Access::ReadWrite)?;
        let _to = self.enter_at(to, Access::ReadWrite)?;
        let (old_dir, old) = parent(from)?;
        stat_at(old_dir.as_fd(), old).map_err(|error| trouble("move", from.path(), error))?;
        let made = Above::make(to)?;
        let (new_dir, new) = parent(to)?;
        let renamed =
            match rustix::fs::renameat_with(&old_dir, old, &new_dir, new, RenameFlags::NOREPLACE) {
                // Some file systems do not support NOREPLACE.
                Err(Errno::INVAL)
                    if stat_at(new_dir.as_fd(), new).is_err()
                        && !to.path().starts_with(from.path()) =>
                {
                    rustix::fs::renameat(&old_dir, old, &new_dir, new)
                }
                renamed => renamed,
            };
        renamed.map_err(|error| match error {
            Errno::EXIST => {
                let text = format!(
                    "move to {}: it already exists; check what it is",
                    super::escape(to.path())
                );
                Error::new(ErrorKind::FixInput, text)
            }
            error => trouble("move", from.path(), error),
        })?;
        made.keep();
        for (dir, at) in [(&new_dir, to), (&old_dir, from)] {
            rustix::fs::fsync(synced(dir, at)?)
                .map_err(|error| Error::io("sync", at.path(), error))?;
        }
        Ok(())
    }
}

/// Parent directories created for a rename. On drop, the empty ones are removed.
struct Above(Vec<LockDir>);

impl Above {
    /// Creates the missing parents of a path.
    fn make(at: &Located) -> Result<Self, Error> {
        let failed = |error: Errno| trouble("create directory", at.path(), error);
        let mut dir = top(at)?;
        let mut made = Self(Vec::new());
        for name in at.relative().parent().into_iter().flatten() {
            match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => {
                    let copy = dir
                        .try_clone()
                        .map_err(|error| Error::io("create directory", at.path(), error))?;
                    made.0.push(LockDir {
                        dir: copy,
                        name: name.to_owned(),
                        made: which_at(&dir, name),
                    });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            dir = step(dir.as_fd(), name).map_err(failed)?;
        }
        Ok(made)
    }

    fn keep(mut self) {
        self.0.iter_mut().for_each(|dir| dir.made = None);
    }
}

impl Drop for Above {
    fn drop(&mut self) {
        // Removes the innermost directory first.
        while self.0.pop().is_some() {}
    }
}

impl Drop for LockDir {
    fn drop(&mut self) {
        if self.made.is_some() && which_at(&self.dir, &self.name) == self.made {
            // It may be removed already, and a destructor cannot report errors.
            rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::REMOVEDIR).ok();
        }
    }
}

fn which_at(dir: &OwnedFd, name: &OsStr) -> Option<(u64, u64)> {
    stat_at(dir.as_fd(), name).ok().map(|stat| which(&stat))
}
