//! Budgets of size, and the names and openings of modules.

use std::path::Path;

use crate::finding::Finding;
use crate::source::{self, Source};

/// Lines of a file; a longer file is not read as a whole before a change. Wanted are 500.
pub const FILE_LINES: usize = 1000;
/// Lines of a function, from `fn` to its brace: one screen.
pub const FUNCTION_LINES: usize = 90;
/// Lines of a function in tests: a screen, and the rest of the table it goes through, a field in each line.
pub const TEST_FUNCTION_LINES: usize = 210;
/// Lines of tests inside the file they test; longer ones move to `tests.rs` or `tests/`.
pub const INLINE_TEST_LINES: usize = 260;
/// Names that say nothing, so everything gathers under them.
pub const BANNED_MODULES: [&str; 4] = ["util", "common", "helpers", "manager"];

pub fn sizes(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    bad.extend(sources.iter().flat_map(size));
    bad
}

fn size(file: &Source) -> Vec<Finding> {
    let mut bad = Vec::new();
    let lines = file.text.lines().count();
    if lines > FILE_LINES {
        bad.push(Finding::new(
            &file.path,
            0,
            format!("has {lines} lines, at most {FILE_LINES}; part it"),
        ));
    }
    let tests = source::test_modules(&file.code);
    for f in source::functions(&file.code) {
        let in_tests =
            file.is_test_file() || tests.iter().any(|t| t.start <= f.start && f.end <= t.end);
        let most = if in_tests {
            TEST_FUNCTION_LINES
        } else {
            FUNCTION_LINES
        };
        if f.lines > most {
            let place = format!("{} {}", file.path, f.name);
            bad.push(Finding::new(
                place,
                f.line,
                format!("is {} lines long, at most {most}", f.lines),
            ));
        }
    }
    for m in tests.into_iter().filter(|m| m.lines > INLINE_TEST_LINES) {
        let what = format!(
            "{} lines of inline tests, at most {INLINE_TEST_LINES}; move them to tests.rs",
            m.lines
        );
        bad.push(Finding::new(
            format!("{} {}", file.path, m.name),
            m.line,
            what,
        ));
    }
    bad
}

/// Each module of a crate begins with what it is.
pub fn module_docs(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    for file in sources.iter().filter(|s| {
        let within = s.path.strip_prefix(source::crate_folder(&s.path));
        within.is_some_and(|within| within.starts_with("/src/"))
    }) {
        if !file.text.starts_with("//! ") {
            bad.push(Finding::new(
                &file.path,
                1,
                "must open with `//! ` and say what it is",
            ));
        }
    }
    bad
}

pub fn module_names(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    for file in &sources {
        let names = file.path.trim_end_matches(".rs").split('/').skip(1);
        for name in names.filter(|n| BANNED_MODULES.contains(n)) {
            bad.push(Finding::new(
                &file.path,
                0,
                format!("`{name}` names no idea; name it for what it holds"),
            ));
        }
        for name in BANNED_MODULES {
            for at in source::words(&file.code, name) {
                let before = file.code.get(..at).unwrap_or_default().trim_end();
                if source::words(before, "mod")
                    .last()
                    .is_some_and(|m| m + 3 == before.len())
                {
                    let line = source::line_of(&file.code, at);
                    bad.push(Finding::new(
                        &file.path,
                        line,
                        format!("`mod {name}` names no idea"),
                    ));
                }
            }
        }
    }
    bad
}
