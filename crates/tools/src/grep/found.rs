//! The matches of Grep so far, as output.

use super::{Args, MAX_LINE, OutputMode, RESERVE};
use crate::answer::{ContentBuilder, answer, counted, cut};
use crate::search::{Gaps, Search};
use crate::sniff::{HEAD, binary};
use authority::WalkEntry;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use llm_worker::ToolResult;
use std::io::{self, Read};
use tokio_util::sync::CancellationToken;

/// The matches collected so far, as output lines.
pub(super) struct GrepOutput<'a> {
    args: &'a Args,
    matcher: &'a RegexMatcher,
    body: ContentBuilder,
    matches: u64,
    files: u64,
    searched: u64,
    shown: u64,
    /// Further matches are only counted, not shown.
    pub(super) closed: bool,
    pub(super) counted_on: u64,
    pub(super) at_least: bool,
}

impl<'a> GrepOutput<'a> {
    pub(super) fn new(args: &'a Args, matcher: &'a RegexMatcher) -> Self {
        let body = ContentBuilder::new(RESERVE);
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

    pub(super) fn search(
        &mut self,
        live: &Search,
        entry: &WalkEntry,
        searcher: &mut Searcher,
        cancel: &CancellationToken,
    ) -> io::Result<()> {
        let opened = entry.located().and_then(|at| live.workspace.open_file(&at));
        let mut file = Watched {
            from: opened.map_err(io::Error::other)?,
            cancel,
        };
        let mut head = Vec::new();
        file.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        if binary(&head).is_some() {
            return Ok(());
        }
        self.searched += 1;
        if self.closed {
            self.counted_on += entry.len;
        }
        let shown = live.workspace.show(&entry.path);
        let mut in_file = InFile {
            found: self,
            shown: &shown,
            matches: 0,
        };
        let done = searcher.search_reader(
            in_file.found.matcher,
            head.as_slice().chain(file),
            &mut in_file,
        );
        let matches = in_file.matches;
        self.matches += matches;
        if matches > 0 {
            self.files += 1;
            match self.args.mode {
                OutputMode::Content => {}
                OutputMode::Files => self.show(&shown),
                OutputMode::Count => self.show(&format!("{shown}:{matches}")),
            }
        }
        done
    }

    /// Adds a line that counts against the limit.
    fn show(&mut self, line: &str) {
        if !self.closed && self.shown < self.args.limit && self.body.line(line) {
            self.shown += 1;
        } else {
            self.closed = true;
        }
    }

    /// Adds a line that belongs to one already shown.
    fn beside(&mut self, line: &str) {
        self.closed |= !self.closed && !self.body.line(line);
    }

    pub(super) fn answer(self, gaps: &Gaps) -> ToolResult {
        let least = if self.at_least { "at least " } else { "" };
        let matches = self.matches;
        let files = self.files;
        let mut summary = format!(
            "{least}{} in {}",
            counted(matches, "match", "matches"),
            counted(files, "file", "files")
        );
        if self.args.mode == OutputMode::Files {
            summary = format!("matches in {least}{}", counted(files, "file", "files"));
        }
        if files == 0 {
            summary.push_str(&format!(" ({} searched)", self.searched));
        }
        let mut notes = gaps.notes();
        let (all, of) = if self.args.mode == OutputMode::Content {
            (matches, "matches")
        } else {
            (files, "files")
        };
        if self.shown < all {
            let next = "give a narrower path, glob or pattern";
            notes.push(format!(
                "({} of {least}{all} {of} are shown; {next})",
                self.shown
            ));
        }
        Ok(answer(&summary, self.body.finish(&notes)))
    }
}

/// Receives the matches of one file.
struct InFile<'f, 'a> {
    found: &'f mut GrepOutput<'a>,
    shown: &'f str,
    matches: u64,
}

impl Sink for InFile<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, at: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        if self.found.args.mode == OutputMode::Content {
            let text = around(at.bytes(), self.found.matcher);
            self.found.show(&format!(
                "{}:{}:{text}",
                self.shown,
                at.line_number().unwrap_or(0)
            ));
        }
        // A list of files needs no count of their matches.
        Ok(self.found.args.mode != OutputMode::Files)
    }

    fn context(&mut self, _: &Searcher, at: &SinkContext<'_>) -> io::Result<bool> {
        let text = String::from_utf8_lossy(at.bytes());
        let text = cut(text.trim_end_matches(['\n', '\r']), MAX_LINE);
        // Context after the last match that the limit allows still belongs to it; context before the next does not,
        // but is told from it only by the match that follows.
        self.found.beside(&format!(
            "{}-{}-{text}",
            self.shown,
            at.line_number().unwrap_or(0)
        ));
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
    let start = matcher
        .find(line)
        .ok()
        .flatten()
        .map_or(0, |found| found.start());
    // A quarter of the shown text is before the match, unless the match is near the beginning.
    let from = if start < MAX_LINE / 2 {
        0
    } else {
        start - MAX_LINE / 4
    };
    // Never from inside of a character.
    let skip = line
        .iter()
        .skip(from)
        .take_while(|b| **b & 0xc0 == 0x80)
        .count();
    let text = String::from_utf8_lossy(line.get(from + skip..).unwrap_or_default());
    let dots = if from > 0 { "…" } else { "" };
    format!(
        "{dots}{} [cut: the line has {} bytes]",
        cut(&text, MAX_LINE),
        line.len()
    )
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
