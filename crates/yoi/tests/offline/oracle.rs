//! The right values, found with the standard library alone.

use std::fs;
use std::path::Path;

/// Directories and endings the trees ignore.
const IGNORED: &[&str] = &[
    "target",
    "__pycache__",
    "build",
    "node_modules",
    "dist",
    ".git",
];

/// Every file that is not ignored, relative, sorted.
pub(crate) fn files(root: &Path) -> Vec<String> {
    let mut out = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if IGNORED.contains(&name.as_str()) || name.ends_with(".log") {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                out.push(
                    path.strip_prefix(root)
                        .unwrap()
                        .to_string_lossy()
                        .into_owned(),
                );
            }
        }
    }
    out.sort();
    out
}

/// Every file below, ignored ones too, with its bytes.
pub(crate) fn snapshot(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut out = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                out.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    out.sort();
    out
}

/// Files whose path satisfies `which`.
pub(crate) fn files_where(root: &Path, which: impl Fn(&str) -> bool) -> Vec<String> {
    files(root).into_iter().filter(|path| which(path)).collect()
}

pub(crate) fn text(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).unwrap()
}

/// Lines of the files chosen, and how many files.
pub(crate) fn lines(root: &Path, which: impl Fn(&str) -> bool) -> usize {
    files_where(root, which)
        .iter()
        .map(|path| text(root, path).lines().count())
        .sum()
}

/// `path:line` of every line that satisfies `fits`, in files that satisfy `which`.
pub(crate) fn places(
    root: &Path,
    which: impl Fn(&str) -> bool,
    fits: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut out = Vec::new();
    for path in files_where(root, which) {
        for (at, line) in text(root, &path).lines().enumerate() {
            if fits(line) {
                out.push(format!("{path}:{}", at + 1));
            }
        }
    }
    out
}

/// How many different files the places are in.
pub(crate) fn distinct(places: &[String]) -> usize {
    let mut files: Vec<&str> = places
        .iter()
        .map(|place| place.rsplit_once(':').unwrap().0)
        .collect();
    files.dedup();
    files.len()
}

/// Occurrences of a text.
pub(crate) fn times(root: &Path, which: impl Fn(&str) -> bool, needle: &str) -> usize {
    files_where(root, which)
        .iter()
        .map(|path| text(root, path).matches(needle).count())
        .sum()
}

/// The word stands in the line on its own.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|part| part == word)
}
