//! What a terminal shows of an output in the end: carriage returns, backspaces and cursor movements are applied, and escape
//! sequences are gone. The memory does not depend on the output: what is far behind the cursor is final.

use crate::text::{escape_lines, misleads};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeBounds;
use unicode_width::UnicodeWidthChar;

/// The last lines, which a program can still write over.
const ROWS: usize = 100;
/// Characters of a line that can be written over: what is before them is final.
const CELLS: usize = 4096;
/// A cursor moves to this column and this line of an empty screen, as on one of the usual size.
const WIDTH: usize = 80;
const HEIGHT: usize = 24;
/// The mode of programs that use all of a terminal.
const SECOND_SCREEN: &str = "?1049";
/// Characters of a sequence's parameters; longer ones mean nothing.
const PARAMETERS: usize = 64;
/// Bytes of a string for the terminal, such as a part of a picture; a longer one without its end is text.
const STRING: usize = 4096 + 256;
/// The second column of a wide character, such as an ideograph. As a character of an output it means nothing.
const SECOND_COLUMN: char = '\u{10ffff}';
/// Columns of a line that have marks without a width, and their bytes there; more marks have columns of their own.
const MARKED: usize = 1024;
const MARKS: usize = 16;
/// Bytes that the text may be longer than the output, by blanks that the cursor passed and by what is escaped.
const SPARE: usize = 64 * 1024;

