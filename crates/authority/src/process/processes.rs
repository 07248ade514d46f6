//! Reading processes from `/proc`. Does not depend on hosts and calls.

use crate::Ambient;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// The most ancestors of a process that are followed; more than any real chain has.
const MAX_ANCESTORS: usize = 4_096;

/// How often the ancestors of a process are read when one ends meanwhile.
const LINE_TRIES: usize = 8;

/// Fields of `/proc/<pid>/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Start time in ticks since boot. With the process number it identifies a process uniquely.
    pub(super) started: u64,
    /// Ended, with all its threads, but not yet waited for.
    pub(super) zombie: bool,
}

impl Process {
    /// No two processes have the same.
    pub(super) fn identity(&self) -> (Pid, u64) {
        (self.pid, self.started)
    }
}

/// The current state of a process; `None` if it does not exist.
pub(super) fn look(pid: Pid) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

fn parse(pid: Pid, stat: &str) -> Option<Process> {
    // The name in parentheses may itself contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    let mut next = |skipped: usize| fields.nth(skipped);
    let parent = next(0)?.parse().ok()?;
    let group = next(0)?.parse().ok()?;
    let session = next(0)?.parse().ok()?;
    let threads: u64 = next(13)?.parse().ok()?;
    let started = next(1)?.parse().ok()?;
    // Its first thread may have ended while others run.
    Some(Process {
        pid,
        parent,
        group,
        session,
        started,
        zombie: ended && threads <= 1,
    })
}

/// Whether a process with this number exists and is not a zombie.
pub fn is_running(_: &Ambient, pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.and_then(look).is_some_and(|process| !process.zombie)
}

/// Kills a process if `fits` accepts it; its number may have been reused.
pub(super) fn kill_if(pid: Pid, fits: impl Fn(&Process) -> bool) -> bool {
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    look(pid).is_some_and(|now| fits(&now))
        && rustix::process::pidfd_send_signal(&handle, Signal::KILL).is_ok()
}

/// The value of a variable in the environment a process was started with.
pub(super) fn variable(pid: Pid, name: &str) -> Option<Vec<u8>> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    variable_in(&environ, name).map(<[u8]>::to_vec)
}

/// The value of a variable in an environment as `/proc` shows it.
pub(super) fn variable_in<'a>(environ: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let value = |entry: &'a [u8]| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=");
    environ.split(|byte| *byte == 0).find_map(value)
}

/// Whether it runs as this process's user.
pub(super) fn own_user(pid: Pid) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == user)
}

/// The children of a process, those of its first thread last, and in each list the newest last. `None` on a kernel that
/// does not list them.
///
/// An orphan moves to the list of the first thread of its new parent, and never back. So a child that exists the whole
/// time is found, whichever thread it belongs to.
pub(super) fn children(pid: Pid) -> Option<Vec<Pid>> {
    let first = pid.to_string();
    let mut found = Vec::new();
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .ok()?
        .flatten()
        .map(|task| task.file_name());
    let others = tasks.filter(|task| task.to_str() != Some(&first));
    for task in others.chain([first.as_str().into()]) {
        let path = format!("/proc/{pid}/task/{}", task.to_string_lossy());
        match fs::read_to_string(format!("{path}/children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(pid_of)),
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound
                    && fs::exists(&path).unwrap_or(false) =>
            {
                return None;
            }
            Err(_ended) => {}
        }
    }
    Some(found)
}

/// The children of this process, also on a kernel that does not list them (then in no order).
pub(super) fn own_children() -> Vec<Pid> {
    let own = rustix::process::getpid();
    children(own).unwrap_or_else(|| {
        let own = own.as_raw_nonzero().get();
        // Listed twice: the second list contains processes that became children during the first.
        let listed: HashSet<Pid> = all().into_iter().chain(all()).collect();
        listed
            .into_iter()
            .filter(|pid| look(*pid).is_some_and(|process| process.parent == own))
            .collect()
    })
}

/// Every process this one may see, except itself.
pub(super) fn all() -> Vec<Pid> {
    let own = rustix::process::getpid();
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names
        .filter_map(|entry| pid_of(entry.file_name().to_str()?))
        .filter(|pid| *pid != own)
        .collect()
}

/// This process, as others see it. Its session and group have the number 0 where they began outside of its namespace of
/// processes (a container without an init of its own): no `getsid` or `getpgrp` here, whose types have no such number.
pub(super) fn own() -> Option<Process> {
    look(rustix::process::getpid())
}

/// This process and its ancestors.
pub(super) fn own_line() -> HashSet<Pid> {
    let above = |pid: &Pid| Pid::from_raw(look(*pid)?.parent);
    std::iter::successors(Some(rustix::process::getpid()), above)
        .take(MAX_ANCESTORS)
        .collect()
}

/// A process and its ancestors, nearest first, up to the first one that is hidden. `None` when it does not exist, or
/// when its ancestors change too often.
pub(super) fn line_of(pid: Pid) -> Option<Vec<Process>> {
    for _ in 0..LINE_TRIES {
        let mut line = vec![look(pid)?];
        while let Some(below) = line.last() {
            let Some(parent) = Pid::from_raw(below.parent) else {
                return Some(line);
            };
            // A number that was reused belongs to a younger process.
            match look(parent).filter(|above| above.started <= below.started) {
                Some(above) if line.len() < MAX_ANCESTORS => line.push(above),
                None if rustix::process::test_kill_process(parent) == Err(Errno::PERM) => {
                    return Some(line);
                }
                Some(_) | None => break,
            }
        }
    }
    None
}

pub(super) fn pid_of(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_line() {
        let own = rustix::process::getpid();
        let line = "7 (a) Z (b) R 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 9 0 777 0 0";
        let want = Process {
            pid: own,
            parent: 3,
            group: 4,
            session: 5,
            started: 777,
            zombie: false,
        };
        assert_eq!(parse(own, line), Some(want));
        assert_eq!(
            parse(own, &line.replace(") R", ") Z")),
            Some(want),
            "another thread of it runs on"
        );
        let ended = line.replace(") R", ") Z").replace(" 9 0 777", " 1 0 777");
        assert_eq!(
            parse(own, &ended),
            Some(Process {
                zombie: true,
                ..want
            })
        );
        assert_eq!(parse(own, "7 (a) R 3"), None);
        assert_eq!(
            look(own).unwrap().parent,
            rustix::process::getppid().unwrap().as_raw_nonzero().get()
        );
    }
}
