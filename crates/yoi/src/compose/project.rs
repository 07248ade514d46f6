//! Where a run works, and what the model is told of it.

use crate::env::Env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The project around a working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Nearest ancestor with `.git` or `yoi.toml`, else the working directory.
    pub(crate) root: PathBuf,
    /// It is `/` or the home directory, or yoi's state lies in it: nothing is written there.
    pub(crate) too_wide: bool,
    /// A `yoi.toml` that this build does not read.
    pub(crate) ignored: Option<PathBuf>,
}

impl Project {
    /// Looks upwards from the working directory. An unreadable ancestor ends the search.
    pub(crate) fn around(env: &Env) -> Self {
        let found = env.cwd.ancestors().find(|dir| dir.join(".git").exists() || dir.join("yoi.toml").exists());
        let root = found.unwrap_or(&env.cwd).to_path_buf();
        let home = env.home().ok().and_then(|home| home.canonicalize().ok());
        // Other pods' journals would be files of the project.
        let state = env.state_dir().ok().map(|state| state.canonicalize().unwrap_or(state));
        let holds_state = state.is_some_and(|state| state.starts_with(&root));
        let too_wide = root == Path::new("/") || home.is_some_and(|home| home == root) || holds_state;
        let ignored = Some(root.join("yoi.toml")).filter(|file| file.exists());
        Self { root, too_wide, ignored }
    }
}

/// The first item of a session: where and when. The date is by the day, so that continuing a session the same day
/// says nothing again.
pub(crate) fn environment(project: &Project, cwd: &Path, now: SystemTime) -> String {
    let stamp = humantime::format_rfc3339_seconds(now.max(UNIX_EPOCH)).to_string();
    let date = stamp.get(..10).unwrap_or(&stamp);
    let mut text = format!("Working directory: {}\nDate: {date}", cwd.display());
    if cwd != project.root {
        text.push_str(&format!("\nProject: {}", project.root.display()));
    }
    if let Some(branch) = branch(&project.root) {
        text.push_str(&format!("\nGit branch: {branch}"));
    }
    text
}

/// The branch that `HEAD` names, read from the file, so that no program of the project's choosing runs.
fn branch(root: &Path) -> Option<String> {
    let head = fs::read_to_string(root.join(".git/HEAD")).ok()?;
    let name = head.strip_prefix("ref: refs/heads/")?.trim();
    (name.len() <= 200 && !name.chars().any(char::is_control)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_environment_note_is_the_same_all_day() {
        let project = Project { root: "/p".into(), too_wide: false, ignored: None };
        let at = |seconds| environment(&project, Path::new("/p/sub"), UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "Working directory: /p/sub\nDate: 1970-01-01\nProject: /p");
        assert_eq!(at(0), at(86_399));
        assert_ne!(at(0), at(86_400));
    }
}
