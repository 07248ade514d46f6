//! Errors of creating and opening a session.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::damage::Damage;
use crate::error::{DiskFault, ErrorKind};

/// The process that holds a session's lock, as written in the lock file; for messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    /// Time of opening in microseconds since 1970.
    pub since: u64,
}

/// Why a session could not be created or opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process (or another handle of this one) holds the lock. `None` where the lock file is unreadable.
    #[error("{} is in use{}", dir.display(), match owner { Some(o) => format!(" by process {}", o.pid), None => String::new() })]
    Busy { dir: PathBuf, owner: Option<Owner> },
    /// Records that had been durable are missing or changed. Nothing was written; read it with `Reader`.
    #[error("the journal in {} is damaged: {damage}", dir.display())]
    Damaged { dir: PathBuf, damage: Box<Damage> },
    #[error("there is no session in {}", .0.display())]
    NoSuch(PathBuf),
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// The file system or its permissions do not let this process write here.
    #[error("this session cannot be written here: {0}")]
    ReadOnly(DiskFault),
    /// A network or FUSE file system, which may lose what it says it has flushed.
    #[error("{} is on {file_system}, where journals are not safe", dir.display())]
    Place {
        dir: PathBuf,
        file_system: &'static str,
    },
    /// The session id has a character outside `A-Z a-z 0-9 . _ -`, or is empty or longer than 64.
    #[error("`{0}` is not a session id")]
    Id(String),
    /// The log is of a format this build does not know.
    #[error("{} has journal format {found}; this build reads formats 1 and 2", dir.display())]
    Format { dir: PathBuf, found: u32 },
    #[error("{0}")]
    Disk(DiskFault),
}

impl OpenError {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Busy { .. } => ErrorKind::Unavailable,
            Self::Damaged { .. } => ErrorKind::Corrupt,
            Self::NoSuch(_)
            | Self::Exists(_)
            | Self::Id(_)
            | Self::Place { .. }
            | Self::Format { .. } => ErrorKind::FixInput,
            Self::ReadOnly(_) => ErrorKind::Denied,
            Self::Disk(fault) => fault.kind(),
        }
    }
}

impl From<DiskFault> for OpenError {
    fn from(fault: DiskFault) -> Self {
        if fault.kind() == ErrorKind::Denied {
            Self::ReadOnly(fault)
        } else {
            Self::Disk(fault)
        }
    }
}
