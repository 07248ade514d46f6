//! A run as it happens: the answer on standard output, everything else on standard error; or, for scripts, the lines
//! of the journal.

mod asker;
mod journal;

pub(crate) use asker::{Asker, QuestionOutcome};
pub(crate) use journal::JournalLines;

use super::escape::{journal_line, line};
use super::out::noted;
use authority::text::{Escaper, Lines, escape_line, escape_lines};
use llm_worker::effect::Delta;
use llm_worker::{Item, ResultStatus};
use pod::control::Event;
use pod::record::{ApprovalRequested, Decision, Record, VerdictGiven};
use std::collections::VecDeque;
use std::io::{self, Stderr, Stdout, Write};
use tokio::sync::mpsc;

/// Events that are taken at once.
const TAKEN: usize = 256;

#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputStyle {
    /// The journal's lines on standard output, and the result; nothing else there.
    pub(crate) json: bool,
    /// Standard output is a terminal.
    pub(crate) terminal: bool,
    pub(crate) quiet: bool,
    /// The answer appears as it is written.
    pub(crate) stream: bool,
    pub(crate) colour: bool,
}

/// Shows events until the pod lets go of its end. Runs on a thread of its own. Output that cannot be written
/// (a closed pipe) is given up silently; the run goes on. Calls that wait are put to the person, if there is an `asker`; what
/// comes meanwhile is shown afterwards. Answers whether words of the model were streamed.
pub(crate) fn show(
    mut events: mpsc::Receiver<Event>,
    style: OutputStyle,
    mut journal: JournalLines,
    mut asker: Option<Asker>,
) -> bool {
    let mut screen = RunOutput::of_process(style);
    let (mut taken, mut held, mut newest) = (Vec::new(), VecDeque::new(), 0);
    while events.blocking_recv_many(&mut taken, TAKEN) > 0 {
        held.extend(taken.drain(..));
        while let Some(event) = held.pop_front() {
            match (asker.as_mut(), question(&event)) {
                (Some(person), Some(asked)) => {
                    let goes_on = person.ask(asked, &mut |text| screen.ask(text), &mut events, &mut held);
                    asker.take_if(|_| !goes_on);
                }
                _ => screen.event(&event),
            }
            if let Event::Record { seq, .. } = event {
                newest = seq;
            }
        }
        if style.json {
            // What cannot be read now is read again with the next records.
            drop(journal.show(newest, &mut screen));
        }
    }
    let unread = if style.json { journal.show(newest, &mut screen).err() } else { None };
    if let Some(error) = unread {
        screen.note(&format!("warning: {error}"));
    }
    screen.finish()
}

fn question(event: &Event) -> Option<&ApprovalRequested> {
    match event {
        Event::Record { record, .. } => match &**record {
            Record::ApprovalRequested(asked) => Some(asked),
            _ => None,
        },
        _ => None,
    }
}

/// Both outputs of a run.
pub(crate) struct RunOutput<Out, Err> {
    style: OutputStyle,
    /// None once it cannot be written any more.
    out: Option<Out>,
    err: Err,
    /// How much of the current answer is on the screen already.
    shown: String,
    /// Escapes the answer, whose pieces may end between a character and what shapes it.
    escaper: Escaper,
    /// Standard output stands in the middle of a line.
    mid_line: bool,
    /// Something of an answer is on the screen.
    streamed: bool,
}

impl RunOutput<Stdout, Stderr> {
    /// The outputs of this process.
    pub(crate) fn of_process(style: OutputStyle) -> Self {
        Self::new(style, io::stdout(), io::stderr())
    }
}

