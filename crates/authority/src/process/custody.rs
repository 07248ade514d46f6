//! No process is left behind: which are ours, and how they are ended and reaped.
//!
//! A child can leave its group and outlive its parent. It then becomes a child of this process, if that is a
//! subreaper, and still carries `YOI_CALL` in its environment. One that also shed that is a *stranger*: nobody can say
//! whose it is, so it is ended when no call runs at all. A subreaper must therefore start children through
//! [`super::Spawner`] only.

use super::processes::{self, Process};
use crate::{Ambient, Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus};
use std::collections::HashSet;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The variable that tells whose a process is.
pub(super) const MARK: &str = "YOI_CALL";

/// How often the processes of a call are listed and killed until none is left; more than one round is needed only
/// when they multiply meanwhile.
const MAX_ROUNDS: u32 = 64;

/// How long killed processes are waited for in one round.
const ROUND_WAIT: Duration = Duration::from_millis(200);

/// How many processes are watched at a time.
const MAX_WATCHED: usize = 256;

static SUBREAPER: AtomicBool = AtomicBool::new(false);
/// Nothing is started any more. Not under the lock: whoever holds that may be busy for seconds.
static CLOSED: AtomicBool = AtomicBool::new(false);
static JOBS: Mutex<Option<Jobs>> = Mutex::new(None);

/// What runs in this process now.
#[derive(Debug, Default)]
struct Jobs {
    calls: usize,
    /// The main processes that are not yet reaped.
    pids: HashSet<Pid>,
}

/// Makes this process the parent of descendants whose own parent ended. From then on, children that were not started
/// by a [`super::Spawner`] are ended when the last call ends.
///
/// # Errors
/// `Unavailable` when the kernel refuses.
pub fn become_subreaper(_: &Ambient) -> Result<(), Error> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(|error| Error::system("become a subreaper", error))?;
    SUBREAPER.store(true, Ordering::SeqCst);
    Ok(())
}

/// Kills this user's processes whose `YOI_CALL` is `tag_prefix` or goes on from it with `/`, and waits for their end.
/// For recovery after a crash of the host; says how many there were.
///
/// # Errors
/// `FixInput` for an empty prefix, `Unavailable` when some could not be ended.
pub fn end_survivors(_: &Ambient, tag_prefix: &str) -> Result<u32, Error> {
    let tag = tag_prefix.trim_end_matches('/').as_bytes();
    if tag.is_empty() {
        return Err(Error::new(ErrorKind::FixInput, "end survivors: the tag is empty, which would mean every process"));
    }
    let below = |mark: &[u8]| mark.strip_prefix(tag).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
    let mut ended = HashSet::new();
    let none_left = end_all(&mut ended, processes::all, |process| marked(process.pid, below));
    if none_left {
        Ok(u32::try_from(ended.len()).unwrap_or(u32::MAX))
    } else {
        Err(Error::new(
            ErrorKind::Unavailable,
            format!("processes of {tag_prefix} do not end; look for them with `ps`"),
        ))
    }
}

/// Kills whatever descends from this process, children nobody can attribute among them, and waits for their end; from
/// then on no child can be started. For leaving the process; says how many there were.
///
/// # Errors
/// `Unavailable` when some could not be ended or the kernel does not list them.
pub fn end_descendants(_: &Ambient) -> Result<u32, Error> {
    // First: whoever starts a child looks after it did so, and ends it.
    CLOSED.store(true, Ordering::SeqCst);
    let unlisted = || Error::new(ErrorKind::Unavailable, "this kernel does not list the children of a process");
    processes::descendants().ok_or_else(unlisted)?;
    let mut ended = HashSet::new();
    if end_all(&mut ended, || processes::descendants().unwrap_or_default(), |_| true) {
        Ok(u32::try_from(ended.len()).unwrap_or(u32::MAX))
    } else {
        Err(Error::new(ErrorKind::Unavailable, "child processes do not end; look for them with `ps`"))
    }
}

/// A call's place in the count of running calls; strangers are ended with the last.
#[derive(Debug)]
pub(super) struct Slot(());

impl Slot {
    pub(super) fn take() -> Self {
        jobs().get_or_insert_default().calls += 1;
        Self(())
    }

