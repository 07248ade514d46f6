//! Lines of cells, so that each is made once for a width and a theme while it does not change.

use super::cell::{Cell, CellNow};
use crate::line::Line;
use crate::style::Theme;
use std::collections::HashMap;
use std::rc::Rc;

/// Lines that are kept beside those of the newest frame.
const MAX_LINES: usize = 20_000;

/// What the look of a cell depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LookKey {
    pub(super) width: usize,
    pub(super) theme: Theme,
    pub(super) open: bool,
    /// An empty line stands before it.
    pub(super) apart: bool,
    /// Of the frame, in whole seconds since the call began; 0 for what does not run.
    pub(super) second: u64,
    /// The output that came so far, and the rows that it takes; 0 for what does not run.
    pub(super) output: (u64, usize),
}

struct Rendered {
    revision: u32,
    key: LookKey,
    lines: Rc<Vec<Line>>,
    frame: u64,
}

/// Lines by the number of their cell.
#[derive(Default)]
pub(super) struct CellCache {
    rendered: HashMap<u64, Rendered>,
    frame: u64,
    lines: usize,
    /// How many cells were made into lines so far.
    pub(super) made: u64,
}

impl CellCache {
    /// The lines of a cell.
    pub(super) fn lines(&mut self, cell: &Cell, key: LookKey, now: CellNow<'_>) -> Rc<Vec<Line>> {
        let frame = self.frame;
        if let Some(known) = self.rendered.get_mut(&cell.id)
            && known.revision == cell.revision
            && known.key == key
        {
            known.frame = frame;
            return Rc::clone(&known.lines);
        }
        self.made += 1;
        let apart = key.apart.then(Line::default);
        let lines = cell.lines(key.width, key.theme, key.open, now);
        let lines: Rc<Vec<Line>> = Rc::new(apart.into_iter().chain(lines).collect());
        self.lines += lines.len();
        let fresh = Rendered {
            revision: cell.revision,
            key,
            lines: Rc::clone(&lines),
            frame,
        };
        let before = self.rendered.insert(cell.id, fresh);
        self.lines -= before.map_or(0, |before| before.lines.len());
        lines
    }

    /// Ends a frame: if there are too many lines, those go that it did not need.
    pub(super) fn end_frame(&mut self) {
        if self.lines > MAX_LINES {
            let frame = self.frame;
            self.rendered.retain(|_, rendered| rendered.frame == frame);
            self.lines = self
                .rendered
                .values()
                .map(|rendered| rendered.lines.len())
                .sum();
        }
        self.frame += 1;
    }
}
