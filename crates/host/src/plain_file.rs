//! Opening files that another person may have put there: never waiting, never a device, bounded; files that only this user
//! can have written; and replacing a file in one step.

use authority::text::without_bom;
use rustix::fs::OFlags;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Whether a link in the place of a file is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// As people do that keep their files elsewhere.
    Followed,
    /// What is read is what stands there.
    Refused,
}

/// A regular file for reading; nothing where there is none.
pub fn open(path: &Path, links: Links) -> Result<Option<File>, String> {
    // A FIFO opens at once and is then seen for what it is.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    let flags = i32::try_from(flags.bits()).map_err(|e| e.to_string())?;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(_) if links == Links::Refused && path.is_symlink() => {
            return Err("is a symbolic link, which is not followed".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if meta.is_file() {
        Ok(Some(file))
    } else {
        Err("is not a regular file".to_owned())
    }
}

/// All of a file that has at most so many bytes.
pub fn whole(file: File, most: u64) -> Result<Vec<u8>, String> {
    // Room for all of it is one read instead of many.
    let length = file.metadata().map_or(0, |meta| meta.len()).min(most);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| e.to_string())?;
    if bytes.len() as u64 > most {
        Err(format!("has more than {} KiB", most / 1024))
    } else {
        Ok(bytes)
    }
}

/// The text of a file or a stream without its byte order mark, or what it is instead.
pub fn text(bytes: &[u8]) -> Result<&str, String> {
    match (bytes, std::str::from_utf8(bytes)) {
        (_, Ok(text)) => Ok(without_bom(text)),
        ([0xff, 0xfe, ..] | [0xfe, 0xff, ..], Err(_)) => {
            Err("is UTF-16 text, not UTF-8".to_owned())
        }
        (_, Err(error)) => Err(format!("is not UTF-8 after byte {}", error.valid_up_to())),
    }
}

/// The bytes of a file in a directory, if it is there and this user alone can have written both; or which of them is unfit,
/// and why.
pub fn of_user_alone<'a>(
    dir: &'a Path,
    path: &'a Path,
    most: u64,
) -> Result<Option<Vec<u8>>, (&'a Path, String)> {
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let meta = match fs::symlink_metadata(dir) {
        Ok(meta) if meta.is_dir() => meta,
        Ok(_) => return Err((dir, "is not a directory".to_owned())),
        Err(error) if gone(&error) => return Ok(None),
        Err(error) => return Err((dir, error.to_string())),
    };
    private(&meta).map_err(|what| (dir, what))?;
    let read = |what: String| (path, what);
    let Some(file) = open(path, Links::Refused).map_err(read)? else {
        return Ok(None);
    };
    private(&file.metadata().map_err(|e| read(e.to_string()))?).map_err(read)?;
    whole(file, most).map(Some).map_err(read)
}

/// Whether this user alone can change what is in a directory, links followed.
pub fn is_of_user_alone(dir: &Path) -> Result<(), String> {
    fs::metadata(dir)
        .map_err(|error| error.to_string())
        .and_then(|meta| private(&meta))
}

/// Whether this user alone can have written it.
fn private(meta: &Metadata) -> Result<(), String> {
    let owner = meta.uid();
    let me = rustix::process::geteuid().as_raw();
    if owner != me {
        return Err(format!("belongs to user {owner}, not to you ({me})"));
    }
    match meta.mode() & 0o022 {
        0 => Ok(()),
        _ => Err(format!(
            "others can write it (mode {:o})",
            meta.mode() & 0o7777
        )),
    }
}

/// Replaces a file or makes it, in one step and durably. The caller holds the lock under which the file is changed.
pub fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".yoi-tmp");
    // One name for all, for the lock keeps others away: what a kill left goes.
    let next = path.with_file_name(name);
    drop(fs::remove_file(&next));
    let written = write(&next, text, mode).and_then(|()| fs::rename(&next, path));
    let written = written.and_then(|()| {
        path.parent()
            .map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    });
    if written.is_err() {
        // What is left of it bothers nobody.
        drop(fs::remove_file(&next));
    }
    written
}

fn write(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text)?;
    file.sync_all()
}
