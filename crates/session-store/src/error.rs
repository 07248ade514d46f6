//! Errors of disk operations, and the kinds of all errors of this crate.

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Op;

/// What the caller can do about an error of this crate. Every error type here has a `kind()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Try again unchanged.
    Retry,
    /// The value handed in can never be stored.
    FixInput,
    /// The file system or its permissions forbid it.
    Denied,
    /// The disk, the directory or the other owner has to change first; then try again.
    Unavailable,
    /// The disk holds other bytes than those written.
    Corrupt,
    /// A bound was reached: disk space, quota, size.
    Exhausted,
    /// The caller broke the contract.
    Bug,
}

/// A failed disk operation: which one, on which path, and the system's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op} {}: {}", path.display(), words(*kind, *code))]
pub struct DiskFault {
    pub op: Op,
    pub path: PathBuf,
    pub kind: io::ErrorKind,
    pub code: Option<i32>,
}

impl DiskFault {
    pub(crate) fn new(op: Op, path: &Path, error: &io::Error) -> Self {
        Self {
            op,
            path: path.to_path_buf(),
            kind: error.kind(),
            code: error.raw_os_error(),
        }
    }

    /// Whether there is no space or quota left: the reserve may help, deleting files will.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(
            self.kind,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        if self.is_full() || self.code == Some(Errno::FBIG.raw_os_error()) {
            return ErrorKind::Exhausted;
        }
        let denied = matches!(
            self.kind,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        );
        if denied {
            ErrorKind::Denied
        } else {
            ErrorKind::Unavailable
        }
    }
}

/// Errors about limits of the process or the machine for which the standard library has no text, or a misleading one.
const LIMITS: &[(Errno, &str)] = &[
    (
        Errno::MFILE,
        "this process has reached its limit of open files; raise `ulimit -n`",
    ),
    (
        Errno::NFILE,
        "the system has reached its limit of open files; close other programs",
    ),
    (
        Errno::FBIG,
        "the file would exceed the file size limit of this process (`ulimit -f`)",
    ),
    (
        Errno::NOMEM,
        "the system has no memory left; close other programs",
    ),
    (
        Errno::IO,
        "the disk reported an error; check the system log and the disk",
    ),
];

fn words(kind: io::ErrorKind, code: Option<i32>) -> String {
    let known = LIMITS
        .iter()
        .find(|(limit, _)| code == Some(limit.raw_os_error()));
    known.map_or_else(|| kind.to_string(), |(_, words)| (*words).to_owned())
}
