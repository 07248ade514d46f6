//! `yoi undo`: taking back what a pod changed in files, one file at a time, and only where nobody else changed it; a file
//! that somebody removed is restored. What is in a directory that was moved is taken back where it stands; then the directory is moved back.

mod tally;

use self::tally::{SkipReason, Tally, UndoAction};
use crate::cli::UndoArgs;
use crate::commands::changes::{
    CurrentFile, before, itself, locate_moved, look, read, there, warn,
};
use crate::commands::live::reach;
use crate::commands::person::{meant, terminal};
use crate::show::out;
use crate::socket::{block_on, of_wire};
use authority::{FileKind, Located, Workspace, escape};
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::leftovers::{clear, everything, session};
use host::hosting::session_location::{now, open_failure};
use host::pods::{Pods, empty};
use host::points::Points;
use pod::control::{Batch, BetweenTurns};
use pod::record::{DirectoryMoved, FileChanged, Record, Stored};
use pod::session::changes::{Between, Changed, Changes, FileStatus, Moved, relocated, staged};
use session_store::{BlobView, Blobs, Clock, Digest, Journal, Opened, Options, Session};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Builder, Handle, Runtime};

/// Puts files back as they were before the pod, or before what came after `--to`. In a live pod its process does that.
pub(crate) fn run(args: &UndoArgs, env: &Env, points: &Points) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let (name, to) = (
        meant(&pods, args.name.as_deref(), env)?,
        args.to.unwrap_or(0),
    );
    if !args.yes && !is_wanted(args, env, &pods, &name, to)? {
        out::wrapped("nothing was undone");
        return Ok(Exit::Failed);
    }
    let live = block_on(async {
        match reach(&pods, &name, "yoi undo").await? {
            Some(mut live) => live.undo(to).await.map(Some),
            None => Ok(None),
        }
    })??;
    if let Some(undone) = live {
        undone.lines.iter().for_each(|line| out::wrapped(line));
        return undone
            .failure
            .map_or(Ok(Exit::Done), |failure| Err(of_wire(failure)));
    }
    let clock: Clock = Arc::new(now);
    // What can be taken back does not depend on a configuration that reads.
    let any_file_system = Config::load(env).is_ok_and(|config| config.any_file_system.value);
    let dir = pods.dir(&name);
    let options = Options {
        any_file_system,
        ..Options::new(name.clone(), clock)
    };
    let opened = Session::open(&dir, options).map_err(|e| open_failure(&e, now(), Some(&name)))?;
    let (changes, view) = read(&dir, &name, to)?;
    let undo = Undo::new(opened, view, points)?;
    clear(&dir, &undo.files);
    let done = undo.all(&name, changes, &out::wrapped);
    if let Some(Writes {
        log: UndoLog::Own(journal, _),
        ..
    }) = &undo.writes
    {
        journal.close();
    }
    done.map(|()| Exit::Done)
}

/// Whether a person at a terminal agrees, who is shown what would be done. Where there is none, the pod has to be named.
fn is_wanted(
    args: &UndoArgs,
    env: &Env,
    pods: &Pods,
    name: &str,
    to: u64,
) -> Result<bool, Failure> {
    let Some(mut terminal) = terminal(env) else {
        if args.name.is_some() {
            return Ok(true);
        }
        let refused = Failure::new(
            Exit::Usage,
            "`yoi undo` without NAME asks first, and there is no terminal to ask at",
        );
        return Err(refused.help(format!(
            "`yoi undo -y` undoes the changes of {name} without asking"
        )));
    };
    let dir = pods.dir(name);
    let (mut changes, view) = read(&dir, name, to)?;
    let session = session(&dir).ok_or_else(|| empty(name, Exit::Usage))?;
    let (files, points, lines) = (
        everything(&ambient::claim())?,
        Points::none(),
        RefCell::new(Vec::new()),
    );
    let preview = Undo {
        files,
        session,
        view,
        writes: None,
        points: &points,
    };
    let say = |line: &str| lines.borrow_mut().push(line.to_owned());
    if preview.each(&mut changes, &say)?.undone == 0 {
        return Ok(true);
    }
    lines.borrow().iter().for_each(|line| out::wrapped(line));
    let question = format!("undo these changes of {name}? y or n: ");
    Ok(terminal
        .agrees(&question, &mut || true, &mut out::raw)
        .unwrap_or_else(|_left| {
            out::raw("\n");
            false
        }))
}

