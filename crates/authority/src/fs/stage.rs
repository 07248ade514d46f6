//! Replacing a file atomically: the new content is written beside it, synced, and renamed over it. Missing parent
//! directories are staged with it and renamed with it.

use super::locate::{Located, which};
use super::open::{Stamp, meta, open_dir_at, regular, stamp, stat_at, step, synced, top, trouble};
use super::place::{Place, born, check_stands, moved, names};
use super::workspace::{Access, Workspace};
use crate::{Door, Error, ErrorKind};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The number of attempts to reuse a temporary name that a dead process left.
const NAME_TRIES: usize = 4;

/// New content of a file, durable under a temporary name (`.yoi-<16 hex digits>.tmp`) beside it. Where parent
/// directories are missing, the temporary name is a directory that contains the rest, beside the topmost missing one.
/// Removed on drop; after a crash [`Workspace::unstage`] finds it by its number.
#[derive(Debug)]
pub struct Staged {
    at: Located,
    entry: TempEntry,
    file: File,
    /// The stamp of the file that it replaces; `None` for a new file.
    was: Option<Stamp>,
    door: Arc<Door>,
}

/// The temporary file or directory that holds the new content beside its place. Renaming keeps it; dropping deletes it.
#[derive(Debug)]
struct TempEntry {
    /// The deepest existing directory above the file.
    dir: OwnedFd,
    temp: OsString,
    /// Below that: the directories that were missing, then the file.
    names: Vec<OsString>,
    /// The staged directory or file, locked: a process that can lock it knows that the owner is dead.
    held: Option<File>,
}

impl Workspace {
    /// Writes and syncs the next content of a file, existing or not, without making it visible. It is for the file as
    /// it is now; see [`Self::stage_over`]. `number` makes the temporary name: one that no other writer beside this
    /// file uses. Files that a dead process left under this name are removed.
    ///
    /// An existing file keeps its permission bits and its owner; a new one gets `0666` less the umask. As the name is
    /// given to a new file, other hard links keep the old content, and extended attributes do not carry over.
    ///
    /// # Errors
    /// `FixInput` when something else than a regular file is there; `Denied` for a read-only grant, by the system, or
    /// when the owner cannot be kept; `Exhausted` when the disk is full; `Revoked`.
    pub fn stage(&self, at: &Located, number: u64, bytes: &[u8]) -> Result<Staged, Error> {
        self.stage_if(self.place(at)?, number, bytes, |_| true)
    }

    /// As [`Self::stage`], for the file as it was when [`Self::metadata`] gave this stamp, before its content was read;
    /// `None` when there was none.
    ///
    /// # Errors
    /// As for [`Self::stage`]; `FixInput` when it has changed, appeared or vanished since.
    pub fn stage_over(
        &self,
        at: &Located,
        was: Option<Stamp>,
        number: u64,
        bytes: &[u8],
    ) -> Result<Staged, Error> {
        self.stage_in(self.place(at)?, was, number, bytes)
    }

    /// As [`Self::stage_over`], in a directory that was opened before.
    ///
    /// # Errors
    /// As for [`Self::stage_over`]; when it is published, `Denied` if the path does not lead to this directory any more.
    pub fn stage_in(
        &self,
        place: Place,
        was: Option<Stamp>,
        number: u64,
        bytes: &[u8],
    ) -> Result<Staged, Error> {
        self.stage_if(place, number, bytes, |now| now == was)
    }

    /// Removes the content that a dead process staged for a file under this number, and nothing else. Recovery calls
    /// it. Returns whether there was any.
    ///
    /// # Errors
    /// `Denied` for a read-only grant or by the system; `Revoked`.
    pub fn unstage(&self, at: &Located, number: u64) -> Result<bool, Error> {
        let _use = self.enter_at(at, Access::ReadWrite)?;
        let temp = temp_name(number);
        let mut names = names(at).into_iter();
        let mut dir = top(at)?;
        let mut found = false;
        while let Some(name) = names.next() {
            found |= discard(dir.as_fd(), &temp, names.as_slice())
                .map_err(|e| trouble("clear", at.path(), e))?;
            match step(dir.as_fd(), &name) {
                Ok(next) => dir = next,
                Err(_) => break,
            }
        }
        Ok(found)
    }

