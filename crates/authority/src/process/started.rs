//! A running child. Its resources are released when all of its processes have ended, also when the caller is dropped.

use super::apart::Apart;
use super::descendants::{self, Leftovers, RunningCall};
use super::exit::{ChildExit, ExitWatch};
use super::git_guard::Watch;
use super::temp::CallTemp;
use crate::{Lent, OwnedUseGuard};
use rustix::process::{Pid, Signal};
use std::io;

/// A running child. Dropped before it is finished, it is killed and cleaned up on a thread of its own.
#[derive(Debug)]
pub(super) struct RunningChild {
    pid: Pid,
    /// Where it is in namespaces of its own, and not a child of this process.
    apart: Option<Apart>,
    resources: Option<ChildResources>,
}

/// Resources of a child, released when all of its processes have ended.
#[derive(Debug)]
pub(super) struct ChildResources {
    pub(super) temp: CallTemp,
    pub(super) slot: RunningCall,
    pub(super) guard: OwnedUseGuard,
    pub(super) git: Option<Watch>,
    /// Hosts that it reaches through the proxy.
    pub(super) lent: Option<Lent>,
}

impl ChildResources {
    fn release(self, pid: Pid, apart: Option<Apart>) -> (Leftovers, Option<ChildExit>) {
        let Self {
            temp,
            slot,
            guard,
            git,
            lent,
        } = self;
        let ended = match apart {
            Some(apart) => apart.finish(),
            None => {
                let (left, status) = slot.end(pid);
                let signal = || {
                    status
                        .and_then(|status| status.terminating_signal())
                        .map(ChildExit::Signal)
                };
                (
                    left,
                    status
                        .and_then(|status| status.exit_status())
                        .map(ChildExit::Exit)
                        .or_else(signal),
                )
            }
        };
        // Released in this order: the directory after its processes ended, and the use of the door last.
        drop(temp);
        drop(lent);
        // The guard compares when no process of the call writes any more.
        drop(git);
        drop(guard);
        ended
    }
}

impl RunningChild {
    pub(super) fn new(pid: Pid, resources: ChildResources) -> Self {
        Self {
            pid,
            apart: None,
            resources: Some(resources),
        }
    }

    pub(super) fn apart(apart: Apart, resources: ChildResources) -> Self {
        Self {
            pid: apart.pid(),
            apart: Some(apart),
            resources: Some(resources),
        }
    }

    /// Whether it uses what it was lent.
    pub(super) fn is_lent(&self) -> bool {
        self.apart.is_some()
            && self
                .resources
                .as_ref()
                .is_some_and(|resources| resources.lent.is_some())
    }

    /// What resolves when its main process has ended.
    pub(super) fn exit_watch(&self) -> io::Result<ExitWatch> {
        match &self.apart {
            Some(apart) => ExitWatch::of_handle(apart.handle().try_clone()?),
            None => ExitWatch::of(self.pid),
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to the whole group, and to the main process in case it left the group.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(apart) = &self.apart {
            // The number of one that has ended may be another's by now.
            if apart.signal(signal) {
                descendants::signal_group(self.pid, signal);
            }
            return;
        }
        descendants::signal_group(self.pid, signal);
        // Its number is not reused until it is reaped.
        rustix::process::kill_process(self.pid, signal).ok();
    }

    /// Kills the remaining processes, reaps them and releases everything. Blocks until the main process has ended.
    pub(super) fn finish(mut self) -> (Leftovers, Option<ChildExit>) {
        let Some(resources) = self.resources.take() else {
            return (Leftovers::default(), None);
        };
        resources.release(self.pid, self.apart.take())
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        let Some(resources) = self.resources.take() else {
            return;
        };
        self.signal(Signal::KILL);
        let pid = self.pid;
        let apart = self.apart.take();
        let clean_up = move || {
            resources.release(pid, apart);
        };
        // If no thread can be created, the child is not reaped: blocking here could stop the whole process.
        std::thread::Builder::new()
            .name("reap".to_owned())
            .spawn(clean_up)
            .ok();
    }
}
