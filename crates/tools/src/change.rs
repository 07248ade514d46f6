//! How a file changes: staged beside it, made known to the host, then renamed into place.

use crate::answer::{fix, go_on, refused};
use crate::files::{Before, Files};
use authority::Located;
use llm_worker::tool::FileChange;
use llm_worker::{ToolContext, ToolError};

/// Replaces or creates a file, unless somebody else has changed it since `before` was read. Whatever fails before the
/// rename leaves the file as it was; the host has then perhaps recorded an intent whose after-digest the file does not
/// have. To be called under [`Files::one_at_a_time`].
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
    let staged = live.workspace.stage_over(at, was, after).map_err(|error| refused(&error))?;
    go_on(&cx.cancel)?;
    let digest = blake3::hash(after);
    let mode = before.as_ref().map(|before| before.mode);
    let before = before.map(|before| before.bytes);
    let path = at.path().to_owned();
    cx.host.file_changing(FileChange { path, before, mode, after: Some(digest.to_hex().to_string()) }).await?;
    // Recorded as about to happen: from here on it does, cancelled or not.
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
    cx.host.file_changing(FileChange { path, before: Some(bytes), mode: Some(mode), after: None }).await?;
    live.seen.forget(at.path());
    let now = live.workspace.metadata(at).map_err(|error| refused(&error))?;
    if now.stamp != stamp {
        let shown = live.workspace.show(at.path());
        return Err(fix(format!("{shown} was changed at this moment by somebody else; read it again")));
    }
    live.workspace.remove(at).map_err(|error| refused(&error))
}

/// How many lines a text has, as an editor counts them.
pub(crate) fn line_count(bytes: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', bytes).count() as u64;
    ends + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}
