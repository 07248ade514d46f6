//! The calls and waits of a run on a terminal: cells for what has ended, and one block, drawn over again, for what goes
//! on.

use crate::look::Look;
use crate::show::sandboxed;
use client::model::Outputs;
use host::remedy::TERMS;
use llm_worker::effect::Delta;
use llm_worker::{Item, ResultStatus};
use pod::control::OutputPart;
use pod::record::{ApprovalRequested, Record, ToolFinished};
use std::time::{Duration, Instant};
use tui::arguments::subject;
use tui::{CallBody, CallCell, CallState, Line, Tone, labelled, output_tail, unrepeated};

/// A call that ends sooner, and a model that answers sooner, are not worth a line.
const CALL_SHOWN: Duration = Duration::from_millis(400);
const WAIT_SHOWN: Duration = Duration::from_secs(2);

/// Characters at the end of an unfinished answer that the line may show.
const TAIL: usize = 400;

/// What goes on in a run.
pub(super) struct Cells {
    model: String,
    calls: Vec<OpenCall>,
    outputs: Outputs,
    /// What the model does, and since when.
    wait: Option<(ModelState, Instant)>,
}

struct OpenCall {
    id: String,
    name: String,
    subject: String,
    /// None while it is judged, or waits.
    started: Option<Instant>,
}

#[derive(Clone, PartialEq, Eq)]
enum ModelState {
    Silent,
    Thinks,
    Answers,
    Calls(String),
}

/// Rows for the output of the call that runs, where there is room.
const MIN_OUTPUT: usize = 3;
const MAX_OUTPUT: usize = 8;

/// The lines for what goes on, and when they change without an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LiveBlock {
    pub(super) lines: Vec<Line>,
    pub(super) changes: Option<Instant>,
}

impl Cells {
    pub(super) fn new() -> Self {
        Self {
            model: "the model".to_owned(),
            calls: Vec::new(),
            outputs: Outputs::default(),
            wait: None,
        }
    }

    /// What calls wrote.
    pub(super) fn outputs(&mut self, parts: &[OutputPart]) {
        parts.iter().for_each(|part| {
            self.outputs
                .take(&part.call.to_string(), &part.text, part.anew)
        });
    }

    /// `streams`: words of an answer are shown as they come.
    pub(super) fn delta(&mut self, delta: &Delta, streams: bool, now: Instant) {
        let does = match delta {
            Delta::Text(_) => ModelState::Answers,
            Delta::Reasoning(_) => ModelState::Thinks,
            Delta::CallStarted { name, .. } => ModelState::Calls(name.clone()),
            Delta::Retrying { .. } => ModelState::Silent,
        };
        let is_seen = streams && does == ModelState::Answers;
        if is_seen || self.wait.as_ref().is_none_or(|(before, _)| *before != does) {
            self.wait = Some((does, now));
        }
    }

    /// Notes what a record says; gives what is printed of it.
    pub(super) fn record(&mut self, record: &Record, look: Look, now: Instant) -> Vec<Line> {
        match record {
            Record::SurfaceSet(set) => self.model = set.surface.model.to_string(),
            Record::Request(_) => self.wait = Some((ModelState::Silent, now)),
            Record::Response(_) => self.wait = None,
            Record::TurnFinished(_) => {
                (self.wait, self.calls) = (None, Vec::new());
                self.outputs.clear();
            }
            Record::ItemAdded(added) => {
                if let Item::ToolCall {
                    id,
                    name,
                    arguments,
                } = &added.item
                {
                    let (id, name, subject) = (id.to_string(), name.clone(), subject(arguments));
                    self.calls.push(OpenCall {
                        id,
                        name,
                        subject,
                        started: None,
                    });
                }
            }
            Record::ToolStarted(started) => {
                let id = started.call.to_string();
                self.calls
                    .iter_mut()
                    .filter(|call| call.id == id)
                    .for_each(|call| call.started = Some(now));
            }
            Record::ApprovalRequested(asked) => return self.waiting(asked, look.width()),
            Record::ToolFinished(done) => return self.finished(done, look.width()),
            _ => {}
        }
        Vec::new()
    }

    fn waiting(&self, asked: &ApprovalRequested, width: usize) -> Vec<Line> {
        let ApprovalRequested {
            approval,
            tool,
            arguments,
            question,
            ..
        } = asked;
        let (subject, summary) = (
            subject(arguments),
            format!("approval {approval}: {question}"),
        );
        let (state, took, body) = (CallState::Waiting, Duration::ZERO, CallBody::Nothing);
        CallCell {
            name: tool,
            subject: &subject,
            state,
            took,
            summary: &summary,
            body,
        }
        .lines(width)
    }

