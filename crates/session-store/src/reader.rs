//! Reading a log without its lock, also while a writer appends.

mod follow;
mod frames;
mod page;
pub(crate) mod seek;

pub use follow::Following;
pub use frames::FrameIter;

use std::path::{Path, PathBuf};

use crate::blob::BlobView;
use crate::checkpoint::Checkpoint;
use crate::damage::{Damage, ReadError, TailDamage};
use crate::frame::Chain;
use crate::ops::Ops;
use crate::session::head::Head;
use crate::session::lock;
use crate::session::scan::{ScanItem, scan};
use crate::session::segment::{self, Segment};
use crate::session::survey::{Diagnosis, Survey, survey};

/// Reads a session's log. Takes no lock and shows the records that were durable when it was opened.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    segments: Vec<Segment>,
    durable: u64,
}

/// The state of the bytes behind the last durable record, for people who inspect a session; see [`Reader::tail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    Clean,
    /// A writer holds the session: these bytes are being written.
    BeingWritten(u64),
    /// Whole batches that were not yet known to be durable; recovery keeps them. Bytes.
    Unproven(u64),
    /// Recovery will cut these bytes.
    Cut(TailDamage, u64),
}

/// Refuses segments that only a newer program can read.
fn known(dir: &Path, segments: &[Segment]) -> Result<(), ReadError> {
    let newer = segment::newer_format(segments);
    newer.map_or(Ok(()), |found| {
        Err(ReadError::Format {
            dir: dir.to_path_buf(),
            found,
        })
    })
}

impl Reader {
    /// Opens the log of the session in `dir`. Reads HEAD; where there is none, reads the newest segment to find the
    /// log's end.
    pub fn open(dir: &Path) -> Result<Self, ReadError> {
        let ops = Ops::real();
        // HEAD is read first: every record that it reports as durable is in the segments listed after it.
        let head = Head::read(&ops, dir)?;
        let segments = segment::list(&ops, dir)?;
        if segments.is_empty() && head.is_none_or(|head| head.durable == 0) {
            return Err(ReadError::NoSuch(dir.to_path_buf()));
        }
        known(dir, &segments)?;
        let durable = match head {
            Some(head) => head.durable,
            None => {
                let found = survey(&ops, dir, None, false)?;
                // A live writer may still remove records not proven durable. If the writer is dead, recovery keeps
                // them.
                let kept = if lock::owner(&ops, dir)?.is_some() {
                    0
                } else {
                    found.good.seq
                };
                kept.max(found.proven)
            }
        };
        Ok(Self {
            dir: dir.to_path_buf(),
            segments,
            durable,
        })
    }

    /// The last seq this reader shows; 0 while the log is empty.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Shows records up to `last` instead: for the writer, which knows more records to be durable than HEAD says.
    #[must_use]
    pub fn upto(mut self, last: u64) -> Self {
        self.durable = last;
        self
    }

    /// Every record from the first to [`durable`](Self::durable).
    #[must_use]
    pub fn frames(&self) -> FrameIter {
        FrameIter::behind(self.segments.clone(), Chain::START, self.durable)
    }

    /// The newest checkpoint that is intact and belongs to this log, and every record behind it up to
    /// [`durable`](Self::durable).
    #[must_use]
    pub fn checkpoint(&self) -> Option<(Checkpoint, FrameIter)> {
        let ops = Ops::real();
        let found =
            Checkpoint::read(&ops, &self.dir).filter(|found| found.seq() <= self.durable)?;
        seek::checkpoint(&ops, &self.segments, found, self.durable)
    }

    /// The current state of the bytes behind the last durable record. Reads the newest segment.
    pub fn tail(&self) -> Result<Tail, ReadError> {
        let ops = Ops::real();
        let owned = lock::owner(&ops, &self.dir)?.is_some();
        let head = Head::read(&ops, &self.dir)?;
        let found: Survey = survey(&ops, &self.dir, head, false)?;
        let newest = found.segments.last().map(|segment| segment.first);
        let vouched = match head {
            Some(head) if Some(head.segment) == newest => head.offset,
            Some(_) => 0,
            None => found.offset,
        };
        let unproven = found.offset.saturating_sub(vouched);
        match found.diagnosis {
            Diagnosis::Damaged(damage) => Err(ReadError::Damaged(Box::new(damage))),
            Diagnosis::Clean | Diagnosis::Cut(..) if owned && unproven + found.behind > 0 => {
                Ok(Tail::BeingWritten(unproven + found.behind))
            }
            Diagnosis::Cut(class, _) => Ok(Tail::Cut(class, found.behind)),
            Diagnosis::Clean if unproven > 0 => Ok(Tail::Unproven(unproven)),
            Diagnosis::Clean => Ok(Tail::Clean),
        }
    }

    /// All ranges of lost durable records, in order. Unlike [`frames`](Self::frames), this continues after damage.
    /// Reads the whole log; for sessions without a writer.
    pub fn losses(&self) -> Result<Vec<Damage>, ReadError> {
        let mut found = Vec::new();
        scan(&Ops::real(), &self.dir, &mut |piece| {
            if let ScanItem::Lost(damage) = piece {
                found.push(damage);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The session's blobs.
    #[must_use]
    pub fn blobs(&self) -> BlobView {
        BlobView::new(&self.dir)
    }
}
