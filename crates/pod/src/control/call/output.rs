//! The host's side of one running call: its output, the records of its file changes, and its bounded result.

use super::authorized::Landings;
use crate::control::core::Core;
use crate::feature::sanitize;
use crate::hook::Shaping;
use crate::mailbox::live_output::{CallOrigin, LiveOutput};
use crate::mailbox::requests::{DriverRequest, MailboxSender};
use crate::permission::{HostTerms, Remedy};
use crate::record::{CommandEnd, DirectoryMoved, FileChanged, Output, Record, ResultData, Stored};
use crate::session::changes::staged;
use crate::session::kind_of_store;
use async_trait::async_trait;
use authority::{OutputScreen, RedactedStream, Redactor, shown};
use llm_worker::attachment::{MAX_FILES, attachment};
use llm_worker::tool::{CallHost, DirectoryMove, Excerpt, FileChange, Landing, LineRange};
use llm_worker::{
    Attachment, CallId, ErrorKind, ResultStatus, ToolError, ToolOutcome, ToolOutput, ToolResult,
};
use serde_json::Value;
use session_store::{BlobError, Blobs, Spool};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

mod data;
mod past_result;
#[cfg(test)]
mod tests;

/// Results up to this many bytes are in the history whole.
pub(crate) const INLINE: usize = 32 * 1024;

/// Of a longer result: at most this much of its beginning, in bytes …
const HEAD_BYTES: usize = 4 * 1024;
/// … and in lines,
const HEAD_LINES: usize = 60;
/// and this much of its end, in bytes.
const TAIL_BYTES: usize = 8 * 1024;

/// Warnings that one call may have for the person, and the bytes of each.
const MAX_WARNINGS: usize = 16;
const MAX_WARNING: usize = 1024;

/// The [`CallHost`] of one running call: the tool's access to output, file changes and outputs of earlier calls.
pub(crate) struct CallOutput {
    session: Arc<str>,
    /// The session's directory.
    dir: Arc<Path>,
    call: CallId,
    blobs: Blobs,
    outputs: Arc<VecDeque<Output>>,
    mailbox: MailboxSender,
    redactor: Redactor,
    terms: HostTerms,
    shaping: Shaping,
    may_escalate: bool,
    landings: Landings,
    written: Mutex<Written>,
    warnings: Mutex<Vec<String>>,
    /// The files beside the result; none of a result that is withheld.
    files: Mutex<Vec<Attachment>>,
    command: Mutex<Option<CommandEnd>>,
}

/// The output so far.
struct Written {
    stream: RedactedStream,
    sink: Sink,
    /// For people who watch, while the tool runs; none where the result may be withheld.
    live: Option<LiveOutput>,
}

impl Written {
    fn new(redactor: &Redactor, shaping: Shaping, live: Option<LiveOutput>) -> Self {
        Self {
            stream: RedactedStream::new(redactor.clone()),
            sink: Sink::new(shaping),
            live: live.filter(|_| shaping != Shaping::MayWithhold),
        }
    }
}

/// Bytes of an output that is held for the hooks that see it whole.
pub(crate) const HELD: usize = 8 * 1024 * 1024;

/// A result that is neither bounded nor kept, for the hooks that see it whole.
pub(crate) struct WholeResult {
    pub(crate) status: ResultStatus,
    pub(crate) summary: String,
    /// The content, or none if it was too long to be held and nothing of it may be kept.
    pub(crate) content: Option<Content>,
    pub(crate) data: Option<Value>,
}

/// A result that is bounded and kept.
pub(crate) struct KeptResult {
    pub(crate) outcome: ToolOutcome,
    pub(crate) output: Option<Output>,
    pub(crate) data: Option<ResultData>,
}

impl From<ToolOutcome> for KeptResult {
    fn from(outcome: ToolOutcome) -> Self {
        Self {
            outcome,
            output: None,
            data: None,
        }
    }
}

/// Output of a program as it came, and the words of its tool behind it.
#[derive(Default)]
pub(crate) struct Content {
    bytes: Vec<u8>,
    /// How many of them are output.
    output: usize,
}

impl From<String> for Content {
    fn from(words: String) -> Self {
        Self {
            bytes: words.into_bytes(),
            output: 0,
        }
    }
}

