//! List: a directory as a tree, or as totals by extension.

use crate::answer::{ContentBuilder, answer, counted, fix, go_on};
use crate::scope;
use crate::search::{Gaps, Search};
use crate::sniff::{HEAD, binary};
use authority::{FileKind, Located, WalkEntry, escape};
use llm_worker::tool::Touch;
use llm_worker::{ToolContext, ToolEffect, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// The tool's name.
pub const NAME: &str = "List";
/// The description for the model.
pub const ABOUT: &str = "Show a directory as a tree with file sizes in bytes. With totals: files, lines and bytes by extension of everything below it, and the largest files. What .gitignore names is left out.";
/// The effect of a repeated call.
pub const EFFECT: ToolEffect = ToolEffect::ReadOnly;

/// The default number of levels shown.
pub const DEFAULT_DEPTH: usize = 2;

/// The most levels.
pub const MAX_DEPTH: usize = 32;

/// How many entries of a tree are shown.
pub const MAX_SHOWN: u64 = 1000;

/// How many extensions have a row of their own.
pub const MAX_EXTENSIONS: usize = 40;

/// How many of the largest files are named.
pub const LARGEST: usize = 10;

/// The most bytes of files that totals read for counting lines; after that only bytes are counted.
pub const MAX_COUNTED: u64 = 1 << 30;

/// Bytes of the content reserved for notes.
const RESERVE: usize = 1024;

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// The arguments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Args {
    /// Directory.
    #[serde(default = "crate::search::here")]
    pub path: String,
    /// Levels shown.
    #[serde(default = "depth")]
    pub depth: usize,
    /// Totals instead of a tree.
    #[serde(default)]
    pub totals: bool,
}

fn depth() -> usize {
    DEFAULT_DEPTH
}

/// The resources that permission judges.
#[must_use]
pub fn touches(args: &Args) -> Vec<Touch> {
    vec![Touch::Read(args.path.clone().into())]
}

/// Runs one call.
///
/// # Errors
/// `FixInput` for what is no directory; `Denied` outside of the workspace; `Cancelled`.
pub async fn run(live: Arc<Search>, args: Args, cx: ToolContext) -> ToolResult {
    if args.depth == 0 || args.depth > MAX_DEPTH {
        return Err(fix(format!("depth must be 1 to {MAX_DEPTH}")));
    }
    let at = live.start(&args.path)?;
    scope::directory(&live.workspace, &at)?;
    if args.totals {
        totals(&live, &at, &cx)
    } else {
        tree(&live, &at, args.depth, &cx)
    }
}

fn tree(live: &Search, at: &Located, depth: usize, cx: &ToolContext) -> ToolResult {
    let mut body = ContentBuilder::new(RESERVE);
    let mut dirs = 0;
    let mut files = 0;
    let mut shown = 0;
    let gaps = live.walk(at, Some(depth), cx, |entry| {
        let name = entry
            .path
            .file_name()
            .map(|name| escape(Path::new(name)))
            .unwrap_or_default();
        let text = match entry.kind {
            FileKind::Dir => format!("{name}/"),
            FileKind::File => format!("{name}  {}", entry.len),
            FileKind::Symlink => format!("{name}  link"),
            FileKind::Other => format!("{name}  not a regular file"),
        };
        let before = dirs + files;
        match entry.kind {
            FileKind::Dir => dirs += 1,
            FileKind::File | FileKind::Symlink | FileKind::Other => files += 1,
        }
        let indent = "  ".repeat(entry.depth.saturating_sub(1));
        if shown == before && shown < MAX_SHOWN && body.line(&format!("{indent}{text}")) {
            shown += 1;
        }
        Ok(true)
    })?;
    let mut notes = gaps.notes();
    if shown < dirs + files {
        notes.push(format!(
            "(the first {shown} of {} entries are shown; list a directory below)",
            dirs + files
        ));
    }
    let summary = format!(
        "{}, {}",
        counted(dirs, "directory", "directories"),
        counted(files, "file", "files")
    );
    Ok(answer(&summary, body.finish(&notes)))
}

#[derive(Clone, Copy, Default)]
struct Sum {
    files: u64,
    lines: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.lines += other.lines;
        self.bytes += other.bytes;
    }
}

