//! The last lines of an output that still comes.

use crate::line::Line;
use crate::style::Tone;

/// The last lines that are not blank, in at most `width` columns, in exactly `height` rows: what has fewer lines is filled
/// up, so that what stands below does not jump. A line that was written over by carriage returns is shown as it is last.
#[must_use]
pub fn output_tail(text: &str, width: usize, height: usize) -> Vec<Line> {
    let margin = Line::of("  ", Tone::Plain);
    let room = width.saturating_sub(margin.width()).max(1);
    let newest = text
        .rsplit('\n')
        .map(last_state)
        .filter(|line| !line.trim().is_empty())
        .take(height);
    let mut lines: Vec<Line> = newest
        .flat_map(|line| {
            Line::of_output(line, Tone::Dim)
                .cut(room)
                .chop(width.max(1), &margin, &margin)
                .into_iter()
                .take(1)
        })
        .collect();
    lines.reverse();
    lines.resize(height, Line::default());
    lines
}

/// What a terminal would show of a line, if each part covers the one before it.
fn last_state(line: &str) -> &str {
    line.trim_end_matches('\r')
        .rsplit('\r')
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_as_they_are_last() {
        let table: [(&str, &[&str]); 7] = [
            ("a\nb\nc\nd\n", &["  b", "  c", "  d"]),
            ("a\n\n  \nb", &["  a", "  b", ""]),
            ("get\n 10%\r 20%\r 30%", &["  get", "   30%", ""]),
            (" 10%\r 20%\r", &["   20%", "", ""]),
            ("one\r\ntwo\r\n", &["  one", "  two", ""]),
            ("\u{1b}[2Jx\u{202e}y", &["  \\u{1b}[2Jx\\u…", "", ""]),
            ("a\tb and what is too long", &["  a   b and wh…", "", ""]),
        ];
        for (text, shown) in table {
            let lines: Vec<String> = output_tail(text, 15, 3).iter().map(Line::text).collect();
            assert_eq!(lines, shown, "{text:?}");
        }
    }
}
