//! The program as a child process, in a home of its own: runs, and pods that stay.

use crate::clients::{Driver, Watcher};
use crate::machine::{self, Usage};
use crate::server::{Arrival, Server};
use crate::terminal::Terminal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a pod is idle before it is measured: a thread that ran a callback waits ten seconds for the next one.
const UNUSED: Duration = Duration::from_secs(12);

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

/// A manifest as authors write it.
const PLUGIN: &str = include_str!("../../../docs/plugins/hello/plugin.toml");

impl Program {
    /// Configures it for a server.
    #[must_use]
    pub fn new(binary: &Path, server: &Server) -> Self {
        let root = machine::scratch();
        for dir in ["home", "state", "config/yoi", "project", "tmp"] {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        let provider = format!(
            "[providers.bench]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:{}/v1\"\n",
            server.port
        );
        fs::write(root.path().join("config/yoi/config.toml"), provider).unwrap();
        Self {
            binary: binary.to_owned(),
            root,
        }
    }

    /// Enables the feature that runs jobs, for the pods that start from now on.
    pub fn enable_jobs(&self) {
        let path = self.root.path().join("config/yoi/config.toml");
        let with_jobs =
            fs::read_to_string(&path).unwrap() + "[features.\"builtin:jobs\"]\nenabled = true\n";
        fs::write(path, with_jobs).unwrap();
    }

    /// Adds so many plugins, which nobody granted.
    pub fn add_plugins(&self, count: usize) {
        for number in 0..count {
            let dir = self
                .root
                .path()
                .join(format!("config/yoi/plugins/p{number}"));
            let manifest = PLUGIN.replace("hello_greet", &format!("p{number}_greet"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(
                dir.join("plugin.toml"),
                manifest.replace("\"hello\"", &format!("\"p{number}\"")),
            )
            .unwrap();
        }
    }

    /// Adds a plugin with these files.
    pub fn add_package(&self, name: &str, files: &[(&str, &str)]) {
        let dir = self.root.path().join("config/yoi/plugins").join(name);
        fs::create_dir_all(&dir).unwrap();
        for (file, text) in files {
            fs::write(dir.join(file), text).unwrap();
        }
    }

    /// Grants all plugins.
    pub fn grant_all(&self) {
        drop(self.output(&["grant", "--all"]));
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
        self.ran(server, name, calls)
    }

    /// Runs the pod `name` through so many calls of this tool with these arguments.
    #[must_use]
    pub fn calls(
        &self,
        server: &Server,
        name: &str,
        calls: usize,
        (tool, arguments): (&'static str, Value),
    ) -> Ran {
        server.expect_tool(calls, tool, arguments);
        self.ran(server, name, calls)
    }

    fn ran(&self, server: &Server, name: &str, calls: usize) -> Ran {
        let mut command = self.command();
        command.args([
            "run",
            "--quiet",
            "-m",
            "bench/model",
            "--max-steps",
            "100000",
            "--pod",
            name,
            "go",
        ]);
        let began = Instant::now();
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        server.watch(child.id());
        let status = child.wait().unwrap();
        let whole = began.elapsed();
        assert!(status.success(), "the measured run ended with {status}");
        let arrivals = server.arrivals();
        assert_eq!(arrivals.len(), calls + 1);
        let first = arrivals.first().unwrap().at;
        Ran {
            start: first.duration_since(began),
            whole,
            arrivals,
        }
    }

    /// Where the program keeps its pods.
    #[must_use]
    pub fn pods(&self) -> PathBuf {
        self.root.path().join("state/yoi/pods")
    }

    /// Starts the pod `name` as a process that stays; its number.
    pub fn start(&self, name: &str) -> u32 {
        let started = self.output(&["start", name, "--json", "-q", "-m", "bench/model"]);
        let answer: Value = serde_json::from_slice(&started.stdout).unwrap();
        answer
            .get("pid")
            .and_then(Value::as_u64)
            .and_then(|pid| u32::try_from(pid).ok())
            .unwrap()
    }

    /// Ends it.
    pub fn stop(&self, name: &str) {
        drop(self.output(&["stop", name]));
    }

    /// Starts the pod `name` as a process that stays, and takes it through one turn of `calls` calls of `true`, watched by
    /// `clients` attached clients. Milliseconds of its steps.
    #[must_use]
    pub fn watched(&self, server: &Server, name: &str, calls: usize, clients: usize) -> Vec<f64> {
        server.watch(self.start(name));
        let dir = self.pods().join(name);
        let mut driver = Driver::connect(&dir);
        let watchers: Vec<Watcher> = (0..clients).map(|_| Watcher::attach(&dir)).collect();
        server.expect(calls, "true");
        driver.turn();
        for watcher in watchers {
            let read = watcher.leave();
            assert!(
                read > 1000 * calls as u64,
                "{read} bytes for a client that sees {calls} steps"
            );
        }
        self.stop(name);
        steps(&server.arrivals())
    }

    /// What the pod `name` has in use as a process that stays, once it has been idle for a while.
    #[must_use]
    pub fn idle(&self, name: &str) -> Usage {
        let pid = self.start(name);
        thread::sleep(UNUSED);
        let usage = machine::usage(pid);
        self.stop(name);
        usage
    }

    /// What `yoi ls --all` prints, and how long it takes.
    #[must_use]
    pub fn list(&self) -> (String, Duration) {
        let began = Instant::now();
        let output = self.output(&["ls", "--all"]);
        (String::from_utf8(output.stdout).unwrap(), began.elapsed())
    }

    /// The program with these arguments, on a terminal of 140 columns and 45 rows.
    #[must_use]
    pub fn at_terminal(&self, args: &[&str]) -> Terminal {
        let mut command = self.command();
        command.args(args);
        Terminal::start(&command)
    }

    fn output(&self, args: &[&str]) -> Output {
        let output = self.command().args(args).output().unwrap();
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    fn command(&self) -> Command {
        let dir = |name: &str| self.root.path().join(name);
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", dir("home"));
        command
            .env("XDG_STATE_HOME", dir("state"))
            .env("XDG_CONFIG_HOME", dir("config"))
            .env("TMPDIR", dir("tmp"));
        command.arg("-C").arg(self.project()).stdin(Stdio::null());
        command
    }
}

impl Ran {
    /// Milliseconds from each request to the next.
    #[must_use]
    pub fn steps(&self) -> Vec<f64> {
        steps(&self.arrivals)
    }
}

fn steps(arrivals: &[Arrival]) -> Vec<f64> {
    let pairs = arrivals.iter().zip(arrivals.iter().skip(1));
    pairs
        .map(|(one, next)| crate::ratio::ms(next.at.duration_since(one.at)))
        .collect()
}
