//! The directory of one session: made or opened, locked, recovered, handed over. Knows no batch and no reader.

mod error;
mod file_system;
pub(crate) mod head;
pub(crate) mod lock;
mod open;
mod options;
mod past;
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
pub use past::{Past, PastFrames};
pub use salvage::Salvaged;

use crate::blob::Blobs;
use crate::damage::Class;
use crate::error::DiskFault;
use crate::journal::Journal;
use crate::ops::Ops;

/// The directory of one session.
pub struct Session;

/// A session with its lock held by this process, until [`Journal::close`] or the last journal handle goes.
#[derive(Debug)]
pub struct Opened {
    pub journal: Journal,
    pub blobs: Blobs,
    /// What was found. Read the records back with [`Reader::open`](crate::Reader::open); all of them are durable.
    pub recovered: Recovered,
}

/// What opening found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    pub existed: bool,
    /// The session's id, as the log has it; of the options while the log is empty.
    pub session: String,
    /// The last record kept; 0 when there is none.
    pub last: u64,
    /// Wall clock of that record, microseconds.
    pub last_time: Option<u64>,
    pub epoch: u32,
    /// What was wrong with the tail, if anything.
    pub class: Option<Class>,
    /// Bytes cut off and copied to `quarantine`.
    pub cut: u64,
    pub quarantine: Option<PathBuf>,
}

/// A session's lock without its journal: nobody else works in the directory until this is dropped.
#[derive(Debug)]
pub struct SessionLock {
    _lock: lock::Lock,
}

impl Session {
    /// Makes the directory (its parent must exist) and an empty log in it; finishes what an earlier attempt left
    /// unfinished. Three flushes.
    pub fn create(dir: &Path, options: Options) -> Result<Opened, OpenError> {
        open::create(dir, &options)
    }

    /// Locks, scans and, if need be, repairs an existing session. Executes nothing, appends nothing. No flush when
    /// the last writer ended well.
    pub fn open(dir: &Path, options: Options) -> Result<Opened, OpenError> {
        open::open(dir, &options, open::OpenMode::Append).map(|(opened, _)| opened)
    }

    /// [`open`](Self::open) for whoever folds the log: what was read to prove the end of the log is handed on, so that
    /// nothing is read twice. Holds the records of the newest segment in memory until they are taken.
    pub fn resume(dir: &Path, options: Options) -> Result<(Opened, Past), OpenError> {
        open::open(dir, &options, open::OpenMode::Resume)
    }

    /// Copies what verifies of a damaged session into a new one at `into` (its parent must exist), and leaves the
    /// damaged one as it is. In the copy a `gap` record stands for each that is lost; blobs are copied if they
    /// are what was stored. Cut short, it leaves a directory without a session, and can be done again. The copy has
    /// the session's id: do not go on with both. Needs as much room as the session takes.
    pub fn salvage(dir: &Path, into: &Path, options: Options) -> Result<Salvaged, OpenError> {
        salvage::salvage(dir, into, &options)
    }

    /// Takes the lock alone, whatever state the session is in, for moving or removing its directory. `now` in
    /// microseconds, for whoever finds it busy. Where the directory is moved meanwhile, whoever waited for the lock
    /// finds that it has none.
    pub fn hold(dir: &Path, now: u64) -> Result<SessionLock, OpenError> {
        Ok(SessionLock { _lock: lock::acquire(&Ops::real(), dir, now)? })
    }

    /// Who holds the session now, without taking it. `Ok(None)` when nobody does; a pid of 0 when the lock file
    /// does not say.
    pub fn owner(dir: &Path) -> Result<Option<Owner>, DiskFault> {
        lock::owner(&Ops::real(), dir)
    }
}
