//! Code with the meanings of its pieces, found by a table of signs and words. Changes no character.

mod languages;
#[cfg(test)]
mod tests;

use crate::line::Line;
use crate::style::Tone;
use languages::{Begins, Enclosed, LANGUAGES, Language};

/// Bytes of a block that is highlighted; a longer one is not.
const MAX_BYTES: usize = 64 << 10;

/// Lines of a block that is highlighted.
const MAX_LINES: usize = 2000;

/// Characters of an escape within a character literal.
const MAX_ESCAPE: usize = 12;

/// Lines of code whose language is the first word of `tag`. They stay as they are where it is not known, and in a
/// large block. A line does not depend on later ones.
pub(crate) fn highlight(tag: &str, lines: Vec<Line>) -> Vec<Line> {
    let is_small = || {
        lines.len() <= MAX_LINES
            && lines.iter().map(|line| line.text().len()).sum::<usize>() <= MAX_BYTES
    };
    let Some(language) = language(tag).filter(|_| is_small()) else {
        return lines;
    };
    let mut scanner = Scanner {
        language,
        open: None,
    };
    lines.iter().map(|line| scanner.line(line)).collect()
}

/// The code of a file, by its name; none where its language is not known, or there is too much of it.
pub(crate) fn of_file(name: &str, text: &str) -> Option<Scanner> {
    let file = name.rsplit('/').next().unwrap_or_default();
    let (_, extension) = file
        .rsplit_once('.')
        .filter(|(_, extension)| !extension.contains([' ', ',', '{', '\t']))?;
    let is_small = text.len() <= MAX_BYTES && text.lines().count() <= MAX_LINES;
    Some(Scanner {
        language: language(extension)?,
        open: None,
    })
    .filter(|_| is_small)
}

fn language(tag: &str) -> Option<&'static Language> {
    let tag = tag
        .split([' ', ',', '{', '\t'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    LANGUAGES
        .iter()
        .find(|language| language.tags.contains(&tag.as_str()))
}

/// Reads code line by line.
#[derive(Clone)]
pub(crate) struct Scanner {
    language: &'static Language,
    /// What the line before left open.
    open: Option<&'static Enclosed>,
}

impl Scanner {
    /// What the lines before left open does not count any more.
    pub(crate) fn anew(&mut self) {
        self.open = None;
    }

    pub(crate) fn line(&mut self, line: &Line) -> Line {
        let text = line.text();
        let mut at = 0;
        let mut pieces = Vec::new();
        while let Some((before, rest)) = text
            .split_at_checked(at)
            .filter(|(_, rest)| !rest.is_empty())
        {
            let (length, tone) = self.piece(before, rest);
            at += length;
            pieces.push((at, tone));
        }
        self.open = self.open.filter(|open| open.is_long);
        line.toned(&pieces)
    }

    /// The bytes of the piece that `rest` begins with, at least one character, and its meaning.
    fn piece(&mut self, before: &str, rest: &str) -> (usize, Tone) {
        if let Some(open) = self.open {
            return self.enclosed(open, rest, 0);
        }
        let language = self.language;
        if let Some(begun) = language
            .enclosed
            .iter()
            .find(|enclosed| enclosed.begins_at(before, rest))
        {
            return self.enclosed(begun, rest, begun.open.len());
        }
        let first = rest.chars().next().unwrap_or_default();
        if first.is_ascii_digit() {
            return (number(rest), Tone::Number);
        }
        if !(first.is_alphabetic() || first == '_' || language.marks.contains(first)) {
            return (first.len_utf8(), Tone::Plain);
        }
        let is_inner = |c: char| c.is_alphanumeric() || c == '_' || language.inner.contains(c);
        let inner = rest.get(first.len_utf8()..).unwrap_or_default();
        let length = rest.len() - inner.trim_start_matches(is_inner).len();
        let (word, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let is_marked = language.marks.contains(first) && word.len() > 1;
        // `.type` is a field, `$in` a variable and `--for` an option.
        let is_keyword = language.has_keyword(word) && !before.ends_with(['.', '$', '-']);
        let tone = if is_marked || is_keyword || self.is_key(behind) {
            Tone::Keyword
        } else {
            Tone::Plain
        };
        (length, tone)
    }

    /// The same of what is enclosed; `from`: where its end is looked for.
    fn enclosed(&mut self, enclosed: &'static Enclosed, rest: &str, from: usize) -> (usize, Tone) {
        let end = enclosed.end(rest, from);
        self.open = Some(enclosed).filter(|_| end.is_none());
        let length = end.unwrap_or(rest.len());
        let is_key = end.is_some()
            && enclosed.tone == Tone::Quoted
            && self.is_key(rest.get(length..).unwrap_or_default());
        (length, if is_key { Tone::Keyword } else { enclosed.tone })
    }

    /// Whether what stands before this text is a key; `http` in `http://` is none.
    fn is_key(&self, behind: &str) -> bool {
        let value = self
            .language
            .key
            .and_then(|key| behind.trim_start_matches(' ').strip_prefix(key));
        value.is_some_and(|value| !value.starts_with('/'))
    }
}

impl Language {
    fn has_keyword(&self, word: &str) -> bool {
        let is_same = |keyword: &str| {
            if self.any_case {
                keyword.eq_ignore_ascii_case(word)
            } else {
                keyword == word
            }
        };
        self.keywords.split(' ').any(is_same)
    }
}

impl Enclosed {
    fn begins_at(&self, before: &str, rest: &str) -> bool {
        let Some(inside) = rest.strip_prefix(self.open) else {
            return false;
        };
        match self.begins {
            Begins::Anywhere => true,
            Begins::Apart => before.chars().next_back().is_none_or(char::is_whitespace),
            Begins::AsCharacter => {
                let mut inside = inside.chars();
                match inside.next() {
                    Some('\\') => inside.skip(1).take(MAX_ESCAPE).any(|c| c == '\''),
                    _ => inside.next() == Some('\''),
                }
            }
        }
    }

    /// The bytes up to behind its end.
    fn end(&self, text: &str, from: usize) -> Option<usize> {
        let mut rest = text.get(from..)?;
        let mut is_escaped = false;
        while let Some(c) = rest.chars().next().filter(|_| !self.close.is_empty()) {
            if let Some(behind) = rest.strip_prefix(self.close).filter(|_| !is_escaped) {
                return Some(text.len() - behind.len());
            }
            is_escaped = self.escapes && c == '\\' && !is_escaped;
            rest = rest.get(c.len_utf8()..)?;
        }
        None
    }
}

/// The bytes of the number that a text begins with; a point belongs to it before a digit.
fn number(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let is_point = c == '.'
            && characters
                .peek()
                .is_some_and(|(_, next)| next.is_ascii_digit());
        if !(c.is_ascii_alphanumeric() || c == '_' || is_point) {
            return at;
        }
    }
    text.len()
}
