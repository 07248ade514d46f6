//! Cells of a transcript: what they hold, and how they look. Does not know which records they come from.

use crate::arguments::{fields, replacements, subject};
use crate::call::{CallBody, CallCell, CallState, unrepeated};
use crate::count::count;
use crate::diff::{beside, diff};
use crate::for_people::for_people;
use crate::highlight;
use crate::line::Line;
use crate::markdown::markdown;
use crate::note::labelled;
use crate::style::{Theme, Tone};
use crate::tail::output_tail;
use crate::transcript::call_state;
use protocol::record::ToolFinished;
use std::time::Duration;

/// Lines of an input and of a notice that are shown while it is closed.
const INPUT_LINES: usize = 12;
const NOTICE_LINES: usize = 3;

/// Columns of a narrow terminal.
const NARROW: usize = 40;

/// Lines at the end of the output of a failed call that are shown while it is closed.
const FAILED_LINES: usize = 5;

/// A part of the transcript. Its look depends on its revision, the width, the theme and whether it is open.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The number of its first record; of one without a record a number of this screen, above [`LOCAL`].
    pub(super) id: u64,
    pub(super) revision: u32,
    pub(super) kind: CellKind,
}

/// The first number of a cell that no record has.
pub(super) const LOCAL: u64 = 1 << 63;

#[derive(Clone, Debug, Hash)]
pub(super) enum CellKind {
    /// With a text that stands for it if its record was not seen.
    Input {
        input: u64,
        text: String,
        is_known: bool,
    },
    Answer(String),
    Reasoning(String),
    Call(Box<ShownCall>),
    Notice(Notice),
}

/// A line of the program, with what stands below it.
#[derive(Clone, Debug, Hash)]
pub(super) struct Notice {
    pub(super) sign: &'static str,
    pub(super) tone: Tone,
    pub(super) text: String,
    /// The question whose answer this is.
    pub(super) approval: Option<u64>,
    /// The record that it is about.
    pub(super) about: Option<u64>,
}

/// What records say about a call.
#[derive(Clone, Debug, Hash)]
pub struct ShownCall {
    pub call: String,
    pub name: String,
    pub(super) arguments: String,
    pub(super) state: CallState,
    pub(super) started_us: Option<u64>,
    pub(super) ms: u64,
    /// A line about its result, or its question.
    pub summary: String,
    pub(super) content: String,
    /// Who allowed or refused it, and what it did.
    pub(super) facts: Vec<String>,
    pub(super) warnings: Vec<String>,
    /// Its first record was not seen.
    pub(super) headless: bool,
    /// A person asked for it, and reads its output.
    pub(super) is_command: bool,
}

/// How much of a call is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallExtent {
    /// What failed, and what changed; the rest can be opened.
    Closed,
    Open,
    /// Printed once: also the end of what a tool whose output people read gave.
    Printed {
        reads_output: bool,
    },
}

/// What the look of a cell depends on besides records.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellNow<'a> {
    pub(super) ms: u64,
    /// The output of a call that runs, and the rows for it.
    pub(super) output: Option<(&'a str, usize)>,
}

impl ShownCall {
    /// A call that was not judged yet.
    #[must_use]
    pub fn new(call: String, name: String, arguments: String) -> Self {
        let summary = String::new();
        let content = String::new();
        let facts = Vec::new();
        let warnings = Vec::new();
        let state = CallState::Running;
        let started_us = None;
        let ms = 0;
        let headless = false;
        let is_command = false;
        Self {
            call,
            name,
            arguments,
            state,
            started_us,
            ms,
            summary,
            content,
            facts,
            warnings,
            headless,
            is_command,
        }
    }

    /// One whose first record was not seen.
    #[must_use]
    pub fn headless(call: String) -> Self {
        let mut facts = Self::new(call.clone(), call, String::new());
        facts.headless = true;
        facts
    }

    /// It has its result.
    pub fn finish(&mut self, done: &ToolFinished) {
        (self.state, self.ms) = (call_state(&done.outcome.status), done.ms);
        self.summary = match done.command.as_ref().and_then(|command| command.exit) {
            Some(0) if self.state == CallState::Ok => String::new(),
            Some(exit) => format!("exit {exit}"),
            None => done.outcome.summary.clone(),
        };
        self.content = done.outcome.content.clone().unwrap_or_default();
        self.warnings = done.warnings.clone().unwrap_or_default();
    }

