//! Reading a configuration file: bounded, never through something that waits, and with the line of every key.

use super::Source;
use super::file::{self, File};
use super::lines::Lines;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use rustix::fs::OFlags;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The largest configuration file that is read, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// A file that was read, once: what is checked, digested and used is one text.
pub(super) struct Text {
    /// Its keys.
    pub(super) file: File,
    /// The same, as it is written.
    pub(super) table: toml::Table,
    shown: String,
    lines: Lines,
}

/// Whether a link in the place of a file is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// As people do that keep their configuration elsewhere.
    Followed,
    /// A project must not choose what is read.
    Refused,
}

/// Reads a file that need not be there.
pub(super) fn read(path: &Path, links: Links, env: &Env) -> Result<Option<Text>, Failure> {
    let fail = |what: &str| Failure::new(Exit::Config, format!("{}: {what}", path.display()));
    let bytes = match bytes(path, links) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(what) => return Err(fail(&what).help("make it a plain file of TOML, or remove it")),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        fail(&format!("is not UTF-8 after byte {}", error.utf8_error().valid_up_to())).help("save it as UTF-8")
    })?;
    parse(path, &text, env.shown(path)).map(Some)
}

fn bytes(path: &Path, links: Links) -> Result<Option<Vec<u8>>, String> {
    // A FIFO opens at once and is then seen for what it is.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    let flags = i32::try_from(flags.bits()).map_err(|e| e.to_string())?;
    let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(_) if path.is_symlink() && links == Links::Refused => {
            return Err("is a symbolic link, and a project's file is read only where it stands".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if !meta.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > MAX_FILE { Err("larger than 1 MiB".to_owned()) } else { Ok(Some(bytes)) }
}

fn parse(path: &Path, text: &str, shown: String) -> Result<Text, Failure> {
    let wrong = |problem: file::Problem| {
        let message = format!("{}:{}: {}", path.display(), problem.line, problem.what);
        let help = problem.help.unwrap_or_else(|| "`yoi config init` writes an example".to_owned());
        Failure::new(Exit::Config, message).help(help)
    };
    let file = file::parse(text).map_err(wrong)?;
    let table = text.parse().map_err(|_| Failure::new(Exit::Internal, format!("{shown}: read twice, parsed once")))?;
    Ok(Text { file, table, shown, lines: Lines::of(text) })
}

impl Text {
    /// Where a key stands, or the nearest thing around it.
    pub(super) fn place(&self, key: &[&str]) -> Source {
        self.lines.at(key).map_or_else(|| self.shown.clone(), |line| format!("{}:{line}", self.shown))
    }

    /// The file, for people.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }
}
