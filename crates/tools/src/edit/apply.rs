//! Applying edits to bytes; bytes outside of a match are unchanged. Does not depend on files.
//!
//! The model writes `\n`. If the file has `\r\n`, matches are searched in the text with `\r\n` read as `\n`, and the new
//! text gets the line end used at the match. An `old` that itself has a `\r` is taken literally,
//! but where the file has no `\r\n`, it is read as `\n`. Where the file has `\r` and no `\n`, each line end is a `\r`.

use super::Replacement;
use super::nearest::{Nearest, alike, nearest};
use crate::answer::cut;
use crate::encoding::{ends_in_cr, second_bytes};
use crate::files::MAX_FILE;
use memchr::memmem;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use tokio_util::sync::CancellationToken;

/// The most lines of an ambiguous match that an error names.
const NAMED_LINES: usize = 10;

/// The most bytes of a line that an error shows.
const SHOWN_LINE: usize = 120;

pub(super) struct Applied {
    pub(super) bytes: Vec<u8>,
    pub(super) replaced: u64,
}

/// Which edit (from 1, of how many) does not fit, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EditProblem {
    pub(super) edit: usize,
    pub(super) of: usize,
    pub(super) why: EditProblemKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditProblemKind {
    Empty,
    Same,
    Absent(Option<Nearest>),
    /// It does not occur, and contains the mark that Read shows for bytes that are not UTF-8.
    Marked(Option<Nearest>),
    /// The file is not UTF-8, so its encoding is not known, and the new text would be in another one.
    Encoding,
    Ambiguous {
        times: usize,
        lines: Vec<usize>,
    },
    TooLarge,
    Cancelled,
}

impl fmt::Display for EditProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.of > 1 {
            write!(f, "edit {} of {}: ", self.edit, self.of)?;
        }
        let shown = |line: &str| cut(&line.replace('\t', "\\t"), SHOWN_LINE);
        match &self.why {
            EditProblemKind::Empty => {
                write!(
                    f,
                    "`old` is empty; give the text to replace, or use Write for the whole file"
                )
            }
            EditProblemKind::Same => write!(f, "`old` and `new` are the same"),
            EditProblemKind::Absent(None) => write!(
                f,
                "`old` does not occur; Read the file and copy the text exactly"
            ),
            EditProblemKind::Absent(Some(Nearest::Numbered)) => {
                write!(
                    f,
                    "`old` does not occur; it seems to contain Read's line numbers, leave them out"
                )
            }
            EditProblemKind::Absent(Some(Nearest::Like { line, text, wanted })) => write!(
                f,
                "`old` does not occur; the most similar line to its first line is line {line}: `{}`{}",
                shown(text),
                characters(text, wanted)
            ),
            EditProblemKind::Absent(Some(Nearest::Parts {
                from,
                line,
                text,
                wanted,
            })) => write!(
                f,
                "`old` does not occur; it matches from line {from}, but line {line} is `{}` where `old` has `{}`{}",
                shown(text),
                shown(wanted),
                characters(text, wanted)
            ),
            EditProblemKind::Marked(near) => {
                write!(
                    f,
                    "`old` contains \u{fffd}, which stands for bytes that are not UTF-8: no text matches them"
                )?;
                if let Some(Nearest::Like { line, text, .. } | Nearest::Parts { line, text, .. }) =
                    near
                {
                    write!(f, "; line {line} is `{}`", shown(text))?;
                }
                write!(
                    f,
                    "; leave these bytes out of `old`, or convert the file (Bash: iconv)"
                )
            }
            EditProblemKind::Encoding => write!(
                f,
                "the file is not UTF-8, and `new` has characters beyond ASCII: the file would have two encodings; write ASCII, or convert the file first (Bash: iconv)"
            ),
            EditProblemKind::Ambiguous { times, lines } => {
                let mut named: Vec<_> = lines.iter().map(usize::to_string).collect();
                let last = if lines.len() < *times {
                    None
                } else {
                    named.pop()
                };
                let last = last.map_or_else(|| ", …".to_owned(), |last| format!(" and {last}"));
                let named = named.join(", ");
                write!(
                    f,
                    "`old` occurs {times} times, on lines {named}{last}; add surrounding lines or set replace_all"
                )
            }
            EditProblemKind::TooLarge => write!(f, "the result would be over {MAX_FILE} bytes"),
            EditProblemKind::Cancelled => write!(f, "cancelled"),
        }
    }
}

