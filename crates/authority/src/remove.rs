//! Removing a directory tree of any depth and size that another program created.
//!
//! The standard library needs stack and a file descriptor for each level, so a deep tree ends the process. This code
//! goes down a few levels; deeper directories are moved up to the top and found there on the next pass.

use crate::{Ambient, Error};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// The most levels open at a time.
const MAX_OPEN: usize = 32;

/// The longest time of a removal; a later start removes the rest of temporary directories.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(30);

/// Removes a directory with its content, without following links. A missing directory is no error.
///
/// # Errors
/// The system's error, or a timeout after 30 seconds; then a part has been removed.
pub fn remove_dir(_: &Ambient, path: &Path) -> Result<(), Error> {
    remove(path, Instant::now() + MAX_TIME).map_err(|error| Error::io("remove", path, error))
}

/// Removes the tree; starts no further operation after `until`.
pub(crate) fn remove(path: &Path, until: Instant) -> io::Result<()> {
    // Most directories are empty.
    if matches!(rustix::fs::rmdir(path), Ok(()) | Err(Errno::NOENT)) {
        return Ok(());
    }
    let top = open(CWD, path)?;
    let mut removal = Removal {
        top,
        until,
        moved: 0,
        progress: true,
        trouble: None,
    };
    while removal.progress && Instant::now() < until {
        (removal.progress, removal.trouble) = (false, None);
        removal.pass()?;
        match rustix::fs::rmdir(path) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(error) => removal.trouble = removal.trouble.or(Some(error)),
        }
    }
    Err(match removal.trouble {
        Some(error) if !removal.progress => error.into(),
        _late => io::Error::new(
            io::ErrorKind::TimedOut,
            "it contains too many files to remove at once; try again",
        ),
    })
}

/// Opens a directory, not the target of a link, and sets permissions with which its owner can empty it: some programs,
/// such as Go's module cache, remove them.
pub(crate) fn open<P: rustix::path::Arg + Copy>(at: impl AsFd, path: P) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(&at, path, flags | OFlags::RDONLY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let handle = rustix::fs::openat(&at, path, flags | OFlags::PATH, Mode::empty())?;
            // A handle's own mode can only be changed by its name here.
            let name = format!("/proc/self/fd/{}", handle.as_raw_fd());
            rustix::fs::chmod(name, Mode::RWXU)?;
            rustix::fs::openat(&at, path, flags | OFlags::RDONLY, Mode::empty())?
        }
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        // If this fails, the operations that need the permissions fail, too.
        rustix::fs::fchmod(&fd, Mode::RWXU).ok();
    }
    Ok(fd)
}

struct Removal {
    top: OwnedFd,
    until: Instant,
    /// The number of directories moved up, which are named by it.
    moved: u64,
    /// Whether this pass removed or moved anything.
    progress: bool,
    trouble: Option<Errno>,
}

struct Level {
    dir: Dir,
    name: CString,
}

impl Removal {
    /// Empties everything down to [`MAX_OPEN`] levels below the top, as far as it goes.
    fn pass(&mut self) -> Result<(), Errno> {
        let mut levels = vec![Level {
            dir: Dir::read_from(&self.top)?,
            name: CString::default(),
        }];
        loop {
            let deeper = levels.len() < MAX_OPEN;
            let Some(level) = levels.last_mut() else {
                return Ok(());
            };
            let entry = match level.dir.read() {
                Some(Ok(entry)) if Instant::now() < self.until => entry,
                // At the end of the directory, after the time limit, or after a read error.
                _ended => {
                    let name = levels.pop().map(|level| level.name).unwrap_or_default();
                    if let Some(above) = levels.last() {
                        let done = rustix::fs::unlinkat(above.dir.fd()?, &name, AtFlags::REMOVEDIR);
                        self.took(done);
                    }
                    continue;
                }
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let below = self.entry(level.dir.fd()?, name, entry.file_type(), deeper);
            match below {
                Ok(Some(fd)) => levels.push(Level {
                    dir: Dir::new(fd)?,
                    name: name.to_owned(),
                }),
                Ok(None) => {}
                Err(error) => self.trouble = Some(error),
            }
        }
    }

    /// Removes an entry that is no directory; returns a directory to be emptied, or moves it up.
    fn entry(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        deeper: bool,
    ) -> Result<Option<OwnedFd>, Errno> {
        if kind != FileType::Directory {
            match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
                // The file system does not report entry types.
                Err(Errno::ISDIR) => {}
                done => {
                    self.took(done);
                    return Ok(None);
                }
            }
        }
        let fd = open(dir, name)?;
        if deeper {
            return Ok(Some(fd));
        }
        while Instant::now() < self.until {
            self.moved += 1;
            match rustix::fs::renameat(dir, name, &self.top, format!(".up-{}", self.moved)) {
                // The name is taken.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                done => {
                    self.took(done);
                    break;
                }
            }
        }
        Ok(None)
    }

    /// Records progress, or the error that prevented it.
    fn took(&mut self, done: Result<(), Errno>) {
        match done {
            Ok(()) => self.progress = true,
            // Removed already.
            Err(Errno::NOENT) => {}
            Err(error) => self.trouble = Some(error),
        }
    }
}