    /// It waits for a person.
    pub fn ask(&mut self, tool: &str, arguments: &str) {
        self.state = CallState::Waiting;
        self.called(tool, arguments);
    }

    /// What was called, from a later record than the one that was not seen.
    pub(super) fn called(&mut self, name: &str, arguments: &str) {
        if self.headless {
            (self.name, self.arguments) = (name.to_owned(), arguments.to_owned());
        }
    }

    fn took(&self, now_ms: u64) -> Duration {
        let running = self.started_us.filter(|_| self.state == CallState::Running);
        match running {
            Some(since) => Duration::from_secs(now_ms.saturating_sub(since / 1000) / 1000),
            None => Duration::from_millis(self.ms),
        }
    }

    /// Its line while it runs for that long, with what it is about cut.
    #[must_use]
    pub fn running(&self, took: Duration, width: usize) -> Line {
        let subject = subject(&self.arguments);
        self.cell(&subject, took, CallBody::Nothing).running(width)
    }

    fn cell<'a>(&'a self, subject: &'a str, took: Duration, body: CallBody<'a>) -> CallCell<'a> {
        CallCell {
            name: &self.name,
            subject,
            state: self.state,
            took,
            summary: unrepeated(&self.summary, subject),
            body,
        }
    }

    /// Its lines when it has run for that long.
    #[must_use]
    pub fn lines(&self, width: usize, view: CallExtent, took: Duration) -> Vec<Line> {
        let subject = subject(&self.arguments);
        let is_diff = self.content.starts_with("@@ -") && self.state == CallState::Ok;
        let body = match (view, self.state) {
            (CallExtent::Open, _) => CallBody::Nothing,
            (CallExtent::Closed, CallState::Ok | CallState::Failed) if self.is_command => {
                CallBody::Asked(&self.content)
            }
            (CallExtent::Closed, CallState::Failed) => CallBody::Output(last_lines(&self.content)),
            (CallExtent::Printed { reads_output: true }, CallState::Ok) => {
                CallBody::Output(&self.content)
            }
            _ if is_diff => CallBody::Diff(&self.content),
            (CallExtent::Closed, _) | (_, CallState::Ok) => CallBody::Nothing,
            (CallExtent::Printed { .. }, _) => CallBody::Output(&self.content),
        };
        let mut lines = self.cell(&subject, took, body).lines(width);
        if view == CallExtent::Open {
            lines.extend(self.details(width, is_diff));
        }
        lines
    }

    /// The warnings about it.
    #[must_use]
    pub fn warnings(&self, width: usize) -> Vec<Line> {
        let warnings = self.warnings.iter();
        warnings
            .flat_map(|warning| labelled("warning:", Tone::Refused, warning, width))
            .collect()
    }

    fn details(&self, width: usize, is_diff: bool) -> Vec<Line> {
        let margin = Line::of("  ", Tone::Plain);
        let deep = Line::of("    ", Tone::Plain);
        let mut lines = Vec::new();
        let shown = fields(&self.arguments);
        let file = shown
            .iter()
            .find(|(name, _)| name == FILE)
            .map_or_else(String::new, |(_, file)| file.clone());
        lines.extend(argument_lines(
            shown,
            &file,
            Tone::Plain,
            width,
            &margin,
            &deep,
        ));
        for fact in self.facts.iter().flat_map(|fact| fact.lines()) {
            lines.extend(Line::of_output(fact, Tone::Dim).wrap(width, &margin, &deep));
        }
        let content = for_people(&self.content);
        let content = content.trim_end();
        if is_diff {
            let room = width.saturating_sub(margin.width()).max(1);
            let shown = diff(&subject(&self.arguments), content, room, usize::MAX);
            lines.extend(
                shown
                    .iter()
                    .flat_map(|line| line.chop(width, &margin, &margin)),
            );
        } else if !content.is_empty() {
            let shown = content
                .split('\n')
                .map(|line| Line::of_output(line, Tone::Plain));
            lines.extend(shown.flat_map(|line| line.chop(width, &margin, &margin)));
        }
        lines
    }
}