    fn finished(&mut self, done: &ToolFinished, width: usize) -> Vec<Line> {
        let id = done.call.to_string();
        self.outputs.forget(&id);
        let open = self
            .calls
            .iter()
            .position(|call| call.id == id)
            .map(|at| self.calls.remove(at));
        // Its beginning may have come before the first record that was shown.
        let OpenCall { name, subject, .. } = open.unwrap_or_else(|| OpenCall::unknown(id));
        let state = match done.outcome.status {
            ResultStatus::Ok => CallState::Ok,
            ResultStatus::Error => CallState::Failed,
            ResultStatus::Refused => CallState::Refused,
            ResultStatus::Cancelled | ResultStatus::Interrupted => CallState::Cancelled,
        };
        let (summary, content) = (&done.outcome.summary, &done.outcome.content);
        let body = match state {
            CallState::Ok if name == TERMS.shell => CallBody::Output(content),
            CallState::Ok if content.starts_with("@@ -") => CallBody::Diff(content),
            CallState::Ok => CallBody::Nothing,
            _ => CallBody::Output(content),
        };
        let summary = unrepeated(summary, &subject, state);
        let took = Duration::from_millis(done.ms);
        let mut lines = CallCell {
            name: &name,
            subject: &subject,
            state,
            took,
            summary,
            body,
        }
        .lines(width);
        if name == TERMS.shell {
            let note = sandboxed::remedy(content);
            lines.extend(
                note.iter()
                    .flat_map(|note| labelled("!", Tone::Refused, note, width)),
            );
        }
        let warnings = done.warnings.iter();
        lines.extend(
            warnings.flat_map(|warning| labelled("warning:", Tone::Refused, warning, width)),
        );
        lines
    }

    /// What goes on now, in at most `width` columns of a terminal with so many rows; `answer` is the part of an answer that is not printed yet.
    pub(super) fn live(
        &self,
        answer: &str,
        (width, rows): (usize, usize),
        now: Instant,
    ) -> LiveBlock {
        let mut running: Vec<_> = self
            .calls
            .iter()
            .filter_map(|call| Some((call.started?, call)))
            .collect();
        running.sort_by_key(|(since, _)| *since);
        if let Some((since, call)) = running.first() {
            let mut live = timed(*since, CALL_SHOWN, now, |took| {
                call.running(running.len() - 1, took, width)
            });
            if let Some(output) = self.outputs.of(&call.id).filter(|_| !live.lines.is_empty()) {
                let most = (rows / 6)
                    .clamp(MIN_OUTPUT, MAX_OUTPUT)
                    .min(rows.saturating_sub(2));
                live.lines
                    .extend(output_tail(&output.text, width, output.rows.min(most)));
            }
            return live;
        }
        let answer = answer.trim();
        if !answer.is_empty() {
            return LiveBlock {
                lines: vec![tail(answer, width)],
                changes: None,
            };
        }
        let Some((does, since)) = &self.wait else {
            return LiveBlock::default();
        };
        let model = &self.model;
        let text = match does {
            ModelState::Silent => format!("waiting for {model}"),
            ModelState::Thinks => format!("{model} is thinking"),
            ModelState::Answers => format!("{model} is answering"),
            ModelState::Calls(tool) => format!("{model} is preparing a call of {tool}"),
        };
        timed(*since, WAIT_SHOWN, now, |took| {
            Line::of("◦ ", Tone::Dim)
                .with(&text, Tone::Dim)
                .with(&behind(took), Tone::Dim)
                .cut(width)
        })
    }
}

impl OpenCall {
    fn unknown(id: String) -> Self {
        Self {
            name: id.clone(),
            id,
            subject: String::new(),
            started: None,
        }
    }

    fn running(&self, others: usize, took: Duration, width: usize) -> Line {
        let more = if others == 0 {
            Line::default()
        } else {
            Line::of(&format!(" · {others} more"), Tone::Dim)
        };
        let (state, summary, body) = (CallState::Running, "", CallBody::Nothing);
        let cell = CallCell {
            name: &self.name,
            subject: &self.subject,
            state,
            took,
            summary,
            body,
        };
        let mut line = cell.running(width.saturating_sub(more.width()).max(1));
        line.append(&more);
        line.cut(width)
    }
}

/// A line with the whole seconds since then, once it is worth showing.
fn timed(
    since: Instant,
    shown: Duration,
    now: Instant,
    line: impl FnOnce(Duration) -> Line,
) -> LiveBlock {
    let age = now.saturating_duration_since(since);
    if age < shown {
        return LiveBlock {
            lines: Vec::new(),
            changes: Some(since + shown),
        };
    }
    let took = Duration::from_secs(age.as_secs());
    LiveBlock {
        lines: vec![line(took)],
        changes: Some(since + took + Duration::from_secs(1)),
    }
}

fn behind(took: Duration) -> String {
    format!(" · {}", tui::duration(took))
}

/// The end of a text in one line.
fn tail(text: &str, width: usize) -> Line {
    let start = text
        .char_indices()
        .rev()
        .take(TAIL)
        .last()
        .map_or(0, |(at, _)| at);
    let words: Vec<&str> = text
        .get(start..)
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let room = width.saturating_sub(2).max(1);
    let lines =
        Line::of(&words.join(" "), Tone::Dim).wrap(room, &Line::default(), &Line::default());
    let mut line = Line::of("◦ ", Tone::Dim);
    lines.last().into_iter().for_each(|last| line.append(last));
    line.cut(width)
}
