//! Lines of a transcript on standard output, with the meanings that their signs have.

use super::out;
use crate::look::Look;
use tui::{Line, Tone};

/// Prints a numbered text of a transcript; its later lines stand behind `margin`.
pub(crate) fn print(text: &str, margin: &str) {
    match Look::of_stdout() {
        Some(look) => out::raw(&look.text(&lines(text, margin, look.width()))),
        None => out::lines(text),
    }
}

fn lines(text: &str, margin: &str, width: usize) -> Vec<Line> {
    let mut parts = text.split('\n');
    let first = parts.next().unwrap_or_default();
    let digits = first
        .trim_start()
        .trim_start_matches(|c: char| c.is_ascii_digit());
    let said = digits.strip_prefix("  ").unwrap_or(digits);
    let number = first.strip_suffix(said).unwrap_or_default();
    let (tone, later) = tones(said);
    let margin_line = Line::of(margin, Tone::Plain);
    let mut shown =
        Line::of_output(said, tone).wrap(width, &Line::of(number, Tone::Dim), &margin_line);
    for part in parts {
        let part = part.strip_prefix(margin).unwrap_or(part);
        shown.extend(Line::of_output(part, later).wrap(width, &margin_line, &margin_line));
    }
    shown
}

/// The tones of the first line and of the later ones.
fn tones(said: &str) -> (Tone, Tone) {
    match said.chars().next() {
        Some('>') => (Tone::Strong, Tone::Strong),
        Some('✗') => (Tone::Removed, Tone::Plain),
        Some('⊘' | '!') => (Tone::Refused, Tone::Plain),
        Some('?') => (Tone::Waiting, Tone::Plain),
        Some(' ' | '─' | '…') => (Tone::Dim, Tone::Dim),
        _ => (Tone::Plain, Tone::Plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tui::Theme;

    #[test]
    fn a_sign_gives_its_line_a_meaning() {
        let shown = |text| -> Vec<String> {
            lines(text, "          ", 30)
                .iter()
                .map(|line| line.ansi(Theme::Colour).replace('\u{1b}', "^"))
                .collect()
        };
        assert_eq!(shown("    12  an answer"), ["^[2m    12  ^[0man answer"]);
        assert_eq!(
            shown("     7  ✗ c1 exit 1\n          one line that is broken"),
            [
                "^[2m     7  ^[0m^[31m✗ c1 exit 1^[0m",
                "          one line that is",
                "          broken"
            ]
        );
        assert_eq!(shown("123456  > go"), ["^[2m123456  ^[0m^[1m> go^[0m"]);
        assert_eq!(shown("     8    c1 ok"), ["^[2m     8    c1 ok^[0m"]);
        assert_eq!(
            shown("[record 9 is not shown: why]"),
            ["[record 9 is not shown: why]"]
        );
    }
}
