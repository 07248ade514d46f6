//! A small unified diff of an edit. Does not depend on files.

use crate::answer::cut;
use llm_worker::tool::ShownChange;
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};
use std::ops::Range;

/// The most bytes of a diff.
pub const MAX_DIFF: usize = 4 * 1024;

/// Lines shown around a change.
const CONTEXT: usize = 2;

/// How many lines of each side are compared, from the first that differs on: more than a diff of [`MAX_DIFF`] shows,
/// and few enough that the comparison takes no time.
const WINDOW: usize = 600;

/// How much of one line is shown, in bytes.
const SHOWN_LINE: usize = 300;

/// Bytes reserved for the note that the diff is cut.
const RESERVE: usize = 48;

/// Hunks with the numbers of lines, up to [`MAX_DIFF`].
pub(super) fn diff(before: &[u8], after: &[u8]) -> String {
    let old = lines(before);
    let new = lines(after);
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let base = same.saturating_sub(CONTEXT);
    let window = |lines: &[&[u8]]| -> Vec<Vec<u8>> {
        lines
            .iter()
            .skip(base)
            .take(WINDOW)
            .map(|line| line.to_vec())
            .collect()
    };
    let from = window(&old);
    let to = window(&new);
    let whole = old.len() - base <= WINDOW && new.len() - base <= WINDOW;

    let mut out = String::new();
    let ops = capture_diff_slices(Algorithm::Myers, &from, &to);
    for group in group_diff_ops(ops, CONTEXT) {
        for line in hunk(&group, &from, &to, base) {
            if out.len() + line.len() + RESERVE > MAX_DIFF {
                out.push_str("(the diff continues)");
                return out;
            }
            out.push_str(&line);
            out.push('\n');
        }
    }
    if whole {
        out.pop();
    } else {
        out.push_str("(later changes, if any, are not shown)");
    }
    out
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|b| *b == b'\n').collect()
}

/// The most lines and bytes of a diff for a person who is asked about it.
const PREVIEW_LINES: usize = 200;
const PREVIEW_BYTES: usize = 16 * 1024;

/// Lines of each side that are compared for it; where more differ, the old ones go and the new ones come.
const COMPARED: usize = 2000;

/// The change as a person reads it before it is made. What is left out is counted.
pub(crate) fn preview(before: &[u8], after: &[u8]) -> ShownChange {
    let old = lines(before);
    let new = lines(after);
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - same;
    let from_end = old.iter().rev();
    let to_end = new.iter().rev();
    let tail = from_end
        .zip(to_end)
        .take(most)
        .take_while(|(a, b)| a == b)
        .count();
    let base = same.saturating_sub(CONTEXT);
    let around = tail.min(CONTEXT);
    let part = |lines: &[&'_ [u8]]| -> Vec<Vec<u8>> {
        let len = (lines.len() + around).saturating_sub(tail + base);
        let part = lines.iter().skip(base).take(len);
        part.map(|line| line.to_vec()).collect()
    };
    let from = part(&old);
    let to = part(&new);
    let ahead = same - base;
    let [gone, come] = [&from, &to].map(|part| part.len() - ahead - around);
    let ops = if gone.max(come) > COMPARED {
        vec![
            DiffOp::Equal {
                old_index: 0,
                new_index: 0,
                len: ahead,
            },
            DiffOp::Replace {
                old_index: ahead,
                old_len: gone,
                new_index: ahead,
                new_len: come,
            },
            DiffOp::Equal {
                old_index: ahead + gone,
                new_index: ahead + come,
                len: around,
            },
        ]
    } else {
        capture_diff_slices(Algorithm::Myers, &from, &to)
    };
    let is_long = from.iter().chain(&to).any(|line| line.len() > SHOWN_LINE);
    let is_text = [before, after]
        .map(str::from_utf8)
        .iter()
        .all(Result::is_ok);
    let mut shown = ShownChange::default();
    let mut taken = 0;
    let groups = group_diff_ops(ops, CONTEXT);
    for line in groups
        .iter()
        .flat_map(|group| hunk(group, &from, &to, base))
    {
        if shown.more > 0 || taken == PREVIEW_LINES || shown.diff.len() + line.len() > PREVIEW_BYTES
        {
            shown.more += u64::from(!line.starts_with("@@"));
            continue;
        }
        taken += 1;
        shown.diff.push_str(&line);
        shown.diff.push('\n');
    }
    shown.whole = shown.more == 0 && is_text && !is_long;
    shown
}

