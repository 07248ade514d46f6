//! What may stand at the top of the repository, and where the file of a module is.

use std::path::Path;

use crate::finding::Finding;
use crate::source;

const TOP: [&str; 13] = [
    "AGENTS.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "clippy.toml",
    "crates",
    "docs",
    "findings",
    "flake.nix",
    "tickets.sh",
    "work-items",
];
/// Made by tools and ignored by version control.
const MADE: [&str; 3] = ["target", "flake.lock", "result"];

pub fn top_level(root: &Path) -> Vec<Finding> {
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(e) => return vec![Finding::unreadable(root, e)],
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let known = |n: &str| n.starts_with('.') || TOP.contains(&n) || MADE.contains(&n);
    let stray = names.iter().filter(|n| !known(n));
    let mut bad: Vec<Finding> = stray
        .map(|n| {
            Finding::new(
                n,
                0,
                "does not belong to the top level; see docs/ARCHITECTURE.md",
            )
        })
        .collect();
    let absent = TOP.iter().filter(|t| !names.iter().any(|n| n == *t));
    bad.extend(absent.map(|t| Finding::new(*t, 0, "is missing from the top level")));
    bad
}

/// A module that has modules of its own is `NAME.rs` beside its directory. Parts of an integration test may be a `mod.rs`:
/// cargo makes each file at the top of `tests` a test.
pub fn modules(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    let inside = sources
        .iter()
        .filter_map(|source| source.path.strip_suffix("/mod.rs"))
        .filter(|directory| directory.contains("/src/"));
    bad.extend(inside.map(|directory| {
        let what = format!("a module is beside its directory: `{directory}.rs`");
        Finding::new(format!("{directory}/mod.rs"), 0, what)
    }));
    bad
}
