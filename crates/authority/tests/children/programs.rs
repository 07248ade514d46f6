//! The programs an agent lives by work inside the sandbox.

use super::shared::{Place, confinable, run};
use authority::{Ended, How, Job, SandboxMode, Spawner};

/// The host's own home, so that its toolchains are what is tested.
fn place_with_toolchains() -> Place {
    let mut place = Place::new();
    let names = ["HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "PYENV_ROOT", "NVM_DIR"];
    place.vars.retain(|(name, _)| name != "HOME");
    place.vars.extend(names.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?))));
    place
}

/// `None`, said aloud, when the program is not there.
async fn succeeds(spawner: &Spawner, job: Job) -> Option<(Ended, String)> {
    let name = job.program.to_string_lossy().into_owned();
    match run(spawner, job).await {
        Ok((ended, output)) => {
            assert_eq!(ended.how, How::Exit(0), "{name}: {output}");
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
    let Some((_, output)) = succeeds(&spawner, place.job("cargo", &["test", "--offline"])).await else { return };
    assert!(output.contains("1 passed"), "{output}");
    assert!(!output.contains("warning") && !output.contains("Permission denied"), "{output}");
}

#[tokio::test]
async fn git_commit() {
    if !confinable() {
        return;
    }
    let place = place_with_toolchains();
    let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let script = "git init -q . && git add file && git -c user.name=a -c user.email=a@b.c commit -qm first && git log --oneline | wc -l && git status --short | wc -l";
    let Some((_, output)) = succeeds(&spawner, place.job("sh", &["-c", script])).await else { return };
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
    let Some((_, output)) = succeeds(&spawner, place.job("python3", &["-m", "unittest"])).await else { return };
    assert!(output.contains("Ran 1 test") && output.contains("OK"), "{output}");
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
    let Some((_, output)) = succeeds(&spawner, place.job("node", &["-e", code])).await else { return };
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
    let (_, output) = run(&spawner, place.job("bash", &["-c", script])).await.unwrap();
    assert_eq!(output.lines().collect::<Vec<_>>(), ["out", "err", "to", "b", "a", "here"], "{output}");
}
