//! What a file keeps when its whole text is written again: byte order mark and line ends. Does not depend on files.

use crate::answer::fix;
use authority::text::{BOM, bytes_without_bom};
use llm_worker::ToolError;

/// Whether lines end as on old Macs: in a carriage return alone.
pub(crate) fn ends_in_cr(bytes: &[u8]) -> bool {
    !bytes.contains(&b'\n') && bytes.contains(&b'\r')
}

/// Where second bytes of characters are in a text of Shift-JIS, GBK or Big5, where they may look like letters. None in UTF-8,
/// and in a text where something else follows a first byte, as in most texts of Latin-1.
pub(crate) fn second_bytes(bytes: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    if str::from_utf8(bytes).is_ok() || bytes.contains(&0) {
        return found;
    }
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        if (0x81..=0xfe).contains(byte) {
            let Some(0x40..=0x7e | 0x80..=0xfe) = bytes.get(at) else {
                return Vec::new();
            };
            found.push(at);
            at += 1;
        }
    }
    found
}

/// How the lines of a text end; empty if it has no line ends.
fn line_ends(bytes: &[u8]) -> &'static str {
    let all = memchr::memchr_iter(b'\n', bytes).count();
    match memchr::memmem::find_iter(bytes, b"\r\n").count() {
        _ if ends_in_cr(bytes) => "CR",
        _ if all == 0 => "",
        0 => "LF",
        crlf if crlf == all => "CRLF",
        _ => "mixed",
    }
}

/// The bytes to write for a text that replaces these, and what is said of them: a byte order mark and line ends in CRLF or
/// CR, which a model does not see or write, stay.
///
/// # Errors
/// `FixInput` if the text has Read's mark for bytes that are not UTF-8: it would replace them.
pub(crate) fn kept(before: &[u8], text: &str) -> Result<(Vec<u8>, String), ToolError> {
    let foreign = str::from_utf8(before).is_err();
    if foreign && text.contains(char::REPLACEMENT_CHARACTER) {
        return Err(fix(
            "the content contains \u{fffd}, which stands for bytes of the file that are not UTF-8: they would be lost; use Edit, or convert the file first (Bash: iconv)",
        ));
    }
    let mut said = String::new();
    let mut out = String::new();
    if bytes_without_bom(before) != before && !text.starts_with(BOM) {
        out.push(BOM);
        said.push_str(", byte order mark kept");
    }
    let old = line_ends(before);
    let new = line_ends(text.as_bytes());
    if new == "LF" && ["CRLF", "CR"].contains(&old) {
        out.push_str(&text.replace('\n', if old == "CR" { "\r" } else { "\r\n" }));
        said.push_str(&format!(", {old} line ends kept"));
    } else {
        out.push_str(text);
        if old != new && !old.is_empty() && !new.is_empty() {
            said.push_str(&format!(", {new} line ends instead of {old}"));
        }
    }
    if foreign && !text.is_ascii() {
        said.push_str(", in UTF-8, which the file was not before");
    }
    Ok((out.into_bytes(), said))
}
