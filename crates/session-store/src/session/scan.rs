//! Reading all intact batches of a damaged log, and the losses between them.
//!
//! A walk stops at the first bad record; a scan continues. Only whole batches count. After a bad record it is not known
//! where a batch starts until one has ended or a segment opens; the records before that are lost, too.

use std::ops::Range;
use std::path::Path;

use super::head::Head;
use super::segment::{self, Segment};
use super::walk::Feed;
use crate::damage::Damage;
use crate::error::DiskFault;
use crate::frame::{self, Chain, Frame, FrameError, OwnedFrame};
use crate::ops::Ops;

/// The next batch or loss, in the order of seqs.
pub(crate) enum ScanItem {
    Batch(Vec<OwnedFrame>),
    Lost(Damage),
}

pub(crate) struct Scan<'a> {
    ops: &'a Ops,
    pub(crate) segments: Vec<Segment>,
    each: &'a mut dyn FnMut(ScanItem) -> Result<(), DiskFault>,
    /// The last record passed to the caller.
    good: Chain,
    batch: Vec<OwnedFrame>,
    /// The chain that the next line continues; `None` behind damage.
    place: Option<Chain>,
    /// The first damage since `good`.
    bad: Option<Damage>,
    /// The highest seq known to have been durable.
    proven: u64,
}

/// Passes every intact batch in the log of `dir`, and each loss, to a closure.
pub(crate) fn scan(
    ops: &Ops,
    dir: &Path,
    each: &mut dyn FnMut(ScanItem) -> Result<(), DiskFault>,
) -> Result<(), DiskFault> {
    let proven = Head::read(ops, dir)?.map_or(0, |head| head.durable);
    let segments = segment::list(ops, dir)?;
    let place = Some(Chain::START);
    let mut scan = Scan {
        ops,
        segments,
        each,
        good: Chain::START,
        batch: Vec::new(),
        place,
        bad: None,
        proven,
    };
    for n in 0..scan.segments.len() {
        scan.segment(n)?;
    }
    scan.end(dir)
}

impl Scan<'_> {
    fn segment(&mut self, n: usize) -> Result<(), DiskFault> {
        let Some(segment) = self.segments.get(n).cloned() else {
            return Ok(());
        };
        let next = self
            .segments
            .get(n + 1)
            .map_or(u64::MAX, |segment| segment.first);
        // A batch does not continue in another segment.
        if !self
            .place
            .is_some_and(|chain| chain.seq + 1 == segment.first && chain.batch_left == 0)
        {
            self.stray(&segment, 0, FrameError::Missing);
        }
        let Some(mut feed) = Feed::open(self.ops, &segment)? else {
            return Ok(());
        };
        while feed.fill(frame::MAX_LINE)? > 0 {
            let window = feed.window();
            let length = frame::line_length(window).filter(|length| *length <= window.len());
            let line = length.and_then(|length| window.get(..length));
            let read = match line {
                Some(line) => self.fit(line, segment.first..next),
                None if frame::begins_like_one(window) => {
                    Err(FrameError::Short(window.len() as u64))
                }
                None => Err(FrameError::Header),
            };
            let skip = match read {
                Ok(frame) => {
                    let length = frame.line.len() + 1;
                    let frame = frame.to_owned();
                    self.take(frame)?;
                    length
                }
                Err(bad) => {
                    let skip = frame::next_candidate(window);
                    self.stray(&segment, feed.at, bad);
                    skip
                }
            };
            feed.skip(skip);
        }
        Ok(())
    }

    /// Checks that a line fits the known position in a segment with these seqs.
    fn fit<'l>(&self, line: &'l [u8], seqs: Range<u64>) -> Result<Frame<'l>, FrameError> {
        let frame = match &self.place {
            Some(chain) => frame::check(line, chain)?,
            None => frame::standalone(line)?,
        };
        let opens = frame.kind == segment::KIND || (frame.seq != seqs.start && frame.seq != 1);
        let fits = frame.seq > self.good.seq
            && frame.seq < seqs.end
            && frame.epoch >= self.good.epoch
            && opens;
        if fits {
            Ok(frame)
        } else {
            Err(FrameError::Previous)
        }
    }

    /// Records damage: the position is unknown from here on.
    fn stray(&mut self, segment: &Segment, offset: u64, bad: FrameError) {
        let seq = self.place.map_or(self.good.seq, |chain| chain.seq) + 1;
        let damage = Damage {
            seq,
            segment: segment.path.clone(),
            offset,
            bad,
            lost: seq..=seq,
        };
        self.bad.get_or_insert(damage);
        self.place = None;
        self.batch.clear();
    }

    fn take(&mut self, frame: OwnedFrame) -> Result<(), DiskFault> {
        self.proven = self.proven.max(frame.durable);
        let left = frame.batch_left;
        let chain = Chain::of(&frame);
        // The first line behind damage may be in the middle of a batch.
        if self.place.is_none() && frame.kind != segment::KIND {
            self.place = (left == 0).then_some(chain);
            return Ok(());
        }
        self.place = Some(chain);
        self.batch.push(frame);
        if left > 0 {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let first = batch.first().map_or(0, |frame| frame.seq);
        self.lost(first)?;
        self.good = chain;
        (self.each)(ScanItem::Batch(batch))
    }

    /// Passes on the loss before `next`.
    fn lost(&mut self, next: u64) -> Result<(), DiskFault> {
        let lost = self.good.seq + 1..=next.saturating_sub(1);
        match self.bad.take() {
            Some(damage) if !lost.is_empty() => {
                (self.each)(ScanItem::Lost(Damage { lost, ..damage }))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn end(&mut self, dir: &Path) -> Result<(), DiskFault> {
        if self.proven <= self.good.seq {
            return Ok(());
        }
        if self.bad.is_none() {
            let last = self.segments.last().cloned();
            let (segment, offset) = last.map_or_else(
                || (segment::path(dir, 1), 0),
                |last| (last.path, last.length),
            );
            let seq = self.good.seq + 1;
            self.bad = Some(Damage {
                seq,
                segment,
                offset,
                bad: FrameError::Missing,
                lost: seq..=seq,
            });
        }
        self.lost(self.proven + 1)
    }
}
