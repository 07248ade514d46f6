//! A project with a repository, commands in it, and a person who uses git there.

use authority::{
    Ambient, Confinement, EnvPolicy, GitFinding, GitGuard, Handled, Job, SandboxMode, Spawner,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) quarantine: PathBuf,
    pub(crate) guard: Arc<GitGuard>,
    spawner: Spawner,
}

/// Nothing is allowed to stay.
pub(crate) fn scene() -> Scene {
    Scene::new(|_| false)
}

impl Scene {
    pub(crate) fn new(allows: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("root");
        let outside = base.join("outside");
        let quarantine = base.join("state/quarantine");
        for path in [
            root.join("src"),
            root.join("there"),
            outside.clone(),
            base.join("home"),
            base.join("tmp"),
        ] {
            fs::create_dir_all(path).unwrap();
        }
        let person = "[user]\nname = a\nemail = a@x\n[init]\ndefaultBranch = main\n[difftool \"t\"]\ncmd = true\n";
        fs::write(base.join("home/.gitconfig"), person).unwrap();
        let guard = GitGuard::new(
            &ambient(),
            std::slice::from_ref(&root),
            Some(quarantine.clone()),
            allows,
            |_| String::new(),
        );
        let guard = Arc::new(guard.unwrap());
        let spawner = spawner(&base).with_git_guard(Arc::clone(&guard));
        let scene = Self {
            dir,
            root,
            outside,
            quarantine,
            guard,
            spawner,
        };
        scene.file("src/a", "a\n");
        // One is made by git, the others are copies: starting programs is what takes time here.
        static MADE: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
        let made = MADE.get_or_init(|| {
            let init = "init -q --template=";
            let commit = "commit -qm two --allow-empty";
            scene.git(&format!(
                "{init} . && git add . && git commit -qm one && git {commit} && mkdir .git/hooks .git/info"
            ));
            let mut files = Vec::new();
            read_below(&scene.root, Path::new(".git"), &mut files);
            files
        });
        for (path, bytes) in made {
            let path = scene.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        for dir in ["hooks", "info", "refs/tags", "objects/info", "objects/pack"] {
            fs::create_dir_all(scene.root.join(".git").join(dir)).unwrap();
        }
        scene
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    pub(crate) fn file(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn script(&self, below: &str, text: &str) {
        self.file(below, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(self.path(below), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn read(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).unwrap()
    }

    /// What a planted command would leave.
    pub(crate) fn canary(&self) -> PathBuf {
        self.outside.join("canary")
    }

    /// A command of a pod; what was found.
    pub(crate) fn run(&self, command: &str) -> Vec<GitFinding> {
        let mark = self.guard.mark();
        runtime().block_on(self.start(&self.spawner, command));
        self.guard.since(mark)
    }

    /// A command that runs for days, in time that passes by itself; what was found.
    pub(crate) fn run_long(&self, command: &str) -> Vec<GitFinding> {
        let mark = self.guard.mark();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(self.start(&self.spawner, command));
        self.guard.since(mark)
    }

    /// Commands of one answer, together.
    pub(crate) fn together(&self, commands: &[&str]) -> Vec<Vec<GitFinding>> {
        runtime().block_on(async {
            let calls = commands.iter().map(|command| async {
                let mark = self.guard.mark();
                self.start(&self.spawner, command).await;
                self.guard.since(mark)
            });
            let mut calls: Vec<_> = calls.map(Box::pin).collect();
            let mut found = vec![None; calls.len()];
            std::future::poll_fn(|cx| {
                for (call, found) in calls.iter_mut().zip(&mut found) {
                    if found.is_none()
                        && let std::task::Poll::Ready(done) = call.as_mut().poll(cx)
                    {
                        *found = Some(done);
                    }
                }
                if found.iter().all(Option::is_some) {
                    std::task::Poll::Ready(())
                } else {
                    std::task::Poll::Pending
                }
            })
            .await;
            found.into_iter().flatten().collect()
        })
    }

    /// The same command where nothing is watched.
    pub(crate) fn unguarded(&self, command: &str) {
        runtime().block_on(self.start(&spawner(self.dir.path()), command));
    }

    async fn start(&self, spawner: &Spawner, command: &str) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let job = Job {
            program: "sh".into(),
            args: vec!["-c".into(), self.filled(command).into()],
            cwd: self.root.clone(),
            call: format!("call-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            deadline: Duration::from_secs(7 * 24 * 60 * 60),
            input: Vec::new(),
        };
        let mut said = Vec::new();
        let cancel = CancellationToken::new();
        let keep = |bytes: &[u8]| {
            said.extend_from_slice(bytes);
            Ok(())
        };
        let ended = spawner.run(job, keep, &cancel).await.unwrap();
        if std::env::var_os("YOI_TEST_SHOW").is_some() {
            println!("{command}: {ended:?}\n{}", String::from_utf8_lossy(&said));
        }
    }

    fn filled(&self, command: &str) -> String {
        let set = [
            ("CANARY", self.canary()),
            ("OUTSIDE", self.outside.clone()),
            ("ROOT", self.root.clone()),
        ];
        set.iter().fold(command.to_owned(), |text, (name, path)| {
            text.replace(name, path.to_str().unwrap())
        })
    }

    /// The person's own git, outside of everything; `git` is before the words.
    pub(crate) fn git(&self, words: &str) -> Output {
        let text = self.filled(&format!("git {words}"));
        let mut command = Command::new("timeout");
        command
            .args(["30", "sh", "-c", &text])
            .current_dir(&self.root)
            .env_clear();
        environment(self.dir.path())
            .iter()
            .for_each(|(name, value)| {
                command.env(name, value);
            });
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        if std::env::var_os("YOI_TEST_SHOW").is_some() {
            println!("git {words}: {output:?}");
        }
        output
    }

    /// Whether the person's git ran what was planted.
    pub(crate) fn ran(&self, words: &str) -> bool {
        fs::remove_file(self.canary()).ok();
        self.git(words);
        let ran = self.canary().exists();
        fs::remove_file(self.canary()).ok();
        ran
    }

    pub(crate) fn answer(&self, words: &str) -> String {
        String::from_utf8(self.git(words).stdout)
            .unwrap()
            .trim()
            .to_owned()
    }
}

fn read_below(root: &Path, dir: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(root.join(dir)).unwrap() {
        let path = dir.join(entry.unwrap().file_name());
        if root.join(&path).is_dir() {
            read_below(root, &path, files);
        } else {
            files.push((path.clone(), fs::read(root.join(path)).unwrap()));
        }
    }
}

fn environment(base: &Path) -> Vec<(&'static str, String)> {
    let base = base.canonicalize().unwrap();
    vec![
        ("HOME", base.join("home").to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TMPDIR", base.join("tmp").to_str().unwrap().to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ("TERM", "xterm".to_owned()),
        // Nobody is there to leave the editor that git would start else.
        ("EDITOR", "true".to_owned()),
    ]
}

fn spawner(base: &Path) -> Spawner {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let env = environment(base)
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()));
    let env = EnvPolicy::from_vars(env, &[]).unwrap();
    let confinement = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let tag = format!(
        "git/{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    Spawner::new(&ambient(), confinement, env, tag).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

pub(crate) fn ambient() -> Ambient {
    ambient::claim()
}

/// What was done, with the path below the root and the keys.
pub(crate) fn told(scene: &Scene, found: &[GitFinding]) -> Vec<String> {
    let word = |what: &Handled| match what {
        Handled::PutBack => "put back",
        Handled::Removed => "removed",
        Handled::Left => "left",
        Handled::Failed(_) => "failed",
        Handled::Changed => "changed",
        Handled::Gone => "gone",
        Handled::Bound => "bound",
        Handled::More(_) => "more",
    };
    let line = |finding: &GitFinding| {
        let path = finding
            .path
            .strip_prefix(&scene.root)
            .unwrap_or(&finding.path)
            .display();
        let keys = if finding.keys.is_empty() {
            String::new()
        } else {
            format!(" {}", finding.keys.join(" "))
        };
        format!("{} {path}{keys}", word(&finding.what))
    };
    let mut told: Vec<_> = found.iter().map(line).collect();
    told.sort();
    told
}
