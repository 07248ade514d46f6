//! Checking lines and decoding their headers, without a JSON parser. Does not depend on files or record bodies.
//!
//! [`standalone`] checks a line by itself; [`check`] also checks that it continues the log.

use super::MAX_LINE;
use super::columns::{self, B, C, COVERED, D, E, FIXED, HEADER, N, OPENING, P, Q, T, TEMPLATE};

/// The first error in a line, or why the next line is missing. Used for the lines of live logs, damaged tails and
/// scans; [`Damage`](crate::Damage) and a quarantine's description carry it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("the line is cut off after {0} bytes")]
    Short(u64),
    /// The bytes between the columns, or a column's digits, are wrong.
    #[error("the header is not valid")]
    Header,
    /// The length is impossible, or no newline is at its end.
    #[error("the length and the newline do not agree")]
    Length,
    #[error("the stored checksum is {found:08x}, but the computed checksum is {computed:08x}")]
    Checksum { found: u32, computed: u32 },
    #[error("the record does not follow the previous record")]
    Previous,
    #[error("the record number is {found}, expected {want}")]
    Seq { want: u64, found: u64 },
    /// Written by an earlier writer after a later one took over.
    #[error("the epoch {found} is older than {last}")]
    Epoch { last: u32, found: u32 },
    /// The record claims that itself or a later record was durable, or the countdown of its batch skips a number.
    #[error("the position in the batch is not valid")]
    Batch,
    /// The log ends inside a batch or before a record that had been durable.
    #[error("the record is missing")]
    Missing,
}

/// A valid line, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) crc: u32,
    pub(crate) previous: u32,
    pub(crate) epoch: u32,
    pub(crate) seq: u64,
    pub(crate) durable: u64,
    pub(crate) batch_left: u32,
    pub(crate) time: u64,
    pub(crate) kind: &'a str,
    pub(crate) v: u16,
    /// Without the newline.
    pub(crate) line: &'a str,
}

/// A record as read back by readers: the header's fields and the whole line. The caller parses the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedFrame {
    pub seq: u64,
    pub epoch: u32,
    /// Checksum of the line, repeated in the next line.
    pub crc: u32,
    /// Highest seq known to be durable when the record was written.
    pub durable: u64,
    /// Microseconds since 1970, informational.
    pub time: u64,
    /// The number of records of its batch that follow.
    pub batch_left: u32,
    /// The record's kind, not checked against any list.
    pub kind: String,
    pub v: u16,
    /// The whole line without its newline: one JSON object, header keys included. Deserialize the body from it;
    /// body types may not deny unknown fields.
    pub line: String,
}

/// Identifies a committed record: its seq, and the checksum, because a log that was cut may reuse the seq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordId {
    pub(crate) seq: u64,
    pub(crate) crc: u32,
}

impl RecordId {
    /// The id of a record that was read back.
    #[must_use]
    pub fn of(frame: &OwnedFrame) -> Self {
        Self {
            seq: frame.seq,
            crc: frame.crc,
        }
    }

    /// The record's seq.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) seq: u64,
    pub(crate) crc: u32,
    pub(crate) epoch: u32,
    pub(crate) batch_left: u32,
}

impl Chain {
    pub(crate) const START: Self = Self {
        seq: 0,
        crc: 0,
        epoch: 0,
        batch_left: 0,
    };

    pub(crate) fn mark(&self) -> RecordId {
        RecordId {
            seq: self.seq,
            crc: self.crc,
        }
    }

    pub(crate) fn after(frame: &Frame<'_>) -> Self {
        Self {
            seq: frame.seq,
            crc: frame.crc,
            epoch: frame.epoch,
            batch_left: frame.batch_left,
        }
    }

    pub(crate) fn of(frame: &OwnedFrame) -> Self {
        Self {
            seq: frame.seq,
            crc: frame.crc,
            epoch: frame.epoch,
            batch_left: frame.batch_left,
        }
    }
}

/// What the columns of a line say, before the line is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// The chain behind the line.
    pub(crate) chain: Chain,
    /// Of the line, newline included.
    pub(crate) length: usize,
}

impl Header {
    /// Reads the columns; none if the bytes are not a header.
    pub(crate) fn read(bytes: &[u8; HEADER]) -> Option<Self> {
        let chain = Chain {
            seq: columns::number(&bytes[Q])?,
            crc: columns::hex(&bytes[C])?,
            epoch: u32::try_from(columns::number(&bytes[E])?).ok()?,
            batch_left: u32::try_from(columns::number(&bytes[B])?).ok()?,
        };
        let length = line_length(bytes)?;
        columns::fits(bytes).then_some(Self { chain, length })
    }
}