impl Content {
    fn push(&mut self, bytes: &[u8], is_output: bool) {
        self.bytes.extend_from_slice(bytes);
        if is_output {
            self.output = self.bytes.len();
        }
    }

    /// As the model reads it.
    pub(crate) fn shown(&self, redactor: &Redactor) -> String {
        let (output, words) = self.parts();
        let is_utf8 = |bytes| std::str::from_utf8(bytes).is_ok();
        let text = readable(&shown(output), is_utf8(output), redactor);
        let apart = if words.is_empty() { "" } else { apart(&text) };
        format!(
            "{text}{apart}{}",
            readable(&String::from_utf8_lossy(words), is_utf8(words), redactor)
        )
    }

    /// Whether the output reads as it came.
    fn is_shown(&self) -> bool {
        shown(self.parts().0).as_bytes() == self.parts().0
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes
            .split_at_checked(self.output)
            .unwrap_or((&self.bytes, &[]))
    }
}

/// The result of a call whose tool has ended.
pub(crate) enum EndedCall {
    Kept(Box<KeptResult>),
    Whole(WholeResult),
}

impl EndedCall {
    /// The same with another status.
    pub(crate) fn with_status(self, status: ResultStatus) -> Self {
        match self {
            Self::Kept(mut kept) => {
                kept.outcome.status = status;
                Self::Kept(kept)
            }
            Self::Whole(whole) => Self::Whole(WholeResult { status, ..whole }),
        }
    }
}

/// Storage of a call's output: memory while it is short, then a spooled blob.
enum Sink {
    /// Memory, for the hooks that see the whole output; then as another, or nothing if they may withhold it.
    Held {
        content: Content,
        may_withhold: bool,
    },
    /// Too long to be held: it is dropped.
    Dropped,
    Small(Content),
    Large {
        shown: Box<Shown>,
        spool: Box<Spool>,
    },
    /// A write failed: the stored part is not the whole output.
    Broken(ToolError),
    Closed,
}

/// What is shown of a long output, which is stored as it came.
#[derive(Default)]
struct Shown {
    screen: OutputScreen,
    /// The beginning; all, as long as it is not over [`INLINE`].
    head: String,
    tail: String,
    total: u64,
}

impl Shown {
    fn add(&mut self, bytes: &[u8], is_output: bool) {
        if is_output || bytes.is_empty() {
            self.screen.write(bytes);
            let text = self.screen.take();
            return self.push(&text);
        }
        let rest = self.screen.finish();
        self.push(&rest);
        self.push(apart(&self.tail));
        self.push(&String::from_utf8_lossy(bytes));
    }

    fn push(&mut self, text: &str) {
        self.total += text.len() as u64;
        if self.head.len() <= INLINE {
            self.head.push_str(
                text.get(..text.floor_char_boundary(INLINE + 4))
                    .unwrap_or(text),
            );
        }
        self.tail.push_str(suffix(text));
        if self.tail.len() > 8 * TAIL_BYTES {
            self.tail = suffix(&self.tail).to_owned();
        }
    }

    /// All, or its beginning and its end around a line that says what is missing and how to get it.
    fn finish(mut self, redactor: &Redactor, page: &str) -> String {
        let rest = self.screen.finish();
        self.push(&rest);
        let readable = |text: &str| readable(text, !text.contains('\u{fffd}'), redactor);
        match usize::try_from(self.total) {
            Ok(0..=INLINE) => readable(&self.head),
            _ => {
                let (head, tail) = ends(&self.head, suffix(&self.tail));
                let missing = self.total.saturating_sub((head.len() + tail.len()) as u64);
                let total = self.total;
                let newline = if head.ends_with('\n') { "" } else { "\n" };
                let mark = format!("{newline}[… {missing} of {total} bytes left out; {page}]\n");
                format!("{}{mark}{}", readable(head), readable(tail))
            }
        }
    }
}

