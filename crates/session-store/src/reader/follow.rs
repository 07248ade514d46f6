//! Following a log that grows. Never waits: the caller polls.

use std::path::PathBuf;

use super::{FrameIter, Reader, known, seek};
use crate::damage::ReadError;
use crate::error::DiskFault;
use crate::frame::OwnedFrame;
use crate::ops::Ops;
use crate::session::head::Head;
use crate::session::segment::{self, Segment};
use crate::session::walk::Walk;

/// The durable frames of a log in order; after the last one, [`look`](Self::look) checks for more. Takes no lock. Ends
/// after the first error.
#[derive(Debug)]
pub struct Following {
    dir: PathBuf,
    frames: FrameIter,
}

impl Reader {
    /// Every record from the first on, also those that become durable later.
    #[must_use]
    pub fn follow(&self) -> Following {
        Following {
            dir: self.dir.clone(),
            frames: self.frames(),
        }
    }

    /// Every record from `seq` on, also those that become durable later. Reads little to find the
    /// first one; the chain is checked from a record before it on, so damage before that record is not noticed.
    ///
    /// # Errors
    /// A disk operation failed.
    pub fn from(&self, seq: u64) -> Result<Following, ReadError> {
        Ok(Following {
            dir: self.dir.clone(),
            frames: self.between(seq, self.durable)?,
        })
    }

    pub(super) fn between(&self, first: u64, last: u64) -> Result<FrameIter, DiskFault> {
        let walk = seek::before(&Ops::real(), &self.segments, first.min(self.durable + 1))?;
        Ok(FrameIter::new(walk, first, last))
    }
}

impl Following {
    /// Checks how far the log is durable now; returns whether there is a record to read. Reads HEAD, and lists the
    /// segments after a rotation.
    ///
    /// # Errors
    /// The disk fails, the session no longer exists, or a newer program writes a format that this build does not read.
    pub fn look(&mut self) -> Result<bool, ReadError> {
        match Head::read(&Ops::real(), &self.dir)? {
            Some(head) => self.advance(head.durable, Some(head.segment)),
            None => Ok(self.frames.waits()),
        }
    }

    /// [`look`](Self::look) for the process that writes, which knows what is durable without HEAD.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn upto(&mut self, seq: u64) -> Result<bool, ReadError> {
        self.advance(seq, None)
    }

    fn advance(&mut self, durable: u64, newest: Option<u64>) -> Result<bool, ReadError> {
        if durable > self.frames.upto && !self.frames.done {
            // Bytes read ahead were not durable when they were read and may have changed since.
            let ops = Ops::real();
            let walk = &self.frames.walk;
            let segments = self.ahead(&ops, newest)?;
            self.frames.walk = Walk::within(&ops, segments, walk.chain, walk.offset())?;
            self.frames.upto = durable;
        }
        Ok(self.frames.waits())
    }

    /// The current segment and the later ones.
    fn ahead(&self, ops: &Ops, newest: Option<u64>) -> Result<Vec<Segment>, ReadError> {
        let here = self.frames.walk.segment.as_ref();
        if let Some(newest) = here.filter(|here| Some(here.first) == newest) {
            return Ok(vec![newest.clone()]);
        }
        // The durable seq was read before: every record up to it is in the segments listed now.
        let mut segments = segment::list(ops, &self.dir)?;
        segments.retain(|segment| here.is_none_or(|here| segment.first >= here.first));
        known(&self.dir, &segments)?;
        if segments.is_empty() {
            Err(ReadError::NoSuch(self.dir.clone()))
        } else {
            Ok(segments)
        }
    }
}

impl Iterator for Following {
    type Item = Result<OwnedFrame, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.frames.next()
    }
}
