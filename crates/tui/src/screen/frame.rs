//! What the terminal shows: the transcript or a panel, below it what waits, the composer and the status line.

use super::cache::LookKey;
use super::cell::{Cell, CellKind, CellNow, LOCAL, texts};
use super::composer::vi::ViKeys;
use super::exchange::{ConnectionState, Frame, ScreenSize};
use super::layout::Written;
use super::panels::{self, Layer, Panel};
use super::processes::any_runs;
use super::state::{Screen, Selected};
use super::status;
use super::viewport::{self, Anchor, SeenLine};
use crate::line::{Line, columns as columns_of};
use crate::note::labelled;
use crate::style::Tone;
use protocol::method::Role;
use protocol::status::DeliveryMode;
use std::ops::Range;
use std::rc::Rc;

/// What stands where nothing was said yet.
const FIRST_STEPS: [(&str, &str); 3] = [
    ("Enter", "sends what you write"),
    ("! @ /", "shell commands, files, commands"),
    ("F1 F4", "all keys, all pods"),
];

/// How long a text is shown.
const TOAST_MS: u64 = 6000;

/// A terminal with fewer columns has no margin beside the transcript.
const MARGIN_FROM: usize = 20;

/// A terminal with as many rows has a rule between the transcript and what stands below it.
const RULED_FROM: usize = 16;

/// Rows for the output of calls that run, where there is room.
const MIN_OUTPUT: usize = 3;
const MAX_OUTPUT: usize = 8;

/// The numbers of the two blocks behind the last cell: this one and the next.
const LIVE: u64 = u64::MAX - 1;

/// What stands below the transcript.
#[derive(Default)]
pub(super) struct Bottom {
    pub(super) rows: Vec<Line>,
    /// Row in `rows`, and column.
    pub(super) caret: Option<(usize, usize)>,
}

impl Screen {
    /// What the terminal shows now.
    pub fn frame(&mut self, size: ScreenSize, now_ms: u64) -> Frame {
        let columns = usize::from(size.columns);
        let rows = usize::from(size.rows);
        if columns == 0 || rows == 0 {
            return Frame {
                rows: vec![Line::default(); rows],
                cursor: None,
            };
        }
        let bottom = self.bottom(columns, rows, now_ms);
        let room = rows.saturating_sub(bottom.rows.len());
        let mut lines = self.panel(columns, room, now_ms).unwrap_or_else(|| {
            let mut lines = self.transcript(columns, room, now_ms);
            lines.extend(self.first_steps(columns, room.saturating_sub(lines.len())));
            lines
        });
        lines.resize(room, Line::default());
        // On a terminal with few rows the lowest ones count.
        let hidden = bottom.rows.len().saturating_sub(rows);
        let cursor = bottom.caret.and_then(|(row, column)| {
            let row = u16::try_from(room + row.checked_sub(hidden)?).ok()?;
            Some((u16::try_from(column.min(columns - 1)).ok()?, row))
        });
        lines.extend(bottom.rows.into_iter().skip(hidden));
        for line in &mut lines {
            if line.width() > columns {
                *line = line.cut(columns);
            }
        }
        self.cache.end_frame();
        Frame {
            rows: lines,
            cursor,
        }
    }

    /// Milliseconds until the frame changes by time alone; none if it does not.
    #[must_use]
    pub fn redraw_in(&self, now_ms: u64) -> Option<u64> {
        let to_second = |since_us: u64| 1000 - now_ms.saturating_sub(since_us / 1000) % 1000;
        let live = self.connection == ConnectionState::Live;
        let status = self.model.status();
        // Nothing runs whose time is shown.
        let only_waits = !status.approvals.is_empty()
            && self
                .model
                .unfinished_calls()
                .all(|call| call.started_us.is_none());
        let works = live && status.turn.is_some() && !only_waits;
        let died = match self.connection {
            ConnectionState::Died(at) => Some(at * 1000),
            _ => None,
        };
        let turn = self.fold.turn.filter(|_| works).map(|turn| turn.since_us);
        let request = self.fold.request_us.filter(|_| works);
        let expiry = self
            .question()
            .and_then(|(asked, _)| asked.expires)
            .map(|at| {
                let left = at.at_ms.saturating_sub(now_ms);
                if left == 0 { u64::MAX } else { left % 1000 + 1 }
            });
        let toast = self.toast.as_ref().map(|toast| match toast.since {
            Some(since) => (since + TOAST_MS).saturating_sub(now_ms).max(1),
            None => 1,
        });
        let retry = self
            .retry
            .changes_in(now_ms)
            .filter(|_| live && status.model_wait.is_some());
        let is_status = |panel: &Panel| matches!(panel.layer, Layer::Status(_));
        let ages = live && self.panel.as_ref().is_some_and(is_status) && any_runs(status);
        let age = ages.then(|| to_second(0));
        let waits = [
            turn.map(to_second),
            request.map(to_second),
            died.map(to_second),
            expiry,
            toast,
            retry,
            age,
        ];
        waits
            .into_iter()
            .flatten()
            .filter(|wait| *wait < u64::MAX)
            .min()
    }

