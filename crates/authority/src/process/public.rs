//! The world-readable part of `/etc`. Children get no more of it, whatever user they run as.
//!
//! The kernel denies the rest to an ordinary user's children, but nothing to root's, and a Landlock rule for a
//! directory covers everything below it. So for root a directory is allowed as a whole only if everything below it is
//! world-readable, and piece by piece otherwise. Files created after the rules get the rule of their directory.

use std::fs::{DirEntry, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Entries looked at. Directories beyond are not given.
const MAX_ENTRIES: usize = 8192;

/// The permission bit for all users to read a file or list a directory, and the bit to enter it.
const READ: u32 = 0o004;
const ENTER: u32 = 0o001;

struct Dir {
    path: PathBuf,
    parent: Option<usize>,
    whole: bool,
    /// The files to allow if the directory is not allowed as a whole.
    files: Vec<PathBuf>,
}

/// The parts of `roots` that every user may read; for root the files below them are checked, too.
pub(super) fn public(roots: impl IntoIterator<Item = PathBuf>, root: bool) -> Vec<PathBuf> {
    let roots = roots.into_iter();
    if root {
        pieces(roots, MAX_ENTRIES)
    } else {
        roots
            .filter(|path| path.metadata().is_ok_and(|meta| readable(&meta)))
            .collect()
    }
}

fn readable(meta: &Metadata) -> bool {
    let wanted = if meta.is_dir() { READ | ENTER } else { READ };
    meta.mode() & wanted == wanted
}

/// Level by level, so that it needs no stack; each directory after the one that it is in.
fn pieces(roots: impl Iterator<Item = PathBuf>, most: usize) -> Vec<PathBuf> {
    let mut given = Vec::new();
    let mut dirs: Vec<Dir> = Vec::new();
    for path in roots {
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        // A link leads anywhere: also to what only root gets to.
        let (path, meta) = if meta.is_symlink() {
            let Some(end) = path.canonicalize().ok().filter(|end| reachable(end)) else {
                continue;
            };
            let Ok(meta) = end.symlink_metadata() else {
                continue;
            };
            (end, meta)
        } else {
            (path, meta)
        };
        match readable(&meta) {
            true if meta.is_dir() => dirs.push(Dir {
                path,
                parent: None,
                whole: true,
                files: Vec::new(),
            }),
            true => given.push(path),
            false => {}
        }
    }
    let mut left = most;
    let mut next = 0;
    while let Some(path) = dirs.get(next).map(|dir| dir.path.clone()) {
        let mut entries = std::fs::read_dir(path).ok();
        while let Some(entry) = entries
            .as_mut()
            .and_then(Iterator::next)
            .filter(|_| left > 0)
        {
            left -= 1;
            look(entry.ok().as_ref(), next, &mut dirs);
        }
        if left == 0 || entries.is_none() {
            split(&mut dirs, next);
        }
        next += 1;
    }
    let whole = |at: Option<usize>| at.and_then(|at| dirs.get(at)).is_some_and(|dir| dir.whole);
    let tops = dirs.iter().filter(|dir| !whole(dir.parent));
    given.extend(
        tops.flat_map(|dir| {
            if dir.whole {
                std::slice::from_ref(&dir.path)
            } else {
                &dir.files
            }
        })
        .cloned(),
    );
    given
}

/// One entry of a directory. Where links lead is judged there.
fn look(entry: Option<&DirEntry>, parent: usize, dirs: &mut Vec<Dir>) {
    if entry
        .and_then(|entry| entry.file_type().ok())
        .is_some_and(|kind| kind.is_symlink())
    {
        return;
    }
    match entry.and_then(|entry| Some((entry.path(), entry.metadata().ok()?))) {
        Some((path, meta)) if readable(&meta) => {
            if meta.is_dir() {
                dirs.push(Dir {
                    path,
                    parent: Some(parent),
                    whole: true,
                    files: Vec::new(),
                });
            } else if let Some(dir) = dirs.get_mut(parent) {
                dir.files.push(path);
            }
        }
        Some(_) | None => split(dirs, parent),
    }
}

/// Marks a directory, and all above it, as not allowed as a whole.
fn split(dirs: &mut [Dir], at: usize) {
    let mut next = Some(at);
    while let Some(dir) = next.and_then(|at| dirs.get_mut(at)).filter(|dir| dir.whole) {
        dir.whole = false;
        next = dir.parent;
    }
}

/// Whether every user may enter all directories above a path.
fn reachable(path: &Path) -> bool {
    path.ancestors().skip(1).all(|dir| {
        dir.symlink_metadata()
            .is_ok_and(|meta| meta.mode() & ENTER != 0)
    })
}

#[cfg(test)]
mod tests;
