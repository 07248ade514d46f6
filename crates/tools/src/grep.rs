//! Grep: lines by regular expression.

use crate::answer::{Body, answer, counted, cut, fix, go_on};
use crate::pattern::Pattern;
use crate::search::{Gaps, Search};
use crate::sniff::{HEAD, Looks, looks};
use authority::WalkEntry;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use llm_worker::tool::Touch;
use llm_worker::{ToolContext, ToolEffect, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use tokio_util::sync::CancellationToken;

/// The tool's name.
pub const NAME: &str = "Grep";
/// What the model is told.
pub const ABOUT: &str = "Search file contents line by line with a regular expression (Rust syntax). Modes: content gives path:line:text, files gives paths, count gives path:count. Binary files and what .gitignore names are left out.";
/// What a repeated call does.
pub const EFFECT: ToolEffect = ToolEffect::ReadOnly;

/// How many matching lines (or files) are shown when the call does not say.
pub const DEFAULT_LIMIT: u64 = 200;

/// The most lines of context on each side.
pub const MAX_CONTEXT: usize = 20;

/// How much of a line is shown, in bytes.
pub const MAX_LINE: usize = 300;

/// How many more bytes are read, once nothing more is shown, to know the true total.
pub const COUNT_ON: u64 = 64 << 20;

/// The most memory for one line or one compiled expression, in bytes.
const HEAP: usize = 8 << 20;

/// Kept of the content's bound for notes.
const RESERVE: usize = 1024;

/// What is shown of what is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "")]
#[allow(missing_docs, reason = "a comment on a variant would make the schema three times as long")]
pub enum Mode {
    Content,
    Files,
    Count,
}

/// The arguments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Args {
    /// Regular expression.
    pub pattern: String,
    /// Directory or file.
    #[serde(default = "crate::search::here")]
    pub path: String,
    /// Only files that fit this glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    #[serde(default = "content")]
    #[allow(missing_docs, reason = "its values say it")]
    pub mode: Mode,
    #[serde(default)]
    #[allow(missing_docs, reason = "its name says it")]
    pub ignore_case: bool,
    /// Lines around each match.
    #[serde(default)]
    pub context: usize,
    /// Most matches shown.
    #[serde(default = "limit")]
    pub limit: u64,
}

fn content() -> Mode {
    Mode::Content
}

fn limit() -> u64 {
    DEFAULT_LIMIT
}

/// What permission judges.
#[must_use]
pub fn touches(args: &Args) -> Vec<Touch> {
    vec![Touch::Read(args.path.clone().into())]
}

/// Runs one call.
///
/// # Errors
/// `FixInput` for a bad expression or glob (its content points at the place) or nothing at `path`; `Denied` outside of
/// the workspace; `Cancelled`.
pub async fn run(live: &Search, args: Args, cx: ToolContext) -> ToolResult {
    if args.limit == 0 || args.context > MAX_CONTEXT {
        return Err(fix(format!("limit starts at 1, and context ends at {MAX_CONTEXT}")));
    }
    let matcher = compile(&args)?;
    let filter = args.glob.as_deref().map(Pattern::parse).transpose()?;
    let at = live.start(&args.path)?;
    let context = if args.mode == Mode::Content { args.context } else { 0 };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP))
        .build();
    let mut found = Found::new(&args, &matcher);
    let mut unread = Gaps::default();
    let gaps = live.files(&at, &cx, |entry, below| {
        if filter.as_ref().is_some_and(|filter| !filter.fits(below)) {
            return Ok(true);
        }
        if found.closed && found.counted_on > COUNT_ON {
            found.at_least = true;
            return Ok(false);
        }
        if let Err(error) = found.search(live, entry, &mut searcher, &cx.cancel) {
            go_on(&cx.cancel)?;
            unread.add(&format!("{}: {error}", live.workspace.show(&entry.path)));
        }
        Ok(true)
    })?;
    found.answer(&gaps.and(unread))
}

fn compile(args: &Args) -> Result<RegexMatcher, ToolError> {
    if args.pattern.is_empty() {
        return Err(fix("the pattern is empty; to list files use Glob"));
    }
    let mut builder = RegexMatcherBuilder::new();
    // `$` holds before `\r\n` too.
    builder.case_insensitive(args.ignore_case).crlf(true).multi_line(true);
    builder.size_limit(HEAP).dfa_size_limit(HEAP);
    builder.build(&args.pattern).map_err(|error| {
        let text = error.to_string();
        let why = if text.contains("\"\\n\"") || args.pattern.contains('\n') || args.pattern.contains("\\n") {
            "the pattern cannot contain a line end: Grep matches within one line; search for one of the lines"
        } else {
            "the pattern is no regular expression; to find the text literally, put \\ before each of .*+?()[]{}|^$\\"
        };
        ToolError { content: cut(&text, RESERVE), ..fix(why) }
    })
}

