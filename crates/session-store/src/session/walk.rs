//! Reading the records of a log in order, each checked against the one before, up to the first bad one.

use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::{self, Chain, Frame, FrameError};
use crate::ops::Ops;
use crate::session::segment::Segment;

/// Bytes read at a time; a longer line grows the buffer up to one line.
const CHUNK: usize = 256 << 10;

/// The result of one step of a [`Walk`].
pub(crate) enum Step<'a> {
    Frame(Frame<'a>),
    /// The next line does not continue the record before. The walk stays here.
    Bad(FrameError),
    End,
}

/// Reads the records of a log in order across segments and checks each against the one before. Readers, recovery and
/// repair use it.
pub(crate) struct Walk {
    ops: Ops,
    segments: std::vec::IntoIter<Segment>,
    /// The current segment.
    pub(crate) segment: Option<Segment>,
    feed: Option<Feed>,
    pub(crate) chain: Chain,
    /// The length of the line returned last, which the next step skips.
    taken: usize,
}

impl Walk {
    pub(crate) fn new(ops: &Ops, segments: Vec<Segment>) -> Self {
        Self::behind(ops, segments, Chain::START)
    }

    /// Walks from the first of `segments` on, which has to continue `chain`.
    pub(crate) fn behind(ops: &Ops, segments: Vec<Segment>, chain: Chain) -> Self {
        let segments = segments.into_iter();
        Self {
            ops: ops.clone(),
            segments,
            segment: None,
            feed: None,
            chain,
            taken: 0,
        }
    }

    /// Walks from `offset` in the first of `segments` on, where the line that continues `chain` starts.
    pub(crate) fn within(
        ops: &Ops,
        segments: Vec<Segment>,
        chain: Chain,
        offset: u64,
    ) -> Result<Self, DiskFault> {
        let mut walk = Self::behind(ops, segments, chain);
        walk.segment = walk.segments.next();
        if let Some(segment) = &walk.segment {
            walk.feed = Feed::open(ops, segment)?.map(|feed| Feed { at: offset, ..feed });
        }
        Ok(walk)
    }

    /// The offset in the segment at which the next line starts.
    pub(crate) fn offset(&self) -> u64 {
        self.feed
            .as_ref()
            .map_or(0, |feed| feed.at + self.taken as u64)
    }

    pub(crate) fn in_last(&self) -> bool {
        self.segments.len() == 0
    }

    /// The rest of the segment from the next line on.
    pub(crate) fn rest(&mut self) -> Option<&mut Feed> {
        let feed = self.feed.as_mut()?;
        feed.skip(std::mem::take(&mut self.taken));
        Some(feed)
    }

    pub(crate) fn step(&mut self) -> Result<Step<'_>, DiskFault> {
        loop {
            if let Some(feed) = self.rest() {
                if feed.fill(1)? > 0 {
                    break;
                }
                let feed_at = feed.at;
                let whole = match (
                    self.segment.as_ref().and_then(|s| s.end),
                    self.segments.as_slice().first(),
                ) {
                    (Some(end), _) => end.reached(&self.chain),
                    // The successor does not record where this segment ends; if it starts with the next seq, the damage
                    // is in the successor.
                    (None, Some(next)) => {
                        next.first == self.chain.seq + 1 && self.chain.batch_left == 0
                    }
                    (None, None) => true,
                };
                // Only the first segment had its name before it had a record.
                let empty = feed_at == 0
                    && self
                        .segment
                        .as_ref()
                        .is_some_and(|segment| segment.first > 1);
                if !whole || empty {
                    return Ok(Step::Bad(FrameError::Missing));
                }
            }
            let Some(next) = self.segments.next() else {
                return Ok(Step::End);
            };
            let begins = next.first == self.chain.seq + 1;
            self.feed = Feed::open(&self.ops, &next)?;
            self.segment = Some(next);
            if !begins {
                return Ok(Step::Bad(FrameError::Missing));
            }
        }
        let Some(feed) = self.feed.as_mut() else {
            return Ok(Step::End);
        };
        let line = match feed.line()? {
            Ok(line) => line,
            Err(bad) => return Ok(Step::Bad(bad)),
        };
        match frame::check(line, &self.chain) {
            Ok(frame) => {
                self.taken = line.len();
                self.chain = Chain::after(&frame);
                Ok(Step::Frame(frame))
            }
            Err(bad) => Ok(Step::Bad(bad)),
        }
    }
}

/// Reads a file's bytes in order, with a window of them in memory.
pub(crate) struct Feed {
    ops: Ops,
    file: DiskFile,
    limit: u64,
    /// A reused buffer; the window is `start..end` of it.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `buf[start]` in the file.
    pub(crate) at: u64,
    /// The last read reached the end of the file.
    ended: bool,
}

impl Feed {
    /// Opens a segment's bytes, as far as they are part of the log.
    pub(crate) fn open(ops: &Ops, segment: &Segment) -> Result<Option<Self>, DiskFault> {
        let Some(file) = ops.open(&segment.path, false)? else {
            return Ok(None);
        };
        // A live writer may append; the requested bytes exist already.
        let length = ops.length(&file)?;
        let limit = segment.end.map_or(length, |end| end.offset.min(length));
        Ok(Some(Self::new(ops.clone(), file, limit)))
    }

    fn new(ops: Ops, file: DiskFile, limit: u64) -> Self {
        Self {
            ops,
            file,
            limit,
            buf: Vec::new(),
            start: 0,
            end: 0,
            at: 0,
            ended: false,
        }
    }

    /// Reads until the window has `want` bytes or the file ends; returns the number of bytes in it.
    pub(crate) fn fill(&mut self, want: usize) -> Result<usize, DiskFault> {
        let have = self.end - self.start;
        if have >= want || self.ended {
            return Ok(have);
        }
        self.buf.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, have);
        let from = self.at + have as u64;
        let room = usize::try_from(self.limit.saturating_sub(from)).unwrap_or(usize::MAX);
        let asked = (want - have).max(CHUNK).min(room);
        if self.buf.len() < have + asked {
            self.buf.resize(have + asked, 0);
        }
        let Some(fresh) = self.buf.get_mut(have..have + asked) else {
            return Ok(have);
        };
        let read = self.ops.read_at(&self.file, fresh, from)?;
        self.ended = read < asked || asked == 0;
        self.end = have + read;
        Ok(self.end)
    }

    pub(crate) fn window(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.start);
        self.start += bytes;
        self.at += bytes as u64;
    }

    /// The bytes of the next line, by the length in its header.
    fn line(&mut self) -> Result<Result<&[u8], FrameError>, DiskFault> {
        let have = self.fill(frame::HEADER)?;
        if !frame::begins_like_one(self.window()) {
            return Ok(Err(FrameError::Header));
        }
        if have < frame::HEADER {
            return Ok(Err(FrameError::Short(have as u64)));
        }
        let Some(length) = frame::line_length(self.window()) else {
            return Ok(Err(FrameError::Length));
        };
        let have = self.fill(length)?;
        match self.window().get(..length) {
            Some(line) => Ok(Ok(line)),
            // A line that ends before its recorded length is invalid, not cut off.
            None if memchr::memchr(b'\n', self.window()).is_some() => Ok(Err(FrameError::Length)),
            None => Ok(Err(FrameError::Short(have as u64))),
        }
    }
}
