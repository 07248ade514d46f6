//! What a watch of files reports, what it must not report, and its limits.
#![allow(
    clippy::unwrap_used,
    reason = "tests: a directory that fails is a failed test"
)]

use authority::{
    Access, ErrorKind, FileChanges, FileWatch, MAX_CHANGED_PATHS, MAX_WATCHED_DIRS, SecretNames,
    Workspace,
};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

struct Scene {
    dir: TempDir,
    workspace: Workspace,
    runtime: tokio::runtime::Runtime,
}

fn scene(files: &[&str]) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    for file in files {
        write(&project.join(file));
    }
    fs::create_dir_all(&project).unwrap();
    let workspace = Workspace::open(&ambient::claim(), &project, &project, Access::Read).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    Scene {
        dir,
        workspace,
        runtime,
    }
}

fn write(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "x").unwrap();
}

impl Scene {
    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("project").join(path)
    }

    fn watch(&self) -> FileWatch {
        let _in = self.runtime.enter();
        FileWatch::open(&self.workspace, MAX_WATCHED_DIRS).unwrap()
    }

    /// Everything that is reported until this path is among it.
    fn until(&self, watch: &mut FileWatch, last: &str) -> FileChanges {
        let _in = self.runtime.enter();
        let mut all = FileChanges::default();
        let began = Instant::now();
        while !all.paths.contains(Path::new(last)) {
            assert!(began.elapsed() < PATIENCE, "{last} is not in {all:?}");
            self.runtime
                .block_on(tokio::time::timeout(PATIENCE, watch.readable()))
                .unwrap()
                .unwrap();
            all.merge(watch.read().unwrap());
        }
        all
    }

    /// What is reported of this, with the end marked by a file.
    fn reported(&self, watch: &mut FileWatch, act: impl FnOnce()) -> Vec<String> {
        act();
        write(&self.at("zz-last"));
        let all = self.until(watch, "zz-last");
        assert!(!all.incomplete, "{all:?}");
        let paths = all
            .paths
            .iter()
            .map(|path| path.to_str().unwrap().to_owned());
        paths.filter(|path| path != "zz-last").collect()
    }
}

#[test]
fn what_changes_is_reported_at_any_depth() {
    let scene = scene(&[
        "a.txt",
        "src/lib.rs",
        "src/deep/er/x.rs",
        "old/one",
        "old/sub/two",
    ]);
    let mut watch = scene.watch();
    assert_eq!(watch.unwatched(), 0);
    let at = |path: &str| scene.at(path);
    assert_eq!(
        scene.reported(&mut watch, || fs::write(at("a.txt"), "y").unwrap()),
        ["a.txt"]
    );
    assert_eq!(
        scene.reported(&mut watch, || fs::write(at("src/deep/er/x.rs"), "y")
            .unwrap()),
        ["src/deep/er/x.rs"]
    );
    assert_eq!(
        scene.reported(&mut watch, || fs::remove_file(at("src/lib.rs")).unwrap()),
        ["src/lib.rs"]
    );
    let renamed = scene.reported(&mut watch, || fs::rename(at("a.txt"), at("b.txt")).unwrap());
    assert_eq!(renamed, ["a.txt", "b.txt"]);
    // What is created in a new directory before it has a watch, and after.
    assert_eq!(
        scene.reported(&mut watch, || write(&at("new/er/est/f"))),
        ["new/er/est/f"]
    );
    assert_eq!(
        scene.reported(&mut watch, || write(&at("new/er/est/g"))),
        ["new/er/est/g"]
    );
    let moved = scene.reported(&mut watch, || fs::rename(at("old"), at("young")).unwrap());
    assert_eq!(moved, ["old", "young/one", "young/sub/two"]);
    assert_eq!(
        scene.reported(&mut watch, || fs::write(at("young/sub/two"), "y").unwrap()),
        ["young/sub/two"]
    );
    // A directory that has the old name is another one.
    assert_eq!(
        scene.reported(&mut watch, || write(&at("old/sub/two"))),
        ["old/sub/two"]
    );
    assert_eq!(
        scene.reported(&mut watch, || fs::remove_dir_all(at("young")).unwrap()),
        ["young/one", "young/sub/two"]
    );
    assert_eq!(
        scene.reported(&mut watch, || drop(fs::read(at("b.txt")).unwrap())),
        [""; 0]
    );
}

