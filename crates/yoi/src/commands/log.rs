//! `yoi log`: a transcript, or the records as they are.

pub(crate) mod follow;
mod screen;

use crate::cli::LogArgs;
use crate::commands::person::meant;
use crate::commands::status::outcome_text;
use crate::show::escape::{journal_line, line};
use crate::show::out;
use crate::show::question::short;
use crate::show::transcript;
use authority::text::{Escaper, Lines, escape_line};
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, read_failure};
use llm_worker::tool::Escalation;
use llm_worker::{Item, ResultStatus};
use pod::permission::Rule;
use pod::record::{
    ApprovalDecision, ApprovalRequested, ApprovalResolved, ApprovalScope, BackgroundTask,
    ChildProcess, ClientCall, Decision, DirectoryMoved, Gap, HoldCause, HostStarted, InputEdited,
    InputId, InputQueued, JobEndKind, Pruned, PrunedContent, Record, Recovery, Resumed,
    RulesForgotten, Stored, SurfaceSet, SystemItem, TaskRunState, ToolFinished, ToolRepeated,
    ToolStarted, VerdictGiven, ViewLevel, Who,
};
use pod::session::fold::EndVerdict;
use pod::session::restore::{decode, utc};
use session_store::{BlobError, BlobView, OwnedFrame, Reader};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tui::arguments::brief;
use tui::{count, for_people, left_context};

/// How many lines of an output a transcript shows.
const ABRIDGED: usize = 8;

/// Where the lines of a text stand.
pub(super) const MARGIN: &str = "          ";

