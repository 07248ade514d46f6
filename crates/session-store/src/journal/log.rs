//! The end of the log, for the writer: where the next group is written, and when a new segment starts.
//!
//! ```text
//! open ──write refused──> longer ──shortened──> open
//! open ──sync refused───> over ──next group, in a new segment──> open
//! open ──full, sealed───> over
//! open, longer ──group of a higher format, in a new segment──> open
//! ```

use std::path::{Path, PathBuf};

use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::{Chain, EncodeError, Encoder, RecordId};
use crate::ops::Ops;
use crate::session::segment::{self, SegmentEnd};
use crate::session::{Options, Probe};

/// The position at which an opened log continues.
pub(crate) struct LogEnd {
    pub(crate) file: DiskFile,
    /// Of the newest segment.
    pub(crate) format: u32,
    /// The first seq of the newest segment, and its durable bytes.
    pub(crate) first: u64,
    pub(crate) offset: u64,
    pub(crate) chain: Chain,
    pub(crate) sealed: bool,
}

pub(super) struct Log {
    ops: Ops,
    dir: PathBuf,
    session: String,
    probe: Probe,
    /// A segment of at least this many bytes is sealed.
    limit: u64,
    tail: Tail,
    format: u32,
    first: u64,
    offset: u64,
    chain: Chain,
}

enum Tail {
    Open(DiskFile),
    /// Bytes of a refused group are behind `offset`.
    Longer(DiskFile),
    /// The segment was sealed, or a flush failed: nothing more is written through that descriptor.
    Over,
}