impl CallOutput {
    /// Opens the output of a call. People see it meanwhile, unless a hook may withhold it.
    pub(super) fn begin(core: &Core, call: CallId, shaping: Shaping, landings: Landings) -> Self {
        let Core {
            store,
            state,
            permission,
            outbox,
            ..
        } = core;
        let origin = CallOrigin {
            turn: state.turns,
            request: state.requests,
            seq: outbox.newest(),
        };
        let live = outbox.outputs().begin(call, origin);
        let redactor = core.registry.redactor().clone();
        Self {
            session: store.session.clone(),
            dir: store.dir.clone(),
            call,
            blobs: store.blobs.clone(),
            outputs: state.outputs.clone(),
            mailbox: core.pending.sender(),
            terms: permission.policy.terms,
            shaping,
            may_escalate: permission.may_escalate(),
            landings,
            written: Mutex::new(Written::new(&redactor, shaping, Some(live))),
            warnings: Mutex::default(),
            files: Mutex::default(),
            command: Mutex::default(),
            redactor,
        }
    }

    /// Drops the output so far: the call runs again.
    pub(crate) fn begin_again(&self) {
        let mut written = self.lock();
        written.live.iter().for_each(LiveOutput::begin_again);
        let live = written.live.take();
        *written = Written::new(&self.redactor, self.shaping, live);
        drop(written);
        drop(self.command());
        drop(self.files());
    }

    /// A result while its output is open: at most [`INLINE`] bytes of what is in memory.
    pub(crate) fn preview(&self, result: &ToolResult) -> ToolOutcome {
        let (status, summary, content) = match result {
            Ok(output) => (ResultStatus::Ok, &output.summary, &output.content),
            Err(error) => (ResultStatus::Error, &error.message, &error.content),
        };
        let ToolOutcome {
            summary,
            content: overflow,
            ..
        } = ToolOutcome::of(status, &self.redactor.text(summary));
        let written = match &self.lock().sink {
            Sink::Small(content) | Sink::Held { content, .. } => content.shown(&self.redactor),
            Sink::Large { shown, .. } => readable(&shown.head, true, &self.redactor),
            Sink::Dropped | Sink::Broken(_) | Sink::Closed => String::new(),
        };
        let mut content = format!("{written}{overflow}{}", self.redactor.text(content));
        content.truncate(content.floor_char_boundary(INLINE));
        ToolOutcome {
            status,
            summary,
            content,
            attachments: Vec::new(),
        }
    }

    /// Closes the output and cuts the tool's result to its bound; also returns the full output if it was cut. Syncs the
    /// blob, if there is one.
    pub(crate) fn finish(&self, result: ToolResult, cancelled: bool) -> EndedCall {
        let (status, summary, content, data) = match result {
            Ok(output) => (
                ResultStatus::Ok,
                output.summary,
                output.content,
                output.data.and_then(|data| self.bounded_data(data)),
            ),
            Err(error) => {
                let cancelled = cancelled && error.kind == ErrorKind::Cancelled;
                let status = if cancelled {
                    ResultStatus::Cancelled
                } else {
                    ResultStatus::Error
                };
                (status, error.message, error.content, None)
            }
        };
        // Before the split: a secret may contain a line end.
        let text = self.redactor.text(&summary);
        let (summary, overflow) = if self.holds() {
            // Hooks see the first line whole: what they look for may stand where it would be cut.
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            (first.to_owned(), rest.to_owned())
        } else {
            let cut = ToolOutcome::of(status, &text);
            (cut.summary, cut.content)
        };
        let content = if overflow.is_empty() {
            content
        } else {
            format!("{overflow}\n{content}")
        };
        match self.close(&content) {
            Ok(Sink::Held { content, .. }) => EndedCall::Whole(WholeResult {
                status,
                summary,
                content: Some(content),
                data,
            }),
            Ok(Sink::Dropped) => EndedCall::Whole(WholeResult {
                status,
                summary,
                content: None,
                data,
            }),
            closed => EndedCall::Kept(Box::new(self.kept(status, summary, closed, data))),
        }
    }

