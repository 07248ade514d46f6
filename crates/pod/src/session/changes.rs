//! What a pod changed in files, from its journal: for `yoi diff`, and to take it back.

use super::record::{DirectoryMoved, FileChanged, Gap, Record, Stored, ToolStarted};
use session_store::Digest;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The changes of one file, from some point on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The file, absolute; where it was carried to when a directory above it was moved.
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
}

/// A directory that a session moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Where it stood, absolute.
    pub from: String,
    /// Where it was moved to, absolute.
    pub to: String,
    /// The directory that was made above that, if one was, the topmost.
    pub made: Option<String>,
}

/// Every change of a session, and the commands that may have changed more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    files: BTreeMap<String, Changed>,
    moves: Vec<Moved>,
    /// Commands that ran under `Bash`, which keeps no before-images; each with its seq.
    pub commands: Vec<(u64, String)>,
    /// Stretches of lost records, first and last seq: what they changed is not known.
    pub lost: Vec<(u64, u64)>,
}

impl Changes {
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
            self.file(change);
        }
        if let Record::DirectoryMoved(moved) = record {
            self.moving(moved);
        }
        if let Record::ToolStarted(ToolStarted { name, arguments, .. }) = record
            && name == "Bash"
        {
            self.commands.push((seq, arguments.to_string()));
        }
    }

    fn file(&mut self, change: &FileChanged) {
        let first = Changed {
            path: change.path.clone(),
            before: change.before.clone(),
            mode: change.mode,
            steps: Vec::new(),
            made: None,
            doubtful: !self.lost.is_empty(),
        };
        let changed = self.files.entry(change.path.clone()).or_insert(first);
        changed.steps.push(change.after.clone());
        changed.made = changed.made.take().or_else(|| change.made.clone());
    }

    fn moving(&mut self, DirectoryMoved { from, to, made, .. }: &DirectoryMoved) {
        self.carry(from, to);
        self.moves.push(Moved { from: from.clone(), to: to.clone(), made: made.clone() });
    }

    /// The newest move, of which only the intent is certain.
    #[must_use]
    pub fn last_move(&self) -> Option<&Moved> {
        self.moves.last()
    }

    /// The newest move did not happen.
    pub fn not_moved(&mut self) {
        if let Some(Moved { from, to, .. }) = self.moves.pop() {
            self.carry(&to, &from);
        }
    }

    /// The directories that were moved and not back, oldest move first.
    #[must_use]
    pub fn moved(&self) -> Vec<&Moved> {
        let mut stand: Vec<&Moved> = Vec::new();
        for moved in &self.moves {
            match stand.iter().rposition(|earlier| (&earlier.from, &earlier.to) == (&moved.to, &moved.from)) {
                Some(at) => drop(stand.remove(at)),
                None => stand.push(moved),
            }
        }
        stand
    }

    /// Every file in a directory goes with it.
    fn carry(&mut self, from: &str, to: &str) {
        let inside: Vec<String> = self.files.keys().filter(|path| carried(path, from, to).is_some()).cloned().collect();
        let taken: Vec<Changed> = inside.iter().filter_map(|path| self.files.remove(path)).collect();
        for mut changed in taken {
            let place = |path: &str| carried(path, from, to);
            changed.path = place(&changed.path).unwrap_or(changed.path);
            changed.made = changed.made.map(|made| place(&made).unwrap_or(made));
            match self.files.entry(changed.path.clone()) {
                // It had been there before.
                Entry::Occupied(mut earlier) => earlier.get_mut().steps.append(&mut changed.steps),
                Entry::Vacant(free) => drop(free.insert(changed)),
            }
        }
    }

    /// The changed files, by path.
    pub fn files(&self) -> impl Iterator<Item = &Changed> {
        self.files.values()
    }
}

/// Where a path is once the directory `from` is called `to`; nothing for a path that is not in it.
#[must_use]
pub fn carried(path: &str, from: &str, to: &str) -> Option<String> {
    let below = path.strip_prefix(from)?;
    (below.is_empty() || below.starts_with('/')).then(|| format!("{to}{below}"))
}

/// Where a file stands against what the journal says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As the pod left it: taking it back is exact.
    AsLeft,
    /// As it was before: there is nothing to take back.
    AsBefore,
    /// Changed since by somebody else.
    Changed,
}