    fn stage_if(
        &self,
        place: Place,
        number: u64,
        bytes: &[u8],
        expected: impl FnOnce(Option<Stamp>) -> bool,
    ) -> Result<Staged, Error> {
        let Place { at, dir, names, .. } = place;
        let at = &at;
        let _use = self.enter_at(at, Access::ReadWrite)?;
        let old = match names.as_slice() {
            [leaf] => look(&dir, leaf, at)?,
            _ => None,
        };
        if let Some(stat) = &old {
            regular(&self.show(at.path()), at.path(), stat)?;
        }
        let was = old.as_ref().map(stamp);
        if !expected(was) {
            return Err(changed(at));
        }
        let mut entry = TempEntry {
            dir,
            temp: temp_name(number),
            names,
            held: None,
        };
        // From here on, dropping `entry` removes the temporary files.
        let file = entry.create(at, old.is_some())?;
        fill(&file, bytes, old.as_ref(), at)?;
        entry.sync(at)?;
        Ok(Staged {
            at: at.clone(),
            entry,
            file,
            was,
            door: self.door().clone(),
        })
    }
}

impl Staged {
    /// Sets these permission bits (at most `0o7777`) instead of the default ones, durably.
    ///
    /// # Errors
    /// `Denied` by the system; `Unavailable` when it cannot be synced; `Revoked`.
    pub fn with_mode(self, mode: u32) -> Result<Self, Error> {
        let door = self.door.clone();
        let _use = door
            .enter()
            .map_err(|_| Error::revoked(&super::escape(self.at.path())))?;
        let failed = |error: std::io::Error| Error::io("set the mode of", self.at.path(), error);
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode & 0o7777))
            .map_err(|error| failed(error.into()))?;
        self.file.sync_all().map_err(failed)?;
        Ok(self)
    }

    /// Renames the new content into place, durably. A new file must still be absent, a replaced one unchanged. This is
    /// checked right before the rename: only a change between these two system calls is lost. Directories created
    /// meanwhile are used. Returns the stamp of this file; one put in its place meanwhile has another.
    ///
    /// # Errors
    /// `FixInput` when the file was created, changed or removed meanwhile; `Denied` by the system, or when the path leads
    /// to another directory than the one it was staged in; `Revoked`.
    /// Except when only the last sync failed (`Unavailable`), nothing was changed.
    pub fn publish(self) -> Result<Stamp, Error> {
        let door = self.door.clone();
        let _use = door
            .enter()
            .map_err(|_| Error::revoked(&super::escape(self.at.path())))?;
        let replaces = self.was.is_some();
        check_stands(&self.at, &self.entry.dir, self.entry.names.len())?;
        if let (true, [leaf]) = (replaces, self.entry.names.as_slice())
            && look(&self.entry.dir, leaf, &self.at)?.as_ref().map(stamp) != self.was
        {
            return Err(changed(&self.at));
        }
        let dir = self.entry.rename_into_place(&self.at, replaces)?;
        // Read after the rename, which changes the stamp, and through the open file, because the name may belong to
        // another file by now.
        let now = rustix::fs::fstat(&self.file)
            .map_err(|error| Error::io("write", self.at.path(), error))?;
        rustix::fs::fsync(synced(&dir, &self.at)?)
            .map_err(|error| Error::io("sync", self.at.path(), error))?;
        Ok(stamp(&now))
    }
}

