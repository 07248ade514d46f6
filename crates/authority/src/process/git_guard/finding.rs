//! Reports of a command's changes to files that decide what git runs, for the model and for the user.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const NAMED_KEYS: usize = 8;

/// One change by a command to a file that decides what git runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitFinding {
    pub path: PathBuf,
    pub what: Handled,
    /// The affected configuration keys, as git prints them.
    pub keys: Vec<String>,
    /// The copy of what the command wrote or removed, or why there is none. `None`: no copy was needed.
    pub kept: Option<Result<PathBuf, String>>,
    /// How a person can allow such changes; empty where that does not apply.
    pub help: String,
}

/// The action taken on a change; part of a [`GitFinding`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handled {
    /// A changed file or key was reverted.
    PutBack,
    /// A new file was removed.
    Removed,
    /// Kept: a person's rule allows the change.
    Left,
    /// Reverting failed, with the reason.
    Failed(String),
    /// Kept: the file runs nothing by itself.
    Changed,
    /// The command removed the file.
    Gone,
    /// There are more repositories or directories than the limit allows to watch.
    Bound,
    /// The number of further changes that are not listed.
    More(usize),
}

impl GitFinding {
    pub(super) fn new(path: &Path, what: Handled) -> Self {
        Self {
            path: path.to_owned(),
            what,
            keys: Vec::new(),
            kept: None,
            help: String::new(),
        }
    }

    /// The finding as one line; `show` formats paths.
    #[must_use]
    pub fn text(&self, show: impl Fn(&Path) -> String) -> String {
        let mut name = show(&self.path);
        if !self.keys.is_empty() {
            let named: Vec<_> = self
                .keys
                .iter()
                .take(NAMED_KEYS)
                .map(|key| crate::escape(Path::new(key)))
                .collect();
            let more = self.keys.len() - named.len();
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            name = format!("{}{more} in {name}", named.join(", "));
        }
        let mut text = match &self.what {
            Handled::PutBack => {
                format!(
                    "restored {name}, which a command changed: git would run it outside of the sandbox"
                )
            }
            Handled::Removed => {
                format!(
                    "removed {name}, which a command created: git would run it outside of the sandbox"
                )
            }
            Handled::Left => {
                format!(
                    "a command changed {name}: allowed by a rule; git runs it outside of the sandbox"
                )
            }
            Handled::Failed(why) => format!(
                "a command changed {name}, which git runs outside of the sandbox, and it could not be restored ({why}); \
                 inspect it before you use git here"
            ),
            Handled::Changed => {
                format!("a command changed {name}, which git reads; it was not restored")
            }
            Handled::Gone => format!("a command removed {name}"),
            Handled::Bound => format!(
                "{name} contains more repositories or directories than yoi watches: changes of what git runs in the \
                 others are not detected"
            ),
            Handled::More(count) => {
                format!("{count} more changes of files that git runs, below {name}")
            }
        };
        match &self.kept {
            // Writing to a string cannot fail.
            Some(Ok(path)) => write!(text, "; a copy is in {}", show(path)).unwrap_or_default(),
            Some(Err(why)) => write!(text, "; no copy was kept: {why}").unwrap_or_default(),
            None => {}
        }
        if !self.help.is_empty() {
            write!(text, "; help: {}", self.help).ok();
        }
        text
    }
}