/// The same in a pod of this process, between two turns. Runs on a thread that may block.
pub(crate) fn in_live_pod(
    dir: &Path,
    name: &str,
    to: u64,
    turns: BetweenTurns,
    runtime: &Handle,
) -> (Vec<String>, Result<(), Failure>) {
    let lines = RefCell::new(Vec::new());
    let done = (|| {
        let (changes, view) = read(dir, name, to)?;
        let session = session(dir).ok_or_else(|| empty(name, Exit::Usage))?;
        let (files, blobs, points) = (
            everything(&ambient::claim())?,
            turns.blobs().clone(),
            Points::none(),
        );
        let writes = Some(Writes {
            log: UndoLog::Live(turns, runtime.clone()),
            blobs,
        });
        let undo = Undo {
            files,
            session,
            view,
            writes,
            points: &points,
        };
        undo.all(name, changes, &|line| {
            lines.borrow_mut().push(line.to_owned())
        })
    })();
    (lines.into_inner(), done)
}

/// A file that stands changed, and what it contained; nothing where it was not there.
type Both = (CurrentFile, Option<Vec<u8>>);

struct Undo<'a> {
    files: Workspace,
    session: String,
    view: BlobView,
    /// Without it, nothing is done.
    writes: Option<Writes>,
    points: &'a Points,
}

/// Where an undo records what it is about to do, and keeps what it replaces.
struct Writes {
    log: UndoLog,
    blobs: Blobs,
}

enum UndoLog {
    /// In the journal, which this process holds.
    Own(Journal, Runtime),
    /// Through the actor of a pod of this process.
    Live(BetweenTurns, Handle),
}

impl UndoLog {
    fn append(&self, record: Record) -> Result<(), String> {
        match self {
            Self::Own(journal, runtime) => {
                let committed = runtime.block_on(journal.append(Batch::of(vec![record])));
                committed
                    .map(drop)
                    .map_err(|refused| refused.why.to_string())
            }
            Self::Live(turns, runtime) => runtime
                .block_on(turns.append(vec![record]))
                .map_err(|error| error.to_string()),
        }
    }
}

impl<'a> Undo<'a> {
    fn new(opened: Opened, view: BlobView, points: &'a Points) -> Result<Self, Failure> {
        let Opened {
            journal,
            blobs,
            recovered,
        } = opened;
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.map_err(|e| {
            Failure::new(
                Exit::Unavailable,
                format!(
                    "the asynchronous runtime cannot start: {}",
                    authority::explain(&e)
                ),
            )
        })?;
        let (files, session) = (everything(&ambient::claim())?, recovered.session);
        let writes = Some(Writes {
            log: UndoLog::Own(journal, runtime),
            blobs,
        });
        Ok(Self {
            files,
            session,
            view,
            writes,
            points,
        })
    }

    /// Takes back every change, and says what it does about each path.
    fn all(&self, name: &str, mut changes: Changes, say: &dyn Fn(&str)) -> Result<(), Failure> {
        let mut tally = self.each(&mut changes, say)?;
        // Those below first.
        tally.gone.sort_by(|(_, one), (_, other)| other.cmp(one));
        tally
            .gone
            .iter()
            .for_each(|(path, made)| self.emptied(Path::new(path), Path::new(made)));
        let refused = tally.left.len();
        if refused == 0 && tally.undone == 0 {
            say(&format!("{name}: nothing to undo"));
        }
        warn(&changes, say);
        if refused > 0 {
            let skipped = match refused {
                1 => "1 path was skipped; the reason is above".to_owned(),
                more => format!("{more} paths were skipped; the reasons are above"),
            };
            return Err(Failure::new(Exit::Failed, skipped).help(format!(
                "`yoi diff {name}` shows the remaining changes; undo them by hand"
            )));
        }
        Ok(())
    }

