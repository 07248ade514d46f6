//! Noticing that a child changed what git will run later. Landlock cannot take `.git` out of a writable project.

use crate::fs::{FileKind, Meta, Workspace};
use crate::{Error, Located};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How much of one file is looked at.
const MAX_FILE: u64 = 4 << 20;

/// How many repositories inside `.git` are looked at, how deep their names may go, and how many names in all.
const MAX_INNER: usize = 128;
const MAX_DEPTH: usize = 8;
const MAX_LOOKS: usize = 2048;

/// Files of git that name commands, or that say where such files are, below `.git`.
const WATCHED: &[&str] = &["config", "config.worktree", "commondir", "gitdir"];

/// Directories of such files.
const WATCHED_DIRS: &[&str] = &["hooks"];

/// Directories of `.git` with repositories of their own: submodules, which may have more inside, and worktrees.
const INNER: &[&str] = &["modules", "worktrees"];

/// What `config`, `hooks` and what leads to them were in `.git`, in its submodules and worktrees, and `.git` itself where
/// it only points to them.
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
    repository(workspace, &git, &mut found)?;
    let mut todo: Vec<(PathBuf, usize)> = INNER.iter().map(|name| (git.join(name), 0)).collect();
    let (mut repositories, mut looks) = (0, 0);
    while let Some((path, depth)) = todo.pop() {
        for (name, meta) in entries(workspace, &path)? {
            looks += 1;
            if repositories >= MAX_INNER || depth >= MAX_DEPTH || looks >= MAX_LOOKS {
                // Said as a state of its own, so that to come here is a change.
                found.insert(path, "more than is looked at".to_owned());
                return Ok(found);
            }
            let inner = path.join(name);
            match meta.kind {
                FileKind::Dir if is_repository(workspace, &inner)? => {
                    repositories += 1;
                    repository(workspace, &inner, &mut found)?;
                    todo.push((inner.join("modules"), depth + 1));
                }
                // A part of a submodule's name.
                FileKind::Dir => todo.push((inner, depth + 1)),
                FileKind::Symlink => note(workspace, inner, &mut found)?,
                FileKind::File | FileKind::Other => {}
            }
        }
    }
    Ok(found)
}

fn is_repository(workspace: &Workspace, path: &Path) -> Result<bool, Error> {
    let there = |name: &str| match inside(workspace, &path.join(name))? {
        Some(at) => Ok(passing(workspace.metadata(&at))?.is_some()),
        None => Ok(false),
    };
    Ok(there("HEAD")? || there("config")? || there("commondir")?)
}

/// What of one repository is watched.
fn repository(workspace: &Workspace, git: &Path, found: &mut BTreeMap<PathBuf, String>) -> Result<(), Error> {
    for name in WATCHED {
        note(workspace, git.join(name), found)?;
    }
    for name in WATCHED_DIRS {
        let path = git.join(name);
        note(workspace, path.clone(), found)?;
        for (entry, _meta) in entries(workspace, &path)? {
            note(workspace, path.join(entry), found)?;
        }
    }
    Ok(())
}

fn entries(workspace: &Workspace, path: &Path) -> Result<Vec<(OsString, Meta)>, Error> {
    Ok(match inside(workspace, path)? {
        Some(dir) => passing(workspace.read_dir(&dir))?.unwrap_or_default(),
        None => Vec::new(),
    })
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
