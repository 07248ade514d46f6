//! Words that must not stand in the tree: tests that do not run, code that is not there, paths of somebody's machine.

use std::path::Path;

use crate::finding::Finding;
use crate::source;

/// Ignored tests rot, and what is not written yet is absent and not a panic.
const IN_CODE: [(&str, &str); 4] = [
    ("#[ignore", "an ignored test; make it run or remove it"),
    ("todo!", "absent is better than a panic"),
    ("unimplemented!", "absent is better than a panic"),
    (
        "cfg(not(test))",
        "a twin of production code for tests; hand the difference in",
    ),
];

pub fn in_code(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    for file in &sources {
        for (word, why) in IN_CODE {
            for (at, _) in file.code.match_indices(word) {
                bad.push(Finding::new(
                    &file.path,
                    source::line_of(&file.code, at),
                    format!("`{word}`: {why}"),
                ));
            }
        }
    }
    bad
}

/// An exception from a lint says why, so that a reader can tell when it is over.
pub fn lint_exceptions(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    for file in &sources {
        for word in ["allow", "expect"] {
            for at in source::words(&file.code, word) {
                let before = file.code.get(..at).unwrap_or_default();
                let attribute = file
                    .code
                    .get(at..)
                    .unwrap_or_default()
                    .split(']')
                    .next()
                    .unwrap_or_default();
                let opened = before.ends_with("#[")
                    || before.ends_with("#![")
                    || before.ends_with("#[cfg_attr(test, ");
                if opened && source::words(attribute, "reason").next().is_none() {
                    let what = format!("`{word}` without `reason = \"…\"`");
                    bad.push(Finding::new(
                        &file.path,
                        source::line_of(&file.code, at),
                        what,
                    ));
                }
            }
        }
    }
    bad
}

/// Absolute paths below somebody's home, or below the directory this was written in, mean nothing elsewhere.
pub fn machine_paths(root: &Path) -> Vec<Finding> {
    let (texts, mut bad) = source::texts(root, "", |_| true);
    for file in &texts {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(path) = machine_path(line) {
                bad.push(Finding::new(
                    &file.path,
                    number + 1,
                    format!("`{path}` is a path of one machine"),
                ));
            }
        }
    }
    bad
}

/// Names that stand for "somebody" in documents and tests.
const ANYBODY: [&str; 4] = ["you", "user", "someone", "name"];

fn machine_path(line: &str) -> Option<&str> {
    for (prefix, named) in [
        (concat!("/ro", "ot/"), false),
        (concat!("/wo", "rk/"), false),
        (concat!("/ho", "me/"), true),
    ] {
        for (at, _) in line.match_indices(prefix) {
            let inside = |b: u8| {
                source::is_ident(b)
                    || matches!(b, b'.' | b'-' | b'/' | b'}' | b'$' | b'~' | b'>' | b'*')
            };
            let before = at
                .checked_sub(1)
                .and_then(|i| line.as_bytes().get(i))
                .copied();
            let rest = line.get(at + prefix.len()..).unwrap_or_default();
            let name = rest
                .split(|c: char| !c.is_ascii_alphanumeric())
                .next()
                .unwrap_or_default();
            let harmless = named && (name.is_empty() || ANYBODY.contains(&name));
            if !before.is_some_and(inside) && !harmless {
                return line.get(at..at + prefix.len() + name.len());
            }
        }
    }
    None
}