impl TempEntry {
    /// Creates the missing directories and the file under the temporary name.
    fn create(&mut self, at: &Located, replaces: bool) -> Result<File, Error> {
        let failed = |error: Errno| match error {
            // The directory itself was removed.
            Errno::NOENT => moved(at),
            error => trouble("write beside", at.path(), error),
        };
        let inner = self.names.get(1..).unwrap_or_default().to_vec();
        for _ in 0..NAME_TRIES {
            let made = match inner.as_slice() {
                [] => create_file(self.dir.as_fd(), &self.temp, replaces),
                _ => make_dir(self.dir.as_fd(), &self.temp),
            };
            let made = match made {
                Ok(made) => File::from(made),
                Err(Errno::EXIST) => match abandoned(self.dir.as_fd(), &self.temp) {
                    Some(_locked) => {
                        discard(self.dir.as_fd(), &self.temp, &inner).map_err(failed)?;
                        continue;
                    }
                    None => break,
                },
                Err(error) => return Err(failed(error)),
            };
            // Before it was locked, another process could have treated it as abandoned. Without locks, none does.
            if matches!(made.try_lock(), Err(TryLockError::WouldBlock))
                || !same(&made, self.dir.as_fd(), &self.temp)
            {
                continue;
            }
            let held = self.held.insert(made);
            return match inner.as_slice() {
                [] => held
                    .try_clone()
                    .map_err(|error| Error::io("write beside", at.path(), error)),
                [dirs @ .., leaf] => self.inside(dirs, leaf).map_err(failed),
            };
        }
        let shown = super::escape(at.path());
        let text = format!(
            "write {shown}: its temporary file {} already exists; try again",
            self.temp.display()
        );
        Err(Error::new(ErrorKind::Unavailable, text))
    }

    fn inside(&self, dirs: &[OsString], leaf: &OsStr) -> Result<File, Errno> {
        let mut dir = step(self.dir.as_fd(), &self.temp)?;
        for name in dirs {
            dir = make_dir(dir.as_fd(), name)?;
        }
        create_file(dir.as_fd(), leaf, false).map(File::from)
    }

    /// Makes the content of staged directories durable.
    fn sync(&self, at: &Located) -> Result<(), Error> {
        let failed = |error: Errno| trouble("write beside", at.path(), error);
        let mut name = self.temp.as_os_str();
        let mut dir = copy(&self.dir, at)?;
        for next in self.names.iter().skip(1) {
            dir = open_dir_at(dir.as_fd(), name).map_err(failed)?;
            rustix::fs::fsync(&dir).map_err(failed)?;
            name = next;
        }
        Ok(())
    }

    /// Renames the staged file or directory; returns the directory that holds it now. If a missing directory was
    /// created meanwhile, its staged content is moved into it.
    fn rename_into_place(&self, at: &Located, replaces: bool) -> Result<OwnedFd, Error> {
        let failed = |error: Errno| trouble("write", at.path(), error);
        let mut from = copy(&self.dir, at)?;
        let mut to = copy(&self.dir, at)?;
        let mut old = self.temp.as_os_str();
        let flags = if replaces {
            RenameFlags::empty()
        } else {
            RenameFlags::NOREPLACE
        };
        let mut names = self.names.iter().peekable();
        while let Some(new) = names.next() {
            let renamed = match rustix::fs::renameat_with(&from, old, &to, new, flags) {
                // Some file systems do not support NOREPLACE.
                Err(Errno::INVAL) if !replaces => match stat_at(to.as_fd(), new) {
                    Ok(_) => Err(Errno::EXIST),
                    Err(_) => rustix::fs::renameat(&from, old, &to, new),
                },
                renamed => renamed,
            };
            match (renamed, names.peek()) {
                (Ok(()), _) => return Ok(to),
                (Err(Errno::EXIST), Some(below)) => {
                    to = step(to.as_fd(), new).map_err(failed)?;
                    from = step(from.as_fd(), old).map_err(failed)?;
                    // An older one was elsewhere when this was staged.
                    if born(&to).is_none() || born(&to) < born(&from) {
                        return Err(moved(at));
                    }
                    old = below;
                }
                (Err(Errno::EXIST), None) => {
                    let shown = super::escape(at.path());
                    let text = format!(
                        "write {shown}: another process created it meanwhile; read it first"
                    );
                    return Err(Error::new(ErrorKind::FixInput, text));
                }
                (Err(error), _) => return Err(failed(error)),
            }
        }
        Err(Error::new(
            ErrorKind::Bug,
            format!("{}: nothing staged", super::escape(at.path())),
        ))
    }
}

impl Drop for TempEntry {
    fn drop(&mut self) {
        if self
            .held
            .as_ref()
            .is_some_and(|held| same(held, self.dir.as_fd(), &self.temp))
        {
            let inner = self.names.get(1..).unwrap_or_default();
            // A destructor cannot report errors; `unstage` finds the rest by its number.
            discard(self.dir.as_fd(), &self.temp, inner).ok();
        }
    }
}

