//! A run as it happens: the answer on standard output, everything else on standard error; or, for scripts, the lines
//! of the journal.

mod asker;
mod cells;
mod journal;

pub(crate) use asker::{Asker, QuestionOutcome, RuleFile};
pub(crate) use journal::JournalLines;

use self::cells::Cells;
use super::escape::{journal_line, line};
use super::out::noted;
use super::question::{Shown, end};
use super::sandboxed;
use crate::look::Look;
use authority::text::{Escaper, Lines, escape_line, escape_lines};
use llm_worker::effect::Delta;
use llm_worker::{Item, ResultStatus};
use pod::control::{Event, OutputFollower};
use pod::record::{ApprovalRequested, Decision, Record, VerdictGiven};
use protocol::record::RecordBody;
use std::collections::VecDeque;
use std::io::{self, Stderr, Stdout, Write};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::time::sleep_until;
use tui::arguments::brief;
use tui::transcript::{self, call_state, said};
use tui::{CallState, Line, finished, markdown};

/// Events that are taken at once.
const TAKEN: usize = 256;

/// What is drawn over again changes at most so often.
const REDRAWN: Duration = Duration::from_millis(60);

/// Bytes of one block of an answer that are held back until it is finished.
const MAX_BLOCK: usize = 64 * 1024;

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
    /// Standard error, if progress is shown there as cells.
    pub(crate) cells: Option<Look>,
    /// Standard output, if answers are shown there as their Markdown looks.
    pub(crate) answer: Option<Look>,
}

/// Shows events until the pod lets go of its end. Runs on a thread of its own. Output that cannot be written
/// (a closed pipe) is given up silently; the run goes on. Calls that wait are put to the person, if there is an `asker`; what
/// comes meanwhile is shown afterwards. Answers whether words of the model were streamed.
pub(crate) fn show(
    mut events: mpsc::Receiver<Event>,
    outputs: OutputFollower,
    style: OutputStyle,
    mut journal: JournalLines,
    mut asker: Option<Asker>,
) -> bool {
    let mut screen = RunOutput::of_process(style);
    let mut clock = None;
    // What calls write is shown in cells only.
    let mut outputs = style.cells.map(|_| Rested {
        outputs,
        until: Instant::now(),
    });
    let mut taken = Vec::new();
    let mut held = VecDeque::new();
    let mut newest = 0;
    while take(
        &mut events,
        &mut taken,
        screen.tick(Instant::now()),
        &mut outputs,
        &mut clock,
    ) {
        held.extend(taken.drain(..));
        while let Some(event) = held.pop_front() {
            match (asker.as_mut(), question(&event)) {
                (Some(person), Some(asked)) => {
                    let goes_on = person.ask(
                        asked,
                        &mut |shown| screen.ask(shown),
                        &mut events,
                        &mut held,
                    );
                    asker.take_if(|_| !goes_on);
                }
                _ => screen.event(&event),
            }
            if let Event::Record { seq, .. } = event {
                newest = seq;
            }
        }
        if let Some(rested) = &mut outputs {
            screen.cells.outputs(&rested.outputs.take(newest));
            rested.until = Instant::now() + REDRAWN;
        }
        if style.json {
            // What cannot be read now is read again with the next records.
            drop(journal.show(newest, &mut screen));
        }
    }
    let unread = if style.json {
        journal.show(newest, &mut screen).err()
    } else {
        None
    };
    if let Some(error) = unread {
        screen.note(&format!("warning: {error}"));
    }
    screen.finish()
}

/// The outputs of calls, which wake nobody until a time.
struct Rested {
    outputs: OutputFollower,
    until: Instant,
}

impl Rested {
    async fn changed(&mut self) {
        sleep_until(self.until.into()).await;
        self.outputs.changed().await;
    }
}

/// Waits for events, or until the screen changes without one; `false` when no more come.
fn take(
    events: &mut mpsc::Receiver<Event>,
    taken: &mut Vec<Event>,
    changes: Option<Instant>,
    outputs: &mut Option<Rested>,
    clock: &mut Option<Runtime>,
) -> bool {
    if clock.is_none() && (changes.is_some() || outputs.is_some()) {
        *clock = Builder::new_current_thread().enable_time().build().ok();
    }
    let Some(clock) = clock else {
        return events.blocking_recv_many(taken, TAKEN) > 0;
    };
    clock.block_on(async {
        tokio::select! {
            more = events.recv_many(taken, TAKEN) => more > 0,
            () = until(changes) => true,
            () = written(outputs) => true,
        }
    })
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

async fn written(outputs: &mut Option<Rested>) {
    match outputs {
        Some(rested) => rested.changed().await,
        None => std::future::pending().await,
    }
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
    /// What goes on, where progress is shown as cells.
    cells: Cells,
    /// The end of an answer whose last block is not finished.
    pending: String,
    drawn: Drawn,
    last: Option<Part>,
}

/// What is drawn over again.
#[derive(Default)]
struct Drawn {
    /// Empty while there is nothing.
    lines: Vec<Line>,
    at: Option<Instant>,
}

/// Parts of what is shown, between which there is an empty line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Answer,
    Progress,
}

