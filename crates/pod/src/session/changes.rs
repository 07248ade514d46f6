//! The file changes of a pod, read from its journal: for `yoi diff` and `yoi undo`. It knows no tool but the one
//! that runs commands.

use super::stage_number;
use crate::record::{DirectoryMoved, FileChanged, Gap, Record, Stored, ToolStarted};
use llm_worker::CallId;
use session_store::Digest;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The changes of one file, from some point on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The file, absolute; where it was relocated to when a directory above it was moved.
    pub path: String,
    /// The bytes before the first of them; none when the file did not exist.
    pub before: Option<Stored>,
    /// Permission bits before.
    pub mode: Option<u32>,
    /// Digests it had on the way, the newest last; `None` stands for "removed". A change whose intent was
    /// journaled may not have happened: then the file still has the digest before it.
    pub steps: Vec<Option<String>>,
    /// The directory that was made for it, if one was, the topmost: gone again with the file, if nothing else is in it.
    pub made: Option<String>,
    /// Records before the first of them are lost, which may have changed it first: `before` need not be what was there.
    pub doubtful: bool,
    /// Whether something else changed it between two of them, which `before` therefore leaves out.
    pub between: Between,
    /// The record of the newest.
    last: u64,
}

/// What else changed a file between two changes of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    #[default]
    Nothing,
    /// Something did while commands of the session ran, perhaps one of them.
    Command,
    /// Somebody else did, before this record.
    Other(u64),
}

/// A directory that a session moved, once or several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Where it stood, absolute.
    pub from: String,
    /// Where it was moved to in the end, absolute.
    pub to: String,
    /// What was made on the way: a place of it, and the topmost directory that was made above that.
    pub made: Vec<(String, String)>,
}

/// Every change of a session, and the commands that may have changed more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    files: BTreeMap<String, Changed>,
    moved: Vec<Moved>,
    /// The newest move, and the others as they were before it.
    newest: Option<(DirectoryMoved, Vec<Moved>)>,
    /// Directories that were made for moves of which nothing is left, each below the path it was made for.
    made: Vec<(String, String)>,
    shell: &'static str,
    /// Commands that ran, which keep no before-images; each with its seq.
    pub commands: Vec<(u64, String)>,
    /// Stretches of lost records, first and last seq: what they changed is not known.
    pub lost: Vec<(u64, u64)>,
}

impl Changes {
    /// None so far; calls of the tool `shell` are commands.
    #[must_use]
    pub fn beside(shell: &'static str) -> Self {
        Self { shell, ..Self::default() }
    }

    /// Takes one more record, oldest first. Records up to `after` are passed over.
    pub fn take(&mut self, seq: u64, after: u64, record: &Record) {
        if seq <= after {
            return;
        }
        if let Record::Gap(Gap { first, last, .. }) = record
            && self.lost.last().is_none_or(|(_, before)| *before < seq)
        {
            self.lost.push((*first, *last));
        }
        if let Record::FileChanged(change) = record {
            self.file(seq, change);
        }
        if let Record::DirectoryMoved(moved) = record {
            self.moving(moved);
        }
        if let Record::ToolStarted(ToolStarted { name, arguments, .. }) = record
            && name == self.shell
        {
            self.commands.push((seq, arguments.to_string()));
        }
    }

    fn file(&mut self, seq: u64, change: &FileChanged) {
        // What is changed where it was moved away from is there still, unless that place was made anew.
        let stands = |moved: &Moved| {
            let anew = change.made.as_ref().is_some_and(|made| relocated(&moved.from, made, "").is_some());
            relocated(&change.path, &moved.from, "").is_some() && !anew
        };
        if let Some(at) = self.moved.iter().position(stands) {
            self.stood(at);
        }
        let first = Changed {
            path: change.path.clone(),
            before: change.before.clone(),
            mode: change.mode,
            steps: Vec::new(),
            made: None,
            doubtful: !self.lost.is_empty(),
            between: Between::Nothing,
            last: seq,
        };
        let changed = self.files.entry(change.path.clone()).or_insert(first);
        changed.follow(&self.commands, change.before.as_ref(), seq);
        if changed.steps.last() == Some(&None) {
            // It went, and what was made for it has nothing to do with its coming back.
            changed.made = None;
        }
        changed.steps.push(change.after.clone());
        changed.made = changed.made.take().or_else(|| change.made.clone());
        changed.last = seq;
    }

    fn moving(&mut self, moving: &DirectoryMoved) {
        let DirectoryMoved { from, to, made, .. } = moving;
        let before = self.moved.clone();
        if let Some(at) = self.moved.iter().position(|moved| moved.from == *from) {
            self.stood(at);
        }
        self.relocate(from, to);
        let made = made.clone().map(|made| (to.clone(), made));
        match self.moved.iter().position(|moved| moved.to == *from) {
            Some(at) if self.moved.get(at).is_some_and(|moved| moved.from == *to) => {
                let back = self.moved.remove(at);
                self.made.extend(back.made.into_iter().chain(made));
            }
            Some(at) => {
                if let Some(moved) = self.moved.get_mut(at) {
                    moved.to.clone_from(to);
                    moved.made.extend(made);
                }
            }
            None => {
                let made = made.into_iter().collect();
                self.moved.push(Moved { from: from.clone(), to: to.clone(), made });
            }
        }
        self.newest = Some((moving.clone(), before));
    }

