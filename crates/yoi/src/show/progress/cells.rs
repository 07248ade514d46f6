//! The calls and waits of a run on a terminal: cells for what has ended, and one block, drawn over again, for what goes
//! on.

use crate::look::Look;
use crate::show::sandboxed;
use client::model::Outputs;
use host::words::SHELL;
use llm_worker::effect::Delta;
use pod::control::OutputPart;
use pod::record::Record;
use protocol::record::{ApprovalRequested, RecordBody, ToolFinished};
use std::time::{Duration, Instant};
use tui::transcript::{model_does, said};
use tui::{CallExtent, Line, ShownCall, Tone, labelled, output_tail};

/// A call that ends sooner, and a model that answers sooner, are not worth a line.
const CALL_SHOWN: Duration = Duration::from_millis(400);
const WAIT_SHOWN: Duration = Duration::from_secs(2);

/// Characters at the end of an unfinished answer that the line may show.
const TAIL: usize = 400;

/// What goes on in a run.
pub(super) struct Cells {
    model: String,
    /// With the time since which each runs; none while it is judged, or waits.
    calls: Vec<(ShownCall, Option<Instant>)>,
    outputs: Outputs,
    /// What the model does, and since when.
    wait: Option<(ModelState, Instant)>,
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
            Delta::Text { .. } => ModelState::Answers,
            Delta::Reasoning { .. } => ModelState::Thinks,
            Delta::CallStarted { name, .. } => ModelState::Calls(name.clone()),
            Delta::Retrying { .. } => ModelState::Silent,
            Delta::Output { .. } | Delta::Unknown => return,
        };
        let is_seen = streams && does == ModelState::Answers;
        if is_seen || self.wait.as_ref().is_none_or(|(before, _)| *before != does) {
            self.wait = Some((does, now));
        }
    }

    /// Notes what a record says; gives what is printed of it.
    pub(super) fn record(&mut self, record: &Record, look: Look, now: Instant) -> Vec<Line> {
        match RecordBody::from(record) {
            RecordBody::SurfaceSet(set) => self.model = set.surface.model,
            RecordBody::Request(_) => self.wait = Some((ModelState::Silent, now)),
            RecordBody::Response(_) => self.wait = None,
            RecordBody::TurnFinished(_) => {
                (self.wait, self.calls) = (None, Vec::new());
                self.outputs.clear();
            }
            RecordBody::ItemAdded(added) if added.item.r#type == "tool_call" => {
                let item = added.item;
                let words = [item.id, item.name, item.arguments];
                let [id, name, arguments] = words.map(Option::unwrap_or_default);
                self.calls.push((ShownCall::new(id, name, arguments), None));
            }
            RecordBody::ToolStarted(started) => {
                for (call, since) in &mut self.calls {
                    if call.call == started.call {
                        *since = Some(now);
                    }
                }
            }
            RecordBody::ApprovalRequested(asked) => {
                let said = said(&RecordBody::ApprovalRequested(asked.clone()));
                return waiting(&asked, said.map(|said| said.text), look.width());
            }
            RecordBody::ToolFinished(done) => return self.finished(&done, look.width()),
            _ => {}
        }
        Vec::new()
    }

    fn finished(&mut self, done: &ToolFinished, width: usize) -> Vec<Line> {
        self.outputs.forget(&done.call);
        let at = self
            .calls
            .iter()
            .position(|(call, _)| call.call == done.call);
        // Its beginning may have come before the first record that was shown.
        let mut call = at.map_or_else(
            || ShownCall::headless(done.call.clone()),
            |at| self.calls.remove(at).0,
        );
        call.finish(done);
        let reads_output = call.name == SHELL;
        let view = CallExtent::Printed { reads_output };
        let mut lines = call.lines(width, view, Duration::from_millis(done.ms));
        if let Some(note) = done.command.as_ref().and_then(sandboxed::remedy) {
            lines.extend(labelled("!", Tone::Refused, &note, width));
        }
        lines.extend(call.warnings(width));
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
            .filter_map(|(call, since)| Some(((*since)?, call)))
            .collect();
        running.sort_by_key(|(since, _)| *since);
        if let Some((since, call)) = running.first() {
            let mut live = timed(*since, CALL_SHOWN, now, |took| {
                running_line(call, running.len() - 1, took, width)
            });
            if let Some(output) = self
                .outputs
                .of(&call.call)
                .filter(|_| !live.lines.is_empty())
            {
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
        let text = match does {
            ModelState::Answers => format!("{} is answering", self.model),
            ModelState::Calls(tool) => model_does(&self.model, Some(tool), false),
            other => model_does(&self.model, None, *other == ModelState::Thinks),
        };
        timed(*since, WAIT_SHOWN, now, |took| {
            Line::of("◦ ", Tone::Dim)
                .with(&text, Tone::Dim)
                .with(&behind(took), Tone::Dim)
                .cut(width)
        })
    }
}

/// The lines of a call that waits for a person.
fn waiting(asked: &ApprovalRequested, said: Option<String>, width: usize) -> Vec<Line> {
    let mut call = ShownCall::headless(asked.call.clone());
    call.ask(&asked.tool, &asked.arguments);
    call.summary = said.unwrap_or_default();
    call.lines(width, CallExtent::Closed, Duration::ZERO)
}

/// The line of a call that runs beside so many others.
fn running_line(call: &ShownCall, others: usize, took: Duration, width: usize) -> Line {
    let more = match others {
        0 => Line::default(),
        others => Line::of(&format!(" · {others} more"), Tone::Dim),
    };
    let mut line = call.running(took, width.saturating_sub(more.width()).max(1));
    line.append(&more);
    line.cut(width)
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
