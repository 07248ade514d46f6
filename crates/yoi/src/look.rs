//! A terminal that can show cells: its width and its theme. What is no terminal, or a dumb one, gets plain lines.

use rustix::termios::{Winsize, isatty, tcgetwinsize};
use std::io::{stderr, stdout};
use std::os::fd::AsFd;
use tui::{Line, Theme, Tone, labelled};

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Its rows.
const ROWS: usize = 24;

/// How cells are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) theme: Theme,
    /// Asked before each cell: a terminal changes its size.
    columns: fn() -> usize,
    rows: fn() -> usize,
}

impl Look {
    /// Standard output, if it can show cells.
    pub(crate) fn of_stdout() -> Option<Self> {
        isatty(stdout()).then(theme).flatten().map(|theme| Self {
            theme,
            columns: || columns_of(stdout()),
            rows: || rows_of(stdout()),
        })
    }

    /// Standard error, if it can show cells.
    pub(crate) fn of_stderr() -> Option<Self> {
        isatty(stderr()).then(theme).flatten().map(|theme| Self {
            theme,
            columns: || columns_of(stderr()),
            rows: || rows_of(stderr()),
        })
    }

    #[cfg(test)]
    pub(crate) const fn fixed(theme: Theme, columns: fn() -> usize) -> Self {
        Self {
            theme,
            columns,
            rows: || ROWS,
        }
    }

    pub(crate) fn width(self) -> usize {
        (self.columns)()
    }

    pub(crate) fn rows(self) -> usize {
        (self.rows)()
    }

    /// Lines as they are written.
    pub(crate) fn text(self, lines: &[Line]) -> String {
        lines
            .iter()
            .map(|line| line.ansi(self.theme) + "\n")
            .collect()
    }

    /// A line of this program about what it does, of which a warning stands out.
    pub(crate) fn note(self, text: &str) -> String {
        let found = ["warning:", "!"]
            .iter()
            .find_map(|label| Some((*label, text.strip_prefix(label)?.strip_prefix(' ')?)));
        match found {
            Some((label, text)) => self.labelled(label, text),
            None => {
                let rest = Line::of("  ", Tone::Plain);
                self.text(&Line::of(text, Tone::Dim).wrap(self.width(), &Line::default(), &rest))
            }
        }
    }

    /// A text behind its label.
    pub(crate) fn labelled(self, label: &str, text: &str) -> String {
        let tone = match label {
            "error:" => Tone::Failed,
            "warning:" | "!" => Tone::Refused,
            _ => Tone::Strong,
        };
        self.text(&labelled(label, tone, text, self.width()))
    }
}

fn columns_of(terminal: impl AsFd) -> usize {
    match tcgetwinsize(terminal) {
        Ok(Winsize {
            ws_col: columns @ 1..,
            ..
        }) => usize::from(columns),
        _ => COLUMNS,
    }
}

fn rows_of(terminal: impl AsFd) -> usize {
    match tcgetwinsize(terminal) {
        Ok(Winsize {
            ws_row: rows @ 1.., ..
        }) => usize::from(rows),
        _ => ROWS,
    }
}

/// The theme of a terminal, if it can do more than print. Errors need it before the environment is read as a whole.
fn theme() -> Option<Theme> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    var("TERM").filter(|kind| kind != "dumb")?;
    let forced = var("CLICOLOR_FORCE").is_some_and(|force| force != "0");
    Some(Theme::new(forced || var("NO_COLOR").is_none()))
}