/// What was found so far.
struct Found<'a> {
    args: &'a Args,
    matcher: &'a RegexMatcher,
    body: Body,
    matches: u64,
    files: u64,
    searched: u64,
    shown: u64,
    /// Nothing more is shown; it is only counted.
    closed: bool,
    counted_on: u64,
    at_least: bool,
}

impl<'a> Found<'a> {
    fn new(args: &'a Args, matcher: &'a RegexMatcher) -> Self {
        let body = Body::new(RESERVE);
        Self {
            args,
            matcher,
            body,
            matches: 0,
            files: 0,
            searched: 0,
            shown: 0,
            closed: false,
            counted_on: 0,
            at_least: false,
        }
    }

    fn search(
        &mut self,
        live: &Search,
        entry: &WalkEntry,
        searcher: &mut Searcher,
        cancel: &CancellationToken,
    ) -> io::Result<()> {
        let opened = entry.located().and_then(|at| live.workspace.open_file(&at));
        let mut file = Watched { from: opened.map_err(io::Error::other)?, cancel };
        let mut head = Vec::new();
        file.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        if looks(&head) != Looks::Text {
            return Ok(());
        }
        self.searched += 1;
        if self.closed {
            self.counted_on += entry.len;
        }
        let shown = live.workspace.show(&entry.path);
        let mut in_file = InFile { found: self, shown: &shown, matches: 0 };
        let done = searcher.search_reader(in_file.found.matcher, head.as_slice().chain(file), &mut in_file);
        let matches = in_file.matches;
        self.matches += matches;
        if matches > 0 {
            self.files += 1;
            match self.args.mode {
                Mode::Content => {}
                Mode::Files => self.show(&shown),
                Mode::Count => self.show(&format!("{shown}:{matches}")),
            }
        }
        done
    }

    /// Shows one thing that counts against the limit.
    fn show(&mut self, line: &str) {
        if !self.closed && self.shown < self.args.limit && self.body.line(line) {
            self.shown += 1;
        } else {
            self.closed = true;
        }
    }

    /// Shows a line that belongs to what is shown anyway.
    fn beside(&mut self, line: &str) {
        self.closed |= !self.closed && !self.body.line(line);
    }

    fn answer(self, gaps: &Gaps) -> ToolResult {
        let (least, matches, files) = (if self.at_least { "at least " } else { "" }, self.matches, self.files);
        let mut summary =
            format!("{least}{} in {}", counted(matches, "match", "matches"), counted(files, "file", "files"));
        if self.args.mode == Mode::Files {
            summary = format!("matches in {least}{}", counted(files, "file", "files"));
        }
        if files == 0 {
            summary.push_str(&format!(" ({} searched)", self.searched));
        }
        let mut notes = gaps.notes();
        let (all, of) = if self.args.mode == Mode::Content { (matches, "matches") } else { (files, "files") };
        if self.shown < all {
            let next = "give a narrower path, glob or pattern";
            notes.push(format!("({} of {least}{all} {of} are shown; {next})", self.shown));
        }
        Ok(answer(&summary, self.body.finish(&notes)))
    }
}

/// What a search of one file reports to.
struct InFile<'f, 'a> {
    found: &'f mut Found<'a>,
    shown: &'f str,
    matches: u64,
}

impl Sink for InFile<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, at: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        if self.found.args.mode == Mode::Content {
            let text = around(at.bytes(), self.found.matcher);
            self.found.show(&format!("{}:{}:{text}", self.shown, at.line_number().unwrap_or(0)));
        }
        // A list of files needs no count of their matches.
        Ok(self.found.args.mode != Mode::Files)
    }

    fn context(&mut self, _: &Searcher, at: &SinkContext<'_>) -> io::Result<bool> {
        let text = String::from_utf8_lossy(at.bytes());
        let text = cut(text.trim_end_matches(['\n', '\r']), MAX_LINE);
        // Context after the last match that the limit allows still belongs to it; context before the next does not,
        // but is told from it only by the match that follows.
        self.found.beside(&format!("{}-{}-{text}", self.shown, at.line_number().unwrap_or(0)));
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.found.beside("--");
        Ok(true)
    }
}

/// The line, or when it is long the part of it with the first match.
fn around(line: &[u8], matcher: &RegexMatcher) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = matcher.find(line).ok().flatten().map_or(0, |found| found.start());
    // A quarter of the room before the match, unless it stands at the beginning anyway.
    let from = if start < MAX_LINE / 2 { 0 } else { start - MAX_LINE / 4 };
    // Never from inside of a character.
    let skip = line.iter().skip(from).take_while(|b| **b & 0xc0 == 0x80).count();
    let text = String::from_utf8_lossy(line.get(from + skip..).unwrap_or_default());
    let dots = if from > 0 { "…" } else { "" };
    format!("{dots}{} [cut: the line has {} bytes]", cut(&text, MAX_LINE), line.len())
}

/// A file whose reading ends when the call is cancelled.
struct Watched<'a, R> {
    from: R,
    cancel: &'a CancellationToken,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.from.read(into)
    }
}
