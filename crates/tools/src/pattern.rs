//! Glob patterns over paths relative to where a search starts. Does not depend on files.

use crate::answer::fix;
use globset::{GlobBuilder, GlobMatcher};
use llm_worker::ToolError;
use std::path::Path;

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 1000;

/// A compiled pattern. Without a `/` it is about file names at any depth, as in `.gitignore`; with one it is about the
/// whole path below the start.
#[derive(Debug)]
pub(crate) struct Pattern {
    glob: GlobMatcher,
    name_only: bool,
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, ToolError> {
        let pattern = text.strip_prefix("./").unwrap_or(text);
        if pattern.is_empty() || pattern.len() > MAX_PATTERN {
            return Err(fix(format!("a glob must have 1 to {MAX_PATTERN} bytes")));
        }
        if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            return Err(fix(format!(
                "glob `{text}`: a pattern is relative to `path`; put the directory into `path`"
            )));
        }
        if pattern.starts_with('!') {
            return Err(fix(format!(
                "glob `{text}`: a pattern cannot exclude files; write what to include"
            )));
        }
        let everything_below = pattern.strip_suffix('/').map(|dir| format!("{dir}/**"));
        let pattern = everything_below.as_deref().unwrap_or(pattern);
        let built = GlobBuilder::new(pattern)
            .literal_separator(true)
            .empty_alternates(true)
            .build();
        // Names the missing bracket; the words before it say the same.
        let why = |error: globset::Error| {
            error
                .kind()
                .to_string()
                .replace("unclosed character class; ", "")
        };
        let wrong = |error| fix(format!("`{text}` is not a glob pattern: {}", why(error)));
        let glob = built.map_err(wrong)?.compile_matcher();
        Ok(Self {
            glob,
            name_only: !pattern.contains('/'),
        })
    }

    /// Whether a path relative to the start fits.
    pub(crate) fn fits(&self, relative: &Path) -> bool {
        match relative.file_name() {
            Some(name) if self.name_only => self.glob.is_match(name),
            Some(_) => self.glob.is_match(relative),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_what_people_mean() {
        let table = [
            ("*.rs", "main.rs", true),
            ("*.rs", "src/deep/main.rs", true),
            ("./*.rs", "src/main.rs", true),
            ("src/*.rs", "src/main.rs", true),
            ("src/*.rs", "src/deep/main.rs", false),
            ("src/**/*.rs", "src/main.rs", true),
            ("**/*.rs", "main.rs", true),
            ("src/", "src/deep/x", true),
            ("src/", "lib/src/x", false),
            ("*.{rs,toml}", "a/Cargo.toml", true),
            ("Cargo.lock", "a/Cargo.lock", true),
            ("[ab].txt", "a.txt", true),
            ("*.RS", "main.rs", false),
        ];
        for (pattern, path, want) in table {
            assert_eq!(
                Pattern::parse(pattern).unwrap().fits(Path::new(path)),
                want,
                "{pattern} on {path}"
            );
        }
        for bad in [
            "",
            "/etc/*",
            "../*",
            "a/../b",
            "!x",
            "[a",
            "{a",
            &"x".repeat(1001),
        ] {
            assert_eq!(
                Pattern::parse(bad).unwrap_err().kind,
                llm_worker::ErrorKind::FixInput,
                "{bad}"
            );
        }
    }
}
