//! Finding the part of a text that is most similar to one that does not occur in it. Does not depend on files.

use authority::escape;
use icu_normalizer::ComposingNormalizerBorrowed;
use std::cmp::Reverse;
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
    Like {
        line: usize,
        text: String,
        wanted: String,
    },
    /// Its first lines occur at `from`; `line` is the first that differs.
    Parts {
        from: usize,
        line: usize,
        text: String,
        wanted: String,
    },
}

pub(super) fn nearest(bytes: &[u8], old: &str) -> Option<Nearest> {
    if old.lines().all(numbered) {
        return Some(Nearest::Numbered);
    }
    let file = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = file.lines().take(MAX_LINES).collect();
    let mut found = parts(&lines, old).or_else(|| like(&lines, old))?;
    if let Nearest::Like { line, text, .. } | Nearest::Parts { line, text, .. } = &mut found
        && let Some(raw) = bytes
            .split(|b| *b == b'\n')
            .nth(*line - 1)
            .filter(|raw| str::from_utf8(raw).is_err())
    {
        *text = escape(Path::new(OsStr::from_bytes(raw.trim_ascii_end())));
    }
    Some(found)
}

/// The first characters that differ, each with the one behind it, if they may look the same; of a line, and of what was
/// wanted in it.
pub(super) fn alike(line: &str, wanted: &str) -> Option<(String, String)> {
    let rest = |from| line.get(from..).unwrap_or_default().chars();
    let same = |from| {
        rest(from)
            .zip(wanted.chars())
            .take(MAX_LINE)
            .take_while(|(have, want)| have == want)
            .count()
    };
    let wanted = wanted.trim_start();
    let starts = line.char_indices().map(|(at, _)| at).take(MAX_LINE);
    let from = starts.max_by_key(|from| (same(*from), Reverse(*from)))?;
    let at = same(from);
    let have = rest(from).nth(at)?;
    let want = wanted.chars().nth(at)?;
    let points = |text: std::str::Chars<'_>| {
        let named = text
            .skip(at)
            .take(2)
            .map(|c| format!("U+{:04X}", u32::from(c)));
        named.collect::<Vec<_>>().join(" ")
    };
    (!have.is_ascii() || !want.is_ascii()).then(|| (points(rest(from)), points(wanted.chars())))
}

/// `   12<tab>text`.
fn numbered(line: &str) -> bool {
    let digits = line.trim_start().split_once('\t').map(|(digits, _)| digits);
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The place where most of the first lines of `old` occur.
fn parts(lines: &[&str], old: &str) -> Option<Nearest> {
    let wanted: Vec<&str> = old.lines().collect();
    let (first, rest) = wanted
        .split_first()
        .filter(|(first, rest)| !first.trim().is_empty() && !rest.is_empty())?;
    let starts = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.ends_with(first));
    let fit = |start: usize| {
        lines
            .iter()
            .skip(start + 1)
            .zip(rest)
            .take_while(|(have, want)| have == want)
            .count()
    };
    let (start, same) = starts
        .map(|(start, _)| (start, fit(start)))
        .max_by_key(|(start, same)| (*same, usize::MAX - start))?;
    let wanted = (*rest.get(same)?).to_owned();
    let differs = start + 1 + same;
    let text = lines
        .get(differs)
        .map_or_else(|| "(end of file)".to_owned(), |line| (*line).to_owned());
    Some(Nearest::Parts {
        from: start + 1,
        line: differs + 1,
        text,
        wanted,
    })
}

fn like(lines: &[&str], old: &str) -> Option<Nearest> {
    let wanted_line = old.lines().find(|line| !line.trim().is_empty())?;
    let found = |index, line: &str| Nearest::Like {
        line: index + 1,
        text: line.to_owned(),
        wanted: wanted_line.to_owned(),
    };
    // The same letters, whose accents are apart (NFD) in one of the two.
    let form = ComposingNormalizerBorrowed::new_nfc();
    let composed = form.normalize(wanted_line.trim());
    let holds = |line: &str| !line.is_ascii() && form.normalize(line).contains(&*composed);
    if let Some((index, line)) = lines
        .iter()
        .enumerate()
        .find(|(_, line)| !composed.is_ascii() && holds(line))
    {
        return Some(found(index, line));
    }
    let wanted = pairs(wanted_line);
    let scored = lines
        .iter()
        .enumerate()
        .map(|(index, line)| (likeness(&wanted, &pairs(line)), index));
    let (score, index) = scored.max_by_key(|(score, index)| (*score, usize::MAX - index))?;
    (score >= LIKE).then_some(found(index, lines.get(index)?))
}