/// Names the characters in which two texts differ that may look the same.
fn characters(text: &str, wanted: &str) -> String {
    let name = |(have, want)| format!(" (the bytes differ: {have} in the file, {want} in `old`)");
    alike(text, wanted).map(name).unwrap_or_default()
}

/// Applies every edit in order, each to the result of the one before.
pub(super) fn apply(
    before: &[u8],
    edits: &[Replacement],
    cancel: &CancellationToken,
) -> Result<Applied, EditProblem> {
    let mut bytes = before.to_owned();
    let mut replaced = 0;
    for (index, edit) in edits.iter().enumerate() {
        let edit = &as_the_file_ends(&bytes, edit);
        let problem = |why| EditProblem {
            edit: index + 1,
            of: edits.len(),
            why,
        };
        if cancel.is_cancelled() {
            return Err(problem(EditProblemKind::Cancelled));
        }
        let matches = matches(&bytes, edit).map_err(problem)?;
        // What is in `old`, too, is UTF-8 there.
        let foreign = |c: char| !c.is_ascii() && !edit.old.contains(c);
        if edit.new.contains(foreign) && str::from_utf8(&bytes).is_err() {
            return Err(problem(EditProblemKind::Encoding));
        }
        let grown = bytes.len() as u64 + matches.len() as u64 * 2 * edit.new.len() as u64;
        if grown > MAX_FILE && replaced_len(&bytes, &matches, edit) > MAX_FILE {
            return Err(problem(EditProblemKind::TooLarge));
        }
        replaced += matches.len() as u64;
        bytes = replace(&bytes, &matches, edit);
    }
    Ok(Applied { bytes, replaced })
}

/// Where an edit applies; at least one place.
fn matches(bytes: &[u8], edit: &Replacement) -> Result<Vec<Range<usize>>, EditProblemKind> {
    if edit.old.is_empty() {
        return Err(EditProblemKind::Empty);
    }
    if edit.old == edit.new {
        return Err(EditProblemKind::Same);
    }
    let view = View::of(bytes, edit);
    let finder = memmem::Finder::new(edit.old.as_bytes());
    let seconds = second_bytes(bytes);
    let is_inside = |at: usize| seconds.binary_search(&view.original(at)).is_ok();
    let len = edit.old.len();
    let whole = |at: &usize| seconds.is_empty() || !(is_inside(*at) || is_inside(at + len));
    let found: Vec<usize> = finder.find_iter(view.text()).filter(whole).collect();
    let Some(first) = found.first() else {
        let near = nearest(bytes, &edit.old);
        let marked =
            edit.old.contains(char::REPLACEMENT_CHARACTER) && str::from_utf8(bytes).is_err();
        return Err(if marked {
            EditProblemKind::Marked(near)
        } else {
            EditProblemKind::Absent(near)
        });
    };
    if !edit.replace_all {
        // `aa` occurs once in `aaa` without overlap, and is still ambiguous.
        let overlapping = view
            .text()
            .get(first + 1..)
            .and_then(|rest| finder.find(rest))
            .map(|at| first + 1 + at);
        if let Some(second) = overlapping {
            let all = if found.len() > 1 {
                found
            } else {
                vec![*first, second]
            };
            let lines = all
                .iter()
                .take(NAMED_LINES)
                .map(|at| line_of(view.text(), *at))
                .collect();
            return Err(EditProblemKind::Ambiguous {
                times: all.len(),
                lines,
            });
        }
    }
    Ok(found
        .into_iter()
        .map(|at| view.original(at)..view.original(at + len))
        .collect())
}

/// The text an edit is looked for in.
enum View<'a> {
    Exact(&'a [u8]),
    /// `\r\n` read as `\n`; `ends` are the places in `text` of those `\n`, ascending.
    Folded {
        text: Vec<u8>,
        ends: Vec<usize>,
    },
}

