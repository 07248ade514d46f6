//! Write: a whole file.

use crate::answer::{answer, counted, fix};
use crate::change::{line_count, publish_judged};
use crate::edit;
use crate::encoding::kept;
use crate::files::{Files, MAX_FILE};
use crate::scope;
use authority::Located;
use llm_worker::tool::{ShownChange, Touch};
use llm_worker::{ToolContext, ToolEffect, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The tool's name.
pub const NAME: &str = "Write";
/// The description for the model.
pub const ABOUT: &str = "Create a file, or replace all of one that was read before. Missing directories are created. To change parts, use Edit.";
/// The effect of a repeated call.
pub const EFFECT: ToolEffect = ToolEffect::Idempotent;

/// The arguments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Args {
    /// File path.
    pub path: String,
    /// The whole new text.
    pub content: String,
}

/// The resources that permission judges.
#[must_use]
pub fn touches(args: &Args) -> Vec<Touch> {
    vec![Touch::Write(args.path.clone().into())]
}

/// Runs one call.
///
/// # Errors
/// `FixInput` for an existing file that was not read or has changed since, a directory, too much content; `Denied`
/// outside of the workspace or where it may only be read; the host's error if it could not record the change.
pub async fn run(live: Arc<Files>, args: Args, cx: ToolContext) -> ToolResult {
    let at = located(&live, &args)?;
    let shown = live.workspace.show(at.path());
    let content = args.content;
    let _turn = live.one_at_a_time(&cx).await?;
    let before = live.before(&at, &cx)?;
    let lines = counted(line_count(content.as_bytes()), "line", "lines");
    let (did, after, said) = match &before {
        None => ("created", content.into_bytes(), String::new()),
        Some(before) if before.bytes == content.as_bytes() => {
            live.seen.note(at.path(), blake3::hash(&before.bytes));
            return Ok(answer(
                &format!("{shown}: unchanged, it has this content already"),
                String::new(),
            ));
        }
        Some(before) => {
            live.must_be_seen(&at, before)?;
            let (after, said) = kept(&before.bytes, &content)?;
            ("replaced", after, said)
        }
    };
    if before.as_ref().is_some_and(|before| before.bytes == after) {
        return Ok(answer(
            &format!("{shown}: unchanged, it has this content already{said}"),
            String::new(),
        ));
    }
    publish_judged(&live, &at, before, &after, &cx).await?;
    Ok(answer(
        &format!("{shown}: {did}, {lines}{said}"),
        String::new(),
    ))
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
    let Some(before) = live.content(&at, cancel)? else {
        return Ok(edit::diff::preview(b"", args.content.as_bytes()));
    };
    if before.bytes == args.content.as_bytes() {
        return Ok(edit::diff::preview(&before.bytes, &before.bytes));
    }
    live.must_be_seen(&at, &before)?;
    let (after, _) = kept(&before.bytes, &args.content)?;
    Ok(edit::diff::preview(&before.bytes, &after))
}

fn located(live: &Files, args: &Args) -> Result<Located, ToolError> {
    let at = scope::writable(&live.workspace, live.remedies, &args.path)?;
    if args.content.len() as u64 > MAX_FILE {
        let shown = live.workspace.show(at.path());
        return Err(fix(format!(
            "{shown}: {} bytes are more than the {MAX_FILE} that Write takes",
            args.content.len()
        )));
    }
    Ok(at)
}