impl Cell {
    /// Its lines in at most `width` columns.
    pub(super) fn lines(
        &self,
        width: usize,
        theme: Theme,
        open: bool,
        now: CellNow<'_>,
    ) -> Vec<Line> {
        let none = Line::default();
        match &self.kind {
            CellKind::Input { text, .. } => {
                let rest = Line::of("  ", Tone::Plain);
                let lines = texts(
                    text,
                    Tone::Strong,
                    width,
                    &Line::of("> ", Tone::Strong),
                    &rest,
                );
                bounded(
                    lines,
                    if open { usize::MAX } else { INPUT_LINES },
                    &rest,
                    width,
                )
            }
            CellKind::Answer(text) => markdown(text, width, theme),
            CellKind::Reasoning(text) if open => {
                let margin = Line::of("  ", Tone::Dim);
                texts(text, Tone::Dim, width, &Line::of("∴ ", Tone::Dim), &margin)
            }
            CellKind::Reasoning(text) => {
                let mut parts = text.trim().lines();
                let first =
                    Line::of("∴ ", Tone::Dim).with(parts.next().unwrap_or_default(), Tone::Dim);
                let more = parts.count();
                let end = if more > 0 {
                    format!(" · {}", count(more as u64, "more line"))
                } else {
                    String::new()
                };
                let end = Line::of(&end, Tone::Dim);
                let mut line = first.cut(width.saturating_sub(end.width()));
                line.append(&end);
                vec![line.cut(width)]
            }
            CellKind::Call(call) => {
                let view = if open {
                    CallExtent::Open
                } else {
                    CallExtent::Closed
                };
                let mut lines = call.lines(width, view, call.took(now.ms));
                if let Some((text, rows)) = now.output {
                    lines.extend(output_tail(text, width, rows));
                }
                lines.extend(call.warnings(width));
                lines
            }
            CellKind::Notice(Notice {
                sign, tone, text, ..
            }) => {
                let first = Line::of(sign, *tone);
                let rest = Line::of(&" ".repeat(first.width()), Tone::Plain);
                let lines = texts(text, *tone, width, &first, &rest);
                bounded(
                    lines,
                    if open { usize::MAX } else { NOTICE_LINES },
                    &none,
                    width,
                )
            }
        }
    }

    /// Whether an empty line stands before it, behind a cell.
    pub(super) fn stands_apart(&self, before: &Cell) -> bool {
        let is_heading =
            matches!(&self.kind, CellKind::Notice(notice) if notice.tone == Tone::Heading);
        is_heading || !(self.is_incidental() && before.is_incidental())
    }

    fn is_incidental(&self) -> bool {
        !matches!(self.kind, CellKind::Input { .. } | CellKind::Answer(_))
    }

    /// Whether it looks different when it is open, on a terminal that is narrow enough.
    pub(super) fn opens(&self) -> bool {
        match &self.kind {
            CellKind::Answer(_) => false,
            CellKind::Call(_) => true,
            CellKind::Reasoning(text) => may_exceed(text, 0),
            CellKind::Input { text, .. } => may_exceed(text, INPUT_LINES),
            CellKind::Notice(notice) => may_exceed(&notice.text, NOTICE_LINES),
        }
    }

    /// Whether its look changes with the time.
    pub(super) fn runs_since_us(&self) -> Option<u64> {
        match &self.kind {
            CellKind::Call(call) if call.state == CallState::Running => call.started_us,
            _ => None,
        }
    }

    /// The call that it is, if that runs.
    pub(super) fn running_call(&self) -> Option<&str> {
        match &self.kind {
            CellKind::Call(call) if call.state == CallState::Running => Some(&call.call),
            _ => None,
        }
    }

    /// Whether later records change its look.
    pub(super) fn is_pending(&self) -> bool {
        matches!(&self.kind, CellKind::Call(call) if matches!(call.state, CallState::Running | CallState::Waiting))
    }

    /// Whether its first record was seen, so that every screen has it like this.
    pub(super) fn is_recorded_whole(&self) -> bool {
        match &self.kind {
            CellKind::Call(call) => !call.headless,
            CellKind::Input { is_known, .. } => *is_known,
            _ => self.id < LOCAL,
        }
    }