    /// Looks where the moved directories stand. An intent may not have been relocated out, or somebody else moved one back.
    pub fn settle(&mut self, there: impl Fn(&str) -> bool) {
        let stands = |from: &str, to: &str| there(from) && !there(to);
        if let Some((DirectoryMoved { from, to, made, .. }, before)) = self.newest.take()
            && stands(&from, &to)
        {
            self.relocate(&to, &from);
            self.moved = before;
            self.made.extend(made.map(|made| (to, made)));
        }
        while let Some(at) = self.moved.iter().rposition(|moved| stands(&moved.from, &moved.to)) {
            self.stood(at);
        }
    }

    /// This directory stands where it stood.
    fn stood(&mut self, at: usize) {
        let Moved { from, to, made } = self.moved.remove(at);
        self.relocate(&to, &from);
        self.made.extend(made);
    }

    /// Every file in a directory goes with it.
    fn relocate(&mut self, from: &str, to: &str) {
        let inside: Vec<String> =
            self.files.keys().filter(|path| relocated(path, from, to).is_some()).cloned().collect();
        let taken: Vec<Changed> = inside.iter().filter_map(|path| self.files.remove(path)).collect();
        for mut changed in taken {
            let place = |path: &str| relocated(path, from, to);
            changed.path = place(&changed.path).unwrap_or(changed.path);
            changed.made = changed.made.map(|made| place(&made).unwrap_or(made));
            match self.files.entry(changed.path.clone()) {
                // It had been there before.
                Entry::Occupied(mut earlier) => earlier.get_mut().go_on(&self.commands, changed),
                Entry::Vacant(free) => drop(free.insert(changed)),
            }
        }
    }

    /// The changed files, by path.
    pub fn files(&self) -> impl Iterator<Item = &Changed> {
        self.files.values()
    }

    /// The directories that were moved and not back.
    pub fn moved(&self) -> &[Moved] {
        &self.moved
    }

    /// What was made for moves of which nothing is left: a path, and the topmost directory that was made above it.
    pub fn made(&self) -> &[(String, String)] {
        &self.made
    }
}

impl Changed {
    /// Whether a change that found `before` follows the ones that are known.
    fn follow(&mut self, commands: &[(u64, String)], before: Option<&Stored>, seq: u64) {
        let found = before.map(|stored| stored.digest.to_string());
        if self.steps.is_empty() || self.status_of(found.as_deref()) != FileStatus::Changed {
            return;
        }
        let ran = commands.iter().any(|(command, _)| (self.last..seq).contains(command));
        self.between = match self.between {
            Between::Nothing | Between::Command if ran => Between::Command,
            Between::Nothing | Between::Command => Between::Other(seq),
            Between::Other(first) => Between::Other(first),
        };
    }

    /// The same file, changed in another life.
    fn go_on(&mut self, commands: &[(u64, String)], mut later: Changed) {
        self.follow(commands, later.before.as_ref(), later.last);
        if let (Between::Nothing | Between::Command, between @ (Between::Command | Between::Other(_))) =
            (self.between, later.between)
        {
            self.between = between;
        }
        self.steps.append(&mut later.steps);
        self.last = later.last;
    }
}

/// Where a path is once the directory `from` is called `to`; nothing for a path that is not in it.
#[must_use]
pub fn relocated(path: &str, from: &str, to: &str) -> Option<String> {
    let below = path.strip_prefix(from)?;
    (below.is_empty() || below.starts_with('/')).then(|| format!("{to}{below}"))
}

/// The number under which a session stages the next content of a file: no other change of any session has it, but one of
/// the same file in the same call; those of `yoi undo`, which has no call, are one after another.
#[must_use]
pub fn staged(session: &str, call: Option<CallId>, path: &str) -> u64 {
    let call = call.map_or_else(|| "undo".to_owned(), |call| call.to_string());
    stage_number(&[session.as_bytes(), call.as_bytes(), path.as_bytes()])
}

/// How a file compares with the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// As the pod left it: undoing is exact.
    AsLeft,
    /// As it was before: nothing to undo.
    AsBefore,
    /// Modified after the pod's change.
    Changed,
}

impl Changed {
    /// Compares with the file as it is; `None` is "there is no such file".
    #[must_use]
    pub fn status(&self, now: Option<&[u8]>) -> FileStatus {
        self.status_of(now.map(|bytes| Digest::of(bytes).to_string()).as_deref())
    }

    fn status_of(&self, digest: Option<&str>) -> FileStatus {
        let before = self.before.as_ref().map(|stored| stored.digest.to_string());
        if digest == before.as_deref() {
            return FileStatus::AsBefore;
        }
        // The newest intent may not have been relocated out before a crash: then the one before it holds.
        let newest = self.steps.iter().rev().take(2);
        if newest.into_iter().any(|step| step.as_deref() == digest) { FileStatus::AsLeft } else { FileStatus::Changed }
    }
}

#[cfg(test)]
mod tests;
