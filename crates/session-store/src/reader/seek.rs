//! Binary search for a record by the fixed columns of lines, without an index. Does not depend on record bodies.
//!
//! Lines contain no line break: from any byte the next newline is found, and behind it a header whose seq halves the
//! range. The line in which the search ends is checked; if it is invalid, the walk starts with its segment and reports it.

use super::FrameIter;
use crate::checkpoint::Checkpoint;
use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::{self, Chain, HEADER, Header};
use crate::ops::Ops;
use crate::session::segment::Segment;
use crate::session::walk::{Step, Walk};

/// Bytes of the first read behind an offset; each further one until a line ends has twice as many, up to a bound.
const FIRST_READ: usize = 4 << 10;
const LARGEST_READ: usize = 64 << 10;

/// The search stops at a range of this many bytes: a walk reads more than that at once.
const NEAR: u64 = 64 << 10;

/// So few records of at least this mean length are passed header by header: to find the end of a line anywhere in them
/// takes more reading.
const MAX_HEADERS: u64 = 64;
const LONG: u64 = 64 << 10;

/// Returns a walk that starts before the record `seq`, close to it if the log is intact there.
pub(crate) fn before(ops: &Ops, segments: &[Segment], seq: u64) -> Result<Walk, DiskFault> {
    // The chain that a segment continues is in its own first record. If that record is bad, the walk starts in an
    // earlier segment.
    let known = |segment: &Segment| {
        segment.first <= seq && (segment.first == 1 || segment.previous.is_some())
    };
    let segments = segments
        .get(segments.iter().rposition(known).unwrap_or(0)..)
        .unwrap_or_default();
    let Some(segment) = segments.first() else {
        return Ok(Walk::new(ops, Vec::new()));
    };
    let chain = segment.previous.map_or(Chain::START, |end| end.chain());
    let Some(file) = ops.open(&segment.path, false)? else {
        return Ok(Walk::behind(ops, segments.to_vec(), chain));
    };
    let end = segment.end.map_or(ops.length(&file)?, |end| end.offset);
    let (low, chain) = match narrow(ops, &file, chain, end, seq)?.before {
        // Only its header was read until now.
        Some((start, header)) if is_intact(ops, &file, start, &header)? => {
            (start + header.length as u64, header.chain)
        }
        Some(_) | None => (0, chain),
    };
    Walk::within(ops, segments.to_vec(), chain, low)
}

/// Two lines between which a record is, each with its offset.
pub(super) struct Narrowed {
    /// The header of a line before the record; none if the range begins with the segment.
    before: Option<(u64, Header)>,
    /// Where a line behind the record starts, or the segment ends.
    pub(super) behind: u64,
}

/// Narrows the range of a segment, which continues `chain`, around the line of the record `seq`. Reads headers only, so
/// the caller has to check the lines.
pub(super) fn narrow(
    ops: &Ops,
    file: &DiskFile,
    chain: Chain,
    end: u64,
    seq: u64,
) -> Result<Narrowed, DiskFault> {
    let mut found = Narrowed {
        before: None,
        behind: end,
    };
    let mut low = 0;
    let mut high = end;
    let mut last = chain.seq;
    while last + 1 < seq && high.saturating_sub(low) > NEAR {
        let middle = low + (high - low) / 2;
        let next = match is_sparse(seq - last, high - low) {
            true => header_at(ops, file, low)?,
            false => header_behind(ops, file, middle, high)?,
        };
        match next {
            Some((start, header)) if last < header.chain.seq && header.chain.seq < seq => {
                (low, last) = (start + header.length as u64, header.chain.seq);
                found.before = Some((start, header));
            }
            Some((start, header)) if header.chain.seq >= seq => {
                (high, found.behind) = (middle, start)
            }
            Some(_) | None => high = middle,
        }
    }
    if last + 1 == seq {
        found.behind = found.behind.min(low);
    }
    Ok(found)
}

/// Whether so many records in so many bytes are passed header by header.
pub(super) fn is_sparse(records: u64, bytes: u64) -> bool {
    records <= MAX_HEADERS && records * LONG < bytes
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
        let Ok(Step::Frame(_)) = walk.step() else {
            return None;
        };
    }
    (walk.chain.mark() == mark).then(|| (found, FrameIter::new(walk, 0, upto)))
}

/// The first line that starts behind `offset`, if that is before `limit`.
fn header_behind(
    ops: &Ops,
    file: &DiskFile,
    offset: u64,
    limit: u64,
) -> Result<Option<(u64, Header)>, DiskFault> {
    let mut at = offset;
    let mut piece = vec![0; FIRST_READ];
    while at < limit {
        let read = ops.read_at(file, &mut piece, at)?;
        let there = piece.get(..read).unwrap_or_default();
        let Some(newline) = memchr::memchr(b'\n', there) else {
            if read < piece.len() {
                break;
            }
            at += read as u64;
            piece.resize((2 * read).min(LARGEST_READ), 0);
            continue;
        };
        let start = at + newline as u64 + 1;
        return if start < limit {
            header_at(ops, file, start)
        } else {
            Ok(None)
        };
    }
    Ok(None)
}

/// The line that starts at `start`.
fn header_at(ops: &Ops, file: &DiskFile, start: u64) -> Result<Option<(u64, Header)>, DiskFault> {
    let mut bytes = [0; HEADER];
    let read = ops.read_at(file, &mut bytes, start)?;
    Ok(Header::read(&bytes)
        .filter(|_| read == HEADER)
        .map(|header| (start, header)))
}

fn is_intact(ops: &Ops, file: &DiskFile, start: u64, header: &Header) -> Result<bool, DiskFault> {
    let mut line = vec![0; header.length];
    let read = ops.read_at(file, &mut line, start)?;
    Ok(read == line.len()
        && frame::standalone(&line).is_ok_and(|frame| Chain::after(&frame) == header.chain))
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
                frames
                    .record(
                        "note",
                        1,
                        &std::collections::BTreeMap::from([("number", n)]),
                    )
                    .map(drop)
            })
        }
    }

    /// The rest to walk fits into one read, wherever the record is.
    #[test]
    fn the_search_ends_near_the_record() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("one");
        let opened = Session::create(&dir, Options::new("s", Arc::new(|| 0))).unwrap();
        let done: Vec<_> = (0..4)
            .map(|_| opened.journal.append(Numbers).wait().unwrap())
            .collect();
        assert_eq!(*done.last().unwrap().seqs().end(), 4001);
        opened.journal.close();
        let segments = crate::session::segment::list(&Ops::real(), &dir).unwrap();
        for seq in (1..4002).step_by(7) {
            let found = before(&Ops::real(), &segments, seq).unwrap().chain.seq;
            assert!(
                found < seq && seq - found <= NEAR / HEADER as u64 + 1,
                "{found} for {seq}"
            );
        }
    }
}
