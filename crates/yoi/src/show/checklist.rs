//! Lines that begin with a sign and a name: what works, what does not, what is to be known.

use super::out;
use crate::look::Look;
use tui::{Line, Tone};

/// Prints `mark name text`; `columns` is the width of the names. A terminal gets colours, and later lines below the text.
pub(crate) fn item(mark: &str, name: &str, columns: usize, text: &str) {
    let plain = format!("{mark} {name:columns$} {text}");
    match Look::of_stdout() {
        Some(look) => {
            let first =
                Line::of(mark, tone(mark)).with(&format!(" {name:columns$} "), Tone::Strong);
            let rest = Line::of(&" ".repeat(columns + 3), Tone::Plain);
            out::raw(&look.text(&Line::of(text, Tone::Plain).wrap(look.width(), &first, &rest)));
        }
        None => out::line(plain.trim_end()),
    }
}

/// Prints a text below an item, behind a label such as `help:`; without one, the text stands back.
pub(crate) fn below(label: &str, text: &str) {
    let label = if label.is_empty() {
        String::new()
    } else {
        format!("{label} ")
    };
    match Look::of_stdout() {
        Some(look) => {
            let tone = if label.starts_with("warning") {
                Tone::Refused
            } else {
                Tone::Dim
            };
            let first = Line::of("    ", Tone::Plain).with(&label, tone);
            let rest = Line::of(&" ".repeat(first.width()), Tone::Plain);
            out::raw(&look.text(&Line::of(text, Tone::Plain).wrap(look.width(), &first, &rest)));
        }
        None => out::line(&format!("    {label}{text}")),
    }
}

/// The meaning of a sign.
pub(crate) fn tone(mark: &str) -> Tone {
    match mark {
        "✓" => Tone::Ok,
        "✗" => Tone::Failed,
        "!" | "~" | "?" => Tone::Refused,
        _ => Tone::Dim,
    }
}
