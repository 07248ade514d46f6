//! Reading the records before one of them, from the last to the first. Does not depend on record bodies.
//!
//! Where a page starts is not known before its lines were read. Lines are read backward from its end, so that the bytes
//! read are about those returned, however long the lines are.

use std::collections::VecDeque;

use super::{Reader, seek};
use crate::damage::ReadError;
use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::{self, Chain, HEADER, Header, MAX_LINE, OwnedFrame};
use crate::ops::Ops;
use crate::session::segment::Segment;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

impl Reader {
    /// The last records before `before`, oldest first: at most `records`, and one at least but no more than fit into
    /// `bytes` of lines. Reads little more than those lines, unless the log is damaged there.
    ///
    /// # Errors
    /// One of the records is damaged, or a disk operation failed.
    pub fn page(
        &self,
        before: u64,
        records: usize,
        bytes: usize,
    ) -> Result<Vec<OwnedFrame>, ReadError> {
        let last = before.saturating_sub(1).min(self.durable);
        if records == 0 || last == 0 {
            return Ok(Vec::new());
        }
        let wanted = Wanted {
            last,
            records,
            bytes,
        };
        let lines = wanted.backward(&Ops::real(), &self.segments, self.durable)?;
        match lines.and_then(|lines| checked(&lines, last)) {
            Some(page) => Ok(page),
            None => self.walked(&wanted),
        }
    }

    /// The page by a walk, which names damage.
    fn walked(&self, wanted: &Wanted) -> Result<Vec<OwnedFrame>, ReadError> {
        let mut page = VecDeque::new();
        let mut held = 0;
        for frame in self.between(
            wanted.last.saturating_sub(wanted.records as u64) + 1,
            wanted.last,
        )? {
            let frame = frame?;
            held += frame.line.len();
            page.push_back(frame);
            while held > wanted.bytes && page.len() > 1 {
                held -= page.pop_front().map_or(0, |frame| frame.line.len());
            }
        }
        Ok(page.into())
    }
}

struct Wanted {
    last: u64,
    records: usize,
    bytes: usize,
}

impl Wanted {
    /// The lines of the page, not checked, the last one first; none if the log is not intact there.
    fn backward(
        &self,
        ops: &Ops,
        segments: &[Segment],
        durable: u64,
    ) -> Result<Option<Vec<Vec<u8>>>, DiskFault> {
        let mut page = Vec::new();
        let mut held = 0;
        let upto = segments
            .iter()
            .rposition(|segment| segment.first <= self.last)
            .map_or(0, |at| at + 1);
        for segment in segments.get(..upto).unwrap_or_default().iter().rev() {
            let Some(file) = ops.open(&segment.path, false)? else {
                return Ok(None);
            };
            let (end, newest) = segment
                .end
                .map_or((ops.length(&file)?, durable), |end| (end.offset, end.seq));
            let mut lines = Backward {
                ops,
                file,
                start: end,
                bytes: Vec::new(),
            };
            if page.is_empty() && !self.find_last(&mut lines, segment, newest)? {
                return Ok(None);
            }
            while page.len() < self.records {
                let room = if page.is_empty() {
                    MAX_LINE
                } else {
                    self.bytes.saturating_sub(held)
                };
                match lines.take(room)? {
                    // Newlines count in files only.
                    Taken::Line(line) => {
                        held += line.len() - 1;
                        page.push(line);
                    }
                    Taken::Start => break,
                    Taken::TooLong => return Ok(Some(page)),
                }
            }
        }
        Ok(Some(page))
    }

    /// Goes back from the end of its segment to the page's last record; false if it is not there. `newest` is the last
    /// record of the segment that is durable.
    fn find_last(
        &self,
        lines: &mut Backward<'_>,
        segment: &Segment,
        newest: u64,
    ) -> Result<bool, DiskFault> {
        let chain = segment.previous.map_or(Chain::START, |end| end.chain());
        let end = lines.start;
        // Behind the newest one is only what is being written, mostly nothing. Of long records it may be a lot.
        let is_near =
            self.last == newest && !seek::is_sparse(self.last.saturating_sub(chain.seq), end);
        if is_near && lines.back_to(self.last, PIECE)? {
            return Ok(true);
        }
        let behind = seek::narrow(lines.ops, &lines.file, chain, end, self.last + 1)?.behind;
        (lines.start, lines.bytes) = (behind, Vec::new());
        lines.back_to(self.last, 2 * MAX_LINE)
    }
}

fn seq(line: &[u8]) -> Option<u64> {
    Header::read(line.first_chunk::<HEADER>()?).map(|header| header.chain.seq)
}

/// The records of these lines in order, if each of them follows the one before and the last has this seq.
fn checked(lines: &[Vec<u8>], last: u64) -> Option<Vec<OwnedFrame>> {
    let mut page = Vec::with_capacity(lines.len());
    let mut chain = None;
    for line in lines.iter().rev() {
        let frame = chain
            .map_or_else(
                || frame::standalone(line),
                |chain| frame::check(line, &chain),
            )
            .ok()?;
        chain = Some(Chain::after(&frame));
        page.push(frame.to_owned());
    }
    chain.is_some_and(|chain| chain.seq == last).then_some(page)
}

/// A file's lines, from an end of a line back to the start.
struct Backward<'a> {
    ops: &'a Ops,
    file: DiskFile,
    /// Where `bytes` start in the file.
    start: u64,
    /// What no line was taken from yet.
    bytes: Vec<u8>,
}

enum Taken {
    /// With its newline, if it has one.
    Line(Vec<u8>),
    /// The start of the file was reached.
    Start,
    /// The next line has more bytes than there is room for.
    TooLong,
}

