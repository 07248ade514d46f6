//! Taking back what a pod changed in files, one file at a time, and only where nobody else changed it; a file that
//! somebody removed is restored. What is in a directory that was moved is taken back where it stands; then the directory is
//! moved back. It says nothing to people.

mod current;
mod tally;

pub use self::current::{CurrentFile, before, locate_moved, look};
use self::current::{itself, there};
use self::tally::{SkipReason, Tally};
pub use self::tally::{UndoAction, UndoEvent};
use crate::record::{DirectoryMoved, FileChanged, Record, Stored};
use crate::session::changes::{Between, Changed, Changes, FileStatus, Moved, relocated, staged};
use authority::{FileKind, Located, Workspace, escape};
use session_store::{BlobView, Blobs, Digest};
use std::path::Path;

/// What an undo works with.
pub struct FileUndo<'a> {
    /// All files there are, so that a link on the way is seen instead of followed.
    pub files: Workspace,
    /// The session that changed them.
    pub session: String,
    /// What the files contained before.
    pub view: BlobView,
    /// Without it, nothing is done.
    pub writes: Option<UndoWrites<'a>>,
    /// Called at named points, for tests.
    pub reached: &'a dyn Fn(&str),
}

/// Where an undo records what it is about to do, and keeps what it replaces.
pub struct UndoWrites<'a> {
    /// Keeps what stands in the files now.
    pub blobs: Blobs,
    /// Appends a record; returns once it is durable, or says why it is not.
    pub append: Box<dyn Fn(Record) -> Result<(), String> + 'a>,
}

/// What an undo did, or would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoTotals {
    /// Files and directories that were taken back.
    pub paths: usize,
    /// Those that were left alone, each of which was told.
    pub skipped: usize,
}

/// A file that stands changed, and what it contained; nothing where it was not there.
type Both = (CurrentFile, Option<Vec<u8>>);

