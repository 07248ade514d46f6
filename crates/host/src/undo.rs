//! Undoing what a pod changed in files, in words: in a pod that no process has, and between the turns of a live one.

use crate::exit::{Exit, Failure, Help};
use crate::hosting::leftovers::{everything, session};
use crate::pods::{empty, read_failure};
use authority::escape;
use authority::text::first_line;
use pod::control::BetweenTurns;
use pod::session::changes::Changes;
use pod::session::restore::decode;
use pod::undo::{FileUndo, UndoAction, UndoEvent, UndoWrites};
use protocol::count::count;
use session_store::{BlobView, Reader};
use std::cell::RefCell;
use std::path::Path;
use tokio::runtime::Handle;

/// What helps when the journal cannot be written.
const UNWRITTEN: &str =
    "only the changes listed above were undone; fix the cause, then run the command again";

/// Takes back every change of the pod `name`, and says what it does about each path.
///
/// # Errors
/// `Failed` where a path was left alone, `Journal` where a change could not be recorded.
pub fn undo(
    undo: &FileUndo<'_>,
    name: &str,
    changes: &mut Changes,
    say: &dyn Fn(&str),
) -> Result<(), Failure> {
    let done = run(undo, changes, say)?;
    if done.skipped == 0 && done.paths == 0 {
        say(&format!("{name}: nothing to undo"));
    }
    warn(changes, say);
    if done.skipped > 0 {
        let skipped = match done.skipped {
            1 => "1 path was skipped; the reason is above".to_owned(),
            more => format!("{more} paths were skipped; the reasons are above"),
        };
        return Err(
            Failure::new(Exit::Failed, skipped).help(Help::RemainingChanges(name.to_owned()))
        );
    }
    Ok(())
}

/// The same without a summary; without `writes`, what would be done.
///
/// # Errors
/// `Journal` where a change could not be recorded.
pub fn run(
    undo: &FileUndo<'_>,
    changes: &mut Changes,
    say: &dyn Fn(&str),
) -> Result<pod::undo::UndoTotals, Failure> {
    let preview = undo.writes.is_none();
    let tell = |event: UndoEvent<'_>| match event {
        UndoEvent::Did(action, path) => {
            say(&format!(
                "{}: {}",
                word(action, preview),
                escape(Path::new(path))
            ));
        }
        UndoEvent::Skipped(why) => say(&format!("skipped: {why}")),
        UndoEvent::SkippedBetween {
            path,
            after,
            within,
        } => {
            let of = within.map(|dir| format!("{dir}: was not moved back: "));
            say(&format!(
                "skipped: {}{path} was modified by something else between this pod's changes; `--to {after}` undoes only the later changes",
                of.unwrap_or_default()
            ));
        }
        UndoEvent::OfCommandsToo => say("  this also undoes what commands changed in it"),
    };
    undo.run(changes, &tell)
        .map_err(|why| Failure::new(Exit::Journal, why).help(UNWRITTEN))
}

const fn word(action: UndoAction, preview: bool) -> &'static str {
    match (action, preview) {
        (UndoAction::Restored, true) => "would restore",
        (UndoAction::Removed, true) => "would remove",
        (UndoAction::MovedBack, true) => "would move back",
        (UndoAction::Restored, false) => "restored",
        (UndoAction::Removed, false) => "removed",
        (UndoAction::MovedBack, false) => "moved back",
    }
}

/// The same in a pod of this process, between two turns: its lines, and whether that was all. For a thread that may block.
pub(crate) fn in_live_pod(
    dir: &Path,
    name: &str,
    to: u64,
    turns: &BetweenTurns,
    runtime: &Handle,
) -> (Vec<String>, Result<(), Failure>) {
    let lines = RefCell::new(Vec::new());
    let done = (|| {
        let (mut changes, view) = read(dir, name, to)?;
        let append = |record| {
            let appended = runtime.block_on(turns.append(vec![record]));
            appended.map_err(|error| error.to_string())
        };
        let live = FileUndo {
            files: everything(&ambient::claim())?,
            session: session(dir).ok_or_else(|| empty(name, Exit::Usage))?,
            view,
            writes: Some(UndoWrites {
                blobs: turns.blobs().clone(),
                append: Box::new(append),
            }),
            reached: &|_| {},
        };
        undo(&live, name, &mut changes, &|line| {
            lines.borrow_mut().push(line.to_owned());
        })
    })();
    (lines.into_inner(), done)
}

/// Every change after the record `after`, and where the before-images are.
///
/// # Errors
/// The journal cannot be read.
pub fn read(dir: &Path, name: &str, after: u64) -> Result<(Changes, BlobView), Failure> {
    let reader = Reader::open(dir).map_err(|e| read_failure(name, &e))?;
    let mut changes = Changes::beside("Bash");
    for frame in reader.frames() {
        let frame = frame.map_err(|e| read_failure(name, &e))?;
        let record =
            decode(&frame).map_err(|e| Failure::new(Exit::Data, format!("{name}: {e}")))?;
        changes.take(frame.seq, after, &record);
    }
    Ok((changes, reader.blobs()))
}

/// How many commands a warning names.
const NAMED: usize = 5;

/// Commands keep no before-images: what they changed is not known.
pub fn warn(changes: &Changes, say: &dyn Fn(&str)) {
    for (first, last) in &changes.lost {
        say(&format!(
            "records {first} to {last} are lost; their file changes are unknown"
        ));
    }
    if changes.commands.is_empty() {
        return;
    }
    let of = match changes.commands.len() {
        1 => "this command".to_owned(),
        more => format!("these {more} commands"),
    };
    say(&format!(
        "yoi does not know which files {of} of the pod changed:"
    ));
    for (seq, command) in changes.commands.iter().rev().take(NAMED) {
        say(&format!(
            "    record {seq}: {}",
            first_line(&command_text(command), 100)
        ));
    }
    let older = changes.commands.len().saturating_sub(NAMED);
    if older > 0 {
        say(&format!("    and {}", count(older as u64, "older command")));
    }
}

/// The command of a call; its other arguments say how it runs, not what.
fn command_text(arguments: &str) -> String {
    let fields: Option<serde_json::Value> = serde_json::from_str(arguments).ok();
    let command = fields
        .as_ref()
        .and_then(|fields| fields.get("command"))
        .and_then(serde_json::Value::as_str);
    command.unwrap_or(arguments).to_owned()
}
