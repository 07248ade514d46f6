//! Paragraphs for people: lines of at most 80 columns for either stream, or rows of a panel. Knows no feature.

use crate::look::Look;
use crate::show::checklist::tone;
use crate::show::out;
use authority::text::{escape_line, escape_lines};
use std::io::Write;
use tui::{Line, Paragraph, Tone};

const WIDTH: usize = 80;

/// Paragraphs on their way to a person.
#[derive(Default)]
pub(crate) struct Page {
    rows: Vec<Paragraph>,
}

impl Page {
    /// A text as it stands, behind its sign if it begins with one.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        let at = signed(text).map_or(0, |sign| text.find(sign).unwrap_or(0) + sign.len() + 1);
        self.row(
            text.get(..at).unwrap_or_default(),
            text.get(at..).unwrap_or_default(),
        );
    }

    /// Words behind `first`; what follows stands below the first word.
    pub(super) fn wrapped(&mut self, first: &str, words: &str) {
        self.row(
            first,
            &escape_lines(words)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        );
    }

    /// A text behind what it begins with, which has the meaning of its sign.
    fn row(&mut self, first: &str, text: &str) {
        let (sign, named) = match signed(first) {
            Some("-") => (Tone::Dim, Tone::Dim),
            Some(sign) => (tone(sign), Tone::Plain),
            None => (Tone::Plain, Tone::Plain),
        };
        self.rows.push(Paragraph {
            first: Line::of(first, sign),
            text: Line::of(text, named),
        });
    }

    pub(super) fn append(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    /// For a panel, which breaks them itself.
    pub(crate) fn into_rows(self) -> Vec<Paragraph> {
        self.rows
    }

    fn lines(&self) -> Vec<Line> {
        self.rows.iter().flat_map(|row| row.lines(WIDTH)).collect()
    }

    pub(super) fn print(&self) {
        match Look::of_stdout() {
            Some(look) => out::raw(&look.text(&self.lines())),
            None => self.lines().iter().for_each(|line| out::line(&line.text())),
        }
    }

    /// Onto standard error; one that is gone cannot be told so.
    pub(crate) fn warn(&self) {
        let text: String = self
            .lines()
            .iter()
            .map(|line| format!("{}\n", escape_line(&line.text())))
            .collect();
        drop(std::io::stderr().write_all(text.as_bytes()));
    }
}

/// The sign that a text begins with, behind spaces and before one.
fn signed(text: &str) -> Option<&str> {
    let sign = text.trim_start().split_once(' ')?.0;
    matches!(sign, "✓" | "✗" | "~" | "!" | "?" | "-").then_some(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_has_its_colour() {
        let shown = |line: &str| {
            let mut page = Page::default();
            page.line(line);
            page.lines()
                .iter()
                .map(|line| line.ansi(tui::Theme::Colour).replace('\u{1b}', "^"))
                .collect::<String>()
        };
        assert_eq!(shown("✓ builtin:files  1"), "^[32m✓ ^[0mbuiltin:files  1");
        assert_eq!(shown("  ✗ is off"), "^[1;31m  ✗ ^[0mis off");
        assert_eq!(
            shown("- disabled by default"),
            "^[2m- disabled by default^[0m"
        );
        assert_eq!(shown("    may    read"), "    may    read");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut page = Page::default();
        page.wrapped(
            "    may    ",
            &format!("{} short \u{1b}[2J {}", "x".repeat(200), "word ".repeat(40)),
        );
        let lines: Vec<String> = page.lines().iter().map(Line::text).collect();
        assert!(
            lines.iter().all(|line| line.chars().count() <= WIDTH),
            "{lines:?}"
        );
        assert_eq!(
            lines
                .iter()
                .map(|line| line.matches('x').count())
                .sum::<usize>(),
            200
        );
        assert!(
            lines
                .iter()
                .skip(1)
                .all(|line| line.starts_with("           "))
        );
    }
}
