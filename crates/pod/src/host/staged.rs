//! Content that was written beside a file and never took its place, because the process that wrote it was killed.

use crate::session::fold::Changing;
use authority::{FileKind, Meta, Workspace};
use session_store::Digest;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// The longest file that tools change, in bytes.
const MAX_FILE: u64 = 64 << 20;
/// How such a file is called, around its digits.
const NAME: (&str, usize, &str) = (".yoi-", 16, ".tmp");

/// Removes what an announced change had written beside its file; answers how many files went. Names are drawn at random
/// and others work in the same directory, so only a file goes that has exactly the announced content and is no
/// younger than `last`, the clock of the session's newest record in microseconds. What does not let itself be read or
/// removed stays: it is only space.
pub(super) fn sweep(files: &Workspace, change: &Changing, last: u64) -> u64 {
    let Some(dir) = Path::new(&change.path).parent().and_then(|dir| files.inside(dir).ok()) else { return 0 };
    let before = UNIX_EPOCH + Duration::from_micros(last);
    let left = |(name, meta): &(OsString, Meta)| {
        is_staged(name) && meta.kind == FileKind::File && meta.len <= MAX_FILE && meta.modified <= before
    };
    let mut swept = 0;
    for (name, _) in files.read_dir(&dir).unwrap_or_default().into_iter().filter(left) {
        let Ok(at) = files.inside(&dir.path().join(name)) else { continue };
        let mut bytes = Vec::new();
        let read = files.open_file(&at).map(|file| file.take(MAX_FILE).read_to_end(&mut bytes));
        if matches!(read, Ok(Ok(_))) && Digest::of(&bytes).to_string() == change.after && files.remove(&at).is_ok() {
            swept += 1;
        }
    }
    swept
}

fn is_staged(name: &OsStr) -> bool {
    let (front, digits, end) = NAME;
    let middle = name.to_str().and_then(|name| name.strip_prefix(front)?.strip_suffix(end));
    middle.is_some_and(|middle| middle.len() == digits && middle.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
