//! ReadOutput: a page of an earlier full output.

use crate::answer::{CONTENT_MAX, answer, cut, fix, prefix};
use llm_worker::tool::{Excerpt, LineRange, Touch};
use llm_worker::{ToolContext, ToolEffect, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool's name.
pub const NAME: &str = "ReadOutput";
/// The description for the model.
pub const ABOUT: &str =
    "Page through an earlier tool output that was cut, by the handle given there.";
/// The effect of a repeated call.
pub const EFFECT: ToolEffect = ToolEffect::ReadOnly;

/// The default number of lines shown.
pub const DEFAULT_LINES: u64 = 200;

/// Bytes of the content reserved for the hint on how to continue.
const RESERVE: usize = 128;

/// The arguments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Args {
    /// The output's handle.
    pub handle: String,
    /// First line, from 1.
    #[serde(default = "first")]
    pub offset: u64,
    /// The last lines instead.
    #[serde(default)]
    pub tail: bool,
    /// Number of lines.
    #[serde(default = "lines")]
    pub lines: u64,
}

fn first() -> u64 {
    1
}

fn lines() -> u64 {
    DEFAULT_LINES
}

/// The resources that permission judges: none outside of the session.
#[must_use]
pub fn touches(_: &Args) -> Vec<Touch> {
    Vec::new()
}

/// Runs one call.
///
/// # Errors
/// `FixInput` past the end, for contradicting arguments, or (the host's) for an unknown handle.
pub async fn run(args: Args, cx: ToolContext) -> ToolResult {
    if args.offset == 0 || args.lines == 0 {
        return Err(fix("offset and lines must be at least 1"));
    }
    if args.tail && args.offset != 1 {
        return Err(fix("give offset or tail, not both"));
    }
    let from = args.offset;
    let lines = args.lines;
    let window = if args.tail {
        LineRange::Tail { lines }
    } else {
        LineRange::From { from, lines }
    };
    let Excerpt {
        text,
        mut first,
        mut last,
        total,
    } = cx.host.read_output(&args.handle, window)?;
    let handle = cut(&args.handle, RESERVE);
    if total == 0 {
        return Ok(answer(&format!("{handle}: empty output"), String::new()));
    }
    if text.is_empty() && from > total {
        return Err(fix(format!(
            "{handle} has {total} lines; offset {from} is past its end"
        )));
    }
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let (mut text, dropped) = if args.tail {
        end(text)
    } else {
        beginning(text)
    };
    if args.tail {
        first = (first + dropped).min(last);
    } else {
        last = last.saturating_sub(dropped).max(first);
    }
    if !args.tail && last < total {
        text.push_str(&format!(
            "\n(more lines follow; go on with offset={})",
            last + 1
        ));
    }
    let range = if first == last {
        format!("line {first}")
    } else {
        format!("lines {first}-{last}")
    };
    Ok(answer(&format!("{handle}: {range} of {total}"), text))
}

/// The lines from the beginning that fit, and the number of omitted ones.
fn beginning(text: &str) -> (String, u64) {
    let max = CONTENT_MAX - RESERVE;
    if text.len() <= max {
        return (text.to_owned(), 0);
    }
    let fits = prefix(text, max);
    // A single line that does not fit is cut.
    let fits = fits
        .rfind('\n')
        .and_then(|end| fits.get(..end))
        .unwrap_or(fits);
    let rest = text.get(fits.len()..).unwrap_or_default();
    (fits.to_owned(), rest.matches('\n').count() as u64)
}

/// The lines from the end that fit, and the number of omitted ones.
fn end(text: &str) -> (String, u64) {
    let max = CONTENT_MAX - RESERVE;
    if text.len() <= max {
        return (text.to_owned(), 0);
    }
    let start = text.ceil_char_boundary(text.len() - max);
    let fits = text.get(start..).unwrap_or_default();
    let fits = fits.split_once('\n').map_or(fits, |(_, rest)| rest);
    let gone = text.get(..text.len() - fits.len()).unwrap_or_default();
    (fits.to_owned(), gone.matches('\n').count() as u64)
}
