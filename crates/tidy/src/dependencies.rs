//! Dependencies: each with its reason, and not too many of them.

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::Finding;

/// Packages that end up in the binary; what two cores build in a few minutes and people can still look through. 220 until
/// 2026-11-28, when archives of plugins and the index of documents came; 221 until the providers of GitLab and Jira did, 223
/// until the doors for other programs and the agent for editors, two crates of ours.
pub const NORMAL_PACKAGES: usize = 225;

/// In `[workspace.dependencies]`, each group of lines stands under a comment that says what it is for. Crates of ours
/// need none: the arrow table has their reason. A blank line ends a group.
pub fn reasons(root: &Path) -> Vec<Finding> {
    let text = match std::fs::read_to_string(root.join("Cargo.toml")) {
        Ok(text) => text,
        Err(e) => return vec![Finding::unreadable(Path::new("Cargo.toml"), e)],
    };
    let mut inside = false;
    let mut explained = false;
    let mut bad = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') && !line.contains('=') {
            inside = line == "[workspace.dependencies]";
        } else if line.is_empty() {
            explained = false;
        } else if line.starts_with('#') {
            explained = line.trim_start_matches('#').trim().len() >= 3;
        } else if let Some((name, value)) = line.split_once('=')
            && inside
            && !explained
            && !value.contains("path = \"crates/")
        {
            let what = format!("`{}` stands under no comment with its reason", name.trim());
            bad.push(Finding::new("Cargo.toml", number + 1, what));
        }
    }
    bad
}

/// Counts the packages that `cargo tree --prefix none` printed.
pub fn count(tree: &str, most: usize) -> Vec<Finding> {
    let mut packages = BTreeSet::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            packages.insert((name, version));
        }
    }
    match packages.len() {
        0 => vec![Finding::new(
            "Cargo.lock",
            0,
            "cargo tree printed no package",
        )],
        n if n > most => vec![Finding::new(
            "Cargo.lock",
            0,
            format!("{n} packages, at most {most}"),
        )],
        _ => Vec::new(),
    }
}
