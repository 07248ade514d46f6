//! The programs an agent lives by work inside the sandbox.

use super::shared::{Place, confinable, run};
use authority::{ChildExit, ChildResult, Job, SandboxMode, Spawner};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The host's own home, so that its toolchains are what is tested.
pub(crate) fn place_with_toolchains() -> Place {
    let mut place = Place::new();
    let names = [
        "HOME",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "PYENV_ROOT",
        "NVM_DIR",
    ];
    place.vars.retain(|(name, _)| name != "HOME");
    place.vars.extend(
        names
            .iter()
            .filter_map(|name| Some(((*name).into(), std::env::var_os(name)?))),
    );
    place
}

/// `None`, said aloud, when the program is not there.
async fn succeeds(spawner: &Spawner, job: Job) -> Option<(ChildResult, String)> {
    let name = job.program.to_string_lossy().into_owned();
    match run(spawner, job).await {
        Ok((ended, output)) => {
            assert_eq!(ended.how, ChildExit::Exit(0), "{name}: {output}");
            Some((ended, output))
        }
        Err(error) if error.to_string().contains("no such program") => {
            eprintln!("left out: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn cargo_test_offline() {
    if !confinable() {
        return;
    }
    let place = place_with_toolchains();
    let manifest = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    std::fs::write(place.project.join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(place.project.join("src")).unwrap();
    let code = "#[test]\nfn adds() {\n    let dir = std::env::temp_dir();\n    std::fs::write(dir.join(\"x\"), \"x\").unwrap();\n    \
                let (a, _b) = std::os::unix::net::UnixStream::pair().unwrap();\n    drop(a);\n    \
                std::thread::spawn(|| ()).join().unwrap();\n}\n";
    std::fs::write(place.project.join("src/lib.rs"), code).unwrap();
    let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let Some((_, output)) = succeeds(&spawner, place.job("cargo", &["test", "--offline"])).await
    else {
        return;
    };
    assert!(output.contains("1 passed"), "{output}");
    assert!(
        !output.contains("warning") && !output.contains("Permission denied"),
        "{output}"
    );
}

/// Cargo's own home is only read: builds beside each other and beside a person's neither wait for a lock, nor warn, nor
/// leave a name in the record after which a later cargo removes directories.
#[tokio::test]
async fn cargo_without_its_locks() {
    if !confinable() {
        return;
    }
    let Some((place, cargo)) = place_with_a_registry() else {
        return;
    };
    let names = ["one", "two"];
    for name in names {
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\ncfg-if = \"1\"\n[workspace]\n"
        );
        std::fs::create_dir_all(place.project.join(name).join("src")).unwrap();
        std::fs::write(place.project.join(name).join("Cargo.toml"), manifest).unwrap();
        let code = "cfg_if::cfg_if! { if #[cfg(unix)] { pub fn there() {} } }";
        std::fs::write(place.project.join(name).join("src/lib.rs"), code).unwrap();
    }
    let job = |name: &str, args: &[&str]| {
        let mut job = place.job("cargo", args);
        (job.cwd, job.call) = (place.project.join(name), name.to_owned());
        job
    };
    let free = place.spawner(SandboxMode::Off).unwrap();
    for name in names {
        let (ended, said) = run(&free, job(name, &["generate-lockfile", "--offline"]))
            .await
            .unwrap();
        if ended.how != ChildExit::Exit(0) {
            eprintln!("left out: this crate's dependencies do not come from a registry: {said}");
            return;
        }
    }
    let locks = [".package-cache", ".package-cache-mutate"]
        .map(|name| File::create(cargo.join(name)).unwrap());
    locks.iter().for_each(|lock| lock.lock().unwrap());
    let record = std::fs::read(cargo.join(".global-cache")).unwrap_or_default();
    let caged = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    // As if the network were there, too: what is there already is not looked up.
    let builds = names.map(|name| {
        job(
            name,
            if name == "one" {
                &["check"]
            } else {
                &["check", "--offline"]
            },
        )
    });
    let [one, two] = builds.map(|build| run(&caged, build));
    for ended in <[_; 2]>::from(tokio::join!(one, two)) {
        let (ended, said) = ended.unwrap();
        assert_eq!(ended.how, ChildExit::Exit(0), "{said}");
        assert!(
            !["warning", "Blocking", "ermission"]
                .iter()
                .any(|word| said.contains(word)),
            "{said}"
        );
    }
    let caged = place.spawner(SandboxMode::ReadOnly).unwrap();
    let mut build = place.job(
        "sh",
        &["-c", "CARGO_TARGET_DIR=$TMPDIR cargo check --locked 2>&1"],
    );
    build.cwd = place.project.join("two");
    let (ended, said) = run(&caged, build).await.unwrap();
    assert!(
        ended.how == ChildExit::Exit(0) && !said.contains("warning"),
        "{said}"
    );
    assert_eq!(
        std::fs::read(cargo.join(".global-cache")).unwrap_or_default(),
        record
    );
}

/// A cargo home of its own, with this machine's registry and toolchain. `None` where there is no registry.
fn place_with_a_registry() -> Option<(Place, PathBuf)> {
    let mut place = Place::new();
    let home = std::env::home_dir()?;
    let real = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let cargo = place.home.join(".cargo");
    std::fs::remove_dir_all(cargo.join("registry")).ok()?;
    std::os::unix::fs::symlink(
        real.join("registry").canonicalize().ok()?,
        cargo.join("registry"),
    )
    .ok()?;
    // Not rustup's stand-in for it, which lives in a cargo home.
    let bin = Path::new(&std::env::var_os("CARGO")?).parent()?.to_owned();
    place.read.push(bin.parent()?.to_owned());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path))).ok()?;
    place.vars.retain(|(name, _)| name != "PATH");
    place.vars.push(("PATH".into(), path));
    Some((place, cargo))
}

