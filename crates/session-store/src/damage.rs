//! The kinds of damage to a log, and the errors of reading it. Reads nothing.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::error::{DiskFault, ErrorKind};
use crate::frame::FrameError;

/// Damage that loses durable records: the first bad record and the records lost with it. Opening for writing refuses
/// such a log; [`Session::salvage`](crate::Session::salvage) copies the intact records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} at byte {offset} of {}: {bad}", segment.display())]
pub struct Damage {
    pub seq: u64,
    pub segment: PathBuf,
    pub offset: u64,
    pub bad: FrameError,
    /// The records that were durable and can no longer be read in sequence.
    pub lost: RangeInclusive<u64>,
}

/// The error of reading a log: damage, or a failed disk operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("{0}")]
    Damaged(Box<Damage>),
    #[error("there is no session in {}", .0.display())]
    NoSuch(PathBuf),
    /// A segment is of a format this build does not know.
    #[error("{} has journal format {found}; this build reads formats 1 and 2", dir.display())]
    Format { dir: PathBuf, found: u32 },
    #[error("{0}")]
    Disk(#[from] DiskFault),
}

impl ReadError {
    /// Tells the caller whether to retry, to fix the disk or to salvage.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged(_) => ErrorKind::Corrupt,
            Self::NoSuch(_) | Self::Format { .. } => ErrorKind::FixInput,
            Self::Disk(fault) => fault.kind(),
        }
    }
}

/// Damage to the end of a log that loses no durable record: recovery cuts it off. Reported by
/// [`Recovered`](crate::Recovered) and [`Tail`](crate::Tail).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailDamage {
    /// The file ends inside a line or a batch.
    TornTail,
    /// Only zeros follow the last record.
    ZeroTail,
    /// Bytes that do not continue the log follow the last record.
    BadTail,
}

impl TailDamage {
    /// The name used in a quarantine's description.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TornTail => "torn tail",
            Self::ZeroTail => "zero tail",
            Self::BadTail => "bad tail",
        }
    }
}
