//! Copying the intact records of a damaged session, with a `gap` record for each lost one.
//!
//! The damaged session is not touched. The copy has the same seqs: where records are lost, each is replaced by a `gap`
//! record. Records before the first gap are the same bytes; behind it, `p` and `c` are new, because each line's
//! checksum covers the one before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::error::OpenError;
use super::options::Options;
use super::scan::{ScanItem, scan};
use super::segment::{self, Segment, SegmentEnd};
use super::{file_system, lock, open};
use crate::blob::{BlobError, Blobs, Digest};
use crate::damage::Damage;
use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::{Chain, Encoder, OwnedFrame, rechained};
use crate::ops::Ops;

/// The kind of the records that replace lost ones.
const GAP: &str = "gap";
/// The most lost records that are marked one by one; a hundred segments have fewer.
const MAX_LOST: u64 = 1 << 24;
/// Bytes written at a time.
const CHUNK: usize = 1 << 20;

/// The result of [`Session::salvage`](crate::Session::salvage): the losses in the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged {
    pub kept: u64,
    /// The lost ranges of records, each with the first error in it.
    pub lost: Vec<Damage>,
    pub blobs: u64,
    /// Damaged blobs; they are not copied.
    pub damaged_blobs: Vec<Digest>,
}

/// Body of a `gap` record.
#[derive(Serialize)]
struct GapRecord {
    /// The first seq of the lost range.
    first: u64,
    last: u64,
    /// The damage; only in the first record of a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(super) fn salvage(dir: &Path, into: &Path, options: &Options) -> Result<Salvaged, OpenError> {
    let ops = Ops::new(Arc::clone(&options.disk));
    if !segment::log(dir).is_dir() {
        return Err(OpenError::NoSuch(dir.to_path_buf()));
    }
    if !options.any_file_system {
        file_system::accept(&ops, into.parent().unwrap_or(dir))?;
    }
    let _lock = lock::acquire(&ops, dir, (options.clock)())?;
    let segments = segment::list(&ops, dir)?;
    if let Some(found) = segment::newer_format(&segments) {
        return Err(OpenError::Format {
            dir: dir.to_path_buf(),
            found,
        });
    }
    if segment::log(into).exists() {
        return Err(OpenError::Exists(into.to_path_buf()));
    }
    ops.create_dir(into)?;
    let mut salvaged = Salvaged {
        kept: 0,
        lost: Vec::new(),
        blobs: 0,
        damaged_blobs: Vec::new(),
    };
    blobs(&ops, dir, into, options, &mut salvaged)?;
    let mut copy = Copy::new(&ops, dir, segments, into, options)?;
    scan(&ops, dir, &mut |piece| match piece {
        ScanItem::Batch(batch) => {
            salvaged.kept += batch.len() as u64;
            batch.iter().try_for_each(|frame| copy.record(frame))
        }
        ScanItem::Lost(damage) => {
            copy.gap(&damage)?;
            salvaged.lost.push(damage);
            Ok(())
        }
    })?;
    copy.finish()?;
    // The session exists once the log has this name.
    ops.rename(&unfinished(into), &segment::log(into))?;
    open::names(&ops, into)?;
    Ok(salvaged)
}

fn unfinished(into: &Path) -> PathBuf {
    into.join("log.tmp")
}

/// Copies every blob that matches its digest.
fn blobs(
    ops: &Ops,
    dir: &Path,
    into: &Path,
    options: &Options,
    salvaged: &mut Salvaged,
) -> Result<(), DiskFault> {
    let from = Blobs::apart(ops, dir, options);
    let to = Blobs::apart(ops, into, options);
    for digest in from.names()? {
        match to.copy(&from, &digest) {
            Ok(()) => salvaged.blobs += 1,
            Err(BlobError::Disk(fault)) => return Err(fault),
            Err(
                BlobError::Closed
                | BlobError::Missing(_)
                | BlobError::Damaged(_)
                | BlobError::TooLarge { .. }
                | BlobError::Full { .. },
            ) => salvaged.damaged_blobs.push(digest),
        }
    }
    Ok(())
}

struct Copy<'a> {
    ops: &'a Ops,
    dir: PathBuf,
    session: String,
    now: u64,
    /// The segments of the damaged log.
    segments: Vec<Segment>,
    chain: Chain,
    sealed: bool,
    first: u64,
    offset: u64,
    file: Option<DiskFile>,
    buf: Vec<u8>,
}

impl<'a> Copy<'a> {
    fn new(
        ops: &'a Ops,
        from: &Path,
        segments: Vec<Segment>,
        into: &Path,
        options: &Options,
    ) -> Result<Self, DiskFault> {
        let dir = unfinished(into);
        ops.create_dir(&dir)?;
        // Files of an interrupted attempt.
        ops.list(&dir)?
            .iter()
            .try_for_each(|path| ops.remove(path))?;
        let session = segment::session(ops, from)?.unwrap_or_else(|| options.session.clone());
        Ok(Self {
            ops,
            dir,
            session,
            now: (options.clock)(),
            segments,
            chain: Chain::START,
            sealed: false,
            first: 0,
            offset: 0,
            file: None,
            buf: Vec::new(),
        })
    }