impl FileUndo<'_> {
    /// Takes back every change, and tells what it does about each path.
    ///
    /// # Errors
    /// The journal refused a record, in its words: nothing more was done.
    pub fn run(
        &self,
        changes: &mut Changes,
        tell: &dyn Fn(UndoEvent<'_>),
    ) -> Result<UndoTotals, String> {
        let mut tally = self.each(changes, tell)?;
        if self.writes.is_some() {
            // Those below first.
            tally.gone.sort_by(|(_, one), (_, other)| other.cmp(one));
            for (path, made) in &tally.gone {
                self.remove_empty(Path::new(path), Path::new(made));
            }
        }
        Ok(UndoTotals {
            paths: tally.undone,
            skipped: tally.left.len(),
        })
    }

    /// Takes back each file and each moved directory.
    fn each<'s>(
        &self,
        changes: &mut Changes,
        tell: &'s dyn Fn(UndoEvent<'_>),
    ) -> Result<Tally<'s>, String> {
        locate_moved(changes, &self.files);
        let mut tally = Tally::new(tell);
        let mut whole = Vec::new();
        for moved in changes.moved() {
            match self.whole(moved, changes) {
                Ok(()) => whole.push(moved),
                Err(why) => drop(tally.note(&moved.to, Err(why))?),
            }
        }
        for changed in changes.files() {
            if tally.holds(&changed.path) {
                continue;
            }
            let done = tally.note(&changed.path, self.file(changed))?;
            if changed.between == Between::Command && done.is_some() {
                tell(UndoEvent::OfCommandsToo);
            }
            if let (Some(UndoAction::Removed), Some(made)) = (done, &changed.made) {
                tally.gone.push((changed.path.clone(), made.clone()));
            }
        }
        for moved in whole {
            if tally.note(&moved.from, self.directory(moved, &tally.left))?
                == Some(UndoAction::MovedBack)
            {
                tally.moved_back(&moved.to, &moved.from);
                tally.gone.extend_from_slice(&moved.made);
            }
        }
        tally.gone.extend_from_slice(changes.made());
        Ok(tally)
    }

    /// The file as it is and as it was, nothing where that is the same, or why it is left alone.
    fn both(&self, changed: &Changed) -> Result<Option<Both>, SkipReason> {
        let path = &changed.path;
        let now = look(&self.files, path).map_err(SkipReason::File)?;
        match changed.status(now.bytes.as_deref()) {
            FileStatus::AsBefore => return Ok(None),
            // Nothing of anybody else is lost where there is no file.
            FileStatus::Changed if now.bytes.is_none() => {}
            FileStatus::Changed => {
                return Err(SkipReason::File(format!("{path} {}", now.since())));
            }
            FileStatus::AsLeft => {}
        }
        if changed.doubtful {
            let why =
                "records before its first known change are lost, so its earlier content is unknown";
            return Err(SkipReason::File(format!("{path}: {why}")));
        }
        if let Between::Other(seq) = changed.between {
            return Err(SkipReason::Between {
                path: path.clone(),
                after: seq.saturating_sub(1),
                within: None,
            });
        }
        Ok(Some((
            now,
            before(changed, &self.view).map_err(SkipReason::File)?,
        )))
    }

    /// The record first, then the file: after a crash in between, the file simply still stands as the pod left it.
    fn file(&self, changed: &Changed) -> Result<Option<UndoAction>, SkipReason> {
        let Some((now, was)) = self.both(changed)? else {
            return Ok(None);
        };
        let Some(writes) = &self.writes else {
            return Ok(Some(match was.is_some() {
                true => UndoAction::Restored,
                false => UndoAction::Removed,
            }));
        };
        let kept = now
            .bytes
            .as_ref()
            .map(|bytes| writes.blobs.put(bytes).map(Stored::from))
            .transpose();
        let record = FileChanged {
            call: None,
            path: changed.path.clone(),
            before: kept.map_err(|e| SkipReason::Journal(e.to_string()))?,
            mode: now.mode,
            after: was.as_deref().map(|bytes| Digest::of(bytes).to_string()),
            made: None,
        };
        let refused = |error: authority::Error| SkipReason::File(error.to_string());
        self.unchanged(&now, changed, "undo.found")?;
        self.record(record.into())?;
        let number = staged(&self.session, None, &changed.path);
        let staged = was
            .as_deref()
            .map(|bytes| self.files.stage(&now.at, number, bytes))
            .transpose()
            .map_err(refused)?;
        let staged = match (staged, changed.mode.filter(|_| now.bytes.is_none())) {
            // It was not there to keep its own.
            (Some(staged), Some(mode)) => Some(staged.with_mode(mode).map_err(refused)?),
            (staged, _) => staged,
        };
        self.unchanged(&now, changed, "undo.staged")?;
        match staged {
            Some(staged) => staged
                .publish()
                .map(|_| Some(UndoAction::Restored))
                .map_err(refused),
            None => self
                .files
                .remove(&now.at)
                .map(|()| Some(UndoAction::Removed))
                .map_err(refused),
        }
    }

    /// Whether a moved directory can be taken back with all that was changed in it. What it holds belongs together: else
    /// nothing of it is touched.
    fn whole(&self, moved: &Moved, changes: &Changes) -> Result<(), SkipReason> {
        let from = self.place(&moved.from)?;
        let to = self.place(&moved.to)?;
        let mut inside = changes
            .files()
            .filter(|changed| relocated(&changed.path, &moved.to, "").is_some())
            .peekable();
        let why = match (there(&self.files, &from), self.stands(&to)) {
            (true, true) => "its original location is in use again",
            (false, true) => {
                let left = |why| match why {
                    SkipReason::File(why) => SkipReason::File(format!(
                        "{}: was not moved back: {why}",
                        escape(to.path())
                    )),
                    SkipReason::Between { path, after, .. } => SkipReason::Between {
                        path,
                        after,
                        within: Some(escape(to.path())),
                    },
                    other @ SkipReason::Journal(_) => other,
                };
                return inside
                    .try_for_each(|changed| self.both(changed).map(drop))
                    .map_err(left);
            }
            // Made and gone again, or never moved.
            (true, false) => return Ok(()),
            (false, false)
                if inside.peek().is_some()
                    && inside.all(|changed| matches!(self.both(changed), Ok(None))) =>
            {
                return Ok(());
            }
            (false, false) => "is no longer where it was moved to",
        };
        Err(SkipReason::File(format!("{}: {why}", escape(to.path()))))
    }

    fn stands(&self, at: &Located) -> bool {
        self.files
            .metadata(at)
            .is_ok_and(|meta| meta.kind == FileKind::Dir)
    }

    /// Moves a directory back, with all it holds by now.
    fn directory(&self, moved: &Moved, left: &[String]) -> Result<Option<UndoAction>, SkipReason> {
        let refused = |error: authority::Error| SkipReason::File(error.to_string());
        let from = self.place(&moved.from)?;
        let to = self.place(&moved.to)?;
        if !self.stands(&to) {
            return Ok(None);
        }
        if left
            .iter()
            .any(|path| relocated(path, &moved.to, "").is_some())
        {
            let why = "was not moved back: a file in it was skipped";
            return Err(SkipReason::File(format!("{}: {why}", escape(to.path()))));
        }
        if self.writes.is_none() {
            return Ok(Some(UndoAction::MovedBack));
        }
        self.moving(&moved.to, &moved.from)?;
        let renamed = self.files.rename(&to, &from);
        if renamed.is_err() && there(&self.files, &to) {
            self.moving(&moved.from, &moved.to)?;
        }
        renamed
            .map(|()| Some(UndoAction::MovedBack))
            .map_err(refused)
    }

    fn moving(&self, from: &str, to: &str) -> Result<(), SkipReason> {
        let moved = DirectoryMoved {
            call: None,
            from: from.to_owned(),
            to: to.to_owned(),
            made: None,
        };
        self.record(moved.into())
    }

    fn record(&self, record: Record) -> Result<(), SkipReason> {
        self.writes
            .iter()
            .try_for_each(|writes| (writes.append)(record.clone()))
            .map_err(SkipReason::Journal)
    }

    /// The place itself, not what a link leads to.
    fn place(&self, path: &str) -> Result<Located, SkipReason> {
        itself(&self.files, path).map_err(SkipReason::File)
    }

    /// Removes the directories above what is gone, up to the one that was made for it, as long as nothing is in them.
    fn remove_empty(&self, path: &Path, made: &Path) {
        for dir in path
            .ancestors()
            .skip(1)
            .take_while(|dir| dir.starts_with(made))
        {
            let at = dir.to_str().and_then(|dir| self.place(dir).ok());
            if at.is_none_or(|at| self.files.remove_dir(&at).is_err()) {
                return;
            }
        }
    }

    /// Somebody may be working on the file at this moment; what they write is not lost.
    fn unchanged(
        &self,
        was: &CurrentFile,
        changed: &Changed,
        point: &str,
    ) -> Result<(), SkipReason> {
        (self.reached)(point);
        let now = look(&self.files, &changed.path).map_err(SkipReason::File)?;
        if now.bytes == was.bytes {
            return Ok(());
        }
        Err(SkipReason::File(format!(
            "{} was modified while this command ran",
            changed.path
        )))
    }
}

#[cfg(test)]
mod tests;
