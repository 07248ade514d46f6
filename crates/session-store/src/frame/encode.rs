//! Encoding records as lines with header and checksum. Does not depend on files.
//!
//! The lines of a batch are encoded first; when the last record is known, `b`, `p` and `c` are filled in from the
//! front, because each checksum covers the countdown and the previous checksum.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::columns::{self, B, C, COVERED, D, E, HEADER, N, P, Q, T, TEMPLATE};
use super::{MAX_BATCH_BYTES, MAX_BATCH_RECORDS, MAX_LINE};
use crate::error::ErrorKind;

/// The longest kind.
const MAX_KIND: usize = 32;

/// The error of encoding a batch. The batch is refused and never stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A line over 1 MiB: store the payload as a blob and its digest in the record.
    #[error("a record has {bytes} bytes; the limit is {limit} bytes")]
    TooLarge {
        kind: &'static str,
        bytes: usize,
        limit: usize,
    },
    /// More than [`MAX_BATCH_RECORDS`] records or [`MAX_BATCH_BYTES`] bytes.
    #[error("a batch of {records} records and {bytes} bytes is over the limit; commit it in parts")]
    TooMany { records: usize, bytes: usize },
    #[error("the batch has no records")]
    Empty,
    /// A kind is 1 to 32 of `a-z`, `0-9` and `_`.
    #[error("`{0}` is not a kind of record")]
    Kind(String),
    /// A body is a JSON object; keys of one letter are reserved for the header; it contains no line break.
    #[error("the body of a `{kind}` record cannot be stored: {reason}")]
    Body { kind: &'static str, reason: String },
    /// A counter no longer fits its column: no more records can be added to the session.
    #[error("the session is full: {0} does not fit into the record header")]
    Column(&'static str),
    /// A batch asks for a format of segments that this build does not write.
    #[error("journal format {0} is not supported")]
    Format(u32),
    /// The batch's own reason, or a panic inside its encoder.
    #[error("{0}")]
    Own(String),
}

impl EncodeError {
    /// Tells the caller whether to change the batch or to start a new session.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge { .. } | Self::TooMany { .. } => ErrorKind::FixInput,
            Self::Column(_) => ErrorKind::Exhausted,
            Self::Empty | Self::Kind(_) | Self::Body { .. } | Self::Format(_) | Self::Own(_) => {
                ErrorKind::Bug
            }
        }
    }
}

/// Takes the records of a batch; passed to [`Records::encode`](crate::Records::encode).
pub struct Frames<'a> {
    encoder: &'a mut Encoder,
}

impl Frames<'_> {
    /// Adds one record and returns its seq. `body` serializes to a JSON object (or unit for none); it is serialized
    /// once, in place. The first error of a batch refuses the whole batch, whatever `encode` returns.
    pub fn record(
        &mut self,
        kind: &'static str,
        v: u16,
        body: &impl Serialize,
    ) -> Result<u64, EncodeError> {
        let done = self.encoder.record(kind, v, body);
        if let Err(error) = &done {
            self.encoder.failed.get_or_insert_with(|| error.clone());
        }
        done
    }
}

/// The lines of one group of batches, and what the next line continues.
pub(crate) struct Encoder {
    pub(crate) bytes: Vec<u8>,
    pub(crate) seq: u64,
    pub(crate) crc: u32,
    pub(crate) epoch: u32,
    pub(crate) durable: u64,
    pub(crate) time: u64,
    starts: Vec<usize>,
    failed: Option<EncodeError>,
}

impl Encoder {
    pub(crate) fn new(seq: u64, crc: u32, epoch: u32, durable: u64, time: u64) -> Self {
        let time = time.min(columns::largest(T.len()));
        Self {
            bytes: Vec::new(),
            seq,
            crc,
            epoch,
            durable,
            time,
            starts: Vec::new(),
            failed: None,
        }
    }

