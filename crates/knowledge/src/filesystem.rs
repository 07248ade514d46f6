//! The files below the root of a workspace, as a source. Files that `.gitignore` names, files that may hold secrets, and what
//! is no UTF-8 text are left out; links are not followed.

use crate::Error;
use crate::connector::{Connector, ItemSink, MARKDOWN, SkipReason, SourceItem};
use authority::text::without_bom;
use authority::{FileKind, Meta, WalkEntry, WalkOptions, Workspace, escape};
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many of the first lines of a Markdown file are looked at for its title.
const TITLE_LINES: usize = 40;

/// The longest title, in bytes.
const MAX_TITLE: usize = 200;

/// How much of a file tells whether it is text, in bytes.
const HEAD: u64 = 8 << 10;

/// What a scan reads at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesystemLimits {
    /// Entries of directories that are visited.
    pub entries: usize,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
}

impl FilesystemLimits {
    /// 400,000 entries, files of 50 MB, 2 GiB in all.
    pub const USUAL: Self = Self {
        entries: 400_000,
        file_bytes: 50_000_000,
        total_bytes: 2 << 30,
    };
}

/// The files of a workspace's project directory.
#[derive(Debug)]
pub struct Filesystem {
    name: String,
    workspace: Workspace,
    limits: FilesystemLimits,
    now: SystemTime,
}

impl Filesystem {
    /// A source of this name; `now` is the time of the sync.
    #[must_use]
    pub fn new(
        name: &str,
        workspace: Workspace,
        limits: FilesystemLimits,
        now: SystemTime,
    ) -> Self {
        Self {
            name: name.to_owned(),
            workspace,
            limits,
            now,
        }
    }

    /// The state of a file as text. One that changed just now can change again without another state.
    fn stamp(&self, meta: &Meta) -> String {
        match meta.stamp.is_settled(self.now) {
            true => meta.stamp.to_string(),
            false => String::new(),
        }
    }

    /// Tells one file, of which at most `left` bytes are read; returns how many of these it took.
    fn visit(&self, entry: &WalkEntry, left: u64, sink: &mut dyn ItemSink) -> Result<u64, Error> {
        let at = entry.located()?;
        if self.workspace.may_hold_secrets(&at) {
            sink.skip(SkipReason::Secret);
            return Ok(0);
        }
        // Before its content, so that a change while it is read gives another state.
        let meta = match self.workspace.metadata(&at) {
            Ok(meta) => meta,
            Err(error) if error.kind() == authority::ErrorKind::Revoked => return Err(error.into()),
            Err(_error) => {
                sink.skip(SkipReason::Unreadable);
                return Ok(0);
            }
        };
        let most = self.limits.file_bytes;
        if meta.len > most.min(left) {
            sink.skip(match meta.len > most {
                true => SkipReason::TooLong,
                false => SkipReason::TooMany,
            });
            return Ok(0);
        }
        let source_id = escape(at.relative());
        let stamp = self.stamp(&meta);
        if sink.is_current(&source_id, &stamp)? {
            return Ok(meta.len);
        }
        let (bytes, body) = match self.workspace.open_file(&at) {
            Err(_error) => (0, Err(SkipReason::Unreadable)),
            Ok(file) => text(file, most.min(left)),
        };
        let body = match body {
            Ok(body) => body,
            Err(why) => {
                sink.skip(why);
                return Ok(bytes);
            }
        };
        let is_markdown = is_markdown(&entry.path);
        sink.put(SourceItem {
            stamp,
            source_url: escape(&entry.path),
            title: title(&body, is_markdown).unwrap_or(&source_id).to_owned(),
            content_type: if is_markdown { MARKDOWN } else { "text/plain" },
            updated_at: seconds(meta.modified),
            source_id,
            body,
        })?;
        Ok(bytes)
    }
}

impl Connector for Filesystem {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "filesystem"
    }

    fn scan(&self, sink: &mut dyn ItemSink) -> Result<(), Error> {
        self.workspace.check_roots()?;
        let root = self.workspace.inside(self.workspace.project())?;
        let mut left = self.limits.total_bytes;
        let walk = self.workspace.walk(&root, WalkOptions::default());
        for (number, entry) in walk.enumerate() {
            if number == self.limits.entries {
                sink.skip(SkipReason::TooMany);
                break;
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if error.kind() == authority::ErrorKind::Revoked => {
                    return Err(error.into());
                }
                Err(_error) => {
                    sink.skip(SkipReason::Unreadable);
                    continue;
                }
            };
            if entry.kind != FileKind::File {
                continue;
            }
            if entry.len > self.limits.file_bytes {
                sink.skip(SkipReason::TooLong);
                continue;
            }
            left = left.saturating_sub(self.visit(&entry, left, sink)?);
        }
        Ok(())
    }
}

/// How many bytes were read, at most one more than `most`, and their text, or why there is none. A file that is no text is
/// read only at its head where that shows it; one that grows, up to the limit.
fn text(file: impl Read, most: u64) -> (u64, Result<String, SkipReason>) {
    let mut bytes = Vec::new();
    let mut file = file.take(most.saturating_add(1));
    let mut read = |bytes: &mut Vec<u8>| -> Result<(), SkipReason> {
        let head = file.by_ref().take(HEAD).read_to_end(bytes);
        head.map_err(|_error| SkipReason::Unreadable)?;
        if bytes.contains(&0) {
            return Err(SkipReason::NotText);
        }
        let rest = file.read_to_end(bytes);
        rest.map_err(|_error| SkipReason::Unreadable)?;
        match bytes {
            bytes if bytes.len() as u64 > most => Err(SkipReason::TooLong),
            bytes if bytes.contains(&0) => Err(SkipReason::NotText),
            _ => Ok(()),
        }
    };
    let whole = read(&mut bytes);
    let took = bytes.len() as u64;
    let text = whole.and_then(|()| String::from_utf8(bytes).map_err(|_error| SkipReason::NotText));
    let text = text.map(|text| match without_bom(&text) {
        plain if plain.len() == text.len() => text,
        plain => plain.to_owned(),
    });
    (took, text)
}

fn is_markdown(path: &Path) -> bool {
    let of = |known: &str| {
        path.extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case(known))
    };
    of("md") || of("markdown")
}

/// The first heading of a Markdown file.
fn title(body: &str, is_markdown: bool) -> Option<&str> {
    let mut first = body.lines().take(TITLE_LINES).filter(|_| is_markdown);
    let line = first.find_map(|line| line.strip_prefix("# "))?;
    let line = line.trim().trim_end_matches('#').trim_end();
    let end = line.floor_char_boundary(MAX_TITLE);
    line.get(..end).filter(|title| !title.is_empty())
}

fn seconds(time: SystemTime) -> i64 {
    let of = |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => of(after),
        Err(before) => of(before.duration()).saturating_neg(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grows_without_end_is_read_to_the_limit() {
        let (read, text) = text(std::io::repeat(b'a'), 20_000);
        assert_eq!((read, text), (20_001, Err(SkipReason::TooLong)));
    }

    #[test]
    fn a_file_that_is_no_text_costs_its_head() {
        let (read, text) = text(std::io::repeat(0), 20_000);
        assert_eq!((read, text), (HEAD, Err(SkipReason::NotText)));
    }

    #[test]
    fn titles_are_first_headings_of_markdown() {
        assert_eq!(title("x\n# The  title #\n", true), Some("The  title"));
        assert_eq!(title("# a\n", false), None);
        assert_eq!(title("## a\n#b\n# \n", true), None);
    }
}
