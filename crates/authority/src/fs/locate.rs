//! Resolving a path: `..` and symbolic links are followed here, so that the path that is checked is the path that will
//! be opened.

use super::workspace::Access;
use crate::process::LinkedRepository;
use crate::{Error, ErrorKind};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// How many links one path may lead through; the kernel's own limit.
pub const MAX_LINKS: usize = 40;

/// The longest path, in bytes; the kernel's own limit.
pub const MAX_PATH: usize = 4096;

/// The result of [`Workspace::locate`](super::Workspace::locate): whether a path leads below a root.
#[derive(Clone, Debug)]
pub enum Location {
    /// Below a root.
    Inside(Located),
    /// Outside of every root: absolute, resolved.
    Outside(PathBuf),
}

/// A resolved path below a root. It carries no authority: operations take it together with a [`super::Workspace`].
#[derive(Clone, Debug)]
pub struct Located {
    root: Arc<Root>,
    path: PathBuf,
    relative: PathBuf,
}

impl Located {
    pub(super) fn new(root: Arc<Root>, path: PathBuf) -> Result<Self, Error> {
        let relative = match path.strip_prefix(&root.path) {
            Ok(relative) => relative.to_owned(),
            Err(_) => {
                return Err(Error::new(
                    ErrorKind::Bug,
                    format!("{}: not below its root", super::escape(&path)),
                ));
            }
        };
        Ok(Self {
            root,
            path,
            relative,
        })
    }

    /// Absolute and resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Relative to its root; empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// Whether no root of the grant contains it, but a directory that commands read.
    pub fn is_common(&self) -> bool {
        self.root.is_common
    }

    /// The access that its root allows.
    pub fn access(&self) -> Access {
        self.root.access
    }

    pub(super) fn root(&self) -> &Arc<Root> {
        &self.root
    }
}

/// A directory of a grant: its path, an open handle, and the allowed access.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    dir: Arc<OwnedFd>,
    /// Device and inode of `dir`. While the handle is open, no other directory gets the same.
    which: (u64, u64),
    /// Those of `.git` in it, if there was one: it keeps its meaning under another name.
    pub(super) git: Option<(u64, u64)>,
    /// The whole repository that a `.git` file in it named, if there was one.
    pub(super) linked: Option<PathBuf>,
    /// One that all commands read.
    pub(super) is_common: bool,
}

impl Root {
    pub(super) fn open(path: &Path, access: Access) -> Result<Self, Error> {
        let path = path
            .canonicalize()
            .map_err(|error| Error::io("open directory", path, error))?;
        let failed = |error| Error::io("open directory", &path, error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let dir = rustix::fs::open(&path, flags, Mode::empty()).map_err(failed)?;
        let which = which(&rustix::fs::fstat(&dir).map_err(failed)?);
        let git = rustix::fs::statat(&dir, ".git", AtFlags::SYMLINK_NOFOLLOW).ok();
        let names_another =
            git.is_some_and(|git| FileType::from_raw_mode(git.st_mode) == FileType::RegularFile);
        let linked = names_another.then(|| LinkedRepository::of(&path)).flatten();
        Ok(Self {
            path,
            access,
            dir: Arc::new(dir),
            which,
            git: git.map(|git| self::which(&git)),
            linked: linked.map(|linked| linked.whole),
            is_common: false,
        })
    }

    /// A directory that all commands read.
    pub(super) fn common(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            is_common: true,
            ..Self::open(path, Access::Read)?
        })
    }

    pub(super) fn read_only(&self) -> Self {
        let path = self.path.clone();
        let dir = self.dir.clone();
        let linked = self.linked.clone();
        Self {
            path,
            access: Access::Read,
            dir,
            which: self.which,
            git: self.git,
            linked,
            is_common: self.is_common,
        }
    }

    /// Whether the path now leads to another directory than the opened one, or to none.
    pub(super) fn is_replaced(&self) -> bool {
        rustix::fs::lstat(&self.path).map(|stat| which(&stat)) != Ok(self.which)
    }

    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// Device and inode: identifies a file or directory among all that exist at the same time.
pub(super) fn which(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// The absolute path that `path` leads to, without links or dots; its last components need not exist.
pub(crate) fn resolve(cwd: &Path, path: &Path) -> Result<PathBuf, Error> {
    check_text(path)?;
    let mut resolved = if path.is_absolute() {
        PathBuf::from("/")
    } else {
        cwd.to_owned()
    };
    let mut todo: VecDeque<Step> = steps(path).collect();
    let mut links = 0;
    // Once a name does not exist, nothing below it does either: the rest is taken as written.
    let mut exists = true;
    while let Some(step) = todo.pop_front() {
        match step {
            Step::Root => resolved = PathBuf::from("/"),
            Step::Up => {
                // The kernel refuses `missing/..`; resolving it here would name another directory than the text does.
                if !exists {
                    return Err(Error::io("resolve", &resolved, Errno::NOENT));
                }
                resolved.pop();
            }
            Step::Name(name) => {
                resolved.push(name);
                if !exists {
                    continue;
                }
                match rustix::fs::readlink(&resolved, Vec::new()) {
                    Ok(target) => {
                        links += 1;
                        if links > MAX_LINKS {
                            return Err(crate::error::too_many_links(path));
                        }
                        resolved.pop();
                        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                        check_text(&target)?;
                        for step in steps(&target).collect::<Vec<_>>().into_iter().rev() {
                            todo.push_front(step);
                        }
                    }
                    // Not a link.
                    Err(Errno::INVAL) => {}
                    Err(Errno::NOENT) => exists = false,
                    Err(error) => return Err(Error::io("resolve", &resolved, error)),
                }
            }
        }
    }
    Ok(resolved)
}

enum Step {
    Root,
    Up,
    Name(OsString),
}

fn steps(path: &Path) -> impl Iterator<Item = Step> {
    path.components().filter_map(|part| match part {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Name(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

fn check_text(path: &Path) -> Result<(), Error> {
    let bytes = path.as_os_str().as_bytes();
    let problem = if bytes.is_empty() {
        "the path is empty; name a file or `.`"
    } else if bytes.contains(&0) {
        "a path cannot contain a NUL byte"
    } else if bytes.len() > MAX_PATH {
        "the path is longer than 4096 bytes"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::FixInput, problem))
}
