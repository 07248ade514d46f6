//! Frames below what was printed, as bytes for a terminal: what is finished is written once, as ordinary lines, and
//! what stands below it is erased and drawn again. No part of the screen scrolls by itself. Pure.

use tui::{Frame, Line, Theme};

/// What stands below the printed lines.
pub(crate) struct InlinePainter {
    theme: Theme,
    columns: u16,
    shown: Frame,
}

impl InlinePainter {
    pub(crate) fn new(theme: Theme) -> Self {
        Self {
            theme,
            columns: 0,
            shown: Frame::default(),
        }
    }

    /// The terminal is at the begin of an empty line.
    pub(crate) fn forget(&mut self) {
        self.shown = Frame::default();
    }

    /// The bytes that print lines and show a frame below them; none if there is nothing to do.
    pub(crate) fn paint(&mut self, columns: u16, printed: &[Line], frame: Frame) -> Vec<u8> {
        if printed.is_empty() && frame == self.shown && columns == self.columns {
            return Vec::new();
        }
        let mut text = format!("\x1b[?2026h\x1b[?25l\x1b[0m{}", self.erased(columns));
        printed
            .iter()
            .for_each(|line| text.push_str(&format!("{}\r\n", line.placed(self.theme))));
        let rows: Vec<String> = frame
            .rows
            .iter()
            .map(|line| line.placed(self.theme))
            .collect();
        text.push_str(&rows.join("\r\n"));
        (self.columns, self.shown) = (columns, frame);
        if let Some((column, row)) = self.shown.cursor {
            text.push_str(&vertical(self.last().saturating_sub(usize::from(row)), 'A'));
            text.push_str(&format!("\x1b[{}G\x1b[?25h", column + 1));
        }
        text.push_str("\x1b[?2026l");
        text.into_bytes()
    }

    /// The bytes that leave the terminal at the begin of an empty line behind what was printed.
    pub(crate) fn erase(&mut self) -> Vec<u8> {
        let text = self.erased(self.columns);
        self.forget();
        text.into_bytes()
    }

    fn last(&self) -> usize {
        self.shown.rows.len().saturating_sub(1)
    }

    /// To the begin of what stands there, and that erased. When a terminal becomes narrower, some make two rows of a row
    /// that is too wide now, and others do not: then nobody knows where it begins, and it stays.
    fn erased(&self, columns: u16) -> String {
        let row = self
            .shown
            .cursor
            .map_or(self.last(), |(_, row)| usize::from(row));
        if self
            .shown
            .rows
            .iter()
            .any(|line| line.width() > usize::from(columns))
        {
            return format!(
                "{}\r\n\x1b[J",
                vertical(self.last().saturating_sub(row), 'B')
            );
        }
        format!("\r{}\x1b[J", vertical(row, 'A'))
    }
}

