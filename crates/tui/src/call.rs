//! A call of a tool: one line, and its result below. Depends on no tool.

use crate::count::{count, duration};
use crate::diff::diff;
use crate::for_people::for_people;
use crate::line::Line;
use crate::style::Tone;
use std::time::Duration;

/// Lines of the output of a call that went well, and of one that failed.
const TAIL: usize = 5;
const FAILED: usize = 40;

/// Lines of a diff.
const DIFF: usize = 16;

/// A shorter time is not worth telling.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallState {
    Running,
    /// For a person.
    Waiting,
    Ok,
    Failed,
    Refused,
    /// Cancelled, or cut off by the end of a process.
    Cancelled,
}

impl CallState {
    /// What stands before the call.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Running => "◦",
            Self::Waiting => "?",
            Self::Ok => "✓",
            Self::Failed => "✗",
            Self::Refused => "⊘",
            Self::Cancelled => "…",
        }
    }
}

/// What a call gave, besides its summary.
#[derive(Clone, Copy, Debug)]
pub enum CallBody<'a> {
    Nothing,
    /// The last lines; all of it after a failure.
    Output(&'a str),
    /// What a person wants to read: as much of it as after a failure.
    Asked(&'a str),
    /// A unified diff.
    Diff(&'a str),
}

/// A call as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct CallCell<'a> {
    pub name: &'a str,
    /// What it is about: the first line of a command, a path.
    pub subject: &'a str,
    pub state: CallState,
    pub took: Duration,
    /// One line about the result; may be empty.
    pub summary: &'a str,
    pub body: CallBody<'a>,
}

impl CallCell<'_> {
    /// The lines of the call in at most `width` columns.
    #[must_use]
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let summary = Line::of_output(self.summary, self.tone_of_summary());
        let beside = self.is_incidental() && !summary.is_empty();
        let whole = self.head(if beside { Some(&summary) } else { None });
        let fits = whole.width() <= width;
        let mut lines = vec![if fits { whole } else { self.short_head(width) }];
        let is_told = beside && fits;
        if !summary.is_empty() && !is_told {
            lines.extend(summary.wrap(width, &margin(), &margin()));
        }
        lines.extend(self.body(width));
        lines
    }

    /// One line that says what runs now.
    #[must_use]
    pub fn running(&self, width: usize) -> Line {
        self.short_head(width)
    }

    /// A result that nobody waits for stands behind its call.
    fn is_incidental(&self) -> bool {
        matches!(self.state, CallState::Ok | CallState::Running)
    }

    fn tone_of_summary(&self) -> Tone {
        match self.state {
            CallState::Failed => Tone::Removed,
            CallState::Refused => Tone::Refused,
            CallState::Waiting => Tone::Waiting,
            CallState::Running | CallState::Ok | CallState::Cancelled => Tone::Dim,
        }
    }

    fn named(&self) -> Line {
        let tone = match self.state {
            CallState::Running | CallState::Cancelled => Tone::Dim,
            CallState::Waiting => Tone::Waiting,
            CallState::Ok => Tone::Ok,
            CallState::Failed => Tone::Failed,
            CallState::Refused => Tone::Refused,
        };
        Line::of(self.state.sign(), tone)
            .with(" ", Tone::Plain)
            .with(self.name, Tone::Strong)
    }

    fn subject(&self) -> Line {
        let mut lines = self.subject.trim().lines();
        let first = Line::of_output(lines.next().unwrap_or_default(), Tone::Plain);
        if lines.next().is_some() {
            first.with(" …", Tone::Dim)
        } else {
            first
        }
    }

    /// What stands behind the subject.
    fn end(&self, summary: Option<&Line>) -> Line {
        let mut end = Line::default();
        if let Some(summary) = summary {
            end = end.with(" · ", Tone::Dim);
            end.append(summary);
        }
        if self.took >= AT_ONCE {
            end = end.with(&format!(" · {}", duration(self.took)), Tone::Dim);
        }
        end
    }

    fn head(&self, summary: Option<&Line>) -> Line {
        let mut line = self.named();
        let subject = self.subject();
        if !subject.is_empty() {
            line = line.with(" ", Tone::Plain);
            line.append(&subject);
        }
        line.append(&self.end(summary));
        line
    }

    /// The subject is cut, so that the time is seen.
    fn short_head(&self, width: usize) -> Line {
        let whole = self.head(None);
        if whole.width() <= width {
            return whole;
        }
        let mut line = self.named().with(" ", Tone::Plain);
        let end = self.end(None);
        let room = width.saturating_sub(line.width() + end.width()).max(1);
        line.append(&self.subject().cut(room));
        line.append(&end);
        line.cut(width)
    }

    fn body(&self, width: usize) -> Vec<Line> {
        let room = width.saturating_sub(margin().width()).max(1);
        match self.body {
            CallBody::Nothing => Vec::new(),
            CallBody::Diff(text) => diff(self.subject.trim(), text, room, DIFF)
                .iter()
                .flat_map(|line| line.chop(width, &margin(), &margin()))
                .collect(),
            CallBody::Output(text) | CallBody::Asked(text) => {
                let is_tail =
                    self.state == CallState::Ok && matches!(self.body, CallBody::Output(_));
                let text = for_people(text);
                let most = if is_tail { TAIL } else { FAILED };
                let lines: Vec<&str> = text
                    .trim_end()
                    .lines()
                    .filter(|line| !line.is_empty())
                    .collect();
                let left = lines.len().saturating_sub(most);
                let note = (left > 0).then(|| {
                    Line::of(&format!("… {}", count(left as u64, "more line")), Tone::Dim)
                });
                let lines = lines.get(left..).unwrap_or_default().iter();
                let tone = if is_tail { Tone::Dim } else { Tone::Plain };
                let shown = lines.map(|line| Line::of_output(line, tone));
                let indented = |line: Line| match is_tail {
                    true => line.cut(room).chop(width, &margin(), &margin()),
                    false => line.wrap(width, &margin(), &margin()),
                };
                note.into_iter().chain(shown).flat_map(indented).collect()
            }
        }
    }
}

/// The summary of a call without its subject, which stands in the same line.
#[must_use]
pub(crate) fn unrepeated<'a>(summary: &'a str, subject: &str) -> &'a str {
    summary
        .strip_prefix(subject)
        .and_then(|rest| rest.strip_prefix(": "))
        .unwrap_or(summary)
}

fn margin() -> Line {
    Line::of("  ", Tone::Plain)
}
