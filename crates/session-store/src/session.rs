//! The directory of one session: creating, opening, locking and recovering it. Does not depend on batches or readers.

mod error;
mod file_system;
pub(crate) mod head;
pub(crate) mod lock;
mod open;
mod options;
mod records;
mod repair;
pub(crate) mod reserve;
mod salvage;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod survey;
pub(crate) mod walk;

use std::path::{Path, PathBuf};

pub use error::{OpenError, Owner};
pub use options::{Clock, Options, Probe};
pub use records::{SessionRecordIter, SessionRecords};
pub use salvage::Salvaged;

use crate::blob::Blobs;
use crate::damage::TailDamage;
use crate::error::DiskFault;
use crate::journal::Journal;
use crate::ops::Ops;

/// The functions that create, open, resume and salvage the directory of one session. Start here.
pub struct Session;

/// A session opened for writing: its journal, its blobs and the result of recovery. This process holds the lock until
/// [`Journal::close`] or until the last journal handle is dropped.
#[derive(Debug)]
pub struct Opened {
    pub journal: Journal,
    pub blobs: Blobs,
    /// The result of recovery. Read the records with [`Reader::open`](crate::Reader::open); all of them are durable.
    pub recovered: Recovered,
}

/// The part of [`Opened`] that says what recovery found and changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    pub existed: bool,
    /// The session's id from the log; from the options while the log is empty.
    pub session: String,
    /// The last record kept; 0 when there is none.
    pub last: u64,
    /// Wall clock of that record, microseconds.
    pub last_time: Option<u64>,
    pub epoch: u32,
    /// The damage to the tail that recovery cut off, if any.
    pub class: Option<TailDamage>,
    /// Bytes cut off and copied to `quarantine`.
    pub cut: u64,
    pub quarantine: Option<PathBuf>,
}

/// A session's lock without its journal: no other process can write the session until this is dropped.
#[derive(Debug)]
pub struct SessionLock {
    _lock: lock::Lock,
}

impl Session {
    /// Creates the directory (its parent must exist) and an empty log in it; completes an earlier unfinished attempt.
    /// Three flushes.
    pub fn create(dir: &Path, options: Options) -> Result<Opened, OpenError> {
        open::create(dir, &options)
    }

    /// Locks, scans and, if need be, repairs an existing session. Executes nothing, appends nothing. No flush when
    /// the last writer ended well.
    pub fn open(dir: &Path, options: Options) -> Result<Opened, OpenError> {
        open::open(dir, &options, open::OpenMode::Append).map(|(opened, _)| opened)
    }

    /// [`open`](Self::open) that also returns the records, to be folded: those read while checking the log are not read
    /// again. Keeps the records of the newest segment in memory until they are taken.
    pub fn resume(dir: &Path, options: Options) -> Result<(Opened, SessionRecords), OpenError> {
        open::open(dir, &options, open::OpenMode::Resume)
    }

    /// Copies the intact records and blobs of a damaged session into a new one at `into` (its parent must exist); the
    /// damaged one is not changed. In the copy a `gap` record replaces each lost record. Interrupted, it leaves a
    /// directory without a session, and can be repeated. The copy has the same session id: do not continue both. Needs
    /// as much space as the session takes.
    pub fn salvage(dir: &Path, into: &Path, options: Options) -> Result<Salvaged, OpenError> {
        salvage::salvage(dir, into, &options)
    }

    /// Takes the lock alone, whatever the state of the session, for moving or removing its directory. `now`, in
    /// microseconds, is shown to processes that find the session busy. After the directory was moved, a process that
    /// waited for the lock does not get it.
    pub fn hold(dir: &Path, now: u64) -> Result<SessionLock, OpenError> {
        Ok(SessionLock {
            _lock: lock::acquire(&Ops::real(), dir, now)?,
        })
    }

    /// The process that holds the session now, without locking it. `Ok(None)` when it is free; a pid of 0 when the lock
    /// file cannot be read.
    pub fn owner(dir: &Path) -> Result<Option<Owner>, DiskFault> {
        lock::owner(&Ops::real(), dir)
    }
}