/// The bytes as a terminal shows them in the end; what misleads besides is escaped, and what is not UTF-8 replaced.
#[must_use]
pub fn shown(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(|byte| is_plain(*byte)) => Cow::Borrowed(text),
        _ => {
            let mut screen = OutputScreen::default();
            screen.write(bytes);
            Cow::Owned(screen.finish())
        }
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// An output that comes in pieces of any size.
#[derive(Debug, Default)]
pub struct OutputScreen {
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    /// The place of the cursor that was saved.
    saved: (usize, usize),
    /// What is below the second screen, which leaves nothing behind: its rows, and that of the cursor.
    main: Option<(VecDeque<Row>, usize)>,
    reads: Reads,
    /// The beginning of a character.
    partial: Vec<u8>,
    done: String,
    /// Bytes of the output so far, and of what became final.
    written: usize,
    emitted: usize,
}

#[derive(Debug, Default)]
struct Row {
    /// One for each column.
    cells: Vec<char>,
    /// What stands on the character of a column, such as an accent.
    marks: BTreeMap<usize, String>,
    /// Written over: blanks at its end are not of the program.
    is_edited: bool,
}

/// What the next character belongs to.
#[derive(Debug, Default)]
enum Reads {
    #[default]
    Text,
    Escape,
    /// A sequence of which only the end matters, as that of a character set.
    Rest,
    Control(String),
    /// A string for the terminal: whether a line end ends it, and itself.
    String(bool, String),
}

impl OutputScreen {
    /// Adds a piece.
    pub fn write(&mut self, bytes: &[u8]) {
        let bytes = match self.partial.is_empty() {
            true => Cow::Borrowed(bytes),
            false => Cow::Owned([&std::mem::take(&mut self.partial), bytes].concat()),
        };
        let mut left = bytes.len();
        for chunk in bytes.utf8_chunks() {
            let rest = self.pass(chunk.valid());
            self.add(rest);
            left -= chunk.valid().len() + chunk.invalid().len();
            let is_cut = || {
                std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none())
            };
            match chunk.invalid() {
                [] => {}
                rest if left == 0 && is_cut() => self.partial = rest.to_vec(),
                _ => self.add_unread(),
            }
        }
    }

    /// The lines that are final since the last time.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.done)
    }

    /// Ends the output; returns all that was not taken.
    pub fn finish(&mut self) -> String {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.add_unread();
        }
        let (mut rows, _) = self.main.take().unwrap_or_default();
        rows.append(&mut self.rows);
        while rows.len() > 1
            && rows
                .back()
                .is_some_and(|row| row.is_edited && row.text().is_empty())
        {
            rows.pop_back();
        }
        let last = rows.pop_back().unwrap_or_default();
        for row in &rows {
            self.emit(&row.text());
            self.emit("\n");
        }
        self.emit(&last.text());
        *self = Self {
            done: self.take(),
            ..Self::default()
        };
        self.take()
    }

    /// Takes plain lines that are final at once, as most of a long output are.
    fn pass<'a>(&mut self, text: &'a str) -> &'a str {
        let plain = text
            .bytes()
            .position(|byte| !is_plain(byte))
            .unwrap_or(text.len());
        let (plain, _) = text.split_at(plain);
        let last = plain.rmatch_indices('\n').nth(ROWS);
        let (Some((first, _)), Some((last, _))) = (plain.match_indices('\n').next(), last) else {
            return text;
        };
        if !matches!(self.reads, Reads::Text) || self.row + 1 < self.rows.len() || first == last {
            return text;
        }
        let (line, _) = text.split_at(first + 1);
        self.add(line);
        while self.row > 0 {
            self.scroll();
        }
        let lines = text.get(first + 1..=last).unwrap_or_default();
        self.written = self.written.saturating_add(lines.len());
        self.emit(lines);
        text.get(last + 1..).unwrap_or_default()
    }

    /// Adds a byte that is no character.
    fn add_unread(&mut self) {
        self.add("\u{fffd}");
        self.written = self.written.saturating_sub(2);
    }

    fn add(&mut self, mut text: &str) {
        while !text.is_empty() {
            if matches!(self.reads, Reads::Text) {
                // Those of two bytes begin with the second.
                let plain = text
                    .bytes()
                    .position(|byte| byte < b' ' || matches!(byte, 0x7f | 0xc2));
                let (run, rest) = text.split_at(plain.unwrap_or(text.len()));
                self.written = self.written.saturating_add(run.len());
                self.put(run);
                text = rest;
            }
            let mut rest = text.chars();
            if let Some(c) = rest.next() {
                self.written = self.written.saturating_add(c.len_utf8());
                self.read(c);
            }
            text = rest.as_str();
        }
    }

    fn read(&mut self, c: char) {
        self.reads = match (std::mem::take(&mut self.reads), c) {
            (_, '\u{1b}') => Reads::Escape,
            (Reads::String(_, _), '\u{7}' | '\u{9c}' | '\u{18}' | '\u{1a}') => Reads::Text,
            (Reads::String(by_line, mut string), _)
                if string.len() < STRING && !(by_line && c == '\n') =>
            {
                // What begins another one would have its text read again and again.
                if !matches!(c, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') {
                    string.push(c);
                }
                Reads::String(by_line, string)
            }
            (Reads::String(_, string), _) if string.len() >= STRING => {
                self.written = self.written.saturating_sub(string.len());
                self.add(&string);
                return self.read(c);
            }
            (Reads::Escape, '[') => Reads::Control(String::new()),
            (Reads::Escape, ']') => Reads::String(true, String::new()),
            (Reads::Escape, 'P' | 'X' | '^' | '_') => Reads::String(false, String::new()),
            (Reads::Escape | Reads::Rest, ' '..='/') => Reads::Rest,
            (Reads::Escape, '0'..='~') => return self.escape(c),
            (Reads::Rest, '0'..='~') => Reads::Text,
            (Reads::Control(mut parameters), ' '..='?') => {
                if parameters.len() < PARAMETERS {
                    parameters.push(c);
                }
                Reads::Control(parameters)
            }
            (Reads::Control(parameters), '@'..='~') => return self.control(&parameters, c),
            _ => return self.character(c),
        };
    }

    fn character(&mut self, c: char) {
        match c {
            '\n' | '\u{b}' | '\u{c}' | '\u{84}' | '\u{85}' => self.next_row(),
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\u{9b}' => self.reads = Reads::Control(String::new()),
            '\u{9d}' => self.reads = Reads::String(true, String::new()),
            '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => {
                self.reads = Reads::String(false, String::new())
            }
            '\u{7}' | '\u{e}' | '\u{f}' | '\u{7f}'..='\u{9f}' => {}
            _ => self.put(c.encode_utf8(&mut [0; 4])),
        }
    }

    fn escape(&mut self, c: char) {
        match c {
            'D' | 'E' => self.next_row(),
            'M' => self.row = self.row.saturating_sub(1),
            'c' => self.clear(),
            '7' => self.saved = (self.row, self.column),
            '8' => (self.row, self.column) = self.saved,
            _ => {}
        }
    }

    fn control(&mut self, parameters: &str, c: char) {
        let mut numbers = parameters
            .split(';')
            .map(|number| number.parse::<usize>().unwrap_or(0).min(CELLS));
        let first = numbers.next().unwrap_or(0);
        let second = numbers.next().unwrap_or(0);
        let count = first.max(1);
        let last = self.rows.len().saturating_sub(1);
        match c {
            'A' | 'F' => self.row = self.row.saturating_sub(count),
            'B' | 'E' => self.row = (self.row + count).min(last.max(self.row)),
            'C' => self.move_to(self.column + count),
            'D' => self.column = self.column.saturating_sub(count),
            'G' => self.move_to(count - 1),
            'H' | 'f' => {
                self.row = (count - 1).min(last.max(HEIGHT - 1));
                self.move_to(second.max(1) - 1);
            }
            'J' if first >= 2 => self.clear(),
            'J' | 'K' => self.erase(first, c == 'J'),
            'P' => {
                let from = self.column;
                let row = self.rows.get_mut(self.row);
                row.into_iter().for_each(|row| row.remove(from, count));
            }
            's' => self.saved = (self.row, self.column),
            'u' => (self.row, self.column) = self.saved,
            'h' if parameters == SECOND_SCREEN && self.main.is_none() => {
                self.main = Some((std::mem::take(&mut self.rows), self.row));
                self.row = 0;
            }
            'l' if parameters == SECOND_SCREEN => {
                if let Some(main) = self.main.take() {
                    (self.rows, self.row) = main;
                    self.column = 0;
                }
            }
            _ => {}
        }
        if matches!(c, 'E' | 'F') {
            self.column = 0;
        }
    }

    fn move_to(&mut self, column: usize) {
        let written = self.rows.get(self.row).map_or(0, |row| row.cells.len());
        self.column = column.min(written.max(WIDTH - 1));
    }

    fn clear(&mut self) {
        self.rows.clear();
        (self.row, self.column, self.saved) = (0, 0, (0, 0));
    }

    /// Erases what is behind the cursor (0), before it (1), or all of its line (2); with `below`, the lines below it, too.
    fn erase(&mut self, which: usize, below: bool) {
        self.reach();
        if let Some(row) = self.rows.get_mut(self.row) {
            row.is_edited = true;
            row.part(self.column + usize::from(which == 1));
            match which {
                0 => {
                    row.cells.truncate(self.column);
                    row.unmark(self.column..);
                }
                1 => row.blank(0, self.column + 1),
                _ => {
                    row.cells.clear();
                    row.unmark(..);
                }
            }
        }
        if below && which == 0 {
            self.rows.truncate(self.row + 1);
        }
    }

    /// Adds the rows down to that of the cursor.
    fn reach(&mut self) {
        while self.rows.len() <= self.row {
            self.rows.push_back(Row {
                is_edited: !self.rows.is_empty(),
                ..Row::default()
            });
        }
    }

    fn next_row(&mut self) {
        self.reach();
        (self.row, self.column) = (self.row + 1, 0);
        if self.row == self.rows.len() {
            self.rows.push_back(Row::default());
        }
        if self.rows.len() > ROWS {
            self.scroll();
        }
    }

    /// The first row is final.
    fn scroll(&mut self) {
        if let Some(first) = self.rows.pop_front() {
            self.emit(&first.text());
            self.emit("\n");
        }
        self.row = self.row.saturating_sub(1);
        self.saved.0 = self.saved.0.saturating_sub(1);
    }

    fn put(&mut self, run: &str) {
        self.reach();
        let mut run = self.pass_line(run);
        while let Some(row) = self.rows.get_mut(self.row).filter(|_| !run.is_empty()) {
            let (piece, rest) = run.split_at(run.floor_char_boundary(CELLS));
            piece
                .chars()
                .for_each(|c| self.column = row.put(self.column, c));
            run = rest;
            if self.column >= CELLS {
                self.cut();
            }
        }
    }

    /// Takes the beginning of a long run at the end of the last line at once: it is final.
    fn pass_line<'a>(&mut self, run: &'a str) -> &'a str {
        let is_end = self.row + 1 == self.rows.len()
            && self
                .rows
                .back()
                .is_some_and(|row| row.cells.len() == self.column);
        if !is_end || run.len() <= 2 * CELLS {
            return run;
        }
        self.cut();
        let (first, rest) = run.split_at(run.floor_char_boundary(run.len() - CELLS));
        self.emit(first);
        rest
    }

    /// What is before the cursor is final, also in its line.
    fn cut(&mut self) {
        while self.row > 0 {
            self.scroll();
        }
        let row = self.rows.front_mut().map(|row| Row {
            cells: std::mem::take(&mut row.cells),
            marks: std::mem::take(&mut row.marks),
            is_edited: false,
        });
        self.emit(&row.unwrap_or_default().text());
        self.column = 0;
    }

    /// Adds to what is final, if it is not of the second screen.
    fn emit(&mut self, piece: &str) {
        if self.main.is_some() {
            return;
        }
        let mut text = escape_lines(piece);
        if self.emitted.saturating_add(text.len()) > self.written.saturating_add(SPARE) {
            text = short(piece).into();
        }
        self.emitted = self.emitted.saturating_add(text.len());
        self.done.push_str(&text);
    }
}

