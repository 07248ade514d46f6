//! Sentences are for people: no code reads back what it, or a crate below it, wrote for them.

use std::path::Path;

use crate::finding::Finding;
use crate::source::{self, Source};

/// Where sentences of crates below are at hand.
const READERS: [&str; 4] = [
    "crates/client/src/",
    "crates/host/src/",
    "crates/tui/src/",
    "crates/yoi/src/",
];

/// What takes a text apart, or looks for a part of it.
const METHODS: [&str; 13] = [
    "contains",
    "ends_with",
    "find",
    "matches",
    "rfind",
    "rsplit_once",
    "split",
    "split_once",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
    "trim_end_matches",
    "trim_start_matches",
];

/// One finding for each literal of prose that such a method is given, of code that is not in `foreign`: files that read
/// what others write. Its place is the file and the literal.
pub fn parsed(root: &Path, foreign: &[(&str, &str)]) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    let readers = sources
        .iter()
        .filter(|file| file.ships() && READERS.iter().any(|dir| file.path.starts_with(dir)));
    let (of_others, ours): (Vec<&Source>, Vec<&Source>) =
        readers.partition(|file| foreign.iter().any(|(path, _)| *path == file.path));
    bad.extend(ours.into_iter().flat_map(found));
    for (path, _) in foreign {
        let file = of_others.iter().find(|file| file.path == *path);
        if file.is_none_or(|file| found(file).is_empty()) {
            bad.push(Finding::new(
                *path,
                0,
                "reads no sentence of others any more; take it off the list",
            ));
        }
    }
    bad
}

fn found(file: &Source) -> Vec<Finding> {
    let code = file.shipped_code();
    let literals = file.shipped_literals();
    let mut bad = Vec::new();
    for method in METHODS {
        for (at, call) in code.match_indices(&format!(".{method}(")) {
            let behind = at + call.len();
            let Some(opened) = opened(&code, behind) else {
                continue;
            };
            let text = literals.get(opened..).unwrap_or_default();
            let end = code.get(opened..).and_then(|code| code.find('"'));
            let literal = end.and_then(|end| text.get(..end)).unwrap_or_default();
            if is_prose(literal) {
                let place = format!("{} {literal:?}", file.path);
                let what = format!("`{method}` reads a sentence: give the reason a type");
                bad.push(Finding::new(place, source::line_of(&code, at), what));
            }
        }
    }
    bad
}

/// Where the literal behind a call's parenthesis begins, if one is there: directly, or formatted.
fn opened(code: &str, behind: usize) -> Option<usize> {
    let rest = code.get(behind..)?;
    let mut argument = rest.trim_start();
    for before in ["&format!(", "&"] {
        argument = argument
            .strip_prefix(before)
            .map_or(argument, str::trim_start);
    }
    argument = argument.strip_prefix('"')?;
    Some(code.len() - argument.len())
}

/// A letter beside a space.
fn is_prose(literal: &str) -> bool {
    let bytes = literal.as_bytes();
    bytes
        .windows(2)
        .any(|pair| matches!(pair, [b' ', letter] | [letter, b' '] if letter.is_ascii_alphabetic()))
}
