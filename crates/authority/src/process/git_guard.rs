//! Reverts a command's changes to what git would run later. Landlock cannot exclude `.git` from a writable project, and
//! git runs hooks and configured programs for the person outside of the sandbox.
//!
//! ```text
//! first call starts ─▶ snapshot (before) ─▶ commands ─▶ a call's last process ended ─▶ snapshot, compare:
//!    revert configuration and links that lead elsewhere ─▶ snapshot ─▶ revert hooks ─▶ report the rest
//! ```
//!
//! Concurrent calls share the first snapshot and the findings. No link is followed and no operation can block: names
//! are opened one by one from the roots' handles, and only regular files are read.

mod borrowed;
mod config;
mod finding;
mod index;
mod judge;
mod keyed;
mod keys;
mod linked;
mod memory;
mod quarantine;
mod restore;
mod scan;

pub use borrowed::borrowed_objects;
pub use finding::{GitFinding, Handled};
pub use linked::LinkedRepository;

use crate::fs::{Access, Workspace};
use crate::{Ambient, Error, ErrorKind};
use judge::{Judge, Rules};
use memory::Memory;
use quarantine::Quarantine;
use scan::Snapshot;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The most snapshots that follow a reverted link or configuration.
const MAX_ROUNDS: usize = 4;

/// The most findings kept for [`GitGuard::since`].
const MAX_FINDINGS: usize = 256;

/// The most findings listed for one call; the others are counted.
const MAX_OF_CALL: usize = 64;

type Allows = Box<dyn Fn(&Path) -> bool + Send + Sync>;
type Help = Box<dyn Fn(&Path) -> String + Send + Sync>;

/// Watches the files that decide what git runs, below the directories that children may write, and reverts commands'
/// changes to them. A [`super::Spawner`] calls it around each call.
pub struct GitGuard {
    roots: Workspace,
    quarantine: Option<PathBuf>,
    allows: Allows,
    help: Help,
    shared: Mutex<Shared>,
}

/// State shared by concurrent calls.
#[derive(Default)]
struct Shared {
    memory: Memory,
    running: usize,
    before: Arc<Snapshot>,
    since: i128,
    /// The findings, newest last, and the number of findings dropped before these.
    found: VecDeque<GitFinding>,
    first: usize,
    /// The number of findings that were reported.
    told: usize,
    told_bound: bool,
}

impl std::fmt::Debug for GitGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitGuard")
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

/// Held while a call's processes may run. Dropping it compares the state with the snapshot.
#[derive(Debug)]
pub(super) struct Watch(Arc<GitGuard>);

impl GitGuard {
    /// Guards the directories that children may write, the project first. Copies of reverted content go below
    /// `quarantine`, an absolute path that children cannot write. `allows` tells whether a person's rules let commands
    /// change a file, and `help` how such a rule is written; both get absolute paths.
    ///
    /// # Errors
    /// `FixInput` when there is no directory, or one does not exist; `Denied` by the system.
    pub fn new(
        ambient: &Ambient,
        roots: &[PathBuf],
        quarantine: Option<PathBuf>,
        allows: impl Fn(&Path) -> bool + Send + Sync + 'static,
        help: impl Fn(&Path) -> String + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let Some((project, others)) = roots.split_first() else {
            return Err(Error::new(ErrorKind::FixInput, "no directory to watch"));
        };
        let mut workspace = Workspace::open(ambient, project, project, Access::ReadWrite)?;
        for dir in others {
            workspace = workspace.with_dir(ambient, dir, Access::ReadWrite)?;
        }
        let allows = Box::new(allows);
        let help = Box::new(help);
        Ok(Self {
            roots: workspace,
            quarantine,
            allows,
            help,
            shared: Mutex::default(),
        })
    }

    /// The position of the next finding, for [`GitGuard::since`].
    pub fn mark(&self) -> usize {
        let shared = self.lock();
        shared.first + shared.found.len()
    }

    /// The findings since a position, and earlier ones that were not reported yet.
    pub fn since(&self, mark: usize) -> Vec<GitFinding> {
        let mut shared = self.lock();
        let from = mark.min(shared.told).saturating_sub(shared.first);
        let found = shared.found.iter().skip(from).cloned().collect();
        shared.told = shared.first + shared.found.len();
        found
    }

    /// The findings that were not reported yet, such as those of abandoned calls.
    pub fn untold(&self) -> Vec<GitFinding> {
        self.since(usize::MAX)
    }

