//! Whether the index of a repository was written for the files of a directory: it notes the number and the times of each.
//!
//! `--separate-git-dir` writes no link back. What the kernel says of a file cannot be forged: nobody sets the time of its last
//! change of state.

use super::linked::{path_of, start};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The most bytes that are read, and the most files that are looked at.
const MAX_BYTES: u64 = 256 * 1024;
const MAX_FILES: usize = 1024;

/// Bytes of the header; of an entry before its name; and of those the ones about the file.
const HEADER: usize = 12;
const ENTRY: usize = 62;
const TIMES: usize = 16;

/// In the flags of an entry: two bytes more.
const EXTENDED: u8 = 0x40;

/// The times of the last change of state and of content, with the nanoseconds, and the number, as far as the index has room.
type Noted = [u32; 5];

/// Whether one of the first files is in this directory as the index has it.
pub(super) fn knows(git: &Path, top: &Path) -> bool {
    let Ok(dir) = rustix::fs::openat2(
        CWD,
        top,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    ) else {
        return false;
    };
    let is_there = |name: &[u8], noted: Noted| {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let within = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        let file = rustix::fs::openat2(&dir, path_of(name), flags, Mode::empty(), within);
        file.is_ok_and(|file| {
            File::from(file)
                .metadata()
                .is_ok_and(|meta| now(&meta) == noted)
        })
    };
    let bytes = start(&git.join("index"), MAX_BYTES).unwrap_or_default();
    entries(&bytes)
        .take(MAX_FILES)
        .any(|(name, noted)| is_there(&name, noted))
}

fn now(meta: &Metadata) -> Noted {
    let times = [
        meta.ctime(),
        meta.ctime_nsec(),
        meta.mtime(),
        meta.mtime_nsec(),
    ];
    let [ctime, ctime_ns, mtime, mtime_ns] = times.map(|time| time as u32);
    [ctime, ctime_ns, mtime, mtime_ns, meta.ino() as u32]
}

/// The names of the files, and what is noted of them; ends where the bytes do.
fn entries(bytes: &[u8]) -> impl Iterator<Item = (Vec<u8>, Noted)> {
    let version = if bytes.starts_with(b"DIRC") {
        bytes.get(7).copied()
    } else {
        None
    };
    let count = word(bytes, 8).unwrap_or(0);
    let mut rest = bytes.get(HEADER..).unwrap_or_default();
    let mut name = Vec::new();
    (0..count).map_while(move |_| {
        let entry = rest;
        let number = |at| word(entry, at);
        let noted = [
            number(0)?,
            number(4)?,
            number(8)?,
            number(12)?,
            number(TIMES + 4)?,
        ];
        let more = if entry.get(ENTRY - 2)? & EXTENDED == 0 {
            0
        } else {
            2
        };
        let mut text = entry.get(ENTRY + more..)?;
        match version? {
            2 | 3 => name.clear(),
            // Only how the name differs from the one before.
            4 => {
                let dropped = varint(&mut text)?;
                name.truncate(name.len().checked_sub(dropped)?);
            }
            _unknown => return None,
        }
        let end = text.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(text.get(..end)?);
        let used = entry.len() - text.len() + end + 1;
        // Older versions fill up to eight bytes.
        rest = entry
            .get(
                if version == Some(4) {
                    used
                } else {
                    used.next_multiple_of(8)
                }..,
            )
            .unwrap_or_default();
        Some((name.clone(), noted))
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|four| u32::from_be_bytes(*four))
}

/// A number as git writes it: seven bits in each byte, the highest first.
fn varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value = value
            .checked_mul(128)?
            .checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}
