//! One writer for each session: a lock on the file `LOCK` for as long as the writer lives.

use std::fs::TryLockError;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use super::error::{OpenError, Owner};
use crate::disk::{DiskFile, Op};
use crate::error::DiskFault;
use crate::ops::Ops;

/// A query for the owner holds the lock for microseconds; a writer tries this often before it reports the session as
/// busy.
const TRIES: usize = 64;

/// Bytes of the diagnostic JSON, padded so that a shorter one replaces a longer one without truncation.
const DIAGNOSTIC: usize = 64;

/// The held lock; dropping it releases it.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: DiskFile,
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("LOCK")
}

pub(crate) fn acquire(ops: &Ops, dir: &Path, now: u64) -> Result<Lock, OpenError> {
    let path = path(dir);
    for _ in 0..TRIES {
        let Some(file) = open_or_create(ops, &path)? else {
            continue;
        };
        match file.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                thread::yield_now();
                continue;
            }
            Err(TryLockError::Error(e)) => return Err(DiskFault::new(Op::Lock, &path, &e).into()),
        }
        // If the file was removed or replaced between opening and locking, the lock is void.
        if same_file(&file, &path) {
            let text = serde_json::to_string(&Owner {
                pid: std::process::id(),
                since: now,
            })
            .unwrap_or_default();
            let line = format!("{text:<width$}\n", width = DIAGNOSTIC - 1);
            // Diagnostic only: a full disk must not keep a session from being opened and read.
            drop(ops.write_at(&file, line.as_bytes(), 0));
            return Ok(Lock { _file: file });
        }
    }
    Err(OpenError::Busy {
        dir: dir.to_path_buf(),
        owner: read(ops, &path),
    })
}

/// The process that holds the lock, if any.
pub(crate) fn owner(ops: &Ops, dir: &Path) -> Result<Option<Owner>, DiskFault> {
    let path = path(dir);
    let Some(file) = ops.open(&path, false)? else {
        return Ok(None);
    };
    match file.file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            Ok(Some(read(ops, &path).unwrap_or(Owner { pid: 0, since: 0 })))
        }
        Err(TryLockError::Error(e)) => Err(DiskFault::new(Op::Lock, &path, &e)),
    }
}

/// `None` if another process created the file in between; the next try opens it.
fn open_or_create(ops: &Ops, path: &Path) -> Result<Option<DiskFile>, DiskFault> {
    match ops.open_or_create(path) {
        Ok(file) => Ok(Some(file)),
        Err(fault) if fault.kind == std::io::ErrorKind::AlreadyExists => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn same_file(file: &DiskFile, path: &Path) -> bool {
    let (Ok(held), Ok(named)) = (file.file.metadata(), std::fs::metadata(path)) else {
        return false;
    };
    (held.dev(), held.ino()) == (named.dev(), named.ino())
}

fn read(ops: &Ops, path: &Path) -> Option<Owner> {
    let file = ops.open(path, false).ok()??;
    let mut text = [0; DIAGNOSTIC];
    let length = ops.read_at(&file, &mut text, 0).ok()?;
    serde_json::from_slice(text.get(..length)?).ok()
}