fn totals(live: &Search, at: &Located, cx: &ToolContext) -> ToolResult {
    let mut by_extension: BTreeMap<String, Sum> = BTreeMap::new();
    let mut largest: Vec<(u64, u64, String)> = Vec::new();
    let mut all = Sum::default();
    let mut counted_bytes = 0;
    let mut uncounted = 0_u64;
    let mut unread = Gaps::default();
    let gaps = live.files(at, cx, |entry, _| {
        let mut sum = Sum {
            files: 1,
            lines: 0,
            bytes: entry.len,
        };
        if live.skips(entry) {
            unread.secret(live.workspace.show(&entry.path));
        } else if counted_bytes + entry.len > MAX_COUNTED {
            uncounted += 1;
        } else {
            counted_bytes += entry.len;
            match lines_of(live, entry, cx)? {
                Ok(lines) => sum.lines = lines,
                Err(error) => unread.add(&error.to_string()),
            }
        }
        all.add(sum);
        let extension = entry
            .path
            .extension()
            .map_or("(none)".to_owned(), |end| escape(Path::new(end)));
        by_extension.entry(extension).or_default().add(sum);
        largest.push((sum.lines, entry.len, live.workspace.show(&entry.path)));
        // Kept short as it grows, and sorted only when twice as long as needed.
        if largest.len() >= 2 * LARGEST {
            keep_largest(&mut largest);
        }
        Ok(true)
    })?;
    keep_largest(&mut largest);

    let mut body = ContentBuilder::new(RESERVE);
    let mut complete = true;
    for line in table(by_extension).iter().chain(&largest_files(&largest)) {
        complete &= body.line(line);
    }
    let mut notes = gaps.and(unread).notes_with("counted but not read");
    if uncounted > 0 {
        notes.push(format!(
            "(lines of {uncounted} files are not counted: over {MAX_COUNTED} bytes in all)"
        ));
    }
    if !complete {
        notes.push("(some rows did not fit)".to_owned());
    }
    let summary = format!(
        "{}, {}",
        counted(all.files, "file", "files"),
        counted(all.lines, "line", "lines")
    );
    Ok(answer(&summary, body.finish(&notes)))
}

fn keep_largest(largest: &mut Vec<(u64, u64, String)>) {
    largest.sort_by(|a, b| (Reverse((a.0, a.1)), &a.2).cmp(&(Reverse((b.0, b.1)), &b.2)));
    largest.truncate(LARGEST);
}

/// One row per extension, most lines first.
fn table(by_extension: BTreeMap<String, Sum>) -> Vec<String> {
    let mut rows: Vec<_> = by_extension.into_iter().collect();
    rows.sort_by_key(|(_, sum)| Reverse((sum.lines, sum.bytes)));
    if rows.len() > MAX_EXTENSIONS {
        let mut other = Sum::default();
        for (_, sum) in rows.drain(MAX_EXTENSIONS..) {
            other.add(sum);
        }
        rows.push(("(other)".to_owned(), other));
    }
    let width = rows
        .iter()
        .map(|(extension, _)| extension.chars().count())
        .max()
        .unwrap_or(0)
        .max("extension".len());
    let mut out = vec![format!(
        "{:<width$}  {:>6}  {:>9}  {:>11}",
        "extension", "files", "lines", "bytes"
    )];
    out.extend(rows.iter().map(|(extension, sum)| {
        format!(
            "{extension:<width$}  {:>6}  {:>9}  {:>11}",
            sum.files, sum.lines, sum.bytes
        )
    }));
    out
}

fn largest_files(largest: &[(u64, u64, String)]) -> Vec<String> {
    let mut out = vec![
        String::new(),
        "largest files".to_owned(),
        format!("{:>9}  {:>11}  path", "lines", "bytes"),
    ];
    out.extend(
        largest
            .iter()
            .map(|(lines, bytes, path)| format!("{lines:>9}  {bytes:>11}  {path}")),
    );
    out
}

/// The lines of a text file; what is not text has none. The outer error is a cancelled call.
fn lines_of(
    live: &Search,
    entry: &WalkEntry,
    cx: &ToolContext,
) -> Result<io::Result<u64>, ToolError> {
    let opened = entry.located().and_then(|at| live.workspace.open_file(&at));
    let mut file = match opened {
        Ok(file) => file,
        Err(error) => return Ok(Err(io::Error::other(error))),
    };
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut lines = 0;
    let mut last = b'\n';
    let mut first = true;
    loop {
        go_on(&cx.cancel)?;
        chunk.clear();
        match file.by_ref().take(CHUNK as u64).read_to_end(&mut chunk) {
            Ok(0) => return Ok(Ok(lines + u64::from(last != b'\n'))),
            Ok(_) => {}
            Err(error) => return Ok(Err(error)),
        }
        if first && binary(chunk.get(..HEAD).unwrap_or(&chunk)).is_some() {
            return Ok(Ok(0));
        }
        first = false;
        lines += memchr::memchr_iter(b'\n', &chunk).count() as u64;
        last = chunk.last().copied().unwrap_or(last);
    }
}
