//! The release binary as a child process, in a home of its own.

use crate::machine;
use crate::server::{Arrival, Server};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The program and where it works.
pub struct Program {
    binary: PathBuf,
    root: TempDir,
}

/// One run of it.
#[derive(Clone, Debug)]
pub struct Ran {
    /// From before the process was made to the first byte of its first request.
    pub start: Duration,
    /// To its end.
    pub whole: Duration,
    /// Its requests.
    pub arrivals: Vec<Arrival>,
}

impl Program {
    /// Configures it for a server.
    #[must_use]
    pub fn new(binary: &Path, server: &Server) -> Self {
        let root = machine::scratch();
        for dir in ["home", "state", "config/yoi", "project", "tmp"] {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        let provider =
            format!("[providers.bench]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:{}/v1\"\n", server.port);
        fs::write(root.path().join("config/yoi/config.toml"), provider).unwrap();
        Self { binary: binary.to_owned(), root }
    }

    /// The directory it works in.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// Runs the pod `name` through `calls` calls of `true`.
    #[must_use]
    pub fn run(&self, server: &Server, name: &str, calls: usize) -> Ran {
        self.kept_waiting(server, name, calls, Duration::ZERO)
    }

    /// The same, with a last answer that comes only after this time.
    #[must_use]
    pub fn kept_waiting(&self, server: &Server, name: &str, calls: usize, keep: Duration) -> Ran {
        server.expect(calls, "true");
        server.keep_waiting(keep);
        let dir = |name: &str| self.root.path().join(name);
        let mut command = Command::new(&self.binary);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", dir("home"));
        command.env("XDG_STATE_HOME", dir("state")).env("XDG_CONFIG_HOME", dir("config")).env("TMPDIR", dir("tmp"));
        command.arg("-C").arg(self.project());
        command.args(["run", "--quiet", "-m", "bench/model", "--max-steps", "100000", "--pod", name, "go"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        server.watch(child.id());
        let status = child.wait().unwrap();
        let whole = began.elapsed();
        assert!(status.success(), "the measured run ended with {status}");
        let arrivals = server.arrivals();
        assert_eq!(arrivals.len(), calls + 1);
        let first = arrivals.first().unwrap().at;
        Ran { start: first.duration_since(began), whole, arrivals }
    }
}

impl Ran {
    /// Milliseconds from each request to the next.
    #[must_use]
    pub fn steps(&self) -> Vec<f64> {
        let pairs = self.arrivals.iter().zip(self.arrivals.iter().skip(1));
        pairs.map(|(one, next)| crate::ratio::ms(next.at.duration_since(one.at))).collect()
    }
}
