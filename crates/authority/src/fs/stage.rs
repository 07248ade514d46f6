//! Replacing a file in one step: written beside it, made durable, renamed over it.

use super::locate::Located;
use super::open::{Stamp, meta, parent, regular, stamp, stat_at, synced, trouble};
use super::workspace::{Access, Workspace};
use crate::{Door, Error, ErrorKind};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// How many temporary names are tried before giving up.
const NAME_TRIES: usize = 4;

/// A file's next content, durable under a temporary name (`.yoi-<16 hex digits>.tmp`) beside it. Dropped, it is
/// removed; after a crash it stays, and can be told by that name.
#[derive(Debug)]
pub struct Staged {
    at: Located,
    dir: OwnedFd,
    temp: Option<OsString>,
    file: File,
    /// What it replaces.
    was: Option<Stamp>,
    door: Arc<Door>,
}

impl Workspace {
    /// Writes and syncs the next content of a file, existing or not, without making it visible. It is for the file as
    /// it is now; see [`Self::stage_over`].
    ///
    /// An existing file keeps its permission bits and its owner; a new one gets `0666` less the umask. As the name is
    /// given to a new file, other hard links keep the old content, and extended attributes do not carry over.
    ///
    /// # Errors
    /// `FixInput` when the directory does not exist or something else than a regular file is there; `Denied` for a
    /// read-only grant, by the system, or when the owner cannot be kept; `Exhausted` when the disk is full; `Revoked`.
    pub fn stage(&self, at: &Located, bytes: &[u8]) -> Result<Staged, Error> {
        let _pass = self.enter_at(at, Access::ReadWrite)?;
        self.stage_if(at, bytes, |_| true)
    }

    /// As [`Self::stage`], for the file as it was when [`Self::metadata`] gave this stamp, before its content was read;
    /// `None` when there was none.
    ///
    /// # Errors
    /// As for [`Self::stage`]; `FixInput` when it has changed, appeared or vanished since.
    pub fn stage_over(&self, at: &Located, was: Option<Stamp>, bytes: &[u8]) -> Result<Staged, Error> {
        let _pass = self.enter_at(at, Access::ReadWrite)?;
        self.stage_if(at, bytes, |now| now == was)
    }

    fn stage_if(
        &self,
        at: &Located,
        bytes: &[u8],
        expected: impl FnOnce(Option<Stamp>) -> bool,
    ) -> Result<Staged, Error> {
        let (dir, leaf) = parent(at)?;
        let old = look(&dir, leaf, at)?;
        if let Some(stat) = &old {
            regular(&self.show(at.path()), at.path(), stat)?;
        }
        let was = old.as_ref().map(stamp);
        if !expected(was) {
            return Err(changed(at));
        }
        let (file, temp) = create_temp(&dir, at, old.is_some())?;
        // From here on, dropping `staged` removes the file.
        let door = self.door().clone();
        let staged = Staged { at: at.clone(), dir, temp: Some(temp), file, was, door };
        fill(&staged.file, bytes, old.as_ref(), at)?;
        Ok(staged)
    }
}

