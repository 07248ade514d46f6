//! A `let` binds one thing: several in one hide how much a function does, and what each is.

use std::path::Path;

use crate::finding::Finding;
use crate::source;

/// One finding for each `let (a, b) = (x, y);` whose names are plain. A value that has an earlier one's name in it needs
/// the form: there, both are of before.
pub fn several(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    for file in &sources {
        for (at, _) in file.code.match_indices("let (") {
            let rest = file.code.get(at + "let ".len()..).unwrap_or_default();
            if binds_several(rest).unwrap_or_default() {
                let line = source::line_of(&file.code, at);
                let what = "one `let` for each name, unless one is of a call or of another";
                bad.push(Finding::new(&file.path, line, what));
            }
        }
    }
    bad
}

/// Whether code that begins with a pattern in parentheses binds plain names to a tuple of as many values.
fn binds_several(code: &str) -> Option<bool> {
    let (pattern, rest) = parted(code)?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start();
    let (values, rest) = parted(value)?;
    let names: Vec<&str> = pattern
        .into_iter()
        .map(|name| name.strip_prefix("mut ").unwrap_or(name))
        .collect();
    let plain = |name: &&str| *name != "_" && name.bytes().all(source::is_ident);
    let crosses = (1..values.len()).any(|later| {
        let value = values.get(later).copied().unwrap_or_default();
        let before = names.get(..later).unwrap_or_default();
        before
            .iter()
            .any(|name| source::words(value, name).next().is_some())
    });
    Some(
        rest.starts_with(';')
            && names.len() > 1
            && names.len() == values.len()
            && names.iter().all(plain)
            && !crosses,
    )
}

/// The parts between the commas of what stands in parentheses at the beginning, and what is behind them.
fn parted(code: &str) -> Option<(Vec<&str>, &str)> {
    let inside = code.strip_prefix('(')?;
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut from = 0;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth > 0 => depth -= 1,
            b',' | b')' if depth == 0 => {
                parts.push(inside.get(from..at)?.trim());
                from = at + 1;
            }
            _ => {}
        }
        if byte == b')' && from == at + 1 {
            parts.retain(|part| !part.is_empty());
            return Some((parts, inside.get(from..)?));
        }
    }
    None
}