    pub(super) fn bottom(&mut self, columns: usize, rows: usize, now_ms: u64) -> Bottom {
        let mut bottom = Bottom::default();
        let composer = self.composer_rows(columns, rows);
        let few = if rows < RULED_FROM { 1 } else { 3 };
        let mut above = self.task_rows(columns, few);
        above.extend(self.queue_rows(columns, few));
        let hints = [self.search_row(), self.selection_row()];
        let mut notes: Vec<Line> = hints
            .into_iter()
            .flatten()
            .map(|line| line.cut(columns))
            .collect();
        notes.extend(self.toast_rows(columns, (rows / 4).max(1), now_ms));
        notes.extend(self.completion_rows(columns, (rows / 4).max(1)));
        let fixed = composer.rows.len() + notes.len() + 1 + usize::from(rows >= RULED_FROM);
        if let Some((asked, number)) = self.question() {
            let room = rows.saturating_sub(fixed + self.above_question(self.asking.focus, rows));
            above.truncate(room.saturating_sub(8));
            let room = room.saturating_sub(above.len());
            let takes = self.takes_answer();
            above.extend(
                self.asking
                    .lines(&asked, number, takes, (columns, room), now_ms),
            );
            if let Some(words) = &self.asking.words {
                let (rows, caret) = written(words, "✎ ", columns, 2);
                bottom.caret = Some((above.len() + caret.0, caret.1));
                above.extend(rows);
            }
        } else if self.asks_of_context() {
            let kept = self.above_question(self.full.focus || self.panel.is_none(), rows);
            let room = rows.saturating_sub(fixed + above.len() + kept);
            let takes = self.takes_answer();
            above.extend(
                self.full
                    .lines(self.model.status(), takes, (columns, room), now_ms),
            );
        }
        bottom
            .rows
            .extend((rows >= RULED_FROM).then(|| self.rule(columns)));
        bottom.caret = bottom
            .caret
            .map(|(row, column)| (row + bottom.rows.len(), column));
        bottom.rows.extend(above);
        bottom.rows.extend(notes);
        let begin = bottom.rows.len();
        if bottom.caret.is_none() {
            bottom.caret = composer.caret.map(|(row, column)| (begin + row, column));
        }
        bottom.rows.extend(composer.rows);
        let status = self.model.status();
        let retry_in_s = self.retry.left_s(status.model_wait.as_ref(), now_ms);
        let state = status::state(status, &self.connection, self.fold.turn, retry_in_s, now_ms);
        let mode = self
            .vi
            .as_ref()
            .filter(|_| self.role == Role::Driver)
            .map(ViKeys::mode);
        bottom
            .rows
            .push(status::line(status, mode, &state, self.others, columns));
        bottom
    }

    /// Rows above a question. A panel that a person opened has half of the terminal until the question has the keys.
    fn above_question(&self, focus: bool, rows: usize) -> usize {
        match (focus, &self.panel) {
            (false, Some(_)) => rows / 2,
            (false, None) if rows >= RULED_FROM => 4,
            _ => 1,
        }
    }

    /// Between the transcript and what stands below it; says when its end is not seen.
    fn rule(&self, columns: usize) -> Line {
        if self.printed.is_some() {
            return Line::default();
        }
        let text = if self.place.is_some() && self.panel.is_none() {
            "── more below · Ctrl-End "
        } else {
            ""
        };
        let rest = columns.saturating_sub(columns_of(text));
        Line::of(text, Tone::Dim)
            .with(&"─".repeat(rest), Tone::Dim)
            .cut(columns)
    }

    fn composer_rows(&mut self, columns: usize, rows: usize) -> Bottom {
        self.composer_width = columns;
        let search = self.search.as_ref().map(|search| &search.query);
        if self.role != Role::Driver && search.is_none() {
            let text = if self.connection == ConnectionState::Recorded {
                ""
            } else {
                "read only: this client may not write"
            };
            let rows = if text.is_empty() {
                Vec::new()
            } else {
                vec![Line::of(text, Tone::Dim).cut(columns)]
            };
            return Bottom { rows, caret: None };
        }
        let (text, prefix) = match search {
            Some(query) => (query, "/ "),
            None if self.editing.is_some() => (&self.composer, "✎ "),
            None => (&self.composer, "› "),
        };
        let (rows, caret) = written(text, prefix, columns, (rows / 3).clamp(1, 10));
        Bottom {
            rows,
            caret: Some(caret),
        }
    }