    /// The text that is copied, and searched.
    pub(super) fn text(&self) -> String {
        match &self.kind {
            CellKind::Input { text, .. } | CellKind::Answer(text) | CellKind::Reasoning(text) => {
                text.clone()
            }
            CellKind::Notice(notice) => notice.text.clone(),
            CellKind::Call(call) => {
                let values: Vec<String> = fields(&call.arguments)
                    .into_iter()
                    .map(|(_, value)| value)
                    .collect();
                let parts = [&call.name, &values.join("\n"), &call.summary, &call.content];
                let parts: Vec<&str> = parts
                    .iter()
                    .map(|part| part.as_str())
                    .filter(|part| !part.is_empty())
                    .collect();
                parts.join("\n")
            }
        }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let text = match &self.kind {
            CellKind::Input { text, .. } | CellKind::Answer(text) | CellKind::Reasoning(text) => {
                text.len()
            }
            CellKind::Notice(notice) => notice.text.len(),
            CellKind::Call(call) => {
                let lists = call
                    .facts
                    .iter()
                    .chain(&call.warnings)
                    .map(String::len)
                    .sum::<usize>();
                call.arguments.len() + call.content.len() + call.summary.len() + lists
            }
        };
        size_of::<Self>() + size_of::<ShownCall>() + text
    }
}

/// Columns for the value behind the name of an argument, at least.
const VALUE: usize = 12;

/// The argument that names the file of an edit.
pub(crate) const FILE: &str = "path";

/// The names and values of a call's arguments in full; what replaces a text as the lines that go and that come, with the
/// colours of the code of `file`.
pub(super) fn argument_lines(
    fields: Vec<(String, String)>,
    file: &str,
    tone: Tone,
    width: usize,
    margin: &Line,
    deep: &Line,
) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, value) in fields {
        let Some(edits) = replacements(&value) else {
            let value: Vec<Line> = value
                .split('\n')
                .map(|part| Line::of_output(part, tone))
                .collect();
            lines.extend(value_lines(&name, &value, width, margin, deep));
            continue;
        };
        lines.push(argument_name(&name, width, margin, deep).cut(width));
        for (old, new) in &edits {
            for (text, sign, tone) in [(old, "- ", Tone::Removed), (new, "+ ", Tone::Added)] {
                let mut before = deep.clone();
                before.append(&Line::of(sign, tone));
                let gone = text.is_empty();
                let mut code = highlight::of_file(file, text);
                let parts = text
                    .split('\n')
                    .filter(|_| !gone)
                    .map(|part| Line::of_output(part, tone));
                let parts = parts.map(|part| match &mut code {
                    Some(code) => beside(code.line(&part), tone),
                    None => part,
                });
                lines.extend(parts.flat_map(|part| part.chop(width, &before, deep)));
            }
        }
    }
    lines
}

/// The lines of a value behind its name.
pub(super) fn value_lines(
    name: &str,
    value: &[Line],
    width: usize,
    margin: &Line,
    deep: &Line,
) -> Vec<Line> {
    let first = argument_name(name, width, margin, deep);
    let parts = value.iter().enumerate();
    parts
        .flat_map(|(at, part)| part.chop(width, if at == 0 { &first } else { deep }, deep))
        .collect()
}

fn argument_name(name: &str, width: usize, margin: &Line, deep: &Line) -> Line {
    let label = Line::of(&format!("{name}: "), Tone::Dim);
    let mut first = margin.clone();
    // A name as wide as the terminal would leave no margin that tells the value from lines of the host.
    first.append(&label.cut(width.saturating_sub(deep.width() + VALUE)));
    first
}

/// The lines of a text; its first one behind `first`.
pub(super) fn texts(text: &str, tone: Tone, width: usize, first: &Line, rest: &Line) -> Vec<Line> {
    let mut before = Some(first);
    let parts = text.trim_end().split('\n');
    parts
        .flat_map(|part| {
            Line::of_output(part, tone).wrap(width, before.take().unwrap_or(rest), rest)
        })
        .collect()
}

/// The last lines of an output.
fn last_lines(text: &str) -> &str {
    let text = text.trim_end();
    let start = text
        .rmatch_indices('\n')
        .nth(FAILED_LINES - 1)
        .map_or(0, |(at, _)| at + 1);
    text.get(start..).unwrap_or_default()
}

/// Whether a text may have more lines than this and one more.
fn may_exceed(text: &str, lines: usize) -> bool {
    text.trim_end().lines().count() > lines + 1 || text.len() > (lines + 1) * NARROW
}

/// The first of the lines, and how many there are more.
fn bounded(mut lines: Vec<Line>, most: usize, margin: &Line, width: usize) -> Vec<Line> {
    let more = lines.len().saturating_sub(most);
    // A note takes a line itself.
    if more > 1 {
        lines.truncate(most);
        let mut note = margin.clone();
        note.append(&Line::of(
            &format!("… {}", count(more as u64, "more line")),
            Tone::Dim,
        ));
        lines.push(note.cut(width));
    }
    lines
}
