//! A key that a command prints: `key = { command = ["pass", "show", "x"] }`.
//!
//! The command is the person's own, from their own file, and may ask them on the terminal, so it stays in the terminal's
//! foreground group. It runs in `/`: nothing of a project is found by a relative name. What it prints and how long it
//! takes are bounded; beyond that it is ended with all it started, known by the mark that children of a run carry.

use crate::config::INHERITED;
use crate::env::Env;
use authority::{HostChild, end_survivors};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The most it may print, in bytes. The key is the first line.
const MAX_PRINTED: u64 = 64 * 1024;

/// How long it may take: a person may have to find a password first.
const LIMIT: Duration = Duration::from_secs(300);

/// How long its output is waited for once it ended, when something it started holds the other end open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(5);

pub(super) const PLACE: &str = "/";

/// Why a command gives no key: a clause about the command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyCommandError {
    pub(super) what: String,
    /// The next step, where it is not to test the command.
    pub(super) help: Option<&'static str>,
}

impl<T: Into<String>> From<T> for KeyCommandError {
    fn from(what: T) -> Self {
        Self {
            what: what.into(),
            help: None,
        }
    }
}

/// What the command prints; `file` is its program, from [`program`].
pub(super) fn printed(file: &Path, words: &[String], env: &Env) -> Result<String, KeyCommandError> {
    within(file, words, env, LIMIT)
}

fn within(
    file: &Path,
    words: &[String],
    env: &Env,
    limit: Duration,
) -> Result<String, KeyCommandError> {
    let (program, args) = words.split_first().ok_or("names no program")?;
    let mark = match env.text(INHERITED) {
        Some(outer) => format!("{outer}/key-{}", std::process::id()),
        None => format!(
            "key-{}-{}",
            std::process::id(),
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_nanos()
        ),
    };
    let mut command = Command::new(file);
    command
        .arg0(program)
        .args(args)
        .current_dir(PLACE)
        .env("PWD", PLACE)
        .env_remove("OLDPWD")
        .env(INHERITED, &mark);
    command
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .stdout(Stdio::piped());
    // In a pod that runs calls, their ends do not end it.
    let started = HostChild::spawn(&ambient::claim(), &mut command);
    let mut child =
        started.map_err(|error| format!("cannot start: {}", authority::explain(&error)))?;
    let (status, bytes) = match watch(&mut child, limit) {
        Ok(done) => done,
        Err(what) => {
            // It has ended, or cannot be asked any more.
            drop(child.kill());
            drop(child.wait());
            drop(end_survivors(&ambient::claim(), &mark));
            return Err(what);
        }
    };
    if !status.success() {
        return Err(match status.code() {
            Some(code) => format!("ended with exit code {code}").into(),
            None => format!("ended with {status}").into(),
        });
    }
    String::from_utf8(bytes).map_err(|_| "printed bytes that are not text".into())
}

/// Waits for its end and its output, whichever way they come.
fn watch(child: &mut Child, limit: Duration) -> Result<(ExitStatus, Vec<u8>), KeyCommandError> {
    let stdout = child.stdout.take().ok_or("has no readable output")?;
    let (pieces, read) = mpsc::channel();
    // Ends when the last holder of the other end does, or when nobody listens.
    let reads = move || {
        let mut stdout = stdout.take(MAX_PRINTED + 1);
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = stdout.read(&mut piece) {
            if pieces
                .send(piece.get(..length).unwrap_or_default().to_vec())
                .is_err()
            {
                return;
            }
        }
    };
    thread::Builder::new()
        .spawn(reads)
        .map_err(|_| "cannot be read: no thread can be started")?;
    let mut bytes = Vec::new();
    let mut open = true;
    let begun = Instant::now();
    let mut ended = None;
    loop {
        match read.recv_timeout(LOOK) {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(RecvTimeoutError::Disconnected) => open = false,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if bytes.len() as u64 > MAX_PRINTED {
            let what = format!("prints more than {} KiB", MAX_PRINTED >> 10);
            return Err(KeyCommandError {
                what,
                help: Some("use a command that prints only the key"),
            });
        }
        if ended.is_none() {
            ended = child
                .try_wait()
                .map_err(|error| error.to_string())?
                .map(|status| (status, Instant::now()));
        }
        match ended {
            Some((status, at)) if !open || at.elapsed() > LAST_WORDS => return Ok((status, bytes)),
            None if begun.elapsed() > limit => {
                return Err(
                    format!("took longer than {} s and was stopped", limit.as_secs()).into(),
                );
            }
            Some(_) => {}
            // The rest of its life is not waited for in a circle.
            None if !open => thread::sleep(LOOK),
            None => {}
        }
    }
}

/// The program's file. A name is looked for in the absolute directories of PATH; a path is absolute or begins with `~/`.
/// The error is a sentence.
pub(super) fn program(program: &str, env: &Env) -> Result<PathBuf, KeyCommandError> {
    if let Some(rest) = program.strip_prefix("~/") {
        return env
            .home()
            .map(|home| home.join(rest))
            .map_err(|failure| failure.message.into());
    }
    let path = Path::new(program);
    if path.is_absolute() {
        return Ok(path.to_path_buf());
    }
    if program.contains('/') {
        let what = format!("`{program}` is a relative path, but the command runs in {PLACE}");
        return Err(KeyCommandError {
            what,
            help: Some("use an absolute path, ~/… or a name on PATH"),
        });
    }
    let runs = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let dirs = env
        .var("PATH")
        .map(|dirs| std::env::split_paths(dirs).collect::<Vec<_>>())
        .unwrap_or_default();
    let mut files = dirs
        .iter()
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program));
    files.find(runs).ok_or_else(|| KeyCommandError {
        what: format!("there is no program `{program}` in the directories of PATH (relative ones are not searched)"),
        help: Some("install the program, or write its absolute path"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Duration) -> Result<String, KeyCommandError> {
        let words = ["sh", "-c", script].map(str::to_owned);
        within(
            Path::new("/bin/sh"),
            &words,
            &Env::of_process(
                None,
                crate::added::AddedFeatures::default(),
                crate::words::Words::default(),
            )
            .unwrap(),
            limit,
        )
    }

    #[test]
    fn what_takes_too_long_is_ended_with_all_it_started() {
        let noted = tempfile::NamedTempFile::new().unwrap();
        let script = format!(
            "setsid sleep 613 & echo $! > {}; sleep 614",
            noted.path().display()
        );
        let failure = run(&script, Duration::from_secs(2)).unwrap_err();
        assert!(failure.what.contains("took longer than 2 s"), "{failure:?}");
        let pid = std::fs::read_to_string(noted.path()).unwrap();
        assert!(
            !pid.trim().is_empty() && !Path::new("/proc").join(pid.trim()).join("exe").exists(),
            "{pid}"
        );
    }

    /// An agent that the command leaves behind holds its output open, and is nobody's to end.
    #[test]
    fn what_goes_on_behind_it_is_not_waited_for() {
        let begun = Instant::now();
        assert_eq!(
            run("echo key; sleep 20 & echo more", LIMIT),
            Ok("key\nmore\n".to_owned())
        );
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "{:?}",
            begun.elapsed()
        );
    }
}
