//! Files: what is inside, what is not, and that nothing put in between changes that.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use authority::{
    Access, Error, ErrorKind, FileKind, Located, Location, WalkOptions, Workspace, escape,
};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

struct Tree {
    dir: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
    workspace: Workspace,
}

fn tree() -> Tree {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let root = base.join("root");
    let outside = base.join("outside");
    for path in [root.join("src/deep"), outside.clone()] {
        fs::create_dir_all(path).unwrap();
    }
    fs::write(root.join("src/a.rs"), "a").unwrap();
    fs::write(outside.join("key"), "key").unwrap();
    let workspace = Workspace::open(
        &ambient::claim(),
        &root,
        &root.join("src"),
        Access::ReadWrite,
    )
    .unwrap();
    Tree {
        dir,
        root,
        outside,
        workspace,
    }
}

impl Tree {
    fn at(&self, path: &str) -> Located {
        self.workspace.inside(Path::new(path)).unwrap()
    }

    fn kind(&self, path: impl AsRef<Path>) -> ErrorKind {
        self.workspace.inside(path.as_ref()).unwrap_err().kind()
    }
}

fn content(workspace: &Workspace, at: &Located) -> Result<String, Error> {
    let mut text = String::new();
    workspace.open_file(at)?.read_to_string(&mut text).unwrap();
    Ok(text)
}

#[test]
fn where_a_path_leads() {
    let tree = tree();
    let Tree {
        root,
        outside,
        workspace,
        ..
    } = &tree;
    symlink("../src/a.rs", root.join("src/link")).unwrap();
    symlink(outside, root.join("out")).unwrap();
    symlink(root.join("src"), outside.join("back")).unwrap();
    symlink("nothing/yet", root.join("dangling")).unwrap();
    symlink(outside.join("new"), root.join("dangling-out")).unwrap();
    symlink("loop-b", root.join("loop-a")).unwrap();
    symlink("loop-a", root.join("loop-b")).unwrap();
    let inside: &[(&str, &str)] = &[
        ("a.rs", "src/a.rs"),
        (".", "src"),
        ("..", ""),
        ("./deep/../a.rs", "src/a.rs"),
        ("link", "src/a.rs"),
        ("new/file", "src/new/file"),
        ("../dangling", "nothing/yet"),
        ("../out/back/a.rs", "src/a.rs"),
        ("../out/../root/src", "src"),
    ];
    for (path, leads) in inside {
        let at = tree.at(path);
        assert_eq!(at.relative(), Path::new(leads), "{path}");
        assert_eq!(
            at.path(),
            root.join(leads).components().collect::<PathBuf>(),
            "{path}"
        );
    }
    for path in [
        "../../outside/key",
        "../out/key",
        "/etc/passwd",
        "../dangling-out",
        "../out/none",
        "/",
        "../../root2/x",
    ] {
        assert_eq!(tree.kind(path), ErrorKind::Denied, "{path}");
        assert!(
            matches!(workspace.locate(Path::new(path)).unwrap(), Location::Outside(at) if at.is_absolute())
        );
    }
    for path in ["", "../loop-a", "a.rs/x", "none/../a.rs", "nul\0byte"] {
        assert_eq!(tree.kind(path), ErrorKind::FixInput, "{path:?}");
    }
    assert_eq!(tree.kind("x/".repeat(3000)), ErrorKind::FixInput);
    let broken = OsStr::from_bytes(b"caf\xe9");
    fs::write(root.join("src").join(broken), "latin").unwrap();
    let at = workspace.inside(Path::new(broken)).unwrap();
    assert_eq!(content(workspace, &at).unwrap(), "latin");
    assert_eq!(workspace.show(at.path()), "caf\\xe9");
}

