//! Write: a whole file.

use crate::answer::{answer, counted, fix};
use crate::change::{line_count, publish};
use crate::files::{Files, MAX_FILE};
use crate::scope;
use llm_worker::tool::Touch;
use llm_worker::{ToolContext, ToolEffect, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    let workspace = &live.workspace;
    let at = scope::writable(workspace, live.remedies, &args.path)?;
    let shown = workspace.show(at.path());
    let after = args.content.as_bytes();
    if after.len() as u64 > MAX_FILE {
        return Err(fix(format!("{shown}: {} bytes are more than the {MAX_FILE} that Write takes", after.len())));
    }
    let _turn = live.one_at_a_time(&cx).await?;
    let before = live.before(&at, &cx)?;
    let did = match &before {
        Some(before) if before.bytes == after => {
            live.seen.note(at.path(), blake3::hash(after));
            return Ok(answer(&format!("{shown}: unchanged, it has this content already"), String::new()));
        }
        Some(before) => {
            live.must_be_seen(&at, before)?;
            "replaced"
        }
        None => "created",
    };
    publish(&live, &at, before, after, &cx).await?;
    let lines = counted(line_count(after), "line", "lines");
    Ok(answer(&format!("{shown}: {did}, {lines}"), String::new()))
}
