//! Opening, reading metadata and listing below a directory handle, one name at a time and never through a link.

use super::locate::Located;
use super::workspace::{Access, Workspace};
use crate::{Error, ErrorKind};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most entries of one directory that are listed.
pub const MAX_DIR_ENTRIES: usize = 50_000;

/// The type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Dir,
    /// A symbolic link, not its target.
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

/// Metadata of a file, read without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    pub kind: FileKind,
    /// In bytes.
    pub len: u64,
    /// Its permission bits, `0o7777` at most.
    pub mode: u32,
    /// When its content last changed.
    pub modified: SystemTime,
    /// Identifies this state of the file, to notice a later change.
    pub stamp: Stamp,
}

/// How long two changes of a file may have one time, in nanoseconds: longer than the tick of the coarsest file system.
const TICK: i128 = 3_000_000_000;

/// The state of a file: device, inode, length, and the times of the last changes. Two changes of the same length within
/// one tick of the file system's clock have the same stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp([i128; 7]);

impl Stamp {
    /// Whether both are states of one file: it may have several names.
    #[must_use]
    pub fn is_of_the_same_file(&self, other: &Self) -> bool {
        let ([device, inode, ..], [its_device, its_inode, ..]) = (self.0, other.0);
        (device, inode) == (its_device, its_inode)
    }

    /// Whether each later change gives another state: the last one is over [`TICK`] before `now`.
    #[must_use]
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        i128::try_from(now.as_nanos()).is_ok_and(|now| now - self.changed() > TICK)
    }

    /// The time of the file's last change (`ctime`) in nanoseconds since 1970. No program can set it.
    pub(crate) fn changed(&self) -> i128 {
        let [_, _, _, _, _, seconds, nanos] = self.0;
        seconds * 1_000_000_000 + nanos
    }
}

/// The state as one word, for a program that compares it later.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.map(|part| format!("{part:x}"));
        f.write_str(&parts.join("-"))
    }
}

impl Workspace {
    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// `FixInput` when it does not exist or is no regular file (the text names the type); `Denied` by the system or
    /// when it was replaced by a link meanwhile; `Revoked`.
    pub fn open_file(&self, at: &Located) -> Result<File, Error> {
        let _use = self.enter_at(at, Access::Read)?;
        let (dir, leaf) = parent(at)?;
        // Checked before opening: opening a device can have side effects.
        let stat =
            stat_at(dir.as_fd(), leaf).map_err(|error| Error::io("open", at.path(), error))?;
        regular(&self.show(at.path()), at.path(), &stat)?;
        let flags =
            OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::openat(&dir, leaf, flags, Mode::empty())
            .map_err(|error| trouble("open", at.path(), error))?;
        let stat = rustix::fs::fstat(&file).map_err(|error| Error::io("open", at.path(), error))?;
        regular(&self.show(at.path()), at.path(), &stat)?;
        Ok(File::from(file))
    }

    /// Metadata of a path; for a link, of the link itself.
    ///
    /// # Errors
    /// `FixInput` when there is nothing; `Denied` by the system; `Revoked`.
    pub fn metadata(&self, at: &Located) -> Result<Meta, Error> {
        let _use = self.enter_at(at, Access::Read)?;
        let (dir, leaf) = parent(at)?;
        let stat =
            stat_at(dir.as_fd(), leaf).map_err(|error| Error::io("look at", at.path(), error))?;
        Ok(meta(&stat))
    }

    /// The entries of a directory, sorted by name, without `.` and `..`. An entry removed meanwhile is omitted.
    ///
    /// # Errors
    /// `FixInput` when it is no directory; `Exhausted` beyond [`MAX_DIR_ENTRIES`]; `Denied` by the system; `Revoked`.
    pub fn read_dir(&self, at: &Located) -> Result<Vec<(OsString, Meta)>, Error> {
        let _use = self.enter_at(at, Access::Read)?;
        let dir = open_dir(at)?;
        let mut entries = Vec::new();
        for name in list(&dir, at.path())? {
            match stat_at(dir.as_fd(), &name) {
                Ok(stat) => entries.push((name, meta(&stat))),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(Error::io("look at", &at.path().join(name), error)),
            }
        }
        Ok(entries)
    }

    /// Removes a file or a link; for undoing its creation.
    ///
    /// # Errors
    /// `FixInput` when there is nothing or a directory; `Denied` for a read-only grant or by the system; `Revoked`.
    pub fn remove(&self, at: &Located) -> Result<(), Error> {
        let _use = self.enter_at(at, Access::ReadWrite)?;
        let (dir, leaf) = parent(at)?;
        rustix::fs::unlinkat(&dir, leaf, AtFlags::empty())
            .map_err(|error| Error::io("remove", at.path(), error))?;
        rustix::fs::fsync(synced(&dir, at)?).map_err(|error| Error::io("remove", at.path(), error))
    }
}

/// Metadata in one system call. Links on the way are followed, so the result may not decide what is opened or changed;
/// it only shows whether a file known by its [`Stamp`] is unchanged.
pub(crate) fn meta_at(at: &Located) -> Result<Meta, Errno> {
    let name = if at.relative().as_os_str().is_empty() {
        Path::new(".")
    } else {
        at.relative()
    };
    rustix::fs::statat(at.root().dir(), name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| meta(&stat))
}

/// The state of an open file or directory.
pub(crate) fn looked_at(file: impl AsFd) -> Result<Meta, Errno> {
    rustix::fs::fstat(file).map(|stat| meta(&stat))
}

/// A directory entry: its name, and its type where the directory has it.
pub(crate) type Name = (OsString, Option<FileKind>);

