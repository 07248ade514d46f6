//! A unified diff with the numbers of its lines, the colours of its code and the words that differ.

use crate::changed_words::changed_words;
use crate::count::count;
use crate::highlight;
use crate::line::Line;
use crate::style::Tone;
use authority::text::escape_strict;
use protocol::method::PreviewedCall;

/// The lines of a unified diff in at most `width` columns, at most `most` of them and a note. Long lines are cut. The name
/// of the file says which code it is; another text may stand in its place.
#[must_use]
pub fn diff(name: &str, text: &str, width: usize, most: usize) -> Vec<Line> {
    let digits = text
        .lines()
        .filter_map(hunk)
        .map(|(old, new)| old.max(new))
        .max()
        .map_or(1, |last| {
            // A hunk is short: its last line has as many digits as the number after all lines.
            (last + text.lines().count()).to_string().len()
        });
    let mut rows = rows(text);
    let more = rows.len().saturating_sub(most);
    colour(&mut rows, name, text);
    mark_pairs(&mut rows);
    rows.truncate(most);
    let mut lines: Vec<Line> = rows.into_iter().map(|row| row.line(digits)).collect();
    if more > 0 {
        lines.push(Line::of(
            &format!("{:>digits$} … {}", "", count(more as u64, "more line")),
            Tone::Dim,
        ));
    }
    lines.iter().map(|line| line.cut(width)).collect()
}

/// What a call would change in a file, in lines that are not cut; none if its tool does not tell.
#[must_use]
pub fn previewed(file: &str, call: &PreviewedCall) -> Vec<Line> {
    if let Some(why) = &call.why {
        let why = format!("the change cannot be shown: {}", escape_strict(why));
        let lines = why.lines();
        return lines.map(|why| Line::of(why, Tone::Refused)).collect();
    }
    let Some(text) = &call.diff else {
        return Vec::new();
    };
    if text.is_empty() {
        return vec![Line::of("nothing would change now", Tone::Dim)];
    }
    let mut lines = vec![Line::of("changes the file as it is now:", Tone::Dim)];
    lines.extend(diff(file, &escape_strict(text), usize::MAX, usize::MAX));
    if call.more > 0 {
        let more = format!("… {}", count(call.more, "more line"));
        lines.push(Line::of(&more, Tone::Waiting));
    }
    lines
}

/// A line of the diff; between two hunks one without a sign.
struct Row {
    number: Option<usize>,
    sign: String,
    tone: Tone,
    code: Line,
}

impl Row {
    fn line(self, digits: usize) -> Line {
        let number = self
            .number
            .map_or_else(String::new, |number| number.to_string());
        let mut shown =
            Line::of(&format!("{number:>digits$} "), Tone::Dim).with(&self.sign, self.tone);
        shown.append(&self.code);
        shown
    }
}

fn rows(text: &str) -> Vec<Row> {
    let mut old = 0;
    let mut new = 0;
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some(begins) = hunk(line) {
            (old, new) = begins;
            if !rows.is_empty() {
                rows.push(Row {
                    number: None,
                    sign: "⋮".to_owned(),
                    tone: Tone::Dim,
                    code: Line::default(),
                });
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
        let number = number.map(|number| {
            *number += 1;
            *number - 1
        });
        let (sign, code) = line.split_at(usize::from(number.is_some()));
        rows.push(Row {
            number,
            sign: format!("{sign} "),
            tone,
            code: Line::of_output(code, tone),
        });
    }
    rows
}

/// Gives the code of both sides its colours, which go with those of the diff: a text is not green in a line that goes.
fn colour(rows: &mut [Row], name: &str, text: &str) {
    let Some(mut old) = highlight::of_file(name, text) else {
        return;
    };
    let mut new = old.clone();
    for row in rows {
        let side = row.tone;
        let code = match side {
            Tone::Removed => old.line(&row.code),
            Tone::Added => new.line(&row.code),
            _ if row.number.is_some() => {
                old.line(&row.code);
                new.line(&row.code)
            }
            _ => {
                old.anew();
                new.anew();
                continue;
            }
        };
        row.code = beside(code, side);
    }
}

/// Code with its colours as it stands on a side of a diff.
pub(crate) fn beside(code: Line, side: Tone) -> Line {
    code.retoned(|tone| match (tone, side) {
        (Tone::Keyword, Tone::Dim) => Tone::DimKeyword,
        (Tone::Quoted | Tone::Number, Tone::Dim) => Tone::DimNumber,
        (Tone::Keyword, _) => Tone::Keyword,
        (Tone::Quoted | Tone::Number, _) => Tone::Number,
        (Tone::Comment, Tone::Added) => Tone::AddedComment,
        (Tone::Comment, Tone::Removed) => Tone::RemovedComment,
        _ => side,
    })
}

/// Marks the words that differ where as many lines replace as many others.
fn mark_pairs(rows: &mut [Row]) {
    for block in rows.chunk_by_mut(|row, next| row.tone == next.tone || next.tone == Tone::Added) {
        let removed = block
            .iter()
            .take_while(|row| row.tone == Tone::Removed)
            .count();
        let Some((olds, news)) = block
            .split_at_mut_checked(removed)
            .filter(|(olds, news)| olds.len() == news.len())
        else {
            continue;
        };
        for (old, new) in olds.iter_mut().zip(news) {
            if let Some((from, to)) = changed_words(&old.code.text(), &new.code.text()) {
                old.code = old.code.marked(&from, Tone::RemovedWord);
                new.code = new.code.marked(&to, Tone::AddedWord);
            }
        }
    }
}

/// The first lines of a hunk: `@@ -3,5 +3,6 @@`. An empty side names the line before it.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let first = |side: &str| {
        let (line, count) = side.split_once(',').unwrap_or((side, "1"));
        Some(line.parse::<usize>().ok()? + usize::from(count == "0"))
            .filter(|line| *line < usize::MAX / 2)
    };
    Some((first(old)?, first(new)?))
}