#[test]
fn how_paths_are_shown() {
    let tree = tree();
    let shown = |path: &Path| tree.workspace.show(path);
    assert_eq!(shown(&tree.root.join("src")), ".");
    assert_eq!(shown(&tree.root.join("src/a.rs")), "a.rs");
    assert_eq!(shown(Path::new("/etc/passwd")), "/etc/passwd");
    assert_eq!(
        shown(&tree.root.join("srcs")),
        tree.root.join("srcs").to_str().unwrap()
    );
    let table = [
        ("a\nb", "a\\nb"),
        ("a\u{1b}[31m", "a\\u{1b}[31m"),
        ("x\u{202e}y", "x\\u{202e}y"),
        ("ü", "ü"),
        ("a\\b", "a\\b"),
    ];
    for (name, wanted) in table {
        assert_eq!(escape(Path::new(name)), wanted);
    }
}

#[test]
fn only_regular_files_are_opened() {
    let tree = tree();
    let fifo = tree.root.join("fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let _socket = std::os::unix::net::UnixListener::bind(tree.root.join("socket")).unwrap();
    let table = [
        ("../fifo", "FIFO"),
        ("../socket", "socket"),
        ("deep", "directory"),
        ("none", "does not exist"),
    ];
    for (path, word) in table {
        let error = tree.workspace.open_file(&tree.at(path)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FixInput, "{path}");
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(error.is_not_found(), path == "none");
    }
    let devices = Workspace::open(
        &ambient::claim(),
        Path::new("/dev"),
        Path::new("/dev"),
        Access::Read,
    )
    .unwrap();
    let error = devices
        .open_file(&devices.inside(Path::new("null")).unwrap())
        .unwrap_err();
    assert!(
        error.kind() == ErrorKind::FixInput && error.to_string().contains("device"),
        "{error}"
    );
    let locked = tree.root.join("src/a.rs");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o0)).unwrap();
    let opened = tree.workspace.open_file(&tree.at("a.rs"));
    if rustix::process::geteuid().is_root() {
        // Root reads what it likes.
        opened.unwrap();
    } else {
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::Denied);
    }
}

/// A directory on the way is swapped for a link to the outside, over and over, while files are located and opened.
#[test]
fn a_link_put_in_between_leads_nowhere() {
    let tree = tree();
    let swapped = tree.root.join("src/deep");
    fs::write(swapped.join("key"), "mine").unwrap();
    let aside = tree.root.join("aside");
    let at = tree.at("deep/key");
    fs::rename(&swapped, &aside).unwrap();
    symlink(&tree.outside, &swapped).unwrap();
    for result in [
        tree.workspace.open_file(&at).map(drop),
        tree.workspace.metadata(&at).map(drop),
        tree.workspace.stage(&at, 7, b"x").map(drop),
        tree.workspace.remove(&at),
        tree.workspace.read_dir(&at).map(drop),
    ] {
        assert!(result.is_err());
    }
    assert_eq!(fs::read_to_string(tree.outside.join("key")).unwrap(), "key");
    assert_eq!(fs::read_dir(&tree.outside).unwrap().count(), 1);
    let done = Arc::new(AtomicBool::new(false));
    let swapper = {
        let done = done.clone();
        let outside = tree.outside.clone();
        let swapped = swapped.clone();
        let link = tree.root.join("link");
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                fs::rename(&swapped, &link).unwrap();
                fs::rename(&aside, &swapped).unwrap();
                fs::rename(&swapped, &aside).unwrap();
                fs::rename(&link, &swapped).unwrap();
            }
            drop(outside);
        })
    };
    let mut opened = 0;
    for _ in 0..4000 {
        if let Ok(text) = content(&tree.workspace, &at) {
            assert_eq!(text, "mine");
            opened += 1;
        }
        if let Ok(Location::Inside(at)) = tree.workspace.locate(Path::new("deep/key"))
            && let Ok(text) = content(&tree.workspace, &at)
        {
            assert_eq!(text, "mine");
            opened += 1;
        }
        for entry in tree
            .workspace
            .walk(&tree.at("."), WalkOptions::default())
            .flatten()
        {
            assert!(entry.path.starts_with(&tree.root));
        }
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(
        opened > 0,
        "the right file was never there, so nothing was shown"
    );
}