    /// What a person can do where nothing was said yet.
    fn first_steps(&self, columns: usize, room: usize) -> Vec<Line> {
        let said = |cell: &Cell| matches!(cell.kind, CellKind::Input { .. } | CellKind::Answer(_));
        if self.role != Role::Driver
            || !self.composer.is_empty()
            || self.fold.cells.iter().any(said)
            || self.model.status().turn.is_some()
            || room <= FIRST_STEPS.len()
        {
            return Vec::new();
        }
        let steps = FIRST_STEPS.iter().map(|(key, does)| {
            let line = Line::of(&format!("  {key:<6}"), Tone::Strong);
            line.with(does, Tone::Dim).cut(columns)
        });
        std::iter::once(Line::default()).chain(steps).collect()
    }

    /// What the model has to do yet, the oldest first.
    fn task_rows(&self, columns: usize, most: usize) -> Vec<Line> {
        let more = self.tasks.len().saturating_sub(most);
        let rows = self.tasks.iter().take(most).enumerate().map(|(at, task)| {
            let end = match more {
                more if more > 0 && at + 1 == most => format!(" · {more} more (F3)"),
                _ => String::new(),
            };
            let end = Line::of(&end, Tone::Dim);
            let task = Line::of("☐ ", Tone::Strong).with(task, Tone::Dim);
            let mut line = task.cut(columns.saturating_sub(end.width()).max(1));
            line.append(&end);
            line.cut(columns)
        });
        rows.collect()
    }

    fn queue_rows(&self, columns: usize, most: usize) -> Vec<Line> {
        let queued = &self.model.status().queued;
        let chosen = queued
            .iter()
            .position(|one| self.selected == Some(Selected::Queued(one.input)));
        let first = chosen.map_or(0, |at| (at + 1).saturating_sub(most));
        let mut lines: Vec<Line> = Vec::new();
        for (at, waiting) in queued.iter().enumerate().skip(first).take(most) {
            let sign = if chosen == Some(at) { "▶ " } else { "⋮ " };
            let mode = match waiting.mode {
                DeliveryMode::Queue | DeliveryMode::Run => "",
                DeliveryMode::Steer | DeliveryMode::DenyParked => "(next step) ",
            };
            let text = waiting
                .text
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let tone = if chosen == Some(at) {
                Tone::Strong
            } else {
                Tone::Dim
            };
            lines.push(
                Line::of(sign, Tone::Dim)
                    .with(mode, Tone::Dim)
                    .with(&text, tone)
                    .cut(columns),
            );
        }
        let more = queued.len().saturating_sub(first + lines.len());
        if more > 0
            && let Some(last) = lines.pop()
        {
            let end = Line::of(&format!(" · {more} more"), Tone::Dim);
            let mut line = last.cut(columns.saturating_sub(end.width()).max(1));
            line.append(&end);
            lines.push(line.cut(columns));
        }
        lines
    }

    fn search_row(&self) -> Option<Line> {
        let search = self.search.as_ref()?;
        let told = if search.told.is_empty() { "" } else { " · " };
        let text = format!(
            "search: Enter older · Down newer · Esc ends{told}{}",
            search.told
        );
        Some(Line::of(&text, Tone::Dim))
    }

    fn selection_row(&self) -> Option<Line> {
        let text = match self.selected.filter(|_| self.search.is_none())? {
            Selected::Cell(id) if self.fold.target(id).is_some() => {
                "Enter goes there · c copies · / searches · Esc"
            }
            Selected::Cell(id)
                if self
                    .fold
                    .cells
                    .iter()
                    .any(|cell| cell.id == id && cell.opens()) =>
            {
                "Enter opens or closes · c copies · / searches · Esc"
            }
            Selected::Cell(_) => "c copies · / searches · Esc",
            Selected::Queued(_) => {
                "e edit · x withdraw · u up · d down · s send now · c copy · Esc"
            }
        };
        Some(Line::of(text, Tone::Dim))
    }

    fn toast_rows(&mut self, columns: usize, most: usize, now_ms: u64) -> Vec<Line> {
        let Some(toast) = self.toast.as_mut() else {
            return Vec::new();
        };
        let since = *toast.since.get_or_insert(now_ms);
        if now_ms.checked_sub(since).is_none_or(|age| age >= TOAST_MS) {
            self.toast = None;
            return Vec::new();
        }
        let mut lines = texts(
            &toast.text,
            toast.tone,
            columns,
            &Line::default(),
            &Line::default(),
        );
        lines.truncate(most);
        lines
    }

