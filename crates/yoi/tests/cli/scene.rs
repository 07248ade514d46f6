//! A project, a home, configuration, state and temporary directories, and the program started among them.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Once, mpsc};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use tokio::signal::unix::SignalKind;

/// A process that takes longer hangs: it is ended, and its test fails.
const HANGS: Duration = Duration::from_secs(90);

/// Everything a process of the program sees.
pub(crate) struct Scene {
    dir: TempDir,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// The exit code; none when a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(
            self.code(),
            Some(code),
            "{:?}\n--- out\n{}\n--- err\n{}",
            self.status,
            self.out,
            self.err
        );
        self
    }

    /// Asserts that standard error says all of it.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in\n{}", self.err);
        }
        self
    }

    /// Asserts that standard output has all of it.
    #[track_caller]
    pub(crate) fn prints(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.out.contains(word), "`{word}` is not in\n{}", self.out);
        }
        self
    }

    /// Asserts how many lines of standard error have these words.
    #[track_caller]
    pub(crate) fn lines_with(&self, words: &str, count: usize) {
        let found = self.err.lines().filter(|line| line.contains(words)).count();
        assert_eq!(found, count, "lines with `{words}` in\n{}", self.err);
    }

    /// Standard output as JSON Lines.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }

    /// Standard output as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect(&self.out)
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        for name in ["home", "config/yoi", "state", "tmp", "project/.git"] {
            fs::create_dir_all(scene.path(name)).unwrap();
        }
        scene
    }

    /// A path beside the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A path in the project.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path("project").join(name)
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A file of the project as it is.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// Writes the user's configuration.
    pub(crate) fn config(&self, text: &str) -> &Self {
        fs::write(self.path("config/yoi/config.toml"), text).unwrap();
        self
    }

    /// Where a pod is.
    pub(crate) fn pod(&self, name: &str) -> PathBuf {
        self.path("state/yoi/pods").join(name)
    }

    /// The newest segment of a pod's log.
    pub(crate) fn log_file(&self, name: &str) -> PathBuf {
        let files = fs::read_dir(self.pod(name).join("log"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .max()
            .unwrap()
    }

    /// The pods there are.
    pub(crate) fn pods(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path("state/yoi/pods")) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A script for `scripted:FILE`, an answer a line; gives the model's name.
    pub(crate) fn script(&self, name: &str, answers: &[Value]) -> String {
        let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
        let path = self.path(name);
        fs::write(&path, lines.join("\n")).unwrap();
        format!("scripted:{}", path.display())
    }

    /// The program, to be started in the project with nothing on standard input.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        heed_signals();
        let mut command = Command::new(env!("CARGO_BIN_EXE_yoi"));
        command
            .args(args)
            .current_dir(self.path("project"))
            .env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"));
        command
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"));
        command.env("TMPDIR", self.path("tmp"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A copy of the program. Not written by this process: a child that another test starts meanwhile would hold the file open
    /// for writing, and then it cannot run.
    pub(crate) fn own_program(&self) -> PathBuf {
        let copy = self.path("yoi");
        assert!(
            Command::new("cp")
                .arg(env!("CARGO_BIN_EXE_yoi"))
                .arg(&copy)
                .status()
                .unwrap()
                .success()
        );
        copy
    }

    /// Runs the program to its end.
    pub(crate) fn yoi(&self, args: &[&str]) -> Done {
        finish(self.command(args).spawn().unwrap())
    }

    /// The same with this on standard input.
    pub(crate) fn fed(&self, args: &[&str], input: &[u8]) -> Done {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeding = thread::spawn(move || drop(stdin.write_all(&input)));
        let done = finish(child);
        feeding.join().unwrap();
        done
    }

    /// The records of a pod.
    #[track_caller]
    pub(crate) fn records(&self, pod: &str) -> Vec<Value> {
        self.yoi(&["log", pod, "--json"]).ends(0).lines()
    }

    /// Asserts that a pod verifies, and that every call has exactly one result. Gives the number of calls.
    #[track_caller]
    pub(crate) fn sound(&self, pod: &str) -> usize {
        let verified = self.yoi(&["verify", pod, "--json"]).ends(0).json();
        assert_eq!(verified["ok"], true);
        assert_eq!(verified["bodies"], verified["requests"]);
        let records = self.records(pod);
        let of = |kind: &str, id: &dyn Fn(&Value) -> Option<String>| {
            let mut ids: Vec<String> = records
                .iter()
                .filter(|r| r["k"] == kind)
                .filter_map(id)
                .collect();
            ids.sort();
            ids
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let calls = of("item", &|r| {
            text(&r["item"]["id"]).filter(|_| r["item"]["type"] == "tool_call")
        });
        let results = of("tool_finished", &|r| text(&r["call"]));
        assert_eq!(calls, results, "every call has exactly one result");
        calls.len()
    }

    /// What is left in the temporary directory.
    pub(crate) fn left_behind(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    }
}

/// The files below a directory that hold the text.
pub(crate) fn holding(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(holding(&entry.path(), text));
        } else if kind.is_file()
            && String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).contains(text)
        {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

/// Waits for a process, reading all it writes.
pub(crate) fn finish(child: Child) -> Done {
    let id = child.id();
    let (done, told) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if told.recv_timeout(HANGS) == Err(mpsc::RecvTimeoutError::Timeout) {
            signal(id, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watchdog.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Done {
        status: output.status,
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// A shell ignores SIGINT and SIGQUIT for what it puts in the background, `nohup` ignores SIGHUP, and the program
/// leaves them so: a test that interrupts it would then wait for its command's end. What this process catches is not
/// ignored in its children.
fn heed_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .unwrap();
        let ignored = u64::from_str_radix(mask.trim(), 16).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        for kind in [
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::hangup(),
            SignalKind::terminate(),
        ] {
            if ignored & (1 << (kind.as_raw_value() - 1)) != 0 {
                drop(tokio::signal::unix::signal(kind).unwrap());
            }
        }
    });
}

/// A terminal: the end that shows, and the end for programs.
pub(crate) fn terminal() -> (File, File) {
    let shows = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&shows).unwrap();
    unlockpt(&shows).unwrap();
    let name = ptsname(&shows, Vec::new()).unwrap().into_string().unwrap();
    let flags = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
    (
        File::from(shows),
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(name)
            .unwrap(),
    )
}

/// Sends a signal to a process of this test.
pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Whether no such process runs any more; one that its parent has not asked after yet does not run.
pub(crate) fn gone(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return true;
    };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The files of a process are closed when its last thread has ended.
    matches!(fields.first(), Some(&("Z" | "X")))
        && fields
            .get(17)
            .is_none_or(|threads| matches!(*threads, "0" | "1"))
}

/// Makes a FIFO.
pub(crate) fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// Waits until somebody has opened the FIFO for writing and closed it again.
pub(crate) fn reached(path: &Path) -> String {
    let (came, told) = mpsc::channel::<()>();
    let gate = path.to_owned();
    let watchdog = thread::spawn(move || {
        if told.recv_timeout(HANGS) == Err(mpsc::RecvTimeoutError::Timeout) {
            // Nobody came: lets the reader go, with nothing.
            fs::write(gate, "").unwrap();
        }
    });
    let said = std::io::read_to_string(File::open(path).unwrap()).unwrap();
    drop(came);
    watchdog.join().unwrap();
    assert!(!said.is_empty(), "nobody came to {}", path.display());
    here(said.trim(), path.parent().unwrap()).unwrap_or(said)
}

/// The number here of the process in this directory with this number in a namespace of its own.
fn here(number: &str, dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find_map(|process| {
            let status = fs::read_to_string(process.join("status")).ok()?;
            let inside = status
                .lines()
                .find_map(|line| line.strip_prefix("NSpid:"))?
                .split_whitespace()
                .last()?;
            let is_it =
                inside == number && fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == dir);
            is_it.then(|| process.file_name().unwrap().to_string_lossy().into_owned())
        })
}