    /// Starts a child and notes it in one step, so that no sweep takes it for somebody else's.
    pub(super) fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        let mut jobs = jobs();
        let left = || std::io::Error::other("this process is being left; nothing is started any more");
        if CLOSED.load(Ordering::SeqCst) {
            return Err(left());
        }
        let mut child = command.spawn()?;
        if CLOSED.load(Ordering::SeqCst) {
            // It goes with the process at the latest.
            child.kill().and_then(|()| child.wait()).ok();
            return Err(left());
        }
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            jobs.get_or_insert_default().pids.insert(pid);
        }
        Ok(child)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut guard = jobs();
        let jobs = guard.get_or_insert_default();
        jobs.calls = jobs.calls.saturating_sub(1);
        if !SUBREAPER.load(Ordering::SeqCst) {
            return;
        }
        reap_adopted(jobs);
        if jobs.calls == 0 {
            // Held meanwhile: the next call's child must not be among them.
            let list = || processes::descendants().unwrap_or_default();
            end_all(&mut HashSet::new(), list, |process| !jobs.pids.contains(&process.pid));
            reap_adopted(jobs);
        }
    }
}

/// Ends what is left of a call whose main process has ended or is to end with the rest, and reaps that. Says how many
/// others there were.
pub(super) fn end_call(main: Pid, mark: &str) -> (u32, Option<WaitIdStatus>) {
    let group = main.as_raw_nonzero().get();
    let own = |process: &Process| {
        process.pid != main && (process.group == group || marked(process.pid, |found| found == mark.as_bytes()))
    };
    let list = || if SUBREAPER.load(Ordering::SeqCst) { processes::descendants() } else { None };
    let mut ended = HashSet::new();
    end_all(&mut ended, || list().unwrap_or_else(processes::all), own);
    // The main process was not reaped yet, so its number still means this group.
    signal_group(main, Signal::KILL);
    let status = loop {
        match rustix::process::waitid(WaitId::Pid(main), WaitIdOptions::EXITED) {
            Err(Errno::INTR) => {}
            Ok(status) => break status,
            Err(_nobody) => break None,
        }
    };
    jobs().get_or_insert_default().pids.remove(&main);
    (u32::try_from(ended.len()).unwrap_or(u32::MAX), status)
}

/// Sends a signal to a whole group; that it is gone already is no failure.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    rustix::process::kill_process_group(leader, signal).unwrap_or_default();
}

fn jobs() -> MutexGuard<'static, Option<Jobs>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn marked(pid: Pid, matches: impl Fn(&[u8]) -> bool) -> bool {
    processes::variable(pid, MARK).is_some_and(|mark| matches(&mark))
}

/// Kills what `list` finds and `chosen` takes, round after round; whether none is left.
fn end_all(ended: &mut HashSet<Pid>, list: impl Fn() -> Vec<Pid>, chosen: impl Fn(&Process) -> bool) -> bool {
    for _ in 0..MAX_ROUNDS {
        let mut dying = Vec::new();
        let mut some_left = false;
        for pid in list() {
            // The handle first: whatever is read of the number afterwards is either of this process or of none.
            let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if !processes::look(pid).is_some_and(|process| !process.zombie && chosen(&process)) {
                continue;
            }
            some_left = true;
            if rustix::process::pidfd_send_signal(&handle, Signal::KILL).is_ok() {
                ended.insert(pid);
                if dying.len() < MAX_WATCHED {
                    dying.push((pid, handle));
                }
            }
        }
        if !some_left {
            return true;
        }
        wait_for(&dying);
    }
    false
}

fn wait_for(dying: &[(Pid, OwnedFd)]) {
    let until = Instant::now() + ROUND_WAIT;
    for (pid, handle) in dying {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut watched = [PollFd::new(handle, PollFlags::IN)];
        if rustix::event::poll(&mut watched, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            // It is this process's to reap only when it was adopted.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            rustix::process::waitid(WaitId::Pid(*pid), options).ok();
        }
    }
}

/// Reaps children that ended and are no call's main process.
fn reap_adopted(jobs: &Jobs) {
    for pid in processes::children(rustix::process::getpid()).unwrap_or_default() {
        if !jobs.pids.contains(&pid) && processes::look(pid).is_some_and(|process| process.zombie) {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            rustix::process::waitid(WaitId::Pid(pid), options).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that ends may hold the lock for as long as its processes take to die: leaving does not wait for it.
    #[test]
    fn leaving_waits_for_no_call() {
        let busy = jobs();
        let (told, done) = std::sync::mpsc::channel();
        let leaving = std::thread::spawn(move || told.send(end_descendants(&Ambient::claim()).is_ok()));
        assert_eq!(done.recv_timeout(Duration::from_secs(20)), Ok(true));
        drop(busy);
        leaving.join().unwrap().unwrap();
        let mut command = Command::new("true");
        assert!(Slot(()).spawn(&mut command).is_err(), "nothing is started any more");
    }
}
