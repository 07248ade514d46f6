//! What the first request of a new pod costs in bytes, with the program's own prompt and tools. This test is also the
//! program: it starts itself as `yoi`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a run that fails is a failed test"
)]

use llm_worker::projection::{Projection, Surface};
use provider::openai_chat::{Chat, Flavour};
use serde_json::Value;
use std::process::{Command, ExitCode};
use std::sync::Arc;

/// Set to anything: be `yoi`.
const ROLE: &str = "YOI_TEST_ROLE";
/// System prompt and default tools, as the first request carries them.
const MOST: u64 = 8_000;

fn main() -> ExitCode {
    // What holds the namespaces of its commands has another environment.
    if std::env::var_os(ROLE).is_some()
        || std::env::args()
            .nth(1)
            .is_some_and(|word| word == "__helper")
    {
        return yoi::Program::new().main(std::env::args_os());
    }
    let surface = surface();
    assert_eq!(surface.tools.len(), 12, "the default tools");
    for flavour in Flavour::ALL {
        let bytes = Projection::new(&surface, Arc::new(Chat(flavour)))
            .body()
            .len;
        println!("{flavour:?}: {bytes} bytes of at most {MOST}");
        assert!(
            bytes <= MOST,
            "{bytes} bytes of system prompt and tools, at most {MOST}"
        );
    }
    ExitCode::SUCCESS
}

/// The surface that a run of the program records.
fn surface() -> Surface {
    let place = bench::machine::scratch();
    let project = place.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env(ROLE, "1");
    for (variable, dir) in [
        ("HOME", "home"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CONFIG_HOME", "config"),
    ] {
        command.env(variable, place.path().join(dir));
    }
    command.arg("-C").arg(&project).args([
        "run",
        "--json",
        "-m",
        "offline",
        "how many rust files are here?",
    ]);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let mut records = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    let mut set = records.find(|record| record["k"] == "surface").unwrap();
    serde_json::from_value(set["surface"].take()).unwrap()
}
