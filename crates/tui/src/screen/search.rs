//! Searching the transcript, page by page back to its begin.

use super::composer::Composer;
use super::exchange::Intent;
use super::state::{Screen, Selected};
use super::viewport;
use crate::line::Line;
use crate::style::Tone;

/// A search that is open.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    pub(super) query: Composer,
    /// The cell that was found last.
    pub(super) at: Option<u64>,
    /// It goes on when the page before is there.
    pub(super) pages: bool,
    /// The next frame shows the line that was found.
    pub(super) shows: bool,
    /// What came of it.
    pub(super) told: &'static str,
}

impl Screen {
    /// Opens a search.
    pub(super) fn search_begin(&mut self, query: &str) {
        if self.printed.is_some() {
            return self.tell(
                "the terminal has the transcript: search with the terminal",
                Tone::Dim,
            );
        }
        let mut search = Search::default();
        search.query.set(query);
        self.search = Some(search);
        if !query.is_empty() {
            self.search_next(true);
        }
    }

    /// Finds the next cell before the last one that was found, or behind it.
    pub(super) fn search_next(&mut self, back: bool) {
        let Some(search) = self.search.clone() else {
            return;
        };
        let query = search.query.text().to_lowercase();
        if query.is_empty() {
            return;
        }
        let cells = &self.fold.cells;
        let from = search
            .at
            .and_then(|id| cells.iter().position(|cell| cell.id == id));
        let has = |at: &usize| {
            cells
                .get(*at)
                .is_some_and(|cell| cell.text().to_lowercase().contains(&query))
        };
        let found = if back {
            (0..from.unwrap_or(cells.len())).rev().find(has)
        } else {
            (from.map_or(0, |at| at + 1)..cells.len()).find(has)
        };
        let id = found.and_then(|at| cells.get(at)).map(|cell| cell.id);
        let (at, pages, told) = match id {
            Some(id) => {
                self.select(Selected::Cell(id));
                (Some(id), false, "")
            }
            None if back && self.older_page() => (search.at, true, "searching older records …"),
            None if back
                && self.fold.no_older
                && self.fold.before.is_some_and(|before| before > 1) =>
            {
                (
                    search.at,
                    false,
                    "no older match in the part that is loaded; `yoi log` prints the rest",
                )
            }
            None => (
                search.at,
                false,
                if back {
                    "no older match"
                } else {
                    "no newer match"
                },
            ),
        };
        self.search = Some(Search {
            at,
            pages,
            told,
            shows: id.is_some(),
            ..search
        });
    }

    /// Scrolls to the line that was found, unless it is seen. What is hidden in a closed cell is opened.
    pub(super) fn search_shows(&mut self, now_ms: u64) {
        let Some(search) = self.search.as_mut().filter(|search| search.shows) else {
            return;
        };
        search.shows = false;
        let (query, Some(id)) = (search.query.text().to_lowercase(), search.at) else {
            return;
        };
        let Some(at) = self.fold.cells.iter().position(|cell| cell.id == id) else {
            return;
        };
        let rows = self.view.1;
        for is_last in [false, true] {
            let has = |line: &Line| line.text().to_lowercase().contains(&query);
            let (found, is_seen) = self.visit(now_ms, |anchor, count, blocks| {
                let found = blocks(at).iter().position(has);
                let (seen, _) = viewport::seen(anchor, count, rows, blocks);
                (
                    found,
                    seen.iter().any(|seen| seen.block == at && has(&seen.line)),
                )
            });
            match found {
                Some(_) if is_seen => return,
                Some(line) => return self.place = Some((id, line.saturating_sub(rows / 3))),
                None if is_last => return self.toggle(id),
                None => self.toggle(id),
            }
        }
    }

    /// A page came: goes on with a search that waits for it.
    pub(super) fn search_on(&mut self) {
        if let Some(search) = self.search.as_mut().filter(|search| search.pages) {
            search.pages = false;
            self.search_next(true);
        }
    }

    /// Asks for the page before the first cell; `false` if there is none.
    pub(super) fn older_page(&mut self) -> bool {
        let Some(before) = self
            .fold
            .before
            .filter(|before| *before > 1 && !self.fold.no_older)
        else {
            return false;
        };
        if !self.loading {
            self.loading = true;
            self.outbox.push(Intent::OlderPage { before });
        }
        true
    }

    /// Selects, and scrolls to a cell that is not seen.
    pub(super) fn select(&mut self, selected: Selected) {
        self.selected = Some(selected);
        if let Selected::Cell(id) = selected
            && !self.seen.contains(&id)
        {
            self.place = Some((id, 0));
        }
    }

    pub(super) fn not_connected(&mut self) {
        self.tell("not connected: what you write stays here", Tone::Failed);
    }
}
