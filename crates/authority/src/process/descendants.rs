//! Ending every descendant of a call: which processes belong to it, and how they are killed and reaped.
//!
//! A child can leave its group and outlive its parent. If this process is a subreaper, it then becomes a child of this
//! process, and [`super::owners`] says whose it is. Only descendants of the call that ends and of calls that have ended
//! are killed here: other calls go on, and the host has children of its own.
//!
//! ```text
//! main process ended ─▶ its children are ours ─▶ list ours: twice none ─▶ none of the call is left
//!                                                  ▲   └ some ─▶ kill, reap ┐
//!                                                  └────────────────────────┘  for MAX_TIME
//! ```
//!
//! An empty list proves that none is left, however fast processes fork: every living descendant has a chain of living
//! parents that ends at a child of this process. That child is in the list of its thread, or moved to the list of the
//! first thread, which is read last ([`processes::children`]); and nothing else reaps while the lists are read. The
//! second list is for a kernel that lists children while they move.

use super::label;
use super::owners::{self, Owners, Whose};
use super::processes::{self, Process};
use super::survivors;
use crate::{Ambient, Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus};
use std::collections::HashMap;
use std::io;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The environment variable that identifies a process's call.
pub(super) const MARK: &str = "YOI_CALL";

/// How long, and how often, the processes of a call are listed and killed until none is left. Two rounds are the rule;
/// more are needed when they multiply meanwhile, or take long to die.
const MAX_TIME: Duration = Duration::from_secs(3);
const MAX_ROUNDS: u32 = 1_000_000;

/// How long to wait for killed processes between two rounds.
const ROUND_WAIT: Duration = Duration::from_millis(20);

/// How many descendants of one process are killed in one go; the rest has its turn in the next round.
const MAX_BELOW: usize = 65_536;

static SUBREAPER: AtomicBool = AtomicBool::new(false);
/// Set when no process may start any more. Not under the lock, which may be held for a while.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// The counts of a call's processes, without the main one, that were killed or may remain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Leftovers {
    /// Processes that ran and were killed.
    pub(super) ended: u32,
    /// Processes that may still run: they fork faster than they are killed, do not die, or may belong to another call.
    pub(super) remaining: u32,
    /// How many times the kernel found no route for what was sent.
    pub(super) refused: Option<u32>,
}

/// Makes this process the parent of descendants whose own parent has ended. From then on it starts children through
/// [`super::Spawner`] and [`super::HostChild`] only: others may be taken for what a call left behind.
///
/// # Errors
/// `Unavailable` when the kernel refuses.
pub fn become_subreaper(_: &Ambient) -> Result<(), Error> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own))
        .map_err(|error| Error::system("become a subreaper", error))?;
    SUBREAPER.store(true, Ordering::SeqCst);
    Ok(())
}

/// Kills this user's processes that dead hosts started under the tag, with their descendants, and waits for their end.
/// A tag is a session or an epoch of one. Used in recovery after a crash of the host; returns the number killed.
///
/// # Errors
/// `FixInput` for an empty tag, `Unavailable` when some may still run.
pub fn end_survivors(_: &Ambient, tag: &str) -> Result<u32, Error> {
    let tag = tag.trim_end_matches('/');
    if tag.is_empty() {
        return Err(Error::new(
            ErrorKind::FixInput,
            "end survivors: the tag is empty, which would mean every process",
        ));
    }
    let swept = survivors::end(|process| survivors::tagged(process, tag));
    if swept.unsure {
        return Err(survivors::remain(tag));
    }
    Ok(swept.ended)
}

/// Kills all descendants of this process, unattributed ones included, and waits for their end; from then on no child
/// can be started. Called before the process exits; returns the number killed.
///
/// # Errors
/// `Unavailable` when some may still run.
pub fn end_descendants(_: &Ambient) -> Result<u32, Error> {
    // First: a thread that starts a child checks this afterwards and kills the child.
    CLOSED.store(true, Ordering::SeqCst);
    let mut sweep = Sweep::default();
    // Not under the lock. No other thread waits for the processes reaped here.
    sweep.rounds(|sweep, _| sweep.round(|_| Whose::Ours));
    match sweep.left.len() {
        0 => Ok(sweep.ended),
        left => {
            let text =
                format!("child processes cannot be ended (at least {left}); `ps` lists them");
            Err(Error::new(ErrorKind::Unavailable, text))
        }
    }
}

#[derive(Debug)]
pub(super) struct RunningCall {
    /// Its number among the calls of this process.
    pub(super) call: u64,
    /// Nothing of the call is in the table of owners any more.
    over: bool,
}

impl RunningCall {
    pub(super) fn take() -> Self {
        Self {
            call: owners::lock().table().next_call(),
            over: false,
        }
    }