/// A tool that keeps what it can make again gets a directory for it, and the person's own is left alone.
#[tokio::test]
async fn caches_of_tools_are_the_pods_own() {
    if !confinable() {
        return;
    }
    let mut place = Place::new();
    let names = [
        "XDG_CACHE_HOME",
        "GOCACHE",
        "npm_config_cache",
        "PIP_CACHE_DIR",
        "UV_CACHE_DIR",
        "CCACHE_DIR",
    ];
    place
        .vars
        .extend(names.map(|name| (name.into(), place.home.join(name).into_os_string())));
    // Inherited on demand, and yet no place that cannot be written.
    place.pass = names.map(str::to_owned).to_vec();
    let script = names
        .map(|name| format!("mkdir -p ${name} && echo x >> ${name}/file && cat ${name}/file"))
        .join(" && ");
    let script = format!("{script} && stat -c %a $XDG_CACHE_HOME && echo $XDG_CACHE_HOME");
    for mode in [SandboxMode::WorkspaceWrite, SandboxMode::ReadOnly] {
        let caged = place.spawner(mode).unwrap();
        let (ended, first) = run(&caged, place.job("sh", &["-c", &script]))
            .await
            .unwrap();
        assert_eq!(ended.how, ChildExit::Exit(0), "{first}");
        let dir = Path::new(first.lines().last().unwrap());
        let kept = dir.join("go-build/file");
        assert!(
            first.lines().rev().nth(1) == Some("700") && kept.exists(),
            "{first}"
        );
        // A later call of the same pod finds what was kept; a child that removes it all harms none but later calls.
        let (_, second) = run(&caged, place.job("sh", &["-c", &script]))
            .await
            .unwrap();
        assert!(second.starts_with("x\nx\n"), "{second}");
        let away = "rm -r $XDG_CACHE_HOME && ln -s / $XDG_CACHE_HOME";
        assert_eq!(
            run(&caged, place.job("sh", &["-c", away]))
                .await
                .unwrap()
                .0
                .how,
            ChildExit::Exit(0)
        );
        assert_eq!(
            run(&caged, place.job("true", &[])).await.unwrap().0.how,
            ChildExit::Exit(0)
        );
        let base = dir.parent().unwrap().to_owned();
        drop(caged);
        assert!(!base.exists() && names.iter().all(|name| !place.home.join(name).exists()));
    }
}

#[tokio::test]
async fn git_commit() {
    if !confinable() {
        return;
    }
    let place = place_with_toolchains();
    let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let script = "git init -q . && git add file && git -c user.name=a -c user.email=a@b.c commit -qm first && git log --oneline | wc -l && git status --short | wc -l";
    let Some((_, output)) = succeeds(&spawner, place.job("sh", &["-c", script])).await else {
        return;
    };
    let numbers: Vec<_> = output.split_whitespace().collect();
    assert_eq!(numbers, ["1", "0"], "{output}");
}

#[tokio::test]
async fn python_unittest() {
    if !confinable() {
        return;
    }
    let place = place_with_toolchains();
    let code = "import unittest, tempfile, multiprocessing, subprocess\nclass T(unittest.TestCase):\n    def test(self):\n        \
                tempfile.TemporaryFile().write(b'x')\n        multiprocessing.Lock()\n        \
                self.assertEqual(subprocess.check_output(['echo', 'x']), b'x\\n')\n";
    std::fs::write(place.project.join("test_small.py"), code).unwrap();
    let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let Some((_, output)) = succeeds(&spawner, place.job("python3", &["-m", "unittest"])).await
    else {
        return;
    };
    assert!(
        output.contains("Ran 1 test") && output.contains("OK"),
        "{output}"
    );
}

#[tokio::test]
async fn node() {
    if !confinable() {
        return;
    }
    let place = place_with_toolchains();
    let code = "const {execSync} = require('child_process'); require('fs').writeFileSync('out', 'x'); \
                console.log(execSync('echo child').toString().trim(), require('os').cpus().length > 0)";
    let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let Some((_, output)) = succeeds(&spawner, place.job("node", &["-e", code])).await else {
        return;
    };
    assert_eq!(output.trim(), "child true");
}

#[tokio::test]
async fn a_shell_with_pipes_and_redirections() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let script = "cat < /dev/null; echo out; echo err >&2; echo to > /dev/stdout; (echo a; echo b) | sort -r; cat <<X\nhere\nX\n";
    let (_, output) = run(&spawner, place.job("bash", &["-c", script]))
        .await
        .unwrap();
    assert_eq!(
        output.lines().collect::<Vec<_>>(),
        ["out", "err", "to", "b", "a", "here"],
        "{output}"
    );
}
