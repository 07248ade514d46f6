//! Where a file is written: the deepest existing directory above it, opened once, and the names below it.

use super::locate::{Located, which};
use super::open::{stat_at, step, top, trouble};
use super::workspace::{Access, Workspace};
use crate::{Error, ErrorKind};
use rustix::fs::{AtFlags, FileType, StatxFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

/// The entries by which git takes a directory for a repository.
const GIT: [(&str, FileType); 3] = [
    ("HEAD", FileType::RegularFile),
    ("objects", FileType::Directory),
    ("refs", FileType::Directory),
];

/// The place of a file: the deepest existing directory above it, open, and the names below it. What is staged in it
/// lands in this directory or nowhere, whatever becomes of its name.
#[derive(Debug)]
pub struct Place {
    pub(super) at: Located,
    pub(super) dir: OwnedFd,
    /// Below `dir`: the directories that are missing, then the file.
    pub(super) names: Vec<OsString>,
    id: (u64, u64),
    in_git_dir: bool,
}

impl Workspace {
    /// Opens the place of a file, existing or not.
    ///
    /// # Errors
    /// `FixInput` when a file is used as a directory; `Denied` by the system or when a link was made on the way
    /// meanwhile; `Revoked`.
    pub fn place(&self, at: &Located) -> Result<Place, Error> {
        let _use = self.enter_at(at, Access::Read)?;
        let mut dir = top(at)?;
        let mut left = names(at).into_iter();
        let mut in_git_dir = is_git_dir(dir.as_fd());
        while let [name, _, ..] = left.as_slice() {
            match step(dir.as_fd(), name) {
                Ok(next) => dir = next,
                Err(Errno::NOENT) => break,
                Err(error) => return Err(trouble("open", at.path(), error)),
            }
            in_git_dir |=
                is_git_dir(dir.as_fd()) || id(&dir, at)? == at.root().git.unwrap_or_default();
            left.next();
        }
        let id = id(&dir, at)?;
        let names = left.collect();
        Ok(Place {
            at: at.clone(),
            dir,
            names,
            id,
            in_git_dir,
        })
    }
}

impl Place {
    /// Device and inode of the open directory.
    pub fn id(&self) -> (u64, u64) {
        self.id
    }

    /// When the open directory was created, since 1970; `None` where the file system does not tell.
    pub fn born(&self) -> Option<Duration> {
        born(&self.dir)
    }

    /// Whether the file lies in a directory that git takes for a repository, whatever its name.
    pub fn in_git_dir(&self) -> bool {
        self.in_git_dir
    }

    /// The topmost missing directory above the file.
    pub fn missing(&self) -> Option<PathBuf> {
        let [_, below @ ..] = self.names.as_slice() else {
            return None;
        };
        self.at
            .path()
            .ancestors()
            .nth(below.len())
            .filter(|_| !below.is_empty())
            .map(PathBuf::from)
    }
}

/// Fails unless the path still leads to this open directory, with so many names below it.
pub(super) fn check_stands(at: &Located, dir: &OwnedFd, below: usize) -> Result<(), Error> {
    let names = names(at);
    let mut now = top(at)?;
    for name in names.iter().take(names.len().saturating_sub(below)) {
        now = step(now.as_fd(), name).map_err(|_| moved(at))?;
    }
    if id(&now, at)? == id(dir, at)? {
        Ok(())
    } else {
        Err(moved(at))
    }
}

pub(super) fn moved(at: &Located) -> Error {
    let shown = super::escape(at.path());
    let text = format!(
        "write {shown}: its directory was moved or replaced between the check and the write; nothing was written; try again"
    );
    Error::new(ErrorKind::Denied, text)
}

/// The names from the root down.
pub(super) fn names(at: &Located) -> Vec<OsString> {
    let names: Vec<OsString> = at.relative().iter().map(OsStr::to_owned).collect();
    if names.is_empty() {
        vec![OsString::from(".")]
    } else {
        names
    }
}

pub(super) fn born(dir: &OwnedFd) -> Option<Duration> {
    let found = rustix::fs::statx(dir, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    known.then(|| {
        Duration::new(
            u64::try_from(found.stx_btime.tv_sec).unwrap_or(0),
            found.stx_btime.tv_nsec,
        )
    })
}

fn id(dir: &OwnedFd, at: &Located) -> Result<(u64, u64), Error> {
    rustix::fs::fstat(dir)
        .map(|stat| which(&stat))
        .map_err(|error| Error::io("open", at.path(), error))
}

fn is_git_dir(dir: BorrowedFd<'_>) -> bool {
    let is = |(name, kind): (&str, FileType)| {
        stat_at(dir, OsStr::new(name))
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == kind)
    };
    GIT.into_iter().all(is)
}
