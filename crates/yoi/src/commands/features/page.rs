//! Lines of at most 80 columns, for either stream. Knows no feature.

use crate::look::Look;
use crate::show::checklist::tone;
use crate::show::out;
use authority::text::{escape_line, escape_lines};
use std::io::Write;
use tui::{Line, Tone};

const WIDTH: usize = 80;

/// Lines on their way to a person.
#[derive(Default)]
pub(crate) struct Page {
    lines: Vec<String>,
}

impl Page {
    /// A line as it stands.
    pub(super) fn line(&mut self, text: impl Into<String>) {
        self.lines.push(text.into());
    }

    /// Words behind `first`, broken before [`WIDTH`] columns; what follows stands below the first word.
    pub(super) fn wrapped(&mut self, first: &str, words: &str) {
        let indent = first.chars().count();
        let (mut line, mut columns, mut empty) = (first.to_owned(), indent, true);
        let room = WIDTH.saturating_sub(indent).max(1);
        for word in escape_lines(words).split_whitespace().flat_map(|word| pieces(word, room)) {
            let length = word.chars().count();
            if !empty && columns + 1 + length > WIDTH {
                self.lines.push(line);
                (line, columns, empty) = (" ".repeat(indent), indent, true);
            }
            if !empty {
                line.push(' ');
                columns += 1;
            }
            line.push_str(&word);
            columns += length;
            empty = false;
        }
        self.lines.push(line);
    }

    pub(super) fn append(&mut self, other: Self) {
        self.lines.extend(other.lines);
    }

    pub(super) fn print(&self) {
        match Look::of_stdout() {
            Some(look) => out::raw(&look.text(&self.lines.iter().map(|line| toned(line)).collect::<Vec<_>>())),
            None => self.lines.iter().for_each(|line| out::line(line)),
        }
    }

    /// Onto standard error; one that is gone cannot be told so.
    pub(crate) fn warn(&self) {
        let text: String = self.lines.iter().map(|line| format!("{}\n", escape_line(line))).collect();
        drop(std::io::stderr().write_all(text.as_bytes()));
    }
}

/// A line with the meaning of its sign; what stands below a row is plain.
fn toned(line: &str) -> Line {
    let text = line.trim_start();
    let mut parts = text.splitn(2, ' ');
    match (parts.next(), parts.next()) {
        (Some(mark @ ("✓" | "✗" | "~" | "!" | "?" | "-")), Some(rest)) => {
            let indent = line.get(..line.len() - text.len()).unwrap_or_default();
            let named = if mark == "-" { Tone::Dim } else { Tone::Plain };
            Line::of(indent, Tone::Plain).with(mark, tone(mark)).with(" ", Tone::Plain).with(rest, named)
        }
        _ => Line::of(line, Tone::Plain),
    }
}

/// A word, in parts where it is longer than a line has room.
fn pieces(word: &str, room: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(room).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_has_its_colour() {
        let shown = |line: &str| toned(line).ansi(tui::Theme::Colour).replace('\u{1b}', "^");
        assert_eq!(shown("✓ builtin:files  1"), "^[32m✓^[0m builtin:files  1");
        assert_eq!(shown("  ✗ is off"), "  ^[1;31m✗^[0m is off");
        assert_eq!(shown("- disabled by default"), "^[2m-^[0m ^[2mdisabled by default^[0m");
        assert_eq!(shown("    may    read"), "    may    read");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut page = Page::default();
        page.wrapped("    may    ", &format!("{} short \u{1b}[2J {}", "x".repeat(200), "word ".repeat(40)));
        assert!(page.lines.iter().all(|line| line.chars().count() <= WIDTH), "{:?}", page.lines);
        assert_eq!(page.lines.iter().map(|line| line.matches('x').count()).sum::<usize>(), 200);
        assert!(page.lines.iter().skip(1).all(|line| line.starts_with("           ")));
    }
}
