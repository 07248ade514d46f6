//! Whose each child of this process is. Every child has one owner: a running call, or the host itself.
//!
//! ```text
//! child of this process ─▶ a call's main process, or a child of the host's own: held by its waiter
//!                       ─▶ orphan: the label's number, the group, `YOI_CALL` ─▶ this call, a living owner, or a dead one
//!                       ─▶ stranger, without all of these: any owner that lived when it started may be its
//! ```
//!
//! When a call ends, its processes and those of dead owners are ended. What may be a living owner's is left.

use super::descendants::MARK;
use super::label::{self, Label};
use super::processes::{self, Process};
use rustix::process::Pid;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

static OWNERS: Mutex<Option<Owners>> = Mutex::new(None);

/// The owners of children that live now, besides the host: one entry for each child that has a waiter.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// The number of calls started so far.
    begun: u64,
    /// The main processes of calls.
    calls: HashMap<Pid, CallOwner>,
    /// The start times of the host's own children.
    wards: HashMap<Pid, u64>,
}

/// A call with a process.
#[derive(Clone, Debug)]
pub(super) struct CallOwner {
    pub(super) number: u64,
    /// The start time of its main process: nothing of the call is older.
    pub(super) started: u64,
    pub(super) mark: String,
}

/// To whom a child of this process belongs, when a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// To a waiter.
    Held,
    /// To the call that ends, or to one that has ended.
    Ours,
    /// To another owner that lives.
    Others,
    /// To the call that ends or to another owner that lives.
    Unknown,
}

/// Locks the table. Children are started and swept under this lock, so no sweep sees a child before it is in the table.
pub(super) fn lock() -> OwnersGuard {
    OwnersGuard(OWNERS.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(super) struct OwnersGuard(MutexGuard<'static, Option<Owners>>);

impl OwnersGuard {
    pub(super) fn table(&mut self) -> &mut Owners {
        self.0.get_or_insert_default()
    }
}

impl Owners {
    /// The number of the next call.
    pub(super) fn next_call(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// A call has started its main process.
    pub(super) fn call_started(&mut self, pid: Pid, number: u64, mark: &str) {
        let started = processes::look(pid).map_or(0, |process| process.started);
        self.calls.insert(
            pid,
            CallOwner {
                number,
                started,
                mark: mark.to_owned(),
            },
        );
    }

    /// A call is over, and its main process has no waiter, or is waited for at once.
    pub(super) fn call_ended(&mut self, number: u64) {
        self.calls.retain(|_, call| call.number != number);
    }

    /// The host has started a child of its own; returns its start time.
    pub(super) fn ward_started(&mut self, pid: Pid) -> u64 {
        let started = processes::look(pid).map_or(0, |process| process.started);
        self.wards.insert(pid, started);
        started
    }

    /// A child of the host's own has no waiter any more.
    pub(super) fn ward_ended(&mut self, pid: Pid, started: u64) {
        // The number may be another ward's by now.
        if self.wards.get(&pid) == Some(&started) {
            self.wards.remove(&pid);
        }
    }

    pub(super) fn is_held(&self, pid: Pid) -> bool {
        let ward =
            |started: &u64| processes::look(pid).is_some_and(|process| process.started == *started);
        self.calls.contains_key(&pid) || self.wards.get(&pid).is_some_and(ward)
    }

    /// Whose a process is, when the call with this main process ends. `adopted`: it is a child of this process, so one
    /// of the owners started it.
    pub(super) fn whose(&self, pid: Pid, main: Pid, adopted: bool) -> Whose {
        if self.is_held(pid) {
            return Whose::Held;
        }
        let Some(call) = self.calls.get(&main) else {
            return Whose::Unknown;
        };
        let process = processes::look(pid);
        let in_group =
            || process.is_some_and(|process| process.group == main.as_raw_nonzero().get());
        let stranger = || {
            process
                .filter(|_| adopted)
                .map_or(Whose::Unknown, |process| self.stranger(&process, call))
        };
        match label::of(pid)
            .filter(|label| label.is_by_us())
            .map(Label::call)
        {
            Some(Some(number)) if number == call.number => Whose::Ours,
            _ if in_group() => Whose::Ours,
            Some(Some(number)) if self.calls.values().any(|other| other.number == number) => {
                Whose::Others
            }
            Some(Some(number)) if (1..=self.begun).contains(&number) => Whose::Ours,
            // The host's own, or what such a child left behind. Some of them set a mark of their own.
            Some(None) => self.by_mark(pid, call).unwrap_or(Whose::Others),
            Some(Some(_)) | None => self.by_mark(pid, call).unwrap_or_else(stranger),
        }
    }

    /// By the mark, if it is one of this host's.
    fn by_mark(&self, pid: Pid, call: &CallOwner) -> Option<Whose> {
        let mark = String::from_utf8(processes::variable(pid, MARK)?).ok()?;
        let (tag, _) = call.mark.rsplit_once('/')?;
        let of_tag = mark.rsplit_once('/').is_some_and(|(other, _)| other == tag);
        match mark == call.mark {
            true => Some(Whose::Ours),
            false if self.calls.values().any(|other| other.mark == mark) => Some(Whose::Others),
            false => of_tag.then_some(Whose::Ours),
        }
    }

    /// Nothing shows its owner, but no owner is younger than what it started.
    fn stranger(&self, process: &Process, call: &CallOwner) -> Whose {
        let others = self
            .calls
            .values()
            .filter(|other| other.number != call.number)
            .map(|other| other.started);
        let living = others
            .chain(self.wards.values().copied())
            .any(|started| started <= process.started);
        match (living, call.started <= process.started) {
            (false, _) => Whose::Ours,
            (true, true) => Whose::Unknown,
            (true, false) => Whose::Others,
        }
    }
}

#[cfg(test)]
mod tests;
