//! Looking at processes through `/proc`.

use rustix::process::Pid;
use std::fs;

/// How many descendants are looked at; more than any limit of processes in common use.
const MAX_LISTED: usize = 65_536;

/// One line of `/proc/<pid>/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) group: i32,
    /// Ended, but not yet waited for.
    pub(super) zombie: bool,
}

/// What a process is now; `None` when it is gone.
pub(super) fn look(pid: Pid) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

fn parse(pid: Pid, stat: &str) -> Option<Process> {
    // The name in parentheses may itself contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X" | "x");
    let group = fields.nth(1)?.parse().ok()?;
    Some(Process { pid, group, zombie })
}

/// The value of a variable in the environment a process was started with.
pub(super) fn variable(pid: Pid, name: &str) -> Option<Vec<u8>> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let start = [name.as_bytes(), b"="].concat();
    environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(start.as_slice()).map(<[u8]>::to_vec))
}

/// The children of a process, of all its threads. `None` on a kernel that does not list them.
pub(super) fn children(pid: Pid) -> Option<Vec<Pid>> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread may end meanwhile; its children are then listed at another.
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(pid_of)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && task.path().exists() => return None,
            Err(_ended) => {}
        }
    }
    Some(found)
}

/// The children of this process and theirs, and so on.
pub(super) fn descendants() -> Option<Vec<Pid>> {
    let mut found = children(rustix::process::getpid())?;
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let grown = found.len() < MAX_LISTED;
        found.extend(children(pid).filter(|_| grown).into_iter().flatten());
    }
    Some(found)
}

/// Every process this one may see, except itself.
pub(super) fn all() -> Vec<Pid> {
    let own = rustix::process::getpid();
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|entry| pid_of(entry.file_name().to_str()?)).filter(|pid| *pid != own).collect()
}

fn pid_of(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}
