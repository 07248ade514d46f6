//! The processes of a pod, for a person or a script that asks from outside. Ends none.

use super::apart::HELPER;
use super::descendants::MARK;
use super::label::{self, Label};
use super::memory;
use super::processes::{self, Process};
use crate::Ambient;
use crate::text::{Lines, escape_within};
use rustix::process::Pid;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::time::Duration;

/// The most processes listed, the oldest first; and the most bytes of a command line that are shown.
const MAX_LISTED: usize = 4_096;
const MAX_COMMAND: usize = 1_024;

/// Ticks of start times in a second: what every kernel shows to programs on the architectures yoi runs on.
const TICKS: u64 = 100;

/// A running process that a host of a pod started, directly or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodProcess {
    pub pid: u32,
    /// When it started, in ticks since boot. With the number it identifies the process until the next boot.
    pub started: u64,
    pub parent: u32,
    pub owner: ProcessOwner,
    /// Time since its start.
    pub age: Duration,
    /// Its [`resident_memory`].
    pub memory: Option<u64>,
    /// Its command line, escaped to one line; its name in brackets if it has none.
    pub command: String,
}

/// For what a process was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessOwner {
    /// The tool call with this id.
    Call(String),
    /// The host itself.
    Host,
    Unknown,
}

/// A process that was found, and what shows its owner.
struct Found {
    process: Process,
    label: Option<Label>,
    call: Option<String>,
}

/// The running processes of the pod with this session, the oldest first, without its host, at most 4,096: by label and
/// `YOI_CALL`, and what they started. Reads all of `/proc`.
pub fn processes_of(ambient: &Ambient, session: &str) -> Vec<PodProcess> {
    let mut found = found(session);
    found.sort_by_key(|found| (found.process.started, found.process.pid.as_raw_nonzero()));
    // Of a process that shed its environment only the number of its call is known; another one of the call has both.
    let number = |label: Option<Label>| label.and_then(Label::call);
    let named = found
        .iter()
        .filter_map(|found| Some((number(found.label)?, found.call.clone()?)));
    let calls: HashMap<u64, String> = named.collect();
    let up = uptime().unwrap_or_default();
    found.truncate(MAX_LISTED);
    let shown = found.into_iter().map(
        |Found {
             process,
             label,
             call,
         }| {
            let call = call.or_else(|| calls.get(&number(label)?).cloned());
            let owner = match call {
                Some(call) => ProcessOwner::Call(call),
                None if label.is_some_and(|label| label.call().is_none()) => ProcessOwner::Host,
                None => ProcessOwner::Unknown,
            };
            let since = Duration::from_millis(process.started.saturating_mul(1_000 / TICKS));
            let pid = process.pid.as_raw_nonzero().get().unsigned_abs();
            PodProcess {
                pid,
                started: process.started,
                parent: process.parent.unsigned_abs(),
                owner,
                age: up.saturating_sub(since),
                memory: resident_memory(ambient, pid),
                command: command(process.pid).unwrap_or_default(),
            }
        },
    );
    shown.collect()
}

fn found(session: &str) -> Vec<Found> {
    let all: Vec<Process> = processes::all()
        .into_iter()
        .filter_map(processes::look)
        .collect();
    let mut below: HashMap<i32, Vec<Process>> = HashMap::new();
    let mut next = Vec::new();
    let mut hosts = HashSet::new();
    for process in all.into_iter().filter(|process| !process.zombie) {
        below.entry(process.parent).or_default().push(process);
        let label = label::of(process.pid).filter(|label| label.is_of(session));
        let call = call(process.pid, session);
        if (label.is_some() || call.is_some()) && processes::own_user(process.pid) {
            if label.is_some_and(|label| label.is_of_host(process.pid)) {
                hosts.insert(process.pid);
            }
            next.push(Found {
                process,
                label,
                call,
            });
        }
    }
    let mut found = Vec::new();
    let mut taken = HashSet::new();
    // A process that shows its owner itself goes before its parent's word for it.
    next.sort_by_key(|found| found.call.is_some());
    taken.extend(next.iter().map(|found| found.process.pid));
    while let Some(parent) = next.pop() {
        let pid = parent.process.pid;
        for child in below.get(&pid.as_raw_nonzero().get()).into_iter().flatten() {
            if taken.insert(child.pid) {
                next.push(Found {
                    process: *child,
                    label: parent.label,
                    call: parent.call.clone(),
                });
            }
        }
        if !hosts.contains(&pid) && parent.call.as_deref() != Some(HELPER) {
            found.push(parent);
        }
    }
    found
}

/// The call in a process's mark, if the mark is the session's.
fn call(pid: Pid, session: &str) -> Option<String> {
    let mark = String::from_utf8(processes::variable(pid, MARK)?).ok()?;
    let (_epoch, call) = mark
        .strip_prefix(session)?
        .strip_prefix('/')?
        .split_once('/')?;
    Some(escape_within(call, Lines::One, MAX_COMMAND))
}

/// Time since boot, as start times count it.
fn uptime() -> Option<Duration> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The resident memory of a process in bytes; shared pages count in each process.
pub fn resident_memory(_: &Ambient, pid: u32) -> Option<u64> {
    memory::resident(pid)
}

fn command(pid: Pid) -> io::Result<String> {
    let mut words = Vec::new();
    // A few bytes more than are shown, so that a cut is seen.
    File::open(format!("/proc/{pid}/cmdline"))?
        .take(MAX_COMMAND as u64 + 8)
        .read_to_end(&mut words)?;
    let text = String::from_utf8_lossy(&words);
    let text = text.trim_end_matches('\0').replace('\0', " ");
    if text.is_empty() {
        let name = fs::read(format!("/proc/{pid}/comm"))?;
        return Ok(format!(
            "[{}]",
            escape_within(
                String::from_utf8_lossy(&name).trim_end(),
                Lines::One,
                MAX_COMMAND
            )
        ));
    }
    Ok(escape_within(&text, Lines::One, MAX_COMMAND))
}