/// Whether the parts between the columns are right, as far as there are bytes.
pub(crate) fn begins_like_one(bytes: &[u8]) -> bool {
    if let Some(header) = bytes.first_chunk() {
        return columns::fits(header);
    }
    FIXED.iter().all(|part| {
        let there = part.start..part.end.min(bytes.len());
        there.start >= there.end || bytes.get(there.clone()) == TEMPLATE.get(there)
    })
}

/// The length a line claims, newline included; `None` when it cannot be one.
pub(crate) fn line_length(bytes: &[u8]) -> Option<usize> {
    let length = columns::hex(bytes.get(N)?)? as usize;
    (length > HEADER && length <= MAX_LINE).then_some(length)
}

/// The number of bytes to skip from a bad line: to the byte after the next newline, or, if that newline is the damaged
/// byte, by the line's length.
pub(crate) fn next_candidate(window: &[u8]) -> usize {
    let newline = memchr::memchr(b'\n', window).map(|at| at + 1);
    let follows = |at: &usize| window.get(*at..at + OPENING.len()) == Some(OPENING);
    let claimed = line_length(window).filter(follows);
    newline
        .into_iter()
        .chain(claimed)
        .min()
        .unwrap_or(window.len())
}

/// Rewrites a line to follow another one: returns its bytes, newline included, and its new checksum.
pub(crate) fn rechained(line: &str, previous: u32) -> (Vec<u8>, u32) {
    let mut bytes = line.as_bytes().to_vec();
    if let Some(column) = bytes.get_mut(P) {
        columns::put_hex(column, previous);
    }
    let crc = crc32c::crc32c(bytes.get(COVERED..).unwrap_or_default());
    if let Some(column) = bytes.get_mut(C) {
        columns::put_hex(column, crc);
    }
    bytes.push(b'\n');
    (bytes, crc)
}

/// Checks `line` (newline included) as the successor of `chain`.
pub(crate) fn check<'a>(line: &'a [u8], chain: &Chain) -> Result<Frame<'a>, FrameError> {
    let frame = standalone(line)?;
    if frame.seq != chain.seq + 1 {
        return Err(FrameError::Seq {
            want: chain.seq + 1,
            found: frame.seq,
        });
    }
    if frame.previous != chain.crc {
        return Err(FrameError::Previous);
    }
    if frame.epoch < chain.epoch {
        return Err(FrameError::Epoch {
            last: chain.epoch,
            found: frame.epoch,
        });
    }
    if chain.batch_left > 0 && frame.batch_left != chain.batch_left - 1 {
        return Err(FrameError::Batch);
    }
    Ok(frame)
}

/// Checks a line by itself: columns, length, newline, checksum.
pub(crate) fn standalone(line: &[u8]) -> Result<Frame<'_>, FrameError> {
    let header = line
        .first_chunk::<HEADER>()
        .ok_or(FrameError::Short(line.len() as u64))?;
    if !columns::fits(header) {
        return Err(FrameError::Header);
    }
    if columns::hex(&header[N]) != u32::try_from(line.len()).ok() || line.len() > MAX_LINE {
        return Err(FrameError::Length);
    }
    let [body @ .., b'\n'] = line else {
        return Err(FrameError::Length);
    };
    let found = columns::hex(&header[C]).ok_or(FrameError::Header)?;
    let computed = crc32c::crc32c(body.get(COVERED..).unwrap_or_default());
    if found != computed {
        return Err(FrameError::Checksum { found, computed });
    }
    parse(header, body, found)
        .ok_or(FrameError::Header)
        .and_then(|frame| {
            let sane =
                frame.durable < frame.seq && frame.batch_left < super::MAX_BATCH_RECORDS as u32;
            if sane {
                Ok(frame)
            } else {
                Err(FrameError::Batch)
            }
        })
}

fn parse<'a>(header: &[u8; HEADER], body: &'a [u8], crc: u32) -> Option<Frame<'a>> {
    let line = std::str::from_utf8(body).ok()?;
    let (kind, rest) = line.get(HEADER..)?.split_once('"')?;
    let version = rest.strip_prefix(",\"v\":")?;
    let digits = version.find(|c: char| !c.is_ascii_digit())?;
    Some(Frame {
        crc,
        previous: columns::hex(&header[P])?,
        epoch: u32::try_from(columns::number(&header[E])?).ok()?,
        seq: columns::number(&header[Q])?,
        durable: columns::number(&header[D])?,
        batch_left: u32::try_from(columns::number(&header[B])?).ok()?,
        time: columns::number(&header[T])?,
        kind,
        v: version.get(..digits)?.parse().ok()?,
        line,
    })
}

impl Frame<'_> {
    pub(crate) fn to_owned(self) -> OwnedFrame {
        OwnedFrame {
            seq: self.seq,
            epoch: self.epoch,
            crc: self.crc,
            durable: self.durable,
            time: self.time,
            batch_left: self.batch_left,
            kind: self.kind.to_owned(),
            v: self.v,
            line: self.line.to_owned(),
        }
    }
}