impl<'a> View<'a> {
    fn of(bytes: &'a [u8], edit: &Replacement) -> Self {
        if !folds(bytes, edit) {
            return Self::Exact(bytes);
        }
        let mut text = Vec::with_capacity(bytes.len());
        let mut ends = Vec::new();
        let mut rest = bytes;
        while let Some(at) = memmem::find(rest, b"\r\n") {
            let (line, after) = rest.split_at(at);
            text.extend_from_slice(line);
            ends.push(text.len());
            text.push(b'\n');
            rest = after.get(2..).unwrap_or_default();
        }
        text.extend_from_slice(rest);
        Self::Folded { text, ends }
    }

    fn text(&self) -> &[u8] {
        match self {
            Self::Exact(text) => text,
            Self::Folded { text, .. } => text,
        }
    }

    /// Converts an offset in the text to an offset in the file. A line end belongs to a match as a whole or not at all.
    fn original(&self, at: usize) -> usize {
        match self {
            Self::Exact(_) => at,
            Self::Folded { ends, .. } => at + ends.partition_point(|end| *end < at),
        }
    }
}

/// CRLF of the model in `old`, where the file has none, is LF; a line end is CR where the file has no other.
fn as_the_file_ends<'a>(bytes: &[u8], edit: &'a Replacement) -> Cow<'a, Replacement> {
    if ends_in_cr(bytes) {
        let [old, new] =
            [&edit.old, &edit.new].map(|text| text.replace("\r\n", "\r").replace('\n', "\r"));
        return Cow::Owned(Replacement {
            old,
            new,
            ..edit.clone()
        });
    }
    if !edit.old.contains("\r\n") || memmem::find(bytes, b"\r\n").is_some() {
        return Cow::Borrowed(edit);
    }
    let [old, new] = [&edit.old, &edit.new].map(|text| text.replace("\r\n", "\n"));
    Cow::Owned(Replacement {
        old,
        new,
        ..edit.clone()
    })
}

fn folds(bytes: &[u8], edit: &Replacement) -> bool {
    !edit.old.contains('\r') && memmem::find(bytes, b"\r\n").is_some()
}

fn replace(bytes: &[u8], matches: &[Range<usize>], edit: &Replacement) -> Vec<u8> {
    let folded = folds(bytes, edit) && edit.new.contains('\n');
    let plain = edit.new.replace("\r\n", "\n");
    let crlf = plain.replace('\n', "\r\n");
    let mut out = Vec::with_capacity(bytes.len());
    let mut done = 0;
    for at in matches {
        out.extend_from_slice(bytes.get(done..at.start).unwrap_or_default());
        let new = match (folded, ends_in_crlf(bytes, at.start)) {
            (false, _) => &edit.new,
            (true, true) => &crlf,
            (true, false) => &plain,
        };
        out.extend_from_slice(new.as_bytes());
        done = at.end;
    }
    out.extend_from_slice(bytes.get(done..).unwrap_or_default());
    out
}

fn replaced_len(bytes: &[u8], matches: &[Range<usize>], edit: &Replacement) -> u64 {
    let gone: usize = matches.iter().map(Range::len).sum();
    let ends = if folds(bytes, edit) {
        edit.new.matches('\n').count()
    } else {
        0
    };
    (bytes.len() - gone) as u64 + matches.len() as u64 * (edit.new.len() + ends) as u64
}

/// Whether the line at `at` ends in `\r\n`; the last line goes by the one before it.
fn ends_in_crlf(bytes: &[u8], at: usize) -> bool {
    let (head, tail) = bytes.split_at(at.min(bytes.len()));
    let end = match memchr::memchr(b'\n', tail) {
        Some(next) => Some(head.len() + next),
        None => memchr::memrchr(b'\n', head),
    };
    end.and_then(|end| end.checked_sub(1))
        .and_then(|before| bytes.get(before))
        == Some(&b'\r')
}

fn line_of(text: &[u8], at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', text.get(..at).unwrap_or(text)).count()
}

#[cfg(test)]
mod tests;
