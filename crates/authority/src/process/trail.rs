//! Following a path from the environment or the home directory without trusting links that a child may have created in
//! an earlier run. Each step is opened from the one before, so the path that was checked is the one that gets a rule.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, FileType, Mode, OFlags};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The most links on one path, and the most names in all.
const MAX_LINKS: usize = 16;
const MAX_STEPS: usize = 512;

/// Where a child of this or an earlier run may have created links.
pub(super) struct Ground<'a> {
    /// Directories that children write; a link below one is never followed.
    pub(super) written: &'a [PathBuf],
    /// The user's home, resolved. A project there is not written to, so links directly in it are theirs.
    pub(super) home: Option<&'a Path>,
    /// The system's own directories, whose links are the system's even where this user could write there.
    pub(super) system: &'a [&'a str],
}

/// The origin of a path, which decides which links are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A list in this program: links on the path were created by the user, who moved a toolchain.
    ByUs,
    /// An environment variable, which may name a path below any project.
    ByVariable,
}

#[derive(Debug)]
pub(super) struct End {
    /// An `O_PATH` handle on it, for a rule.
    pub(super) fd: OwnedFd,
    /// Where it is, without links.
    pub(super) path: PathBuf,
}

/// Opens a path without links; `None` if something else is there by now.
pub(super) fn exactly(path: &Path) -> Option<End> {
    let ground = Ground {
        written: &[PathBuf::from("/")],
        home: None,
        system: &[],
    };
    follow(path, Named::ByVariable, &ground)
}

/// Follows an absolute path to its end. `None` if nothing is there, or if a link on the path is not trusted.
pub(super) fn follow(path: &Path, named: Named, ground: &Ground<'_>) -> Option<End> {
    let mut todo: VecDeque<OsString> = names(path)?;
    let mut stack = vec![open_root()?];
    let mut at = PathBuf::from("/");
    let mut links = 0;
    let mut steps = 0;
    while let Some(name) = todo.pop_front() {
        steps += 1;
        if steps > MAX_STEPS {
            return None;
        }
        if name == ".." {
            // The root is its own parent.
            if stack.len() > 1 {
                stack.pop();
                at.pop();
            }
            continue;
        }
        let fd = step(stack.last()?, &name)?;
        let found = FileType::from_raw_mode(rustix::fs::fstat(&fd).ok()?.st_mode);
        if found != FileType::Symlink {
            at.push(name);
            stack.push(fd);
            continue;
        }
        links += 1;
        let first = links == 1 && named == Named::ByUs;
        if links > MAX_LINKS || !ground.trusts(&at, stack.last()?, first) {
            return None;
        }
        let target = rustix::fs::readlinkat(&fd, "", Vec::new()).ok()?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            stack.truncate(1);
            at = PathBuf::from("/");
        }
        for name in names(&target)?.into_iter().rev() {
            todo.push_front(name);
        }
    }
    Some(End {
        fd: stack.pop()?,
        path: at,
    })
}

impl Ground<'_> {
    /// Whether a link in this directory is followed. The `first` link of a path of ours is, wherever no child of this
    /// run writes; further ones are in directories that no person chose.
    fn trusts(&self, dir: &Path, fd: &OwnedFd, first: bool) -> bool {
        if self.written.iter().any(|root| dir.starts_with(root)) {
            return false;
        }
        first
            || self.home == Some(dir)
            || self.system.iter().any(|place| dir.starts_with(place))
            || !writable(fd)
    }
}

/// Whether this user could create a link there; then a child that may write there could, too.
fn writable(dir: &OwnedFd) -> bool {
    rustix::fs::accessat(dir, ".", Access::WRITE_OK, rustix::fs::AtFlags::EACCESS).is_ok()
}

fn open_root() -> Option<OwnedFd> {
    rustix::fs::open(
        "/",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()
}

/// Opens the link itself, if the name is a link.
fn step(dir: &OwnedFd, name: &OsStr) -> Option<OwnedFd> {
    rustix::fs::openat(
        dir.as_fd(),
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()
}

/// The names of a path; `None` for an endless one.
fn names(path: &Path) -> Option<VecDeque<OsString>> {
    let names: VecDeque<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect();
    (names.len() <= MAX_STEPS).then_some(names)
}
