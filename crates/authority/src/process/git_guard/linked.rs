//! The repository that a `.git` file names, if the repository names that directory, too.
//!
//! A command or an archive can write a `.git` file with any path in it. Therefore the file alone opens nothing: git itself
//! writes a link back, into a directory that commands of other projects cannot write; or the index proves it ([`index`]).

use super::config::parse;
use super::index;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most bytes of a file that names a directory, and of a configuration.
const MAX_NAME: u64 = 8 * 1024;
const MAX_CONFIG: u64 = 1024 * 1024;

/// Where the repository of a linked worktree, of a submodule or of `--separate-git-dir` is. Names only: no handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedRepository {
    /// The directory that the `.git` file names: it has `HEAD`.
    pub own: PathBuf,
    /// The whole repository: `own`, or the directory around it that all worktrees share.
    pub whole: PathBuf,
}

impl LinkedRepository {
    /// That of a directory with a `.git` file; `None` where something is not as git writes it, where the repository does
    /// not name this directory, belongs to another user, or contains this directory.
    pub fn of(dir: &Path) -> Option<Self> {
        let top = dir.canonicalize().ok()?;
        let file = bytes(&top.join(".git"), MAX_NAME)?;
        let own = named(&top, file.strip_prefix(b"gitdir:")?)?;
        let whole = match bytes(&own.join("commondir"), MAX_NAME) {
            Some(common) => {
                let back = named(&own, &bytes(&own.join("gitdir"), MAX_NAME)?)?;
                let whole = named(&own, &common)?;
                // Otherwise, a forged directory could name any repository.
                (back == top.join(".git") && own.parent() == Some(&whole.join("worktrees")))
                    .then_some(whole)?
            }
            None => worktree(&own)
                .map_or_else(|| index::knows(&own, &top), |named| named == top)
                .then(|| own.clone())?,
        };
        (is_mine(&own) && is_repository(&whole) && !top.starts_with(&whole))
            .then_some(Self { own, whole })
    }
}

/// Whether a directory is one of this user.
fn is_mine(dir: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    dir.metadata()
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == me)
}

/// Whether it is a repository of this user.
pub(super) fn is_repository(dir: &Path) -> bool {
    is_mine(dir)
        && dir.join("HEAD").is_file()
        && ["objects", "refs"]
            .iter()
            .all(|name| is_mine(&dir.join(name)))
}

/// The directory in which a repository says that its files are.
fn worktree(git: &Path) -> Option<PathBuf> {
    let value = |name: &str| {
        let entries = parse(&bytes(&git.join(name), MAX_CONFIG)?).ok()?;
        entries
            .into_iter()
            .rfind(|entry| entry.key() == b"core.worktree")?
            .value
    };
    named(git, &value("config.worktree").or_else(|| value("config"))?)
}

/// An existing path, as a file in a directory names it.
fn named(from: &Path, bytes: &[u8]) -> Option<PathBuf> {
    from.join(trimmed(bytes)).canonicalize().ok()
}

/// The content of a regular file; no link is followed, and nothing is waited for.
fn bytes(path: &Path, most: u64) -> Option<Vec<u8>> {
    start(path, most + 1).filter(|bytes| bytes.len() as u64 <= most && !bytes.contains(&0))
}

/// The first bytes of one.
pub(super) fn start(path: &Path, most: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(
        rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?,
    );
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// The path that a file names on its only line.
pub(super) fn trimmed(bytes: &[u8]) -> PathBuf {
    let start = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    let text = bytes.get(start..).unwrap_or_default();
    let end = text
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\r'))
        .map_or(0, |last| last + 1);
    path_of(text.get(..end).unwrap_or_default())
}
