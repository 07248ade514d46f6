//! From a path as the model wrote it to a place under the workspace's roots.

use crate::answer::{fail, refused};
use authority::{Access, FileKind, Located, Meta, Place, Workspace, escape};
use llm_worker::{ErrorKind, ToolError};
use std::path::Path;

/// The place a path means, if the workspace holds it.
pub(crate) fn inside(workspace: &Workspace, path: &str) -> Result<Located, ToolError> {
    within(workspace, path, "--add-dir")
}

/// As [`inside`]; `flag` is the one that adds a directory for this use.
fn within(workspace: &Workspace, path: &str, flag: &str) -> Result<Located, ToolError> {
    let settled = match workspace.locate(Path::new(path)).map_err(|error| refused(&error))? {
        Place::Inside(at) => return Ok(at),
        Place::Outside(settled) => settled,
    };
    let dir = settled.parent().unwrap_or(&settled);
    let roots: Vec<_> = workspace.roots().map(|(root, _)| escape(root)).collect();
    Err(fail(
        ErrorKind::Denied,
        &format!(
            "{} is outside of what this run may use ({}); the flag `{flag} {}` would allow it",
            escape(&settled),
            roots.join(", "),
            escape(dir)
        ),
    ))
}

/// As [`inside`], for a place that may be changed.
pub(crate) fn writable(workspace: &Workspace, path: &str) -> Result<Located, ToolError> {
    let at = within(workspace, path, "--add-write-dir")?;
    match at.access() {
        Access::ReadWrite => Ok(at),
        Access::Read => Err(fail(
            ErrorKind::Denied,
            &format!(
                "{} may only be read in this run; running without `--read-only`, or with `--add-write-dir DIR`, would allow it",
                workspace.show(at.path())
            ),
        )),
    }
}

/// What is there; an absent path is an error that names what is beside it.
pub(crate) fn existing(workspace: &Workspace, at: &Located) -> Result<Meta, ToolError> {
    let error = match workspace.metadata(at) {
        Ok(meta) => return Ok(meta),
        Err(error) => error,
    };
    if !error.is_not_found() {
        return Err(refused(&error));
    }
    let shown = workspace.show(at.path());
    let next = match beside(workspace, at.path()) {
        Some(other) => format!("did you mean {other}?"),
        None => "List or Glob shows what does".to_owned(),
    };
    Err(fail(ErrorKind::FixInput, &format!("{shown} does not exist; {next}")))
}

/// As [`existing`], for a directory.
pub(crate) fn directory(workspace: &Workspace, at: &Located) -> Result<(), ToolError> {
    match existing(workspace, at)?.kind {
        FileKind::Dir => Ok(()),
        FileKind::File | FileKind::Symlink | FileKind::Other => {
            let shown = workspace.show(at.path());
            Err(fail(ErrorKind::FixInput, &format!("{shown} is not a directory; name one, or use Read for a file")))
        }
    }
}

/// A name in the same directory that differs only in case or ending.
fn beside(workspace: &Workspace, path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?.to_lowercase();
    let stem = Path::new(&wanted).file_stem()?.to_owned();
    let dir = path.parent()?;
    let Place::Inside(at) = workspace.locate(dir).ok()? else { return None };
    let names = workspace.read_dir(&at).ok()?;
    let lower = |name: &std::ffi::OsString| name.to_string_lossy().to_lowercase();
    let same = names.iter().find(|(name, _)| lower(name) == wanted);
    let like = || names.iter().find(|(name, _)| Path::new(&lower(name)).file_stem() == Some(&stem));
    same.or_else(like).map(|(name, _)| workspace.show(&dir.join(name)))
}
