//! Reading a configuration file: bounded, never through something that waits, and with the line of every key.

use super::Source;
use super::file::{self, File};
use super::lines::KeyLines;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::plain_file::{self, Links};
use std::path::Path;

/// The largest configuration file that is read, in bytes.
pub(super) const MAX_FILE: u64 = 1024 * 1024;

/// A file that was read, once: what is checked, digested and used is one text.
pub(super) struct Text {
    pub(super) file: File,
    /// The same, as it is written.
    pub(super) table: toml::Table,
    shown: String,
    lines: KeyLines,
}

/// Reads a file that need not be there.
pub(super) fn read(path: &Path, links: Links, env: &Env) -> Result<Option<Text>, Failure> {
    let shown = env.shown(path);
    written(path, links, &shown)?
        .map(|text| parse(&text, shown))
        .transpose()
}

/// The text of a file that need not be there.
pub(super) fn written(path: &Path, links: Links, shown: &str) -> Result<Option<String>, Failure> {
    let fail = |what: &str| Failure::new(Exit::Config, format!("{shown}: {what}"));
    let unfit =
        |what: String| fail(&what).help("replace it with a regular TOML file, or remove it");
    let Some(file) = plain_file::open(path, links).map_err(unfit)? else {
        return Ok(None);
    };
    let bytes = plain_file::whole(file, MAX_FILE).map_err(unfit)?;
    let text = plain_file::text(&bytes)
        .map_err(|why| fail(&format!("the file {why}")).help("save the file as UTF-8"))?;
    Ok(Some(text.to_owned()))
}

/// Reads what stands in a file; `shown` is its path for people.
pub(super) fn parse(text: &str, shown: String) -> Result<Text, Failure> {
    let wrong = |problem: file::ParseProblem| {
        Failure::new(
            Exit::Config,
            format!("{shown}:{}: {}", problem.line, problem.what),
        )
        .help(problem.help)
    };
    let file = file::parse(text).map_err(wrong)?;
    let table = text
        .parse()
        .map_err(|_| Failure::new(Exit::Internal, format!("{shown}: read twice, parsed once")))?;
    Ok(Text {
        file,
        table,
        shown,
        lines: KeyLines::of(text),
    })
}

impl Text {
    /// Where a key stands, or the nearest thing around it.
    pub(super) fn place(&self, key: &[&str]) -> Source {
        self.lines.at(key).map_or_else(
            || self.shown.clone(),
            |line| format!("{}:{line}", self.shown),
        )
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }
}