#[test]
fn staged_writes() {
    let tree = tree();
    let Tree {
        root, workspace, ..
    } = &tree;
    let path = root.join("src/a.rs");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(&path, root.join("other-name")).unwrap();
    let owned = rustix::process::geteuid().is_root();
    if owned {
        std::os::unix::fs::chown(&path, Some(1234), Some(4321)).unwrap();
    }
    let temporary = || {
        let names = fs::read_dir(root.join("src"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.starts_with(".yoi-") && name.ends_with(".tmp"))
            .count()
    };
    let staged = workspace.stage(&tree.at("a.rs"), 7, b"next").unwrap();
    assert_eq!(
        (fs::read_to_string(&path).unwrap().as_str(), temporary()),
        ("a", 1)
    );
    drop(staged);
    assert_eq!(temporary(), 0);
    workspace
        .stage(&tree.at("a.rs"), 7, b"next")
        .unwrap()
        .publish()
        .unwrap();
    assert_eq!(
        (fs::read_to_string(&path).unwrap().as_str(), temporary()),
        ("next", 0)
    );
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o750);
    assert!(!owned || (meta.uid(), meta.gid()) == (1234, 4321));
    assert_eq!(
        fs::read_to_string(root.join("other-name")).unwrap(),
        "a",
        "another hard link keeps the old content"
    );
    // New: the umask holds, and it may not appear meanwhile.
    let plain = root.join("plain");
    fs::write(&plain, "").unwrap();
    workspace
        .stage(&tree.at("no/such/file"), 7, b"x")
        .unwrap()
        .publish()
        .unwrap();
    let mode = fs::metadata(root.join("src/no/such/file")).unwrap().mode();
    assert_eq!(mode, fs::metadata(&plain).unwrap().mode());
    let staged = workspace
        .stage(&tree.at("no/such/tool"), 7, b"x")
        .unwrap()
        .with_mode(0o100_751)
        .unwrap();
    staged.publish().unwrap();
    assert_eq!(
        fs::metadata(root.join("src/no/such/tool")).unwrap().mode() & 0o7777,
        0o751
    );
    // What changed after the look that the content stands on is refused, before and after it is staged.
    let stamp = |name| {
        workspace
            .metadata(&tree.at(name))
            .ok()
            .map(|meta| meta.stamp)
    };
    let was = stamp("a.rs");
    let staged = workspace
        .stage_over(&tree.at("a.rs"), was, 7, b"mine")
        .unwrap();
    fs::write(&path, "theirs").unwrap();
    assert_eq!(staged.publish().unwrap_err().kind(), ErrorKind::FixInput);
    for (name, was) in [("a.rs", was), ("a.rs", None), ("absent", was)] {
        let refused = workspace
            .stage_over(&tree.at(name), was, 7, b"mine")
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::FixInput, "{name}");
    }
    assert_eq!(
        (fs::read_to_string(&path).unwrap().as_str(), temporary()),
        ("theirs", 0)
    );
    workspace
        .stage_over(&tree.at("a.rs"), stamp("a.rs"), 7, b"next")
        .unwrap()
        .publish()
        .unwrap();
    let staged = workspace.stage(&tree.at("raced"), 7, b"mine").unwrap();
    fs::write(root.join("src/raced"), "theirs").unwrap();
    assert_eq!(staged.publish().unwrap_err().kind(), ErrorKind::FixInput);
    assert_eq!(
        (
            fs::read_to_string(root.join("src/raced")).unwrap().as_str(),
            temporary()
        ),
        ("theirs", 0)
    );
    workspace.remove(&tree.at("raced")).unwrap();
    assert!(!root.join("src/raced").exists());
    for path in ["deep", ".."] {
        assert_eq!(
            workspace.stage(&tree.at(path), 7, b"").unwrap_err().kind(),
            ErrorKind::FixInput,
            "{path}"
        );
    }
    let at = tree.at("becomes/x");
    fs::write(root.join("src/becomes"), "").unwrap();
    assert_eq!(
        workspace.stage(&at, 7, b"").unwrap_err().kind(),
        ErrorKind::FixInput
    );
}