#[test]
fn nothing_ignored_secret_or_outside_is_reported() {
    let scene = scene(&["target/x", "keep", ".git/index", "linked"]);
    fs::write(scene.at(".gitignore"), "/target\n*.log\n!keep.log\n").unwrap();
    write(&scene.dir.path().join("outside/file"));
    symlink(scene.dir.path().join("outside"), scene.at("link")).unwrap();
    let names = SecretNames::with(&["vault/**".to_owned()]).unwrap();
    let scene = Scene {
        workspace: scene.workspace.clone().with_secrets(names),
        ..scene
    };
    let mut watch = scene.watch();
    let quiet = || {
        for path in [
            "target/x",
            "target/new/y",
            "a.log",
            ".git/index",
            ".yoi-0123456789abcdef.tmp",
            ".env",
            ".env.local",
            "vault/key",
            "id_rsa",
        ] {
            write(&scene.at(path));
        }
        fs::write(scene.dir.path().join("outside/file"), "y").unwrap();
        fs::write(scene.at("link/other"), "y").unwrap();
        fs::remove_file(scene.at(".env")).unwrap();
        fs::remove_file(scene.at("a.log")).unwrap();
    };
    assert_eq!(scene.reported(&mut watch, quiet), [""; 0]);
    assert_eq!(
        scene.reported(&mut watch, || write(&scene.at("keep.log"))),
        ["keep.log"]
    );
    assert_eq!(
        scene.reported(&mut watch, || write(&scene.at(".yoi-1.tmp"))),
        [".yoi-1.tmp"]
    );
    // Rules that change count from then on.
    let open = || fs::write(scene.at(".gitignore"), "/out\n").unwrap();
    assert_eq!(scene.reported(&mut watch, open), [".gitignore"]);
    let both = || {
        write(&scene.at("target/new/y"));
        write(&scene.at("out/z"));
    };
    assert_eq!(scene.reported(&mut watch, both), ["target/new/y"]);
}

#[test]
fn the_limit_of_directories_is_told() {
    let scene = scene(&["a/1", "b/1", "c/1", "top"]);
    let _in = scene.runtime.enter();
    let mut watch = FileWatch::open(&scene.workspace, 3).unwrap();
    assert_eq!(watch.unwatched(), 1);
    assert_eq!(
        scene.reported(&mut watch, || fs::write(scene.at("top"), "y").unwrap()),
        ["top"]
    );
    write(&scene.at("d/1"));
    // Seen when it was created, and not watched.
    let found = scene.reported(&mut watch, || ());
    assert!(
        found.is_empty() && watch.unwatched() == 2,
        "{found:?} {}",
        watch.unwatched()
    );
    // A directory that leaves makes room.
    fs::remove_dir_all(scene.at("c")).unwrap();
    fs::remove_dir_all(scene.at("b")).unwrap();
    scene.reported(&mut watch, || ());
    assert_eq!(
        scene.reported(&mut watch, || write(&scene.at("e/1"))),
        ["e/1"]
    );
}

#[test]
fn many_changes_are_bounded_and_dropped_events_are_told() {
    let scene = scene(&["d/0"]);
    let mut watch = scene.watch();
    for file in 0..MAX_CHANGED_PATHS + 10 {
        fs::write(scene.at(&format!("d/{file}")), "").unwrap();
    }
    let changes = scene.until(&mut watch, "d/0");
    assert!(
        changes.paths.len() <= MAX_CHANGED_PATHS && changes.incomplete,
        "{}",
        changes.paths.len()
    );
    let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    if most > 100_000 {
        return;
    }
    // Two names in turns, so that no event is merged with the one before.
    for _ in 0..most / 2 {
        fs::rename(scene.at("d/0"), scene.at("d/zero")).unwrap();
        fs::rename(scene.at("d/zero"), scene.at("d/0")).unwrap();
    }
    fs::create_dir(scene.at("unseen")).unwrap();
    let mut all = FileChanges::default();
    while !all.incomplete {
        let _in = scene.runtime.enter();
        scene
            .runtime
            .block_on(tokio::time::timeout(PATIENCE, watch.readable()))
            .unwrap()
            .unwrap();
        all.merge(watch.read().unwrap());
    }
    // It watches everything again, what it has not heard of, too.
    assert_eq!(
        scene.reported(&mut watch, || write(&scene.at("unseen/f"))),
        ["unseen/f"]
    );
}

/// The system tells only then that the old directory is gone.
#[test]
fn a_directory_made_anew_keeps_its_rules_when_the_old_one_is_released() {
    let scene = scene(&["d/a"]);
    let mut watch = scene.watch();
    let held = fs::File::open(scene.at("d")).unwrap();
    fs::remove_dir_all(scene.at("d")).unwrap();
    scene.reported(&mut watch, || {
        fs::create_dir(scene.at("d")).unwrap();
        fs::write(scene.at("d/.gitignore"), "ignored\n").unwrap();
    });
    drop(held);
    let found = scene.reported(&mut watch, || {
        write(&scene.at("d/ignored"));
        write(&scene.at("d/seen"));
    });
    assert_eq!(found, ["d/seen"]);
}

#[test]
fn it_ends_with_its_grant_and_its_project() {
    let scene = scene(&["a"]);
    let mut watch = scene.watch();
    drop(scene.workspace.door().shut());
    write(&scene.at("a"));
    assert_eq!(watch.read().unwrap_err().kind(), ErrorKind::Revoked);
    let moved = self::scene(&["a"]);
    let mut watch = moved.watch();
    fs::rename(moved.at(""), moved.dir.path().join("elsewhere")).unwrap();
    assert_eq!(watch.read().unwrap_err().kind(), ErrorKind::Unavailable);
}
