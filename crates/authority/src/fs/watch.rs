//! Observes the files below the project of a grant, with inotify. Reports which files changed, and none that lies outside
//! of the grant, is ignored or may hold secrets. Does not decide who is told and when.
//!
//! Each directory has a watch, which is added before the directory is listed: what is created meanwhile is reported by
//! one of both. Paths are opened name by name from the root, so no watch follows a link.

use super::MAX_DIR_ENTRIES;
use super::locate::{Located, Root};
use super::open::{FileKind, Name, entries, meta, open_dir, stat_at};
use super::stage::is_temp_name;
use super::walk::{MAX_WALK_DEPTH, rules};
use super::workspace::{Access, Workspace};
use crate::{Error, ErrorKind};
use ignore::Match;
use ignore::gitignore::Gitignore;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::unix::AsyncFd;

/// Most directories of one watch, unless the caller wants fewer: what Linux allows a user at least.
pub const MAX_WATCHED_DIRS: usize = 8192;

/// Most paths that are reported together.
pub const MAX_CHANGED_PATHS: usize = 256;

/// Most events that one [`FileWatch::read`] takes; the next one continues.
const MAX_EVENTS: usize = 4096;

/// A buffer of events. The longest event has about 270 bytes.
const BUFFER: usize = 16 * 1024;

/// A directory is watched for these; writes count when the file is closed.
const WATCHED: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::ONLYDIR);

/// Which files changed: created, written, removed or renamed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// Relative to the project; at most [`MAX_CHANGED_PATHS`]. A directory that was renamed or moved away stands for the
    /// files below it.
    pub paths: BTreeSet<PathBuf>,
    /// Whether further files changed, or may have: there were too many, or the system dropped events.
    pub incomplete: bool,
}

impl FileChanges {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.incomplete
    }

    /// Adds later changes.
    pub fn merge(&mut self, later: Self) {
        self.incomplete |= later.incomplete;
        later.paths.into_iter().for_each(|path| self.insert(path));
    }

    fn insert(&mut self, path: PathBuf) {
        if self.paths.len() < MAX_CHANGED_PATHS || self.paths.contains(&path) {
            self.paths.insert(path);
        } else {
            self.incomplete = true;
        }
    }
}

/// Observes the project of a [`Workspace`]. Costs one descriptor, and a watch of the system for each directory.
#[derive(Debug)]
pub struct FileWatch {
    workspace: Workspace,
    root: Arc<Root>,
    inotify: AsyncFd<OwnedFd>,
    max_dirs: usize,
    /// By path below the root.
    dirs: BTreeMap<PathBuf, WatchedDir>,
    paths: BTreeMap<i32, PathBuf>,
    unwatched: usize,
    /// Whether the last read left events.
    has_more: bool,
}

#[derive(Debug)]
struct WatchedDir {
    watch: i32,
    rules: Option<Gitignore>,
}

/// An event of the system.
struct Event {
    watch: i32,
    flags: ReadFlags,
    name: Option<OsString>,
}

