//! What the process tests have in common: a place with a project, a home with keys, and a program that tries things.

use authority::{
    ChildResult, Confinement, EnvPolicy, Error, HelperProgram, Job, SandboxMode, Spawner,
    become_subreaper, support,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Longer than any test should take; reaching it is a failure.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// The probe, compiled once per test binary with the linker Rust needs anyway.
pub(crate) fn probe() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("authority");
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("probe");
        let made = dir.join(format!("probe-{}", std::process::id()));
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/children");
        let sources = ["probe.c", "escape.c", "writable.c"].map(|name| sources.join(name));
        let built = Command::new("cc")
            .arg("-o")
            .arg(&made)
            .args(sources)
            .arg("-lutil")
            .status();
        assert!(built.expect("cc, Rust's linker").success());
        // Another test binary may be running the one that is there.
        std::fs::rename(&made, &path).unwrap();
        path
    })
}

/// Whether confinement can be tested here; where not, that is asserted instead of passing silently.
pub(crate) fn confinable() -> bool {
    if support().missing().is_none() {
        return true;
    }
    let place = Place::new();
    let refused = place
        .spawner(SandboxMode::WorkspaceWrite)
        .expect_err("a confinement this kernel cannot enforce");
    assert_eq!(refused.kind(), authority::ErrorKind::Unavailable);
    assert!(
        refused.to_string().contains(support().missing().unwrap()),
        "{refused}"
    );
    eprintln!("left out: this kernel offers {:?}", support());
    false
}

pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) vars: Vec<(OsString, OsString)>,
    pub(crate) pass: Vec<String>,
    pub(crate) read: Vec<PathBuf>,
    /// Beside the project.
    pub(crate) write: Vec<PathBuf>,
    pub(crate) tag: String,
    pub(crate) apart: tokio::sync::Mutex<Vec<(SandboxMode, Option<Spawner>)>>,
}

impl Place {
    pub(crate) fn new() -> Self {
        // Before: the compiler is a child that a subreaper would end as a stranger.
        probe();
        become_subreaper(&ambient::claim()).unwrap();
        // Not below /tmp of the sandbox's own making, and canonical.
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let [home, outside] = ["home", "outside"].map(|name| root.join(name));
        let project = home.join("project");
        let state = home.join(".local/state/yoi");
        for path in [
            &project,
            &outside,
            &state,
            &home.join(".ssh"),
            &home.join(".cargo/registry"),
        ] {
            std::fs::create_dir_all(path).unwrap();
        }
        std::fs::write(home.join(".ssh/id"), "key").unwrap();
        std::fs::write(home.join(".cargo/credentials.toml"), "key").unwrap();
        std::fs::write(home.join(".cargo/registry/crate"), "code").unwrap();
        std::fs::write(state.join("other"), "session").unwrap();
        std::fs::write(outside.join("file"), "outside").unwrap();
        std::fs::write(project.join("file"), "inside").unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let vars = [
            ("HOME", home.clone().into_os_string()),
            ("PATH", path),
            ("SECRET_THING", "s3cret".into()),
        ];
        let vars = vars
            .into_iter()
            .map(|(name, value)| (OsString::from(name), value))
            .collect();
        let read = vec![probe().parent().unwrap().to_owned()];
        let tag = format!(
            "s{}/1",
            root.file_name()
                .unwrap()
                .to_string_lossy()
                .trim_start_matches('.')
        );
        Self {
            dir,
            home,
            project,
            outside,
            state,
            vars,
            pass: Vec::new(),
            read,
            write: Vec::new(),
            tag,
            apart: Default::default(),
        }
    }

    pub(crate) fn spawner(&self, mode: SandboxMode) -> Result<Spawner, Error> {
        let write = std::iter::once(&self.project)
            .chain(&self.write)
            .cloned()
            .collect();
        let confinement = Confinement {
            mode,
            read: self.read.clone(),
            write,
        };
        let env = EnvPolicy::from_vars(self.vars.clone(), &self.pass)?;
        Spawner::new(&ambient::claim(), confinement, env, self.tag.clone())
    }

