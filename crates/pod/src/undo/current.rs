//! Files as they stand, for those who compare or restore them.

use crate::record::Stored;
use crate::session::changes::{Changed, Changes};
use authority::{FileKind, Located, Workspace, escape};
use session_store::BlobView;
use std::io::Read;
use std::path::Path;

/// The largest file that is compared or restored, in bytes; tools change none larger.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The file as it was, none when it was not there.
///
/// # Errors
/// Why that cannot be said, with the path.
pub fn before(changed: &Changed, blobs: &BlobView) -> Result<Option<Vec<u8>>, String> {
    let read = |stored: &Stored| blobs.read(&stored.digest, MAX_FILE);
    changed
        .before
        .as_ref()
        .map(read)
        .transpose()
        .map_err(|e| format!("{}: {e}", changed.path))
}

/// A file as it is.
pub struct CurrentFile {
    /// The file itself, not a link to it.
    pub at: Located,
    /// What it contains; none when it is not there.
    pub bytes: Option<Vec<u8>>,
    /// Its permissions; none when it is not there.
    pub mode: Option<u32>,
}

impl CurrentFile {
    /// What another program or person did, where it is not as the pod left it.
    #[must_use]
    pub fn since(&self) -> &'static str {
        match self.bytes {
            Some(_) => "was modified after this pod's change",
            None => "was removed after this pod's change",
        }
    }
}

/// The file as it is.
///
/// # Errors
/// Why that cannot be said: it is reached through a link, is no regular file, or is larger than 64 MiB.
pub fn look(files: &Workspace, path: &str) -> Result<CurrentFile, String> {
    let at = itself(files, path)?;
    let meta = match files.metadata(&at) {
        Err(error) if error.is_not_found() => {
            return Ok(CurrentFile {
                at,
                bytes: None,
                mode: None,
            });
        }
        Err(error) => return Err(error.to_string()),
        Ok(meta) => meta,
    };
    let odd = || format!("{path}: no longer a regular file of at most 64 MiB");
    if meta.kind != FileKind::File || meta.len > MAX_FILE {
        return Err(odd());
    }
    let file = files.open_file(&at).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| format!("{path}: {e}"))?;
    if bytes.len() as u64 > MAX_FILE {
        Err(odd())
    } else {
        Ok(CurrentFile {
            at,
            bytes: Some(bytes),
            mode: Some(meta.mode),
        })
    }
}

/// The place itself, or why it cannot be had: it is not to be reached through a link.
pub(super) fn itself(files: &Workspace, path: &str) -> Result<Located, String> {
    let at = files.inside(Path::new(path)).map_err(|e| e.to_string())?;
    if at.path() == Path::new(path) {
        return Ok(at);
    }
    Err(format!(
        "{path}: is now reached through a link to {}",
        escape(at.path())
    ))
}

pub(super) fn there(files: &Workspace, at: &Located) -> bool {
    files.metadata(at).is_ok()
}

/// Finds out where moved directories stand.
pub fn locate_moved(changes: &mut Changes, files: &Workspace) {
    changes.settle(|path| itself(files, path).is_ok_and(|at| there(files, &at)));
}
