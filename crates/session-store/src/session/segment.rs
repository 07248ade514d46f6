//! The files a log consists of, and the first record of each.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::DiskFault;
use crate::frame::{self, Chain, EncodeError, Encoder};
use crate::ops::Ops;

/// The only kind this crate writes itself. `seal`, the last record of a full segment, is reserved.
pub(crate) const KIND: &str = "segment";
/// The format of lines and directory.
pub(crate) const FORMAT: u64 = 1;

/// Body of a `segment` record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Body {
    pub(crate) format: u64,
    pub(crate) session: String,
    /// Where the segment before this one ends. Bytes behind that are not part of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<End>,
}

/// The end of a segment, as its successor knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// The first seq of the segment that ends.
    pub(crate) first: u64,
    pub(crate) offset: u64,
    pub(crate) seq: u64,
    pub(crate) crc: u32,
}

/// One file of the log.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) first: u64,
    /// Known when there is a successor.
    pub(crate) end: Option<End>,
}

pub(crate) fn log(dir: &Path) -> PathBuf {
    dir.join("log")
}

pub(crate) fn path(dir: &Path, first: u64) -> PathBuf {
    log(dir).join(format!("{first:020}.jsonl"))
}

/// Adds the record that opens a segment, as a batch of its own.
pub(crate) fn open(encoder: &mut Encoder, session: &str, previous: Option<End>) -> Result<(), EncodeError> {
    let body = Body { format: FORMAT, session: session.to_owned(), previous };
    encoder.batch(|frames| frames.record(KIND, 1, &body).map(drop)).map(drop)
}

/// The segments in order, each with the end its successor names.
pub(crate) fn list(ops: &Ops, dir: &Path) -> Result<Vec<Segment>, DiskFault> {
    let mut found: Vec<Segment> = Vec::new();
    for path in ops.list(&log(dir))? {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jsonl"));
        let Some(first) = name.filter(|n| n.len() == 20).and_then(|name| name.parse().ok()) else { continue };
        let opening = opening(ops, &path)?;
        if let (Some(before), Some(end)) = (found.last_mut(), opening.and_then(|body| body.previous)) {
            before.end = (end.first == before.first).then_some(end);
        }
        found.push(Segment { path, first, end: None });
    }
    Ok(found)
}

/// The body of a segment's first record, if that is whole.
fn opening(ops: &Ops, path: &Path) -> Result<Option<Body>, DiskFault> {
    /// A segment record is far shorter.
    const ENOUGH: usize = 4096;
    let Some(file) = ops.open(path, false)? else { return Ok(None) };
    let mut bytes = vec![0; ENOUGH];
    let length = ops.read_at(&file, &mut bytes, 0)?;
    let line = frame::line_length(&bytes).filter(|n| *n <= length).and_then(|n| bytes.get(..n));
    let Some(Ok(frame)) = line.map(frame::standalone) else { return Ok(None) };
    Ok(body(&frame))
}

/// The body of a `segment` record.
pub(crate) fn body(frame: &frame::Frame<'_>) -> Option<Body> {
    if frame.kind == KIND { serde_json::from_str(frame.line).ok() } else { None }
}

impl End {
    pub(crate) fn reached(&self, chain: &Chain) -> bool {
        self.seq == chain.seq && self.crc == chain.crc && chain.batch_left == 0
    }
}
