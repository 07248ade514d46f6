//! The frames of a log in order. Does not depend on session directories.

use std::fmt;

use crate::damage::{Damage, ReadError};
use crate::frame::{Chain, FrameError, OwnedFrame};
use crate::ops::Ops;
use crate::session::segment::Segment;
use crate::session::walk::{Step, Walk};

/// Iterates over the frames of a log in order, each checked; ends after the first error. Made by
/// [`Reader::frames`](crate::Reader::frames).
pub struct FrameIter {
    pub(super) walk: Walk,
    /// The first record to return; those before it are checked and skipped.
    pub(super) from: u64,
    pub(super) upto: u64,
    pub(super) done: bool,
}

impl FrameIter {
    pub(crate) fn new(walk: Walk, from: u64, upto: u64) -> Self {
        Self {
            walk,
            from,
            upto,
            done: false,
        }
    }

    /// Whether there is a record to return, or damage to report.
    pub(super) fn waits(&self) -> bool {
        !self.done && self.walk.chain.seq.max(self.from.saturating_sub(1)) < self.upto
    }

    /// Iterates over the records of `segments` up to `upto`; the first of them continues `from`.
    pub(crate) fn behind(segments: Vec<Segment>, from: Chain, upto: u64) -> Self {
        Self::new(Walk::behind(&Ops::real(), segments, from), 0, upto)
    }
}

impl Iterator for FrameIter {
    type Item = Result<OwnedFrame, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.waits() {
            return None;
        }
        let bad = loop {
            match self.walk.step() {
                Ok(Step::Frame(frame)) if frame.seq < self.from => {}
                Ok(Step::Frame(frame)) => return Some(Ok(frame.to_owned())),
                Ok(Step::Bad(bad)) => break bad,
                Ok(Step::End) => break FrameError::Missing,
                Err(fault) => {
                    self.done = true;
                    return Some(Err(fault.into()));
                }
            }
        };
        self.done = true;
        let seq = self.walk.chain.seq + 1;
        let segment = self
            .walk
            .segment
            .as_ref()
            .map(|s| s.path.clone())
            .unwrap_or_default();
        let damage = Damage {
            seq,
            segment,
            offset: self.walk.offset(),
            bad,
            lost: seq..=self.upto,
        };
        Some(Err(ReadError::Damaged(Box::new(damage))))
    }
}

impl fmt::Debug for FrameIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameIter")
            .field("after", &self.walk.chain.seq)
            .field("upto", &self.upto)
            .finish_non_exhaustive()
    }
}