impl<Out: Write, Err: Write> RunOutput<Out, Err> {
    fn new(style: OutputStyle, out: Out, err: Err) -> Self {
        let escaper = Escaper::new(Lines::Many);
        Self { style, out: Some(out), err, shown: String::new(), escaper, mid_line: false, streamed: false }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Delta { delta, .. } => self.delta(delta),
            Event::Record { record, .. } => self.record(record),
            Event::Suspended { reason } => self.tell(&format!("! {reason}; trying again")),
            Event::Alert(alert) => {
                let from = alert.from.as_ref().map_or_else(String::new, |feature| format!("{feature}: "));
                self.tell(&format!("! {from}{}", alert.text));
            }
        }
    }

    fn delta(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(text) if self.style.stream => {
                self.shown.push_str(text);
                self.streamed = true;
                self.answer(text);
            }
            Delta::Retrying { attempt, delay, why } => {
                self.shown.clear();
                let wait = delay.as_secs_f64();
                self.tell(&format!("! {why}; attempt {} in {wait:.1} s", attempt + 1));
            }
            Delta::Text(_) | Delta::Reasoning(_) | Delta::CallStarted { .. } => {}
        }
    }

    /// Shows what a record says; to scripts only the warnings.
    fn record(&mut self, record: &Record) {
        if let Record::ToolFinished(done) = record {
            // Said even to those who want no progress.
            done.warnings.iter().for_each(|warning| self.note(&format!("warning: {warning}")));
        }
        if self.style.json {
            return;
        }
        match record {
            Record::ItemAdded(added) => self.item(&added.item),
            Record::ToolFinished(done) => {
                let mark = match done.outcome.status {
                    ResultStatus::Ok => "  ",
                    ResultStatus::Error => "  ✗ ",
                    ResultStatus::Refused => "  ⊘ ",
                    ResultStatus::Cancelled | ResultStatus::Interrupted => "  … ",
                };
                // A refusal says what would allow it, so it is not cut where a result may be.
                let width = if done.outcome.status == ResultStatus::Refused { 400 } else { 100 };
                self.tell(&format!("{mark}{}", line(&done.outcome.summary, width)));
            }
            Record::ApprovalRequested(asked) => {
                self.tell(&format!("? approval {}: {}", asked.approval, line(&asked.question, 400)));
            }
            Record::VerdictGiven(VerdictGiven { decision: Decision::Abort { reason }, .. }) => {
                self.tell(&format!("! {reason}"));
            }
            _ => {}
        }
    }

    /// Shows a record of the journal; scripts get its line.
    pub(crate) fn record_of_line(&mut self, record: &Record, line: &str) {
        self.record(record);
        if self.style.json {
            self.line(line);
        }
    }

    /// Prints a line of the journal.
    fn line(&mut self, line: &str) {
        let text = format!("{}\n", journal_line(line, self.style.terminal));
        self.print(&text);
    }

    /// Ends the output. Answers whether words of the model were streamed.
    pub(crate) fn finish(mut self) -> bool {
        // A turn that was ended in mid-answer leaves half a line.
        self.end_line();
        self.streamed
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Assistant { text } => {
                let shown = std::mem::take(&mut self.shown);
                // Reasoning may part an answer: the rest of what is shown is the next part's.
                if let Some(rest) = shown.strip_prefix(text.as_str()) {
                    self.shown = rest.to_owned();
                } else if self.style.stream {
                    self.answer(text.strip_prefix(shown.as_str()).unwrap_or_default());
                }
                if self.style.stream {
                    self.end_line();
                }
            }
            Item::ToolCall { name, arguments, .. } => {
                self.tell(format!("• {name} {}", line(&brief(arguments), 90)).trim_end());
            }
            Item::User { .. } | Item::System { .. } | Item::Reasoning { .. } | Item::ToolResult { .. } => {}
        }
    }

    fn answer(&mut self, piece: &str) {
        let text = self.escaper.piece(piece).into_owned();
        self.print(&text);
    }

    /// What comes next, on either output, begins a line.
    fn end_line(&mut self) {
        if self.mid_line {
            self.print("\n");
        }
    }

    fn print(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        if !noted(out.write_all(text.as_bytes()).and_then(|()| out.flush())) {
            self.out = None;
        }
        self.mid_line = text.chars().next_back().map_or(self.mid_line, |last| last != '\n');
    }

    fn tell(&mut self, text: &str) {
        if !self.style.quiet && !self.style.json {
            self.note(text);
        }
    }

    /// Shows a part of a question, behind a line that is finished.
    fn ask(&mut self, text: &str) {
        self.end_line();
        drop(self.err.write_all(escape_lines(text).as_bytes()).and_then(|()| self.err.flush()));
    }

    fn note(&mut self, text: &str) {
        self.end_line();
        let text = escape_line(text);
        let text = if self.style.colour { format!("\u{1b}[2m{text}\u{1b}[0m\n") } else { format!("{text}\n") };
        // Progress nobody can see is not worth ending a run for.
        drop(self.err.write_all(text.as_bytes()));
    }
}

/// Arguments that say what a call is about, the first first.
const ABOUT: [&str; 4] = ["command", "pattern", "path", "handle"];

/// A call's arguments as a person reads them: the values, without the braces, where they are a flat object.
pub(crate) fn brief(arguments: &str) -> String {
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(arguments) else { return arguments.to_owned() };
    let mut fields: Vec<_> = fields.into_iter().collect();
    // What a call is about stands first, before a text that may be cut.
    fields.sort_by_key(|(name, _)| ABOUT.iter().position(|about| about == name).unwrap_or(ABOUT.len()));
    let shown =
        fields.iter().map(|(name, value)| value.as_str().map_or_else(|| format!("{name}={value}"), str::to_owned));
    shown.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
