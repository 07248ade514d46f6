//! Frames as bytes for a terminal: only the rows that changed are written. Pure.

use tui::{Frame, Line, Theme};

/// What a terminal shows.
pub(crate) struct Painter {
    theme: Theme,
    columns: u16,
    rows: Vec<Line>,
    cursor: Option<(u16, u16)>,
    /// Nothing is known of it.
    is_unknown: bool,
}

impl Painter {
    pub(crate) fn new(theme: Theme) -> Self {
        Self {
            theme,
            columns: 0,
            rows: Vec::new(),
            cursor: None,
            is_unknown: true,
        }
    }

    /// The terminal may show anything.
    pub(crate) fn forget(&mut self) {
        self.is_unknown = true;
    }

    /// The bytes that make the terminal show a frame; none if it does.
    pub(crate) fn paint(&mut self, columns: u16, frame: Frame) -> Vec<u8> {
        let is_new =
            self.is_unknown || columns != self.columns || frame.rows.len() != self.rows.len();
        let mut rows = String::new();
        if is_new {
            rows.push_str("\x1b[0m\x1b[2J");
            self.rows = vec![Line::default(); frame.rows.len()];
        }
        for (number, (shown, line)) in self.rows.iter().zip(&frame.rows).enumerate() {
            if shown == line {
                continue;
            }
            rows.push_str(&format!(
                "\x1b[{};1H{}",
                number + 1,
                line.placed(self.theme)
            ));
            // At the last column, this would erase what was just written.
            if line.width() < usize::from(columns) {
                rows.push_str("\x1b[K");
            }
        }
        if rows.is_empty() && frame.cursor == self.cursor {
            return Vec::new();
        }
        let cursor = match frame.cursor {
            Some((column, row)) => format!("\x1b[{};{}H\x1b[?25h", row + 1, column + 1),
            None => String::new(),
        };
        (self.columns, self.rows, self.cursor, self.is_unknown) =
            (columns, frame.rows, frame.cursor, false);
        format!("\x1b[?2026h\x1b[?25l{rows}{cursor}\x1b[?2026l").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tui::Tone;

    fn frame(rows: &[&str], cursor: Option<(u16, u16)>) -> Frame {
        Frame {
            rows: rows.iter().map(|row| Line::of(row, Tone::Plain)).collect(),
            cursor,
        }
    }

    fn painted(painter: &mut Painter, columns: u16, frame: Frame) -> String {
        String::from_utf8(painter.paint(columns, frame))
            .unwrap()
            .replace('\x1b', "^")
    }

    #[test]
    fn only_what_changed_is_written() {
        let mut painter = Painter::new(Theme::Plain);
        let first = painted(&mut painter, 5, frame(&["one", "", "three"], Some((2, 1))));
        assert_eq!(
            first,
            "^[?2026h^[?25l^[0m^[2J^[1;1Hone^[K^[3;1Hthree^[2;3H^[?25h^[?2026l"
        );
        assert_eq!(
            painted(&mut painter, 5, frame(&["one", "", "three"], Some((2, 1)))),
            ""
        );
        let moved = painted(&mut painter, 5, frame(&["one", "", "three"], Some((0, 0))));
        assert_eq!(moved, "^[?2026h^[?25l^[1;1H^[?25h^[?2026l");
        let second = painted(&mut painter, 5, frame(&["one", "two", "three"], None));
        assert_eq!(second, "^[?2026h^[?25l^[2;1Htwo^[K^[?2026l");
    }

    #[test]
    fn what_terminals_measure_differently_moves_nothing_behind_it() {
        let mut painter = Painter::new(Theme::Plain);
        let family = "ab\u{1f469}\u{200d}\u{1f467}";
        let row = Line::of(family, Tone::Plain).with("x", Tone::Plain);
        let wide = Frame {
            rows: vec![row, Line::of("日本", Tone::Plain)],
            cursor: None,
        };
        let text = painted(&mut painter, 20, wide);
        assert!(text.contains("^[5Gx") && text.contains("日本^[K"), "{text}");
    }

    /// A terminal that gives it one column leaves the second one as it was.
    #[test]
    fn the_columns_of_what_terminals_measure_differently_are_erased() {
        let mut painter = Painter::new(Theme::Plain);
        let text = painted(
            &mut painter,
            20,
            frame(&["ab \u{2764}\u{fe0f} e\u{301} cd"], None),
        );
        assert!(
            text.contains("ab ^[2X\u{2764}\u{fe0f}^[6G ^[1Xe\u{301}^[8G cd^[K"),
            "{text}"
        );
    }

    #[test]
    fn a_terminal_of_another_size_is_drawn_again() {
        let mut painter = Painter::new(Theme::Plain);
        painter.paint(5, frame(&["one"], None));
        assert_eq!(
            painted(&mut painter, 6, frame(&["one"], None)),
            "^[?2026h^[?25l^[0m^[2J^[1;1Hone^[K^[?2026l"
        );
        painter.forget();
        assert_eq!(
            painted(&mut painter, 6, frame(&["one"], None)),
            "^[?2026h^[?25l^[0m^[2J^[1;1Hone^[K^[?2026l"
        );
    }
}
