//! The project around the working directory, and the note about it for the model. Reads no configuration.

use crate::env::{Env, settled};
use crate::plain_file::{self, Links};
use authority::LinkedRepository;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const FILE: &str = "yoi.toml";

/// The most bytes of a `HEAD`.
const MAX_HEAD: u64 = 4096;

/// The project that a pod works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Nearest ancestor with `.git` or `yoi.toml`, else the working directory.
    pub root: PathBuf,
    /// Why nothing is written there: a clause about the root.
    pub too_wide: Option<&'static str>,
    /// Its `yoi.toml`, and those of the directories between it and the root of the repository it is in, outermost first:
    /// one that lies deeper makes a project of its own, but takes no one's denials out of force.
    pub files: Vec<PathBuf>,
    /// The `yoi.toml` of every directory above these, outermost first. They deny and narrow, and nothing else: a command can
    /// make a `.git` in a directory, and must not end what the files above it deny there.
    pub above: Vec<PathBuf>,
    /// The repository that the root's `.git` file names, as it was at the start.
    pub linked: Option<LinkedRepository>,
}

impl Project {
    /// Looks upwards from the working directory. An unreadable ancestor ends the search.
    pub fn around(env: &Env) -> Self {
        let repository = |dir: &Path| dir.join(".git").exists();
        let file = |dir: &Path| dir.join(FILE);
        let marked = |dir: &Path| repository(dir) || there(&file(dir));
        let root = env
            .cwd
            .ancestors()
            .find(|dir| marked(dir))
            .unwrap_or(&env.cwd)
            .to_path_buf();
        let home = env.home().ok().and_then(|home| home.canonicalize().ok());
        // Other pods' journals, or what the next run may do, would be files of the project.
        let own = [env.state_dir(), env.config_dir()].into_iter().flatten();
        let holds_own = own
            .map(|dir| settled(&dir))
            .any(|dir| dir.starts_with(&root));
        let too_wide = match () {
            () if root == Path::new("/") => Some("it is the root of the file system"),
            () if home.is_some_and(|home| home == root) => Some("it is your home directory"),
            () if holds_own => Some("it contains yoi's own files"),
            () => None,
        };
        let top = root
            .ancestors()
            .find(|dir| repository(dir))
            .unwrap_or(&root);
        let mut files: Vec<PathBuf> = root
            .ancestors()
            .map(file)
            .filter(|file| there(file))
            .collect();
        files.reverse();
        let (files, above) = files.into_iter().partition(|file| file.starts_with(top));
        let linked = LinkedRepository::of(&root);
        Self {
            root,
            too_wide,
            files,
            above,
            linked,
        }
    }

    /// A directory alone, whatever is around it.
    pub fn alone(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            too_wide: None,
            files: Vec::new(),
            above: Vec::new(),
            linked: None,
        }
    }

    /// The branch that `HEAD` names, read from the file, so that no program of the project's choosing runs.
    pub fn branch(&self) -> Option<String> {
        let git = self
            .linked
            .as_ref()
            .map_or_else(|| self.root.join(".git"), |linked| linked.own.clone());
        let head = plain_file::open(&git.join("HEAD"), Links::Refused).ok()??;
        let head = String::from_utf8(plain_file::whole(head, MAX_HEAD).ok()?).ok()?;
        let name = head.strip_prefix("ref: refs/heads/")?.trim();
        (name.len() <= 200).then(|| authority::escape(Path::new(name)))
    }
}

/// A link that leads nowhere is there, too: it is refused where it is read.
fn there(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

/// The first item of a session: where and when. The date is by the day, so that continuing a session the same day
/// says nothing again.
pub fn environment(project: &Project, cwd: &Path, branch: Option<&str>, now: SystemTime) -> String {
    let stamp = humantime::format_rfc3339_seconds(authority::dated(now)).to_string();
    let date = stamp.get(..10).unwrap_or(&stamp);
    let mut text = format!(
        "Working directory: {}\nDate: {date} (UTC)",
        authority::escape(cwd)
    );
    if cwd != project.root {
        text.push_str(&format!("\nProject: {}", authority::escape(&project.root)));
    }
    if let Some(branch) = branch {
        text.push_str(&format!("\nGit branch: {branch}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn the_environment_note_is_the_same_all_day() {
        let project = Project::alone(Path::new("/p"));
        let at = |seconds| {
            environment(
                &project,
                Path::new("/p/sub"),
                None,
                UNIX_EPOCH + Duration::from_secs(seconds),
            )
        };
        assert_eq!(
            at(0),
            "Working directory: /p/sub\nDate: 1970-01-01 (UTC)\nProject: /p"
        );
        assert_eq!(at(0), at(86_399));
        assert_ne!(at(0), at(86_400));
    }
}
