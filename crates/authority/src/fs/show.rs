//! Paths as people and models read them.

use std::fmt::Write as _;
use std::path::{Component, Path};

/// The path as one line of text: control characters and those that reorder text are escaped (`\n`, `\u{202e}`), a
/// byte that is not UTF-8 is `\xNN`, a backslash is itself.
pub fn escape(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut out = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || reorders(c) {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            write!(out, "\\x{byte:02x}").unwrap_or_default();
        }
    }
    out
}

/// Characters that make text read in another order or look like nothing.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{061c}')
}

/// `path` relative to `cwd` when inside it, otherwise unchanged.
pub(super) fn relative_to(cwd: &Path, path: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) if rest.components().all(|part| matches!(part, Component::Normal(_))) => escape(rest),
        Ok(_) | Err(_) => escape(path),
    }
}