/// A grant narrowed to reading, a root that was not given, and a door that was shut each refuse every operation.
#[test]
fn what_a_grant_does_not_reach() {
    let tree = tree();
    let ambient = ambient::claim();
    let writable = tree.at("a.rs");
    let only_read = tree.workspace.read_only();
    assert_eq!(content(&only_read, &writable).unwrap(), "a");
    let writes = |workspace: &Workspace, at: &Located| {
        let all = [
            workspace.stage(at, 7, b"").map(drop),
            workspace.unstage(at, 7).map(drop),
            workspace.remove(at),
        ];
        all.map(|r| r.unwrap_err().kind())
    };
    assert_eq!(
        writes(&only_read, &writable),
        [ErrorKind::Denied; 3],
        "located by somebody who may"
    );
    let read_located = only_read.inside(Path::new("a.rs")).unwrap();
    assert_eq!(read_located.access(), Access::Read);
    let elsewhere =
        Workspace::open(&ambient, &tree.outside, &tree.outside, Access::ReadWrite).unwrap();
    let key = elsewhere.inside(Path::new("key")).unwrap();
    assert_eq!(
        content(&tree.workspace, &key).unwrap_err().kind(),
        ErrorKind::Denied,
        "another grant's place"
    );
    // The innermost root decides; an added directory is reached.
    let added = tree
        .workspace
        .clone()
        .with_dir(&ambient, &tree.outside, Access::Read)
        .unwrap();
    let added = added
        .with_dir(&ambient, &tree.root.join("src/deep"), Access::Read)
        .unwrap();
    assert_eq!(added.roots().count(), 3);
    assert_eq!(content(&added, &key).unwrap(), "key");
    let deep = added.inside(Path::new("deep/new")).unwrap();
    assert_eq!(
        (deep.access(), deep.relative()),
        (Access::Read, Path::new("new"))
    );
    assert_eq!(writes(&added, &deep), [ErrorKind::Denied; 3]);
    assert_eq!(
        writes(&added, &tree.at("deep/new")),
        [ErrorKind::Denied; 3],
        "located before the root was added"
    );
    // Every operation is a use, and none is left once the door is shut.
    let counted = tree.workspace.derive();
    content(&counted, &writable).unwrap();
    assert_eq!(counted.door().uses(), 1);
    let staged = counted.stage(&writable, 7, b"next").unwrap();
    let mut walk = counted.walk(&tree.at(".."), WalkOptions::default());
    walk.next().unwrap().unwrap();
    drop(tree.workspace.door().shut());
    assert_eq!(staged.publish().unwrap_err().kind(), ErrorKind::Revoked);
    assert_eq!(fs::read_to_string(tree.root.join("src/a.rs")).unwrap(), "a");
    assert_eq!(walk.next().unwrap().unwrap_err().kind(), ErrorKind::Revoked);
    assert!(walk.next().is_none());
    let refused = [
        counted.locate(Path::new("a.rs")).map(drop),
        counted.open_file(&writable).map(drop),
        counted.metadata(&writable).map(drop),
        counted.read_dir(&writable).map(drop),
        counted.unstage(&writable, 7).map(drop),
        counted.stage(&writable, 7, b"").map(drop),
        counted.remove(&writable),
        counted
            .walk(&writable, WalkOptions::default())
            .next()
            .unwrap()
            .map(drop),
    ];
    assert!(
        refused
            .into_iter()
            .all(|result| result.unwrap_err().kind() == ErrorKind::Revoked)
    );
    drop(tree.dir);
}

#[test]
fn what_cannot_be_a_workspace() {
    let tree = tree();
    let ambient = ambient::claim();
    let file = tree.root.join("src/a.rs");
    let table = [
        (tree.root.join("none"), tree.root.clone()),
        (file.clone(), tree.root.clone()),
        (tree.root.clone(), tree.root.join("none")),
        (tree.root.clone(), tree.outside.clone()),
    ];
    for (project, cwd) in table {
        let error = Workspace::open(&ambient, &project, &cwd, Access::Read).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FixInput, "{project:?} {cwd:?}");
    }
    assert_eq!(
        tree.workspace
            .with_dir(&ambient, &file, Access::Read)
            .unwrap_err()
            .kind(),
        ErrorKind::FixInput
    );
}

