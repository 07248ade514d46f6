//! What a check found, and the exceptions that a reader agreed to.

use std::fmt;
use std::path::Path;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path relative to the root, with the function behind it where the rule is about one: `crates/a/src/b.rs route`.
    pub place: String,
    /// Counted from 1; 0 where the rule is about the whole file.
    pub line: usize,
    /// What is wrong and what to do.
    pub what: String,
}

impl Finding {
    pub fn new(place: impl Into<String>, line: usize, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            line,
            what: what.into(),
        }
    }

    /// A file or directory that could not be read: never silently a pass.
    pub fn unreadable(path: &Path, why: impl fmt::Display) -> Self {
        Self::new(
            path.display().to_string(),
            0,
            format!("cannot be read: {why}"),
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.place, self.what),
            line => write!(f, "{}:{line}: {}", self.place, self.what),
        }
    }
}

/// A place where one budget does not apply, why, and the work item that is to end it or keeps the decision.
#[derive(Debug)]
pub struct Exception {
    pub place: &'static str,
    pub reason: &'static str,
    pub work_item: &'static str,
}

/// Takes the excepted findings out. An exception that excepts nothing, gives no reason or names no work item is a finding.
pub fn except(root: &Path, findings: Vec<Finding>, exceptions: &[Exception]) -> Vec<Finding> {
    let mut left: Vec<Finding> = findings
        .iter()
        .filter(|f| exceptions.iter().all(|e| e.place != f.place))
        .cloned()
        .collect();
    for e in exceptions {
        if findings.iter().all(|f| f.place != e.place) {
            left.push(Finding::new(
                e.place,
                0,
                "is excepted but breaks no budget; take it off the list",
            ));
        }
        if e.reason.trim().is_empty() {
            left.push(Finding::new(e.place, 0, "is excepted without a reason"));
        }
        let exists = ["open", "pending", "closed"]
            .iter()
            .any(|s| root.join("work-items").join(s).join(e.work_item).is_dir());
        if e.work_item.is_empty() || !exists {
            left.push(Finding::new(
                e.place,
                0,
                format!("is excepted for an unknown work item `{}`", e.work_item),
            ));
        }
    }
    left
}
