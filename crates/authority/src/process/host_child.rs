//! Children that the host starts for itself, beside those of calls.

use super::descendants::{reap_orphans, start};
use super::owners;
use crate::Ambient;
use rustix::process::Pid;
use std::io;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};

/// A child of the host's own, as the command that prints a key. The end of a call ends neither it nor what it leaves
/// behind. Dropped, it goes on as any [`Child`] does.
#[derive(Debug)]
pub struct HostChild {
    child: Child,
    pid: Pid,
    started: u64,
}

impl HostChild {
    /// Starts it, unconfined.
    ///
    /// # Errors
    /// The system's error, or that this process is being left.
    pub fn spawn(_: &Ambient, command: &mut Command) -> io::Result<Self> {
        Self::start(command)
    }

    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let (child, (pid, started)) = start(
            None,
            || command.spawn(),
            |owners, pid| (pid, owners.ward_started(pid)),
        )?;
        Ok(Self {
            child,
            pid,
            started,
        })
    }
}

impl Deref for HostChild {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for HostChild {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for HostChild {
    fn drop(&mut self) {
        let mut guard = owners::lock();
        let owners = guard.table();
        owners.ward_ended(self.pid, self.started);
        // Where no call ever ends, no other code does.
        reap_orphans(owners);
    }
}
