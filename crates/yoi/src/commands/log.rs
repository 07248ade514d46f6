//! `yoi log`: a transcript, or the records as they are.

pub(crate) mod follow;
mod screen;

use crate::cli::LogArgs;
use crate::commands::person::meant;
use crate::show::escape::{journal_line, line};
use crate::show::out;
use crate::show::question::end;
use crate::show::transcript;
use authority::text::{Escaper, Lines, escape_line};
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, read_failure};
use llm_worker::Item;
use pod::record::{
    ApprovalRequested, Decision, ExpandedCommand, InputId, Output, Record, ResultData, Stored,
    ToolFinished, VerdictGiven,
};
use pod::session::restore::{decode, utc};
use protocol::record::RecordBody;
use session_store::{BlobError, BlobView, OwnedFrame, Reader};
use std::collections::BTreeMap;
use tui::arguments::brief;
use tui::transcript::{Said, call_state, full_output, said};
use tui::{CallState, count, for_people};

/// How many lines of an output a transcript shows.
const ABRIDGED: usize = 8;

/// Where the lines of a text stand.
pub(super) const MARGIN: &str = "          ";

/// Prints a pod's log. Reads beside a running pod.
pub(crate) fn run(args: &LogArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = meant(&pods, args.name.as_deref(), env)?;
    let dir = pods.dir(&name);
    let from = args.from.unwrap_or(0);
    if args.screen {
        let reader = Reader::open(&dir).map_err(|e| read_failure(&name, &e))?;
        return screen::run(&name, &reader, args.at, args.size);
    }
    let transcript = Transcript::new(args.full);
    let mut printer = Printer {
        name: &name,
        from,
        json: args.json,
        terminal: env.stdout_terminal,
        transcript,
    };
    if args.follow {
        return follow::run(&dir, &mut printer);
    }
    let reader = Reader::open(&dir).map_err(|e| read_failure(&name, &e))?;
    for frame in reader.frames() {
        printer.print(
            &frame.map_err(|e| read_failure(&name, &e))?,
            &reader.blobs(),
        )?;
    }
    Ok(Exit::Done)
}

struct Printer<'a> {
    name: &'a str,
    /// Those before this one are only remembered.
    from: u64,
    json: bool,
    terminal: bool,
    transcript: Transcript,
}

impl Printer<'_> {
    fn print(&mut self, frame: &OwnedFrame, blobs: &BlobView) -> Result<(), Failure> {
        let shown = frame.seq >= self.from;
        if self.json {
            if shown {
                out::raw(&format!("{}\n", journal_line(&frame.line, self.terminal)));
            }
            return Ok(());
        }
        let fail =
            |e: &dyn std::fmt::Display| Failure::new(Exit::Data, format!("{}: {e}", self.name));
        let record = decode(frame).map_err(|e| fail(&e))?;
        let text = self.transcript.numbered(frame.seq, &record, frame.time);
        let stored = self.transcript.whole.take();
        if let Some(text) = text.filter(|_| shown) {
            transcript::print(&text, MARGIN);
            stored
                .map_or(Ok(()), |stored| whole(blobs, &stored))
                .map_err(|e| fail(&e))?;
        }
        Ok(())
    }
}

/// Prints a blob in bounded pieces, indented; what is no text is shown as replacement characters.
fn whole(blobs: &BlobView, stored: &Stored) -> Result<(), BlobError> {
    let mut text = Indented {
        escaper: Escaper::new(Lines::Many),
        part: Vec::new(),
        mid_line: false,
    };
    let mut at = 0;
    let read = blobs.pieces(&stored.digest, |piece| {
        let seam = stored
            .gap
            .filter(|gap| (at..at + piece.len() as u64).contains(&gap.at));
        let (before, after) = match seam {
            Some(gap) => piece.split_at(usize::try_from(gap.at - at).unwrap_or(piece.len())),
            None => (piece, &[][..]),
        };
        text.push(before);
        if let Some(gap) = seam {
            text.push(format!("\n[… {} bytes were not kept]\n", gap.dropped).as_bytes());
        }
        text.push(after);
        at += piece.len() as u64;
    });
    match read {
        Err(BlobError::Missing(_)) => {
            out::line(&format!("{MARGIN}[deleted to make room for newer outputs]"))
        }
        read => {
            read?;
            text.end();
        }
    }
    Ok(())
}