    /// As [`GitGuard::untold`], still to be reported: until [`GitGuard::told`] with the position behind them.
    pub fn waiting(&self) -> (Vec<GitFinding>, usize) {
        let shared = self.lock();
        let from = shared.told.saturating_sub(shared.first);
        (
            shared.found.iter().skip(from).cloned().collect(),
            shared.first + shared.found.len(),
        )
    }

    /// The findings before this position were reported.
    pub fn told(&self, upto: usize) {
        let mut shared = self.lock();
        shared.told = shared.told.max(upto);
    }

    /// Starts watching a call, before its first process starts.
    pub(super) fn watch(self: &Arc<Self>) -> Watch {
        let mut shared = self.lock();
        if shared.running == 0 {
            shared.since = memory::now();
            // The user may have changed something since the last command.
            shared.before = shared.look(&self.roots);
            if shared.before.bounded {
                shared.add(vec![GitFinding::new(self.roots.project(), Handled::Bound)]);
            }
        }
        shared.running += 1;
        Watch(Arc::clone(self))
    }

    /// Compares while a call runs, unless another comparison is under way: on a disk that hangs, one thread waits.
    pub(super) fn check(&self) {
        let mut shared = match self.shared.try_lock() {
            Ok(shared) => shared,
            Err(TryLockError::Poisoned(shared)) => shared.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        // Behind the last call, what changes is the person's.
        if shared.running > 0 {
            self.compare(&mut shared);
        }
    }

    fn compare(&self, shared: &mut Shared) {
        let mut after = shared.look(&self.roots);
        if Arc::ptr_eq(&shared.before, &after) {
            return;
        }
        let before = Arc::clone(&shared.before);
        let Shared { memory, since, .. } = &mut *shared;
        let known = &before.repositories;
        let quarantine = Quarantine::new(self.quarantine.as_deref());
        let rules = Rules {
            allows: &self.allows,
            help: &self.help,
        };
        let roots = &self.roots;
        let findings = Vec::new();
        let mut judge = Judge {
            roots,
            rules,
            before: &before,
            since: *since,
            memory,
            quarantine,
            findings,
        };
        let mut is_settled = false;
        for _ in 0..MAX_ROUNDS {
            let had = judge.findings.len();
            for _ in 0..MAX_ROUNDS {
                if !judge.leading(&after) {
                    break;
                }
                after = Arc::new(Snapshot::take(judge.memory, &self.roots, known));
            }
            judge.rest(&after);
            is_settled = true;
            for finding in judge.findings.split_off(had) {
                let is_same = |known: &GitFinding| {
                    (&known.path, &known.what, &known.keys)
                        == (&finding.path, &finding.what, &finding.keys)
                };
                // A change that stays is found in each round; one that was reverted before was made again.
                let is_reverted = matches!(finding.what, Handled::PutBack | Handled::Removed);
                let is_known = !is_reverted && judge.findings.iter().any(is_same);
                is_settled &= is_known;
                if !is_known {
                    judge.findings.push(finding);
                }
            }
            if is_settled {
                break;
            }
            // Reverted paths are as before; what another call changed meanwhile is compared, too.
            after = Arc::new(Snapshot::take(judge.memory, &self.roots, known));
        }
        let findings = judge.findings;
        // What was not compared is no base of the next comparison.
        if is_settled {
            shared.before = after;
        }
        shared.add(few(findings, self.roots.project()));
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// A snapshot of the current state; the previous one if nothing it depends on has changed.
    fn look(&mut self, roots: &Workspace) -> Arc<Snapshot> {
        if self.memory.repeats() {
            return Arc::clone(&self.before);
        }
        Arc::new(Snapshot::take(
            &mut self.memory,
            roots,
            &self.before.repositories,
        ))
    }

    fn add(&mut self, mut findings: Vec<GitFinding>) {
        let told = self.told_bound;
        self.told_bound |= findings
            .iter()
            .any(|finding| finding.what == Handled::Bound);
        findings.retain(|finding| finding.what != Handled::Bound || !told);
        self.found.extend(findings);
        while self.found.len() > MAX_FINDINGS {
            self.found.pop_front();
            self.first += 1;
        }
    }
}

/// Cuts the findings to [`MAX_OF_CALL`].
fn few(mut findings: Vec<GitFinding>, top: &Path) -> Vec<GitFinding> {
    let more = findings.len().saturating_sub(MAX_OF_CALL);
    if more > 0 {
        findings.truncate(MAX_OF_CALL);
        findings.push(GitFinding::new(top, Handled::More(more)));
    }
    findings
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        self.0.compare(&mut shared);
        shared.running = shared.running.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