    /// Takes back each file and each moved directory.
    fn each<'s>(&self, changes: &mut Changes, say: &'s dyn Fn(&str)) -> Result<Tally<'s>, Failure> {
        locate_moved(changes, &self.files);
        let mut tally = Tally::new(say, self.writes.is_none());
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
            if changed.between == Between::Command && done != UndoAction::Nothing {
                say("  this also undoes what commands changed in it");
            }
            if let (UndoAction::Removed, Some(made)) = (done, &changed.made) {
                tally.gone.push((changed.path.clone(), made.clone()));
            }
        }
        for moved in whole {
            if tally.note(&moved.from, self.directory(moved, &tally.left))? == UndoAction::MovedBack
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
            let after = seq.saturating_sub(1);
            let why = format!(
                "{path} was modified by something else between this pod's changes; `--to {after}` undoes only the later changes"
            );
            return Err(SkipReason::File(why));
        }
        Ok(Some((
            now,
            before(changed, &self.view).map_err(SkipReason::File)?,
        )))
    }

    /// The record first, then the file: after a crash in between, the file simply still stands as the pod left it.
    fn file(&self, changed: &Changed) -> Result<UndoAction, SkipReason> {
        let Some((now, was)) = self.both(changed)? else {
            return Ok(UndoAction::Nothing);
        };
        let Some(writes) = &self.writes else {
            return Ok(if was.is_some() {
                UndoAction::Restored
            } else {
                UndoAction::Removed
            });
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
                .map(|_| UndoAction::Restored)
                .map_err(refused),
            None => self
                .files
                .remove(&now.at)
                .map(|()| UndoAction::Removed)
                .map_err(refused),
        }
    }

    /// Whether a moved directory can be taken back with all that was changed in it. What it holds belongs together: else
    /// nothing of it is touched.
    fn whole(&self, moved: &Moved, changes: &Changes) -> Result<(), SkipReason> {
        let (from, to) = (self.place(&moved.from)?, self.place(&moved.to)?);
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
                    SkipReason::Journal(why) => SkipReason::Journal(why),
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
    fn directory(&self, moved: &Moved, left: &[String]) -> Result<UndoAction, SkipReason> {
        let refused = |error: authority::Error| SkipReason::File(error.to_string());
        let (from, to) = (self.place(&moved.from)?, self.place(&moved.to)?);
        if !self.stands(&to) {
            return Ok(UndoAction::Nothing);
        }
        if left
            .iter()
            .any(|path| relocated(path, &moved.to, "").is_some())
        {
            let why = "was not moved back: a file in it was skipped";
            return Err(SkipReason::File(format!("{}: {why}", escape(to.path()))));
        }
        if self.writes.is_none() {
            return Ok(UndoAction::MovedBack);
        }
        self.moving(&moved.to, &moved.from)?;
        let renamed = self.files.rename(&to, &from);
        if renamed.is_err() && there(&self.files, &to) {
            self.moving(&moved.from, &moved.to)?;
        }
        renamed.map(|()| UndoAction::MovedBack).map_err(refused)
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
            .try_for_each(|writes| writes.log.append(record.clone()))
            .map_err(SkipReason::Journal)
    }

    /// The place itself, not what a link leads to.
    fn place(&self, path: &str) -> Result<Located, SkipReason> {
        itself(&self.files, path).map_err(SkipReason::File)
    }

    /// Removes the directories above what is gone, up to the one that was made for it, as long as nothing is in them.
    fn emptied(&self, path: &Path, made: &Path) {
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
        self.points.reached(point);
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
