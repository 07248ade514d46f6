//! A running child. Its resources are released when all of its processes have ended, also when the caller is dropped.

use super::descendants::{self, Leftovers, RunningCall};
use super::git_guard::Watch;
use super::temp::CallTemp;
use crate::OwnedUseGuard;
use rustix::process::{Pid, Signal, WaitIdStatus};

/// A running child. Dropped before it is finished, it is killed and cleaned up on a thread of its own.
#[derive(Debug)]
pub(super) struct RunningChild {
    pid: Pid,
    resources: Option<ChildResources>,
}

/// Resources of a child, released when all of its processes have ended.
#[derive(Debug)]
pub(super) struct ChildResources {
    pub(super) temp: CallTemp,
    pub(super) slot: RunningCall,
    pub(super) guard: OwnedUseGuard,
    pub(super) git: Option<Watch>,
}

impl ChildResources {
    fn release(self, pid: Pid) -> (Leftovers, Option<WaitIdStatus>) {
        let Self { temp, slot, guard, git } = self;
        let ended = slot.end(pid);
        // Released in this order: the directory after its processes ended, and the use of the door last.
        drop(temp);
        // The guard compares when no process of the call writes any more.
        drop(git);
        drop(guard);
        ended
    }
}

impl RunningChild {
    pub(super) fn new(pid: Pid, resources: ChildResources) -> Self {
        Self { pid, resources: Some(resources) }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to the whole group, and to the main process in case it left the group.
    pub(super) fn signal(&self, signal: Signal) {
        descendants::signal_group(self.pid, signal);
        // Its number is not reused until it is reaped.
        rustix::process::kill_process(self.pid, signal).ok();
    }

    /// Kills the remaining processes, reaps them and releases everything. Blocks until the main process has ended.
    pub(super) fn finish(mut self) -> (Leftovers, Option<WaitIdStatus>) {
        let Some(resources) = self.resources.take() else { return (Leftovers::default(), None) };
        resources.release(self.pid)
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        let Some(resources) = self.resources.take() else { return };
        self.signal(Signal::KILL);
        let pid = self.pid;
        let clean_up = move || {
            resources.release(pid);
        };
        // If no thread can be created, the child is not reaped: blocking here could stop the whole process.
        std::thread::Builder::new().name("reap".to_owned()).spawn(clean_up).ok();
    }
}
