//! Files of instructions: the user's own, then those of the project, from its root down to where one stands.
//!
//! They are read once, when a run starts, and become part of the surface that is journaled. What a project has there is
//! words for the model and no more: it gives no authority. A link is followed only as long as it stays in the project.

use crate::env::Env;
use crate::exit::Failure;
use crate::plain_file::{self, Links};
use crate::project::Project;
use authority::text::bytes_without_bom;
use authority::{Access, Ambient, Location, Redactor, Workspace, escape};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The user's file, beside the configuration.
const OWN: &str = "AGENTS.md";

/// What a directory of a project may have; the first that can be read and is not empty counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The most bytes of one file that are read.
const MAX_FILE: usize = 32 * 1024;

/// The most bytes of all of them together.
const MAX_ALL: usize = 96 * 1024;

const MAX_FILES: usize = 32;

/// What was read, and what was left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    parts: Vec<InstructionFile>,
    left_out: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct InstructionFile {
    heading: &'static str,
    shown: String,
    text: String,
    /// Bytes of the file.
    size: u64,
    cut: bool,
}

impl Instructions {
    /// Reads the instruction files that apply.
    pub fn read(ambient: &Ambient, project: &Project, env: &Env) -> Result<Self, Failure> {
        let mut all = Self::default();
        let own = env.config_dir()?.join(OWN);
        all.take(
            "Instructions from the user",
            &env.shown(&own),
            plain_file::open(&own, Links::Followed),
        );
        let inside = match Workspace::open(ambient, &project.root, &env.cwd, Access::Read) {
            Ok(workspace) => workspace,
            Err(error) => {
                all.left_out.push(error.to_string());
                return Ok(all);
            }
        };
        let mut dirs: Vec<&Path> = env
            .cwd
            .ancestors()
            .take_while(|dir| dir.starts_with(&project.root))
            .collect();
        dirs.reverse();
        for dir in dirs {
            for name in NAMES {
                let path = dir.join(name);
                // A link that leads nowhere is told as one.
                if path.symlink_metadata().is_err() {
                    continue;
                }
                let opened = opened(&inside, &path, project.too_wide.is_some()).map(Some);
                let shown = authority::escape(path.strip_prefix(&project.root).unwrap_or(&path));
                if all.take("Instructions of the project", &shown, opened) {
                    break;
                }
            }
        }
        Ok(all)
    }

    /// One line for a person, if there is anything to say.
    pub fn line(&self) -> Option<String> {
        let sizes = self.parts.iter().map(|part| {
            let cut = if part.cut {
                format!(" (cut to {})", size(part.text.len() as u64))
            } else {
                String::new()
            };
            format!("{} {}{cut}", part.shown, size(part.size))
        });
        let left_out = self.left_out.iter().map(|what| format!("skipped: {what}"));
        let words: Vec<String> = sizes.chain(left_out).collect();
        (!words.is_empty()).then(|| format!("instructions: {}", words.join(", ")))
    }

    /// As the model gets them: a paragraph a file.
    pub fn texts(&self, redactor: &Redactor) -> Vec<String> {
        let text = |part: &InstructionFile| {
            let mark = format!(
                "\n[… cut here: the file has {} bytes, this is its beginning]",
                part.size
            );
            let mark = if part.cut { &mark } else { "" };
            let text = format!(
                "{} ({}):\n{}{mark}",
                part.heading,
                part.shown,
                part.text.trim_end()
            );
            redactor.text(&text).into_owned()
        };
        self.parts.iter().map(text).collect()
    }

    /// Whether the file says something.
    fn take(
        &mut self,
        heading: &'static str,
        shown: &str,
        opened: Result<Option<File>, String>,
    ) -> bool {
        let shown = escape(Path::new(shown));
        let left = MAX_ALL.saturating_sub(self.parts.iter().map(|part| part.text.len()).sum());
        let read = match opened {
            Ok(None) => return false,
            Ok(Some(_)) if self.parts.len() >= MAX_FILES => {
                Err(format!("there are {MAX_FILES} already"))
            }
            Ok(Some(file)) => text(file, MAX_FILE.min(left)),
            Err(what) => Err(what),
        };
        match read {
            Ok((text, _)) if text.trim().is_empty() => false,
            Ok((text, size)) => {
                let cut = size > text.len() as u64;
                self.parts.push(InstructionFile {
                    heading,
                    shown,
                    text,
                    size,
                    cut,
                });
                true
            }
            Err(what) => {
                self.left_out.push(format!("{shown} {what}"));
                false
            }
        }
    }
}

