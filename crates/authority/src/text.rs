//! Displaying foreign text safely: the one table of misleading characters, and functions that escape or remove them.
//!
//! A character misleads when a terminal acts on it, when it reorders what is beside it, or when it has no shape of
//! its own, so that two different texts look the same. The table is Unicode's control characters (Cc), line and
//! paragraph separators (Zl, Zp), default-ignorable characters, and the format characters (Cf) that are not drawn.
//!
//! Joiners and variation selectors shape the character before them. Persian and Indic words and most emoji need them,
//! so they pass where they have that effect, behind a character of such a script, an ideograph or a pictograph; behind
//! a Latin letter, a space or one another they are what they look like: nothing.

use std::borrow::Cow;

/// The byte order mark, which some editors put at the beginning of a file. It is no part of the text.
pub const BOM: char = '\u{feff}';

/// The text of a file without a byte order mark at its beginning.
#[must_use]
pub fn without_bom(text: &str) -> &str {
    text.strip_prefix(BOM).unwrap_or(text)
}

/// As [`without_bom`], for bytes.
#[must_use]
pub fn bytes_without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Whether a text may have several lines. Only then line feeds and tabs are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// A name, a title, a line of a report.
    One,
    /// Prose and output.
    Many,
}

/// Whether the character is in the table. For whole texts use [`find`], which looks at the neighbouring characters.
#[must_use]
#[rustfmt::skip]
pub fn misleads(c: char) -> bool {
    // Control characters: C0 with its line feeds and tabs, DEL, C1.
    c.is_control()
        // They reorder.
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        // They end lines for some readers and not for others.
        || matches!(c, '\u{2028}' | '\u{2029}')
        // They have no shape: spaces of no width, fillers, tags, marks of annotations, of shorthand and of scores.
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}'
            | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || shapes(c)
}

/// The first misleading character of a text.
#[must_use]
pub fn find(text: &str, lines: Lines) -> Option<char> {
    Scan::new(lines)
        .of(text)
        .find_map(|(c, misleads)| misleads.then_some(c))
}

/// The text without misleading characters.
#[must_use]
pub fn strip(text: &str, lines: Lines) -> String {
    Scan::new(lines)
        .of(text)
        .filter_map(|(c, misleads)| (!misleads).then_some(c))
        .collect()
}

/// Escapes a text to one line: misleading characters, line feeds and tabs become `\n` or `\u{…}`.
#[must_use]
pub fn escape_line(text: &str) -> Cow<'_, str> {
    Escaper::new(Lines::One).piece(text)
}

/// The first line, escaped and cut to `width` characters; `…` stands for the rest.
#[must_use]
pub fn first_line(text: &str, width: usize) -> String {
    let first = text.lines().next().unwrap_or_default();
    let more = text.lines().nth(1).is_some();
    let mut shown: String = escape_lines(first).chars().take(width).collect();
    if more || escape_lines(first).chars().count() > width {
        shown.push('…');
    }
    shown
}

/// As [`escape_line`], but line feeds and tabs stay.
#[must_use]
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    // Most outputs, gigabytes of them, are plain.
    if text
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
    {
        return Cow::Borrowed(text);
    }
    Escaper::new(Lines::Many).piece(text)
}

/// As [`escape_lines`], and no joiner or variation selector passes: for a text that a person decides about, where two
/// different texts must not look the same in any script.
#[must_use]
pub fn escape_strict(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| misleads(c) && !matches!(c, '\n' | '\t');
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| push(&mut out, c, is_hidden(c)));
    Cow::Owned(out)
}

/// Escapes a text and cuts it to at most `max` bytes and a `…`, between characters or escapes.
#[must_use]
pub fn escape_within(text: &str, lines: Lines, max: usize) -> String {
    let mut out = String::new();
    for (c, misleads) in Scan::new(lines).of(text) {
        let before = out.len();
        push(&mut out, c, misleads);
        if out.len() > max {
            out.truncate(before);
            out.push('…');
            break;
        }
    }
    out
}

/// Escapes a text that comes in pieces, with the same result as for the whole text.
#[derive(Clone, Debug)]
pub struct Escaper(Scan);

impl Escaper {
    /// Starts a text.
    #[must_use]
    pub fn new(lines: Lines) -> Self {
        Self(Scan::new(lines))
    }

    /// Escapes the next piece.
    #[must_use]
    pub fn piece<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let started = self.0;
        if !self.0.of(text).any(|(_, misleads)| misleads) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len() + 16);
        self.0 = started;
        self.0
            .of(text)
            .for_each(|(c, misleads)| push(&mut out, c, misleads));
        Cow::Owned(out)
    }
}

fn push(out: &mut String, c: char, misleads: bool) {
    if misleads {
        out.extend(c.escape_default())
    } else {
        out.push(c)
    }
}

/// Which shaping character may follow the last character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// Behind an emoji and its selector: a joiner to the next emoji.
    Joiner,
    /// A digit, which a selector and a frame make a keycap.
    Keycap,
    Shape,
}

/// The state between two characters of a text.
#[derive(Clone, Copy, Debug)]
struct Scan {
    lines: Lines,
    takes: Takes,
}

impl Scan {
    fn new(lines: Lines) -> Self {
        Self {
            lines,
            takes: Takes::Nothing,
        }
    }

    /// Each character, and whether it misleads in its context.
    fn of(&mut self, text: &str) -> impl Iterator<Item = (char, bool)> {
        let mut chars = text.chars().peekable();
        std::iter::from_fn(move || {
            let c = chars.next()?;
            Some((c, self.misleads(c, chars.peek().copied())))
        })
    }

    fn misleads(&mut self, c: char, next: Option<char>) -> bool {
        let shaped = shapes(c)
            && match self.takes {
                Takes::Nothing => false,
                Takes::Joiner => c == JOINER,
                // Prose may come in pieces, which end anywhere; a name ends where it ends.
                Takes::Keycap => {
                    c == EMOJI && next.map_or(self.lines == Lines::Many, |next| next == '\u{20e3}')
                }
                Takes::Shape => true,
            };
        self.takes = match c {
            EMOJI if shaped => Takes::Joiner,
            '0'..='9' | '#' | '*' => Takes::Keycap,
            c if is_shaped(c) => Takes::Shape,
            _ => Takes::Nothing,
        };
        let line = self.lines == Lines::Many && matches!(c, '\n' | '\t');
        misleads(c) && !shaped && !line
    }
}

const JOINER: char = '\u{200d}';

/// Asks for the coloured form of what is before it.
const EMOJI: char = '\u{fe0f}';

/// Joiners and variation selectors.
fn shapes(c: char) -> bool {
    matches!(c, '\u{200c}' | JOINER | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Letters of scripts that join, ideographs, and symbols that have an emoji's form.
fn is_shaped(c: char) -> bool {
    let script =
        matches!(c, '\u{600}'..='\u{18af}' | '\u{a8e0}'..='\u{a8ff}' | '\u{10a00}'..='\u{11fff}');
    let ideograph =
        matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
    let symbol = matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{27bf}' | '\u{2900}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}');
    (script || ideograph || symbol) && !misleads(c) && !c.is_whitespace()
}