    /// The panel that is open, if any.
    pub(super) fn panel(&mut self, columns: usize, room: usize, now_ms: u64) -> Option<Vec<Line>> {
        self.measure_jobs(now_ms);
        let mut panel = self.panel.take()?;
        let scroll = &mut panel.scroll;
        let (title, lines) = match &mut panel.layer {
            Layer::Pods(pods) => {
                let (lines, chosen) = pods.lines(&self.model.status().pod, columns);
                scroll_to(scroll, &chosen, room);
                ("pods", lines)
            }
            Layer::Keys => (
                "keys",
                panels::keys(
                    &self.digest(),
                    self.has_features,
                    self.vi.is_some(),
                    columns,
                ),
            ),
            Layer::Features(features) => {
                let (lines, chosen) = features.lines(self.may_change_features(), columns);
                if !chosen.is_empty() {
                    scroll_to(scroll, &chosen, room);
                    features.seen_to_the_end(chosen.end < *scroll + room);
                }
                ("features", lines)
            }
            Layer::Told(title, told) => {
                let (lines, chosen) = told.lines(columns);
                if !chosen.is_empty() {
                    scroll_to(scroll, &chosen, room);
                }
                let end = *scroll + room.saturating_sub(1);
                told.seen_to_the_end(lines.len() <= end);
                (*title, lines)
            }
            Layer::Context => (
                "next request",
                panels::context(self.model.status(), columns),
            ),
            Layer::Status(processes) => {
                let mut lines = panels::status(self.model.status(), now_ms, columns);
                let may_stop = self.may_stop();
                let before = lines.len();
                let (rows, chosen) =
                    processes.lines(self.model.status(), may_stop, now_ms, columns);
                lines.extend(rows);
                for task in &self.tasks {
                    lines.extend(labelled("to do", Tone::Strong, task, columns));
                }
                if !chosen.is_empty() {
                    let chosen = chosen.start + before..chosen.end + before;
                    scroll_to(scroll, &chosen, room);
                }
                ("pod", lines)
            }
        };
        let below = room.saturating_sub(1);
        *scroll = lines.len().saturating_sub(below).min(*scroll);
        let more = lines.len().saturating_sub(*scroll + below);
        let more =
            (more > 0).then(|| format!("{} (PgDn)", crate::count::count(more as u64, "more line")));
        let mut shown = vec![panel_title(title, more, columns)];
        shown.extend(lines.into_iter().skip(*scroll).take(below));
        shown.truncate(room);
        self.panel = Some(panel);
        Some(shown)
    }

    /// The lines of the transcript that are seen, with their margin.
    fn transcript(&mut self, columns: usize, rows: usize, now_ms: u64) -> Vec<Line> {
        let margin = if columns >= MARGIN_FROM { 2 } else { 0 };
        let width = columns - margin;
        self.view = (width, rows);
        self.search_shows(now_ms);
        let (lines, anchor) = self.visit(now_ms, |anchor, count, blocks| {
            viewport::seen(anchor, count, rows, blocks)
        });
        self.keep(anchor);
        self.seen = lines.iter().map(|line| self.id(line.block)).collect();
        let is_top = lines.first().is_none_or(|first| first.block == 0);
        if is_top
            && self.connection == ConnectionState::Live
            && (self.place.is_some() || lines.len() < rows)
        {
            self.older_page();
        }
        let turn = self
            .fold
            .turn
            .filter(|_| self.model.status().turn.is_some());
        let marked = |(line, id): (SeenLine, &u64)| {
            if margin == 0 {
                return line.line;
            }
            let is_worked = turn.is_some_and(|turn| *id > turn.seq && (*id < LOCAL || *id >= LIVE));
            let is_selected = self.selected == Some(Selected::Cell(*id)) && !line.line.is_empty();
            let mut shown = match (is_selected, is_worked) {
                (true, _) => Line::of("▶ ", Tone::Strong),
                (false, true) => Line::of("▎ ", Tone::Ok),
                (false, false) => Line::of("  ", Tone::Plain),
            };
            shown.append(&line.line);
            shown
        };
        lines.into_iter().zip(&self.seen).map(marked).collect()
    }

    /// Scrolls the transcript, up if `by` is less than 0.
    pub(super) fn scroll(&mut self, by: isize, now_ms: u64) {
        let rows = self.view.1;
        let anchor = self.visit(now_ms, |anchor, count, blocks| {
            viewport::scrolled(anchor, by, count, rows, blocks)
        });
        self.keep(anchor);
    }

