//! Which lines of a long list of blocks are seen. Asks only for blocks that are seen, or that lie between two places of a
//! scroll; so there are no heights of all blocks.

use crate::line::Line;
use std::rc::Rc;

/// What gives the lines of a block, by its place in the list.
pub(super) type Blocks<'a> = dyn FnMut(usize) -> Rc<Vec<Line>> + 'a;

/// Where the first line stands that is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The last line is seen, and stays seen.
    #[default]
    Bottom,
    /// A line of a block.
    Top { block: usize, line: usize },
}

/// A line that is seen.
pub(super) struct SeenLine {
    pub(super) block: usize,
    pub(super) line: Line,
}

/// The place of the first line when the last one stands at the bottom.
fn top_of_bottom(count: usize, rows: usize, blocks: &mut Blocks<'_>) -> (usize, usize) {
    let mut left = rows;
    for block in (0..count).rev() {
        let height = blocks(block).len();
        if height >= left {
            return (block, height - left);
        }
        left -= height;
    }
    (0, 0)
}

fn top(anchor: Anchor, count: usize, rows: usize, blocks: &mut Blocks<'_>) -> (usize, usize) {
    match anchor {
        Anchor::Top { block, line } if block < count => {
            // It may have become shorter.
            let height = blocks(block).len();
            (block, line.min(height.saturating_sub(1)))
        }
        _ => top_of_bottom(count, rows, blocks),
    }
}

/// The lines that are seen, at most `rows`, and the anchor as it is then.
pub(super) fn seen(
    anchor: Anchor,
    count: usize,
    rows: usize,
    blocks: &mut Blocks<'_>,
) -> (Vec<SeenLine>, Anchor) {
    let (first, skipped) = top(anchor, count, rows, blocks);
    let mut lines = Vec::with_capacity(rows);
    for block in first..count {
        let skip = if block == first { skipped } else { 0 };
        let height = blocks(block);
        let free = rows - lines.len();
        lines.extend(height.iter().skip(skip).take(free).map(|line| SeenLine {
            block,
            line: line.clone(),
        }));
        if lines.len() >= rows {
            break;
        }
    }
    if lines.len() < rows && anchor != Anchor::Bottom {
        // Below the end there is nothing to see.
        return seen(Anchor::Bottom, count, rows, blocks);
    }
    (lines, anchor)
}

/// The anchor so many lines up (less than 0) or down.
pub(super) fn scrolled(
    anchor: Anchor,
    by: isize,
    count: usize,
    rows: usize,
    blocks: &mut Blocks<'_>,
) -> Anchor {
    let (mut block, mut line) = top(anchor, count, rows, blocks);
    if by < 0 {
        let mut left = by.unsigned_abs();
        while left > line && block > 0 {
            left -= line + 1;
            block -= 1;
            let height = blocks(block).len();
            (line, left) = if height == 0 {
                (0, left + 1)
            } else {
                (height - 1, left)
            };
        }
        return Anchor::Top {
            block,
            line: line.saturating_sub(left),
        };
    }
    if anchor == Anchor::Bottom {
        return anchor;
    }
    line += by.unsigned_abs();
    while block < count {
        let height = blocks(block).len();
        if line < height {
            break;
        }
        line -= height;
        block += 1;
    }
    if block >= count || (block, line) >= top_of_bottom(count, rows, blocks) {
        return Anchor::Bottom;
    }
    Anchor::Top { block, line }
}
