//! The live handle of Glob, Grep and List, and the walk they share. Does not depend on patterns.

use crate::answer::{counted, go_on};
use crate::scope::{self, Remedies};
use authority::{FileKind, Located, WalkEntry, WalkOptions, Workspace};
use llm_worker::{ToolContext, ToolError};
use std::path::Path;

/// The most entries that one call visits.
pub const MAX_ENTRIES: usize = 200_000;

/// The live handle of Glob, Grep and List: the files of a workspace, for reading only.
#[derive(Debug)]
pub struct Search {
    pub(crate) workspace: Workspace,
    remedies: Option<Remedies>,
}

impl Search {
    /// Creates a handle for the directories of `workspace`.
    #[must_use]
    pub fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            remedies: None,
        }
    }

    /// Sets the host's text about the setting that would allow a denied path.
    #[must_use]
    pub fn with_remedies(self, words: Remedies) -> Self {
        Self {
            remedies: Some(words),
            ..self
        }
    }

    /// Resolves the existing path at which a search starts.
    pub(crate) fn start(&self, path: &str) -> Result<Located, ToolError> {
        let at = scope::inside(&self.workspace, self.remedies, path)?;
        scope::existing(&self.workspace, &at)?;
        Ok(at)
    }

    /// Passes every entry below `at` to `each` until it returns `false`; returns the parts that could not be read.
    pub(crate) fn walk(
        &self,
        at: &Located,
        max_depth: Option<usize>,
        cx: &ToolContext,
        mut each: impl FnMut(&WalkEntry) -> Result<bool, ToolError>,
    ) -> Result<Gaps, ToolError> {
        let usual = WalkOptions::default();
        let options = WalkOptions {
            max_depth: max_depth.unwrap_or(usual.max_depth),
            ..usual
        };
        let mut gaps = Gaps::default();
        for (number, entry) in self.workspace.walk(at, options).enumerate() {
            go_on(&cx.cancel)?;
            if number == MAX_ENTRIES {
                gaps.ended = true;
                break;
            }
            match entry {
                Ok(entry) => {
                    if !each(&entry)? {
                        break;
                    }
                }
                Err(error) => gaps.add(&error.to_string()),
            }
        }
        Ok(gaps)
    }

    /// Whether the search of a directory skips a file's content. A file that the call names is not skipped: permission
    /// judged it.
    pub(crate) fn skips(&self, entry: &WalkEntry) -> bool {
        entry.depth > 0
            && entry
                .located()
                .is_ok_and(|at| self.workspace.may_hold_secrets(&at))
    }

    /// As [`Search::walk`], regular files only, with the path below `at`.
    pub(crate) fn files(
        &self,
        at: &Located,
        cx: &ToolContext,
        mut each: impl FnMut(&WalkEntry, &Path) -> Result<bool, ToolError>,
    ) -> Result<Gaps, ToolError> {
        self.walk(at, None, cx, |entry| {
            if entry.kind != FileKind::File {
                return Ok(true);
            }
            // A search that starts at a file sees its name.
            let below = entry
                .path
                .strip_prefix(at.path())
                .ok()
                .filter(|below| below.file_name().is_some());
            each(
                entry,
                below
                    .or(entry.path.file_name().map(Path::new))
                    .unwrap_or(&entry.path),
            )
        })
    }
}

/// The most skipped files that a note names.
const NAMED: usize = 5;

/// The parts of the tree that a search skipped.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    count: u64,
    first: String,
    ended: bool,
    secrets: u64,
    named: Vec<String>,
}

impl Gaps {
    pub(crate) fn add(&mut self, problem: &str) {
        if self.count == 0 {
            problem.clone_into(&mut self.first);
        }
        self.count += 1;
    }

    /// Records a file that was skipped because it may hold secrets.
    pub(crate) fn secret(&mut self, shown: String) {
        self.secrets += 1;
        if self.named.len() < NAMED {
            self.named.push(shown);
        }
    }

    pub(crate) fn and(mut self, other: Self) -> Self {
        if self.count == 0 {
            self.first = other.first;
        }
        self.count += other.count;
        self.ended |= other.ended;
        self.secrets += other.secrets;
        self.named.extend(other.named);
        self
    }

    /// Lines for the end of the content; none when everything was seen.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes_with("skipped")
    }

    /// As [`Gaps::notes`]; `what` was done with files that may hold secrets.
    pub(crate) fn notes_with(&self, what: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.count > 0 {
            let places = counted(self.count, "place", "places");
            notes.push(format!("({places} could not be read: {})", self.first));
        }
        if self.secrets > 0 {
            let files = counted(self.secrets, "file", "files");
            let were = if self.secrets == 1 { "was" } else { "were" };
            let left = self.secrets.saturating_sub(self.named.len() as u64);
            let more = if left > 0 {
                format!(" and {left} more")
            } else {
                String::new()
            };
            notes.push(format!(
                "({files} that may hold secrets {were} {what}: {}{more})",
                self.named.join(", ")
            ));
        }
        if self.ended {
            notes.push(format!(
                "(ended after {MAX_ENTRIES} entries; give a narrower path)"
            ));
        }
        notes
    }
}

/// The default of `path` arguments.
pub(crate) fn here() -> String {
    ".".to_owned()
}