impl Log {
    pub(super) fn new(
        ops: Ops,
        options: &Options,
        dir: PathBuf,
        session: String,
        place: LogEnd,
    ) -> Self {
        let LogEnd {
            file,
            format,
            first,
            offset,
            chain,
            sealed,
        } = place;
        let tail = if sealed { Tail::Over } else { Tail::Open(file) };
        let probe = options.probe.clone();
        let limit = options.segment_bytes;
        Self {
            ops,
            dir,
            session,
            probe,
            limit,
            tail,
            format,
            first,
            offset,
            chain,
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.dir
    }

    pub(super) fn chain(&self) -> Chain {
        self.chain
    }

    /// The newest segment and its proven bytes.
    pub(super) fn end(&self) -> (u64, u64) {
        (self.first, self.offset)
    }

    /// The newest segment's format. It never decreases.
    pub(super) fn format(&self) -> u32 {
        self.format
    }

    /// Whether a group of this format is written to a new file.
    fn continues_in_new_file(&self, format: u32) -> bool {
        match self.tail {
            Tail::Open(_) | Tail::Longer(_) => self.offset > 0 && format > self.format,
            Tail::Over => true,
        }
    }

    /// Starts a group of this format, with the record that opens a segment if the group starts one.
    pub(super) fn begin(&self, encoder: &mut Encoder, format: u32) -> Result<(), EncodeError> {
        if self.offset > 0 && !self.continues_in_new_file(format) {
            return Ok(());
        }
        segment::open(encoder, format, &self.session, self.previous())
    }

    fn previous(&self) -> Option<SegmentEnd> {
        let Chain {
            seq,
            crc,
            epoch: _,
            batch_left: _,
        } = self.chain;
        (seq > 0).then_some(SegmentEnd {
            first: self.first,
            offset: self.offset,
            seq,
            crc,
        })
    }

    /// Ends a group, with a seal record if the group fills the segment. The seal is part of the same write and flush.
    pub(super) fn seal(&self, encoder: &mut Encoder, format: u32) -> Option<RecordId> {
        let new = self.continues_in_new_file(format);
        let (first, before) = if new {
            (self.chain.seq + 1, 0)
        } else {
            (self.first, self.offset)
        };
        let bytes = before + encoder.bytes.len() as u64;
        // If a counter no longer fits its column, the next group is refused; until then the segment grows.
        if bytes >= self.limit {
            segment::seal(encoder, first, bytes).ok()
        } else {
            None
        }
    }

    /// Does one write and one flush. On failure the log is unchanged in memory and, as far as possible, on disk.
    pub(super) fn write(
        &mut self,
        encoder: &Encoder,
        format: u32,
        sealed: bool,
    ) -> Result<(), DiskFault> {
        let chain = Chain {
            seq: encoder.seq,
            crc: encoder.crc,
            epoch: encoder.epoch,
            batch_left: 0,
        };
        let new = self.continues_in_new_file(format);
        let file = match std::mem::replace(&mut self.tail, Tail::Over) {
            Tail::Open(file) if !new => self.extend(file, &encoder.bytes)?,
            Tail::Longer(file) if !new => match self.ops.truncate(&file, self.offset) {
                Ok(()) => self.extend(file, &encoder.bytes)?,
                Err(fault) => {
                    self.tail = Tail::Longer(file);
                    return Err(fault);
                }
            },
            tail @ (Tail::Open(_) | Tail::Longer(_) | Tail::Over) => {
                let file = match self.unnamed(&encoder.bytes) {
                    Ok(file) => file,
                    Err(fault) => {
                        self.tail = tail;
                        return Err(fault);
                    }
                };
                // If this fails, a crash may still leave the new segment: no more is written to the one before it.
                let file = self.name(file)?;
                (self.first, self.offset) = (self.chain.seq + 1, encoder.bytes.len() as u64);
                file
            }
        };
        self.tail = if sealed { Tail::Over } else { Tail::Open(file) };
        self.format = format;
        self.chain = chain;
        Ok(())
    }

    fn extend(&mut self, file: DiskFile, bytes: &[u8]) -> Result<DiskFile, DiskFault> {
        if let Err(fault) = self.ops.write_at(&file, bytes, self.offset) {
            let shortened = self.ops.truncate(&file, self.offset).is_ok();
            self.tail = if shortened {
                Tail::Open(file)
            } else {
                Tail::Longer(file)
            };
            return Err(fault);
        }
        (self.probe)("journal:written");
        if let Err(fault) = self.ops.sync(&file) {
            // Best effort: a recovery before the new segment exists has less to check. The log does not rely on it.
            drop(self.ops.truncate(&file, self.offset));
            return Err(fault);
        }
        (self.probe)("journal:synced");
        self.offset += bytes.len() as u64;
        Ok(file)
    }

    /// Creates the next segment under a temporary name, complete and durable.
    fn unnamed(&self, bytes: &[u8]) -> Result<DiskFile, DiskFault> {
        let path = segment::path(&self.dir, self.chain.seq + 1).with_extension("tmp");
        let written = self.written(&path, bytes);
        if written.is_err() {
            // Frees the space on a full disk.
            drop(self.ops.remove(&path));
        }
        written
    }

    fn written(&self, path: &Path, bytes: &[u8]) -> Result<DiskFile, DiskFault> {
        let file = self.ops.create_afresh(path)?;
        self.ops.write_at(&file, bytes, 0)?;
        (self.probe)("journal:written");
        self.ops.sync(&file)?;
        Ok(file)
    }

    /// Gives a durable segment its name, durably.
    fn name(&self, mut file: DiskFile) -> Result<DiskFile, DiskFault> {
        let path = segment::path(&self.dir, self.chain.seq + 1);
        self.ops.rename(&file.path, &path)?;
        (self.probe)("journal:renamed");
        self.ops.sync_dir(&segment::log(&self.dir))?;
        (self.probe)("journal:synced");
        file.path = path;
        if self.chain.seq > 0 {
            // The segment has a durable successor, so no recovery writes to it. Read-only protects against accidental
            // edits.
            drop(self.ops.protect(&segment::path(&self.dir, self.first)));
        }
        Ok(file)
    }
}