/// Neighbouring bytes of a line without its white space, sorted.
fn pairs(line: &str) -> Vec<(u8, u8)> {
    let bytes: Vec<u8> = line
        .bytes()
        .filter(|b| !b.is_ascii_whitespace())
        .take(MAX_LINE)
        .collect();
    let mut pairs: Vec<_> = bytes
        .iter()
        .copied()
        .zip(bytes.iter().copied().skip(1))
        .collect();
    if let ([only], []) = (bytes.as_slice(), pairs.as_slice()) {
        pairs.push((*only, 0));
    }
    pairs.sort_unstable();
    pairs
}

/// Shared pairs in hundredths of all (Dice).
fn likeness(a: &[(u8, u8)], b: &[(u8, u8)]) -> usize {
    let mut left = a.iter().peekable();
    let mut right = b.iter().peekable();
    let mut shared = 0_usize;
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
            Some(Nearest::Like {
                line,
                text: text.to_owned(),
                wanted: wanted.to_owned(),
            })
        };
        let table = [
            (
                "spaces for a tab",
                "    let b = 2;",
                like(6, "\tlet b = 2;", "    let b = 2;"),
            ),
            (
                "a typing mistake",
                "fn twoo() {",
                like(5, "fn two() {", "fn twoo() {"),
            ),
            (
                "line numbers",
                "     5\tfn two() {\n     6\t\tlet b = 2;",
                Some(Nearest::Numbered),
            ),
            ("nothing like it", "zzzzzz", None),
            (
                "fits, then differs",
                "fn two() {\n    let b = 2;\n}",
                Some(Nearest::Parts {
                    from: 5,
                    line: 6,
                    text: "\tlet b = 2;".into(),
                    wanted: "    let b = 2;".into(),
                }),
            ),
            (
                "runs past the end",
                "\tlet b = 2;\n}\nfn three() {}",
                Some(Nearest::Parts {
                    from: 6,
                    line: 8,
                    text: "(end of file)".into(),
                    wanted: "fn three() {}".into(),
                }),
            ),
        ];
        for (name, old, want) in table {
            assert_eq!(nearest(FILE.as_bytes(), old), want, "{name}");
        }
    }

    /// A letter and its accent are one character or two: `anomalyco/opencode#31786` did not find what looked the same.
    #[test]
    fn letters_in_another_form_are_named() {
        let table = [
            (
                "apart in the file",
                "cafe\u{301} = 1",
                "caf\u{e9} = 1",
                "U+0065 U+0301",
                "U+00E9 U+0020",
            ),
            (
                "apart in `old`",
                "\tna\u{ef}ve",
                "nai\u{308}ve",
                "U+00EF U+0076",
                "U+0069 U+0308",
            ),
            (
                "in the middle of a line",
                "let x = \"A\u{30a}\";",
                "\"\u{c5}\"",
                "U+0041 U+030A",
                "U+00C5 U+0022",
            ),
            (
                "of Hangul",
                "\u{1112}\u{1161}\u{11ab}",
                "\u{d55c}",
                "U+1112 U+1161",
                "U+D55C",
            ),
        ];
        for (name, line, old, have, want) in table {
            let file = format!("one\n{line}\nthree\n");
            let Some(Nearest::Like {
                line: at,
                text,
                wanted,
            }) = nearest(file.as_bytes(), old)
            else {
                panic!("{name}: nothing found")
            };
            assert_eq!(
                (at, alike(&text, &wanted)),
                (2, Some((have.to_owned(), want.to_owned()))),
                "{name}"
            );
        }
    }
}