/// Text on its way to standard output, each line behind the margin.
struct Indented {
    escaper: Escaper,
    /// The beginning of a character whose end has not come yet.
    part: Vec<u8>,
    mid_line: bool,
}

impl Indented {
    fn push(&mut self, bytes: &[u8]) {
        self.part.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.part);
        let whole = match bytes.utf8_chunks().last() {
            // At most three bytes: the end of this character may be in the next piece.
            Some(last) if last.invalid().len() < 4 && bytes.ends_with(last.invalid()) => {
                bytes.len() - last.invalid().len()
            }
            Some(_) | None => bytes.len(),
        };
        let (now, later) = bytes.split_at(whole);
        self.part = later.to_vec();
        self.print(&String::from_utf8_lossy(now));
    }

    fn print(&mut self, text: &str) {
        let mut shown = String::with_capacity(text.len() + MARGIN.len());
        for piece in text.split_inclusive('\n') {
            if !self.mid_line {
                shown.push_str(MARGIN);
            }
            shown.push_str(piece);
            self.mid_line = !piece.ends_with('\n');
        }
        out::raw(&self.escaper.piece(&shown));
    }

    fn end(mut self) {
        let rest = std::mem::take(&mut self.part);
        self.print(&String::from_utf8_lossy(&rest));
        if self.mid_line {
            out::raw("\n");
        }
    }
}

/// What records say to a person, with what earlier records said about inputs.
pub(super) struct Transcript {
    full: bool,
    inputs: BTreeMap<u64, WaitingInput>,
    /// What is to be printed behind the text.
    whole: Option<Stored>,
}

/// An input that no turn has taken.
struct WaitingInput {
    text: String,
    /// The full text of one that is too long for a record.
    stored: Option<Stored>,
}

impl Transcript {
    pub(super) fn new(full: bool) -> Self {
        Self {
            full,
            inputs: BTreeMap::new(),
            whole: None,
        }
    }

    /// What a record says, behind its number.
    pub(super) fn numbered(&mut self, seq: u64, record: &Record, time: u64) -> Option<String> {
        self.text(record, time)
            .map(|text| format!("{seq:>6}  {}", indent(&text)))
    }

    /// Remembers an input that was accepted before the first record, with the beginning of its text.
    pub(super) fn accepted_before(&mut self, input: InputId, beginning: &str) {
        let whole = beginning.chars().count() < protocol::MAX_SHOWN;
        let text = format!("{beginning}{}", if whole { "" } else { "…" });
        self.wait(input, &text, None);
    }

    fn wait(&mut self, input: InputId, text: &str, stored: Option<&Stored>) {
        let text = text.to_owned();
        let stored = stored.cloned();
        self.inputs.insert(input, WaitingInput { text, stored });
    }

    /// An input that a turn took.
    fn input(&mut self, input: InputId) -> String {
        // Its record came before the first one that was read, or is lost.
        let Some(WaitingInput { text, stored }) = self.inputs.remove(&input) else {
            return format!("> (input {input})");
        };
        match stored.filter(|_| self.full) {
            Some(stored) => {
                let bytes = stored.total();
                self.whole = Some(stored);
                format!("> {bytes} bytes:")
            }
            None => format!("> {text}"),
        }
    }

