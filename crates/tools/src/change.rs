//! How a file changes: made known to the host, staged beside it, then renamed into place.

use crate::answer::{fix, go_on, refused};
use crate::files::{Before, Files};
use authority::{Located, Location};
use llm_worker::tool::{DirectoryMove, FileChange};
use llm_worker::{ToolContext, ToolError};
use std::path::PathBuf;

/// Replaces or creates a file, unless somebody else has changed it since `before` was read. Directories that are missing
/// above a new one come with it, and undo takes them back with it. Whatever fails before the rename leaves the file as it
/// was and nothing beside it; the host has then perhaps recorded an intent whose after-digest the file does not have. To
/// be called under [`Files::one_at_a_time`].
///
/// # Errors
/// `FixInput` when the file is not as it was; what the handle says; what the host said when it could not record the
/// change; `Cancelled`.
pub async fn publish(
    live: &Files,
    at: &Located,
    before: Option<Before>,
    after: &[u8],
    cx: &ToolContext,
) -> Result<(), ToolError> {
    let was = before.as_ref().map(|before| before.stamp);
    let digest = blake3::hash(after);
    let change = FileChange {
        path: at.path().to_owned(),
        mode: before.as_ref().map(|before| before.mode),
        made: if before.is_none() { missing_above(live, at)? } else { None },
        before: before.map(|before| before.bytes),
        after: Some(digest.to_hex().to_string()),
    };
    go_on(&cx.cancel)?;
    let number = cx.host.file_changing(change).await?;
    // Recorded as about to happen: from here on it does, cancelled or not.
    let staged = live.workspace.stage_over(at, was, number, after).map_err(|error| refused(&error))?;
    if let Err(error) = staged.publish() {
        // It may or may not be there: to be read before it is changed again.
        live.seen.forget(at.path());
        return Err(refused(&error));
    }
    live.seen.note(at.path(), digest);
    Ok(())
}

/// Removes a file, unless somebody else has changed it since `before` was read. To be called under
/// [`Files::one_at_a_time`].
///
/// # Errors
/// As for [`publish`]; before the removal, nothing was changed.
pub async fn remove(live: &Files, at: &Located, before: Before, cx: &ToolContext) -> Result<(), ToolError> {
    let Before { bytes, mode, stamp } = before;
    go_on(&cx.cancel)?;
    let path = at.path().to_owned();
    cx.host.file_changing(FileChange { path, before: Some(bytes), mode: Some(mode), after: None, made: None }).await?;
    live.seen.forget(at.path());
    let now = live.workspace.metadata(at).map_err(|error| refused(&error))?;
    if now.stamp != stamp {
        let shown = live.workspace.show(at.path());
        return Err(fix(format!("{shown} was modified while this command ran; read it again")));
    }
    live.workspace.remove(at).map_err(|error| refused(&error))
}

/// The topmost directory above a place that does not exist. A directory that cannot be looked at is an error: taken for one
/// that exists, it would stay after an undo.
fn missing_above(live: &Files, at: &Located) -> Result<Option<PathBuf>, ToolError> {
    let mut topmost = None;
    for above in at.path().ancestors().skip(1) {
        let Location::Inside(place) = live.workspace.locate(above).map_err(|error| refused(&error))? else { break };
        match live.workspace.metadata(&place) {
            Ok(_) => break,
            Err(error) if error.is_not_found() => topmost = Some(above.to_owned()),
            Err(error) => return Err(refused(&error)),
        }
    }
    Ok(topmost)
}

/// Moves a directory with all it holds, which the host knows before: undo moves it back. Directories that are missing
/// above its new place are made, and go again when it is not moved. To be called under [`Files::one_at_a_time`].
///
/// # Errors
/// `FixInput` when there is nothing to move or the new name is taken; as for [`publish`]. Before the rename, nothing was
/// moved.
pub async fn move_dir(live: &Files, from: &Located, to: &Located, cx: &ToolContext) -> Result<(), ToolError> {
    let workspace = &live.workspace;
    go_on(&cx.cancel)?;
    // What cannot be is not made known.
    workspace.metadata(from).map_err(|error| refused(&error))?;
    if workspace.metadata(to).is_ok() {
        let shown = workspace.show(to.path());
        return Err(fix(format!("{shown} is there already; look at what it is")));
    }
    let (here, there) = (from.path().to_owned(), to.path().to_owned());
    let made = missing_above(live, to)?;
    let moving = DirectoryMove { from: here.clone(), to: there.clone(), made };
    cx.host.directory_moving(moving).await?;
    live.seen.forget_below(from.path());
    let Err(error) = workspace.rename(from, to) else { return Ok(()) };
    if workspace.metadata(from).is_ok() {
        // It still is there, and the journal is to say so.
        cx.host.directory_moving(DirectoryMove { from: there, to: here, made: None }).await?;
    }
    Err(refused(&error))
}

/// How many lines a text has, as an editor counts them.
pub(crate) fn line_count(bytes: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', bytes).count() as u64;
    ends + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}
