//! Grep: lines by regular expression.

mod found;

use crate::answer::{cut, fix, go_on};
use crate::pattern::Pattern;
use crate::search::{Gaps, Search};
use found::GrepOutput;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, SearcherBuilder};
use llm_worker::tool::Touch;
use llm_worker::{ToolContext, ToolEffect, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The tool's name.
pub const NAME: &str = "Grep";
/// The description for the model.
pub const ABOUT: &str = "Search file contents line by line with a regular expression (Rust syntax). Modes: content gives path:line:text, files gives paths, count gives path:count. Binary files and what .gitignore names are left out.";
/// The effect of a repeated call.
pub const EFFECT: ToolEffect = ToolEffect::ReadOnly;

/// The default number of matching lines (or files) shown.
pub const DEFAULT_LIMIT: u64 = 200;

/// The most lines of context on each side.
pub const MAX_CONTEXT: usize = 20;

/// The most bytes of a line that are shown.
pub const MAX_LINE: usize = 300;

/// The bytes that are read after the limit is reached, to count the true total.
pub const COUNT_ON: u64 = 64 << 20;

/// The most memory for one line or one compiled expression, in bytes.
const HEAP: usize = 8 << 20;

/// Bytes of the content reserved for notes.
const RESERVE: usize = 1024;

/// What is shown of what is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "")]
#[allow(
    missing_docs,
    reason = "a comment on a variant would make the schema three times as long"
)]
pub enum OutputMode {
    Content,
    Files,
    Count,
}

/// The arguments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Args {
    /// Regular expression.
    pub pattern: String,
    /// Directory or file.
    #[serde(default = "crate::search::here")]
    pub path: String,
    /// Only files that fit this glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    #[serde(default = "content")]
    #[allow(missing_docs, reason = "its values say it")]
    pub mode: OutputMode,
    #[serde(default)]
    #[allow(missing_docs, reason = "its name says it")]
    pub ignore_case: bool,
    /// Lines around each match.
    #[serde(default)]
    pub context: usize,
    /// Most matches shown.
    #[serde(default = "limit")]
    pub limit: u64,
}

fn content() -> OutputMode {
    OutputMode::Content
}

fn limit() -> u64 {
    DEFAULT_LIMIT
}

/// The resources that permission judges.
#[must_use]
pub fn touches(args: &Args) -> Vec<Touch> {
    vec![Touch::Read(args.path.clone().into())]
}

/// Runs one call.
///
/// # Errors
/// `FixInput` for a bad expression or glob (its content points at the place) or nothing at `path`; `Denied` outside of
/// the workspace; `Cancelled`.
pub async fn run(live: Arc<Search>, args: Args, cx: ToolContext) -> ToolResult {
    if args.limit == 0 || args.context > MAX_CONTEXT {
        return Err(fix(format!(
            "limit must be at least 1, and context at most {MAX_CONTEXT}"
        )));
    }
    let matcher = compile(&args)?;
    let filter = args.glob.as_deref().map(Pattern::parse).transpose()?;
    let at = live.start(&args.path)?;
    let context = if args.mode == OutputMode::Content {
        args.context
    } else {
        0
    };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP))
        .build();
    let mut found = GrepOutput::new(&args, &matcher);
    let mut unread = Gaps::default();
    let gaps = live.files(&at, &cx, |entry, below| {
        if filter.as_ref().is_some_and(|filter| !filter.fits(below)) {
            return Ok(true);
        }
        if live.skips(entry) {
            unread.secret(live.workspace.show(&entry.path));
            return Ok(true);
        }
        if found.closed && found.counted_on > COUNT_ON {
            found.at_least = true;
            return Ok(false);
        }
        if let Err(error) = found.search(&live, entry, &mut searcher, &cx.cancel) {
            go_on(&cx.cancel)?;
            unread.add(&format!("{}: {error}", live.workspace.show(&entry.path)));
        }
        Ok(true)
    })?;
    found.answer(&gaps.and(unread))
}

fn compile(args: &Args) -> Result<RegexMatcher, ToolError> {
    if args.pattern.is_empty() {
        return Err(fix("the pattern is empty; to list files use Glob"));
    }
    let mut builder = RegexMatcherBuilder::new();
    // `$` holds before `\r\n` too.
    builder
        .case_insensitive(args.ignore_case)
        .crlf(true)
        .multi_line(true);
    builder.size_limit(HEAP).dfa_size_limit(HEAP);
    builder.build(&args.pattern).map_err(|error| {
        let text = error.to_string();
        let why = if text.contains("\"\\n\"") || args.pattern.contains('\n') || args.pattern.contains("\\n") {
            "the pattern cannot contain a line end: Grep matches within one line; search for one of the lines"
        } else {
            "the pattern is not a valid regular expression; to find the text literally, put \\ before each of .*+?()[]{}|^$\\"
        };
        ToolError { content: cut(&text, RESERVE), ..fix(why) }
    })
}
