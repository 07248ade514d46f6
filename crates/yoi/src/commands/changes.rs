//! `yoi diff` and `yoi undo`: what a pod changed in files, and taking it back.

use crate::cli::{DiffArgs, UndoArgs};
use crate::commands::out::{self, read_failure};
use crate::commands::place::open_failure;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::Pods;
use crate::show::escape::line;
use crate::show::progress::brief;
use authority::{Access, Ambient, Place, Workspace};
use pod::session::changes::{Changed, Changes, Standing};
use pod::session::commit::Batch;
use pod::session::record::{FileChanged, Stored};
use pod::session::restore::decode;
use session_store::{BlobView, Digest, Journal, Opened, Options, Reader, Session};
use similar::TextDiff;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The largest file that is compared or restored, in bytes; tools change none larger.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Shows each changed file as it was against as it is.
pub(crate) fn diff(args: &DiffArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let (changes, blobs) = read(&pods, &name, 0)?;
    let mut rows = Vec::new();
    for changed in changes.files() {
        let before = before(changed, &blobs)?;
        let now = match current(&changed.path) {
            Ok(now) => now,
            Err(why) if args.json => {
                rows.push(serde_json::json!({ "path": changed.path, "standing": "unreadable", "why": why }));
                continue;
            }
            Err(why) => {
                out::line(&why);
                continue;
            }
        };
        let standing = changed.standing(now.as_deref());
        if args.json {
            rows.push(serde_json::json!({
                "path": changed.path, "existed": before.is_some(), "exists": now.is_some(),
                "standing": word(standing), "diff": unified(&changed.path, before.as_deref(), now.as_deref()),
            }));
        } else {
            show(changed, standing, before.as_deref(), now.as_deref());
        }
    }
    let commands: Vec<String> = changes.commands.iter().map(|(_, command)| brief(command)).collect();
    if args.json {
        out::line(&serde_json::json!({ "pod": name, "files": rows, "commands": commands }).to_string());
    } else {
        if changes.files().next().is_none() {
            out::line(&format!("{name} changed no file with its file tools"));
        }
        warn(&changes);
    }
    Ok(Exit::Done)
}

/// Puts files back as they were before the pod, or before what came after `--to`.
pub(crate) fn undo(args: &UndoArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let clock: session_store::Clock = Arc::new(now);
    let opened = Session::open(&pods.dir(&name), Options::new(name.clone(), clock));
    let Opened { journal, blobs, .. } = opened.map_err(|e| open_failure(&e, now(), Some(&name)))?;
    let (changes, view) = read(&pods, &name, args.to.unwrap_or(0))?;
    let ambient = Ambient::claim();
    let (mut refused, mut undone) = (0, 0);
    for changed in changes.files() {
        let now = match current(&changed.path) {
            Ok(now) => now,
            Err(why) => {
                refused += 1;
                out::line(&format!("left alone: {why}"));
                continue;
            }
        };
        match changed.standing(now.as_deref()) {
            Standing::AsBefore => {}
            Standing::Changed => {
                refused += 1;
                out::line(&format!("left alone: {} was changed since by somebody else", changed.path));
            }
            Standing::AsLeft => {
                let was = before(changed, &view)?;
                let kept = match &now {
                    Some(bytes) => Some(Stored::from(blobs.put(bytes).map_err(|e| journal_failure(&e.to_string()))?)),
                    None => None,
                };
                let record = FileChanged {
                    call: None,
                    path: changed.path.clone(),
                    before: kept,
                    mode: changed.mode,
                    after: was.as_deref().map(|bytes| Digest::of(bytes).to_string()),
                };
                put_back(&ambient, &journal, record, was.as_deref())?;
                let done = if was.is_some() { "restored" } else { "removed" };
                undone += 1;
                out::line(&format!("{done}: {}", changed.path));
            }
        }
    }
    journal.close();
    if refused == 0 && undone == 0 {
        out::line(&format!("{name}: no file stands changed; nothing to take back"));
    }
    warn(&changes);
    if refused > 0 {
        let files = if refused == 1 { "1 file was".to_owned() } else { format!("{refused} files were") };
        let message = format!("{files} changed since and left alone");
        return Err(Failure::new(Exit::Failed, message).help(format!("`yoi diff {name}` shows them")));
    }
    Ok(Exit::Done)
}

