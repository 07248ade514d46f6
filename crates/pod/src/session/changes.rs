//! The file changes of a pod, read from its journal: for `yoi diff` and `yoi undo`. The only tool it distinguishes is
//! the one that runs commands.

use super::stage_number;
use crate::record::{DirectoryMoved, FileChanged, Gap, Record, Stored, ToolStarted};
use llm_worker::CallId;
use session_store::Digest;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The changes of one file after some record; what `yoi undo` needs to restore it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The absolute path; the new one if a directory above it was moved.
    pub path: String,
    /// The bytes before the first change; none if the file did not exist.
    pub before: Option<Stored>,
    /// Permission bits before.
    pub mode: Option<u32>,
    /// Digests after each change, the newest last; `None` means "removed". Intents may not have been carried out: then
    /// the file is as the newest one found it.
    pub steps: Vec<Option<String>>,
    /// The topmost directory that was created for the file: removed with the file, if it is empty then.
    pub made: Option<String>,
    /// Whether lost records may have changed the file first: then `before` may be wrong.
    pub doubtful: bool,
    /// Whether something else changed the file between two changes; `before` does not include that.
    pub between: Between,
    /// The digest that the newest change found.
    found: Option<String>,
    /// The seq of the newest change.
    last: u64,
}

/// Changes of a file by others, between two changes of a session; a part of [`Changed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    #[default]
    Nothing,
    /// A change while commands of the session ran, perhaps by one of them.
    Command,
    /// A change by another program, before this record.
    Other(u64),
}

/// A directory that a session moved, once or several times; `yoi undo` moves it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The original absolute path.
    pub from: String,
    /// The final absolute path.
    pub to: String,
    /// Directories created for the moves: a path, and the topmost directory that was created above it.
    pub made: Vec<(String, String)>,
}

/// All file changes of a session, folded from its records, and the commands that may have changed more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    files: BTreeMap<String, Changed>,
    moved: Vec<Moved>,
    /// The newest move, and the earlier moves before it was added.
    newest: Option<(DirectoryMoved, Vec<Moved>)>,
    /// Directories that were created for moves that were cancelled, each below the path it was created for.
    made: Vec<(String, String)>,
    shell: &'static str,
    /// The seqs of executed commands, which record no before-images.
    pub commands: Vec<(u64, String)>,
    /// Ranges of lost records, first and last seq: their changes are unknown.
    pub lost: Vec<(u64, u64)>,
}

impl Changes {
    /// No changes; calls of the tool `shell` count as commands.
    #[must_use]
    pub fn beside(shell: &'static str) -> Self {
        Self {
            shell,
            ..Self::default()
        }
    }

    /// Adds one more record, oldest first. Ignores records up to `after`.
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
        if let Record::ToolStarted(ToolStarted {
            name, arguments, ..
        }) = record
            && name == self.shell
        {
            self.commands.push((seq, arguments.to_string()));
        }
    }

    fn file(&mut self, seq: u64, change: &FileChanged) {
        // A change below the original path means that the directory is there again, unless the path was created again.
        let stands = |moved: &Moved| {
            let anew = change
                .made
                .as_ref()
                .is_some_and(|made| relocated(&moved.from, made, "").is_some());
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
            found: None,
            last: seq,
        };
        let changed = self.files.entry(change.path.clone()).or_insert(first);
        changed.follow(&self.commands, change.before.as_ref(), seq);
        if changed.steps.last() == Some(&None) {
            // The file was removed: the directory created for it is unrelated to a new file.
            changed.made = None;
        }
        changed.found = change
            .before
            .as_ref()
            .map(|stored| stored.digest.to_string());
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
                self.moved.push(Moved {
                    from: from.clone(),
                    to: to.clone(),
                    made,
                });
            }
        }
        self.newest = Some((moving.clone(), before));
    }

    /// Checks on disk where the moved directories are. An intent may not have been carried out, or a person moved one
    /// back.
    pub fn settle(&mut self, there: impl Fn(&str) -> bool) {
        let stands = |from: &str, to: &str| there(from) && !there(to);
        if let Some((DirectoryMoved { from, to, made, .. }, before)) = self.newest.take()
            && stands(&from, &to)
        {
            self.relocate(&to, &from);
            self.moved = before;
            self.made.extend(made.map(|made| (to, made)));
        }
        while let Some(at) = self
            .moved
            .iter()
            .rposition(|moved| stands(&moved.from, &moved.to))
        {
            self.stood(at);
        }
    }

    /// This directory is at its original path.
    fn stood(&mut self, at: usize) {
        let Moved { from, to, made } = self.moved.remove(at);
        self.relocate(&to, &from);
        self.made.extend(made);
    }

    /// Moves the paths of all files in a directory.
    fn relocate(&mut self, from: &str, to: &str) {
        let inside: Vec<String> = self
            .files
            .keys()
            .filter(|path| relocated(path, from, to).is_some())
            .cloned()
            .collect();
        let taken: Vec<Changed> = inside
            .iter()
            .filter_map(|path| self.files.remove(path))
            .collect();
        for mut changed in taken {
            let place = |path: &str| relocated(path, from, to);
            changed.path = place(&changed.path).unwrap_or(changed.path);
            changed.made = changed.made.map(|made| place(&made).unwrap_or(made));
            match self.files.entry(changed.path.clone()) {
                // The file existed there before.
                Entry::Occupied(mut earlier) => earlier.get_mut().go_on(&self.commands, changed),
                Entry::Vacant(free) => drop(free.insert(changed)),
            }
        }
    }

    /// The changed files, by path.
    pub fn files(&self) -> impl Iterator<Item = &Changed> {
        self.files.values()
    }

    /// The directories that were moved and not moved back.
    pub fn moved(&self) -> &[Moved] {
        &self.moved
    }

    /// Directories that were created for cancelled moves: a path, and the topmost directory that was created above it.
    pub fn made(&self) -> &[(String, String)] {
        &self.made
    }
}

