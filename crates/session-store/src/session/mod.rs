//! The directory of one session: made or opened, locked, recovered, handed over.

pub(crate) mod head;
pub(crate) mod lock;
mod open;
mod past;
mod place;
mod repair;
pub(crate) mod reserve;
mod salvage;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod survey;
pub(crate) mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use past::{Past, PastFrames};
pub use salvage::Salvaged;
pub use segment::Seal;

use crate::blob::{self, Blobs};
use crate::disk::{Disk, RealDisk};
use crate::error::{DiskFault, ErrorKind};
use crate::journal::Journal;
use crate::ops::Ops;
use crate::reader::Damage;

/// Microseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;
/// Called with the name of each point a test may wait or die at.
pub type Probe = Arc<dyn Fn(&'static str) + Send + Sync>;

/// What a session is given from outside.
#[derive(Clone)]
pub struct Options {
    /// The session's id, 1 to 64 of `A-Z a-z 0-9 . _ -`: written into the first record. When opening, used only if
    /// the log is still empty.
    pub session: String,
    /// For the records' times.
    pub clock: Clock,
    /// [`RealDisk`], or one that fails.
    pub disk: Arc<dyn Disk>,
    /// A no-op outside tests.
    pub probe: Probe,
    /// Accept network and FUSE file systems, whose promises about flushes and locks are their own affair.
    pub any_file_system: bool,
    /// A segment that has grown to this is sealed. A group of batches is never parted, so it may get longer by one.
    pub segment_bytes: u64,
    /// The most bytes of blobs; see [`Blobs::refer`].
    pub blob_bytes: u64,
}

impl Options {
    /// The real disk, no probe, local file systems only, segments of 16 MiB, 1 GiB of blobs.
    pub fn new(session: impl Into<String>, clock: Clock) -> Self {
        Self {
            session: session.into(),
            clock,
            disk: Arc::new(RealDisk),
            probe: Arc::new(|_| {}),
            any_file_system: false,
            segment_bytes: segment::SEGMENT_BYTES,
            blob_bytes: blob::BLOB_BYTES,
        }
    }
}

/// The directory of one session.
pub struct Session;

/// A session with its lock held by this process, until [`Journal::close`] or the last journal handle goes.
#[derive(Debug)]
pub struct Opened {
    /// Where to append.
    pub journal: Journal,
    /// Larger payloads.
    pub blobs: Blobs,
    /// What was found. Read the records back with [`Reader::open`](crate::Reader::open); all of them are durable.
    pub recovered: Recovered,
}

/// What opening found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The log holds at least one record.
    pub existed: bool,
    /// The session's id, as the log has it; of the options while the log is empty.
    pub session: String,
    /// The last record kept; 0 when there is none.
    pub last: u64,
    /// Wall clock of that record, microseconds.
    pub last_time: Option<u64>,
    /// This writer's epoch.
    pub epoch: u32,
    /// What was wrong with the tail, if anything.
    pub class: Option<Class>,
    /// Bytes cut off and copied to `quarantine`.
    pub cut: u64,
    /// The copy.
    pub quarantine: Option<PathBuf>,
}

/// What can be wrong with the end of a log without any durable record being lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The file ends inside a line or a batch.
    TornTail,
    /// Nothing but zeros behind the last record.
    ZeroTail,
    /// Bytes that are no continuation of the log.
    BadTail,
}

/// Who holds a session, as its lock file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process.
    pub pid: u32,
    /// Since when, microseconds.
    pub since: u64,
}

/// A session's lock without its journal: nobody else works in the directory until this is dropped.
#[derive(Debug)]
pub struct Held {
    _lock: lock::Lock,
}

/// Why a session was not made or opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process (or another handle of this one) holds the lock. `None` where the lock file is unreadable.
    #[error("{} is in use{}", dir.display(), match owner { Some(o) => format!(" by process {}", o.pid), None => String::new() })]
    Busy {
        /// The session.
        dir: PathBuf,
        /// The holder.
        owner: Option<Owner>,
    },
    /// Records that had been durable are missing or changed. Nothing was written; read it with `Reader`.
    #[error("{} has lost durable records: {damage}", dir.display())]
    Damaged {
        /// The session.
        dir: PathBuf,
        /// The first bad record and what is lost.
        damage: Box<Damage>,
    },
    /// There is no session in this directory.
    #[error("there is no session in {}", .0.display())]
    NoSuch(PathBuf),
    /// There is a session in this directory already.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The file system or its permissions do not let this process write here.
    #[error("this session cannot be written here: {0}")]
    ReadOnly(DiskFault),
    /// A network or FUSE file system, which may lose what it says it has flushed.
    #[error("{} is on {file_system}, which journals are not kept on; choose a local directory or allow it", dir.display())]
    Place {
        /// The session.
        dir: PathBuf,
        /// Its file system.
        file_system: &'static str,
    },
    /// The session id has a character outside `A-Z a-z 0-9 . _ -`, or is empty or longer than 64.
    #[error("`{0}` is not a session id")]
    Id(String),
    /// The log is of a format this build does not know.
    #[error("{} has journal format {found}, this build reads 1", dir.display())]
    Format {
        /// The session.
        dir: PathBuf,
        /// In its first record.
        found: u64,
    },
    /// The disk refused.
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
            Self::NoSuch(_) | Self::Exists(_) | Self::Id(_) | Self::Place { .. } | Self::Format { .. } => {
                ErrorKind::FixInput
            }
            Self::ReadOnly(_) => ErrorKind::Denied,
            Self::Disk(fault) => fault.kind(),
        }
    }
}

impl From<DiskFault> for OpenError {
    fn from(fault: DiskFault) -> Self {
        if fault.kind() == ErrorKind::Denied { Self::ReadOnly(fault) } else { Self::Disk(fault) }
    }
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
        open::open(dir, &options, open::Way::Append).map(|(opened, _)| opened)
    }

    /// [`open`](Self::open) for whoever folds the log: what was read to prove the end of the log is handed on, so that
    /// nothing is read twice. Holds the records of the newest segment in memory until they are taken.
    pub fn resume(dir: &Path, options: Options) -> Result<(Opened, Past), OpenError> {
        open::open(dir, &options, open::Way::Resume)
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
    pub fn hold(dir: &Path, now: u64) -> Result<Held, OpenError> {
        Ok(Held { _lock: lock::acquire(&Ops::real(), dir, now)? })
    }

    /// Who holds the session now, without taking it. `Ok(None)` when nobody does; a pid of 0 when the lock file
    /// does not say.
    pub fn owner(dir: &Path) -> Result<Option<Owner>, DiskFault> {
        lock::owner(&Ops::real(), dir)
    }
}
