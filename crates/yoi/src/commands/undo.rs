//! `yoi undo`: taking back what a pod changed in files, one file at a time, and only where nobody else changed it.

use crate::Points;
use crate::cli::UndoArgs;
use crate::commands::changes::{Now, before, everything, look, read, warn};
use crate::commands::out;
use crate::commands::place::{now, open_failure};
use crate::config::Config;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::Pods;
use authority::{Ambient, FileKind, Located, Workspace, escape};
use pod::session::changes::{Changed, Standing};
use pod::session::commit::Batch;
use pod::session::record::{FileChanged, Stored};
use session_store::{BlobView, Blobs, Clock, Digest, Journal, Opened, Options, Session};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// Puts files back as they were before the pod, or before what came after `--to`.
pub(crate) fn run(args: &UndoArgs, env: &Env, points: &Points) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let clock: Clock = Arc::new(now);
    // What can be taken back does not depend on a configuration that reads.
    let any_file_system = Config::load(env).is_ok_and(|config| config.any_file_system.value);
    let options = Options { any_file_system, ..Options::new(name.clone(), clock) };
    let opened = Session::open(&pods.dir(&name), options);
    let opened = opened.map_err(|e| open_failure(&e, now(), Some(&name)))?;
    let (changes, view) = read(&pods, &name, args.to.unwrap_or(0))?;
    let undo = Undo::new(opened, view, points)?;
    let (mut refused, mut undone, mut made) = (0, 0, BTreeSet::new());
    for changed in changes.files() {
        let done = undo.file(changed);
        made.extend(changed.made.as_deref().filter(|_| done.is_ok() && changed.before.is_none()));
        match done {
            Ok(Done::Nothing) => {}
            Ok(done) => {
                undone += 1;
                let done = if done == Done::Restored { "restored" } else { "removed" };
                out::line(&format!("{done}: {}", escape(Path::new(&changed.path))));
            }
            Err(Stop::File(why)) => {
                refused += 1;
                out::line(&format!("left alone: {why}"));
            }
            Err(Stop::Journal(what)) => return Err(Failure::new(Exit::Journal, what).help(UNWRITTEN)),
        }
    }
    // Those below first.
    made.into_iter().rev().for_each(|dir| undo.directory(dir));
    undo.journal.close();
    if refused == 0 && undone == 0 {
        out::line(&format!("{name}: no file stands changed; nothing to take back"));
    }
    warn(&changes);
    if refused > 0 {
        let files = if refused == 1 { "1 file was".to_owned() } else { format!("{refused} files were") };
        return Err(Failure::new(Exit::Failed, format!("{files} left alone; the lines above say why"))
            .help(format!("`yoi diff {name}` shows what stands changed")));
    }
    Ok(Exit::Done)
}

/// What helps when the journal cannot be written.
const UNWRITTEN: &str = "files named above are taken back, no other was changed; mend the disk and run it again";

/// How deep below a directory that was made empty ones are looked for.
const MAX_DEEP: u32 = 32;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// It stands as it was before.
    Nothing,
    /// It has its content again.
    Restored,
    /// It is gone again.
    Removed,
}

/// Why a file was not taken back.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// This one is left alone.
    File(String),
    /// Nothing can be recorded, so nothing more is done.
    Journal(String),
}

/// Everything that taking back needs.
struct Undo<'a> {
    files: Workspace,
    journal: Journal,
    blobs: Blobs,
    view: BlobView,
    runtime: Runtime,
    points: &'a Points,
}

impl<'a> Undo<'a> {
    fn new(opened: Opened, view: BlobView, points: &'a Points) -> Result<Self, Failure> {
        let Opened { journal, blobs, .. } = opened;
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.map_err(|e| Failure::new(Exit::Unavailable, format!("no runtime: {e}")))?;
        Ok(Self { files: everything(&Ambient::claim())?, journal, blobs, view, runtime, points })
    }