impl RunOutput<Stdout, Stderr> {
    /// The outputs of this process.
    pub(crate) fn of_process(style: OutputStyle) -> Self {
        Self::new(style, io::stdout(), io::stderr())
    }
}

impl<Out: Write, Err: Write> RunOutput<Out, Err> {
    pub(crate) fn new(style: OutputStyle, out: Out, err: Err) -> Self {
        let escaper = Escaper::new(Lines::Many);
        let shown = String::new();
        let pending = String::new();
        let cells = Cells::new();
        let drawn = Drawn::default();
        // The model's name is above.
        let last = (!style.quiet).then_some(Part::Progress);
        Self {
            style,
            out: Some(out),
            err,
            shown,
            escaper,
            mid_line: false,
            streamed: false,
            cells,
            pending,
            drawn,
            last,
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Delta { delta, .. } => self.delta(delta),
            Event::Record { record, .. } => self.record(record),
            Event::Suspended { reason } => self.tell(&format!("! {reason}; trying again")),
            Event::Alert(alert) => {
                let from = alert.from.as_ref().map(|feature| feature.to_string());
                let text = transcript::alert(from.as_deref(), &alert.text);
                self.tell(&format!("! {text}"));
            }
        }
    }

    fn delta(&mut self, delta: &Delta) {
        self.cells.delta(delta, self.style.stream, Instant::now());
        match delta {
            Delta::Text { text } if self.style.stream => {
                self.shown.push_str(text);
                self.streamed = true;
                self.answer(text);
            }
            Delta::Retrying {
                attempt,
                delay_ms,
                why,
            } => {
                self.shown.clear();
                self.pending.clear();
                let text = transcript::retrying(why, *attempt, *delay_ms);
                self.tell(&format!("! {text}"));
            }
            _ => {}
        }
    }

    /// Draws what goes on; tells when that changes without an event.
    pub(crate) fn tick(&mut self, now: Instant) -> Option<Instant> {
        let look = self.style.cells?;
        // The last column stays free: some terminals begin the next line when it is written.
        let width = look.width().saturating_sub(1).max(1);
        let answer = if self.style.answer.is_some() {
            self.pending.as_str()
        } else {
            ""
        };
        let live = self.cells.live(answer, (width, look.rows()), now);
        let soon = self
            .drawn
            .at
            .map(|at| at + REDRAWN)
            .filter(|soon| now < *soon);
        if live.lines == self.drawn.lines {
            return live.changes;
        }
        if soon.is_some() && !live.lines.is_empty() {
            return soon;
        }
        let lines: Vec<String> = live
            .lines
            .iter()
            .map(|line| line.ansi(look.theme))
            .collect();
        let text = format!("{}{}", self.erased(), lines.join("\n"));
        self.draw(&text);
        self.drawn = Drawn {
            lines: live.lines,
            at: Some(now),
        };
        live.changes
    }

    fn draw(&mut self, text: &str) {
        drop(
            self.err
                .write_all(text.as_bytes())
                .and_then(|()| self.err.flush()),
        );
    }

    /// Removes what is drawn over again.
    fn clear(&mut self) {
        let erased = self.erased();
        if !erased.is_empty() {
            self.draw(&erased);
        }
    }

    /// What removes the drawn lines. On a terminal that became too narrow they stay: where they are broken there is not
    /// known.
    fn erased(&mut self) -> String {
        let lines = std::mem::take(&mut self.drawn.lines);
        let (Some(look), false) = (self.style.cells, lines.is_empty()) else {
            return String::new();
        };
        if lines.len() > look.rows() || lines.iter().any(|line| line.width() >= look.width()) {
            return "\n".to_owned();
        }
        format!("\r\u{1b}[K{}", "\u{1b}[A\u{1b}[K".repeat(lines.len() - 1))
    }

    /// What comes next, on either output, begins a line and a part.
    fn begin(&mut self, part: Part) {
        self.clear();
        self.end_line();
        let before = self.last.replace(part);
        if self.style.cells.is_some() && before.is_some_and(|before| before != part) {
            self.draw("\n");
        }
    }

