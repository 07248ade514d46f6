//! Paths as text for people and models. The file system is not read.

use crate::text::{Escaper, Lines};
use std::fmt::Write as _;
use std::path::{Component, Path};

/// The path as one line of text: characters that mislead are escaped (`\n`, `\u{202e}`), a byte that is not UTF-8 is
/// `\xNN`, a backslash is unchanged.
pub fn escape(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut out = String::new();
    let mut names = Escaper::new(Lines::One);
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        out.push_str(&names.piece(chunk.valid()));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            write!(out, "\\x{byte:02x}").ok();
        }
    }
    out
}

/// `path` relative to `cwd` when inside it, otherwise unchanged.
pub(super) fn relative_to(cwd: &Path, path: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest)
            if rest
                .components()
                .all(|part| matches!(part, Component::Normal(_))) =>
        {
            escape(rest)
        }
        Ok(_) | Err(_) => escape(path),
    }
}
