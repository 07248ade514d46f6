//! Tables: in columns where they fit, otherwise a row as lines of `title: value`.

use crate::line::Line;
use crate::style::Tone;
use pulldown_cmark::Alignment;

/// Columns between two cells.
const GAP: usize = 2;

pub(crate) struct Table {
    alignments: Vec<Alignment>,
    /// The first one has the titles.
    rows: Vec<Vec<Line>>,
    row: Vec<Line>,
}

impl Table {
    pub(crate) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub(crate) fn cell(&mut self, cell: Line) {
        self.row.push(cell);
    }

    pub(crate) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// The widest cell of each column.
    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            widths
                .iter_mut()
                .zip(row)
                .for_each(|(width, cell)| *width = cell.width().max(*width));
        }
        widths
    }
}

/// The table in at most `width` columns.
pub(crate) fn lines(table: &Table, width: usize) -> Vec<Line> {
    let Some((titles, rows)) = table.rows.split_first() else {
        return Vec::new();
    };
    let titles: Vec<Line> = titles
        .iter()
        .map(|title| Line::of(&title.text(), Tone::Strong))
        .collect();
    let widths = table.widths();
    if widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) > width {
        return records(&titles, rows, width);
    }
    let rule: Vec<Line> = widths
        .iter()
        .map(|width| Line::of(&"─".repeat(*width), Tone::Dim))
        .collect();
    let above = [&titles, &rule].into_iter();
    above
        .chain(rows)
        .map(|row| aligned(row, &widths, &table.alignments))
        .collect()
}

fn aligned(row: &[Line], widths: &[usize], alignments: &[Alignment]) -> Line {
    let mut line = Line::default();
    let mut gap = 0;
    for ((cell, width), alignment) in row.iter().zip(widths).zip(alignments) {
        let free = width.saturating_sub(cell.width());
        let before = if *alignment == Alignment::Right {
            free
        } else {
            0
        };
        // Nothing stands behind the last text of a line.
        line = line.with(&" ".repeat(gap + before), Tone::Plain);
        line.append(cell);
        gap = GAP + free - before;
    }
    line
}

/// Each row as a paragraph of its own.
fn records(titles: &[Line], rows: &[Vec<Line>], width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in rows {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        for (title, cell) in titles.iter().zip(row) {
            let mut line = title.clone().with(": ", Tone::Plain);
            line.append(cell);
            lines.extend(line.wrap(width, &Line::default(), &Line::of("  ", Tone::Plain)));
        }
    }
    lines
}
