//! What a look costs, and that a cheap one misses nothing.

use super::*;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// How many directories and files an ordinary project has here.
const DIRS: u64 = 50;
const FILES: usize = 6;

/// How often a look may ask the system, besides once for each directory: `.git` with its parts, the configuration,
/// files at the top.
const OTHERS: u64 = 14;

struct Project {
    dir: tempfile::TempDir,
    guard: Arc<GitGuard>,
}

impl Project {
    /// As a fresh clone has it: git's own sample hooks, a few hundred files. Old enough to be remembered.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let mut git = Command::new("git");
        git.args(["init", "-q", "."])
            .current_dir(&root)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap());
        assert!(git.env("HOME", &root).status().unwrap().success());
        for n in 0..DIRS {
            let sub = root.join(format!("part-{}/sub-{n}", n / 10));
            fs::create_dir_all(&sub).unwrap();
            (0..FILES).for_each(|file| fs::write(sub.join(format!("{file}.rs")), "x\n").unwrap());
        }
        let guard = GitGuard::new(
            &ambient::claim(),
            &[root],
            None,
            |_| false,
            |_| String::new(),
        )
        .unwrap();
        let project = Self {
            dir,
            guard: Arc::new(guard),
        };
        project.grow_old();
        project
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(below)
    }

    /// Times of file systems tick: what changed just now may change again without showing.
    fn grow_old(&self) {
        fs::write(self.path("part-0/sub-0/0.rs"), "y\n").unwrap();
        let changed = self
            .path("part-0/sub-0/0.rs")
            .metadata()
            .unwrap()
            .modified()
            .unwrap();
        while changed.elapsed().unwrap() < Duration::from_millis(250) {
            std::thread::yield_now();
        }
    }

    /// One call around a command that does this; what was found.
    fn call(&self, command: impl FnOnce()) -> Vec<GitFinding> {
        let watch = self.guard.watch();
        command();
        drop(watch);
        self.guard.untold()
    }

    fn told(&self, finding: &GitFinding) -> String {
        let path = finding.path.strip_prefix(self.path("")).unwrap().display();
        match finding.what {
            Handled::PutBack => format!("put back {path}"),
            Handled::Removed => format!("removed {path}"),
            Handled::Gone => format!("gone {path}"),
            Handled::Changed => format!("changed {path}"),
            Handled::Left | Handled::Failed(_) | Handled::Bound | Handled::More(_) => {
                format!("{:?} {path}", finding.what)
            }
        }
    }

    fn asked(&self) -> u64 {
        self.guard.lock().memory.asked
    }
}

#[test]
fn an_unchanged_project_costs_one_question_for_each_directory() {
    let project = Project::new();
    assert_eq!(project.call(|| ()), []);
    let before = project.asked();
    assert_eq!(project.call(|| ()), []);
    let asked = project.asked() - before;
    let looks = 2 * (DIRS + 5 + 1 + OTHERS);
    println!("one call asks {asked} times; at most {looks}");
    assert!(asked <= looks, "{asked} questions, more than {looks}");
    let calls = (0..200).map(|_| {
        let begun = Instant::now();
        assert_eq!(project.call(|| ()), []);
        begun.elapsed()
    });
    println!(
        "both looks of one call take {:?} at least",
        calls.min().unwrap()
    );
}

