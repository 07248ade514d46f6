//! A unified diff with the numbers of its lines. Compares nothing.

use crate::count::count;
use crate::line::Line;
use crate::style::Tone;

/// The lines of a unified diff in at most `width` columns, at most `most` of them and a note. Long lines are cut.
#[must_use]
pub fn diff(text: &str, width: usize, most: usize) -> Vec<Line> {
    let digits = text.lines().filter_map(hunk).map(|(old, new)| old.max(new)).max().map_or(1, |last| {
        // A hunk is short: its last line has as many digits as the number after all lines.
        (last + text.lines().count()).to_string().len()
    });
    let (mut old, mut new) = (0, 0);
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(begins) = hunk(line) {
            (old, new) = begins;
            if !lines.is_empty() {
                lines.push(Line::of(&format!("{:>digits$} ⋮", ""), Tone::Dim));
            }
            continue;
        }
        let (number, tone) = match line.as_bytes().first() {
            Some(b'+') => (Some(&mut new), Tone::Added),
            Some(b'-') => (Some(&mut old), Tone::Removed),
            Some(b' ') => {
                old += 1;
                (Some(&mut new), Tone::Dim)
            }
            _ => (None, Tone::Dim),
        };
        let number = number.map_or_else(String::new, |number| {
            *number += 1;
            (*number - 1).to_string()
        });
        let (sign, code) = line.split_at(usize::from(!number.is_empty()));
        let mut shown = Line::of(&format!("{number:>digits$} "), Tone::Dim).with(sign, tone).with(" ", tone);
        shown.append(&Line::of_output(code, tone));
        lines.push(shown);
    }
    let more = lines.len().saturating_sub(most);
    lines.truncate(most);
    if more > 0 {
        lines.push(Line::of(&format!("{:>digits$} … {}", "", count(more as u64, "more line")), Tone::Dim));
    }
    lines.iter().map(|line| line.cut(width)).collect()
}

/// The first lines of a hunk: `@@ -3,5 +3,6 @@`. An empty side names the line before it.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let first = |side: &str| {
        let (line, count) = side.split_once(',').unwrap_or((side, "1"));
        Some(line.parse::<usize>().ok()? + usize::from(count == "0")).filter(|line| *line < usize::MAX / 2)
    };
    Some((first(old)?, first(new)?))
}