    /// Shows what a record says; to scripts only the warnings.
    fn record(&mut self, record: &Record) {
        if let (Record::ToolFinished(done), None) = (record, self.style.cells) {
            // Said even to those who want no progress.
            done.warnings
                .iter()
                .for_each(|warning| self.note(&format!("warning: {warning}")));
        }
        if self.style.json {
            return;
        }
        if let Record::ItemAdded(added) = record {
            self.item(&added.item);
        }
        match self.style.cells {
            Some(look) => {
                let lines = self.cells.record(record, look, Instant::now());
                if !lines.is_empty() {
                    self.begin(Part::Progress);
                    self.draw(&look.text(&lines));
                }
            }
            None => self.lines_of(record),
        }
        if let Record::VerdictGiven(VerdictGiven {
            decision: Decision::Abort { .. },
            ..
        }) = record
        {
            let said = said(&RecordBody::from(record));
            said.iter()
                .for_each(|said| self.tell(&format!("{}{}", said.sign, said.text)));
        }
    }

    /// What is said of a call where there are no cells.
    fn lines_of(&mut self, record: &Record) {
        match record {
            Record::ToolFinished(done) => {
                let mark = match call_state(done.outcome.status.word()) {
                    CallState::Ok => "",
                    state => &format!("{} ", state.sign()),
                };
                // A refusal says what would allow it, so it is not cut where a result may be.
                let width = match done.outcome.status {
                    ResultStatus::Refused => 400,
                    _ => 100,
                };
                self.tell(&format!("  {mark}{}", line(&done.outcome.summary, width)));
                if let Some(note) = done.command.as_ref().and_then(sandboxed::remedy) {
                    self.tell(&format!("  ! {note}"));
                }
            }
            Record::ApprovalRequested(asked) => {
                let end = end(asked.expires.map(|expires| expires.at_ms), None)
                    .map_or_else(String::new, |end| format!("; {end}"));
                if let Some(said) = said(&RecordBody::from(record)) {
                    let question = line(&said.text, 400);
                    self.tell(&format!("{}{question}{end}", said.sign));
                }
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
        // A turn that was ended in mid-answer leaves half a line, or a block.
        self.end_answer();
        self.clear();
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
                    self.end_answer();
                }
            }
            Item::ToolCall { .. } if self.style.cells.is_some() => {}
            Item::ToolCall {
                name, arguments, ..
            } => {
                self.tell(format!("• {name} {}", line(&brief(arguments), 90)).trim_end());
            }
            Item::User { .. }
            | Item::Command { .. }
            | Item::System { .. }
            | Item::Reasoning { .. }
            | Item::ToolResult { .. } => {}
        }
    }

    fn answer(&mut self, piece: &str) {
        if self.style.answer.is_none() {
            if self.style.cells.is_some() && !self.mid_line {
                self.begin(Part::Answer);
            }
            let text = self.escaper.piece(piece).into_owned();
            return self.print(&text);
        }
        self.pending.push_str(piece);
        let is_full = self.pending.len() > MAX_BLOCK;
        // Blocks end with lines.
        if is_full || piece.contains('\n') {
            let end = if is_full {
                self.pending.len()
            } else {
                finished(&self.pending)
            };
            let blocks: String = self.pending.drain(..end).collect();
            self.blocks(&blocks);
        }
    }

    /// Prints blocks of an answer behind those that are there.
    fn blocks(&mut self, source: &str) {
        let Some(look) = self.style.answer else {
            return;
        };
        let lines = markdown(source, look.width(), look.theme);
        if lines.is_empty() {
            return;
        }
        let follows = self.last == Some(Part::Answer);
        self.begin(Part::Answer);
        let apart = if follows { "\n" } else { "" };
        self.print(&format!("{apart}{}", look.text(&lines)));
    }

    /// Nothing more comes of this part of an answer.
    fn end_answer(&mut self) {
        let rest = std::mem::take(&mut self.pending);
        self.blocks(&rest);
        self.end_line();
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
        self.mid_line = text
            .chars()
            .next_back()
            .map_or(self.mid_line, |last| last != '\n');
    }

    fn tell(&mut self, text: &str) {
        if !self.style.quiet && !self.style.json {
            self.note(text);
        }
    }

    /// Shows a part of a question, behind a line that is finished.
    fn ask(&mut self, shown: Shown<'_>) {
        self.begin(Part::Progress);
        let text = shown.text(self.style.cells);
        let text = if self.style.cells.is_some() {
            text
        } else {
            escape_lines(&text).into_owned()
        };
        self.draw(&text);
    }

    fn note(&mut self, text: &str) {
        if let Some(look) = self.style.cells {
            self.begin(Part::Progress);
            return self.draw(&look.note(text));
        }
        self.end_line();
        let text = escape_line(text);
        let text = if self.style.colour {
            format!("\u{1b}[2m{text}\u{1b}[0m\n")
        } else {
            format!("{text}\n")
        };
        // Progress nobody can see is not worth ending a run for.
        drop(self.err.write_all(text.as_bytes()));
    }
}

#[cfg(test)]
mod tests;
