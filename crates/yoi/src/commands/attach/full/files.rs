//! The files below a pod's directory, for a person who writes the path of one. What cannot be read is left out, and so is
//! what `.gitignore` names.

use authority::text::escape_line;
use authority::{Access, FileKind, Location, WalkOptions, Workspace};
use std::path::Path;
use std::time::{Duration, Instant};
use tui::FoundFiles;

/// The first files in the order of their names, directories that are less deep, and how long it may take.
const MAX_FILES: usize = 20_000;
const MAX_DEPTH: usize = 32;
const PATIENCE: Duration = Duration::from_secs(2);

/// Their paths, from the directory on, and whether there may be more of them.
pub(super) fn below(dir: &Path) -> FoundFiles {
    let Ok(workspace) = Workspace::open(&ambient::claim(), dir, dir, Access::Read) else {
        return FoundFiles::default();
    };
    let Ok(Location::Inside(at)) = workspace.locate(Path::new(".")) else {
        return FoundFiles::default();
    };
    let began = Instant::now();
    let root = workspace.project().to_owned();
    let walk = workspace.walk(
        &at,
        WalkOptions {
            max_depth: MAX_DEPTH,
            ..WalkOptions::default()
        },
    );
    let mut is_late = false;
    let files = walk
        .take_while(|_| {
            is_late = began.elapsed() >= PATIENCE;
            !is_late
        })
        .flatten()
        .filter(|entry| entry.kind == FileKind::File);
    let path = |path: &Path| path.strip_prefix(&root).ok()?.to_str().map(str::to_owned);
    // A name that would not be shown as it is cannot be written by one who sees it.
    let named = files
        .filter_map(|entry| path(&entry.path))
        .filter(|path| escape_line(path) == path.as_str());
    let mut paths: Vec<String> = named.take(MAX_FILES + 1).collect();
    let is_cut = paths.len() > MAX_FILES || is_late;
    paths.truncate(MAX_FILES);
    FoundFiles { paths, is_cut }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_are_listed_without_those_that_git_ignores_or_that_mislead() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "a.rs",
            "deep/er/b c.md",
            "target/built",
            "deep/\u{202e}gpj.exe",
            "deep/new\nline",
            ".git/HEAD",
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(dir.path().join(".gitignore"), "target\n").unwrap();
        let found = below(dir.path());
        assert_eq!(found.paths, [".gitignore", "a.rs", "deep/er/b c.md"]);
        assert!(!found.is_cut);
        assert_eq!(below(&dir.path().join("a.rs")), FoundFiles::default());
        assert_eq!(below(&dir.path().join("absent")), FoundFiles::default());
    }
}
