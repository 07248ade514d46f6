//! Resolves a path of the model to a location under the workspace's roots. Does not depend on flags: the setting that
//! would allow a denied path is passed to the host as data.

use crate::answer::{fail, fix, refused};
use crate::notation::{self, Meant};
use authority::{Access, FileKind, Located, Location, Meta, Workspace, escape};
use llm_worker::{ErrorKind, ToolError};
use std::path::Path;

/// The setting that would allow a denied path; the host's [`Remedies`] words it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathRemedy<'a> {
    /// Add this directory, as it is shown, for reading.
    AddDir(&'a str),
    /// Add this directory, as it is shown, for writing.
    AddWriteDir(&'a str),
    /// Leave read-only mode, or add the file's directory for writing.
    LeaveReadOnly,
}

/// The host's text for a remedy: a clause at the end of an error message.
pub type Remedies = fn(PathRemedy<'_>) -> String;

/// Resolves a path, if it is inside of the workspace.
pub(crate) fn inside(
    workspace: &Workspace,
    words: Option<Remedies>,
    path: &str,
) -> Result<Located, ToolError> {
    within(workspace, words, path, Access::Read)
}

/// As [`inside`], for this use.
fn within(
    workspace: &Workspace,
    words: Option<Remedies>,
    path: &str,
    wanted: Access,
) -> Result<Located, ToolError> {
    // A mention, or a place in a file, counts only where it leads to something: names may have these characters.
    let parts = [
        path.strip_prefix('@'),
        Some(notation::without_place(path)).filter(|rest| *rest != path),
    ];
    let other = || {
        parts
            .into_iter()
            .flatten()
            .find(|rest| stands(workspace, rest))
            .map(|rest| Meant::Path(rest.to_owned()))
    };
    let meant = notation::meant(path, workspace.cwd(), workspace.home()).or_else(other);
    if let Some(meant) = meant.filter(|_| !stands(workspace, path)) {
        let why = match meant {
            Meant::Path(meant) => format!("did you mean `{}`?", escape(Path::new(&meant))),
            Meant::Unknown(why) => format!("{why}; give the path itself"),
        };
        let path = escape(Path::new(path));
        return Err(fix(format!(
            "a path is taken as it is written, so `{path}` is not a path here; {why}"
        )));
    }
    let resolved = match workspace
        .locate(Path::new(path))
        .map_err(|error| refused(&error))?
    {
        Location::Inside(at) => return Ok(at),
        Location::Outside(resolved) => resolved,
    };
    let dir = escape(resolved.parent().unwrap_or(&resolved));
    let roots: Vec<_> = workspace.roots().map(|(root, _)| escape(root)).collect();
    let what = format!(
        "{} is outside of what this run may use ({})",
        escape(&resolved),
        roots.join(", ")
    );
    let remedy = match wanted {
        Access::Read => PathRemedy::AddDir(&dir),
        Access::ReadWrite => PathRemedy::AddWriteDir(&dir),
    };
    Err(denied(what, words, remedy))
}

/// Whether something of exactly this name exists. A slash behind it names a directory.
fn stands(workspace: &Workspace, path: &str) -> bool {
    let Ok(Location::Inside(at)) = workspace.locate(Path::new(path)) else {
        return path.ends_with('/');
    };
    let found = workspace.metadata(&at);
    found.is_ok_and(|meta| meta.kind == FileKind::Dir || !path.ends_with('/'))
}

fn denied(mut what: String, words: Option<Remedies>, remedy: PathRemedy<'_>) -> ToolError {
    if let Some(words) = words {
        what = format!("{what}; {}", words(remedy));
    }
    fail(ErrorKind::Denied, what)
}

/// As [`inside`], for a path that may be changed.
pub(crate) fn writable(
    workspace: &Workspace,
    words: Option<Remedies>,
    path: &str,
) -> Result<Located, ToolError> {
    let at = within(workspace, words, path, Access::ReadWrite)?;
    match at.access() {
        Access::ReadWrite => Ok(at),
        Access::Read => {
            let what = format!("{} may only be read in this run", workspace.show(at.path()));
            Err(denied(what, words, PathRemedy::LeaveReadOnly))
        }
    }
}

/// The metadata of a path; for a missing path the error names a similar one beside it.
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
        None => "List or Glob shows the files that exist".to_owned(),
    };
    Err(fail(
        ErrorKind::FixInput,
        format!("{shown} does not exist; {next}"),
    ))
}

/// As [`existing`], for a directory.
pub(crate) fn directory(workspace: &Workspace, at: &Located) -> Result<(), ToolError> {
    match existing(workspace, at)?.kind {
        FileKind::Dir => Ok(()),
        FileKind::File | FileKind::Symlink | FileKind::Other => {
            let shown = workspace.show(at.path());
            Err(fail(
                ErrorKind::FixInput,
                format!("{shown} is not a directory; give a directory, or use Read for a file"),
            ))
        }
    }
}

/// A name in the same directory that differs only in case or ending.
fn beside(workspace: &Workspace, path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?.to_lowercase();
    let stem = Path::new(&wanted).file_stem()?.to_owned();
    let dir = path.parent()?;
    let Location::Inside(at) = workspace.locate(dir).ok()? else {
        return None;
    };
    let names = workspace.read_dir(&at).ok()?;
    let lower = |name: &std::ffi::OsString| name.to_string_lossy().to_lowercase();
    let same = names.iter().find(|(name, _)| lower(name) == wanted);
    let like = || {
        names
            .iter()
            .find(|(name, _)| Path::new(&lower(name)).file_stem() == Some(&stem))
    };
    same.or_else(like)
        .map(|(name, _)| workspace.show(&dir.join(name)))
}
