//! Edit: exact replacements in one file, all or none.

mod apply;
pub(crate) mod diff;
mod nearest;

use crate::answer::{answer, counted, fix, go_on};
use crate::change::publish_judged;
use crate::files::{Before, Files};
use crate::scope;
use authority::Located;
use llm_worker::tool::{ShownChange, Touch};
use llm_worker::{ToolContext, ToolEffect, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub use diff::MAX_DIFF;

/// The tool's name.
pub const NAME: &str = "Edit";
/// The description for the model.
pub const ABOUT: &str = "Replace exact text in a file that was read before. Edits apply in order, all or none. Each `old` must occur exactly once unless replace_all is set; give enough surrounding lines, without Read's line numbers.";
/// The effect of a repeated call.
pub const EFFECT: ToolEffect = ToolEffect::Effectful;

/// The most edits of one call.
pub const MAX_EDITS: usize = 100;

/// The arguments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Args {
    /// File path.
    pub path: String,
    /// Replacements.
    pub edits: Vec<Replacement>,
}

/// One replacement.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Replacement {
    /// Text to find.
    pub old: String,
    /// Text to put there.
    pub new: String,
    /// Replace every occurrence.
    #[serde(default)]
    pub replace_all: bool,
}

/// The resources that permission judges.
#[must_use]
pub fn touches(args: &Args) -> Vec<Touch> {
    vec![Touch::Write(args.path.clone().into())]
}

/// Runs one call.
///
/// # Errors
/// `FixInput` when the file was not read or has changed since, or an edit does not fit, with the line numbers that
/// help; `Denied` outside of the workspace or where it may only be read; the host's error if it could not record the
/// change.
pub async fn run(live: Arc<Files>, args: Args, cx: ToolContext) -> ToolResult {
    let at = located(&live, &args)?;
    let shown = live.workspace.show(at.path());
    let _turn = live.one_at_a_time(&cx).await?;
    let (before, applied) = applied(&live, &at, &args, &cx.cancel)?;
    let diff = diff::diff(&before.bytes, &applied.bytes);
    publish_judged(&live, &at, Some(before), &applied.bytes, &cx).await?;
    let did = counted(applied.replaced, "replacement", "replacements");
    Ok(answer(&format!("{shown}: {did}"), diff))
}

/// Shows what [`run`] would change now.
///
/// # Errors
/// As of [`run`].
pub fn preview(
    live: &Files,
    args: &Args,
    cancel: &CancellationToken,
) -> Result<ShownChange, ToolError> {
    let at = located(live, args)?;
    let (before, applied) = applied(live, &at, args, cancel)?;
    Ok(diff::preview(&before.bytes, &applied.bytes))
}

fn located(live: &Files, args: &Args) -> Result<Located, ToolError> {
    let at = scope::writable(&live.workspace, live.remedies, &args.path)?;
    if args.edits.is_empty() || args.edits.len() > MAX_EDITS {
        return Err(fix(format!(
            "edits: {} given; 1 to {MAX_EDITS} fit in one call",
            args.edits.len()
        )));
    }
    Ok(at)
}

/// The file as it is, and as it would be.
fn applied(
    live: &Files,
    at: &Located,
    args: &Args,
    cancel: &CancellationToken,
) -> Result<(Before, apply::Applied), ToolError> {
    let shown = live.workspace.show(at.path());
    live.existing_file(at)?;
    let Some(before) = live.content(at, cancel)? else {
        return Err(fix(format!("{shown} does not exist any more")));
    };
    live.must_be_seen(at, &before)?;
    let applied = apply::apply(&before.bytes, &args.edits, cancel).map_err(|problem| {
        let cancelled = go_on(cancel).err();
        cancelled.unwrap_or_else(|| fix(format!("{shown}: {problem}; nothing was changed")))
    })?;
    Ok((before, applied))
}