impl Row {
    /// Puts a character at a column; returns the column behind it.
    fn put(&mut self, column: usize, c: char) -> usize {
        let width = if c.is_ascii() { Some(1) } else { c.width() };
        if width == Some(0) && self.mark(column, c) {
            return column;
        }
        let end = column + 1 + usize::from(width == Some(2));
        if column < self.cells.len() {
            self.is_edited = true;
            self.part(column);
            self.part(end);
            self.unmark(column..end);
        }
        self.cells.resize(self.cells.len().max(end), ' ');
        let written = [
            if c == SECOND_COLUMN {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            },
            SECOND_COLUMN,
        ];
        self.cells
            .iter_mut()
            .take(end)
            .skip(column)
            .zip(written)
            .for_each(|(cell, c)| *cell = c);
        end
    }

    /// Puts a character without a width on the one before this column; returns whether there is room for it.
    fn mark(&mut self, column: usize, c: char) -> bool {
        let Some(last) = column.checked_sub(1) else {
            return false;
        };
        let base = match self.cells.get(last) {
            Some(&SECOND_COLUMN) => last.saturating_sub(1),
            Some(_) => last,
            None => return false,
        };
        if self.marks.len() >= MARKED && !self.marks.contains_key(&base) {
            return false;
        }
        let marks = self.marks.entry(base).or_default();
        let fits = marks.len() < MARKS;
        if fits {
            marks.push(c);
        }
        fits
    }

