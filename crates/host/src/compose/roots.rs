//! The directories of a run: its project, and those that the command line adds for reading or for writing.

use crate::env::Env;
use crate::exit::{Exit, Failure};
use authority::{Access, Ambient, Conflict, EnvPolicy, Withheld, WithheldReason, Workspace};
use std::path::{Path, PathBuf};

/// The option that opens a directory for reading.
pub const ADD_DIR: &str = "--add-dir";
/// The option that opens a directory for reading and writing.
pub const ADD_WRITE_DIR: &str = "--add-write-dir";

/// What the command line adds to the project, as it is written there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Added<'a> {
    /// By `--add-dir`.
    pub read: &'a [PathBuf],
    /// By `--add-write-dir`.
    pub write: &'a [PathBuf],
}

/// The same as directories: resolved, and judged.
#[derive(Clone, Debug, Default)]
pub struct AddedDirs {
    pub read: Vec<PathBuf>,
    /// Read and written, as far as the project is.
    pub write: Vec<PathBuf>,
}

/// Adds them to a workspace that holds the project. What is added takes nothing away: a directory for reading that
/// lies in one for writing is written, too, since no confinement of commands could tell them apart.
pub fn add(
    ambient: &Ambient,
    env: &Env,
    inherited: &EnvPolicy,
    mut workspace: Workspace,
    added: Added<'_>,
) -> Result<(Workspace, AddedDirs), Failure> {
    let mut dirs = AddedDirs::default();
    if added.read.is_empty() && added.write.is_empty() {
        return Ok((workspace, dirs));
    }
    let withheld = Withheld::of(ambient, inherited);
    let most = workspace
        .roots()
        .map(|(_, access)| access)
        .next()
        .unwrap_or(Access::Read);
    for written in added.write {
        let dir = directory(env, &withheld, ADD_WRITE_DIR, written)?;
        workspace = opened(ambient, workspace, ADD_WRITE_DIR, &dir, most)?;
        dirs.write.push(dir);
    }
    for written in added.read {
        let dir = directory(env, &withheld, ADD_DIR, written)?;
        let more =
            |(root, access): (&Path, Access)| access == Access::ReadWrite && dir.starts_with(root);
        if !workspace.roots().any(more) && workspace.project() != dir {
            workspace = opened(ambient, workspace, ADD_DIR, &dir, Access::Read)?;
        }
        dirs.read.push(dir);
    }
    Ok((workspace, dirs))
}

fn opened(
    ambient: &Ambient,
    to: Workspace,
    flag: &str,
    dir: &Path,
    access: Access,
) -> Result<Workspace, Failure> {
    to.with_dir(ambient, dir, access)
        .map_err(|error| refused(flag, &error.to_string()))
}

/// The directory that a flag of a command means, judged as those of a run whose children inherit this.
pub(super) fn lent(
    ambient: &Ambient,
    env: &Env,
    inherited: &EnvPolicy,
    flag: &str,
    written: &Path,
) -> Result<PathBuf, Failure> {
    let withheld = Withheld::of(ambient, inherited);
    directory(env, &withheld, flag, written)
}

/// The directory that a flag means, if a run may have it.
fn directory(
    env: &Env,
    withheld: &Withheld,
    flag: &str,
    written: &Path,
) -> Result<PathBuf, Failure> {
    let dir = env.cwd.join(written);
    let dir = dir
        .canonicalize()
        .map_err(|error| refused(flag, &authority::explain_at(&env.shown(&dir), &error)))?;
    let Some(Conflict { place, why }) = withheld.conflict(&dir) else {
        return Ok(dir);
    };
    let what = match why {
        WithheldReason::Home => "the home directory",
        WithheldReason::Keys => "keys and passwords",
        WithheldReason::Own => "yoi's own configuration, sessions, notes or caches",
        WithheldReason::Temporary => "temporary files of other runs",
        WithheldReason::Kernel => "processes and devices",
    };
    let shown = env.shown(&dir);
    let place = env.shown(&place);
    let text = format!("{flag} {shown} would give access to {what} ({place})");
    Err(Failure::new(Exit::Usage, text)
        .help("choose a directory that does not contain it and is not inside of it"))
}

fn refused(flag: &str, why: &str) -> Failure {
    Failure::new(Exit::Usage, why).help(format!("choose an existing directory with {flag}"))
}
