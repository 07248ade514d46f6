//! Processes of a host that has died: their parent has ended, so all of `/proc` is searched.

use super::descendants::{MARK, signal_group};
use super::label;
use super::processes::{self, Process};
use crate::{Error, ErrorKind};
use rustix::process::{Pid, Signal};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// The number of consecutive empty rounds after which no process is left. A process that forks and ends between listing
/// and reading is missed, so more than one round is needed.
const CLEAN: u32 = 2;
const CLEAN_BEHIND_A_CHAIN: u32 = 16;

/// The most rounds, and the longest time.
const MAX_ROUNDS: u32 = 1_000;
const MAX_TIME: Duration = Duration::from_secs(3);

/// The pause after killing before the next round.
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Swept {
    pub(super) ended: u32,
    pub(super) unsure: bool,
}

/// The living processes that `whose` accepts, with their descendants, but not this process and its ancestors.
pub(super) fn living(whose: impl Fn(&Process) -> bool) -> Vec<Pid> {
    Look::take(&whose)
        .chosen
        .into_iter()
        .map(|process| process.pid)
        .collect()
}

/// Kills the processes that [`living`] finds, repeatedly, until none is left.
pub(super) fn end(whose: impl Fn(&Process) -> bool) -> Swept {
    let until = Instant::now() + MAX_TIME;
    let mut ended = HashSet::new();
    let mut clean = 0;
    let mut wanted = CLEAN;
    // Zombies that are never reaped, as below an init process that does not reap, are seen in every round.
    let mut dead = HashSet::new();
    for _ in 0..MAX_ROUNDS {
        let look = Look::take(&whose);
        // A process that ended by itself while it was read has likely started another one.
        let mut slipped = false;
        for zombie in look.zombies.iter().map(Process::identity) {
            slipped |= dead.insert(zombie) && !ended.contains(&zombie);
        }
        for process in &look.chosen {
            let same = |now: &Process| now.started == process.started && !now.zombie;
            match processes::kill_if(process.pid, same) {
                true => drop(ended.insert(process.identity())),
                false => slipped = true,
            }
        }
        look.kill_groups();
        wanted = if slipped {
            CLEAN_BEHIND_A_CHAIN
        } else {
            wanted
        };
        clean = if look.chosen.is_empty() && !slipped {
            clean + 1
        } else {
            0
        };
        if clean == wanted {
            return Swept {
                ended: u32::try_from(ended.len()).unwrap_or(u32::MAX),
                unsure: false,
            };
        }
        if Instant::now() > until {
            break;
        }
        if clean == 0 && !slipped {
            std::thread::sleep(PAUSE);
        }
    }
    Swept {
        ended: u32::try_from(ended.len()).unwrap_or(u32::MAX),
        unsure: true,
    }
}

struct Look {
    chosen: Vec<Process>,
    /// The wanted processes that had ended.
    zombies: Vec<Process>,
    /// Groups with members outside of the wanted processes.
    mixed: HashSet<i32>,
}

impl Look {
    fn take(whose: &impl Fn(&Process) -> bool) -> Self {
        let spared = processes::own_line();
        // The newest first: they are the most likely to end soon.
        let all: Vec<Process> = processes::all()
            .into_iter()
            .rev()
            .filter_map(processes::look)
            .collect();
        let mut below: HashMap<i32, Vec<Process>> = HashMap::new();
        let mut next = Vec::new();
        let mut zombies = Vec::new();
        for process in all.iter().filter(|process| !spared.contains(&process.pid)) {
            below.entry(process.parent).or_default().push(*process);
            match whose(process) {
                true if process.zombie => zombies.push(*process),
                true => next.push(*process),
                false => {}
            }
        }
        let mut chosen = Vec::new();
        let mut taken = HashSet::new();
        while let Some(process) = next.pop() {
            if taken.insert(process.pid) {
                let children = below
                    .get(&process.pid.as_raw_nonzero().get())
                    .into_iter()
                    .flatten();
                next.extend(children.filter(|child| !child.zombie));
                chosen.push(process);
            }
        }
        let others = all
            .iter()
            .filter(|process| !process.zombie && !taken.contains(&process.pid));
        let mixed = others
            .map(|process| process.group)
            .chain(processes::own().map(|own| own.group))
            .collect();
        Self {
            chosen,
            zombies,
            mixed,
        }
    }

    /// Kills whole groups, because no fork escapes from a group that is killed at once.
    fn kill_groups(&self) {
        let groups: HashSet<i32> = self
            .chosen
            .iter()
            .chain(&self.zombies)
            .map(|process| process.group)
            .collect();
        for group in groups
            .difference(&self.mixed)
            .filter_map(|group| Pid::from_raw(*group))
        {
            signal_group(group, Signal::KILL);
        }
    }
}

/// The error that some processes of `whose` may still run.
pub(super) fn remain(whose: &str) -> Error {
    let text = format!(
        "processes of {whose} cannot be ended, or new ones start faster than they end; `ps` lists them"
    );
    Error::new(ErrorKind::Unavailable, text)
}

/// Whether a process belongs to this tag (a session, or an epoch of it) by its label or mark, and its host has died:
/// another host, which is spared itself, may write a copy of the same session.
pub(super) fn tagged(process: &Process, tag: &str) -> bool {
    let below = |mark: Vec<u8>| {
        mark.strip_prefix(tag.as_bytes())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    let label = label::of(process.pid);
    processes::own_user(process.pid)
        && !label
            .is_some_and(|label| label.is_of_host(process.pid) || label.host_lives(process.pid))
        && (label.is_some_and(|label| label.is_of(tag))
            || processes::variable(process.pid, MARK).is_some_and(below))
}