    fn unmark(&mut self, columns: impl RangeBounds<usize>) {
        self.marks.retain(|column, _| !columns.contains(column));
    }

    fn blank(&mut self, from: usize, end: usize) {
        let cells = self.cells.iter_mut().take(end).skip(from);
        cells.for_each(|cell| *cell = ' ');
        self.unmark(from..end);
    }

    /// Of a wide character of which one column would be written over, nothing stays.
    fn part(&mut self, column: usize) {
        if self.cells.get(column) == Some(&SECOND_COLUMN) {
            self.blank(column.saturating_sub(1), column + 1);
        }
    }

    /// Moves what is behind so many columns to this one.
    fn remove(&mut self, from: usize, count: usize) {
        let end = (from + count).min(self.cells.len());
        if from < end {
            self.is_edited = true;
            self.part(from);
            self.part(end);
            self.cells.drain(from..end);
            self.unmark(from..end);
            let moved = |(at, marks)| (if at < end { at } else { at - (end - from) }, marks);
            self.marks = std::mem::take(&mut self.marks)
                .into_iter()
                .map(moved)
                .collect();
        }
    }

    fn text(&self) -> String {
        let cells = self
            .cells
            .iter()
            .rposition(|cell| !self.is_edited || *cell != ' ')
            .map_or(0, |last| last + 1);
        let mut text = String::new();
        for (column, cell) in self.cells.iter().take(cells).enumerate() {
            if *cell != SECOND_COLUMN {
                text.push(*cell);
            }
            if let Some(marks) = self.marks.get(&column) {
                text.push_str(marks);
            }
        }
        text
    }
}