    /// Starts the call's main process in this thread once `confine` has confined it.
    pub(super) fn spawn(
        &self,
        command: &mut Command,
        mark: &str,
        confine: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Child> {
        let (child, ()) = start(
            Some(self.call),
            || confine().and_then(|()| command.spawn()),
            |owners, pid| {
                owners.call_started(pid, self.call, mark);
            },
        )?;
        Ok(child)
    }

    /// Kills the call's remaining processes, the main process included if it still runs, and reaps them. What calls left
    /// behind that have ended is killed, too.
    pub(super) fn end(mut self, main: Pid) -> (Leftovers, Option<WaitIdStatus>) {
        // The process was not reaped yet, so its number still identifies this group.
        signal_group(main, Signal::KILL);
        // Its children become ours only when it has ended.
        let waited = wait(main, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let mut sweep = Sweep {
            main: Some(main),
            ..Sweep::default()
        };
        let mut status = None;
        if SUBREAPER.load(Ordering::SeqCst) {
            sweep.rounds(|sweep, last| {
                let mut guard = owners::lock();
                let owners = guard.table();
                let clean = sweep.round(|pid| owners.whose(pid, main, true));
                if clean && last {
                    // Under the same lock: of two calls that end at once, the second one is then the last to which a
                    // stranger may belong.
                    status = self.forget(owners, main);
                }
                clean
            });
        } else {
            let ours = |pid| owners::lock().table().whose(pid, main, false) == Whose::Ours;
            let swept = survivors::end(|Process { pid, .. }| ours(*pid));
            (sweep.ended, sweep.clean) = (swept.ended, !swept.unsure);
        }
        if !self.over {
            status = self.forget(owners::lock().table(), main);
        }
        let left = u32::try_from(sweep.left.len()).unwrap_or(u32::MAX);
        // A process reaped in the last round may have started another one.
        let remaining = left
            .saturating_add(sweep.strangers)
            .max(u32::from(!sweep.clean));
        (
            Leftovers {
                ended: sweep.ended,
                remaining,
                refused: None,
            },
            waited.and(status),
        )
    }

    /// From now on what is left of the call is a dead owner's. Its main process has ended and is reaped.
    fn forget(&mut self, owners: &mut Owners, main: Pid) -> Option<WaitIdStatus> {
        self.over = true;
        owners.call_ended(self.call);
        wait(main, WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        // No other code ends it: the next sweep does.
        if !self.over {
            owners::lock().table().call_ended(self.call);
        }
    }
}

/// Starts a child in one step with its label and its entry in the table of owners, so that no sweep takes it for
/// another one's.
pub(super) fn start<T>(
    call: Option<u64>,
    spawn: impl FnOnce() -> io::Result<Child>,
    enter: impl FnOnce(&mut Owners, Pid) -> T,
) -> io::Result<(Child, T)> {
    let left = || io::Error::other("this process is ending and starts no more child processes");
    let mut guard = owners::lock();
    if CLOSED.load(Ordering::SeqCst) {
        return Err(left());
    }
    label::next_child(call);
    let mut child = spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    match pid.filter(|_| !CLOSED.load(Ordering::SeqCst)) {
        Some(pid) => Ok((child, enter(guard.table(), pid))),
        None => {
            // Best effort: the process's end frees the child at the latest.
            child.kill().and_then(|()| child.wait()).ok();
            Err(left())
        }
    }
}

/// Reaps what the host's own children left behind and what has ended since; kills nothing.
pub(super) fn reap_orphans(owners: &Owners) {
    if SUBREAPER.load(Ordering::SeqCst) {
        let held = |pid: Pid| {
            if owners.is_held(pid) {
                Whose::Held
            } else {
                Whose::Others
            }
        };
        Sweep::default().round(held);
    }
}

/// Sends a signal to a process group; a missing group is no error. Never to group 1: the kernel takes that number for
/// all processes.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    if leader != Pid::INIT {
        rustix::process::kill_process_group(leader, signal).ok();
    }
}

/// Waits for a child; `None` for a process that is no child of this one.
fn wait(pid: Pid, options: WaitIdOptions) -> Option<WaitIdStatus> {
    loop {
        match rustix::process::waitid(WaitId::Pid(pid), options) {
            Err(Errno::INTR) => {}
            Ok(status) => return status,
            Err(_nobody) => return None,
        }
    }
}

/// Lists, kills and reaps until nothing is found.
#[derive(Debug, Default)]
struct Sweep {
    /// Whose group is killed in each round.
    main: Option<Pid>,
    /// Processes killed and not reaped yet, and whether each was seen running, and so counted.
    sent: HashMap<Pid, bool>,
    ended: u32,
    /// Processes that the last round found and could not reap, and those it could not attribute.
    left: Vec<Pid>,
    strangers: u32,
    clean: bool,
}

impl Sweep {
    /// Until two rounds in a row are clean. A round is told whether it is the last one if it is clean.
    fn rounds(&mut self, mut round: impl FnMut(&mut Self, bool) -> bool) {
        let until = Instant::now() + MAX_TIME;
        let mut before = false;
        for _ in 0..MAX_ROUNDS {
            let known = self.sent.len();
            let clean = round(self, before);
            if clean && before {
                self.clean = true;
                return;
            }
            before = clean;
            if Instant::now() > until {
                return;
            }
            // New processes may have forked already, so the next round follows at once.
            match self.left.first() {
                Some(first) if self.sent.len() == known => wait_for(*first),
                Some(_) | None => {}
            }
        }
    }