/// A file of the project, where a link in its place may lead within it, though not to what git or programs keep
/// secrets in. In a home directory, which is no project, links are not followed at all.
fn opened(inside: &Workspace, path: &Path, too_wide: bool) -> Result<File, String> {
    let at = match inside.locate(path).map_err(|error| error.to_string())? {
        Location::Inside(at) => at,
        Location::Outside(_) => return Err("leads out of the project".to_owned()),
    };
    let git = |part: std::path::Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
    let hidden = inside.may_hold_secrets(&at) || at.relative().components().any(git);
    if at.path() != path && (too_wide || hidden) {
        return Err("is a link that is not followed".to_owned());
    }
    inside.open_file(&at).map_err(|error| error.to_string())
}

/// The beginning of a file, at most so many bytes, and how many it has. What is not UTF-8 is replaced.
fn text(file: File, most: usize) -> Result<(String, u64), String> {
    let size = file.metadata().map_err(|e| e.to_string())?.len();
    if most == 0 {
        return Err(format!(
            "is more than {} in all",
            self::size(MAX_ALL as u64)
        ));
    }
    let mut bytes = Vec::new();
    file.take(most as u64)
        .read_to_end(&mut bytes)
        .map_err(|e| e.to_string())?;
    if bytes.contains(&0) {
        return Err("is not text".to_owned());
    }
    if size <= bytes.len() as u64 {
        let text = String::from_utf8_lossy(bytes_without_bom(&bytes)).into_owned();
        // Replacements are longer than what they replace.
        let size = text.len() as u64;
        return Ok((text, size));
    }
    // Whole lines, unless the first one is longer than that.
    let end = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(bytes.len(), |at| at + 1);
    bytes.truncate(end);
    let text = String::from_utf8_lossy(bytes_without_bom(&bytes));
    let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    Ok((whole.to_owned(), size))
}

/// Thousands of bytes, as people read them.
fn size(bytes: u64) -> String {
    let hundreds = bytes.div_ceil(100);
    format!("{}.{} kB", hundreds / 10, hundreds % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    fn taken(files: &[&[u8]]) -> Instructions {
        let mut all = Instructions::default();
        for (n, bytes) in files.iter().enumerate() {
            all.take("I", &format!("f{n}"), Ok(Some(file(bytes))));
        }
        all
    }

    #[test]
    fn files_are_bounded_and_the_cut_is_seen() {
        let line = b"0123456789abcde\n".repeat(4096);
        let all = taken(&[&line]);
        assert_eq!(all.parts[0].text.len(), MAX_FILE);
        assert_eq!(
            all.line().unwrap(),
            "instructions: f0 65.6 kB (cut to 32.8 kB)"
        );
        let text = &all.texts(&Redactor::default())[0];
        assert!(text.starts_with("I (f0):\n0123"), "{text}");
        assert!(
            text.ends_with("abcde\n[… cut here: the file has 65536 bytes, this is its beginning]"),
            "{text}"
        );
        let many = taken(&[&line, &line, &line, &line]);
        assert_eq!(
            (many.parts.len(), many.left_out.len()),
            (MAX_ALL / MAX_FILE, 1)
        );
        assert!(
            many.line()
                .unwrap()
                .ends_with("skipped: f3 is more than 98.4 kB in all"),
            "{:?}",
            many.line()
        );
        let small: Vec<&[u8]> = std::iter::repeat_n(&b"x"[..], MAX_FILES + 1).collect();
        assert_eq!(taken(&small).parts.len(), MAX_FILES);
    }

    #[test]
    fn what_is_not_text_is_left_out_and_what_is_nearly_text_is_repaired() {
        assert_eq!(
            taken(&[b"a\0b"]).line().unwrap(),
            "instructions: skipped: f0 is not text"
        );
        assert_eq!(taken(&[b"a\xffb"]).parts[0].text, "a\u{fffd}b");
        assert_eq!(taken(&[b"", b" \n"]).line(), None);
        let mut long = vec![b'x'; MAX_FILE - 1];
        long.extend("ä".as_bytes());
        let cut = taken(&[&long]);
        assert!(cut.parts[0].cut && cut.parts[0].text.ends_with('x'));
        let mut all = Instructions::default();
        all.take("I", "a\nb", Ok(Some(file(b"x"))));
        assert_eq!(all.parts[0].shown, "a\\nb");
    }
}
