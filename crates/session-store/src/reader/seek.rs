//! Binary search for a record by the fixed columns of lines, without an index. Does not depend on record bodies.
//!
//! Lines contain no line break, and each can be checked alone: from any byte the next newline is found, and behind it a
//! seq that halves the range. An invalid line only narrows the range less, so the walk from there reports it.

use super::FrameIter;
use crate::checkpoint::Checkpoint;
use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::{self, Chain, HEADER, MAX_LINE};
use crate::ops::Ops;
use crate::session::segment::Segment;
use crate::session::walk::{Step, Walk};

/// Read sizes, tried in order until a complete line is found. The binary search stops at ranges smaller than the first
/// size.
const LOOKS: [usize; 3] = [4 << 10, 64 << 10, 2 * MAX_LINE];

/// Returns a walk that starts before the record `seq`, close to it if the log is intact there.
pub(crate) fn before(ops: &Ops, segments: &[Segment], seq: u64) -> Result<Walk, DiskFault> {
    // The chain that a segment continues is in its own first record. If that record is bad, the walk starts in an
    // earlier segment.
    let known = |segment: &Segment| segment.first <= seq && (segment.first == 1 || segment.previous.is_some());
    let segments = segments.get(segments.iter().rposition(known).unwrap_or(0)..).unwrap_or_default();
    let Some(segment) = segments.first() else { return Ok(Walk::new(ops, Vec::new())) };
    let mut chain = segment.previous.map_or(Chain::START, |end| end.chain());
    let Some(file) = ops.open(&segment.path, false)? else { return Ok(Walk::behind(ops, segments.to_vec(), chain)) };
    let (mut low, mut high) = (0, segment.end.map_or(ops.length(&file)?, |end| end.offset));
    while chain.seq + 1 < seq && high.saturating_sub(low) > LOOKS[0] as u64 {
        let middle = low + (high - low) / 2;
        match line_behind(ops, &file, middle)? {
            Some((end, after)) if chain.seq < after.seq && after.seq < seq => (low, chain) = (end, after),
            Some(_) | None => high = middle,
        }
    }
    Walk::within(ops, segments.to_vec(), chain, low)
}

/// Returns the stored checkpoint, if its record is in these segments, and the records behind it up to `upto`.
pub(crate) fn checkpoint(
    ops: &Ops,
    segments: &[Segment],
    found: Checkpoint,
    upto: u64,
) -> Option<(Checkpoint, FrameIter)> {
    let mark = found.mark();
    let mut walk = before(ops, segments, mark.seq() + 1).ok()?;
    while walk.chain.seq < mark.seq() {
        let Ok(Step::Frame(_)) = walk.step() else { return None };
    }
    (walk.chain.mark() == mark).then(|| (found, FrameIter::new(walk, 0, upto)))
}

/// The end of the first line that starts behind `offset`, and the chain that the next line continues; `None` if the
/// line is incomplete.
fn line_behind(ops: &Ops, file: &DiskFile, offset: u64) -> Result<Option<(u64, Chain)>, DiskFault> {
    for look in LOOKS {
        let mut bytes = vec![0; look];
        let read = ops.read_at(file, &mut bytes, offset)?;
        let there = bytes.get(..read).unwrap_or_default();
        let start = memchr::memchr(b'\n', there).map_or(read, |newline| newline + 1);
        let rest = there.get(start..).unwrap_or_default();
        let length = frame::line_length(rest);
        if let Some(line) = length.and_then(|length| rest.get(..length)) {
            let end = offset + (start + line.len()) as u64;
            return Ok(frame::standalone(line).ok().map(|frame| (end, Chain::after(&frame))));
        }
        if read < look || (length.is_none() && rest.len() >= HEADER) {
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::{EncodeError, Frames, Options, Records, Session};
    use std::sync::Arc;

    struct Numbers;

    impl Records for Numbers {
        fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
            (0..1000).try_for_each(|n| {
                frames.record("note", 1, &std::collections::BTreeMap::from([("number", n)])).map(drop)
            })
        }
    }

    /// The rest to walk fits into one read, wherever the record is.
    #[test]
    fn the_search_ends_near_the_record() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("one");
        let opened = Session::create(&dir, Options::new("s", Arc::new(|| 0))).unwrap();
        let done: Vec<_> = (0..4).map(|_| opened.journal.append(Numbers).wait().unwrap()).collect();
        assert_eq!(*done.last().unwrap().seqs().end(), 4001);
        opened.journal.close();
        let segments = crate::session::segment::list(&Ops::real(), &dir).unwrap();
        for seq in (1..4002).step_by(7) {
            let found = before(&Ops::real(), &segments, seq).unwrap().chain.seq;
            assert!(found < seq && (seq - found) as usize <= LOOKS[0] / HEADER + 1, "{found} for {seq}");
        }
    }
}