    fn record(&mut self, frame: &OwnedFrame) -> Result<(), DiskFault> {
        if frame.kind == segment::KIND {
            let format = segment::body(&frame.kind, &frame.line).map(|body| body.format);
            return self.open(format, frame.epoch, frame.durable, frame.time);
        }
        let (line, crc) = rechained(&frame.line, self.chain.crc);
        self.chain = Chain {
            crc,
            ..Chain::of(frame)
        };
        self.sealed = frame.kind == segment::SEAL;
        self.add(&line)
    }

    /// Writes one `gap` record for each lost record; a lost record that must have opened a segment is created again.
    fn gap(&mut self, damage: &Damage) -> Result<(), DiskFault> {
        let first = *damage.lost.start();
        let last = *damage.lost.end();
        if last - first >= MAX_LOST {
            let many = std::io::Error::from(std::io::ErrorKind::FileTooLarge);
            return Err(DiskFault::new(crate::Op::Read, &damage.segment, &many));
        }
        let mut reason = Some(damage.to_string());
        for seq in damage.lost.clone() {
            if seq == 1 || self.sealed || self.segments.iter().any(|segment| segment.first == seq) {
                self.open(None, self.chain.epoch, self.chain.seq, self.now)?;
                continue;
            }
            let reason = reason.take();
            self.encode(self.chain.epoch, self.chain.seq, self.now, |encoder| {
                encoder
                    .batch(|frames| {
                        frames
                            .record(
                                GAP,
                                1,
                                &GapRecord {
                                    first,
                                    last,
                                    reason,
                                },
                            )
                            .map(drop)
                    })
                    .map(drop)
            })?;
        }
        Ok(())
    }

    /// Continues in a new file, of the given format if it is known.
    fn open(
        &mut self,
        format: Option<u32>,
        epoch: u32,
        durable: u64,
        time: u64,
    ) -> Result<(), DiskFault> {
        self.flush()?;
        self.sync_file()?;
        let Chain { seq, crc, .. } = self.chain;
        let end = (seq > 0).then_some(SegmentEnd {
            first: self.first,
            offset: self.offset,
            seq,
            crc,
        });
        (self.first, self.offset, self.sealed) = (seq + 1, 0, false);
        let known = |format: &u32| segment::FORMATS.contains(format);
        let format = format.filter(known).unwrap_or_else(|| self.format());
        let name = format!("{:020}.jsonl", self.first);
        self.file = Some(self.ops.create(&self.dir.join(name))?);
        let session = self.session.clone();
        self.encode(epoch, durable, time, |encoder| {
            segment::open(encoder, format, &session, end)
        })
    }

    /// The highest format that the segment at `first` may have had if its opening is lost: that of the next one, since
    /// formats never decrease, or the highest of all.
    fn format(&self) -> u32 {
        let next = self
            .segments
            .iter()
            .filter(|segment| segment.first >= self.first)
            .find_map(|segment| {
                segment
                    .format
                    .filter(|format| segment::FORMATS.contains(format))
            });
        next.unwrap_or(*segment::FORMATS.end())
    }

    fn encode(
        &mut self,
        epoch: u32,
        durable: u64,
        time: u64,
        encode: impl FnOnce(&mut Encoder) -> Result<(), crate::EncodeError>,
    ) -> Result<(), DiskFault> {
        let mut encoder = Encoder::new(self.chain.seq, self.chain.crc, epoch, durable, time);
        // Records of the store itself always fit.
        encode(&mut encoder).map_err(|_| {
            DiskFault::new(
                crate::Op::Write,
                &self.dir,
                &std::io::Error::from(std::io::ErrorKind::InvalidData),
            )
        })?;
        self.chain = Chain {
            seq: encoder.seq,
            crc: encoder.crc,
            epoch,
            batch_left: 0,
        };
        self.add(&encoder.bytes)
    }

    fn add(&mut self, line: &[u8]) -> Result<(), DiskFault> {
        self.buf.extend_from_slice(line);
        if self.buf.len() >= CHUNK {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), DiskFault> {
        let bytes = std::mem::take(&mut self.buf);
        if let Some(file) = &self.file {
            self.ops.write_at(file, &bytes, self.offset)?;
            self.offset += bytes.len() as u64;
        }
        Ok(())
    }

    fn sync_file(&mut self) -> Result<(), DiskFault> {
        self.file.take().map_or(Ok(()), |file| self.ops.sync(&file))
    }

    fn finish(&mut self) -> Result<(), DiskFault> {
        self.flush()?;
        self.sync_file()?;
        self.ops.sync_dir(&self.dir)
    }
}
