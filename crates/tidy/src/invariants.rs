//! Invariants: the ones that `docs/ARCHITECTURE.md` lists, and the one test that owns each.

use std::collections::BTreeMap;
use std::path::Path;

use crate::finding::Finding;
use crate::source::{self, Source};

const LIST: &str = "docs/ARCHITECTURE.md";
/// Lines around the mark in which the attribute of the test must stand.
const NEAR: usize = 8;

/// A row `| INV-04 | … |` needs exactly one `// covers: INV-04` at a test, and the other way round.
pub fn pairs(root: &Path) -> Vec<Finding> {
    let text = match std::fs::read_to_string(root.join(LIST)) {
        Ok(text) => text,
        Err(e) => return vec![Finding::unreadable(Path::new(LIST), e)],
    };
    let (sources, mut bad) = source::sources(root);
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| l.starts_with("| INV-"))
    {
        for name in names(line.split('|').nth(1).unwrap_or_default()) {
            if listed.insert(name.clone(), number + 1).is_some() {
                bad.push(Finding::new(
                    LIST,
                    number + 1,
                    format!("{name} is listed twice"),
                ));
            }
        }
    }
    let mut covered: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &sources {
        for (line, name) in marks(file) {
            if !is_at_a_test(file, line) {
                bad.push(Finding::new(
                    &file.path,
                    line,
                    format!("`covers: {name}` stands at no test"),
                ));
            }
            if !listed.contains_key(&name) {
                bad.push(Finding::new(
                    &file.path,
                    line,
                    format!("covers {name}, which {LIST} does not list"),
                ));
            }
            covered
                .entry(name)
                .or_default()
                .push(format!("{}:{line}", file.path));
        }
    }
    for (name, line) in &listed {
        match covered.get(name).map(Vec::as_slice) {
            Some([_]) => {}
            Some(tests) => bad.push(Finding::new(
                LIST,
                *line,
                format!("{name} is owned twice: {}", tests.join(", ")),
            )),
            None => bad.push(Finding::new(
                LIST,
                *line,
                format!("{name} has no test with `// covers: {name}`"),
            )),
        }
    }
    bad
}

/// Comments that begin with `covers:`; one that only mentions it is none.
fn marks(file: &Source) -> Vec<(usize, String)> {
    let mark = |line: &str| {
        line.trim()
            .trim_start_matches('/')
            .trim_start()
            .strip_prefix("covers:")
            .map(str::to_owned)
    };
    let marked = file
        .comments
        .lines()
        .enumerate()
        .filter_map(|(n, l)| Some((n + 1, mark(l)?)));
    marked
        .flat_map(|(n, l)| names(&l).map(|name| (n, name)).collect::<Vec<_>>())
        .collect()
}

/// `INV-` and two digits, wherever they stand.
fn names(text: &str) -> impl Iterator<Item = String> + '_ {
    text.match_indices("INV-").filter_map(|(at, _)| {
        let name = text.get(at..at + 6)?;
        name.bytes()
            .skip(4)
            .all(|b| b.is_ascii_digit())
            .then(|| name.to_owned())
    })
}

fn is_at_a_test(file: &Source, line: usize) -> bool {
    let near = file
        .code
        .lines()
        .skip(line.saturating_sub(NEAR / 2))
        .take(NEAR);
    near.into_iter()
        .any(|l| l.contains("#[test]") || l.contains("::test]") || l.contains("::test("))
}

/// The proof of a commit has one implementation: a second one would be a second way to make history.
pub fn one_acknowledged(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    let mut found = Vec::new();
    for file in sources.iter().filter(|f| !f.is_test_file()) {
        let code = file.shipped_code();
        for at in source::words(&code, "Acknowledged") {
            let after = code.get(at + "Acknowledged".len()..).unwrap_or_default();
            let after = after
                .strip_prefix('<')
                .and_then(|of| Some(of.split_once('>')?.1))
                .unwrap_or(after);
            if after.trim_start().starts_with("for ") {
                found.push((file.path.clone(), source::line_of(&code, at)));
            }
        }
    }
    match found.as_slice() {
        [_] => {}
        [] => bad.push(Finding::new(
            "crates",
            0,
            "nothing implements Acknowledged; this check looks for the wrong name",
        )),
        [_, more @ ..] => {
            let second = |(path, line): &(String, usize)| {
                Finding::new(path, *line, "a second `impl Acknowledged`")
            };
            bad.extend(more.iter().map(second));
        }
    }
    bad
}
