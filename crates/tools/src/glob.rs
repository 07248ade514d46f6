//! Glob: files by name.

use crate::answer::{ContentBuilder, answer, counted};
use crate::pattern::Pattern;
use crate::scope;
use crate::search::Search;
use llm_worker::tool::Touch;
use llm_worker::{ToolContext, ToolEffect, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The tool's name.
pub const NAME: &str = "Glob";
/// The description for the model.
pub const ABOUT: &str = "List files whose path fits a glob, such as `src/**/*.rs`. Without a slash it fits names at any depth. What .gitignore names is left out.";
/// The effect of a repeated call.
pub const EFFECT: ToolEffect = ToolEffect::ReadOnly;

/// How many paths are shown.
pub const MAX_PATHS: u64 = 1000;

/// Bytes of the content reserved for notes.
const RESERVE: usize = 1024;

/// The arguments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Args {
    /// Glob relative to path.
    pub pattern: String,
    /// Directory.
    #[serde(default = "crate::search::here")]
    pub path: String,
}

/// The resources that permission judges.
#[must_use]
pub fn touches(args: &Args) -> Vec<Touch> {
    vec![Touch::Read(args.path.clone().into())]
}

/// Runs one call.
///
/// # Errors
/// `FixInput` for a bad pattern or no directory; `Denied` outside of the workspace; `Cancelled`.
pub async fn run(live: Arc<Search>, args: Args, cx: ToolContext) -> ToolResult {
    let pattern = Pattern::parse(&args.pattern)?;
    let at = live.start(&args.path)?;
    scope::directory(&live.workspace, &at)?;
    let mut body = ContentBuilder::new(RESERVE);
    let mut found = 0;
    let mut shown = 0;
    let gaps = live.files(&at, &cx, |entry, below| {
        if pattern.fits(below) {
            found += 1;
            // After the first path that does not fit none is shown, so that the list has no gaps.
            if shown + 1 == found
                && shown < MAX_PATHS
                && body.line(&live.workspace.show(&entry.path))
            {
                shown += 1;
            }
        }
        Ok(true)
    })?;
    let mut notes = gaps.notes();
    if shown < found {
        notes.push(format!(
            "(the first {shown} of {found} are shown; give a narrower pattern or path)"
        ));
    }
    Ok(answer(
        &counted(found, "file", "files"),
        body.finish(&notes),
    ))
}
