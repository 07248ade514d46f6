//! Finding the part of a text that is most similar to one that does not occur in it. Does not depend on files.

use authority::escape;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many lines of the file are compared.
const MAX_LINES: usize = 20_000;

/// How much of a line is compared, in bytes.
const MAX_LINE: usize = 200;

/// The lowest similarity, in hundredths, of a line that is named.
const LIKE: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nearest {
    /// The text carries line numbers as Read shows them.
    Numbered,
    /// No line fits its first line; this one is most like it.
    Like { line: usize, text: String, wanted: String },
    /// Its first lines occur at `from`; `line` is the first that differs.
    Parts { from: usize, line: usize, text: String, wanted: String },
}

pub(super) fn nearest(bytes: &[u8], old: &str) -> Option<Nearest> {
    if old.lines().all(numbered) {
        return Some(Nearest::Numbered);
    }
    let file = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = file.lines().take(MAX_LINES).collect();
    let mut found = parts(&lines, old).or_else(|| like(&lines, old))?;
    if let Nearest::Like { line, text, .. } | Nearest::Parts { line, text, .. } = &mut found
        && let Some(raw) = bytes.split(|b| *b == b'\n').nth(*line - 1).filter(|raw| str::from_utf8(raw).is_err())
    {
        *text = escape(Path::new(OsStr::from_bytes(raw.trim_ascii_end())));
    }
    Some(found)
}

/// The first characters that differ, each with the one behind it, if they may look the same; of a line, and of the one
/// that was wanted.
pub(super) fn alike(line: &str, wanted: &str) -> Option<(String, String)> {
    let (line, wanted) = (line.trim_start(), wanted.trim_start());
    let ((at, have), want) = line.char_indices().zip(wanted.chars()).find(|((_, have), want)| have != want)?;
    let points = |text: &str| {
        let named = text.get(at..).unwrap_or_default().chars().take(2).map(|c| format!("U+{:04X}", u32::from(c)));
        named.collect::<Vec<_>>().join(" ")
    };
    (!have.is_ascii() || !want.is_ascii()).then(|| (points(line), points(wanted)))
}

/// `   12<tab>text`.
fn numbered(line: &str) -> bool {
    let digits = line.trim_start().split_once('\t').map(|(digits, _)| digits);
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The place where most of the first lines of `old` occur.
fn parts(lines: &[&str], old: &str) -> Option<Nearest> {
    let wanted: Vec<&str> = old.lines().collect();
    let (first, rest) = wanted.split_first().filter(|(first, rest)| !first.trim().is_empty() && !rest.is_empty())?;
    let starts = lines.iter().enumerate().filter(|(_, line)| line.ends_with(first));
    let fit = |start: usize| lines.iter().skip(start + 1).zip(rest).take_while(|(have, want)| have == want).count();
    let (start, same) =
        starts.map(|(start, _)| (start, fit(start))).max_by_key(|(start, same)| (*same, usize::MAX - start))?;
    let wanted = (*rest.get(same)?).to_owned();
    let differs = start + 1 + same;
    let text = lines.get(differs).map_or_else(|| "(end of file)".to_owned(), |line| (*line).to_owned());
    Some(Nearest::Parts { from: start + 1, line: differs + 1, text, wanted })
}

fn like(lines: &[&str], old: &str) -> Option<Nearest> {
    let wanted_line = old.lines().find(|line| !line.trim().is_empty())?;
    let wanted = pairs(wanted_line);
    let scored = lines.iter().enumerate().map(|(index, line)| (likeness(&wanted, &pairs(line)), index));
    let (score, index) = scored.max_by_key(|(score, index)| (*score, usize::MAX - index))?;
    let text = (*lines.get(index)?).to_owned();
    (score >= LIKE).then_some(Nearest::Like { line: index + 1, text, wanted: wanted_line.to_owned() })
}

/// Neighbouring bytes of a line without its white space, sorted.
fn pairs(line: &str) -> Vec<(u8, u8)> {
    let bytes: Vec<u8> = line.bytes().filter(|b| !b.is_ascii_whitespace()).take(MAX_LINE).collect();
    let mut pairs: Vec<_> = bytes.iter().copied().zip(bytes.iter().copied().skip(1)).collect();
    if let ([only], []) = (bytes.as_slice(), pairs.as_slice()) {
        pairs.push((*only, 0));
    }
    pairs.sort_unstable();
    pairs
}

/// Shared pairs in hundredths of all (Dice).
fn likeness(a: &[(u8, u8)], b: &[(u8, u8)]) -> usize {
    let (mut left, mut right, mut shared) = (a.iter().peekable(), b.iter().peekable(), 0_usize);
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => drop(left.next()),
            std::cmp::Ordering::Greater => drop(right.next()),
            std::cmp::Ordering::Equal => {
                shared += 1;
                left.next();
                right.next();
            }
        }
    }
    (200 * shared).checked_div(a.len() + b.len()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn one() {\n\tlet a = 1;\n}\n\nfn two() {\n\tlet b = 2;\n}\n";

    #[test]
    fn the_hint_fits_the_mistake() {
        let like = |line, text: &str, wanted: &str| {
            Some(Nearest::Like { line, text: text.to_owned(), wanted: wanted.to_owned() })
        };
        let table = [
            ("spaces for a tab", "    let b = 2;", like(6, "\tlet b = 2;", "    let b = 2;")),
            ("a typing mistake", "fn twoo() {", like(5, "fn two() {", "fn twoo() {")),
            ("line numbers", "     5\tfn two() {\n     6\t\tlet b = 2;", Some(Nearest::Numbered)),
            ("nothing like it", "zzzzzz", None),
            (
                "fits, then differs",
                "fn two() {\n    let b = 2;\n}",
                Some(Nearest::Parts { from: 5, line: 6, text: "\tlet b = 2;".into(), wanted: "    let b = 2;".into() }),
            ),
            (
                "runs past the end",
                "\tlet b = 2;\n}\nfn three() {}",
                Some(Nearest::Parts { from: 6, line: 8, text: "(end of file)".into(), wanted: "fn three() {}".into() }),
            ),
        ];
        for (name, old, want) in table {
            assert_eq!(nearest(FILE.as_bytes(), old), want, "{name}");
        }
    }
}
