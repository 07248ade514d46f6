//! What a pod changed in files, from its journal: for `yoi diff`, and to take it back.

use super::record::{FileChanged, Gap, Record, Stored, ToolStarted};
use session_store::Digest;
use std::collections::BTreeMap;

/// The changes of one file, from some point on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The file, absolute.
    pub path: String,
    /// The bytes before the first of them; none when the file did not exist.
    pub before: Option<Stored>,
    /// Permission bits before.
    pub mode: Option<u32>,
    /// Digests it had on the way, the newest last; `None` stands for "removed". A change whose intent was
    /// journaled may not have happened: then the file still has the digest before it.
    pub steps: Vec<Option<String>>,
    /// The directory that was made for it, if one was: gone again when the file is, if nothing else is in it.
    pub made: Option<String>,
    /// Records before the first of them are lost, which may have changed it first: `before` need not be what was there.
    pub doubtful: bool,
}

/// Every change of a session, and the commands that may have changed more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    files: BTreeMap<String, Changed>,
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

    /// The changed files, by path.
    pub fn files(&self) -> impl Iterator<Item = &Changed> {
        self.files.values()
    }
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