    fn keep(&mut self, anchor: Anchor) {
        self.place = match anchor {
            Anchor::Bottom => None,
            Anchor::Top { block, line } => Some((self.id(block), line)),
        };
    }

    /// The number of a block.
    fn id(&self, block: usize) -> u64 {
        let cells = &self.fold.cells;
        cells
            .get(block)
            .map_or_else(|| LIVE + u64::from(block > cells.len()), |cell| cell.id)
    }

    /// Looks at the blocks of the transcript: its cells, then what goes on.
    pub(super) fn visit<T>(
        &mut self,
        now_ms: u64,
        look: impl FnOnce(Anchor, usize, &mut viewport::Blocks<'_>) -> T,
    ) -> T {
        let width = self.view.0;
        let theme = self.theme;
        let status = self.model.status();
        let asked = self.fold.request_us;
        let live = self.live.blocks(
            self.model.live(),
            &status.model,
            asked,
            (width, theme),
            now_ms,
        );
        let count = self.fold.cells.len();
        let block = |id: u64| match id.checked_sub(LIVE) {
            Some(at) => Some(count + usize::from(at > 0)),
            None => self.fold.cells.iter().position(|cell| cell.id == id),
        };
        let anchor = match self.place.and_then(|(id, line)| Some((block(id)?, line))) {
            Some((block, line)) => Anchor::Top { block, line },
            // What was seen there was dropped.
            None if self.place.is_some() => Anchor::Top { block: 0, line: 0 },
            None => Anchor::Bottom,
        };
        let fold = &self.fold;
        let cache = &mut self.cache;
        let outputs = self.model.outputs();
        let rows = self.view.1;
        let is_open = |id: u64| self.all_open != self.toggled.contains(&id);
        let mut blocks = |at: usize| {
            let Some(cell) = fold.cells.get(at) else {
                return live.get(at - count).map(Rc::clone).unwrap_or_default();
            };
            let second = cell
                .runs_since_us()
                .map_or(0, |since| now_ms.saturating_sub(since / 1000) / 1000 + 1);
            let before = at.checked_sub(1).and_then(|before| fold.cells.get(before));
            let apart = before.is_some_and(|before| cell.stands_apart(before));
            let open = is_open(cell.id);
            let output = cell.running_call().and_then(|call| outputs.of(call));
            let output = output.map(|output| {
                (
                    output,
                    output.rows.min(output_rows(rows, outputs.count(), open)),
                )
            });
            let key = LookKey {
                width,
                theme,
                open,
                apart,
                second,
                output: output.map_or((0, 0), |(output, rows)| (output.revision, rows)),
            };
            let output = output.map(|(output, rows)| (output.text.as_str(), rows));
            cache.lines(cell, key, CellNow { ms: now_ms, output })
        };
        look(anchor, count + live.len(), &mut blocks)
    }
}

/// Has the lines of a panel seen that are about what is chosen.
fn scroll_to(scroll: &mut usize, chosen: &Range<usize>, room: usize) {
    let last = (chosen.end + 1).saturating_sub(room);
    // Where there is no room for all of them, keys for pages show the rest.
    *scroll = (*scroll).clamp(chosen.start.min(last), chosen.start.max(last));
}

/// Without the key that closes the panel where there is no room for it.
fn panel_title(title: &str, more: Option<String>, columns: usize) -> Line {
    let line = |facts: &[String]| {
        let facts: String = facts.iter().map(|fact| format!(" · {fact}")).collect();
        Line::of(&format!("── {title}"), Tone::Strong).with(&facts, Tone::Dim)
    };
    let more: Vec<String> = more.into_iter().collect();
    let whole = line(&[&["Esc closes".to_owned()], more.as_slice()].concat());
    if whole.width() > columns {
        line(&more)
    } else {
        whole
    }
}

/// Rows for the output of each of the calls that run.
fn output_rows(rows: usize, calls: usize, open: bool) -> usize {
    let most = if open {
        rows / 2
    } else {
        (rows / 5).clamp(MIN_OUTPUT, MAX_OUTPUT).min(rows / 2)
    };
    (most / calls.max(1)).max(1)
}

/// A text that is being written, in rows behind a sign, with row and column of its caret.
fn written(
    text: &super::composer::Composer,
    prefix: &str,
    columns: usize,
    most: usize,
) -> (Vec<Line>, (usize, usize)) {
    let written = Written::new(text, &Line::of(prefix, Tone::Strong), columns);
    let column = written.caret_column;
    let (rows, row) = written.window(most);
    (rows, (row, column))
}