impl Changed {
    /// Whether a change with this `before` follows the known ones.
    fn follow(&mut self, commands: &[(u64, String)], before: Option<&Stored>, seq: u64) {
        // Where the file was removed in between, nothing of anybody else is lost.
        let Some(found) = before.map(|stored| stored.digest.to_string()) else {
            return;
        };
        if self.steps.is_empty() || self.status_of(Some(&found)) != FileStatus::Changed {
            return;
        }
        let ran = commands
            .iter()
            .any(|(command, _)| (self.last..seq).contains(command));
        self.between = match self.between {
            Between::Nothing | Between::Command if ran => Between::Command,
            Between::Nothing | Between::Command => Between::Other(seq),
            Between::Other(first) => Between::Other(first),
        };
    }

    /// Adds the changes of the same file after a move.
    fn go_on(&mut self, commands: &[(u64, String)], mut later: Changed) {
        self.follow(commands, later.before.as_ref(), later.last);
        if let (
            Between::Nothing | Between::Command,
            between @ (Between::Command | Between::Other(_)),
        ) = (self.between, later.between)
        {
            self.between = between;
        }
        self.steps.append(&mut later.steps);
        self.found = later.found;
        self.last = later.last;
    }
}

/// The new path of a file after `from` is moved to `to`; none for a path outside `from`.
#[must_use]
pub fn relocated(path: &str, from: &str, to: &str) -> Option<String> {
    let below = path.strip_prefix(from)?;
    (below.is_empty() || below.starts_with('/')).then(|| format!("{to}{below}"))
}

/// The number of the staged content of a file change. No other change has it, except changes of the same file in the
/// same call; those of `yoi undo`, which has no call, happen one after another.
#[must_use]
pub fn staged(session: &str, call: Option<CallId>, path: &str) -> u64 {
    let call = call.map_or_else(|| "undo".to_owned(), |call| call.to_string());
    stage_number(&[session.as_bytes(), call.as_bytes(), path.as_bytes()])
}

/// How a file compares with the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// As after the pod's change: undo is exact.
    AsLeft,
    /// As before the change: nothing to undo.
    AsBefore,
    /// Modified after the pod's change.
    Changed,
}

impl Changed {
    /// Compares with the current file; `None` means that there is no such file.
    #[must_use]
    pub fn status(&self, now: Option<&[u8]>) -> FileStatus {
        self.status_of(now.map(|bytes| Digest::of(bytes).to_string()).as_deref())
    }

    fn status_of(&self, digest: Option<&str>) -> FileStatus {
        let before = self.before.as_ref().map(|stored| stored.digest.to_string());
        if digest == before.as_deref() {
            return FileStatus::AsBefore;
        }
        // The newest intent may have failed, or a crash came before it: then the file is as it was found.
        let left = self
            .steps
            .last()
            .is_some_and(|step| step.as_deref() == digest)
            || self.found.as_deref() == digest;
        if left {
            FileStatus::AsLeft
        } else {
            FileStatus::Changed
        }
    }
}

#[cfg(test)]
mod tests;
