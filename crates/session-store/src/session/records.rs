//! The records of an opened session for folding: the newest checkpoint and the records behind it.

use std::fmt;
use std::path::Path;

use super::survey::Survey;
use crate::checkpoint::Checkpoint;
use crate::damage::ReadError;
use crate::frame::{Chain, CheckedLines, CheckedRecords, OwnedFrame};
use crate::ops::Ops;
use crate::reader::{FrameIter, seek};
use crate::session::segment::Segment;

/// The checkpoint and the records of a session that was just opened, for the caller to fold into its state. The newest
/// segment's records were read on opening; older ones are read on demand. The default is that of a session without records.
pub struct SessionRecords {
    /// The checkpoint, and the records behind it that are in older segments.
    checkpoint: Option<(Checkpoint, FrameIter)>,
    segments: Vec<Segment>,
    /// The last record before `newest`.
    before: Chain,
    newest: CheckedLines,
}

/// Iterates over the records of a [`SessionRecords`] in order, each checked; ends after the first error.
pub struct SessionRecordIter {
    older: FrameIter,
    failed: bool,
    newest: CheckedRecords,
}

impl SessionRecords {
    pub(super) fn new(ops: &Ops, dir: &Path, found: &mut Survey) -> Self {
        let before = found.from;
        let newest = found.frames.take().unwrap_or_default();
        let checkpoint = Checkpoint::read(ops, dir).and_then(|kept| match kept.seq() {
            _ if newest.holds(kept.mark()) => {
                Some((kept, FrameIter::behind(Vec::new(), before, before.seq)))
            }
            seq if seq <= before.seq => {
                seek::checkpoint(&Ops::real(), &found.segments, kept, before.seq)
            }
            _ => None,
        });
        Self {
            checkpoint,
            segments: found.segments.clone(),
            before,
            newest,
        }
    }

    /// The newest checkpoint that is intact and belongs to this log.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_ref().map(|(checkpoint, _)| checkpoint)
    }

    /// Every record behind the checkpoint; all of them if there is none.
    #[must_use]
    pub fn behind_checkpoint(self) -> SessionRecordIter {
        let (seq, older) = match self.checkpoint {
            Some((kept, older)) => (kept.seq(), older),
            None => (
                0,
                FrameIter::behind(self.segments, Chain::START, self.before.seq),
            ),
        };
        SessionRecordIter {
            older,
            failed: false,
            newest: self.newest.behind(seq),
        }
    }

    /// Every record; ignores the checkpoint.
    #[must_use]
    pub fn all(mut self) -> SessionRecordIter {
        self.checkpoint = None;
        self.behind_checkpoint()
    }
}

impl Iterator for SessionRecordIter {
    type Item = Result<OwnedFrame, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.older.next();
        self.failed = matches!(next, Some(Err(_)));
        next.or_else(|| self.newest.next().map(Ok))
    }
}

impl Default for SessionRecords {
    fn default() -> Self {
        Self {
            checkpoint: None,
            segments: Vec::new(),
            before: Chain::START,
            newest: CheckedLines::default(),
        }
    }
}

impl fmt::Debug for SessionRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRecords")
            .field("before", &self.before.seq)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SessionRecordIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRecordIter")
            .field("older", &self.older)
            .finish_non_exhaustive()
    }
}