/// The text in no more bytes than wrote it: one blank for many, and one character for what would be escaped.
fn short(text: &str) -> String {
    let mut is_blank = false;
    let kept = text
        .chars()
        .filter(|c| !(std::mem::replace(&mut is_blank, *c == ' ') && is_blank));
    let is_plain =
        |c: char| matches!(c, '\n' | '\t') || !(misleads(c) || c == char::REPLACEMENT_CHARACTER);
    kept.map(|c| if is_plain(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces(bytes: &[u8], size: usize) -> String {
        let mut screen = OutputScreen::default();
        let mut text = String::new();
        for piece in bytes.chunks(size) {
            screen.write(piece);
            text += &screen.take();
        }
        text + &screen.finish()
    }

    // cline#13346, copilot-cli#3191: a model paid for each state of a progress bar, and read colours as text.
    #[test]
    fn an_output_is_shown_as_it_is_last() {
        let table: &[(&str, &str)] = &[
            ("plain\n\ttext  \n", "plain\n\ttext  \n"),
            ("one\r\ntwo  \r\n", "one\ntwo  \n"),
            (" 10%\r 20%\r100%\n", "100%\n"),
            ("downloading\rdone       \n", "done\n"),
            ("longer text\rlong\n", "longer text\n"),
            ("get 10%\r\u{1b}[Kget 9%\u{1b}[K\nend", "get 9%\nend"),
            (
                "\u{1b}[31mred\u{1b}[0m \u{1b}[1;38;5;9mbold\u{1b}[m \u{9b}4mC1\u{9b}m\n",
                "red bold C1\n",
            ),
            (
                "\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\\n",
                "alink\n",
            ),
            ("\u{1b}]0;a title that never ends\nseen\n", "\nseen\n"),
            (
                "\u{1b}Pq#0;2;0\n#1~~\u{1b}\\picture\n\u{1b}_Gf=1;AAAA\u{1b}\\x\n",
                "picture\nx\n",
            ),
            (
                "\u{1b}(0\u{e}text\u{f}\u{1b}(B\u{1b}=\u{1b}#8\u{1b}%G\n",
                "text\n",
            ),
            ("cut at the end\u{1b}", "cut at the end"),
            ("cut at the end\u{1b}[38;5", "cut at the end"),
            ("cut at the end\u{1b}]0;ti", "cut at the end"),
            ("abc\u{8}\u{8}XY\u{8} \u{8}\n", "aX\n"),
            ("b\u{8}bo\u{8}old\u{8}\u{8}\u{8}\u{8}\u{8}\n", "bold\n"),
            (
                "a\nb\nc\n\u{1b}[2A\r\u{1b}[2KB\u{1b}[1B\rC\nend\n",
                "a\nB\nC\nend\n",
            ),
            (
                "x: 1\ny: 1\n\u{1b}[2Fx: 2\n\u{1b}[Ey: 2\n",
                "x: 2\ny: 1\ny: 2\n",
            ),
            ("old\n\u{1b}[999A\u{1b}[Jnew\n", "new\n"),
            ("old\nold\n\u{1b}[H\u{1b}[2Jnew\n", "new\n"),
            (
                "\u{1b}[?25lshell\n\u{1b}[?1049h\u{1b}[Heditor\n~\n\u{1b}[?1049lback\n",
                "shell\nback\n",
            ),
            ("left\n\u{1b}[?1049lin\n", "left\nin\n"),
            (
                "\u{1b}[60GOK\u{1b}[999Cx\n",
                &format!("{:59}OK{:18}x\n", "", ""),
            ),
            (
                "bell\u{7} nul\0 zero\u{200b} turned\u{202e}\n",
                "bell nul\\u{0} zero\\u{200b} turned\\u{202e}\n",
            ),
            ("pr\u{fc}fe ©\r\u{feff}p\n", "\\u{feff}p\u{fc}fe ©\n"),
            // A wide character has two columns; one of which half is written over is gone.
            ("日本語\rab\n", "ab本語\n"),
            ("日本語\ra\n", "a 本語\n"),
            ("abcd\r日\n", "日cd\n"),
            ("日本\r\u{1b}[1C日\n", " 日\n"),
            ("日本語\r\u{1b}[2CX\n", "日X 語\n"),
            ("下载 10%\r下载 100%\n", "下载 100%\n"),
            ("🚀 50%\r✅ 100%\n", "✅ 100%\n"),
            ("日本語\u{8}\u{8}\u{1b}[K!\n", "日本!\n"),
            ("日本語\u{8}\u{8}\u{8}\u{1b}[K!\n", "日 !\n"),
            ("한\u{10ffff}\r..x\n", "..x\n"),
            // What has no width stands on the character before it, and goes with that.
            ("cafe\u{301} 10%\rcafe\u{301} 100%\n", "cafe\u{301} 100%\n"),
            ("e\u{301}e\u{301}e\u{301}\rab\n", "abe\u{301}\n"),
            ("ze\u{301}\u{8}x\n", "zx\n"),
            ("नमस्ते 9%\rनमस्ते 10%\n", "नमस्ते 10%\n"),
            ("ก็ข\rab\n", "ab\n"),
            ("か\u{3099}き\r\u{1b}[2Cけ\n", "か\u{3099}け\n"),
            ("か\u{3099}き\rx\n", "x き\n"),
            ("abe\u{301}f\r\u{1b}[1P\n", "be\u{301}f\n"),
            ("ae\u{301}b\r\u{1b}[2P\n", "b\n"),
            ("ae\u{301}\r\u{1b}[1C\u{1b}[Kb\n", "ab\n"),
            ("ae\u{301}b\u{8}\u{8}\u{1b}[1Kx\n", " xb\n"),
            ("ae\u{301}\r\u{1b}[2Kb\n", "b\n"),
            ("\u{301}a\n", "\u{301}a\n"),
            ("ab\u{1b}7cd\u{1b}8X\n", "abXd\n"),
            ("a\n\u{1b}[sb\u{1b}[1A\rA\u{1b}[uB\n", "A\nB\n"),
            ("abcdef\r\u{1b}[2Pg\n", "gdef\n"),
            ("\n\n", "\n\n"),
            ("", ""),
        ];
        for (output, last) in table {
            assert_eq!(shown(output.as_bytes()), *last, "{output:?}");
            for size in [1, 2, 3, 7] {
                assert_eq!(
                    in_pieces(output.as_bytes(), size),
                    *last,
                    "{output:?} in pieces of {size}"
                );
            }
        }
        assert_eq!(shown(b"a\xff\xe2\x82"), "a\u{fffd}\u{fffd}");
    }

    #[test]
    fn what_is_far_above_is_final_and_all_of_it_is_there() {
        let many: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        let up = format!("{many}\u{1b}[5000A\rLINE");
        for size in [1, 4096, 1 << 20] {
            assert_eq!(
                in_pieces(up.as_bytes(), size),
                many.replace("line 9901\n", "LINE 9901\n"),
                "{size}"
            );
        }
        for part in [
            "é",
            "e\u{301}",
            "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}",
        ] {
            let long = part.repeat(3 * CELLS + 5);
            assert_eq!(
                in_pieces(format!("a\n{long}\nb").as_bytes(), 1000),
                format!("a\n{long}\nb")
            );
        }
    }

    #[test]
    fn a_string_without_its_end_hides_nothing() {
        let long = "hidden ".repeat(700);
        let begin = [
            "\u{1b}P",
            "\u{1b}X",
            "\u{1b}^",
            "\u{1b}_",
            "\u{1b}]",
            "\u{90}",
            "\u{9d}",
            "\u{1b}Pa\u{90}b\u{90}",
            "\u{1b}P1;2|\u{7}",
        ];
        for begins in begin {
            for size in [1, 1000, 1 << 20] {
                let text = in_pieces(format!("{begins}{long}\nlast").as_bytes(), size);
                assert_eq!(text.matches("hidden").count(), 700, "{begins:?} {size}");
                assert!(
                    text.ends_with("\nlast") && !text.contains('\u{1b}'),
                    "{begins:?}"
                );
            }
        }
        let part = "A".repeat(4096);
        assert_eq!(
            shown(format!("\u{1b}_Gf=32,s=64,v=64,m=1;{part}\u{1b}\\seen").as_bytes()),
            "seen",
            "part of a picture"
        );
    }

    /// A page of blanks in ten bytes, and escapes of one byte: what is shown is about as long as the output.
    #[test]
    fn no_output_is_shown_longer_than_it_is() {
        let far = format!("{}\n", "x".repeat(CELLS - 1));
        let again = "\u{1b}[A\u{1b}[9999C\u{1b}[Bx\n";
        for (first, part) in [
            ("", "\u{1b}[79Gx\n"),
            (&*far, again),
            ("", "\0"),
            ("", "\u{1}\n"),
            ("", "\u{200b}"),
            ("", "\u{1b}[24Hx\n\u{1b}[2J"),
            ("", "\u{1b}[?1049h\u{1b}[79Gx\n\u{1b}[?1049l\u{1b}[79Gx"),
        ] {
            let output = format!("{first}{}", part.repeat(50_000));
            let whole = shown(output.as_bytes()).len();
            let cut = in_pieces(output.as_bytes(), 1000).len();
            assert!(
                whole.max(cut) <= output.len() + SPARE + CELLS,
                "{part:?}: {whole} {cut} of {}",
                output.len()
            );
        }
        let binary = vec![0xff; 300_000];
        assert!(shown(&binary).len() <= binary.len() + SPARE + CELLS);
    }

    /// Whatever a program writes, memory is bounded, and no part of the output costs as much as all before it.
    #[test]
    fn a_hostile_output_is_held_in_kilobytes() {
        let wide = "x".repeat(CELLS - 1);
        for part in [
            "\u{1b}[1K",
            "\u{1b}[999;999Hx\n",
            "\u{1b}[",
            "9;",
            "\u{1b}P",
            "y\n",
            "é",
            "e\u{301}",
            "\u{301}",
        ] {
            let mut screen = OutputScreen::default();
            screen.write(wide.as_bytes());
            screen.write(b"\r");
            for _ in 0..200 {
                screen.write(part.repeat(50).as_bytes());
                screen.take();
            }
            assert!(screen.rows.len() <= ROWS, "{part:?}: {}", screen.rows.len());
            assert!(
                screen
                    .rows
                    .iter()
                    .all(|row| row.cells.len() <= CELLS && row.marks.len() <= MARKED),
                "{part:?}"
            );
            assert!(
                screen.done.len() + screen.partial.len() < 64 * 1024,
                "{part:?}"
            );
        }
    }
}