/// Prints a pod's log. Reads beside a running pod.
pub(crate) fn run(args: &LogArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = meant(&pods, args.name.as_deref(), env)?;
    let (dir, from) = (pods.dir(&name), args.from.unwrap_or(0));
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
    let (mut text, mut at) = (
        Indented {
            escaper: Escaper::new(Lines::Many),
            part: Vec::new(),
            mid_line: false,
        },
        0,
    );
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

fn restored(recovery: &Recovery) -> String {
    let tasks = match recovery.open_tasks {
        0 => String::new(),
        some => format!("{} and ", count(some, "background task")),
    };
    format!(
        "restored after {}: {tasks}{} interrupted, {} moved to quarantine ({})",
        tui::duration(Duration::from_micros(recovery.down_us)),
        count(recovery.open_calls, "call"),
        count(recovery.cut_bytes, "byte"),
        recovery.class
    )
}

fn repeated(again: &ToolRepeated) -> String {
    format!(
        "  {} runs again (run {}; the hook {} of {} repeats it)",
        again.call, again.run, again.hook, again.feature
    )
}

/// That a call runs beyond the sandbox; the start of another one has no line.
fn beyond(started: &ToolStarted) -> Option<String> {
    let how = match started.escalation? {
        Escalation::Network if !started.hosts.is_empty() => {
            format!(
                "in the sandbox with a way to {}",
                escape_line(&started.hosts.join(", "))
            )
        }
        Escalation::Network => "in the sandbox with the network".to_owned(),
        Escalation::Unconfined => "outside the sandbox".to_owned(),
    };
    Some(format!(
        "! {} {} runs {how}",
        started.call,
        escape_line(&started.name)
    ))
}

/// The end of a run of a background task; its beginning has no line.
fn task_run(run: &BackgroundTask) -> Option<String> {
    let mark = match run.state {
        TaskRunState::Running => return None,
        TaskRunState::Completed => " ",
        TaskRunState::Failed | TaskRunState::TimedOut => "✗",
        TaskRunState::Cancelled | TaskRunState::Orphaned => "…",
    };
    let took = run
        .ms
        .map_or_else(String::new, |ms| format!(" after {ms} ms"));
    let reason = run
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {}", indent(reason)));
    let state = match run.state {
        TaskRunState::Orphaned => "interrupted".to_owned(),
        state => state.word().replace('_', " "),
    };
    let (feature, task) = (&run.feature, &run.task);
    Some(format!(
        "{mark} background task {task} of {feature}, run {}: {state}{took}{reason}",
        run.run
    ))
}

fn to_the_model(said: &SystemItem) -> String {
    let from = if said.source() == "host" {
        "yoi"
    } else {
        said.source()
    };
    format!("to the model, from {from}: {}", indent(said.text()))
}

fn client_call(call: &ClientCall) -> String {
    let by = call
        .by
        .as_ref()
        .map_or("a client", |who| who.client.as_str());
    format!(
        "  {} calls {} {}",
        escape_line(by),
        escape_line(&call.tool),
        line(&brief(&call.arguments), 100)
    )
}

/// What stopped a call or a turn. Of a refused call its result says why.
fn refusal(verdict: &VerdictGiven) -> Option<String> {
    let is_said = matches!(
        verdict.decision,
        Decision::Refuse { .. } | Decision::Invalid { .. }
    );
    if verdict.decision.allows() || verdict.decision.asks() || (verdict.call.is_some() && is_said) {
        return None;
    }
    let call = match (&verdict.decision, verdict.call) {
        (Decision::Again { .. }, _) => "the answer is not accepted:".to_owned(),
        (_, call) => call.map_or_else(|| "-".to_owned(), |call| call.to_string()),
    };
    Some(format!(
        "⊘ {call} {}: {}",
        verdict.rule,
        indent(verdict.decision.reason())
    ))
}

fn asked(question: &ApprovalRequested) -> String {
    let until = question
        .expires
        .map(|expires| format!(" until {}", utc(expires.at_ms.saturating_mul(1000))));
    let (call, approval, until) = (question.call, question.approval, until.unwrap_or_default());
    format!(
        "? {call} waits for approval {approval}{until}: {}",
        indent(&question.question)
    )
}

fn answered(answer: &ApprovalResolved) -> String {
    let decision = match (answer.decision, answer.scope) {
        (ApprovalDecision::Allow, ApprovalScope::Once) => "allowed",
        (ApprovalDecision::Allow, ApprovalScope::Pod) => "allowed for this pod",
        (ApprovalDecision::Allow, ApprovalScope::Rule) => "allowed for this pod and by a rule",
        (ApprovalDecision::Deny, _) => "denied",
        (ApprovalDecision::Void, _) => "void",
    };
    let by = answer
        .by
        .as_ref()
        .map_or_else(String::new, |by| format!(" by {}", escape_line(&by.client)));
    let reason = answer
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {}", indent(reason)));
    format!("? approval {}: {decision}{by}{reason}", answer.approval)
}

fn forgotten(RulesForgotten { rules, by }: &RulesForgotten) -> String {
    let by = by
        .as_ref()
        .map_or_else(String::new, |by| format!(" by {}", escape_line(&by.client)));
    let rules: Vec<_> = rules
        .iter()
        .map(|rule| escape_line(&short(&Rule::from(rule))).into_owned())
        .collect();
    format!("? no longer allowed for this pod{by}: {}", rules.join("; "))
}

fn model(set: &SurfaceSet) -> String {
    let tools = count(set.surface.tools.len() as u64, "tool");
    format!("model {} with {tools}", escape_line(&set.surface.model))
}

fn left(Pruned { level, left, .. }: &Pruned) -> String {
    let PrunedContent {
        results,
        bytes,
        reasoning,
        calls,
        inputs,
        answers,
        ..
    } = left;
    let mut parts: Vec<_> = bytes
        .iter()
        .map(|(tool, bytes)| (escape_line(tool).into_owned(), *bytes))
        .collect();
    let others = [
        ("calls", calls),
        ("reasoning", reasoning),
        ("inputs", inputs),
        ("answers", answers),
    ];
    parts.extend(others.map(|(part, bytes)| (part.to_owned(), *bytes)));
    let level = match level {
        ViewLevel::Results => "results",
        ViewLevel::Steps => "steps",
        ViewLevel::Turns => "turns",
    };
    format!("  {}", left_context(level, *results, &parts))
}

/// What a person wishes of the context.
fn wish(record: &Record) -> Option<String> {
    Some(match record {
        Record::Pinned(pinned) => {
            format!(
                "  pin {}{}: {}",
                pinned.pin,
                by(pinned.by.as_ref()),
                indent(&pinned.text)
            )
        }
        Record::Unpinned(unpinned) => {
            format!("  pin {} removed{}", unpinned.pin, by(unpinned.by.as_ref()))
        }
        Record::CompactRequested(wish) => {
            let what = if wish.drop_turns {
                "old steps and the oldest turns"
            } else {
                "old steps"
            };
            format!("  {what} leave the next request{}", by(wish.by.as_ref()))
        }
        _ => return None,
    })
}

fn by(who: Option<&Who>) -> String {
    who.map_or_else(String::new, |who| {
        format!(" by {}", escape_line(&who.client))
    })
}

fn lost(
    Gap {
        first,
        last,
        reason,
    }: &Gap,
) -> Option<String> {
    reason
        .as_ref()
        .map(|_| format!("! records {first} to {last} are lost"))
}

fn job(process: &ChildProcess) -> String {
    let ChildProcess {
        job,
        command,
        ended,
        ..
    } = process;
    let Some(end) = ended else {
        return format!("  job {job} started: {command}");
    };
    let mark = if end.how == JobEndKind::Exited && end.code == Some(0) {
        " "
    } else {
        "✗"
    };
    let took = end
        .ms
        .map_or_else(String::new, |ms| format!(" after {ms} ms"));
    format!("{mark} job {job}{took}: {}", indent(&end.to_string()))
}

/// What records say to a person, with what earlier records said about inputs.
pub(super) struct Transcript {
    full: bool,
    inputs: BTreeMap<u64, InputQueued>,
    /// What is to be printed behind the text.
    whole: Option<Stored>,
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
            .map(|text| format!("{seq:>6}  {text}"))
    }

    /// Remembers an input that was accepted before the first record, with the beginning of its text.
    pub(super) fn accepted_before(&mut self, input: InputId, beginning: &str) {
        let whole = beginning.chars().count() < protocol::MAX_SHOWN;
        let text = format!("{beginning}{}", if whole { "" } else { "…" });
        self.inputs.insert(
            input,
            InputQueued {
                input,
                text,
                ..InputQueued::default()
            },
        );
    }

    fn edited(&mut self, edited: &InputEdited) {
        if let Some(queued) = self.inputs.get_mut(&edited.input) {
            queued.text.clone_from(&edited.text);
            queued.whole.clone_from(&edited.whole);
        }
    }

    /// An input that a turn took.
    fn input(&mut self, input: InputId) -> Option<String> {
        // Its record came before the first one that was read, or is lost.
        let Some(queued) = self.inputs.remove(&input) else {
            return Some(format!("> (input {input})"));
        };
        Some(match queued.whole.filter(|_| self.full) {
            Some(output) => {
                let bytes = output.stored.total();
                self.whole = Some(output.stored);
                format!("> {bytes} bytes:")
            }
            None => format!("> {}", indent(&queued.text)),
        })
    }

    /// What one record says to a person; most say nothing.
    fn text(&mut self, record: &Record, time: u64) -> Option<String> {
        Some(match record {
            Record::HostStarted(HostStarted {
                cwd,
                version,
                sandbox,
                ..
            }) => {
                format!(
                    "── {} in {} (yoi {version}, sandbox {sandbox})",
                    utc(time),
                    escape_line(cwd)
                )
            }
            Record::SurfaceSet(set) => model(set),
            Record::Recovery(recovery) => restored(recovery),
            Record::InputQueued(queued) => {
                self.inputs.insert(queued.input, queued.clone());
                return None;
            }
            Record::InputConsumed(consumed) => self.input(consumed.input)?,
            Record::InputEdited(edited) => {
                self.edited(edited);
                return None;
            }
            Record::InputWithdrawn(withdrawn) => {
                format!(
                    "> (withdrawn) {}",
                    indent(&self.inputs.remove(&withdrawn.input)?.text)
                )
            }
            Record::SystemItem(said) => to_the_model(said),
            Record::FeatureNote(note) => {
                format!("  note of {}: {}", note.feature, indent(&note.text))
            }
            Record::BackgroundTask(run) => task_run(run)?,
            Record::ChildProcess(process) => job(process),
            Record::ClientCall(call) => client_call(call),
            Record::ItemAdded(added) => self.item(&added.item)?,
            Record::ApprovalRequested(question) => asked(question),
            Record::ApprovalResolved(answer) => answered(answer),
            Record::RulesForgotten(gone) => forgotten(gone),
            Record::Pruned(pruned) => left(pruned),
            Record::Pinned(_) | Record::Unpinned(_) | Record::CompactRequested(_) => wish(record)?,
            Record::VerdictGiven(verdict) => refusal(verdict)?,
            Record::ToolStarted(started) => beyond(started)?,
            Record::ToolRepeated(again) => repeated(again),
            Record::ToolFinished(finished) => self.result(finished),
            Record::FileChanged(change) => {
                let does = if change.call.is_none() {
                    "undo"
                } else {
                    "changes"
                };
                format!("  {does} {}", authority::escape(Path::new(&change.path)))
            }
            Record::DirectoryMoved(DirectoryMoved { call, from, to, .. }) => {
                let does = if call.is_none() {
                    "undo: moves"
                } else {
                    "moves"
                };
                let (from, to) = (Path::new(from), Path::new(to));
                format!(
                    "  {does} {} to {}",
                    authority::escape(from),
                    authority::escape(to)
                )
            }
            Record::Gap(gap) => lost(gap)?,
            Record::Suspended(suspended) => {
                let disk = matches!(suspended.cause, None | Some(HoldCause::Disk));
                let what = if disk { "suspended" } else { "held" };
                format!("! {what}: {}", indent(&suspended.reason))
            }
            Record::Resumed(resumed) => format!("! resumed{}", granted(resumed)),
            Record::TurnFinished(finished) => {
                // Whether it is done is judged behind it.
                let verdict = match finished.end_gates {
                    true => EndVerdict::Due,
                    false => EndVerdict::Accepted,
                };
                format!(
                    "── turn {}: {}",
                    finished.turn,
                    indent(&outcome_text(&finished.outcome, verdict))
                )
            }
            Record::HostStopped(_)
            | Record::Features(_)
            | Record::TurnStarted(_)
            | Record::InputMoved(_)
            | Record::Request(_)
            | Record::Response(_)
            | Record::FeatureState(_)
            | Record::NotificationQueued(_)
            | Record::GrantsUsed(_)
            | Record::Other { .. } => return None,
        })
    }

    fn item(&self, item: &Item) -> Option<String> {
        Some(match item {
            Item::Assistant { text } => indent(text),
            Item::Reasoning { text, .. } if self.full => format!("(thinks) {}", indent(text)),
            Item::ToolCall {
                id,
                name,
                arguments,
            } => {
                let arguments = if self.full {
                    indent(arguments)
                } else {
                    line(&brief(arguments), 100)
                };
                format!("• {id} {} {arguments}", escape_line(name))
            }
            Item::Reasoning { .. }
            | Item::User { .. }
            | Item::System { .. }
            | Item::ToolResult { .. } => return None,
        })
    }

    fn result(&mut self, finished: &ToolFinished) -> String {
        let mark = match finished.outcome.status {
            ResultStatus::Ok => " ",
            ResultStatus::Error => "✗",
            ResultStatus::Refused => "⊘",
            ResultStatus::Cancelled | ResultStatus::Interrupted => "…",
        };
        let mut text = format!("{mark} {} {}", finished.call, finished.outcome.summary);
        for warning in &finished.warnings {
            text.push_str(&format!("\n{MARGIN}warning: {warning}"));
        }
        if let Some(output) = finished.output.as_ref().filter(|_| self.full) {
            self.whole = Some(output.stored.clone());
            text.push_str(&format!(
                "\n{MARGIN}full output: {} ({} bytes):",
                output.handle,
                output.stored.total()
            ));
            return text;
        }
        let shown = if self.full { usize::MAX } else { ABRIDGED };
        let content = for_people(&finished.outcome.content);
        let mut lines = content.lines();
        lines
            .by_ref()
            .take(shown)
            .for_each(|content| text.push_str(&format!("\n{MARGIN}{content}")));
        let left = lines.count();
        if left > 0 {
            text.push_str(&format!(
                "\n{MARGIN}… {} (--full)",
                count(left as u64, "more line")
            ));
        }
        if let Some(output) = &finished.output {
            text.push_str(&format!(
                "\n{MARGIN}full output: {} ({} bytes)",
                output.handle,
                output.stored.total()
            ));
        }
        text
    }
}

/// What a pod got of its budget once more.
fn granted(resumed: &Resumed) -> String {
    let more: Vec<_> = resumed.more.iter().map(|kind| kind.word()).collect();
    if more.is_empty() {
        String::new()
    } else {
        format!(
            ", and the pod may use its limit of {} again",
            more.join(" and ")
        )
    }
}

/// Later lines stand below the first.
fn indent(text: &str) -> String {
    text.trim_end().replace('\n', &format!("\n{MARGIN}"))
}
