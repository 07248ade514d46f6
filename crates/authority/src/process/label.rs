//! A label that every descendant of this process inherits and cannot remove in a sandbox.
//!
//! Linux has not enforced the limit on file locks since version 2.4. The limit is inherited over fork and exec,
//! survives a new environment and a new session, is readable in `/proc/PID/limits`, and its hard part cannot be raised.
//! So the hard limit encodes session and host, and the soft limit the call.

use super::processes;
use crate::Ambient;
use rustix::process::{Pid, Resource, Rlimit};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bits of the label. Exactly one bit above them is set, a lower one for each nested host, because limits can only
/// decrease.
const BITS: u32 = 48;
const MASK: u64 = (1 << BITS) - 1;
/// The highest bit of a limit that no program treats as infinite.
const TOP: u32 = 62;

/// Process numbers have at most so many bits.
const PID_BITS: u32 = 22;
const PID_MASK: u64 = (1 << PID_BITS) - 1;

/// The line of `/proc/PID/limits`.
const LINE: &str = "Max file locks";

static LABELLED: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    host: u64,
    call: Option<u64>,
}

/// Labels all later descendants of this process with the session in `tag` (the part before its first `/`) and this
/// process's number. Called at the start of a host. Returns whether the label works: a file lock limit that is already
/// low cannot be raised, and then descendants are recognised by group, environment and parents only.
pub fn label_descendants(_: &Ambient, tag: &str) -> bool {
    let now = rustix::process::getrlimit(Resource::Locks).maximum;
    let bit = match now.map_or(u64::BITS, |limit| limit.checked_ilog2().unwrap_or(0)) {
        bit if bit > TOP => TOP,
        bit => bit.saturating_sub(1),
    };
    if bit < BITS {
        return false;
    }
    let limit = Some(1 << bit | host_label(tag, std::process::id()));
    let done = rustix::process::setrlimit(
        Resource::Locks,
        Rlimit {
            current: limit,
            maximum: limit,
        },
    )
    .is_ok();
    LABELLED.store(done, Ordering::SeqCst);
    done
}

/// Sets what later children have: the number of a call, or that they are the host's own. Not in a confined thread, whose
/// filter refuses it.
pub(super) fn next_child(call: Option<u64>) {
    if LABELLED.load(Ordering::SeqCst) {
        let maximum = rustix::process::getrlimit(Resource::Locks).maximum;
        rustix::process::setrlimit(
            Resource::Locks,
            Rlimit {
                current: call.or(maximum),
                maximum,
            },
        )
        .ok();
    }
}

/// Whether children are labelled.
pub(super) fn is_set() -> bool {
    LABELLED.load(Ordering::SeqCst)
}

/// Sets what the children of this process have, which another one labelled: the number of a call of that one.
pub(super) fn next_of_call(call: u64) {
    let maximum = rustix::process::getrlimit(Resource::Locks).maximum;
    rustix::process::setrlimit(
        Resource::Locks,
        Rlimit {
            current: Some(call),
            maximum,
        },
    )
    .ok();
}

/// The label of a process, also of one that ended and was not waited for.
pub(super) fn of(pid: Pid) -> Option<Label> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(LINE))?;
    let mut fields = line.split_ascii_whitespace();
    let soft = fields.next()?;
    let hard = fields.next()?.parse::<u64>().ok()?;
    let above = hard >> BITS;
    (above.is_power_of_two() && hard.ilog2() <= TOP).then(|| Label {
        host: hard & MASK,
        call: soft.parse().ok().filter(|call| *call != hard),
    })
}

impl Label {
    /// The number of the call, unique in one host; `None` for the host and what it starts for itself.
    pub(super) fn call(self) -> Option<u64> {
        self.call
    }

    /// Whether the process that has the label is the host that set it.
    pub(super) fn is_of_host(self, carrier: Pid) -> bool {
        u64::from(self.pid()) == u64::from(carrier.as_raw_nonzero().get().unsigned_abs()) & PID_MASK
    }

    /// Whether a host of this session set the label.
    pub(super) fn is_of(self, tag: &str) -> bool {
        self.host == host_label(tag, self.pid())
    }

    /// Whether this host of this session set the label.
    pub(super) fn is_by(self, tag: &str, pid: u32) -> bool {
        self.host == host_label(tag, pid)
    }

    /// Whether this process set the label, or an enclosing host whose label this process has, too.
    pub(super) fn is_by_us(self) -> bool {
        LABELLED.load(Ordering::SeqCst)
            && of(rustix::process::getpid()).is_some_and(|own| own.host == self.host)
    }

    /// Whether the host that set the label still runs, and is neither this process nor the process that has the label.
    pub(super) fn host_lives(self, carrier: Pid) -> bool {
        let host = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let other = host.filter(|pid| *pid != carrier && *pid != rustix::process::getpid());
        other.is_some_and(|pid| {
            processes::look(pid).is_some_and(|process| !process.zombie)
                && of(pid).is_some_and(|label| label.host == self.host)
        })
    }

    fn pid(self) -> u32 {
        u32::try_from(self.host & PID_MASK).unwrap_or_default()
    }
}

fn host_label(tag: &str, pid: u32) -> u64 {
    let session = tag.split('/').next().unwrap_or(tag);
    let digest = blake3::hash(session.as_bytes());
    let first = digest
        .as_bytes()
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    (first << PID_BITS | u64::from(pid) & PID_MASK) & MASK
}
