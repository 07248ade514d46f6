//! Results and errors of tools, within their limits. Does not depend on any tool.

use authority::text::{Lines, escape_within};
use llm_worker::{ErrorKind, ToolError, ToolOutput};
use tokio_util::sync::CancellationToken;

/// The most bytes of `content` these tools return. With the summary it stays below the 32 KiB from which a host cuts,
/// so that a tool's hint on how to continue is never cut off.
pub const CONTENT_MAX: usize = 31 * 1024;

/// The most bytes of a summary or an error's message: one line.
pub const SUMMARY_MAX: usize = 512;

/// The mark where text was cut.
const CUT: &str = "…";

/// A result whose summary is made one line of limited length.
#[must_use]
pub fn answer(summary: &str, content: String) -> ToolOutput {
    ToolOutput {
        summary: one_line(summary),
        content,
        data: None,
    }
}

/// An error whose message is made one line of limited length.
#[must_use]
pub fn fail(kind: ErrorKind, message: impl AsRef<str>) -> ToolError {
    ToolError::new(kind, one_line(message.as_ref()))
}

/// A `FixInput` error.
pub(crate) fn fix(message: impl AsRef<str>) -> ToolError {
    fail(ErrorKind::FixInput, message)
}

/// Converts an error of a handle to a tool error.
#[must_use]
pub fn refused(error: &authority::Error) -> ToolError {
    use authority::ErrorKind as Theirs;
    let kind = match error.kind() {
        Theirs::FixInput => ErrorKind::FixInput,
        Theirs::Denied | Theirs::Revoked => ErrorKind::Denied,
        Theirs::Unavailable => ErrorKind::Unavailable,
        Theirs::Exhausted => ErrorKind::Exhausted,
        Theirs::Cancelled => ErrorKind::Cancelled,
        Theirs::Bug => ErrorKind::Bug,
    };
    fail(kind, error.to_string())
}

/// A system error while reading a path, as a tool error.
pub(crate) fn unreadable(shown: &str, error: &std::io::Error) -> ToolError {
    fail(
        ErrorKind::Unavailable,
        format!("{shown}: reading failed: {error}"),
    )
}

/// Fails if the call was cancelled; called for each file or 64 KiB.
pub(crate) fn go_on(cancel: &CancellationToken) -> Result<(), ToolError> {
    if cancel.is_cancelled() {
        Err(fail(ErrorKind::Cancelled, "cancelled"))
    } else {
        Ok(())
    }
}

/// `1 file`, `2 files`.
#[must_use]
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// At most `max` bytes of `text`, ending on a character.
pub(crate) fn prefix(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// `text` unchanged, or its first `max` bytes and a mark.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        text.to_owned()
    } else {
        format!("{}{CUT}", prefix(text, max))
    }
}

fn one_line(text: &str) -> String {
    let flat = text.replace(['\n', '\r', '\t'], " ");
    escape_within(&flat, Lines::One, SUMMARY_MAX - CUT.len())
}

/// Lines of content up to a bound.
pub(crate) struct ContentBuilder {
    text: String,
    max: usize,
}

impl ContentBuilder {
    /// Leaves `reserve` of [`CONTENT_MAX`] for what is added at the end.
    pub(crate) fn new(reserve: usize) -> Self {
        Self {
            text: String::new(),
            max: CONTENT_MAX - reserve,
        }
    }

    /// Adds a line; returns `false` and adds nothing if it does not fit.
    #[must_use]
    pub(crate) fn line(&mut self, line: &str) -> bool {
        let fits = self.text.len() + line.len() < self.max;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The content, with notes from the reserve as its last lines.
    pub(crate) fn finish(mut self, notes: &[String]) -> String {
        for note in notes {
            let room = CONTENT_MAX.saturating_sub(self.text.len() + 1 + CUT.len());
            self.text.push_str(&cut(note, room));
            self.text.push('\n');
        }
        self.text.pop();
        self.text
    }
}