impl FileWatch {
    /// Watches the directories of the project, at most `max_dirs`; see [`FileWatch::unwatched`]. Reads all of them, so it
    /// may take long. Needs a tokio runtime.
    ///
    /// # Errors
    /// `Exhausted` if the limit of open files or of watching programs is reached; `Unavailable`; `Revoked`. A directory for
    /// which the system has no watch left is counted as unwatched.
    pub fn open(workspace: &Workspace, max_dirs: usize) -> Result<Self, Error> {
        let root = workspace.inside(workspace.project())?.root().clone();
        let failed = |error: std::io::Error| Error::system("watch files", error);
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let inotify = inotify::init(flags).map_err(|error| failed(error.into()))?;
        #[allow(
            deprecated,
            reason = "the replacement is unsafe, and an `OwnedFd` keeps what it demands"
        )]
        let inotify = AsyncFd::new(inotify).map_err(failed)?;
        let dirs = BTreeMap::new();
        let paths = BTreeMap::new();
        let workspace = workspace.clone();
        let mut watch = Self {
            workspace,
            root,
            inotify,
            max_dirs,
            dirs,
            paths,
            unwatched: 0,
            has_more: false,
        };
        watch.scan(PathBuf::new(), None)?;
        Ok(watch)
    }

    /// At least how many directories are not watched: the limit of this watch or of the system was reached, they have too
    /// many entries, or cannot be read. Their subdirectories are not counted.
    #[must_use]
    pub fn unwatched(&self) -> usize {
        self.unwatched
    }

    /// Resolves when [`FileWatch::read`] may return changes. Cancel-safe.
    ///
    /// # Errors
    /// `Unavailable` when the runtime ends.
    pub async fn readable(&self) -> Result<(), Error> {
        if !self.has_more {
            let ready = self.inotify.readable().await;
            ready
                .map_err(|error| Error::system("watch files", error))?
                .clear_ready();
        }
        Ok(())
    }

    /// What changed since the last call. Does not wait; it reads directories that are new.
    ///
    /// # Errors
    /// `Unavailable` when the project was moved or deleted; `Revoked`. Nothing is reported after an error.
    pub fn read(&mut self) -> Result<FileChanges, Error> {
        let mut changes = FileChanges::default();
        for event in self.events()? {
            if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                // The dropped events may be about any directory.
                *self = Self::open(&self.workspace, self.max_dirs)?;
                self.has_more = true;
                changes.incomplete = true;
                break;
            }
            self.handle(event, &mut changes)?;
        }
        self.workspace.enter(&self.root.path).map(drop)?;
        Ok(changes)
    }

    fn events(&mut self) -> Result<Vec<Event>, Error> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = inotify::Reader::new(self.inotify.get_ref().as_fd(), &mut buffer);
        let mut events = Vec::new();
        self.has_more = false;
        while events.len() < MAX_EVENTS || !reader.is_buffer_empty() {
            match reader.next() {
                Ok(event) => {
                    let name = event
                        .file_name()
                        .map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
                    events.push(Event {
                        watch: event.wd(),
                        flags: event.events(),
                        name,
                    });
                }
                Err(Errno::WOULDBLOCK) => return Ok(events),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::system("watch files", error)),
            }
        }
        self.has_more = true;
        Ok(events)
    }

    fn handle(&mut self, event: Event, changes: &mut FileChanges) -> Result<(), Error> {
        let Event { watch, flags, name } = event;
        let Some(dir) = self.paths.get(&watch).cloned() else {
            return Ok(());
        };
        let is_gone = flags.intersects(ReadFlags::IGNORED | ReadFlags::MOVE_SELF);
        let Some(name) = name else {
            if is_gone && dir.as_os_str().is_empty() {
                let text = format!("{}: moved or deleted", super::escape(&self.root.path));
                return Err(Error::new(ErrorKind::Unavailable, text));
            }
            if flags.contains(ReadFlags::IGNORED) {
                self.paths.remove(&watch);
                // A new directory may have the name while a process still holds the old one.
                if self
                    .dirs
                    .get(&dir)
                    .is_some_and(|known| known.watch == watch)
                {
                    self.dirs.remove(&dir);
                }
            }
            return Ok(());
        };
        let path = dir.join(&name);
        let is_dir = flags.contains(ReadFlags::ISDIR);
        if is_never_watched(&name) || self.is_excluded(&path, is_dir) {
            return Ok(());
        }
        if is_dir {
            if flags.contains(ReadFlags::MOVED_FROM) {
                self.forget(&path);
                changes.insert(path);
            } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                self.scan(path, Some(changes))?;
            }
            return Ok(());
        }
        if name == ".gitignore" {
            // Not forgotten before: events of its watches may wait.
            self.scan(dir.clone(), None)?;
            let ignored =
                |path: &&PathBuf| !path.as_os_str().is_empty() && self.is_excluded(path, true);
            let ignored: Vec<PathBuf> = self.below(&dir).filter(ignored).cloned().collect();
            ignored.iter().for_each(|path| self.forget(path));
        }
        changes.insert(path);
        Ok(())
    }

    /// Watches a directory and those below it. With `changes`, reports the files in them.
    fn scan(&mut self, dir: PathBuf, mut changes: Option<&mut FileChanges>) -> Result<(), Error> {
        let mut waiting = vec![dir];
        while let Some(dir) = waiting.pop() {
            let at = Located::new(self.root.clone(), self.root.path.join(&dir))?;
            let workspace = self.workspace.clone();
            let _use = workspace.enter_at(&at, Access::Read)?;
            let opened = match open_dir(&at) {
                Ok(opened) => opened,
                // Removed or replaced meanwhile.
                Err(error) if error.is_not_found() || error.kind() == ErrorKind::FixInput => {
                    continue;
                }
                Err(_) => {
                    self.unwatched += 1;
                    continue;
                }
            };
            let is_deep = dir.components().count() >= MAX_WALK_DEPTH;
            let found = if is_deep || !self.watch(&dir, &opened) {
                None
            } else {
                listed(&opened)
            };
            let Some(found) = found else {
                self.unwatched += 1;
                continue;
            };
            for (name, kind) in found
                .into_iter()
                .filter(|(name, _)| !is_never_watched(name))
            {
                let Some(kind) =
                    kind.or_else(|| Some(meta(&stat_at(opened.as_fd(), &name).ok()?).kind))
                else {
                    continue;
                };
                let path = dir.join(name);
                if kind == FileKind::Dir {
                    if !self.is_excluded(&path, true) {
                        waiting.push(path);
                    }
                } else if let Some(changes) = changes
                    .as_deref_mut()
                    .filter(|_| !self.is_excluded(&path, false))
                {
                    changes.insert(path);
                }
            }
        }
        Ok(())
    }

    /// Adds the watch of a directory. Returns whether it is watched.
    fn watch(&mut self, dir: &Path, opened: &OwnedFd) -> bool {
        if self.dirs.len() >= self.max_dirs && !self.dirs.contains_key(dir) {
            return false;
        }
        // The descriptor, not its path, which may have been replaced.
        let this = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let Ok(watch) = inotify::add_watch(self.inotify.get_ref(), this, WATCHED) else {
            return false;
        };
        let path = self.root.path.join(dir);
        let rules = rules(
            opened.as_fd(),
            &path,
            Some(&*self.root).filter(|_| dir.as_os_str().is_empty()),
        );
        // The same directory under the name that it had before.
        if let Some(old) = self
            .paths
            .insert(watch, dir.to_owned())
            .filter(|old| old != dir)
        {
            self.dirs.remove(&old);
        }
        self.dirs
            .insert(dir.to_owned(), WatchedDir { watch, rules });
        true
    }

    /// Removes the watches of a directory and of those below it.
    fn forget(&mut self, dir: &Path) {
        let below: Vec<PathBuf> = self.below(dir).cloned().collect();
        for path in below {
            let Some(WatchedDir { watch, .. }) = self.dirs.remove(&path) else {
                continue;
            };
            self.paths.remove(&watch);
            inotify::remove_watch(self.inotify.get_ref(), watch).ok();
        }
    }

    /// The watched directories from this one down.
    fn below<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        self.dirs
            .range(dir.to_owned()..)
            .map(|(path, _)| path)
            .take_while(move |path| path.starts_with(dir))
    }

    /// Whether a path is ignored or may hold secrets. The innermost rule that matches decides.
    fn is_excluded(&self, path: &Path, is_dir: bool) -> bool {
        let absolute = self.root.path.join(path);
        let Ok(at) = Located::new(self.root.clone(), absolute.clone()) else {
            return true;
        };
        let rules = path
            .ancestors()
            .skip(1)
            .filter_map(|dir| self.dirs.get(dir)?.rules.as_ref());
        for rules in rules {
            match rules.matched(&absolute, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => break,
                Match::None => {}
            }
        }
        self.workspace.may_hold_secrets(&at)
    }
}

/// Whether a name is that of git's own files, or of a file that is not published yet.
fn is_never_watched(name: &OsStr) -> bool {
    name == ".git" || is_temp_name(name)
}

/// The names in a directory; none if there are too many, or it cannot be read.
fn listed(dir: &OwnedFd) -> Option<Vec<Name>> {
    entries(dir, MAX_DIR_ENTRIES + 1)
        .ok()
        .filter(|names| names.len() <= MAX_DIR_ENTRIES)
}