fn hunk(group: &[DiffOp], old: &[Vec<u8>], new: &[Vec<u8>], base: usize) -> Vec<String> {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return Vec::new();
    };
    let span = |start: usize, end: usize| {
        // By convention an empty side names the line before it.
        let line = base + start + usize::from(end > start);
        format!("{line},{}", end - start)
    };
    let mut out = vec![format!(
        "@@ -{} +{} @@",
        span(first.old_range().start, last.old_range().end),
        span(first.new_range().start, last.new_range().end)
    )];
    let mut show = |sign: char, lines: &[Vec<u8>], range: Range<usize>| {
        for line in lines.get(range).unwrap_or_default() {
            let text = String::from_utf8_lossy(line);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            out.push(format!(
                "{sign}{}",
                cut(text.strip_suffix('\r').unwrap_or(text), SHOWN_LINE)
            ));
        }
    };
    for op in group {
        match op {
            DiffOp::Equal { .. } => show(' ', old, op.old_range()),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                show('-', old, op.old_range());
                show('+', new, op.new_range());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_carry_the_files_line_numbers() {
        let text: String = (1..=40).map(|n| format!("line {n}\n")).collect();
        let table = [
            (
                "one line",
                text.replace("line 20\n", "LINE 20\n"),
                "@@ -18,5 +18,5 @@\n line 18\n line 19\n-line 20\n+LINE 20\n line 21\n line 22",
            ),
            (
                "inserted at the top",
                format!("new\n{text}"),
                "@@ -1,2 +1,3 @@\n+new\n line 1\n line 2",
            ),
            (
                "removed at the end",
                text.replace("line 40\n", ""),
                "@@ -38,3 +38,2 @@\n line 38\n line 39\n-line 40",
            ),
            (
                "all removed",
                String::new(),
                "@@ -1,40 +0,0 @@\n-line 1\n-line 2\n",
            ),
        ];
        for (name, after, want) in table {
            let got = diff(text.as_bytes(), after.as_bytes());
            assert!(got.starts_with(want), "{name}:\n{got}");
        }
    }

    /// A person reads it before the change is made: what it leaves out is counted, and a line far from the end of a long
    /// file that comes moves no other line.
    #[test]
    fn a_preview_says_what_it_leaves_out() {
        let text: String = (1..=9000).map(|n| format!("line {n}\n")).collect();
        let shown = preview(text.as_bytes(), format!("new\n{text}").as_bytes());
        assert_eq!(shown.diff, "@@ -1,2 +1,3 @@\n+new\n line 1\n line 2\n");
        assert!(shown.whole && shown.more == 0);
        let shown = preview(text.as_bytes(), text.replace("line", "LINE").as_bytes());
        assert_eq!(shown.diff.lines().count(), PREVIEW_LINES);
        assert_eq!((shown.more, shown.whole), (18_000 - 199, false));
        let shown = preview(b"", text.as_bytes());
        assert!(shown.diff.starts_with("@@ -0,0 +1,9000 @@\n+line 1\n"));
        assert_eq!(shown.more, 9000 - 199);
        let long = format!("{}\n", "x".repeat(400));
        assert!(!preview(b"a\n", long.as_bytes()).whole);
        assert!(!preview(b"\xff\n", b"a\n").whole);
        for (before, after) in [("", ""), ("a\n", "a\n"), ("a\na\n", "a\n"), ("a", "a\n")] {
            let shown = preview(before.as_bytes(), after.as_bytes());
            assert_eq!(
                shown.diff.is_empty(),
                before == after,
                "{before:?} {after:?}"
            );
        }
    }

    // Every line changes, in a file of 100,000 lines: bounded in size and time, cut on a line.
    #[test]
    fn a_large_diff_is_bounded() {
        let text: String = (1..=100_000).map(|n| format!("line {n}\n")).collect();
        let got = diff(text.as_bytes(), text.replace("line", "LINE").as_bytes());
        assert!(
            got.len() <= MAX_DIFF && got.ends_with("\n(the diff continues)"),
            "{} bytes",
            got.len()
        );
    }
}
