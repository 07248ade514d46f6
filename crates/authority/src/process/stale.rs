//! Hosts that were killed: the temporary directory that a host leaves behind identifies it, and so its descendants.
//! Without such a directory no processes are searched for.

use super::label;
use super::processes::{self, Process};
use super::survivors;
use super::temp::PREFIX;
use crate::remove::remove;
use crate::scratch::{MAX_STALE, unheld};
use crate::{Ambient, Error};
use rustix::process::Pid;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The link in a host's directory whose target identifies the host: created atomically and without a data block. No
/// confined child can replace it.
const OWNER: &str = "owner";

/// A dead host whose temporary directory still exists, as listed by [`stale_hosts`].
#[derive(Debug)]
pub struct StaleHost {
    dir: PathBuf,
    pid: u32,
    tag: String,
    /// Locks the directory, so that no other process removes it.
    _held: Option<File>,
}

/// The dead hosts that left a temporary directory below `parent`.
pub fn stale_hosts(_: &Ambient, parent: &Path) -> Vec<StaleHost> {
    // Not locked: another start may end them meanwhile.
    held(parent)
        .map(|host| StaleHost {
            _held: None,
            ..host
        })
        .collect()
}

/// Kills the descendants of dead hosts that left a directory below `parent`, and removes it; returns each host's session
/// and the number of processes killed. Usually there is no such host; then this only lists `parent`.
///
/// # Errors
/// `Unavailable`, beside the list, when some may still run.
pub fn end_stale(_: &Ambient, parent: &Path) -> (Vec<(String, u32)>, Result<(), Error>) {
    let mut ended = Vec::new();
    let mut unsure = Vec::new();
    let until = Instant::now() + MAX_STALE;
    for host in held(parent) {
        let swept = survivors::end(|process| host.owns(process));
        ended.push((host.session().to_owned(), swept.ended));
        if swept.unsure {
            unsure.push(host.session().to_owned());
        } else {
            // Another start removes the rest.
            remove(&host.dir, until).ok();
        }
    }
    (
        ended,
        if unsure.is_empty() {
            Ok(())
        } else {
            Err(survivors::remain(&unsure.join(", ")))
        },
    )
}

/// The dead hosts with running descendants, which are found by the hosts' directories.
pub(super) fn with_processes(parent: &Path) -> Vec<StaleHost> {
    held(parent)
        .filter(|host| !host.processes().is_empty())
        .collect()
}

fn held(parent: &Path) -> impl Iterator<Item = StaleHost> {
    unheld(parent, PREFIX).filter_map(|(dir, held)| read(dir, held))
}

/// Writes the host's identity into its directory.
pub(super) fn note(dir: &Path, tag: &str) -> io::Result<()> {
    let own = rustix::process::getpid();
    let started = processes::look(own).map_or(0, |process| process.started);
    symlink(format!("{own} {started} {tag}"), dir.join(OWNER))
}

fn read(dir: PathBuf, held: File) -> Option<StaleHost> {
    let text = fs::read_link(dir.join(OWNER)).ok()?;
    let mut fields = text.to_str()?.splitn(3, ' ');
    let pid = fields.next()?.parse().ok()?;
    let started = fields.next()?.parse::<u64>().ok()?;
    let tag = fields.next()?;
    // Its directory was not locked, so the host ended. The process is checked, too, for file systems with unreliable
    // locks.
    let now = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .and_then(processes::look);
    let runs = now.is_some_and(|process| process.started == started && !process.zombie);
    (!runs).then(|| StaleHost {
        dir,
        pid,
        tag: tag.to_owned(),
        _held: Some(held),
    })
}

impl StaleHost {
    /// The session that the host wrote.
    pub fn session(&self) -> &str {
        self.tag.split('/').next().unwrap_or(&self.tag)
    }

    /// The host's process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its descendants that still run.
    pub fn processes(&self) -> Vec<u32> {
        let living = survivors::living(|process| self.owns(process));
        living
            .into_iter()
            .map(|pid| pid.as_raw_nonzero().get().unsigned_abs())
            .collect()
    }

    /// Recognises a process by the label, which only its descendants have, or by the directory, which only its children
    /// know.
    fn owns(&self, process: &Process) -> bool {
        let below = |temp: Vec<u8>| {
            let rest = temp.strip_prefix(self.dir.as_os_str().as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        let label = label::of(process.pid);
        processes::own_user(process.pid)
            && !label.is_some_and(|label| label.host_lives(process.pid))
            && (label.is_some_and(|label| label.is_by(&self.tag, self.pid))
                || processes::variable(process.pid, "TMPDIR").is_some_and(below))
    }
}