    /// What one record says to a person; most say nothing.
    fn text(&mut self, record: &Record, time: u64) -> Option<String> {
        match record {
            Record::InputQueued(queued) => {
                let text = match &queued.command {
                    Some(ExpandedCommand { typed, source, .. }) => {
                        format!("{typed}  (a command of {source})\n{}", queued.text)
                    }
                    None => queued.text.clone(),
                };
                let files = queued.attachments.iter();
                let files = files.map(|file| format!("\n[{}]", file.about()));
                let text: String = std::iter::once(text).chain(files).collect();
                self.wait(queued.input, &text, record.stored().next());
                None
            }
            Record::InputEdited(edited) => {
                if self.inputs.contains_key(&edited.input) {
                    self.wait(edited.input, &edited.text, record.stored().next());
                }
                None
            }
            Record::InputConsumed(consumed) => Some(self.input(consumed.input)),
            Record::InputWithdrawn(withdrawn) => {
                let gone = self.inputs.remove(&withdrawn.input)?;
                Some(format!("> (withdrawn) {}", gone.text))
            }
            Record::ItemAdded(added) => self.item(&added.item),
            Record::ToolFinished(finished) => Some(self.result(finished)),
            // What was decided about a call is in its result.
            Record::VerdictGiven(VerdictGiven {
                call: Some(_),
                decision:
                    Decision::Allow
                    | Decision::Ask { .. }
                    | Decision::Refuse { .. }
                    | Decision::Invalid { .. },
                ..
            }) => None,
            record => said(&RecordBody::from(record)).map(|said| line_of(record, said, time)),
        }
    }

    fn item(&self, item: &Item) -> Option<String> {
        Some(match item {
            Item::Assistant { text } => text.clone(),
            Item::Reasoning { text, .. } if self.full => format!("(thinks) {text}"),
            Item::ToolCall {
                id,
                name,
                arguments,
            } => {
                let arguments = if self.full {
                    arguments.clone()
                } else {
                    line(&brief(arguments), 100)
                };
                format!("• {id} {} {arguments}", escape_line(name))
            }
            Item::Reasoning { .. }
            | Item::User { .. }
            | Item::Command { .. }
            | Item::System { .. }
            | Item::ToolResult { .. } => return None,
        })
    }

    fn result(&mut self, finished: &ToolFinished) -> String {
        let mark = match call_state(finished.outcome.status.word()) {
            CallState::Ok => " ",
            state => state.sign(),
        };
        let mut text = format!("{mark} {} {}", finished.call, finished.outcome.summary);
        for warning in &finished.warnings {
            text.push_str(&format!("\nwarning: {warning}"));
        }
        if let Some(data) = &finished.data {
            text.push_str(&format!("\n{}", data_line(data, self.full)));
        }
        let stored = |Output { handle, stored }: &Output| full_output(handle, stored.total());
        let output = finished.output.as_ref();
        if let Some(output) = output.filter(|_| self.full) {
            self.whole = Some(output.stored.clone());
            text.push_str(&format!("\n{}:", stored(output)));
            return text;
        }
        let shown = if self.full { usize::MAX } else { ABRIDGED };
        let content = for_people(&finished.outcome.content);
        let mut lines = content.lines();
        for content in lines.by_ref().take(shown) {
            text.push_str(&format!("\n{content}"));
        }
        let left = lines.count();
        if left > 0 {
            let more = count(left as u64, "more line");
            text.push_str(&format!("\n… {more} (--full)"));
        }
        if let Some(output) = output {
            text.push_str(&format!("\n{}", stored(output)));
        }
        text
    }
}

/// The value beside a result: itself with `--full`, if it is short, else its size.
fn data_line(data: &ResultData, full: bool) -> String {
    let bytes = |bytes: usize| count(bytes as u64, "byte");
    match (&data.value, &data.output) {
        (Some(value), _) if full => format!("data: {}", for_people(&value.to_string())),
        (Some(value), _) => format!("data: {} (--full)", bytes(value.to_string().len())),
        (None, Some(Output { handle, stored })) => {
            format!("data: {handle} ({})", count(stored.total(), "byte"))
        }
        (None, None) => String::new(),
    }
}

/// A record's words with the time that they have in a log, behind their sign and their call.
fn line_of(record: &Record, said: Said, time: u64) -> String {
    let Said {
        sign, call, text, ..
    } = said;
    let call = call.map_or_else(String::new, |call| format!("{call} "));
    match record {
        Record::HostStarted(_) => format!("{sign}{} {text}", utc(time)),
        Record::ApprovalRequested(ApprovalRequested {
            expires: Some(expires),
            ..
        }) => {
            let end = end(Some(expires.at_ms), None).unwrap_or_default();
            format!("{sign}{call}{text}; {end}")
        }
        _ => format!("{sign}{call}{text}"),
    }
}

/// Later lines stand below the first.
fn indent(text: &str) -> String {
    text.trim_end().replace('\n', &format!("\n{MARGIN}"))
}