/// So many rows up (`A`) or down (`B`).
fn vertical(rows: usize, letter: char) -> String {
    if rows == 0 {
        String::new()
    } else {
        format!("\x1b[{rows}{letter}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;
    use tui::Tone;
    use vt100::Parser;

    fn frame(rows: &[&str], cursor: Option<(u16, u16)>) -> Frame {
        Frame {
            rows: lines(rows),
            cursor,
        }
    }

    fn lines(rows: &[&str]) -> Vec<Line> {
        rows.iter().map(|row| Line::of(row, Tone::Plain)).collect()
    }

    fn some(number: u16) -> NonZero<u16> {
        NonZero::new(number).unwrap()
    }

    /// Every row, also those that were scrolled away.
    fn all(terminal: &mut Parser) -> Vec<String> {
        terminal.screen_mut().set_scrollback(usize::MAX);
        let above = terminal.screen().scrollback();
        let mut rows = Vec::new();
        for at in (0..=above).rev() {
            terminal.screen_mut().set_scrollback(at);
            let (height, columns): (u16, u16) = {
                let (height, columns) = terminal.screen().size();
                (height.into(), columns.into())
            };
            let seen: Vec<String> = terminal
                .screen()
                .rows(0, columns)
                .take(usize::from(height))
                .collect();
            if at == 0 {
                rows.extend(seen)
            } else {
                rows.extend(seen.into_iter().take(1))
            }
        }
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    #[test]
    fn what_is_printed_stays_once_and_what_is_below_is_replaced() {
        let mut terminal = Parser::new(some(5), some(20), 100);
        let mut painter = InlinePainter::new(Theme::Plain);
        terminal.process(b"$ yoi attach\r\n");
        let mut printed = vec!["$ yoi attach".to_owned()];
        for n in 0..20 {
            let one = format!("line {n}");
            let below = ["", "calling", "> text", "state"];
            let below = if n % 2 == 0 { &below[..] } else { &below[2..] };
            let row = u16::try_from(below.len()).unwrap() - 2;
            let bytes = painter.paint(20, &lines(&[&one]), frame(below, Some((3, row))));
            terminal.process(&bytes);
            printed.push(one);
            let screen = terminal.screen();
            assert_eq!(screen.cursor_position().1, 3);
            assert!(!screen.hide_cursor());
            let mut wanted = printed.clone();
            wanted.extend(below.iter().map(|row| (*row).to_owned()));
            assert_eq!(all(&mut terminal), wanted, "after {n}");
            assert_eq!(painter.paint(20, &[], frame(below, Some((3, row)))), b"");
        }
        terminal.process(&painter.erase());
        assert_eq!(all(&mut terminal), printed);
    }

    #[test]
    fn at_another_width_nothing_that_was_printed_is_erased() {
        for (columns, stays) in [(12, true), (10, false)] {
            let mut terminal = Parser::new(some(9), some(20), 100);
            let mut painter = InlinePainter::new(Theme::Plain);
            terminal.process(&painter.paint(
                20,
                &lines(&["one"]),
                frame(&["work 67890a", "> x"], Some((2, 1))),
            ));
            terminal.screen_mut().set_size(some(9), some(columns));
            terminal.process(&painter.paint(
                columns,
                &lines(&["two"]),
                frame(&["> x"], Some((2, 0))),
            ));
            let rows = all(&mut terminal);
            let wanted: &[&str] = if stays {
                &["one", "two", "> x"]
            } else {
                &["one", "work 67890", "> x", "two", "> x"]
            };
            assert_eq!(rows, wanted, "{columns}");
        }
    }

    #[test]
    fn a_terminal_that_reflows_keeps_what_was_printed_once() {
        let mut terminal = avt::Terminal::with_scrollback(20, 5, Some(100)).unwrap();
        let mut painter = InlinePainter::new(Theme::Plain);
        let mut printed = Vec::new();
        for (n, columns) in [20, 20, 12, 7, 30, 30, 9]
            .into_iter()
            .cycle()
            .take(70)
            .enumerate()
        {
            terminal.resize(usize::from(columns), 5);
            let one = format!("{n:02}");
            let frame = frame(&["", "calling", "> text", "state"], Some((3, 2)));
            let bytes = painter.paint(columns, &lines(&[&one]), frame);
            terminal.feed(String::from_utf8(bytes).unwrap());
            printed.push(one);
        }
        let all = |terminal: &avt::Terminal| -> Vec<String> {
            terminal
                .primary_screen()
                .all_lines()
                .map(|line| line.text().trim_end().to_owned())
                .collect()
        };
        let seen = all(&terminal);
        let numbers: Vec<&String> = seen
            .iter()
            .filter(|row| row.parse::<u8>().is_ok())
            .collect();
        assert_eq!(numbers, printed.iter().collect::<Vec<_>>(), "{seen:#?}");
        assert_eq!(
            seen.iter().filter(|row| *row == "> text").count(),
            1,
            "no row was ever too wide: {seen:#?}"
        );
        terminal.resize(5, 5);
        let bytes = painter.paint(5, &lines(&["70"]), self::frame(&["> x"], Some((2, 0))));
        terminal.feed(String::from_utf8(bytes).unwrap());
        let seen = all(&terminal);
        let numbers = seen.iter().filter(|row| row.parse::<u8>().is_ok()).count();
        assert_eq!(numbers, 71, "{seen:#?}");
    }
}