    /// The record first, then the file: after a crash in between, the file simply still stands as the pod left it.
    fn file(&self, changed: &Changed) -> Result<Done, Stop> {
        let now = look(&self.files, &changed.path).map_err(Stop::File)?;
        match changed.standing(now.bytes.as_deref()) {
            Standing::AsBefore => return Ok(Done::Nothing),
            Standing::Changed => {
                return Err(Stop::File(format!("{} was changed since by somebody else", changed.path)));
            }
            Standing::AsLeft => {}
        }
        if changed.doubtful {
            let why = "records before its first known change are lost: what it was is not known";
            return Err(Stop::File(format!("{}: {why}", changed.path)));
        }
        let was = before(changed, &self.view).map_err(Stop::File)?;
        let kept = now.bytes.as_ref().map(|bytes| self.blobs.put(bytes).map(Stored::from)).transpose();
        let record = FileChanged {
            call: None,
            path: changed.path.clone(),
            before: kept.map_err(|e| Stop::Journal(e.to_string()))?,
            mode: now.mode,
            after: was.as_deref().map(|bytes| Digest::of(bytes).to_string()),
            made: None,
        };
        let refused = |error: authority::Error| Stop::File(error.to_string());
        if let (Some(_), None, Some(above)) = (&was, &now.bytes, now.at.path().parent()) {
            // Its directory may have gone away with it.
            let above = self.files.inside(above).map_err(refused)?;
            self.files.create_dirs(&above).map_err(refused)?;
        }
        let staged = was.as_deref().map(|bytes| self.files.stage(&now.at, bytes)).transpose().map_err(refused)?;
        let staged = match (staged, changed.mode.filter(|_| now.bytes.is_none())) {
            // It was not there to keep its own.
            (Some(staged), Some(mode)) => Some(staged.with_mode(mode).map_err(refused)?),
            (staged, _) => staged,
        };
        self.unchanged(&now, changed, "undo.staged")?;
        let committed = self.runtime.block_on(self.journal.append(Batch::of(vec![record.into()])));
        committed.map_err(|refused| Stop::Journal(refused.why.to_string()))?;
        self.unchanged(&now, changed, "undo.recorded")?;
        match staged {
            Some(staged) => staged.publish().map(|()| Done::Restored).map_err(refused),
            None => self.files.remove(&now.at).map(|()| Done::Removed).map_err(refused),
        }
    }

    /// A directory that was made for files that are gone, and those in it: what still holds something stays.
    fn directory(&self, made: &str) {
        let Ok(at) = self.files.inside(Path::new(made)) else { return };
        if at.path() == Path::new(made) {
            self.empty(&at, MAX_DEEP);
        }
    }

    fn empty(&self, at: &Located, deep: u32) {
        let Some(deep) = deep.checked_sub(1) else { return };
        for (name, meta) in self.files.read_dir(at).unwrap_or_default() {
            let below = (meta.kind == FileKind::Dir).then(|| self.files.inside(&at.path().join(name)).ok()).flatten();
            below.inspect(|below| self.empty(below, deep));
        }
        // It holds something, or is gone.
        self.files.remove_dir(at).unwrap_or_default();
    }

    /// Somebody may be working on the file at this moment; what they write is not lost.
    fn unchanged(&self, was: &Now, changed: &Changed, point: &str) -> Result<(), Stop> {
        (self.points.0)(point);
        let now = look(&self.files, &changed.path).map_err(Stop::File)?;
        if now.bytes == was.bytes {
            return Ok(());
        }
        Err(Stop::File(format!("{} was changed at this moment by somebody else", changed.path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pod::session::changes::Changes;
    use session_store::Reader;
    use std::fs;

    /// A pod's journal with one change, `two` to `three`, or nothing to `three`, and the file as it was left.
    fn scene(dir: &Path, existed: bool) -> (Opened, Changes, std::path::PathBuf) {
        let dir = dir.canonicalize().unwrap();
        let opened = Session::create(&dir.join("pod"), Options::new("s-1", Arc::new(|| 1))).unwrap();
        let path = dir.join("file");
        fs::write(&path, "three").unwrap();
        let before = existed.then(|| Stored::from(opened.blobs.put(b"two").unwrap()));
        let change = FileChanged {
            call: None,
            path: path.to_str().unwrap().to_owned(),
            before,
            mode: existed.then_some(0o640),
            after: Some(Digest::of(b"three").to_string()),
            made: None,
        };
        let mut changes = Changes::default();
        changes.take(1, 0, &change.into());
        (opened, changes, path)
    }

    fn undone(opened: Opened, changes: &Changes, dir: &Path, points: &Points) -> Result<Done, Stop> {
        let view = Reader::open(&dir.join("pod")).unwrap().blobs();
        Undo::new(opened, view, points).unwrap().file(changes.files().next().unwrap())
    }

    #[test]
    fn an_edit_made_meanwhile_is_not_lost() {
        for existed in [true, false] {
            for at in ["undo.staged", "undo.recorded", "never"] {
                let dir = tempfile::tempdir().unwrap();
                let (opened, changes, path) = scene(dir.path(), existed);
                let edited = path.clone();
                let points = Points::new(move |point| {
                    if point == at {
                        fs::write(&edited, "mine").unwrap();
                    }
                });
                let done = undone(opened, &changes, dir.path(), &points);
                let now = fs::read_to_string(&path).ok();
                match (at, existed) {
                    ("never", true) => assert_eq!((done, now.as_deref()), (Ok(Done::Restored), Some("two"))),
                    ("never", false) => assert_eq!((done, now), (Ok(Done::Removed), None)),
                    _ => {
                        assert!(matches!(&done, Err(Stop::File(why)) if why.contains("at this moment")), "{done:?}");
                        assert_eq!(now.as_deref(), Some("mine"), "{at} {existed}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_journal_that_refuses_stops_it_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let (opened, changes, path) = scene(dir.path(), true);
        opened.journal.close();
        let done = undone(opened, &changes, dir.path(), &Points::none());
        assert!(matches!(done, Err(Stop::Journal(_))), "{done:?}");
        assert_eq!(fs::read_to_string(path).unwrap(), "three");
    }
}
