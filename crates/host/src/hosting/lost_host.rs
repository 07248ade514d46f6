//! How a process ended that could not record its end in the journal: what is in the directory of its pod for people who look.
//! Nothing acts on it, and a process that is killed leaves nothing.

use crate::exit::Failure;
use crate::pods::grown;
use authority::text::first_line;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The note of a process that could not continue. A later one writes over it.
const NOTE: &str = "end.json";

/// Bytes of the note, and characters of a reason.
const MAX_NOTE: u64 = 4096;
const MAX_WHY: usize = 300;

/// Bytes at the end of the host's log of which the last line is read.
const TAIL: u64 = 4096;

#[derive(Serialize, Deserialize)]
struct EndNote {
    exit: u8,
    message: String,
}

/// The end of a process that the journal does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostHost {
    pub end: HostEnd,
    /// When it wrote the last of it, if it wrote something.
    pub at: Option<SystemTime>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEnd {
    /// It could not continue: its exit code, and one line that says why.
    Failed { exit: u8, why: String },
    /// The last line that it wrote to standard error, as when its stack was full.
    LastWords(String),
    /// The machine was started after the newest record.
    MachineStarted,
    /// Nothing tells.
    Unknown,
}

/// Notes why this process cannot continue. Without the note, nothing tells of its end.
pub fn note_end(dir: &Path, failure: &Failure) {
    let note = EndNote {
        exit: failure.exit.number(),
        message: first_line(&failure.message, MAX_WHY),
    };
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = serde_json::to_vec(&note)
        .map_err(io::Error::from)
        .and_then(|bytes| options.open(dir.join(NOTE))?.write_all(&bytes));
    // It is read as nothing if it is not whole.
    drop(written);
}

/// How the process ended that had the pod in this directory. For a pod without a process, whose journal has no end of it.
#[must_use]
pub fn lost_host(dir: &Path) -> LostHost {
    found(dir, machine_started())
}

fn found(dir: &Path, machine_started: Option<SystemTime>) -> LostHost {
    // What is older was written by an earlier process, or before this one went on.
    let since = grown(dir);
    if let Some((EndNote { exit, message: why }, at)) = note(dir, since) {
        return LostHost {
            end: HostEnd::Failed { exit, why },
            at: Some(at),
        };
    }
    if let Some((words, at)) = last_words(dir, since) {
        return LostHost {
            end: HostEnd::LastWords(words),
            at: Some(at),
        };
    }
    let end = match machine_started {
        Some(started) if started > since => HostEnd::MachineStarted,
        Some(_) | None => HostEnd::Unknown,
    };
    LostHost { end, at: None }
}

fn note(dir: &Path, since: SystemTime) -> Option<(EndNote, SystemTime)> {
    let file = File::open(dir.join(NOTE)).ok()?;
    let at = file.metadata().and_then(|meta| meta.modified()).ok()?;
    let note = serde_json::from_reader(file.take(MAX_NOTE)).ok()?;
    (at >= since).then_some((note, at))
}

/// The last line of the log, unless it is one of the log's own, which begin with the time.
fn last_words(dir: &Path, since: SystemTime) -> Option<(String, SystemTime)> {
    let mut file = File::open(dir.join(crate::host_log::FILE)).ok()?;
    let meta = file.metadata().ok()?;
    let at = meta.modified().ok().filter(|at| *at >= since)?;
    let start = meta.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    let tail = String::from_utf8_lossy(&tail);
    let mut lines = tail.lines();
    // Of a cut line, nobody knows how it begins.
    let _cut = (start > 0).then(|| lines.next());
    let last = lines.rfind(|line| !line.trim().is_empty())?;
    let is_own = last.starts_with(|c: char| c.is_ascii_digit());
    (!is_own).then(|| (first_line(last, MAX_WHY), at))
}

/// When this machine was started, as its kernel tells.
fn machine_started() -> Option<SystemTime> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let mut facts = stat.lines().filter_map(|line| line.split_once(' '));
    let (_, seconds) = facts.find(|(name, _)| *name == "btime")?;
    let since = Duration::from_secs(seconds.trim().parse().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn touch(path: &Path, seconds: u64) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().set_modified(at(seconds)).unwrap();
    }

    #[test]
    fn the_end_of_a_process_is_what_it_wrote_after_its_last_record() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let log = dir.join("host.log");
        let end = |started: u64| found(dir, Some(at(started))).end;
        touch(&dir.join("HEAD"), 100);
        assert_eq!(end(50), HostEnd::Unknown);
        assert_eq!(end(150), HostEnd::MachineStarted);
        let words = "fatal runtime error: stack overflow, aborting";
        let before = "x".repeat(5000);
        fs::write(
            &log,
            format!("2026-01-01T00:00:00Z WARN {before}\n{words}\n\n"),
        )
        .unwrap();
        touch(&log, 99);
        assert_eq!(end(50), HostEnd::Unknown, "of an earlier process");
        touch(&log, 101);
        let said = found(dir, Some(at(150)));
        assert_eq!(said.end, HostEnd::LastWords(words.to_owned()));
        assert_eq!(said.at, Some(at(101)));
        fs::write(&log, format!("{words}\n2026-01-01T00:00:00Z WARN on\n")).unwrap();
        touch(&log, 102);
        assert_eq!(end(50), HostEnd::Unknown, "it went on");
        note_end(dir, &Failure::new(Exit::Journal, "full\nand more"));
        touch(&dir.join(NOTE), 103);
        let why = "full…".to_owned();
        assert_eq!(end(50), HostEnd::Failed { exit: 74, why });
        touch(&dir.join("HEAD"), 104);
        assert_eq!(end(50), HostEnd::Unknown, "a later process went on");
        fs::write(dir.join(NOTE), "{").unwrap();
        assert_eq!(end(50), HostEnd::Unknown, "not whole");
    }
}