    /// One list of the children of this process. True when none of them is ours.
    fn round(&mut self, whose: impl Fn(Pid) -> Whose) -> bool {
        (self.strangers, self.left) = (0, Vec::new());
        let mut clean = true;
        // The newest first: behind a chain of short-lived processes they alone still run, and the list of those that
        // ended grows as fast as it is worked off.
        for pid in processes::own_children().into_iter().rev() {
            let mut whose = whose(pid);
            if whose == Whose::Held {
                continue;
            }
            if self.sent.contains_key(&pid) {
                whose = Whose::Ours;
            }
            if whose == Whose::Ours {
                clean = false;
                self.kill(pid);
            }
            match (
                whose,
                wait(pid, WaitIdOptions::EXITED | WaitIdOptions::NOHANG),
            ) {
                (Whose::Ours, Some(status)) => {
                    let killed = status.terminating_signal() == Some(Signal::KILL.as_raw());
                    let counted = self.sent.remove(&pid).unwrap_or(true);
                    self.ended = self.ended.saturating_add(u32::from(killed && !counted));
                }
                (Whose::Ours, None) => self.left.push(pid),
                // A process that ended may have been ours and may have started another one.
                (Whose::Unknown, Some(_)) => clean = false,
                (Whose::Unknown, None) => self.strangers = self.strangers.saturating_add(1),
                (Whose::Others | Whose::Held, _) => {}
            }
        }
        if let (false, Some(main)) = (clean, self.main) {
            signal_group(main, Signal::KILL);
        }
        clean
    }

    /// Kills one of our processes, and its group and descendants, which the next rounds would find.
    fn kill(&mut self, top: Pid) {
        if self.sent.contains_key(&top) {
            return;
        }
        // Only this process can reap it, so its number was not reused.
        rustix::process::kill_process(top, Signal::KILL).ok();
        let own = processes::own().map_or(0, |process| process.session);
        let mut found = vec![top];
        let mut next = 0;
        while let Some(pid) = found.get(next).copied() {
            next += 1;
            let process = processes::look(pid);
            let lived = process.is_some_and(|process| !process.zombie);
            if self.sent.insert(pid, lived).is_none() && lived {
                self.ended = self.ended.saturating_add(1);
            }
            let foreign = process.filter(|process| process.session != own);
            // A session that began below this process has no other members. No fork gets out of a group that is killed.
            if let Some(group) = foreign.and_then(|process| Pid::from_raw(process.group)) {
                signal_group(group, Signal::KILL);
            }
            let grown = found.len() < MAX_BELOW;
            let children = processes::children(pid)
                .filter(|_| grown)
                .unwrap_or_default();
            let is_child = |now: &Process| now.parent == pid.as_raw_nonzero().get();
            found.extend(
                children
                    .into_iter()
                    .filter(|child| processes::kill_if(*child, is_child)),
            );
        }
    }
}

fn wait_for(pid: Pid) {
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(ROUND_WAIT.subsec_nanos()),
    };
    rustix::event::poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::alone::alone;

    /// A call that ends may hold the lock for as long as its processes take to die: leaving does not wait for it. It ends
    /// all children of its process, so it has one of its own: the other tests of this program start git.
    #[test]
    fn leaving_waits_for_no_call() {
        if !alone(module_path!(), "leaving_waits_for_no_call") {
            return;
        }
        let busy = owners::lock();
        let (told, done) = std::sync::mpsc::channel();
        let leaving =
            std::thread::spawn(move || told.send(end_descendants(&ambient::claim()).is_ok()));
        assert_eq!(done.recv_timeout(Duration::from_secs(20)), Ok(true));
        drop(busy);
        leaving.join().unwrap().unwrap();
        let mut command = Command::new("true");
        assert!(
            RunningCall {
                call: 1,
                over: true
            }
            .spawn(&mut command, "s/1/c1", || Ok(()))
            .is_err(),
            "nothing is started any more"
        );
    }
}
