//! The memory of a child, with the processes that it started.

use super::processes::{self, Process};
use super::run::SpawnedChild;
use rustix::process::Pid;
use std::collections::HashSet;
use std::fs;

/// Processes that are looked at.
const MAX_PROCESSES: usize = 256;

/// Reads the memory of a child and of what it started. A look costs some reads of `/proc` for each of these processes.
#[derive(Clone, Copy, Debug)]
pub struct ChildMemory {
    main: Pid,
    /// When the main process started: another one may have its number later.
    started: u64,
}

impl SpawnedChild {
    /// What reads its memory, also while [`Self::run`] waits for its end.
    pub fn memory(&self) -> Option<ChildMemory> {
        let main = processes::look(self.pid_of_main())?;
        Some(ChildMemory {
            main: main.pid,
            started: main.started,
        })
    }
}

impl ChildMemory {
    /// The resident memory in bytes, of the newest 256 processes at most; shared pages count in each of them. None if it
    /// has ended. What left the child's group and lost its parent is not counted.
    pub fn resident(&self) -> Option<u64> {
        let main = processes::look(self.main).filter(|main| main.started == self.started);
        // The main process may have ended before the others of its group, which are children of this process then.
        let is_of_group = |process: &Process| process.group == self.main.as_raw_nonzero().get();
        let orphans = processes::own_children()
            .into_iter()
            .filter_map(processes::look);
        let orphans =
            orphans.filter(|process| is_of_group(process) && process.started >= self.started);
        let mut next: Vec<Pid> = main
            .into_iter()
            .chain(orphans)
            .map(|process| process.pid)
            .collect();
        let mut seen = HashSet::new();
        let mut sum = None;
        while let Some(pid) = next.pop() {
            if seen.len() == MAX_PROCESSES {
                break;
            }
            if seen.insert(pid) {
                sum = resident(pid)
                    .map(|bytes| bytes.saturating_add(sum.unwrap_or_default()))
                    .or(sum);
                next.extend(processes::children(pid).unwrap_or_default());
            }
        }
        sum
    }
}

/// The resident memory of a process in bytes.
pub(super) fn resident(pid: impl std::fmt::Display) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?
        .trim()
        .strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1_024)
}