fn temp_name(number: u64) -> OsString {
    OsString::from(format!(".yoi-{number:016x}.tmp"))
}

/// Whether a name is one that a file or directory has until it is published.
pub(super) fn is_temp_name(name: &OsStr) -> bool {
    let digits = name
        .to_str()
        .and_then(|name| name.strip_prefix(".yoi-")?.strip_suffix(".tmp"));
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

fn copy(dir: &OwnedFd, at: &Located) -> Result<OwnedFd, Error> {
    dir.try_clone()
        .map_err(|error| Error::io("write", at.path(), error))
}

fn make_dir(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o777))?;
    open_dir_at(dir, name)
}

fn create_file(dir: BorrowedFd<'_>, name: &OsStr, replaces: bool) -> Result<OwnedFd, Errno> {
    // A replacement gets its permission bits when its content is complete.
    let mode = Mode::from_raw_mode(if replaces { 0o600 } else { 0o666 });
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, mode)
}

/// Opens and locks a temporary name if the process that staged it is dead.
fn abandoned(dir: BorrowedFd<'_>, temp: &OsStr) -> Option<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::openat(dir, temp, flags, Mode::empty()).ok()?);
    (file.try_lock().is_ok() && same(&file, dir, temp)).then_some(file)
}

/// Whether an open file is the one of this name.
fn same(file: &File, dir: BorrowedFd<'_>, name: &OsStr) -> bool {
    let held = rustix::fs::fstat(file);
    let named = stat_at(dir, name);
    matches!((held, named), (Ok(held), Ok(named)) if which(&held) == which(&named))
}

/// Removes a staged file, or the staged directories on the way to the file that `inner` ends with; other files in them
/// stay. Returns whether there was something.
fn discard(dir: BorrowedFd<'_>, temp: &OsStr, inner: &[OsString]) -> Result<bool, Errno> {
    let missing = |error: &Errno| matches!(*error, Errno::NOENT | Errno::NOTDIR);
    match (
        rustix::fs::unlinkat(dir, temp, AtFlags::empty()),
        inner.split_last(),
    ) {
        (Ok(()), _) => Ok(true),
        (Err(error), _) if missing(&error) => Ok(false),
        (Err(Errno::ISDIR | Errno::PERM), Some((leaf, dirs))) => {
            // One handle at a time: there may be more directories than handles.
            for depth in (0..=dirs.len()).rev() {
                let mut above = step(dir, temp)?;
                let way = dirs.get(..depth).unwrap_or_default();
                let Some(above) = way.iter().try_fold(&mut above, |above, name| {
                    *above = step(above.as_fd(), name).ok()?;
                    Some(above)
                }) else {
                    continue;
                };
                let (name, kind) = dirs
                    .get(depth)
                    .map_or((leaf, AtFlags::empty()), |name| (name, AtFlags::REMOVEDIR));
                // Errors show at the end: the directory is then not empty.
                rustix::fs::unlinkat(&*above, name, kind).ok();
            }
            rustix::fs::unlinkat(dir, temp, AtFlags::REMOVEDIR)?;
            Ok(true)
        }
        (Err(error), _) => Err(error),
    }
}

/// The metadata of the entry that is there now, if any.
fn look(dir: &OwnedFd, leaf: &OsStr, at: &Located) -> Result<Option<Stat>, Error> {
    match stat_at(dir.as_fd(), leaf) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(Error::io("write", at.path(), error)),
    }
}

fn changed(at: &Located) -> Error {
    let text = format!(
        "write {}: it has changed meanwhile; read it again",
        super::escape(at.path())
    );
    Error::new(ErrorKind::FixInput, text)
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
    let uid = Uid::from_raw(old.st_uid);
    let gid = Gid::from_raw(old.st_gid);
    rustix::fs::fchown(file, Some(uid), Some(gid)).map_err(|error| match error {
        Errno::PERM => {
            let shown = super::escape(at.path());
            let uid = old.st_uid;
            let gid = old.st_gid;
            let text = format!("write {shown}: it belongs to user {uid}, group {gid}, and replacing it would change that; change its owner first");
            Error::new(ErrorKind::Denied, text)
        }
        other => Error::io("write", at.path(), other),
    })
}
