//! The result of an earlier call, read from the log: the requests may show a mark in its place.

use super::INLINE;
use crate::record::Record;
use crate::session::kind_of_store;
use crate::session::restore::decode;
use llm_worker::tool::{Excerpt, LineRange};
use llm_worker::{CallId, ErrorKind, ToolError};
use session_store::{ReadError, Reader};
use std::path::Path;

/// Records and bytes that are read at a time.
const PAGE: (usize, usize) = (1000, 4 << 20);

/// The content of this call's result, and the handle of its full output, if there is one.
pub(super) fn of(dir: &Path, call: CallId) -> Result<(String, Option<String>), ToolError> {
    let reader = Reader::open(dir).map_err(|error| unread(&error))?;
    let name = call.to_string();
    let mut before = reader.durable() + 1;
    while before > 1 {
        let page = reader
            .page(before, PAGE.0, PAGE.1)
            .map_err(|error| unread(&error))?;
        before = page.first().map_or(1, |frame| frame.seq);
        for frame in page
            .iter()
            .rev()
            .filter(|frame| frame.kind == "tool_finished" && frame.line.contains(&name))
        {
            let record = decode(frame)
                .map_err(|error| ToolError::new(ErrorKind::Corrupt, error.to_string()))?;
            if let Record::ToolFinished(finished) = record
                && finished.call == call
            {
                return Ok((
                    finished.outcome.content,
                    finished.output.map(|output| output.handle),
                ));
            }
        }
    }
    Err(ToolError::new(
        ErrorKind::FixInput,
        format!("call {name} has no result in this pod"),
    ))
}

fn unread(error: &ReadError) -> ToolError {
    ToolError::new(kind_of_store(error.kind()), error.to_string())
}

/// Lines of a content, as pages of stored outputs have them.
pub(super) fn page(content: &str, window: LineRange) -> Excerpt {
    let lines: Vec<&str> = content.lines().collect();
    let wanted = |lines: u64| usize::try_from(lines).unwrap_or(INLINE);
    let (first, shown) = match window {
        LineRange::From { from, lines: most } => {
            let first = usize::try_from(from.max(1))
                .unwrap_or(usize::MAX)
                .min(lines.len() + 1);
            (first, lines.iter().skip(first - 1).take(wanted(most)))
        }
        LineRange::Tail { lines: most } => {
            let before = lines.len().saturating_sub(wanted(most));
            (before + 1, lines.iter().skip(before).take(lines.len()))
        }
    };
    let shown: Vec<&str> = shown.copied().collect();
    let first = first as u64;
    let total = lines.len() as u64;
    let last = (first + shown.len() as u64).saturating_sub(1);
    Excerpt {
        text: shown.join("\n"),
        first,
        last,
        total,
    }
}