    /// Bounds and keeps a result that the hooks have seen.
    pub(crate) fn keep(
        &self,
        WholeResult {
            status,
            summary,
            content,
            data,
        }: WholeResult,
    ) -> KeptResult {
        let ToolOutcome {
            summary,
            content: overflow,
            ..
        } = ToolOutcome::of(status, &summary);
        let mut content = content.unwrap_or_default();
        if !overflow.is_empty() {
            content.bytes.splice(..0, format!("{overflow}\n").bytes());
            content.output += if content.output > 0 {
                overflow.len() + 1
            } else {
                0
            };
        }
        let mut sink = Sink::Small(Content::default());
        let (output, words) = content.parts();
        let written = sink
            .write(output, true, &self.blobs)
            .and_then(|()| sink.write(words, false, &self.blobs));
        self.kept(status, summary, written.map(|()| sink), data)
    }

    /// Keeps a result that the hooks have seen, and shows `shorter` in its place, with a line that names the stored one.
    /// Where it cannot be stored, or would be shown cut all the same, the result is kept and shown as it is.
    pub(crate) fn keep_behind(&self, whole: WholeResult, shorter: ToolOutput) -> KeptResult {
        let bytes = whole.content.as_ref().map(|content| &content.bytes);
        let Some(blob) = bytes.and_then(|bytes| self.blobs.put(bytes).ok()) else {
            return self.keep(whole);
        };
        let output = Output::from(Stored::from(blob));
        let ToolOutcome {
            summary,
            content: overflow,
            ..
        } = ToolOutcome::of(whole.status, &shorter.summary);
        let page = (self.terms.remedy)(&Remedy::WholeOutput(output.handle.clone()));
        let above = apart(&overflow);
        let end = apart(&shorter.content);
        let content = format!(
            "{overflow}{above}{}{end}[shorter than the result; {page}]\n",
            shorter.content
        );
        if content.len() > INLINE {
            return self.keep(whole);
        }
        KeptResult {
            outcome: ToolOutcome {
                status: whole.status,
                summary,
                content,
                attachments: self.files(),
            },
            output: Some(output),
            data: whole.data.and_then(|data| self.kept_data(data)),
        }
    }

    /// Drops what is held, and what was to be seen of it: the tool did not end.
    pub(crate) fn drop_held(&self) {
        let Written { sink, live, .. } = &mut *self.lock();
        *live = None;
        if matches!(sink, Sink::Held { .. } | Sink::Dropped) {
            *sink = Sink::Closed;
        }
    }

    fn holds(&self) -> bool {
        matches!(self.lock().sink, Sink::Held { .. } | Sink::Dropped)
    }

    /// The result with what the closed sink holds, bounded.
    fn kept(
        &self,
        status: ResultStatus,
        summary: String,
        sink: Result<Sink, ToolError>,
        data: Option<Value>,
    ) -> KeptResult {
        let ToolOutcome { summary, .. } = ToolOutcome::of(status, &summary);
        match sink.and_then(|sink| self.bounded(sink)) {
            Ok((content, output)) => KeptResult {
                outcome: ToolOutcome {
                    status,
                    summary,
                    content,
                    attachments: self.files(),
                },
                output,
                data: data.and_then(|data| self.kept_data(data)),
            },
            Err(error) => ToolOutcome {
                status: ResultStatus::Error,
                summary: format!("{summary}; its output was lost: {error}"),
                content: String::new(),
                attachments: Vec::new(),
            }
            .into(),
        }
    }

