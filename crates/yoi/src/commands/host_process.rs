//! The process that hosts a pod, found by the pod's lock and reached by signals.
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use session_store::{Owner, Session};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How often, and how long each time, a process is waited for that is ending. A second in all.
const WAITS: u32 = 200;
const WAIT: Duration = Duration::from_millis(5);

/// A process that a signal reaches, and no other of the same number.
pub(crate) struct HostProcess(OwnedFd);

impl HostProcess {
    /// None if this owner no longer holds the pod.
    pub(crate) fn of(owner: &Owner, dir: &Path) -> Option<Self> {
        let pid = i32::try_from(owner.pid).ok().and_then(Pid::from_raw)?;
        let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // The number may belong to another process by now; the lock says.
        running(dir)
            .is_some_and(|now| now.pid == owner.pid)
            .then_some(Self(process))
    }

    /// One that has ended needs no signal.
    pub(crate) fn signal(&self, signal: Signal) {
        pidfd_send_signal(&self.0, signal).ok();
    }
}

/// The process that hosts the pod. One that was killed does not count, although its threads, or a child of it, may hold
/// the lock for a moment.
pub(crate) fn running(dir: &Path) -> Option<Owner> {
    for _ in 0..WAITS {
        let owner = Session::owner(dir).ok().flatten()?;
        if !authority::is_running(&ambient::claim(), owner.pid) {
            return None;
        }
        if !is_ending(owner.pid) {
            return Some(owner);
        }
        thread::sleep(WAIT);
    }
    None
}

/// Whether a process has ended but for some of its threads.
fn is_ending(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}
