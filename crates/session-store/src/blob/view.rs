//! Reading blobs, whole or by lines, always verified.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use blake3::Hasher;

use super::{BlobError, BlobLines, Digest, LineWindow, StreamGap};
use crate::disk::Op;
use crate::error::DiskFault;

/// Bytes read at a time.
const BLOCK: usize = 64 << 10;

/// Reads the blobs of a session, open or not, and verifies each against its digest.
#[derive(Clone, Debug)]
pub struct BlobView {
    dir: PathBuf,
}

impl BlobView {
    pub(crate) fn new(session: &Path) -> Self {
        Self {
            dir: session.join("blobs"),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The whole blob, verified. `limit` bounds the bytes held in memory.
    pub fn read(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, BlobError> {
        let len = self.length(digest)?;
        if len > limit {
            return Err(BlobError::TooLarge { len, limit });
        }
        let mut bytes = Vec::new();
        self.stream(digest, |block| bytes.extend_from_slice(block))?;
        Ok(bytes)
    }

    /// Reads at most `lines` lines and `max_bytes` bytes; the whole blob is read and verified. A stream's gap ends a
    /// line, so that no line is joined from two.
    pub fn lines(
        &self,
        digest: &Digest,
        gap: Option<StreamGap>,
        window: LineWindow,
        lines: usize,
        max_bytes: usize,
        mut show: impl FnMut(&[u8]) -> Vec<u8>,
    ) -> Result<BlobLines, BlobError> {
        let mut collector = Collector::new(window, lines, max_bytes);
        let mut seam = gap.map(|gap| gap.at);
        let mut at = 0;
        self.stream(digest, |block| {
            let (before, after) = match seam.and_then(|seam| usize::try_from(seam - at).ok()) {
                Some(split) if split <= block.len() => {
                    seam = None;
                    block.split_at(split)
                }
                Some(_) | None => (block, &[][..]),
            };
            collector.block(&show(before));
            if before.len() < block.len() {
                collector.block(&show(&[]));
                collector.end_if_open();
                collector.block(&show(after));
            }
            at += block.len() as u64;
        })?;
        collector.block(&show(&[]));
        Ok(collector.finish())
    }

    /// Reads the whole blob in pieces of at most 64 KiB. Only if this returns `Ok` are the pieces undamaged.
    pub fn pieces(&self, digest: &Digest, each: impl FnMut(&[u8])) -> Result<u64, BlobError> {
        self.stream(digest, each)
    }

    /// Verifies the blob; returns its length.
    pub fn verify(&self, digest: &Digest) -> Result<u64, BlobError> {
        self.stream(digest, |_| {})
    }

    /// The path of the blob, whether or not it exists.
    #[must_use]
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.to_string();
        self.dir.join(hex.get(..2).unwrap_or_default()).join(&hex)
    }

    fn length(&self, digest: &Digest) -> Result<u64, BlobError> {
        let path = self.path(digest);
        std::fs::metadata(&path)
            .map(|m| m.len())
            .map_err(|e| missing(digest, Op::Stat, &path, &e))
    }

    fn stream(&self, digest: &Digest, mut each: impl FnMut(&[u8])) -> Result<u64, BlobError> {
        let path = self.path(digest);
        let mut file = File::open(&path).map_err(|e| missing(digest, Op::Open, &path, &e))?;
        let mut hasher = Hasher::new();
        let mut buf = vec![0; BLOCK];
        let mut len = 0;
        loop {
            let read = match file.read(&mut buf) {
                Ok(0) => break,
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(DiskFault::new(Op::Read, &path, &e).into()),
            };
            let block = buf.get(..read).unwrap_or_default();
            hasher.update(block);
            each(block);
            len += read as u64;
        }
        if Digest::from(&hasher) == *digest {
            Ok(len)
        } else {
            Err(BlobError::Damaged(*digest))
        }
    }
}

fn missing(digest: &Digest, op: Op, path: &Path, error: &io::Error) -> BlobError {
    if error.kind() == io::ErrorKind::NotFound {
        return BlobError::Missing(*digest);
    }
    DiskFault::new(op, path, error).into()
}

/// Counts all lines and keeps those in the window, within the bound.
struct Collector {
    window: LineWindow,
    limit: usize,
    max_bytes: usize,
    /// Each line, and whether it was cut.
    kept: VecDeque<(Vec<u8>, bool)>,
    bytes: usize,
    /// The number of complete lines so far.
    ended: u64,
    /// The line being read, as far as it is kept.
    current: Vec<u8>,
    open: bool,
    /// The line being read is kept in part.
    cut: bool,
    /// No line after this one is kept, because one before it did not fit.
    full: bool,
}

impl Collector {
    fn new(window: LineWindow, limit: usize, max_bytes: usize) -> Self {
        let kept = VecDeque::new();
        let current = Vec::new();
        Self {
            window,
            limit,
            max_bytes,
            kept,
            bytes: 0,
            ended: 0,
            current,
            open: false,
            cut: false,
            full: false,
        }
    }

    fn block(&mut self, block: &[u8]) {
        let mut rest = block;
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(newline);
            self.part(line);
            self.end();
            rest = behind.get(1..).unwrap_or_default();
        }
        if !rest.is_empty() {
            self.part(rest);
        }
    }

    fn part(&mut self, part: &[u8]) {
        self.open = true;
        match self.window {
            LineWindow::From(first) => {
                let number = self.ended + 1;
                if number < first || self.kept.len() >= self.limit {
                    return;
                }
                let room = if self.full {
                    0
                } else {
                    self.max_bytes - self.bytes - self.current.len()
                };
                self.current
                    .extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
                if part.len() > room {
                    (self.cut, self.full) = (true, true);
                }
            }
            LineWindow::Tail => {
                let whole = part.len();
                let part = part
                    .get(part.len().saturating_sub(self.max_bytes)..)
                    .unwrap_or_default();
                self.current.extend_from_slice(part);
                let over = self.current.len().saturating_sub(self.max_bytes);
                self.current.drain(..over);
                self.cut |= over > 0 || whole > part.len();
            }
        }
    }

    fn end_if_open(&mut self) {
        if self.open {
            self.end();
        }
    }

    fn end(&mut self) {
        let line = std::mem::take(&mut self.current);
        let cut = std::mem::take(&mut self.cut);
        self.ended += 1;
        self.open = false;
        match self.window {
            LineWindow::From(first) => {
                let wanted = self.ended >= first && self.kept.len() < self.limit;
                // A line is omitted if no byte of it fits; an empty line that fits is kept.
                if wanted && (!self.full || !line.is_empty()) {
                    self.bytes += line.len();
                    self.kept.push_back((line, cut));
                }
            }
            LineWindow::Tail => {
                self.bytes += line.len();
                self.kept.push_back((line, cut));
                while self.kept.len() > self.limit
                    || (self.bytes > self.max_bytes && self.kept.len() > 1)
                {
                    self.bytes -= self.kept.pop_front().map_or(0, |(line, _)| line.len());
                }
            }
        }
    }

    fn finish(mut self) -> BlobLines {
        self.end_if_open();
        let shown = self.kept.len() as u64;
        let first = match self.window {
            LineWindow::From(first) => first.max(1),
            LineWindow::Tail => self.ended - shown + 1,
        };
        let fewer =
            matches!(self.window, LineWindow::Tail) && shown < self.ended.min(self.limit as u64);
        let cut = self.full || fewer || self.kept.iter().any(|(_, cut)| *cut);
        let lines = self.kept.into_iter().map(|(line, _)| line).collect();
        BlobLines {
            first,
            lines,
            total: self.ended,
            cut,
        }
    }
}
