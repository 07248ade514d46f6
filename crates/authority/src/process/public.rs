//! What of `/etc` every user of the machine may read. Children get no more of it, whoever they run as.
//!
//! An ordinary user's children are refused the rest by the kernel. Root's are refused nothing, and Landlock gives a
//! directory with everything below it: for root a directory is given whole only where all below it is for every user,
//! and piece by piece otherwise. What gets there after the rules were made is as the directory is.

use std::fs::{DirEntry, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Entries looked at. Directories beyond are not given.
const MAX_ENTRIES: usize = 8192;

/// To read a file or list a directory, and to enter it.
const READ: u32 = 0o004;
const ENTER: u32 = 0o001;

struct Dir {
    path: PathBuf,
    parent: Option<usize>,
    whole: bool,
    /// What is given of it when it is not given whole, besides its directories.
    files: Vec<PathBuf>,
}

/// Of `roots` what is for every user; for root also by what is below them.
pub(super) fn public(roots: impl IntoIterator<Item = PathBuf>, root: bool) -> Vec<PathBuf> {
    let roots = roots.into_iter();
    if root {
        pieces(roots, MAX_ENTRIES)
    } else {
        roots.filter(|path| path.metadata().is_ok_and(|meta| readable(&meta))).collect()
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
        let Ok(meta) = path.symlink_metadata() else { continue };
        // A link leads anywhere: also to what only root gets to.
        let (path, meta) = if meta.is_symlink() {
            let Some(end) = path.canonicalize().ok().filter(|end| reachable(end)) else { continue };
            let Ok(meta) = end.symlink_metadata() else { continue };
            (end, meta)
        } else {
            (path, meta)
        };
        match readable(&meta) {
            true if meta.is_dir() => dirs.push(Dir { path, parent: None, whole: true, files: Vec::new() }),
            true => given.push(path),
            false => {}
        }
    }
    let (mut left, mut next) = (most, 0);
    while let Some(path) = dirs.get(next).map(|dir| dir.path.clone()) {
        let mut entries = std::fs::read_dir(path).ok();
        while let Some(entry) = entries.as_mut().and_then(Iterator::next).filter(|_| left > 0) {
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
    given.extend(tops.flat_map(|dir| if dir.whole { std::slice::from_ref(&dir.path) } else { &dir.files }).cloned());
    given
}

/// One entry of a directory. Where links lead is judged there.
fn look(entry: Option<&DirEntry>, parent: usize, dirs: &mut Vec<Dir>) {
    if entry.and_then(|entry| entry.file_type().ok()).is_some_and(|kind| kind.is_symlink()) {
        return;
    }
    match entry.and_then(|entry| Some((entry.path(), entry.metadata().ok()?))) {
        Some((path, meta)) if readable(&meta) => {
            if meta.is_dir() {
                dirs.push(Dir { path, parent: Some(parent), whole: true, files: Vec::new() });
            } else if let Some(dir) = dirs.get_mut(parent) {
                dir.files.push(path);
            }
        }
        Some(_) | None => split(dirs, parent),
    }
}

/// Not whole, and so nothing that it is in.
fn split(dirs: &mut [Dir], at: usize) {
    let mut next = Some(at);
    while let Some(dir) = next.and_then(|at| dirs.get_mut(at)).filter(|dir| dir.whole) {
        dir.whole = false;
        next = dir.parent;
    }
}

/// Whether every user may enter all that a path is in.
fn reachable(path: &Path) -> bool {
    path.ancestors().skip(1).all(|dir| dir.symlink_metadata().is_ok_and(|meta| meta.mode() & ENTER != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn tree(files: &[(&str, u32)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, mode) in files {
            let path = dir.path().join(name.trim_end_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if name.ends_with('/') {
                fs::create_dir_all(&path).unwrap()
            } else {
                fs::write(&path, "x").unwrap()
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        dir
    }

    fn given(dir: &Path, root: bool) -> Vec<String> {
        let roots = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let short = |path: PathBuf| path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
        let mut given: Vec<_> = public(roots, root).into_iter().map(short).collect();
        given.sort();
        given
    }

    #[test]
    fn directories_are_given_whole_or_in_pieces() {
        let etc = tree(&[
            ("open/deep/file", 0o644),
            ("mixed/deep/key", 0o640),
            ("mixed/deep/file", 0o644),
            ("mixed/beside/file", 0o644),
            ("mixed/file", 0o604),
            ("mixed/dropped/", 0o733),
            ("named-only/", 0o711),
            ("listed-only/", 0o744),
            ("closed/", 0o700),
            ("file", 0o644),
            ("key", 0o600),
        ]);
        let pieces = ["file", "mixed/beside", "mixed/deep/file", "mixed/file", "open"];
        assert_eq!(given(etc.path(), true), pieces);
        assert_eq!(given(etc.path(), false), ["file", "mixed", "open"]);
    }

    #[test]
    fn links_are_judged_by_where_they_lead() {
        let etc = tree(&[("a/closed/", 0o755), ("a/closed/file", 0o644), ("b/file", 0o644), ("c/", 0o755)]);
        fs::set_permissions(etc.path().join("a/closed"), fs::Permissions::from_mode(0o700)).unwrap();
        let dir = etc.path();
        let real = dir.canonicalize().unwrap();
        for (name, to) in [("to-file", "a/closed/file"), ("to-dir", "a/closed"), ("to-b", "b"), ("loop", "loop")] {
            symlink(real.join(to), dir.join(name)).unwrap();
        }
        symlink(real.join("a/closed/file"), dir.join("c/inside")).unwrap();
        let roots = ["to-file", "to-dir", "to-b", "loop", "absent", "c"].map(|name| real.join(name));
        assert_eq!(public(roots, true), [real.join("b"), real.join("c")]);
    }

    #[test]
    fn the_walk_is_bounded() {
        let etc = tree(&[("a/b/c/file", 0o644), ("a/b/d/file", 0o644), ("a/file", 0o644)]);
        let given = |most| pieces([etc.path().join("a")].into_iter(), most);
        let below = |names: &[&str]| names.iter().map(|name| etc.path().join(name)).collect::<Vec<_>>();
        assert_eq!(given(7), below(&["a"]));
        assert_eq!(given(3), below(&["a/file"]));
        assert_eq!(given(0), below(&[]));
    }
}
