//! A job as a feature asks for it, and the reasons to refuse it. Does not depend on how a job is run.

use llm_worker::ErrorKind;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Most jobs of one feature that run at once.
pub const MAX_JOBS_OF_FEATURE: usize = 8;

/// The longest time that a job may run.
pub const MAX_JOB_DEADLINE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A command that is to run as a job.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// A name to look up in the child's `PATH`, or a path.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Absolute.
    pub cwd: PathBuf,
    /// The command as people know it, for the journal and for lists; it is redacted and cut there.
    pub command: String,
    /// At most [`MAX_JOB_DEADLINE`].
    pub deadline: Duration,
    /// It is refused while so many jobs of the feature run; at least 1, at most [`MAX_JOBS_OF_FEATURE`].
    pub most: usize,
}

/// The reason why a job was not started, read or stopped.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Too many jobs run; the text says what to do.
    #[error("{0}")]
    Exhausted(String),
    /// The pod starts no jobs, or its log refused.
    #[error("{0}")]
    Unavailable(String),
    /// The feature has no such job.
    #[error("there is no job {0}")]
    Unknown(u64),
    #[error("the grant was revoked")]
    Revoked,
    /// The feature is still installing.
    #[error("the feature is not installed yet; use it from a tool, a hook or a background task")]
    Early,
    #[error("too many requests are waiting; try again")]
    Busy,
    #[error("the pod has ended")]
    Closed,
    /// The command could not be started.
    #[error(transparent)]
    Spawn(#[from] authority::Error),
}

impl JobError {
    /// The category of the error, which decides the caller's reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        use authority::ErrorKind as Theirs;
        match self {
            Self::Exhausted(_) => ErrorKind::Exhausted,
            Self::Unavailable(_) | Self::Closed => ErrorKind::Unavailable,
            Self::Unknown(_) => ErrorKind::FixInput,
            Self::Revoked => ErrorKind::Denied,
            Self::Busy => ErrorKind::Retry,
            Self::Early => ErrorKind::Bug,
            Self::Spawn(error) => match error.kind() {
                Theirs::FixInput => ErrorKind::FixInput,
                Theirs::Denied | Theirs::Revoked => ErrorKind::Denied,
                Theirs::Unavailable => ErrorKind::Unavailable,
                Theirs::Exhausted => ErrorKind::Exhausted,
                Theirs::Cancelled => ErrorKind::Cancelled,
                Theirs::Bug => ErrorKind::Bug,
            },
        }
    }
}