impl Changed {
    /// Compares with the file as it is; `None` is "there is no such file".
    #[must_use]
    pub fn standing(&self, now: Option<&[u8]>) -> Standing {
        let digest = now.map(|bytes| Digest::of(bytes).to_string());
        let before = self.before.as_ref().map(|stored| stored.digest.to_string());
        if digest == before {
            return Standing::AsBefore;
        }
        // The newest intent may not have been carried out before a crash: then the one before it holds.
        let newest = self.steps.iter().rev().take(2);
        if newest.into_iter().any(|step| *step == digest) { Standing::AsLeft } else { Standing::Changed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(changes: &mut Changes, path: &str, after: &str) {
        let (path, after, made) = (path.to_owned(), Some(after.to_owned()), Some("/w/open".to_owned()));
        changes.take(1, 0, &FileChanged { call: None, path, before: None, mode: None, after, made }.into());
    }

    fn moved(changes: &mut Changes, from: &str, to: &str) {
        let (from, to) = (from.to_owned(), to.to_owned());
        changes.take(1, 0, &DirectoryMoved { call: None, from, to, made: None }.into());
    }

    fn files(changes: &Changes) -> Vec<(&str, usize)> {
        changes.files().map(|file| (file.path.as_str(), file.steps.len())).collect()
    }

    fn moves(changes: &Changes) -> Vec<(&str, &str)> {
        changes.moved().into_iter().map(|moved| (moved.from.as_str(), moved.to.as_str())).collect()
    }

    #[test]
    fn files_go_with_their_directory() {
        let mut changes = Changes::default();
        for path in ["/w/open/x/f", "/w/open/x/deep/g", "/w/open/xy/h"] {
            wrote(&mut changes, path, "1");
        }
        moved(&mut changes, "/w/open/x", "/w/pending/x");
        moved(&mut changes, "/w/pending/x", "/w/closed/x");
        wrote(&mut changes, "/w/closed/x/f", "2");
        assert_eq!(files(&changes), [("/w/closed/x/deep/g", 1), ("/w/closed/x/f", 2), ("/w/open/xy/h", 1)]);
        assert_eq!(moves(&changes), [("/w/open/x", "/w/pending/x"), ("/w/pending/x", "/w/closed/x")]);
        // The newest of them was only meant.
        assert_eq!(changes.last_move().map(|moved| moved.to.as_str()), Some("/w/closed/x"));
        changes.not_moved();
        assert_eq!(files(&changes)[1..], [("/w/pending/x/deep/g", 1), ("/w/pending/x/f", 2)]);
        // Back again, nothing is left of it; another time, it is a move like the first.
        moved(&mut changes, "/w/pending/x", "/w/open/x");
        assert_eq!((moves(&changes), files(&changes)[1]), (Vec::new(), ("/w/open/x/f", 2)));
        moved(&mut changes, "/w/open/x", "/w/closed/x");
        assert_eq!(moves(&changes), [("/w/open/x", "/w/closed/x")]);
    }

    // Somebody else moved it back in between, and both lives of a file are one.
    #[test]
    fn a_file_that_comes_to_a_place_it_had_been_to_is_one_file() {
        let mut changes = Changes::default();
        wrote(&mut changes, "/w/open/x/f", "1");
        moved(&mut changes, "/w/open/x", "/w/closed/x");
        wrote(&mut changes, "/w/open/x/f", "2");
        moved(&mut changes, "/w/open/x", "/w/closed/x");
        assert_eq!(files(&changes), [("/w/closed/x/f", 2)]);
        assert_eq!(changes.files().next().unwrap().standing(Some(b"")), Standing::Changed);
    }

    #[test]
    fn what_was_made_in_a_moved_directory_goes_with_it() {
        let place = |path: &str| carried(path, "/w/open/x", "/w/closed/x");
        assert_eq!(place("/w/open/x").as_deref(), Some("/w/closed/x"));
        assert_eq!(place("/w/open/x/a").as_deref(), Some("/w/closed/x/a"));
        assert_eq!((place("/w/open"), place("/w/open/xy"), place("/w")), (None, None, None));
        let mut changes = Changes::default();
        wrote(&mut changes, "/w/open/x/f", "1");
        moved(&mut changes, "/w/open", "/w/was");
        assert_eq!(changes.files().next().unwrap().made.as_deref(), Some("/w/was"));
    }
}
