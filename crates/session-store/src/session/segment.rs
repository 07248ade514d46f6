//! The segment files of a log, and the first and last record of each. Does not depend on other records.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::{self, Chain, EncodeError, Encoder, RecordId};
use crate::ops::Ops;

/// The kind of a segment's first record.
pub(crate) const KIND: &str = "segment";
/// The kind of a full segment's last record.
pub(crate) const SEAL: &str = "seal";
/// The size at which a segment is sealed: opening a log reads at most one segment.
pub(crate) const SEGMENT_BYTES: u64 = 16 << 20;
/// The formats of segments that this build reads and writes. A later one may change everything but the columns of a
/// segment's first record and the fields of its body below.
pub(crate) const FORMATS: RangeInclusive<u32> = 1..=2;

/// Body of a `segment` record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SegmentBody {
    pub(crate) format: u32,
    pub(crate) session: String,
    /// Where the segment before this one ends. Bytes behind that are not part of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<SegmentEnd>,
}

/// The end of a segment, as recorded in its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentEnd {
    /// The first seq of the segment that ends.
    pub(crate) first: u64,
    pub(crate) offset: u64,
    pub(crate) seq: u64,
    pub(crate) crc: u32,
}

/// Body of a `seal` record: the segment it closes and the bytes before it.
#[derive(Serialize)]
struct SealBody {
    first: u64,
    bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) first: u64,
    /// Known when there is a successor.
    pub(crate) end: Option<SegmentEnd>,
    /// The end of the segment before, from this segment's first record, if that record is intact and in its place.
    pub(crate) previous: Option<SegmentEnd>,
    /// From the first record, if that record is intact.
    pub(crate) format: Option<u32>,
    pub(crate) length: u64,
}

pub(crate) fn log(dir: &Path) -> PathBuf {
    dir.join("log")
}

pub(crate) fn path(dir: &Path, first: u64) -> PathBuf {
    log(dir).join(format!("{first:020}.jsonl"))
}

/// Adds the record that opens a segment, as a batch of its own.
pub(crate) fn open(
    encoder: &mut Encoder,
    format: u32,
    session: &str,
    previous: Option<SegmentEnd>,
) -> Result<(), EncodeError> {
    let body = SegmentBody {
        format,
        session: session.to_owned(),
        previous,
    };
    encoder
        .batch(|frames| frames.record(KIND, 1, &body).map(drop))
        .map(drop)
}

/// Adds the record that closes a full segment, as a batch of its own.
pub(crate) fn seal(encoder: &mut Encoder, first: u64, bytes: u64) -> Result<RecordId, EncodeError> {
    let seqs =
        encoder.batch(|frames| frames.record(SEAL, 1, &SealBody { first, bytes }).map(drop))?;
    Ok(RecordId {
        seq: *seqs.end(),
        crc: encoder.crc,
    })
}

/// Lists the segments in order, each with the end that its successor records.
pub(crate) fn list(ops: &Ops, dir: &Path) -> Result<Vec<Segment>, DiskFault> {
    let mut found: Vec<Segment> = Vec::new();
    for path in ops.list(&log(dir))? {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".jsonl"));
        let Some(first) = name
            .filter(|n| n.len() == 20)
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Some(file) = ops.open(&path, false)? else {
            continue;
        };
        let length = ops.length(&file)?;
        let opening = opening(ops, &file)?;
        let format = opening.as_ref().map(|(_, body)| body.format);
        let previous = opening.and_then(|opening| previous(opening, first));
        if let (Some(before), Some(end)) = (found.last_mut(), previous) {
            before.end = (end.first == before.first).then_some(end);
        }
        found.push(Segment {
            path,
            first,
            end: None,
            previous,
            format,
            length,
        });
    }
    Ok(found)
}

/// The end of the segment before, from the first record, if that record is in its place.
fn previous((place, body): (Chain, SegmentBody), first: u64) -> Option<SegmentEnd> {
    let Chain {
        seq,
        crc,
        epoch: _,
        batch_left: _,
    } = place;
    body.previous
        .filter(|end| seq == first && end.seq + 1 == first && end.crc == crc)
}

/// The highest format of these segments, and 1 without any.
pub(crate) fn format(segments: &[Segment]) -> u32 {
    segments
        .iter()
        .filter_map(|segment| segment.format)
        .fold(*FORMATS.start(), u32::max)
}

/// The highest format of these segments, if this build does not read it.
pub(crate) fn newer_format(segments: &[Segment]) -> Option<u32> {
    Some(format(segments)).filter(|format| !FORMATS.contains(format))
}

/// The body of a file's first record, if it is a `segment` record, and the chain that it continues.
fn opening(ops: &Ops, file: &DiskFile) -> Result<Option<(Chain, SegmentBody)>, DiskFault> {
    /// A segment record is far shorter.
    const ENOUGH: usize = 4096;
    let mut bytes = vec![0; ENOUGH];
    let length = ops.read_at(file, &mut bytes, 0)?;
    let line = frame::line_length(&bytes)
        .filter(|n| *n <= length)
        .and_then(|n| bytes.get(..n));
    let Some(Ok(frame)) = line.map(frame::standalone) else {
        return Ok(None);
    };
    let place = Chain {
        seq: frame.seq,
        crc: frame.previous,
        epoch: frame.epoch,
        batch_left: frame.batch_left,
    };
    Ok(body(frame.kind, frame.line).map(|body| (place, body)))
}

/// The session id in the first readable `segment` record.
pub(crate) fn session(ops: &Ops, dir: &Path) -> Result<Option<String>, DiskFault> {
    for path in ops.list(&log(dir))? {
        let Some(file) = ops.open(&path, false)? else {
            continue;
        };
        if let Some((_, body)) = opening(ops, &file)? {
            return Ok(Some(body.session));
        }
    }
    Ok(None)
}

/// Whether each segment but the first continues the one before it, and none is shorter than its successor records.
pub(crate) fn linked(segments: &[Segment]) -> bool {
    let mut pairs = segments.iter().zip(segments.iter().skip(1));
    let whole = |(before, after): (&Segment, &Segment)| {
        let end = after
            .previous
            .filter(|end| end.first == before.first && end.offset <= before.length);
        end.is_some_and(|end| end.seq >= before.first)
    };
    segments.first().is_none_or(|segment| segment.first == 1) && pairs.all(whole)
}

/// Protects the complete segments, in case a crash came before that.
pub(crate) fn protect(ops: &Ops, segments: &[Segment]) {
    if let [.., before, _newest] = segments {
        drop(ops.protect(&before.path));
    }
}

/// Removes files that did not become segments. Errors are ignored: the files only take space.
pub(crate) fn sweep(ops: &Ops, dir: &Path) {
    let left = ops.list(&log(dir)).unwrap_or_default();
    for path in left
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "tmp"))
    {
        drop(ops.remove(path));
    }
}

pub(crate) fn body(kind: &str, line: &str) -> Option<SegmentBody> {
    if kind == KIND {
        serde_json::from_str(line).ok()
    } else {
        None
    }
}

impl SegmentEnd {
    pub(crate) fn reached(&self, chain: &Chain) -> bool {
        self.seq == chain.seq && self.crc == chain.crc && chain.batch_left == 0
    }

    /// The chain that a record behind this end has to continue, with any epoch.
    pub(crate) fn chain(&self) -> Chain {
        Chain {
            seq: self.seq,
            crc: self.crc,
            epoch: 0,
            batch_left: 0,
        }
    }
}
