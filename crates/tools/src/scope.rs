//! Resolves a path of the model to a location under the workspace's roots. Does not depend on flags: the setting that
//! would allow a denied path is passed to the host as data.

use crate::answer::{fail, fix, refused};
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
pub(crate) fn inside(workspace: &Workspace, words: Option<Remedies>, path: &str) -> Result<Located, ToolError> {
    within(workspace, words, path, Access::Read)
}

/// As [`inside`], for this use.
fn within(workspace: &Workspace, words: Option<Remedies>, path: &str, wanted: Access) -> Result<Located, ToolError> {
    // A mention counts only where it leads to something: names may begin with `@`.
    let mentioned = path.strip_prefix('@').filter(|rest| stands(workspace, rest)).map(str::to_owned);
    let meant = plain(path, workspace.cwd(), workspace.home()).or(mentioned);
    if let Some(meant) = meant.filter(|_| !stands(workspace, path)) {
        let (path, meant) = (escape(Path::new(path)), escape(Path::new(&meant)));
        let text = format!("a path is taken as it is written, so `{path}` is not a path here; did you mean `{meant}`?");
        return Err(fix(text));
    }
    let resolved = match workspace.locate(Path::new(path)).map_err(|error| refused(&error))? {
        Location::Inside(at) => return Ok(at),
        Location::Outside(resolved) => resolved,
    };
    let dir = escape(resolved.parent().unwrap_or(&resolved));
    let roots: Vec<_> = workspace.roots().map(|(root, _)| escape(root)).collect();
    let what = format!("{} is outside of what this run may use ({})", escape(&resolved), roots.join(", "));
    let remedy = match wanted {
        Access::Read => PathRemedy::AddDir(&dir),
        Access::ReadWrite => PathRemedy::AddWriteDir(&dir),
    };
    Err(denied(what, words, remedy))
}

/// The path that another notation means: a URL, quotes or spaces around it, `~` or a variable for the home directory,
/// backslashes, a slash behind it. `None` for a plain path.
fn plain(path: &str, cwd: &Path, home: Option<&Path>) -> Option<String> {
    let mut meant = path.trim().to_owned();
    let quote = meant.chars().next().filter(|c| "\"'`".contains(*c));
    if let Some(inner) = quote.and_then(|quote| meant.strip_prefix(quote)?.strip_suffix(quote)) {
        meant = inner.trim().to_owned();
    }
    if let Some((scheme, rest)) = meant.split_once("://")
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        meant = rest.strip_prefix("localhost").unwrap_or(rest).replace("%20", " ");
    }
    let home = home.unwrap_or(Path::new("/HOME"));
    for (name, dir) in [("${HOME}", home), ("$HOME", home), ("~", home), ("${PWD}", cwd), ("$PWD", cwd)] {
        let rest = meant.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(['/', '\\']));
        if let Some(rest) = rest {
            meant = dir.to_string_lossy().into_owned() + rest;
        }
    }
    if let Some((user, rest)) = meant.strip_prefix('~').and_then(|rest| rest.split_once('/')) {
        meant = format!("/home/{user}/{rest}");
    }
    if meant.contains('\\') {
        let drive = meant.get(1..3).is_some_and(|rest| rest == ":\\") && meant.starts_with(|c: char| c.is_alphabetic());
        let rest = if drive { meant.get(2..).unwrap_or_default() } else { &meant };
        meant = rest.replace("\\ ", " ").replace('\\', "/");
    }
    let whole = meant.trim_end_matches('/');
    let whole = if whole.is_empty() { meant.as_str() } else { whole };
    (whole != path && !whole.is_empty()).then(|| whole.to_owned())
}

/// Whether something of exactly this name exists. A slash behind it names a directory.
fn stands(workspace: &Workspace, path: &str) -> bool {
    let Ok(Location::Inside(at)) = workspace.locate(Path::new(path)) else { return path.ends_with('/') };
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
pub(crate) fn writable(workspace: &Workspace, words: Option<Remedies>, path: &str) -> Result<Located, ToolError> {
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
    Err(fail(ErrorKind::FixInput, format!("{shown} does not exist; {next}")))
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
    let Location::Inside(at) = workspace.locate(dir).ok()? else { return None };
    let names = workspace.read_dir(&at).ok()?;
    let lower = |name: &std::ffi::OsString| name.to_string_lossy().to_lowercase();
    let same = names.iter().find(|(name, _)| lower(name) == wanted);
    let like = || names.iter().find(|(name, _)| Path::new(&lower(name)).file_stem() == Some(&stem));
    same.or_else(like).map(|(name, _)| workspace.show(&dir.join(name)))
}