    /// Encodes one batch; on an error the buffer is unchanged.
    pub(crate) fn batch(
        &mut self,
        encode: impl FnOnce(&mut Frames<'_>) -> Result<(), EncodeError>,
    ) -> Result<std::ops::RangeInclusive<u64>, EncodeError> {
        let start = self.bytes.len();
        let seq = self.seq;
        self.starts.clear();
        self.failed = None;
        let done = encode(&mut Frames { encoder: self });
        let done = self
            .failed
            .take()
            .map_or(done, Err)
            .and_then(|()| self.finish(start));
        match done {
            Ok(()) => Ok(seq + 1..=self.seq),
            Err(error) => {
                self.bytes.truncate(start);
                self.seq = seq;
                Err(error)
            }
        }
    }

    /// Removes the bytes that an encoder wrote before it panicked.
    pub(crate) fn forget(&mut self, bytes: usize, seq: u64) {
        self.bytes.truncate(bytes);
        self.seq = seq;
    }

    fn record(
        &mut self,
        kind: &'static str,
        v: u16,
        body: &impl Serialize,
    ) -> Result<u64, EncodeError> {
        let spelled = kind
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !spelled || kind.is_empty() || kind.len() > MAX_KIND {
            return Err(EncodeError::Kind(kind.to_owned()));
        }
        let seq = self.seq + 1;
        for (name, value, column) in [
            ("the seq", seq, Q),
            ("the epoch", u64::from(self.epoch), E),
            ("the watermark", self.durable, D),
        ] {
            if value > columns::largest(column.len()) {
                return Err(EncodeError::Column(name));
            }
        }
        let start = self.bytes.len();
        self.starts.push(start);
        self.bytes.extend_from_slice(TEMPLATE);
        self.bytes.extend_from_slice(kind.as_bytes());
        self.bytes.extend_from_slice(b"\",\"v\":");
        self.bytes.extend_from_slice(v.to_string().as_bytes());
        self.body(kind, body)?;
        let length = self.bytes.len() - start;
        if length > MAX_LINE {
            return Err(EncodeError::TooLarge {
                kind,
                bytes: length,
                limit: MAX_LINE,
            });
        }
        let bytes = self.bytes.len() - self.starts.first().unwrap_or(&start);
        let records = self.starts.len();
        if bytes > MAX_BATCH_BYTES || records > MAX_BATCH_RECORDS {
            return Err(EncodeError::TooMany { records, bytes });
        }
        let epoch = self.epoch;
        let durable = self.durable;
        let time = self.time;
        if let Some(header) = self
            .bytes
            .get_mut(start..)
            .and_then(|line| line.first_chunk_mut::<HEADER>())
        {
            columns::put_hex(&mut header[N], length as u32);
            columns::put_number(&mut header[E], u64::from(epoch));
            columns::put_number(&mut header[Q], seq);
            columns::put_number(&mut header[D], durable);
            columns::put_number(&mut header[T], time);
        }
        self.seq = seq;
        Ok(seq)
    }

    /// Splices the members of the body's object behind the header's.
    fn body(&mut self, kind: &'static str, body: &impl Serialize) -> Result<(), EncodeError> {
        let start = self.bytes.len();
        let mut serializer = Serializer::with_formatter(&mut self.bytes, Keys::default());
        let refuse = |reason: String| EncodeError::Body { kind, reason };
        body.serialize(&mut serializer)
            .map_err(|e| refuse(e.to_string()))?;
        let text = self.bytes.get(start..).unwrap_or_default();
        if memchr::memchr(b'\n', text).is_some() {
            return Err(refuse(
                "it contains a line break; compact raw JSON first".to_owned(),
            ));
        }
        match text {
            [b'{', b'}'] | b"null" => {
                self.bytes.truncate(start);
                self.bytes.push(b'}');
            }
            [b'{', .., b'}'] => {
                if let Some(open) = self.bytes.get_mut(start) {
                    *open = b',';
                }
            }
            _ => return Err(refuse("it is not a JSON object".to_owned())),
        }
        self.bytes.push(b'\n');
        Ok(())
    }

    /// Fills in countdown, predecessor and checksum of the current batch.
    fn finish(&mut self, from: usize) -> Result<(), EncodeError> {
        let mut left = self.starts.len() as u64;
        if left == 0 {
            return Err(EncodeError::Empty);
        }
        let ends = self
            .starts
            .iter()
            .skip(1)
            .copied()
            .chain([self.bytes.len()]);
        debug_assert_eq!(self.starts.first(), Some(&from));
        for (start, end) in self.starts.iter().copied().zip(ends) {
            left -= 1;
            let Some(line) = self.bytes.get_mut(start..end) else {
                continue;
            };
            if let Some(header) = line.first_chunk_mut::<HEADER>() {
                columns::put_hex(&mut header[P], self.crc);
                columns::put_number(&mut header[B], left);
            }
            self.crc = crc32c::crc32c(line.get(COVERED..line.len() - 1).unwrap_or_default());
            if let Some(header) = line.first_chunk_mut::<HEADER>() {
                columns::put_hex(&mut header[C], self.crc);
            }
        }
        Ok(())
    }
}

/// Compact JSON that refuses a one-letter key at the top of a body, where it would repeat one of the header's.
#[derive(Default)]
struct Keys {
    depth: usize,
    /// Bytes of the key being written, if it is one at the top.
    key: Option<usize>,
}

impl Formatter for Keys {
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"}")
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.key = (self.depth == 1).then_some(0);
        if first {
            Ok(())
        } else {
            writer.write_all(b",")
        }
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        text: &str,
    ) -> io::Result<()> {
        self.key = self.key.map(|length| length + text.len());
        writer.write_all(text.as_bytes())
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        match self.key.take() {
            Some(1) => Err(io::Error::other(
                "keys of one letter are reserved for the header",
            )),
            Some(_) | None => Ok(()),
        }
    }
}