impl Staged {
    /// With these permission bits, `0o7777` at most, instead of those that it has by itself; durably.
    ///
    /// # Errors
    /// `Denied` by the system; `Unavailable` when it cannot be synced; `Revoked`.
    pub fn with_mode(self, mode: u32) -> Result<Self, Error> {
        let door = self.door.clone();
        let _pass = door.enter().map_err(|_| Error::revoked(&super::escape(self.at.path())))?;
        let failed = |error: std::io::Error| Error::io("set the mode of", self.at.path(), error);
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode & 0o7777)).map_err(|error| failed(error.into()))?;
        self.file.sync_all().map_err(failed)?;
        Ok(self)
    }

    /// Makes it visible, durably. A file that was new must still be absent, and one that is replaced as it was. That is
    /// looked at right before the rename: only what somebody saves between those two calls is lost.
    ///
    /// # Errors
    /// `FixInput` when somebody created, changed or removed the file meanwhile; `Denied` by the system; `Revoked`.
    /// Except when only the last sync failed (`Unavailable`), nothing was changed.
    pub fn publish(self) -> Result<(), Error> {
        self.publish_stamped().map(drop)
    }

    /// [`Self::publish`], with the stamp of just this file: one that somebody put in its place meanwhile has another.
    ///
    /// # Errors
    /// As for [`Self::publish`].
    pub fn publish_stamped(mut self) -> Result<Stamp, Error> {
        let door = self.door.clone();
        let _pass = door.enter().map_err(|_| Error::revoked(&super::escape(self.at.path())))?;
        let (Some(temp), Some(leaf)) = (&self.temp, self.at.relative().file_name()) else {
            return Err(Error::new(ErrorKind::Bug, format!("{}: nothing staged", super::escape(self.at.path()))));
        };
        let replaces = self.was.is_some();
        if replaces && look(&self.dir, leaf, &self.at)?.as_ref().map(stamp) != self.was {
            return Err(changed(&self.at));
        }
        let flags = if replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let renamed = match rustix::fs::renameat_with(&self.dir, temp, &self.dir, leaf, flags) {
            // Some file systems know no NOREPLACE.
            Err(Errno::INVAL) if !replaces && stat_at(self.dir.as_fd(), leaf).is_err() => {
                rustix::fs::renameat(&self.dir, temp, &self.dir, leaf)
            }
            renamed => renamed,
        };
        match renamed {
            Ok(()) => self.temp = None,
            Err(Errno::EXIST) => {
                let shown = super::escape(self.at.path());
                let text = format!("write {shown}: somebody created it meanwhile; read it first");
                return Err(Error::new(ErrorKind::FixInput, text));
            }
            Err(error) => return Err(Error::io("write", self.at.path(), error)),
        }
        // After the rename, which counts as a change, and through the open file, whoever has the name by now.
        let now = rustix::fs::fstat(&self.file).map_err(|error| Error::io("write", self.at.path(), error))?;
        rustix::fs::fsync(synced(&self.dir, &self.at)?).map_err(|error| Error::io("sync", self.at.path(), error))?;
        Ok(stamp(&now))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(temp) = self.temp.take() {
            // It may be gone already, and nobody is left to tell.
            rustix::fs::unlinkat(&self.dir, temp, AtFlags::empty()).unwrap_or_default();
        }
    }
}

/// What stands there now, if anything.
fn look(dir: &OwnedFd, leaf: &OsStr, at: &Located) -> Result<Option<Stat>, Error> {
    match stat_at(dir.as_fd(), leaf) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(Error::io("write", at.path(), error)),
    }
}

fn changed(at: &Located) -> Error {
    let text = format!("write {}: it has changed meanwhile; read it again", super::escape(at.path()));
    Error::new(ErrorKind::FixInput, text)
}

fn create_temp(dir: &OwnedFd, at: &Located, replaces: bool) -> Result<(File, OsString), Error> {
    // A replacement gets its bits when its content is complete.
    let mode = Mode::from_raw_mode(if replaces { 0o600 } else { 0o666 });
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut last = Errno::EXIST;
    for _ in 0..NAME_TRIES {
        let name = OsString::from(format!(".yoi-{:016x}.tmp", RandomState::new().build_hasher().finish()));
        match rustix::fs::openat(dir, &name, flags, mode) {
            Ok(file) => return Ok((File::from(file), name)),
            Err(Errno::EXIST) => last = Errno::EXIST,
            Err(error) => return Err(trouble("write beside", at.path(), error)),
        }
    }
    Err(Error::io("write beside", at.path(), last))
}

fn fill(mut file: &File, bytes: &[u8], old: Option<&Stat>, at: &Located) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::io("write", at.path(), error);
    file.write_all(bytes).map_err(failed)?;
    if let Some(old) = old {
        keep_owner(file, old, at)?;
        // After the owner: changing it clears the set-id bits.
        let mode = Mode::from_raw_mode(meta(old).mode);
        rustix::fs::fchmod(file, mode).map_err(|error| failed(error.into()))?;
    }
    file.sync_all().map_err(failed)
}

fn keep_owner(file: &File, old: &Stat, at: &Located) -> Result<(), Error> {
    let new = rustix::fs::fstat(file).map_err(|error| Error::io("write", at.path(), error))?;
    if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid) {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
    rustix::fs::fchown(file, Some(uid), Some(gid)).map_err(|error| match error {
        Errno::PERM => {
            let shown = super::escape(at.path());
            let (uid, gid) = (old.st_uid, old.st_gid);
            let text = format!("write {shown}: it belongs to user {uid}, group {gid}, and replacing it would change that; change its owner first");
            Error::new(ErrorKind::Denied, text)
        }
        other => Error::io("write", at.path(), other),
    })
}