/// What is written, what the path becomes, and what is told: each in a project that was old when the call began, so that
/// the look before it is the remembered one.
#[test]
fn a_remembered_look_misses_no_change() {
    type Change = fn(&Project);
    let hook = |project: &Project, path: &str| fs::write(project.path(path), "evil\n").unwrap();
    let changes: &[(&str, Change)] = &[
        ("removed .git/hooks/pre-commit", |p| {
            fs::write(p.path(".git/hooks/pre-commit"), "evil\n").unwrap()
        }),
        ("put back .git/hooks/pre-push", |p| {
            // In place: no directory changes.
            let mut bytes = fs::read(p.path(".git/hooks/pre-push")).unwrap();
            bytes.reverse();
            fs::write(p.path(".git/hooks/pre-push"), bytes).unwrap();
        }),
        ("put back .git/hooks/pre-push", |p| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            fs::set_permissions(p.path(".git/hooks/pre-push"), mode).unwrap();
        }),
        ("put back .git/config", |p| {
            let text = fs::read_to_string(p.path(".git/config")).unwrap();
            fs::write(p.path(".git/config"), text + "[core]\n\tpager = evil\n").unwrap();
        }),
        ("put back .git/config.worktree", |p| {
            fs::write(p.path(".git/config.worktree"), "[core]\n\tpager = evil\n").unwrap();
        }),
        ("changed .git/info/attributes", |p| {
            fs::write(p.path(".git/info/attributes"), "* filter=x\n").unwrap()
        }),
        ("changed .git/rebase-merge/git-rebase-todo", |p| {
            fs::create_dir(p.path(".git/rebase-merge")).unwrap();
            fs::write(p.path(".git/rebase-merge/git-rebase-todo"), "exec evil\n").unwrap();
        }),
        ("removed part-3/sub-31/.git/hooks/pre-commit", |p| {
            for dir in ["objects", "refs", "hooks"] {
                fs::create_dir_all(p.path("part-3/sub-31/.git").join(dir)).unwrap();
            }
            fs::write(p.path("part-3/sub-31/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(p.path("part-3/sub-31/.git/hooks/pre-commit"), "evil\n").unwrap();
        }),
        ("removed hooks-of-project/pre-commit", |p| {
            fs::create_dir(p.path("hooks-of-project")).unwrap();
            fs::write(p.path("hooks-of-project/pre-commit"), "evil\n").unwrap();
        }),
        ("removed part-0/led-to/post-merge", |p| {
            fs::write(p.path("part-0/led/post-merge"), "evil\n").unwrap()
        }),
        ("put back part-0/included", |p| {
            fs::write(p.path("part-0/included"), "[core]\n\tpager = b\n").unwrap()
        }),
        ("removed .git/hooks", |p| {
            fs::rename(p.path(".git/hooks"), p.path("moved")).unwrap();
            std::os::unix::fs::symlink("../moved", p.path(".git/hooks")).unwrap();
        }),
        ("gone .git/config", |p| {
            fs::remove_file(p.path(".git/config")).unwrap()
        }),
    ];
    let project = Project::new();
    hook(&project, ".git/hooks/pre-push");
    fs::write(project.path("part-0/included"), "[core]\n\tpager = a\n").unwrap();
    fs::create_dir(project.path("part-0/led-to")).unwrap();
    std::os::unix::fs::symlink("led-to", project.path("part-0/led")).unwrap();
    let git = project.path(".git/config");
    let text = fs::read_to_string(&git).unwrap();
    let more = "[core]\n\thooksPath = hooks-of-project\n\thooksPath = part-0/led\n[include]\n\tpath = ../part-0/included\n";
    fs::write(git, text + more).unwrap();
    for (want, change) in changes {
        project.grow_old();
        assert_eq!(project.call(|| ()), [], "before {want}");
        assert!(project.guard.lock().memory.repeats(), "before {want}");
        let found = project.call(|| change(&project));
        let told: Vec<String> = found.iter().map(|finding| project.told(finding)).collect();
        assert!(told.iter().any(|told| told == want), "{want}: {told:?}");
    }
}

#[test]
fn a_check_behind_the_last_call_reverts_nothing() {
    let project = Project::new();
    assert_eq!(project.call(|| ()), []);
    fs::write(project.path(".git/hooks/pre-commit"), "mine\n").unwrap();
    project.guard.check();
    assert!(project.path(".git/hooks/pre-commit").exists());
}

#[test]
fn a_check_does_not_wait_for_another_comparison() {
    let project = Project::new();
    let _comparing = project.guard.lock();
    let (guard, (done, ended)) = (Arc::clone(&project.guard), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        guard.check();
        done.send(())
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok(()));
}

#[test]
fn what_is_reverted_twice_is_kept_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut quarantine = Quarantine::new(Some(dir.path()));
    let mut keep = |bytes: &[u8]| {
        fs::read(
            quarantine
                .keep(Path::new(".git/hooks/pre-commit"), bytes)
                .unwrap(),
        )
        .unwrap()
    };
    assert_eq!(
        [keep(b"one"), keep(b"two"), keep(b"three")],
        [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]
    );
}
