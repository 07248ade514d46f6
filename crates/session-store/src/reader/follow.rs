//! Reading on as a log grows.

use std::path::PathBuf;

use super::{FrameIter, Reader};
use crate::damage::ReadError;
use crate::frame::OwnedFrame;
use crate::ops::Ops;
use crate::session::head::Head;
use crate::session::segment::{self, Segment};
use crate::session::walk::Walk;

/// The frames of a log in order, as far as it is known to be durable; behind the last one, [`look`](Self::look) finds
/// out whether there are more. Takes no lock. Ends after the first error.
#[derive(Debug)]
pub struct Following {
    dir: PathBuf,
    frames: FrameIter,
}

impl Reader {
    /// Every record from the first on, also those that become durable later.
    #[must_use]
    pub fn follow(&self) -> Following {
        Following { dir: self.dir.clone(), frames: self.frames() }
    }
}

impl Following {
    /// Looks how far the log is durable by now; answers whether there is a record to be read. Reads HEAD, and the
    /// names of the segments after a rotation.
    ///
    /// # Errors
    /// The disk refuses, or the session is not there any more.
    pub fn look(&mut self) -> Result<bool, ReadError> {
        let ops = Ops::real();
        let head = Head::read(&ops, &self.dir)?.filter(|head| head.durable > self.frames.upto && !self.frames.done);
        if let Some(head) = head {
            // What was read ahead was not durable then and may have changed since.
            let segments = self.ahead(&ops, head)?;
            let walk = &self.frames.walk;
            self.frames.walk = Walk::within(&ops, segments, walk.chain, walk.offset())?;
            self.frames.upto = head.durable;
        }
        Ok(!self.frames.done && self.frames.walk.chain.seq < self.frames.upto)
    }

    /// The segment under foot and those behind it.
    fn ahead(&self, ops: &Ops, head: Head) -> Result<Vec<Segment>, ReadError> {
        let here = self.frames.walk.segment.as_ref();
        if let Some(newest) = here.filter(|here| here.first == head.segment) {
            return Ok(vec![newest.clone()]);
        }
        // HEAD was read before: whatever it vouches for is in these.
        let mut segments = segment::list(ops, &self.dir)?;
        segments.retain(|segment| here.is_none_or(|here| segment.first >= here.first));
        if segments.is_empty() { Err(ReadError::NoSuch(self.dir.clone())) } else { Ok(segments) }
    }
}

impl Iterator for Following {
    type Item = Result<OwnedFrame, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.frames.next()
    }
}