    /// The call's warnings for the person; also of a call without a result.
    pub(crate) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn files(&self) -> Vec<Attachment> {
        std::mem::take(&mut *self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How the call's command ended.
    pub(crate) fn command(&self) -> Option<CommandEnd> {
        let mut command = self.command.lock().unwrap_or_else(PoisonError::into_inner);
        command.take()
    }

    /// Writes the end of the output and closes it.
    fn close(&self, content: &str) -> Result<Sink, ToolError> {
        // From here on the result is what there is to see.
        self.lock().live = None;
        let Written { stream, sink, .. } = &mut *self.lock();
        sink.write(&stream.finish(), true, &self.blobs)?;
        sink.write(self.redactor.text(content).as_bytes(), false, &self.blobs)?;
        Ok(std::mem::replace(sink, Sink::Closed))
    }

    fn bounded(&self, sink: Sink) -> Result<(String, Option<Output>), ToolError> {
        match sink {
            Sink::Small(content) => {
                let text = content.shown(&self.redactor);
                // Without room for it the result is all there is.
                let raw = if content.is_shown() {
                    None
                } else {
                    self.blobs.put(&content.bytes).ok()
                };
                Ok((text, raw.map(|blob| Output::from(Stored::from(blob)))))
            }
            Sink::Large { shown, spool } => {
                let end = spool.finish().map_err(|e| refused(&e))?;
                let output = Output::from(Stored {
                    gap: end.gap,
                    whole: end.gap.map(|_| end.whole),
                    ..end.blob.into()
                });
                let page = (self.terms.remedy)(&Remedy::PageOutput(output.handle.clone()));
                Ok((shown.finish(&self.redactor, &page), Some(output)))
            }
            Sink::Broken(error) => Err(error),
            Sink::Closed | Sink::Held { .. } | Sink::Dropped => Ok((String::new(), None)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink {
    fn new(shaping: Shaping) -> Self {
        match shaping {
            Shaping::None => Self::Small(Content::default()),
            Shaping::Whole => Self::Held {
                content: Content::default(),
                may_withhold: false,
            },
            Shaping::MayWithhold => Self::Held {
                content: Content::default(),
                may_withhold: true,
            },
        }
    }

    fn spooled(kept: &Content, blobs: &Blobs) -> Result<Self, ToolError> {
        let mut spool = blobs.spool().map_err(|e| refused(&e))?;
        let mut shown = Box::<Shown>::default();
        spool.write(&kept.bytes).map_err(|e| refused(&e))?;
        let (output, words) = kept.parts();
        shown.add(output, true);
        shown.add(words, false);
        Ok(Self::Large {
            shown,
            spool: Box::new(spool),
        })
    }

    /// After an error no more output is accepted.
    fn write(&mut self, bytes: &[u8], is_output: bool, blobs: &Blobs) -> Result<(), ToolError> {
        match self {
            Self::Held { content: held, .. } if held.bytes.len() + bytes.len() <= HELD => {
                held.push(bytes, is_output)
            }
            Self::Held {
                may_withhold: true, ..
            } => *self = Self::Dropped,
            Self::Held { content: kept, .. } => {
                *self = Self::spooled(kept, blobs)?;
                self.write(bytes, is_output, blobs)?;
            }
            Self::Dropped => {}
            Self::Small(kept) if kept.bytes.len() + bytes.len() <= INLINE => {
                kept.push(bytes, is_output)
            }
            Self::Small(kept) => {
                *self = Self::spooled(kept, blobs)?;
                self.write(bytes, is_output, blobs)?;
            }
            Self::Large { shown, spool } => {
                spool.write(bytes).map_err(|e| refused(&e))?;
                shown.add(bytes, is_output);
            }
            Self::Broken(error) => return Err(error.clone()),
            Self::Closed => {
                return Err(ToolError::new(
                    ErrorKind::Cancelled,
                    "the call has ended; its output is closed",
                ));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl CallHost for CallOutput {
    fn write_output(&self, bytes: &[u8]) -> Result<(), ToolError> {
        let Written { stream, sink, live } = &mut *self.lock();
        let clean = stream.push(bytes);
        let written = sink.write(&clean, true, &self.blobs);
        if let (Ok(()), Some(live)) = (&written, live) {
            live.write(&clean, &stream.settled());
        }
        if let Err(error) = &written
            && !matches!(*sink, Sink::Closed)
        {
            *sink = Sink::Broken(error.clone());
        }
        written
    }

    fn warn(&self, text: &str) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        match warnings.len() {
            MAX_WARNINGS => {}
            last if last + 1 == MAX_WARNINGS => {
                warnings.push("further warnings of this call are dropped".to_owned())
            }
            _ => warnings.push(sanitize(text, MAX_WARNING, &self.redactor)),
        }
    }

    fn command_ended(&self, mut end: CommandEnd) {
        let clean = |text: &mut String| *text = sanitize(text, MAX_WARNING, &self.redactor);
        end.path.iter_mut().chain(&mut end.hosts).for_each(clean);
        let mut command = self.command.lock().unwrap_or_else(PoisonError::into_inner);
        *command = Some(end);
    }

    fn attach(&self, name: &str, bytes: &[u8]) -> Result<Attachment, ToolError> {
        let file = attachment(&self.redactor.text(name), bytes)
            .map_err(|why| ToolError::new(why.kind(), why.to_string()))?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MAX_FILES {
            let why = format!("a result has at most {MAX_FILES} files");
            return Err(ToolError::new(ErrorKind::Exhausted, why));
        }
        self.blobs.put(bytes).map_err(|error| refused(&error))?;
        files.push(file.clone());
        Ok(file)
    }

    fn may_escalate(&self) -> bool {
        self.may_escalate
    }

    fn may_land(&self, landing: &Landing) -> Result<(), ToolError> {
        self.landings.check(landing)
    }

    fn read_output(&self, handle: &str, window: LineRange) -> Result<Excerpt, ToolError> {
        let known = |handle: &str| {
            self.outputs
                .iter()
                .rev()
                .find(|output| output.handle == handle)
        };
        let mut output = known(handle);
        if let (None, Ok(call)) = (output, CallId::try_from(handle.to_owned())) {
            let (content, stored) = past_result::of(&self.dir, call)?;
            output = stored.as_deref().and_then(known);
            if output.is_none() {
                return Ok(past_result::page(&content, window));
            }
        }
        let Some(output) = output else {
            // A model is not pointed to values for programs.
            let is_text = |handle: &&str| !handle.starts_with(Output::DATA);
            let all = self.outputs.iter().rev().map(|o| o.handle.as_str());
            let all: Vec<&str> = all.filter(is_text).collect();
            let newest = match all.as_slice() {
                [] => "no output has been stored yet".to_owned(),
                all if all.len() <= 5 => format!("the outputs are: {}", all.join(", ")),
                all => {
                    let newest = all.get(..5).unwrap_or_default().join(", ");
                    format!("the newest of {} are: {newest}", all.len())
                }
            };
            let message = format!("there is no output `{handle}` in this pod; {newest}");
            return Err(ToolError::new(ErrorKind::FixInput, message));
        };
        let (window, lines) = match window {
            LineRange::From { from, lines } => {
                (session_store::LineWindow::From(from.max(1)), lines)
            }
            LineRange::Tail { lines } => (session_store::LineWindow::Tail, lines),
        };
        let stored = &output.stored;
        let lines = usize::try_from(lines).unwrap_or(INLINE).min(INLINE);
        let mut screen = OutputScreen::default();
        let show = |block: &[u8]| match block {
            [] => screen.finish().into_bytes(),
            block => {
                screen.write(block);
                screen.take().into_bytes()
            }
        };
        let shown =
            self.blobs
                .view()
                .lines(&stored.digest, stored.gap, window, lines, INLINE, show);
        let mut shown = shown.map_err(|error| {
            if matches!(error, BlobError::Missing(_)) {
                gone(handle)
            } else {
                refused(&error)
            }
        })?;
        fit(&mut shown, window);
        let last = (shown.first + shown.lines.len() as u64).saturating_sub(1);
        let text = String::from_utf8_lossy(&shown.lines.join(&b'\n')).into_owned();
        let text = readable(&text, !text.contains('\u{fffd}'), &self.redactor);
        Ok(Excerpt {
            text,
            first: shown.first,
            last,
            total: shown.total,
        })
    }

    async fn file_changing(&self, change: FileChange) -> Result<u64, ToolError> {
        let path = utf8(change.path)?;
        let number = staged(&self.session, Some(self.call), &path);
        let before = match change.before {
            Some(bytes) => Some(self.blobs.put(&bytes).map_err(|e| refused(&e))?.into()),
            None => None,
        };
        let changed = FileChanged {
            call: Some(self.call),
            path,
            before,
            mode: change.mode,
            after: change.after,
            made: change.made.map(utf8).transpose()?,
        };
        self.announce(changed.into()).await?;
        Ok(number)
    }

    async fn directory_moving(&self, moving: DirectoryMove) -> Result<(), ToolError> {
        let moved = DirectoryMoved {
            call: Some(self.call),
            from: utf8(moving.from)?,
            to: utf8(moving.to)?,
            made: moving.made.map(utf8).transpose()?,
        };
        self.announce(moved.into()).await
    }
}

impl CallOutput {
    /// Waits until a record of the running call is durable, as that of a change.
    pub(crate) async fn announce(&self, record: Record) -> Result<(), ToolError> {
        let (reply, answer) = oneshot::channel();
        let gone = || {
            ToolError::new(
                ErrorKind::Cancelled,
                "the turn has ended; nothing was changed",
            )
        };
        let request = DriverRequest::AnnounceChange {
            call: self.call,
            change: Box::new(record),
            reply,
        };
        self.mailbox.send(request).await.map_err(|_closed| gone())?;
        match self.mailbox.answered(answer).await {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => Err(ToolError::new(ErrorKind::Unavailable, why)),
            None => Err(gone()),
        }
    }
}

fn utf8(path: PathBuf) -> Result<String, ToolError> {
    path.into_os_string().into_string().map_err(|path| {
        let message = format!(
            "{} is not a UTF-8 path; rename it before changing it",
            path.to_string_lossy()
        );
        ToolError::new(ErrorKind::FixInput, message)
    })
}

fn refused(error: &BlobError) -> ToolError {
    let message = match error {
        BlobError::Full { bound } => format!(
            "a pod keeps at most {bound} bytes of outputs and of earlier file contents, and this pod has reached the limit; ask for less at \
             a time, or end this turn: the next one lets go of the oldest outputs"
        ),
        BlobError::Disk(_)
        | BlobError::Closed
        | BlobError::Missing(_)
        | BlobError::Damaged(_)
        | BlobError::TooLarge { .. } => error.to_string(),
    };
    ToolError::new(kind_of_store(error.kind()), message)
}

fn gone(handle: &str) -> ToolError {
    let message = format!(
        "gone: output `{handle}` was deleted to make room for newer outputs; run the call again if you need it"
    );
    ToolError::new(ErrorKind::Unavailable, message)
}

/// What ends the last line of an output.
fn apart(text: &str) -> &'static str {
    if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    }
}

/// The end of a text, from a character on.
fn suffix(text: &str) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES))..)
        .unwrap_or_default()
}

/// Without secrets that only showing it put together, and with a mark if it was not UTF-8.
fn readable(text: &str, is_utf8: bool, redactor: &Redactor) -> String {
    let mark = if is_utf8 {
        ""
    } else {
        "[not UTF-8; unreadable bytes are shown as \u{fffd}]\n"
    };
    format!("{mark}{}", redactor.text(text))
}

/// Head and tail, both cut at line ends if there are any.
fn ends<'a>(head: &'a str, tail: &'a str) -> (&'a str, &'a str) {
    let head = head
        .get(..head.floor_char_boundary(HEAD_BYTES))
        .unwrap_or(head);
    let lines = memchr::memchr_iter(b'\n', head.as_bytes())
        .take(HEAD_LINES)
        .last();
    let rest = tail
        .split_once('\n')
        .map(|(_, rest)| rest)
        .filter(|rest| !rest.is_empty());
    (
        lines.and_then(|end| head.get(..=end)).unwrap_or(head),
        rest.unwrap_or(tail),
    )
}

/// Removes lines until the rest fits with its line breaks, which the store does not count.
fn fit(shown: &mut session_store::BlobLines, window: session_store::LineWindow) {
    let mut bytes = shown.lines.iter().map(|line| line.len() + 1).sum::<usize>();
    let over = |bytes: usize| bytes > INLINE + 1;
    let mut kept = shown.lines.len();
    match window {
        session_store::LineWindow::From(_) => {
            while let Some(line) = shown
                .lines
                .get(kept.saturating_sub(1))
                .filter(|_| kept > 1 && over(bytes))
            {
                (bytes, kept) = (bytes - line.len() - 1, kept - 1);
            }
            shown.lines.truncate(kept);
        }
        session_store::LineWindow::Tail => {
            let mut gone = 0;
            while let Some(line) = shown.lines.get(gone).filter(|_| kept > 1 && over(bytes)) {
                (bytes, kept, gone) = (bytes - line.len() - 1, kept - 1, gone + 1);
            }
            shown.lines.drain(..gone);
            shown.first += gone as u64;
        }
    }
}
