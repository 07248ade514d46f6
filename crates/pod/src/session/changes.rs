//! What a pod changed in files, from its journal: for `yoi diff`, and to take it back.
//! It knows no tool but the one of commands.

use super::stage_number;
use crate::record::{DirectoryMoved, FileChanged, Gap, Record, Stored, ToolStarted};
use llm_worker::CallId;
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
            let anew = change.made.as_ref().is_some_and(|made| carried(&moved.from, made, "").is_some());
            carried(&change.path, &moved.from, "").is_some() && !anew
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
        self.carry(from, to);
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

    /// Looks where the moved directories stand. An intent may not have been carried out, or somebody else moved one back.
    pub fn settle(&mut self, there: impl Fn(&str) -> bool) {
        let stands = |from: &str, to: &str| there(from) && !there(to);
        if let Some((DirectoryMoved { from, to, made, .. }, before)) = self.newest.take()
            && stands(&from, &to)
        {
            self.carry(&to, &from);
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
        self.carry(&to, &from);
        self.made.extend(made);
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
        if self.steps.is_empty() || self.standing_of(found.as_deref()) != Standing::Changed {
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
pub fn carried(path: &str, from: &str, to: &str) -> Option<String> {
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
        self.standing_of(now.map(|bytes| Digest::of(bytes).to_string()).as_deref())
    }

    fn standing_of(&self, digest: Option<&str>) -> Standing {
        let before = self.before.as_ref().map(|stored| stored.digest.to_string());
        if digest == before.as_deref() {
            return Standing::AsBefore;
        }
        // The newest intent may not have been carried out before a crash: then the one before it holds.
        let newest = self.steps.iter().rev().take(2);
        if newest.into_iter().any(|step| step.as_deref() == digest) { Standing::AsLeft } else { Standing::Changed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change from one content to another; nothing stands for no file.
    fn wrote(changes: &mut Changes, seq: u64, path: &str, before: &str, after: &str) {
        let digest = |text: &str| (!text.is_empty()).then(|| Digest::of(text.as_bytes()));
        let before = digest(before).map(|digest| Stored { digest, bytes: 1, gap: None, whole: None });
        let (path, after) = (path.to_owned(), digest(after).map(|digest| digest.to_string()));
        changes.take(seq, 0, &FileChanged { call: None, path, before, mode: None, after, made: None }.into());
    }

    fn moved(changes: &mut Changes, from: &str, to: &str, made: Option<&str>) {
        let (from, to, made) = (from.to_owned(), to.to_owned(), made.map(str::to_owned));
        changes.take(1, 0, &DirectoryMoved { call: None, from, to, made }.into());
    }

    fn files(changes: &Changes) -> Vec<(&str, usize)> {
        changes.files().map(|file| (file.path.as_str(), file.steps.len())).collect()
    }

    fn moves(changes: &Changes) -> Vec<(&str, &str)> {
        changes.moved().iter().map(|moved| (moved.from.as_str(), moved.to.as_str())).collect()
    }

    #[test]
    fn files_go_with_their_directory() {
        let mut changes = Changes::beside("Bash");
        for path in ["/w/open/x/f", "/w/open/x/deep/g", "/w/open/xy/h"] {
            wrote(&mut changes, 1, path, "", "1");
        }
        moved(&mut changes, "/w/open/x", "/w/pending/x", Some("/w/pending"));
        moved(&mut changes, "/w/pending/x", "/w/closed/x", None);
        wrote(&mut changes, 2, "/w/closed/x/f", "1", "2");
        assert_eq!(files(&changes), [("/w/closed/x/deep/g", 1), ("/w/closed/x/f", 2), ("/w/open/xy/h", 1)]);
        assert_eq!(moves(&changes), [("/w/open/x", "/w/closed/x")]);
        assert_eq!(changes.moved()[0].made, [("/w/pending/x".to_owned(), "/w/pending".to_owned())]);
        // Back again, nothing is left of it but what was made; another time, it is a move like the first.
        moved(&mut changes, "/w/closed/x", "/w/open/x", None);
        assert_eq!((moves(&changes), files(&changes)[1], changes.made().len()), (Vec::new(), ("/w/open/x/f", 2), 1));
        moved(&mut changes, "/w/open/x", "/w/closed/x", None);
        assert_eq!(moves(&changes), [("/w/open/x", "/w/closed/x")]);
    }

    // Each case: what stands on the disk, and where files and moves are then.
    #[test]
    fn a_move_that_did_not_happen_is_none() {
        type Case<'a> = (&'a [&'a str], &'a str, &'a [(&'a str, &'a str)]);
        let cases: [Case<'_>; 4] = [
            (&["/w/closed/x"], "/w/closed/x/f", &[("/w/open/x", "/w/closed/x"), ("/w/open/y", "/w/pending/y")]),
            // The newest of x, and the one before.
            (&["/w/pending/x"], "/w/closed/x/f", &[("/w/open/x", "/w/closed/x"), ("/w/open/y", "/w/pending/y")]),
            (&["/w/open/x"], "/w/open/x/f", &[("/w/open/y", "/w/pending/y")]),
            (&["/w/closed/x", "/w/open/y"], "/w/closed/x/f", &[("/w/open/x", "/w/closed/x")]),
        ];
        for (disk, file, stand) in cases {
            let mut changes = Changes::beside("Bash");
            wrote(&mut changes, 1, "/w/open/x/f", "", "1");
            moved(&mut changes, "/w/open/x", "/w/pending/x", None);
            moved(&mut changes, "/w/pending/x", "/w/closed/x", None);
            moved(&mut changes, "/w/open/y", "/w/pending/y", Some("/w/pending"));
            changes.settle(|path| disk.contains(&path));
            assert_eq!((files(&changes)[0].0, &moves(&changes)[..]), (file, stand), "{disk:?}");
        }
        // What goes on from where it stood says so, too.
        for other in [false, true] {
            let mut changes = Changes::beside("Bash");
            wrote(&mut changes, 1, "/w/open/x/f", "", "1");
            moved(&mut changes, "/w/open/x", "/w/pending/x", Some("/w/pending"));
            match other {
                true => moved(&mut changes, "/w/open/x", "/w/closed/x", None),
                false => wrote(&mut changes, 2, "/w/open/x/f", "1", "2"),
            }
            let (file, steps) = if other { ("/w/closed/x/f", 1) } else { ("/w/open/x/f", 2) };
            assert_eq!(files(&changes), [(file, steps)]);
            assert_eq!((moves(&changes).len(), changes.made().len()), (usize::from(other), 1));
            assert_eq!(changes.files().next().unwrap().between, Between::Nothing);
        }
    }

    // A move that takes an earlier one back may itself be only meant.
    #[test]
    fn a_move_back_that_did_not_happen_leaves_the_first() {
        let mut changes = Changes::beside("Bash");
        wrote(&mut changes, 1, "/w/a/f", "", "1");
        moved(&mut changes, "/w/a", "/w/b", None);
        moved(&mut changes, "/w/b", "/w/a", None);
        assert_eq!(moves(&changes), []);
        changes.settle(|path| path == "/w/b");
        assert_eq!((moves(&changes), files(&changes)), (vec![("/w/a", "/w/b")], vec![("/w/b/f", 1)]));
    }

    #[test]
    fn what_something_else_changed_in_between_is_known() {
        let command = |changes: &mut Changes, seq: u64| changes.commands.push((seq, String::new()));
        type Case<'a> = (&'a [(u64, &'a str, &'a str)], Option<u64>, Between);
        let cases: [Case<'_>; 7] = [
            (&[(1, "", "1"), (5, "1", "2")], None, Between::Nothing),
            (&[(1, "", "1"), (5, "mine", "2")], None, Between::Other(5)),
            (&[(1, "", "1"), (5, "mine", "2")], Some(3), Between::Command),
            (&[(1, "", "1"), (5, "mine", "2")], Some(6), Between::Other(5)),
            (&[(1, "", "1"), (5, "mine", "2"), (7, "other", "3")], Some(3), Between::Other(7)),
            // An intent that was not carried out: the file is as before it.
            (&[(1, "", "1"), (5, "1", "2"), (7, "1", "3")], None, Between::Nothing),
            (&[(1, "0", "1"), (5, "0", "2")], None, Between::Nothing),
        ];
        for (steps, ran, between) in cases {
            let mut changes = Changes::beside("Bash");
            for (seq, before, after) in steps {
                ran.filter(|ran| ran < seq && changes.commands.is_empty()).inspect(|ran| command(&mut changes, *ran));
                wrote(&mut changes, *seq, "/w/f", before, after);
            }
            assert_eq!(changes.files().next().unwrap().between, between, "{steps:?} {ran:?}");
        }
    }

    // Somebody else moved it back in between, and both lives of a file are one.
    #[test]
    fn a_file_that_comes_to_a_place_it_had_been_to_is_one_file() {
        for (before, between) in [("1", Between::Nothing), ("mine", Between::Other(3))] {
            let mut changes = Changes::beside("Bash");
            wrote(&mut changes, 1, "/w/b/f", "", "1");
            wrote(&mut changes, 3, "/w/a/f", before, "2");
            moved(&mut changes, "/w/a", "/w/b", None);
            assert_eq!(files(&changes), [("/w/b/f", 2)]);
            assert_eq!(changes.files().next().unwrap().between, between);
        }
    }

    #[test]
    fn what_was_made_goes_with_what_it_was_made_for() {
        let place = |path: &str| carried(path, "/w/open/x", "/w/closed/x");
        assert_eq!(place("/w/open/x").as_deref(), Some("/w/closed/x"));
        assert_eq!(place("/w/open/x/a").as_deref(), Some("/w/closed/x/a"));
        assert_eq!((place("/w/open"), place("/w/open/xy"), place("/w")), (None, None, None));
        let made = |changes: &Changes| changes.files().next().unwrap().made.clone();
        let file = |before, after: Option<&str>, made: Option<&str>| {
            let (after, made) = (after.map(str::to_owned), made.map(str::to_owned));
            FileChanged { call: None, path: "/w/open/f".to_owned(), before, mode: None, after, made }
        };
        let mut changes = Changes::beside("Bash");
        changes.take(1, 0, &file(None, Some("1"), Some("/w/open")).into());
        moved(&mut changes, "/w/open", "/w/was", None);
        assert_eq!(made(&changes).as_deref(), Some("/w/was"));
        // A file that was gone and comes again comes into what is there.
        let mut changes = Changes::beside("Bash");
        for (after, made) in [(Some("1"), Some("/w/open")), (None, None), (Some("2"), None)] {
            changes.take(1, 0, &file(None, after, made).into());
        }
        assert_eq!(made(&changes), None);
    }
}
