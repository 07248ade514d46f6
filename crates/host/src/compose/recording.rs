//! Where `record:MODEL` writes: a file of its own below the state directory, made at the first whole answer.

use crate::env::Env;
use crate::exit::Failure;
use crate::pods::make_private;
use provider::recording::AppendLine;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The file for answers of this model: its name, the time and the process.
pub(super) fn file(model: &str, env: &Env) -> Result<PathBuf, Failure> {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') {
            c
        } else {
            '-'
        }
    };
    let model: String = model.chars().take(60).map(plain).collect();
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let name = format!("{model}-{seconds}-{}.jsonl", std::process::id());
    Ok(env.state_dir()?.join("recordings").join(name))
}

/// Appends lines to that file, which nobody else reads.
pub(super) fn writer(path: PathBuf) -> AppendLine {
    let open: Mutex<Option<File>> = Mutex::new(None);
    Box::new(move |line| {
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = match open.take() {
            Some(file) => file,
            None => create(&path)?,
        };
        file.write_all(format!("{line}\n").as_bytes())?;
        *open = Some(file);
        Ok(())
    })
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        make_private(dir).map_err(|failure| io::Error::other(failure.message))?;
    }
    OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