    pub(crate) fn job(&self, program: impl AsRef<Path>, args: &[&str]) -> Job {
        Job {
            program: program.as_ref().into(),
            args: args.iter().map(OsString::from).collect(),
            cwd: self.project.clone(),
            call: "c00000001".to_owned(),
            deadline: LONG,
            input: Vec::new(),
        }
    }

    /// What the probe says when confined: this; and the like in namespaces of its own, where what is not given does not
    /// exist, and a child has a network, shared memory and terminals of its own.
    pub(crate) async fn tries(&self, caged: &Spawner, args: &[&str], inside: &str) {
        assert_eq!(self.says(caged, args).await, inside, "caged {args:?}");
        let mut known = self.apart.lock().await;
        if known.iter().all(|(mode, _)| *mode != caged.mode()) {
            known.push((caged.mode(), apart(self, caged.mode())));
        }
        let Some(apart) = known
            .iter()
            .find(|(mode, _)| *mode == caged.mode())
            .and_then(|(_, some)| some.as_ref())
        else {
            return;
        };
        let said = self.says(apart, args).await;
        let own = match args {
            ["socket", "1" | "2" | "10" | "16", kind] => {
                !["EPERM", "ENETUNREACH"].contains(&said.as_str()) || *kind == "3"
            }
            // A socket with a path in the project is in reach.
            ["unix", path, ..] if path.starts_with('/') => said == "ok",
            ["socketpair" | "pair-sendto" | "shmget" | "openpty", ..] => said == "ok",
            ["list", "/dev/pts"] => said == "ok",
            // What is there was given; its names are seen.
            ["list", _dir] if inside == "EACCES" => {
                ["ok", "ENOENT", "EACCES"].contains(&said.as_str())
            }
            // In a copy.
            [_op, path, ..] if path.contains("/.cargo/registry/") => said == "ok",
            // Its own, and not written where something below is only read.
            ["write", "/tmp/yoi-probe-new"] => ["ok", "EACCES"].contains(&said.as_str()),
            ["chmod", ..] => said == "ENOENT",
            // The try before made it.
            ["link" | "mkfifo", ..] if inside == "ok" => said == "EEXIST",
            _of_the_machine => (inside == "ok") == (said == "ok") && said != "EOF",
        };
        assert!(own, "in namespaces {args:?}: {said}");
    }

    /// What the probe said.
    pub(crate) async fn says(&self, spawner: &Spawner, args: &[&str]) -> String {
        let (_, output) = run(spawner, self.job(probe(), args)).await.unwrap();
        output.trim().to_owned()
    }
}

pub(crate) fn helped(place: &Place, mode: SandboxMode) -> Spawner {
    let program = HelperProgram::new(
        &ambient::claim(),
        env!("CARGO_BIN_EXE_authority-helper").into(),
        "".into(),
    );
    place.spawner(mode).unwrap().with_helper(program)
}

/// None where this machine has no namespaces for this user.
pub(crate) fn apart(place: &Place, mode: SandboxMode) -> Option<Spawner> {
    let spawner = confinable().then(|| helped(place, mode))?;
    match spawner.try_confinement().unwrap() {
        None => Some(spawner),
        Some(why) => {
            let root = rustix::process::geteuid().is_root();
            let flags = if root { "-mnpi" } else { "-Umnpi" };
            let can = Command::new("unshare")
                .args([flags, "--fork", "true"])
                .status()
                .is_ok_and(|ended| ended.success());
            assert!(!can, "this machine has namespaces: {why}");
            eprintln!("left out: no namespaces here: {why}");
            None
        }
    }
}

pub(crate) async fn run(spawner: &Spawner, job: Job) -> Result<(ChildResult, String), Error> {
    let mut output = Vec::new();
    let keep = |bytes: &[u8]| {
        output.extend_from_slice(bytes);
        Ok(())
    };
    let ended = spawner.run(job, keep, &CancellationToken::new()).await?;
    Ok((ended, String::from_utf8_lossy(&output).into_owned()))
}
