//! What the kernel says of a process, and where scratch files go.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use tempfile::TempDir;

/// What a process had used when it was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// The most memory it had in use, bytes.
    pub peak: u64,
    /// Memory that is its own and was written, bytes.
    pub private: u64,
    pub threads: u64,
}

/// Processor time of a process alone, without its children's, in steps of ten milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// In its own code, milliseconds.
    pub user: u64,
    /// In the kernel for it, milliseconds.
    pub system: u64,
}

/// The kernel counts time in hundredths of a second towards programs.
const TICK_MS: u64 = 10;

/// Does this work on one processor; what it starts stays there.
pub fn on_processor<T>(number: usize, work: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set(number);
    sched_setaffinity(None, &one).unwrap();
    let done = work();
    sched_setaffinity(None, &before).unwrap();
    done
}

/// In memory where there is such a place, so that the disk's speed is not measured.
#[must_use]
pub fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// Processor time alone: cheap enough for every step.
#[must_use]
pub fn cpu(pid: u32) -> Cpu {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name stands in parentheses and may hold anything.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ms = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<u64>().ok())
            .unwrap_or(0)
            * TICK_MS
    };
    Cpu {
        user: ms(11),
        system: ms(12),
    }
}

/// Everything.
#[must_use]
pub fn usage(pid: u32) -> Usage {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    Usage {
        peak: field(&status, "VmHWM:") * 1024,
        // Not Private_Dirty: the pages of a program just built are dirty too, until they are written back.
        private: field(&rollup, "Anonymous:") * 1024,
        threads: field(&status, "Threads:"),
    }
}

/// How often each thread of a process has given up the processor so far because it waited for something.
#[must_use]
pub fn waits(pid: u32) -> BTreeMap<OsString, u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let status = |thread: &fs::DirEntry| {
        fs::read_to_string(thread.path().join("status")).unwrap_or_default()
    };
    threads
        .map(|thread| {
            (
                thread.file_name(),
                field(&status(&thread), "voluntary_ctxt_switches:"),
            )
        })
        .collect()
}

/// Bytes this process has read by system calls so far.
#[must_use]
pub fn bytes_read() -> u64 {
    field(
        &fs::read_to_string("/proc/self/io").unwrap_or_default(),
        "rchar:",
    )
}

/// Processes that wanted to run during the last minute.
#[must_use]
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(0.0)
}

fn field(text: &str, name: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