#[test]
fn listing_and_walking() {
    let tree = tree();
    let Tree {
        root,
        workspace,
        outside,
        ..
    } = &tree;
    for dir in [
        ".git/info",
        ".git/hooks",
        "target/debug",
        "src/gen",
        "build",
    ] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for (path, text) in [
        (".gitignore", "/target\n*.log\n!keep.log\nbuild/\n"),
        (".git/info/exclude", "secret.txt\n"),
        ("src/.gitignore", "gen/*\n!gen/kept\n"),
        ("target/debug/x", ""),
        ("a.log", ""),
        ("keep.log", "12345"),
        ("secret.txt", ""),
        ("src/gen/dropped", ""),
        ("src/gen/kept", ""),
        ("src-b", ""),
        ("build/out", ""),
        (".hidden", ""),
    ] {
        fs::write(root.join(path), text).unwrap();
    }
    symlink(outside, root.join("out")).unwrap();
    let walk = |path: &str, options: WalkOptions| -> Vec<String> {
        let entries = workspace.walk(&tree.at(path), options);
        entries
            .map(|entry| {
                entry
                    .unwrap()
                    .path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    let all = WalkOptions {
        gitignore: false,
        ..WalkOptions::default()
    };
    let shallow = WalkOptions {
        max_depth: 1,
        ..WalkOptions::default()
    };
    let wanted = [
        ".gitignore",
        ".hidden",
        "keep.log",
        "out",
        "src",
        "src/.gitignore",
        "src/a.rs",
        "src/deep",
        "src/gen",
        "src/gen/kept",
        "src-b",
    ];
    assert_eq!(walk("..", WalkOptions::default()), wanted);
    assert_eq!(
        walk(".", WalkOptions::default()),
        [
            "src/.gitignore",
            "src/a.rs",
            "src/deep",
            "src/gen",
            "src/gen/kept"
        ]
    );
    assert_eq!(
        walk("gen", WalkOptions::default()),
        ["src/gen/kept"],
        "rules of the directories above count"
    );
    assert_eq!(
        walk("../target", WalkOptions::default()),
        ["target/debug", "target/debug/x"],
        "asked for by name"
    );
    assert_eq!(walk("a.rs", WalkOptions::default()), ["src/a.rs"]);
    assert_eq!(
        walk("..", shallow),
        [".gitignore", ".hidden", "keep.log", "out", "src", "src-b"]
    );
    assert!(walk("..", all).contains(&"target/debug/x".to_owned()));
    assert!(!walk("..", all).iter().any(|path| path.starts_with(".git/")));
    let entry = workspace
        .walk(&tree.at(".."), shallow)
        .map(Result::unwrap)
        .find(|entry| entry.len == 5)
        .unwrap();
    assert_eq!((entry.kind, entry.depth), (FileKind::File, 1));
    assert_eq!(
        content(workspace, &entry.located().unwrap()).unwrap(),
        "12345"
    );
    let names = |path: &str| -> Vec<_> {
        workspace
            .read_dir(&tree.at(path))
            .unwrap()
            .into_iter()
            .map(|(name, meta)| (name, meta.kind))
            .collect()
    };
    let listed = names("../src");
    assert_eq!(
        listed
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect::<Vec<_>>(),
        [".gitignore", "a.rs", "deep", "gen"]
    );
    assert_eq!(listed[2].1, FileKind::Dir);
    assert!(names("..").contains(&("out".into(), FileKind::Symlink)));
    assert_eq!(
        workspace.read_dir(&tree.at("a.rs")).unwrap_err().kind(),
        ErrorKind::FixInput
    );
    assert_eq!(
        workspace
            .walk(&tree.at("none"), all)
            .next()
            .unwrap()
            .unwrap_err()
            .kind(),
        ErrorKind::FixInput
    );
}

/// Two programs that hold the same directory exclude each other, and what is held goes again, unless something is in it.
#[test]
fn a_directory_is_held_by_one() {
    let tree = tree();
    let lock = tree.root.join("src/.lock");
    let held = tree.workspace.lock_dir(&tree.at(".lock")).unwrap().unwrap();
    assert!(lock.is_dir());
    assert!(
        tree.workspace
            .lock_dir(&tree.at(".lock"))
            .unwrap()
            .is_none()
    );
    assert!(
        tree.workspace.lock_dir(&tree.at("a.rs")).unwrap().is_none(),
        "a file is in the way, too"
    );
    drop(held);
    assert!(!lock.exists());
    // Removed by somebody, and made again by somebody else: theirs stays.
    let held = tree.workspace.lock_dir(&tree.at(".lock")).unwrap().unwrap();
    fs::rename(&lock, tree.root.join("src/.old")).unwrap();
    fs::create_dir(&lock).unwrap();
    drop(held);
    assert!(lock.is_dir());
    fs::remove_dir(&lock).unwrap();
    let held = tree.workspace.lock_dir(&tree.at(".lock")).unwrap();
    fs::write(lock.join("x"), "").unwrap();
    drop(held);
    assert!(lock.join("x").exists());
    assert_eq!(
        tree.workspace
            .lock_dir(&tree.at("no/lock"))
            .unwrap_err()
            .kind(),
        ErrorKind::FixInput
    );
    assert_eq!(
        tree.workspace
            .read_only()
            .lock_dir(&tree.at("other"))
            .unwrap_err()
            .kind(),
        ErrorKind::Denied
    );
    let grant = tree.workspace.derive();
    let held = grant.lock_dir(&tree.at("other")).unwrap();
    drop(grant.door().shut());
    assert_eq!(
        grant.lock_dir(&tree.at("another")).unwrap_err().kind(),
        ErrorKind::Revoked
    );
    drop(held);
    assert!(
        !tree.root.join("src/other").exists(),
        "a lock does not outlive its holder, whatever became of the grant"
    );
}

#[test]
fn a_directory_moves_whole_and_only_to_a_free_name() {
    let tree = tree();
    let Tree {
        root, workspace, ..
    } = &tree;
    fs::write(root.join("src/deep/file"), "x").unwrap();
    fs::create_dir_all(root.join("src/taken")).unwrap();
    fs::create_dir_all(root.join("src/other")).unwrap();
    workspace
        .rename(&tree.at("deep"), &tree.at("other/moved"))
        .unwrap();
    assert_eq!(
        fs::read_to_string(root.join("src/other/moved/file")).unwrap(),
        "x"
    );
    assert!(!root.join("src/deep").exists());
    let cases = [
        ("other/moved", "taken", ErrorKind::FixInput),
        ("other/moved", "a.rs", ErrorKind::FixInput),
        ("other/moved", "taken", ErrorKind::FixInput),
        ("absent", "new/dir", ErrorKind::FixInput),
    ];
    for (from, to, kind) in cases {
        assert_eq!(
            workspace
                .rename(&tree.at(from), &tree.at(to))
                .unwrap_err()
                .kind(),
            kind,
            "{from} to {to}"
        );
    }
    assert!(
        workspace
            .rename(&tree.at("other"), &tree.at("other/moved/in/to"))
            .is_err(),
        "into itself"
    );
    // What is missing above the new name is made, and goes again when nothing was moved.
    assert!(!root.join("src/new").exists() && !root.join("src/other/moved/in").exists());
    workspace
        .rename(&tree.at("other/moved"), &tree.at("far/away/moved"))
        .unwrap();
    workspace
        .rename(&tree.at("far/away/moved"), &tree.at("other/moved"))
        .unwrap();
    assert!(root.join("src/far/away").is_dir());
    let from = tree.at("other/moved");
    let to = tree.at("new");
    assert_eq!(
        workspace.read_only().rename(&from, &to).unwrap_err().kind(),
        ErrorKind::Denied
    );
    drop(workspace.door().shut());
    assert_eq!(
        workspace.rename(&from, &to).unwrap_err().kind(),
        ErrorKind::Revoked
    );
    assert!(root.join("src/other/moved/file").exists());
}

#[test]
fn an_empty_directory_can_be_removed_and_no_other() {
    let tree = tree();
    let workspace = &tree.workspace;
    fs::create_dir_all(tree.root.join("src/made/in/it")).unwrap();
    let denied = workspace
        .read_only()
        .remove_dir(&tree.at("made/in/it"))
        .unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied);
    let full = workspace.remove_dir(&tree.at("made")).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::FixInput);
    assert!(full.to_string().contains("it is not empty"), "{full}");
    for path in ["made/in/it", "made/in", "made"] {
        workspace.remove_dir(&tree.at(path)).unwrap();
        assert!(!tree.root.join("src").join(path).exists(), "{path}");
    }
    fs::write(tree.root.join("src/file"), "").unwrap();
    for path in ["made", "file"] {
        assert!(workspace.remove_dir(&tree.at(path)).is_err(), "{path}");
    }
    assert!(tree.root.join("src/file").exists());
}

/// A project that was deleted and cloned again is another directory: what is written by the old handle is lost.
#[test]
fn a_root_that_was_replaced_is_named() {
    let tree = tree();
    let ambient = ambient::claim();
    let added = tree.outside.clone();
    let workspace = tree
        .workspace
        .clone()
        .with_dir(&ambient, &added, Access::Read)
        .unwrap();
    assert!(workspace.replaced().is_empty() && workspace.check_roots().is_ok());
    // What happens below a root is no matter, nor is its mode.
    fs::write(added.join("more"), "").unwrap();
    fs::set_permissions(&added, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(workspace.replaced().is_empty());

    fs::remove_dir_all(&tree.root).unwrap();
    assert_eq!(workspace.replaced(), [tree.root.as_path()], "vanished");
    fs::create_dir_all(tree.root.join("src")).unwrap();
    let at = workspace.inside(Path::new("lost")).unwrap();
    assert!(workspace.stage(&at, 1, b"x").is_err());
    for workspace in [&workspace, &workspace.derive(), &workspace.read_only()] {
        assert_eq!(workspace.replaced(), [tree.root.as_path()], "cloned again");
        let error = workspace.check_roots().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(
            error
                .to_string()
                .starts_with(&format!("{}: moved, deleted or", tree.root.display())),
            "{error}"
        );
    }
    let moved = tree.dir.path().join("moved");
    fs::rename(&added, &moved).unwrap();
    symlink(&moved, &added).unwrap();
    assert_eq!(
        workspace.replaced(),
        [tree.root.as_path(), added.as_path()],
        "a link is not the directory"
    );
    fs::remove_file(&added).unwrap();
    fs::rename(&moved, &added).unwrap();
    assert_eq!(workspace.replaced(), [tree.root.as_path()], "moved back");

    let again = Workspace::open(&ambient, &tree.root, &tree.root, Access::ReadWrite).unwrap();
    assert!(again.replaced().is_empty(), "opened anew");
}

// language-tools#89, Reasonix#2660: git drops a byte order mark and the carriage return of CRLF; a walk listed what git
// ignores. The oracle is git.
#[test]
fn ignore_files_are_read_as_git_reads_them() {
    let files = [
        "a.bak",
        "b.log",
        "logs/keep.log",
        "target/x",
        "build/o",
        "build/keep/k",
        "#h",
        "trail ",
        "z",
        "sub/a.bak",
        "{a,z}",
        "1x",
        "tab\t",
        "tab",
    ];
    let rules = [
        "\u{feff}target/\n*.bak\n",
        "\u{feff}*.bak",
        "\u{feff}\r\ntarget\r\n*.log\r\n!logs/keep.log\r\n",
        "\u{feff}# comment\r\n/build/*\r\n!/build/keep\r\n\\#h\r\n",
        "*.bak\r\n\n*.log \nsub/\n",
        "trail\\ \nlogs/**\n",
        "\u{feff}\u{feff}z\n",
        "*\n!*/\n!z\n",
        "{a,z}\n",
        "{a,z}*\n\\{a,z\\}\n",
        "*.{bak,log}\n",
        "[{]*\n",
        "[[:digit:]]x\n[![:alnum:]]h\n",
        "*[[:space:]]\n",
        "tab\t\n",
        "z \t\n",
    ];
    for (number, text) in rules.iter().enumerate() {
        for place in [".gitignore", ".git/info/exclude"] {
            let tree = tree();
            fs::remove_dir_all(tree.root.join("src/deep")).unwrap();
            let git = |args: &[&str]| {
                let mut git = std::process::Command::new("git");
                let none = [
                    ("GIT_CONFIG_GLOBAL", "/dev/null"),
                    ("GIT_CONFIG_NOSYSTEM", "1"),
                ];
                let done = git
                    .arg("-C")
                    .arg(&tree.root)
                    .args(args)
                    .envs(none)
                    .output()
                    .unwrap();
                assert!(done.status.success(), "{done:?}");
                String::from_utf8(done.stdout).unwrap()
            };
            git(&["init", "-q"]);
            for file in files {
                fs::create_dir_all(tree.root.join(file).parent().unwrap()).unwrap();
                fs::write(tree.root.join(file), "x").unwrap();
            }
            fs::create_dir_all(tree.root.join(".git/info")).unwrap();
            fs::write(tree.root.join(place), text).unwrap();
            let listed = git(&["ls-files", "-co", "--exclude-standard", "-z"]);
            let mut wanted: Vec<&str> =
                listed.split('\0').filter(|name| !name.is_empty()).collect();
            wanted.sort_unstable();
            let walk = tree
                .workspace
                .walk(&tree.at(".."), WalkOptions::default())
                .map(Result::unwrap);
            let found = walk.filter(|entry| entry.kind == FileKind::File);
            let found = found.map(|entry| {
                entry
                    .path
                    .strip_prefix(&tree.root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            });
            let mut found: Vec<String> = found.collect();
            found.sort_unstable();
            assert_eq!(found, wanted, "{number} in {place}");
        }
    }
}

/// In a worktree, files that `info/exclude` of the repository names were listed and searched: it was looked for below `.git`.
/// git itself reads it from the whole repository.
#[test]
fn a_worktree_has_the_excluded_files_of_its_repository() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    for dir in ["r/objects", "r/refs", "r/info", "r/worktrees/p", "p"] {
        fs::create_dir_all(base.join(dir)).unwrap();
    }
    let back = format!("{}\n", base.join("p/.git").display());
    for (path, text) in [
        ("r/HEAD", "ref: refs/heads/main\n"),
        ("r/info/exclude", "kept-out\n"),
        ("r/worktrees/p/commondir", "../..\n"),
        ("r/worktrees/p/gitdir", &back),
        ("p/.git", "gitdir: ../r/worktrees/p\n"),
        ("p/kept-out", ""),
        ("p/seen", ""),
    ] {
        fs::write(base.join(path), text).unwrap();
    }
    let seen = || -> Vec<String> {
        let project = base.join("p");
        let workspace =
            Workspace::open(&ambient::claim(), &project, &project, Access::Read).unwrap();
        let at = workspace.inside(Path::new(".")).unwrap();
        let name = |entry: authority::WalkEntry| {
            entry.path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        workspace
            .walk(&at, WalkOptions::default())
            .map(|entry| name(entry.unwrap()))
            .collect()
    };
    assert_eq!(seen(), ["seen"]);
    fs::write(base.join("r/worktrees/p/gitdir"), "elsewhere\n").unwrap();
    assert_eq!(
        seen(),
        ["kept-out", "seen"],
        "the repository does not name the directory"
    );
}
