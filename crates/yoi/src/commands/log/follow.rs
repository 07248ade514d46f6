//! `yoi log --follow`: what is there, then what comes, as soon as it is durable.
//!
//! It reads the files beside the writer, not the pod's socket: so it works with a pod of any version, with one that does
//! not answer, and across crashes. It waits for the kernel to tell that the writer noted its progress. It ends when it is
//! interrupted, when nobody reads what it prints, and when the pod is removed.

use super::Printer;
use crate::socket::removed;
use host::exit::{Exit, Failure};
use host::pods::{disk, read_failure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use session_store::Reader;
use std::fs::{self, File};
use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How often it looks when the kernel tells nothing: some network file systems cannot, and watches are limited.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

pub(super) fn run(dir: &Path, printer: &mut Printer<'_>) -> Result<Exit, Failure> {
    let site = Site::of(dir)?;
    let watch = site.watch();
    let name = printer.name;
    let reader = Reader::open(&site.held).map_err(|e| site.failure(read_failure(name, &e)))?;
    let mut following = reader.follow();
    loop {
        // Asked before the log is read: what was written before the pod went is shown.
        let gone = site.is_gone();
        let fail = |e| {
            if gone {
                removed(name)
            } else {
                site.failure(read_failure(name, &e))
            }
        };
        while following.look().map_err(fail)? {
            for frame in &mut following {
                printer.print(&frame.map_err(fail)?, &reader.blobs())?;
            }
        }
        if gone {
            return Err(removed(name));
        }
        if wait(watch.as_ref()) == Woken::NobodyReads {
            return Ok(Exit::Done);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    Look,
    NobodyReads,
}

/// Waits for news of the pod, or for the end of whoever reads.
fn wait(watch: Option<&OwnedFd>) -> Woken {
    let stdout = io::stdout();
    let mut fds = vec![PollFd::new(&stdout, PollFlags::empty())];
    fds.extend(watch.map(|watch| PollFd::new(watch, PollFlags::IN)));
    // Interrupted by a signal that is no end, it looks again.
    let woken = poll(&mut fds, Some(&LOOK_AGAIN));
    let ended = fds
        .first()
        .is_some_and(|out| out.revents().intersects(PollFlags::ERR | PollFlags::HUP));
    if woken.is_ok() && ended {
        return Woken::NobodyReads;
    }
    watch.into_iter().for_each(forget_news);
    Woken::Look
}

/// Waits for news of the pod, for a byte or the end of `woken`, or until then.
pub(crate) fn wait_beside(watch: Option<&OwnedFd>, woken: &PipeReader, until: Option<Instant>) {
    let mut fds = vec![PollFd::new(woken, PollFlags::IN)];
    fds.extend(watch.map(|watch| PollFd::new(watch, PollFlags::IN)));
    let left = until
        .and_then(|until| Timespec::try_from(until.saturating_duration_since(Instant::now())).ok());
    let bound = left.or(if watch.is_none() {
        Some(LOOK_AGAIN)
    } else {
        None
    });
    let polled = poll(&mut fds, bound.as_ref());
    if polled.is_ok()
        && fds
            .first()
            .is_some_and(|woken| woken.revents().contains(PollFlags::IN))
    {
        // What it says does not matter.
        rustix::io::read(woken, &mut [0; 16]).ok();
    }
    watch.into_iter().for_each(forget_news);
}

/// The content of an event does not matter: after each wakeup everything is read.
fn forget_news(watch: &OwnedFd) {
    let mut news = [0; 4096];
    while rustix::io::read(watch, &mut news).is_ok_and(|read| read > 0) {}
}

/// The directory of a pod, by its name and held open: whatever takes its place is another pod.
pub(crate) struct Site {
    dir: PathBuf,
    opened: File,
    /// A path that leads to it wherever it is moved.
    held: PathBuf,
}

impl Site {
    pub(crate) fn of(dir: &Path) -> Result<Self, Failure> {
        let opened = File::open(dir).map_err(|e| disk(dir, &e))?;
        let held = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let held = if held.exists() {
            held
        } else {
            dir.to_path_buf()
        };
        Ok(Self {
            dir: dir.to_path_buf(),
            opened,
            held,
        })
    }

    /// Woken by every write to a file in it, and by its own move; without one, looking again has to do.
    pub(crate) fn watch(&self) -> Option<OwnedFd> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let news = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        let end = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
        inotify::add_watch(&watch, &self.held, news | end | WatchFlags::ONLYDIR).ok()?;
        Some(watch)
    }

    /// Where to read it.
    pub(crate) fn held(&self) -> &Path {
        &self.held
    }

    fn is_gone(&self) -> bool {
        let id = |meta: &fs::Metadata| (meta.dev(), meta.ino());
        let now = fs::metadata(&self.dir).ok();
        let held = self.opened.metadata().ok();
        now.as_ref().map(id) != held.as_ref().map(id)
    }

    /// Says where things are by the pod's own name.
    pub(crate) fn failure(&self, failure: Failure) -> Failure {
        let held = self.held.display().to_string();
        let dir = self.dir.display().to_string();
        Failure {
            message: failure.message.replace(&held, &dir),
            ..failure
        }
    }
}
