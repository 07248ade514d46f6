//! Texts that are no JSON, cut to a budget where a reader would cut: changes at hunks, logs at lines with the errors kept,
//! code at blocks. Never inside a character. Each gap is a line that says how much is missing.

use crate::strategy::{DataKind, ResultPart, Strategy};
use crate::token_counter::TokenCounter;
use crate::trim;

/// Longer lines are cut into pieces of at most this many bytes.
const PIECE: usize = 512;

/// Lines of a part of a log or of other text.
const LINES: usize = 4;

/// Most parts of a text; beyond that, parts are longer.
const PARTS: usize = 4096;

/// Words of lines that a log keeps.
const ERRORS: &[&str] = &[
    "error",
    "fail",
    "panic",
    "exception",
    "fatal",
    "traceback",
    "denied",
];

/// What a line with such a word is worth beyond its place: more than any place.
const ERROR_VALUE: u64 = 10_000_000;

/// How often a choice is repeated, because gaps cost tokens, too.
const ROUNDS: u64 = 8;

/// What a text is, by its first lines.
pub fn kind_of(text: &str) -> DataKind {
    let mut lines = text.lines().take(200).peekable();
    let is_diff = |line: &str| line.starts_with("diff --git ") || line.starts_with("@@ -");
    if lines.peek().is_some_and(|line| line.starts_with("--- ")) || lines.clone().any(is_diff) {
        return DataKind::Diff;
    }
    let mut timed = 0;
    let mut code = 0;
    let mut all = 0;
    for line in lines.filter(|line| !line.trim().is_empty()) {
        all += 1;
        let start: String = line.chars().take(24).collect();
        timed += u32::from(
            start.matches(|c: char| c.is_ascii_digit()).count() >= 6 && start.contains(':'),
        );
        code += u32::from(line.ends_with([';', '{', '}']) || line.starts_with([' ', '\t']));
    }
    match all {
        0..4 => DataKind::Text,
        all if timed * 2 > all => DataKind::Log,
        all if code * 2 > all => DataKind::Code,
        _ => DataKind::Text,
    }
}

/// The text within a budget; whole if it fits. A budget that no gap fits leaves nothing.
pub fn truncate(
    text: &str,
    kind: DataKind,
    strategy: Strategy,
    counter: TokenCounter,
    budget: u64,
) -> String {
    if counter.count(text) <= budget {
        return text.to_owned();
    }
    let parts = parts(text, kind);
    let costs: Vec<u64> = parts.iter().map(|part| counter.count(part)).collect();
    let ways: Vec<trim::Choices> = costs
        .iter()
        .zip(&parts)
        .enumerate()
        .map(|(at, (tokens, text))| {
            let part = ResultPart {
                at,
                of: parts.len(),
                tokens: *tokens,
                is_answer: false,
            };
            let value = strategy.value(part) + extra(text, kind);
            vec![(*tokens, value)]
        })
        .collect();
    for round in 0..ROUNDS {
        let chosen = trim::choose(&ways, budget * (ROUNDS - round) / (ROUNDS + 1));
        let shown = joined(&parts, &chosen);
        if counter.count(&shown) <= budget {
            return shown;
        }
    }
    let gap = gap(&parts);
    if counter.count(&gap) <= budget {
        gap
    } else {
        String::new()
    }
}

fn extra(text: &str, kind: DataKind) -> u64 {
    let has_error = || {
        let text = text.to_lowercase();
        ERRORS.iter().any(|word| text.contains(word))
    };
    if kind == DataKind::Log && has_error() {
        ERROR_VALUE
    } else {
        0
    }
}

/// The parts of a text, in order and without a gap between them.
fn parts(text: &str, kind: DataKind) -> Vec<&str> {
    let lines = text.lines().count().max(1);
    let most = (lines.div_ceil(PARTS)).max(LINES);
    let mut parts = Vec::new();
    let mut from = 0;
    let mut count = 0;
    let mut end = 0;
    let mut before_is_blank = false;
    for line in text.split_inclusive('\n') {
        let starts = match kind {
            DataKind::Diff => line.starts_with("diff --git ") || line.starts_with("@@ "),
            DataKind::Code => before_is_blank && !line.starts_with([' ', '\t', '}', '\n', '\r']),
            DataKind::Log => true,
            DataKind::List | DataKind::Thread | DataKind::Text => count >= LINES,
        };
        let is_full = count >= most && !matches!(kind, DataKind::Diff | DataKind::Code);
        let is_start = match kind {
            DataKind::Log => count >= lines.div_ceil(PARTS),
            _ => starts || is_full,
        };
        if is_start && end > from {
            parts.extend(text.get(from..end));
            (from, count) = (end, 0);
        }
        (end, count) = (end + line.len(), count + 1);
        before_is_blank = line.trim().is_empty();
    }
    parts.extend(text.get(from..).filter(|rest| !rest.is_empty()));
    parts.into_iter().flat_map(pieces).collect()
}

/// A part that is much too long, cut at line ends, and a line that is, at characters.
fn pieces(part: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = part;
    while rest.len() > 8 * PIECE {
        let cut = rest.floor_char_boundary(PIECE);
        let head = rest.get(..cut).unwrap_or_default();
        let end = head.rfind('\n').map_or(cut, |at| at + 1);
        let Some((head, tail)) = rest.split_at_checked(end.max(1)) else {
            break;
        };
        all.push(head);
        rest = tail;
    }
    all.push(rest);
    all
}

fn joined(parts: &[&str], chosen: &[Option<usize>]) -> String {
    let mut out = String::new();
    let mut missing = Vec::new();
    for (part, way) in parts.iter().zip(chosen) {
        if way.is_none() {
            missing.push(*part);
            continue;
        }
        close(&mut out, &mut missing);
        out.push_str(part);
    }
    close(&mut out, &mut missing);
    out
}

fn close(out: &mut String, missing: &mut Vec<&str>) {
    if missing.is_empty() {
        return;
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&gap(missing));
    missing.clear();
}

fn gap(missing: &[&str]) -> String {
    let count = |of: fn(&str) -> usize| missing.iter().map(|part| of(part)).sum::<usize>();
    let lines = count(|part| part.matches('\n').count());
    let bytes = count(str::len);
    let hunks = missing
        .iter()
        .filter(|part| part.starts_with("@@ "))
        .count();
    match (hunks, lines) {
        (0, 0) => format!("[… {bytes} bytes left out]\n"),
        (0, 1) => "[… 1 line left out]\n".to_owned(),
        (0, lines) => format!("[… {lines} lines left out]\n"),
        (1, lines) => format!("[… 1 hunk, {lines} lines left out]\n"),
        (hunks, lines) => format!("[… {hunks} hunks, {lines} lines left out]\n"),
    }
}
