//! Lines of this program about itself: labelled errors, and facts in a row.

use crate::line::{Line, Span};
use crate::style::Tone;

/// A text behind its label. Its further lines stand below it, so that none of them looks like a line of this program.
#[must_use]
pub fn labelled(label: &str, tone: Tone, text: &str, width: usize) -> Vec<Line> {
    let label = Line::of(label, tone).with(" ", Tone::Plain);
    let rest = Line::of(&" ".repeat(label.width()), Tone::Plain);
    let mut first = Some(&label);
    let parts = text.trim_end().split('\n');
    parts
        .flat_map(|part| {
            Line::of_output(part, Tone::Plain).wrap(width, first.take().unwrap_or(&rest), &rest)
        })
        .collect()
}

/// A text behind what stands before its first line; its further lines stand below the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paragraph {
    pub first: Line,
    pub text: Line,
}

impl Paragraph {
    /// Its lines in at most `width` columns.
    #[must_use]
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let rest = Line::of(&" ".repeat(self.first.width()), Tone::Plain);
        self.text.wrap(width, &self.first, &rest)
    }
}

/// Facts in a row, with dots between them; broken only between facts where that is possible.
#[must_use]
pub fn joined<'a>(facts: impl IntoIterator<Item = &'a str>, tone: Tone, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    for fact in facts {
        let fact = Line::default().with(fact, tone);
        if line.is_empty() {
            line = fact;
        } else if line.width() + 3 + fact.width() <= width {
            line.push(Span::new(" · ", tone));
            line.append(&fact);
        } else {
            lines.push(std::mem::replace(&mut line, fact));
        }
    }
    lines.push(line);
    lines
        .iter()
        .flat_map(|line| line.wrap(width, &Line::default(), &Line::default()))
        .collect()
}
