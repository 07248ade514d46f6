//! What of a directory is given to children of a user and of root.

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
    let roots = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
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
    let pieces = [
        "file",
        "mixed/beside",
        "mixed/deep/file",
        "mixed/file",
        "open",
    ];
    assert_eq!(given(etc.path(), true), pieces);
    assert_eq!(given(etc.path(), false), ["file", "mixed", "open"]);
}

#[test]
fn links_are_judged_by_where_they_lead() {
    let etc = tree(&[
        ("a/closed/", 0o755),
        ("a/closed/file", 0o644),
        ("b/file", 0o644),
        ("c/", 0o755),
    ]);
    fs::set_permissions(
        etc.path().join("a/closed"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    let dir = etc.path();
    let real = dir.canonicalize().unwrap();
    for (name, to) in [
        ("to-file", "a/closed/file"),
        ("to-dir", "a/closed"),
        ("to-b", "b"),
        ("loop", "loop"),
    ] {
        symlink(real.join(to), dir.join(name)).unwrap();
    }
    symlink(real.join("a/closed/file"), dir.join("c/inside")).unwrap();
    let roots = ["to-file", "to-dir", "to-b", "loop", "absent", "c"].map(|name| real.join(name));
    assert_eq!(public(roots, true), [real.join("b"), real.join("c")]);
}

#[test]
fn the_walk_is_bounded() {
    let etc = tree(&[
        ("a/b/c/file", 0o644),
        ("a/b/d/file", 0o644),
        ("a/file", 0o644),
    ]);
    let given = |most| pieces([etc.path().join("a")].into_iter(), most);
    let below = |names: &[&str]| {
        names
            .iter()
            .map(|name| etc.path().join(name))
            .collect::<Vec<_>>()
    };
    assert_eq!(given(7), below(&["a"]));
    assert_eq!(given(3), below(&["a/file"]));
    assert_eq!(given(0), below(&[]));
}
