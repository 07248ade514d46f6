//! Changing files: the change is announced to the host, staged in a temporary file, then renamed into place.

use crate::answer::{fix, go_on, refused};
use crate::files::{Before, Files};
use authority::{Located, Place};
use llm_worker::tool::{DirectoryMove, FileChange, Landing};
use llm_worker::{ToolContext, ToolError};

/// Replaces or creates a file, unless it was changed since `before` was read. Write, Edit and stores of features use
/// it. Missing parent directories are created with the file, and undo removes them with it. An error before the rename
/// leaves the file unchanged and no temporary file; the host may have recorded an intent whose after-digest the file
/// does not have. Call it under [`Files::one_at_a_time`].
///
/// # Errors
/// `FixInput` if the file has changed; the handle's error; the host's error if it could not record the change;
/// `Cancelled`.
pub async fn publish(
    live: &Files,
    at: &Located,
    before: Option<Before>,
    after: &[u8],
    cx: &ToolContext,
) -> Result<(), ToolError> {
    let place = live.workspace.place(at).map_err(|error| refused(&error))?;
    publish_in(live, at, place, before, after, cx).await
}

/// As [`publish`], for a path that the call names: only where permission judged it.
pub(crate) async fn publish_judged(
    live: &Files,
    at: &Located,
    before: Option<Before>,
    after: &[u8],
    cx: &ToolContext,
) -> Result<(), ToolError> {
    let place = live.workspace.place(at).map_err(|error| refused(&error))?;
    let missing = place.missing().is_some();
    cx.host.may_land(&Landing {
        path: at.path().to_owned(),
        dir: place.id(),
        born: place.born(),
        missing,
    })?;
    publish_in(live, at, place, before, after, cx).await
}

async fn publish_in(
    live: &Files,
    at: &Located,
    place: Place,
    before: Option<Before>,
    after: &[u8],
    cx: &ToolContext,
) -> Result<(), ToolError> {
    let was = before.as_ref().map(|before| before.stamp);
    let digest = blake3::hash(after);
    let change = FileChange {
        path: at.path().to_owned(),
        mode: before.as_ref().map(|before| before.mode),
        made: if before.is_none() {
            place.missing()
        } else {
            None
        },
        before: before.map(|before| before.bytes),
        after: Some(digest.to_hex().to_string()),
    };
    go_on(&cx.cancel)?;
    let number = cx.host.file_changing(change).await?;
    // The intent is recorded, so the change is made from here on, cancelled or not.
    let staged = live
        .workspace
        .stage_in(place, was, number, after)
        .map_err(|error| refused(&error))?;
    if let Err(error) = staged.publish() {
        // The new content may or may not be in place: the file must be read before it is changed again.
        live.seen.forget(at.path());
        return Err(refused(&error));
    }
    live.seen.note(at.path(), digest);
    Ok(())
}

/// Removes a file, unless it was changed since `before` was read. Call it under [`Files::one_at_a_time`].
///
/// # Errors
/// As for [`publish`]; before the removal, nothing was changed.
pub async fn remove(
    live: &Files,
    at: &Located,
    before: Before,
    cx: &ToolContext,
) -> Result<(), ToolError> {
    let Before { bytes, mode, stamp } = before;
    go_on(&cx.cancel)?;
    let path = at.path().to_owned();
    cx.host
        .file_changing(FileChange {
            path,
            before: Some(bytes),
            mode: Some(mode),
            after: None,
            made: None,
        })
        .await?;
    live.seen.forget(at.path());
    let now = live
        .workspace
        .metadata(at)
        .map_err(|error| refused(&error))?;
    if now.stamp != stamp {
        let shown = live.workspace.show(at.path());
        return Err(fix(format!(
            "{shown} was modified while this command ran; read it again"
        )));
    }
    live.workspace.remove(at).map_err(|error| refused(&error))
}

/// Moves a directory with its content. The host records the move first, so that undo can move it back. Missing
/// directories above the new path are created, and removed if the move fails. Call it under [`Files::one_at_a_time`].
///
/// # Errors
/// `FixInput` when there is nothing to move or the new name is taken; as for [`publish`]. Before the rename, nothing
/// was moved.
pub async fn move_dir(
    live: &Files,
    from: &Located,
    to: &Located,
    cx: &ToolContext,
) -> Result<(), ToolError> {
    let workspace = &live.workspace;
    go_on(&cx.cancel)?;
    // An impossible move is not recorded.
    workspace.metadata(from).map_err(|error| refused(&error))?;
    if workspace.metadata(to).is_ok() {
        let shown = workspace.show(to.path());
        return Err(fix(format!("{shown} already exists; check what it is")));
    }
    let here = from.path().to_owned();
    let there = to.path().to_owned();
    let made = workspace
        .place(to)
        .map_err(|error| refused(&error))?
        .missing();
    let moving = DirectoryMove {
        from: here.clone(),
        to: there.clone(),
        made,
    };
    cx.host.directory_moving(moving).await?;
    live.seen.forget_below(from.path());
    let Err(error) = workspace.rename(from, to) else {
        return Ok(());
    };
    if workspace.metadata(from).is_ok() {
        // The directory is still at its old path, so the journal records the reverse move.
        cx.host
            .directory_moving(DirectoryMove {
                from: there,
                to: here,
                made: None,
            })
            .await?;
    }
    Err(refused(&error))
}

/// The number of lines of a text, as an editor counts them.
pub(crate) fn line_count(bytes: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', bytes).count() as u64;
    ends + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}