impl Backward<'_> {
    /// Goes back to the end of this record's line; false if more than `most` bytes of lines are behind it.
    fn back_to(&mut self, last: u64, most: usize) -> Result<bool, DiskFault> {
        let mut passed = 0;
        while passed <= most {
            let Taken::Line(line) = self.take(MAX_LINE)? else {
                return Ok(false);
            };
            if seq(&line) == Some(last) {
                self.bytes.extend_from_slice(&line);
                return Ok(true);
            }
            passed += line.len();
        }
        Ok(false)
    }

    /// The line before those that were taken, if it has at most `room` bytes without its newline.
    fn take(&mut self, room: usize) -> Result<Taken, DiskFault> {
        // The line's own newline is not looked at, nor what was looked at before.
        let mut unseen = self.bytes.len().saturating_sub(1);
        loop {
            let before = memchr::memrchr(b'\n', self.bytes.get(..unseen).unwrap_or_default())
                .map(|at| at + 1);
            let length = self.bytes.len() - before.unwrap_or(0);
            if length > room + 1 {
                return Ok(Taken::TooLong);
            }
            match before {
                Some(at) => return Ok(Taken::Line(self.bytes.split_off(at))),
                None if self.start > 0 => unseen = self.read()?,
                None if self.bytes.is_empty() => return Ok(Taken::Start),
                None => return Ok(Taken::Line(std::mem::take(&mut self.bytes))),
            }
        }
    }

    /// Reads the piece before; returns its length, without a newline that ends the last line.
    fn read(&mut self) -> Result<usize, DiskFault> {
        let length = self.start.min(PIECE as u64);
        self.start -= length;
        let mut piece = vec![0; length as usize];
        let read = self.ops.read_at(&self.file, &mut piece, self.start)?;
        piece.truncate(read);
        let unseen = if self.bytes.is_empty() {
            read.saturating_sub(1)
        } else {
            read
        };
        piece.append(&mut self.bytes);
        self.bytes = piece;
        Ok(unseen)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::disk::Disk;
    use crate::{EncodeError, Frames, Options, Records, Session};
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts the bytes that are read.
    #[derive(Default)]
    struct Counted(AtomicU64);

    impl Disk for Counted {
        fn read_at(&self, file: &DiskFile, buf: &mut [u8], at: u64) -> io::Result<usize> {
            let read = std::os::unix::fs::FileExt::read_at(&file.file, buf, at)?;
            self.0.fetch_add(read as u64, Ordering::Relaxed);
            Ok(read)
        }
    }

    struct Texts {
        count: usize,
        length: usize,
    }

    impl Records for Texts {
        fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
            let text = std::collections::BTreeMap::from([("text", "x".repeat(self.length))]);
            (0..self.count).try_for_each(|_| frames.record("note", 1, &text).map(drop))
        }
    }

    /// Bytes of a page in the protocol, and what may be read for one.
    const BYTES: usize = 1 << 20;
    const MAX_READ: usize = 2 << 20;

    /// A log of 40 MB with records of this length.
    fn log(length: usize) -> (tempfile::TempDir, Reader) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("one");
        let opened = Session::create(&dir, Options::new("s", Arc::new(|| 0))).unwrap();
        for _ in 0..10 {
            opened
                .journal
                .append(Texts {
                    count: 4_000_000 / (length + 1_000),
                    length,
                })
                .wait()
                .unwrap();
        }
        opened.journal.close();
        let reader = Reader::open(&dir).unwrap();
        (root, reader)
    }

    /// The lengths of the lines of the page before a record, and the bytes that were read for it.
    fn page(reader: &Reader, before: u64) -> (Vec<usize>, usize) {
        let disk = Arc::new(Counted::default());
        let ops = Ops::new(disk.clone());
        let wanted = Wanted {
            last: before - 1,
            records: 1000,
            bytes: BYTES,
        };
        let segments = crate::session::segment::list(&ops, &reader.dir).unwrap();
        let lines = wanted
            .backward(&ops, &segments, reader.durable)
            .unwrap()
            .unwrap();
        assert_eq!(
            checked(&lines, before - 1).unwrap(),
            reader.walked(&wanted).unwrap()
        );
        (
            lines.iter().map(Vec::len).collect(),
            disk.0.load(Ordering::Relaxed) as usize,
        )
    }

    /// A page costs what it returns, at the end of the log and anywhere in it, also where every record is long, and while
    /// as many bytes of further records as a page has are being written.
    #[test]
    fn a_page_reads_little_more_than_it_returns() {
        for length in [100, 5_000, 100_000, 400_000, 600_000, 1_000_000, 1_048_000] {
            let (_root, reader) = log(length);
            let durable = reader.durable;
            let unfolded = (BYTES / (length + 1)) as u64 + 1;
            for before in [
                durable + 1,
                durable - unfolded,
                durable - 3,
                durable / 2,
                durable / 3,
                20,
            ] {
                let written = Reader {
                    dir: reader.dir.clone(),
                    segments: reader.segments.clone(),
                    durable: before - 1,
                };
                for reader in [&reader, &written] {
                    let (lines, read) = page(reader, before);
                    let held: usize = lines.iter().sum();
                    println!(
                        "{length}-byte records, before {before}: {} records, {held} bytes, {read} read",
                        lines.len()
                    );
                    assert!(
                        read <= MAX_READ,
                        "{length} before {before}: {read} for {held}"
                    );
                    // Next to the end nothing is searched.
                    let room = length.min(BYTES - held) + 2 * PIECE;
                    assert!(
                        before <= durable || read <= held + room,
                        "{length} at the end: {read} for {held}"
                    );
                }
            }
        }
    }
}
