//! Noticing that a child changed what git will run later. Landlock cannot take `.git` out of a writable project.

use crate::fs::{FileKind, Workspace};
use crate::{Error, Located};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How much of one file is looked at.
const MAX_FILE: u64 = 4 << 20;

/// Files of git that name commands or are run, below `.git`.
const WATCHED: &[&str] = &["config", "config.worktree"];

/// Directories of such files.
const WATCHED_DIRS: &[&str] = &["hooks"];

/// What `.git/config` and `.git/hooks` of the project were, and `.git` itself where it only points to them.
#[derive(Clone, Debug)]
pub struct GitGuard {
    before: BTreeMap<PathBuf, String>,
}

impl GitGuard {
    /// Takes note; cheap when there is no `.git` directory. A `.git` *file* (a worktree) names a directory outside of
    /// the project, which children cannot write unless it was added; the file they can, so it is noted itself.
    ///
    /// # Errors
    /// `Revoked`. What cannot be read is noted as such.
    pub fn before(workspace: &Workspace) -> Result<Self, Error> {
        Ok(Self { before: snapshot(workspace)? })
    }

    /// The paths that were created, changed or removed since, sorted.
    ///
    /// # Errors
    /// `Revoked`.
    pub fn changed(&self, workspace: &Workspace) -> Result<Vec<PathBuf>, Error> {
        let after = snapshot(workspace)?;
        let differs = |path: &&PathBuf| self.before.get(*path) != after.get(*path);
        let mut changed: Vec<_> = self.before.keys().chain(after.keys()).filter(differs).cloned().collect();
        changed.sort();
        changed.dedup();
        Ok(changed)
    }
}

fn snapshot(workspace: &Workspace) -> Result<BTreeMap<PathBuf, String>, Error> {
    let mut found = BTreeMap::new();
    let git = workspace.project().join(".git");
    match inside(workspace, &git)? {
        Some(at) if at.path() == git => match passing(workspace.metadata(&at))? {
            Some(meta) if meta.kind == FileKind::Dir => {}
            Some(_) | None => {
                // A pointer, or nothing: there is nothing below.
                note(workspace, git, &mut found)?;
                return Ok(found);
            }
        },
        Some(_) | None => note(workspace, git.clone(), &mut found)?,
    }
    for name in WATCHED {
        note(workspace, git.join(name), &mut found)?;
    }
    for name in WATCHED_DIRS {
        let path = git.join(name);
        note(workspace, path.clone(), &mut found)?;
        let entries = match inside(workspace, &path)? {
            Some(dir) => passing(workspace.read_dir(&dir))?.unwrap_or_default(),
            None => Vec::new(),
        };
        for (entry, _meta) in entries {
            note(workspace, path.join(entry), &mut found)?;
        }
    }
    Ok(found)
}

/// The digest and mode of what is at a path; nothing when nothing is there.
fn note(workspace: &Workspace, path: PathBuf, found: &mut BTreeMap<PathBuf, String>) -> Result<(), Error> {
    let text = match inside(workspace, &path)? {
        // A link, out of the project or within: where it leads is part of what it is.
        Some(at) if at.path() != path => format!("link to {} {}", at.path().display(), digest(workspace, &at)?),
        Some(at) => match passing(workspace.metadata(&at))? {
            Some(meta) if meta.kind == FileKind::File => format!("{:o} {}", meta.mode, digest(workspace, &at)?),
            Some(meta) => format!("{:?} {:o}", meta.kind, meta.mode),
            None => return Ok(()),
        },
        None => "elsewhere".to_owned(),
    };
    found.insert(path, text);
    Ok(())
}

fn inside(workspace: &Workspace, path: &Path) -> Result<Option<Located>, Error> {
    passing(workspace.inside(path))
}

fn digest(workspace: &Workspace, at: &Located) -> Result<String, Error> {
    let Some(file) = passing(workspace.open_file(at))? else { return Ok("unreadable".to_owned()) };
    let mut bytes = Vec::new();
    Ok(match file.take(MAX_FILE).read_to_end(&mut bytes) {
        Ok(_) => blake3::hash(&bytes).to_hex().to_string(),
        Err(error) => error.to_string(),
    })
}

/// Only a revoked grant is a failure; everything else is a state of the files.
fn passing<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == crate::ErrorKind::Revoked => Err(error),
        Err(_state) => Ok(None),
    }
}
