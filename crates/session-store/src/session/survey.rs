//! Checking a log's newest segment and diagnosing its end. Changes nothing.

use std::path::Path;

use super::head::Head;
use super::segment::{self, Segment};
use super::walk::{Feed, Step, Walk};
use crate::damage::{Damage, TailDamage};
use crate::error::DiskFault;
use crate::frame::{self, Chain, CheckedLines, FrameError};
use crate::ops::Ops;

pub(crate) struct Survey {
    pub(crate) segments: Vec<Segment>,
    /// The chain that the newest segment continues, if the segments before it are linked; else the start of the log.
    pub(crate) from: Chain,
    /// The last record of the last complete batch.
    pub(crate) good: Chain,
    /// The end of that record in the newest segment.
    pub(crate) offset: u64,
    pub(crate) behind: u64,
    pub(crate) session: Option<String>,
    /// Of the first segment that was read; 0 if that does not begin with a `segment` record.
    pub(crate) format: u32,
    pub(crate) last_time: Option<u64>,
    /// The highest seq that HEAD or a record proves to have been durable.
    pub(crate) proven: u64,
    /// The highest epoch of any writer.
    pub(crate) epoch: u32,
    /// The record `good` is a seal.
    pub(crate) sealed: bool,
    /// The records behind `from` up to `good`, if requested.
    pub(crate) frames: Option<CheckedLines>,
    pub(crate) diagnosis: Diagnosis,
}

pub(crate) enum Diagnosis {
    Clean,
    /// The bytes behind `good` can be cut off without losing durable records.
    Cut(TailDamage, FrameError),
    Damaged(Damage),
}

/// The most bytes allocated at once for kept records: no segment is longer, even if the file is.
const MOST_KEPT: u64 = 2 * segment::SEGMENT_BYTES;

/// Reads the newest segment, or the whole log if the segments before are not linked. Records inside older
/// segments are checked when they are read.
pub(crate) fn survey(
    ops: &Ops,
    dir: &Path,
    head: Option<Head>,
    keep: bool,
) -> Result<Survey, DiskFault> {
    let segments = segment::list(ops, dir)?;
    let newest = segments
        .last()
        .filter(|_| segment::linked(&segments))
        .and_then(|s| Some((s, s.previous?)));
    let (from, mut walk) = match newest {
        Some((newest, end)) => (
            end.chain(),
            Walk::behind(ops, vec![newest.clone()], end.chain()),
        ),
        None => (Chain::START, Walk::new(ops, segments.clone())),
    };
    let length = segments.last().map_or(0, |segment| segment.length);
    let mut survey = Survey {
        segments,
        from,
        good: from,
        offset: 0,
        behind: 0,
        session: None,
        format: *segment::FORMATS.start(),
        last_time: None,
        proven: head.map_or(0, |head| head.durable),
        epoch: head.map_or(0, |head| head.epoch),
        sealed: false,
        frames: keep.then(|| CheckedLines::sized(length.min(MOST_KEPT))),
        diagnosis: Diagnosis::Clean,
    };
    let bad = survey.records(&mut walk)?;
    let bad = bad.or((walk.chain.batch_left > 0).then_some(FrameError::Missing));
    // An incomplete batch does not exist.
    let good = survey.good.seq;
    survey
        .frames
        .iter_mut()
        .for_each(|frames| frames.end_at(good));
    let offset = walk.offset();
    let in_last = walk.in_last();
    // A later segment was complete before it was renamed, so its beginning cannot be torn.
    let first = walk.segment.as_ref().map_or(1, |s| s.first);
    let cuttable = in_last && (first == 1 || survey.good.seq >= first);
    let segment = walk
        .segment
        .as_ref()
        .map_or_else(|| segment::path(dir, 1), |s| s.path.clone());
    let zeros = match (walk.rest(), &bad) {
        (Some(rest), Some(_)) => survey.evidence(rest)?,
        (Some(_) | None, Some(_) | None) => false,
    };
    survey.behind = walk
        .rest()
        .map_or(offset, |rest| rest.at)
        .saturating_sub(survey.offset);
    let lost = survey.good.seq + 1..=survey.proven.max(survey.good.seq + 1);
    survey.diagnosis = match bad {
        None if survey.proven <= survey.good.seq => Diagnosis::Clean,
        Some(bad) if survey.proven <= survey.good.seq && cuttable => {
            Diagnosis::Cut(class(&bad, zeros), bad)
        }
        bad => {
            let seq = walk.chain.seq + 1;
            Diagnosis::Damaged(Damage {
                seq,
                segment,
                offset,
                bad: bad.unwrap_or(FrameError::Missing),
                lost,
            })
        }
    };
    Ok(survey)
}

fn class(bad: &FrameError, zeros: bool) -> TailDamage {
    match bad {
        _ if zeros => TailDamage::ZeroTail,
        FrameError::Short(_) | FrameError::Missing => TailDamage::TornTail,
        FrameError::Header
        | FrameError::Length
        | FrameError::Checksum { .. }
        | FrameError::Previous
        | FrameError::Seq { .. }
        | FrameError::Epoch { .. }
        | FrameError::Batch => TailDamage::BadTail,
    }
}

impl Survey {
    /// Walks to the first bad record; returns its error.
    fn records(&mut self, walk: &mut Walk) -> Result<Option<FrameError>, DiskFault> {
        loop {
            match walk.step()? {
                Step::End => return Ok(None),
                Step::Bad(bad) => return Ok(Some(bad)),
                Step::Frame(frame) => {
                    self.proven = self.proven.max(frame.durable);
                    self.epoch = self.epoch.max(frame.epoch);
                    if frame.seq == self.from.seq + 1 {
                        let body = segment::body(frame.kind, frame.line);
                        self.format = body.as_ref().map_or(0, |body| body.format);
                        self.session = body.map(|body| body.session);
                    }
                    if let Some(frames) = &mut self.frames {
                        frames.add(&frame);
                    }
                    if frame.batch_left > 0 {
                        continue;
                    }
                    self.last_time = Some(frame.time);
                    self.sealed = frame.kind == segment::SEAL;
                }
            }
            self.good = walk.chain;
            self.offset = walk.offset();
        }
    }

    /// Reads what follows the first bad line for whole lines of this or a later writer, each of which records the
    /// durable seq at its time. Returns whether there are only zeros.
    fn evidence(&mut self, rest: &mut Feed) -> Result<bool, DiskFault> {
        let mut zeros = rest.fill(1)? > 0;
        while rest.fill(frame::MAX_LINE)? > 0 {
            let window = rest.window();
            zeros = zeros && window.iter().all(|byte| *byte == 0);
            let length = frame::line_length(window);
            let line = length.and_then(|n| window.get(..n)).map(frame::standalone);
            let skip = match line {
                // Older than the last good record: leftover blocks of an earlier writer.
                Some(Ok(frame)) if frame.epoch >= self.good.epoch => {
                    self.proven = self.proven.max(frame.durable);
                    self.epoch = self.epoch.max(frame.epoch);
                    frame.line.len() + 1
                }
                Some(Ok(frame)) => frame.line.len() + 1,
                Some(Err(_)) | None => frame::next_candidate(window),
            };
            rest.skip(skip);
        }
        Ok(zeros)
    }
}