/// Every change after `after`, and where the before-images are.
fn read(pods: &Pods, name: &str, after: u64) -> Result<(Changes, BlobView), Failure> {
    let reader = Reader::open(&pods.dir(name)).map_err(|e| read_failure(name, &e))?;
    let mut changes = Changes::default();
    for frame in reader.frames() {
        let frame = frame.map_err(|e| read_failure(name, &e))?;
        let record = decode(&frame).map_err(|e| Failure::new(Exit::Data, format!("{name}: {e}")))?;
        changes.take(frame.seq, after, &record);
    }
    Ok((changes, reader.blobs()))
}

fn before(changed: &Changed, blobs: &BlobView) -> Result<Option<Vec<u8>>, Failure> {
    let read = |stored: &Stored| blobs.read(&stored.digest, MAX_FILE);
    changed.before.as_ref().map(read).transpose().map_err(|e| Failure::new(Exit::Data, e.to_string()))
}

/// The file as it is, none when it is not there, or why that cannot be said.
fn current(path: &str) -> Result<Option<Vec<u8>>, String> {
    let fail = |what: String| format!("{path}: {what}");
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() && meta.len() <= MAX_FILE => {
            fs::read(path).map(Some).map_err(|e| fail(e.to_string()))
        }
        Ok(_) => Err(fail("no longer a regular file of at most 64 MiB".to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(error.to_string())),
    }
}

/// The record first, then the file: after a crash in between, the file simply still stands as the pod left it.
fn put_back(ambient: &Ambient, journal: &Journal, record: FileChanged, was: Option<&[u8]>) -> Result<(), Failure> {
    let path = record.path.clone();
    let refused = |error: authority::Error| Failure::new(Exit::Unavailable, error.to_string());
    let dir = Path::new(&path).parent().unwrap_or_else(|| Path::new("/"));
    let workspace = Workspace::open(ambient, dir, dir, Access::ReadWrite).map_err(refused)?;
    let Place::Inside(at) = workspace.locate(Path::new(&path)).map_err(refused)? else {
        return Err(Failure::new(Exit::Unavailable, format!("{path} is a link out of its directory; left alone")));
    };
    let staged = was.map(|bytes| workspace.stage(&at, bytes)).transpose().map_err(refused)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| journal_failure(&e.to_string()))?;
    let done = runtime.block_on(journal.append(Batch::of(vec![record.into()])));
    done.map_err(|refused| journal_failure(&refused.why.to_string()))?;
    match staged {
        Some(staged) => staged.publish().map_err(refused),
        None => workspace.remove(&at).map_err(refused),
    }
}

fn journal_failure(what: &str) -> Failure {
    Failure::new(Exit::Journal, what).help("nothing more was changed")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::AsLeft => "as_left",
        Standing::AsBefore => "as_before",
        Standing::Changed => "changed_since",
    }
}

fn show(changed: &Changed, standing: Standing, before: Option<&[u8]>, now: Option<&[u8]>) {
    match standing {
        Standing::AsBefore => out::line(&format!("{}: as it was before", changed.path)),
        Standing::AsLeft => out::line(unified(&changed.path, before, now).trim_end()),
        Standing::Changed => {
            out::line(&format!("{}: changed since by somebody else; the whole difference:", changed.path));
            out::line(unified(&changed.path, before, now).trim_end());
        }
    }
}

fn unified(path: &str, before: Option<&[u8]>, now: Option<&[u8]>) -> String {
    let text = |bytes: Option<&[u8]>| bytes.map_or(Some(String::new()), |b| String::from_utf8(b.to_vec()).ok());
    let (Some(old), Some(new)) = (text(before), text(now)) else { return format!("{path}: binary files differ") };
    let name = |there: bool| if there { path } else { "/dev/null" };
    let (from, to) = (name(before.is_some()), name(now.is_some()));
    TextDiff::from_lines(&old, &new).unified_diff().header(from, to).to_string()
}

/// How many commands a warning names.
const NAMED: usize = 5;

/// Commands keep no before-images: what they changed is not known.
fn warn(changes: &Changes) {
    if changes.commands.is_empty() {
        return;
    }
    let ran = match changes.commands.len() {
        1 => "1 shell command".to_owned(),
        more => format!("{more} shell commands"),
    };
    out::line(&format!("{ran} ran; what they changed in files is not tracked:"));
    for (seq, command) in changes.commands.iter().rev().take(NAMED) {
        out::line(&format!("{seq:>6}  {}", line(&brief(command), 100)));
    }
}
