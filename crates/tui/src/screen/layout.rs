//! A text that is being written, in rows with a caret. Changes nothing.

use super::composer::{CHIP, Composer};
use crate::line::{Line, columns};
use crate::style::Tone;
use authority::text::escape_line;
use unicode_segmentation::UnicodeSegmentation;

/// Columns of a tab.
const TAB: &str = "    ";

/// A narrower terminal has no prefix.
const PREFIXED: usize = 12;

/// The rows of a text, and where its caret stands.
pub(super) struct Written {
    pub(super) rows: Vec<Line>,
    pub(super) caret_row: usize,
    pub(super) caret_column: usize,
    /// The place in the text of each grapheme and of the end, with row and column.
    places: Vec<(usize, usize, usize)>,
}

impl Written {
    /// The text in rows of at most `width` columns, the first behind `prefix`; the caret always has a column.
    pub(super) fn new(composer: &Composer, prefix: &Line, width: usize) -> Self {
        let (prefix, indent) = if width < PREFIXED {
            (Line::default(), Line::default())
        } else {
            (
                prefix.clone(),
                Line::of(&" ".repeat(prefix.width()), Tone::Plain),
            )
        };
        let before = indent.width();
        let room = width.saturating_sub(before + 1).max(1);
        let mut labels = composer.labels();
        let mut rows = Vec::new();
        let mut line = prefix;
        let mut used = 0;
        let mut places = Vec::new();
        for (at, grapheme) in composer.marked().grapheme_indices(true) {
            if grapheme == "\n" {
                places.push((at, rows.len(), before + used));
                rows.push(std::mem::replace(&mut line, indent.clone()));
                used = 0;
                continue;
            }
            let (shown, tone) = shown(grapheme, &mut labels);
            let shown = if columns(&shown) > room {
                "…".to_owned()
            } else {
                shown
            };
            let wide = columns(&shown);
            if used + wide > room {
                rows.push(std::mem::replace(&mut line, indent.clone()));
                used = 0;
            }
            places.push((at, rows.len(), before + used));
            line = line.with(&shown, tone);
            used += wide;
        }
        places.push((composer.marked().len(), rows.len(), before + used));
        rows.push(line);
        let caret = places.iter().find(|(at, ..)| *at >= composer.caret());
        let (caret_row, caret_column) = caret.map_or((0, 0), |(_, row, column)| (*row, *column));
        Self {
            rows,
            caret_row,
            caret_column: caret_column.min(width.saturating_sub(1)),
            places,
        }
    }

    /// The place in the text so many rows away; none if there is no such row.
    pub(super) fn vertical(&self, by: isize) -> Option<usize> {
        let row = self
            .caret_row
            .checked_add_signed(by)
            .filter(|row| *row < self.rows.len())?;
        let in_row = self.places.iter().filter(|(_, at, _)| *at == row);
        in_row
            .min_by_key(|(_, _, column)| column.abs_diff(self.caret_column))
            .map(|(at, ..)| *at)
    }

    /// At most so many rows, among them that of the caret, and the caret's row in them.
    pub(super) fn window(self, most: usize) -> (Vec<Line>, usize) {
        let most = most.max(1);
        let first = self.caret_row.saturating_sub(most - 1);
        let rows = self.rows.into_iter().skip(first).take(most).collect();
        (rows, self.caret_row - first)
    }
}

fn shown(grapheme: &str, labels: &mut impl Iterator<Item = String>) -> (String, Tone) {
    if grapheme.contains(CHIP) {
        return (labels.next().unwrap_or_default(), Tone::Code);
    }
    if grapheme == "\t" {
        (TAB.to_owned(), Tone::Plain)
    } else {
        (escape_line(grapheme).into_owned(), Tone::Plain)
    }
}
