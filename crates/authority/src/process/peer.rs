//! Who is at the other end of a socket, and whether a pod started a process: an agent does not approve itself.

use super::descendants::MARK;
use super::label;
use super::processes::{self, Process};
use crate::{Ambient, Error, ErrorKind};
use rustix::process::Pid;
use std::fmt;
use std::fs;
use std::io;
use tokio::net::UnixStream;

/// The process that connected to a socket of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub uid: u32,
    pub pid: u32,
    /// Whether it may change something, or may only look.
    pub may_change: Result<(), OnlyLooks>,
}

/// Why a peer may only look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlyLooks {
    /// It runs as another user.
    OtherUser,
    /// A pod started it, this one or another.
    StartedByPod,
    /// It ended, or `/proc` does not show what started it.
    Unknown,
}

impl fmt::Display for OnlyLooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherUser => "it runs as another user",
            Self::StartedByPod => "it was started by a pod",
            Self::Unknown => "what started it cannot be determined",
        })
    }
}

/// The process that connected a stream of a listening socket of this process; only one of the same effective user that
/// no pod started may change anything. Called as soon as the stream is accepted: the number of a peer that has ended can
/// be reused, which only a look during its life detects.
///
/// # Errors
/// `Unavailable` when the kernel does not show the peer, as from another namespace of processes.
pub fn peer_of(ambient: &Ambient, stream: &UnixStream) -> Result<Peer, Error> {
    let cred = stream
        .peer_cred()
        .map_err(|error| Error::system("look at a client", error))?;
    let pid = cred
        .pid()
        .and_then(|pid| u32::try_from(pid).ok())
        .filter(|pid| *pid > 0);
    let hidden = || {
        Error::new(
            ErrorKind::Unavailable,
            "look at a client: it has no process number here",
        )
    };
    let uid = cred.uid();
    let pid = pid.ok_or_else(hidden)?;
    let may_change = match started_by_pod(ambient, pid) {
        _ if uid != rustix::process::geteuid().as_raw() => Err(OnlyLooks::OtherUser),
        Some(false) => Ok(()),
        Some(true) => Err(OnlyLooks::StartedByPod),
        None => Err(OnlyLooks::Unknown),
    };
    Ok(Peer {
        uid,
        pid,
        may_change,
    })
}

/// Whether a pod started the process or one of its ancestors. `None` when that cannot be determined: it ended, or its
/// environment cannot be read.
///
/// Such a process, or an ancestor, has the label that descendants of hosts inherit, or was started with `YOI_CALL`, or is
/// below this process: an orphan becomes a child of its host. Ancestors that are hidden or of another user, as those of a
/// login, count as started by no pod.
pub fn started_by_pod(_: &Ambient, pid: u32) -> Option<bool> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    let line = processes::line_of(pid)?;
    let own = environment(pid).ok()?;
    let below = |above: &Process| above.pid == rustix::process::getpid() || of_pod(above.pid);
    let started = marked(&own) || is_labelled(pid) || line.iter().skip(1).any(below);
    let first = line.first()?;
    let same = |now: Process| now.identity() == first.identity() && !now.zombie;
    // Otherwise what was read may be another process's.
    processes::look(pid).is_some_and(same).then_some(started)
}

fn of_pod(pid: Pid) -> bool {
    is_labelled(pid) || environment(pid).is_ok_and(|environment| marked(&environment))
}

/// This process's own label is for its descendants.
fn is_labelled(pid: Pid) -> bool {
    pid != rustix::process::getpid() && label::of(pid).is_some()
}

/// The environment that a process was started with.
fn environment(pid: Pid) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ"))
}

fn marked(environment: &[u8]) -> bool {
    processes::variable_in(environment, MARK).is_some_and(|mark| !mark.is_empty())
}