/// At most `max` names of a directory with their types, where the directory has them, and the directory's metadata
/// before they were read.
pub(crate) fn names(at: &Located, max: usize) -> Result<(Meta, Vec<Name>), Error> {
    let dir = open_dir(at)?;
    let failed = |error: Errno| Error::io("list", at.path(), error);
    let state = looked_at(&dir).map_err(failed)?;
    Ok((state, entries(&dir, max).map_err(failed)?))
}

/// Where a link points.
pub(crate) fn target(at: &Located) -> Result<OsString, Error> {
    let (dir, leaf) = parent(at)?;
    let target = rustix::fs::readlinkat(&dir, leaf, Vec::new())
        .map_err(|error| Error::io("read", at.path(), error))?;
    Ok(OsString::from_vec(target.into_bytes()))
}

/// Creates a link to `target`; the name must be free.
pub(crate) fn relink(at: &Located, target: &OsStr) -> Result<(), Error> {
    let (dir, leaf) = parent(at)?;
    rustix::fs::symlinkat(target, &dir, leaf).map_err(|error| Error::io("link", at.path(), error))
}

/// The handle of the directory that contains a path, and the name in it; `.` for a root itself.
pub(super) fn parent(at: &Located) -> Result<(OwnedFd, &OsStr), Error> {
    let mut dir = top(at)?;
    let Some(leaf) = at.relative().file_name() else {
        return Ok((dir, OsStr::new(".")));
    };
    for name in at.relative().parent().into_iter().flatten() {
        dir = step(dir.as_fd(), name).map_err(|error| trouble("open", at.path(), error))?;
    }
    Ok((dir, leaf))
}

/// A readable handle of a directory.
pub(super) fn open_dir(at: &Located) -> Result<OwnedFd, Error> {
    let (dir, leaf) = parent(at)?;
    open_dir_at(dir.as_fd(), leaf).map_err(|error| match error {
        Errno::NOTDIR => Error::io("list", at.path(), error),
        other => trouble("list", at.path(), other),
    })
}

pub(super) fn open_dir_at(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// The names in a directory, sorted.
pub(super) fn list(dir: &OwnedFd, path: &Path) -> Result<Vec<OsString>, Error> {
    let names =
        entries(dir, MAX_DIR_ENTRIES + 1).map_err(|error| Error::io("list", path, error))?;
    if names.len() > MAX_DIR_ENTRIES {
        let text = format!(
            "list {}: more than {MAX_DIR_ENTRIES} entries; use a shell command",
            super::escape(path)
        );
        return Err(Error::new(ErrorKind::Exhausted, text));
    }
    let mut names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    Ok(names)
}

/// At most `max` names, as the directory has them.
pub(super) fn entries(dir: &OwnedFd, max: usize) -> Result<Vec<Name>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() == max {
            break;
        }
        let known = (entry.file_type() != FileType::Unknown).then(|| kind(entry.file_type()));
        names.push((OsString::from_vec(name.to_vec()), known));
    }
    Ok(names)
}

pub(super) fn stat_at(dir: BorrowedFd<'_>, name: &OsStr) -> Result<Stat, Errno> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

pub(super) fn meta(stat: &Stat) -> Meta {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Meta {
        kind: kind(FileType::from_raw_mode(stat.st_mode)),
        len: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & 0o7777,
        modified: UNIX_EPOCH + Duration::new(seconds, nanos),
        stamp: stamp(stat),
    }
}

pub(super) fn stamp(stat: &Stat) -> Stamp {
    Stamp([
        stat.st_dev.into(),
        stat.st_ino.into(),
        stat.st_size.into(),
        stat.st_mtime.into(),
        stat.st_mtime_nsec.into(),
        stat.st_ctime.into(),
        stat.st_ctime_nsec.into(),
    ])
}

pub(super) fn kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Dir,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => FileKind::Other,
    }
}

/// A handle that can be synced: `O_PATH` handles cannot.
pub(super) fn synced(dir: &OwnedFd, at: &Located) -> Result<OwnedFd, Error> {
    open_dir_at(dir.as_fd(), OsStr::new("."))
        .map_err(|error| Error::io("sync the directory of", at.path(), error))
}

/// Fails unless it is a regular file; the message names the type. `shown` is the path for the message.
pub(super) fn regular(shown: &str, path: &Path, stat: &Stat) -> Result<(), Error> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory; list it instead",
        FileType::Symlink => return Err(trouble("open", path, Errno::LOOP)),
        FileType::Fifo => "a FIFO, which could block for ever; name a regular file",
        FileType::Socket => "a socket; name a regular file",
        FileType::CharacterDevice | FileType::BlockDevice => "a device; name a regular file",
        FileType::Unknown => "of unknown type; name a regular file",
    };
    Err(Error::new(
        ErrorKind::FixInput,
        format!("{shown} is {what}"),
    ))
}

/// Converts an error of opening a path. With `O_NOFOLLOW` the kernel returns `ELOOP` or, for directories, `ENOTDIR` if
/// a link was created after the path was resolved.
pub(super) fn trouble(doing: &str, path: &Path, error: Errno) -> Error {
    if error == Errno::LOOP {
        let text = format!(
            "{doing} {}: it became a symbolic link meanwhile; try again",
            super::escape(path)
        );
        return Error::new(ErrorKind::Denied, text);
    }
    Error::io(doing, path, error)
}

pub(super) fn top(at: &Located) -> Result<OwnedFd, Error> {
    at.root()
        .dir()
        .try_clone_to_owned()
        .map_err(|error| Error::io("open", at.path(), error))
}

pub(super) fn step(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}
