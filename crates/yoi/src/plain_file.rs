//! Opening files that another person may have put there: never waiting, never a device, bounded; and replacing a file in one
//! step.

use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Whether a link in the place of a file is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// As people do that keep their files elsewhere.
    Followed,
    /// What is read is what stands there.
    Refused,
}

/// A regular file for reading; nothing where there is none.
pub(crate) fn open(path: &Path, links: Links) -> Result<Option<File>, String> {
    // A FIFO opens at once and is then seen for what it is.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    let flags = i32::try_from(flags.bits()).map_err(|e| e.to_string())?;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(_) if links == Links::Refused && path.is_symlink() => {
            return Err("is a symbolic link, which is not followed".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if meta.is_file() { Ok(Some(file)) } else { Err("is not a regular file".to_owned()) }
}

/// All of a file that has at most so many bytes.
pub(crate) fn whole(file: File, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > most { Err(format!("has more than {} KiB", most / 1024)) } else { Ok(bytes) }
}

/// Replaces a file or makes it, in one step and durably. The caller holds the lock under which the file is changed.
pub(crate) fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".yoi-tmp");
    // One name for all, for the lock keeps others away: what a kill left goes.
    let next = path.with_file_name(name);
    drop(fs::remove_file(&next));
    let written = write(&next, text, mode).and_then(|()| fs::rename(&next, path));
    let written = written.and_then(|()| path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all()));
    if written.is_err() {
        // What is left of it bothers nobody.
        drop(fs::remove_file(&next));
    }
    written
}

fn write(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text)?;
    file.sync_all()
}
