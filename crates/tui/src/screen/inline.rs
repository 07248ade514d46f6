//! A screen that shares the terminal with what stands above it: finished cells are printed once, as ordinary lines, and
//! only what still changes is drawn, below them.

use super::exchange::{Frame, ScreenSize};
use super::state::Screen;
use crate::line::Line;

impl Screen {
    /// The lines to print, which never change again, and what is drawn below them, in at most as many rows as the
    /// terminal has.
    pub fn inline_frame(&mut self, size: ScreenSize, now_ms: u64) -> (Vec<Line>, Frame) {
        let columns = usize::from(size.columns);
        let rows = usize::from(size.rows);
        let printed = self.printed.unwrap_or(0).max(self.fold.dropped);
        self.printed = Some(printed);
        if columns == 0 || rows == 0 {
            return (Vec::new(), Frame::default());
        }
        let bottom = self.bottom(columns, rows, now_ms);
        self.view = (columns, rows);
        let (lines, mut open) = self.unprinted(printed, now_ms);
        let room = rows.saturating_sub(bottom.rows.len());
        // What it pushes out of the terminal does not come back.
        if let Some(panel) = self.panel(columns, room.min(rows / 2), now_ms) {
            open = panel;
        }
        let mut shown = open.split_off(open.len().saturating_sub(room));
        let hidden = bottom.rows.len().saturating_sub(rows);
        let cursor = bottom.caret.and_then(|(row, column)| {
            let row = u16::try_from(shown.len() + row.checked_sub(hidden)?).ok()?;
            Some((u16::try_from(column.min(columns - 1)).ok()?, row))
        });
        shown.extend(bottom.rows.into_iter().skip(hidden));
        let fits = |line: Line| {
            if line.width() > columns {
                line.cut(columns)
            } else {
                line
            }
        };
        self.cache.end_frame();
        let rows = shown.into_iter().map(fits).collect();
        (
            lines.into_iter().map(fits).collect(),
            Frame { rows, cursor },
        )
    }

    /// The lines of the cells behind those that were printed, up to the first one that still changes, and the rest.
    fn unprinted(&mut self, printed: u64, now_ms: u64) -> (Vec<Line>, Vec<Line>) {
        let status = self.model.status();
        // Without a turn and a question nothing changes that is in records.
        let is_over = status.turn.is_none() && status.approvals.is_empty();
        let first = usize::try_from(printed - self.fold.dropped).unwrap_or(usize::MAX);
        let fresh = self.fold.cells.iter().skip(first);
        let ready = fresh
            .take_while(|cell| is_over || !cell.is_pending())
            .count();
        self.printed = Some(printed + ready as u64);
        self.visit(now_ms, |_, count, blocks| {
            let mut lines: Vec<Line> = (first..count)
                .take(ready)
                .flat_map(|at| blocks(at).to_vec())
                .collect();
            let mut open: Vec<Line> = (first + ready..count)
                .flat_map(|at| blocks(at).to_vec())
                .collect();
            // What was printed before may be a command of the shell.
            if first == 0 && !lines.is_empty() {
                lines.insert(0, Line::default());
            }
            if open.first().is_some_and(|line| !line.is_empty()) {
                open.insert(0, Line::default());
            }
            (lines, open)
        })
    }
}
