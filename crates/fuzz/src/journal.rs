//! A log of any bytes: read, repaired, read again, salvaged.

use pod::session::restore::{Restored, decode};
use session_store::{Disk, DiskFile, MAX_LINE, Options, Reader, Session};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Where a line's numbers stand; `docs/JOURNAL.md`.
const CRC: std::ops::Range<usize> = 6..14;
const LENGTH: std::ops::Range<usize> = 21..29;
const PREVIOUS: std::ops::Range<usize> = 36..44;
const SEQ: std::ops::Range<usize> = 61..73;
const KIND: std::ops::Range<usize> = 127..135;
const COVERED: usize = 15;
const HEADER: usize = 127;
/// More segments than any seed has.
const MAX_FILES: usize = 16;

/// The first byte says whether checksums are made right, so that what lies behind them is reached; the second whether
/// the log begins at its first record or as a later segment, and whether it is one file or one for each segment.
pub(crate) fn run(input: &[u8]) {
    let [how, place, bytes @ ..] = input else {
        return;
    };
    let bytes = if how % 4 == 0 {
        bytes.to_vec()
    } else {
        right(bytes)
    };
    let Ok(place_dir) = tempfile::tempdir_in(shared_memory()) else {
        return;
    };
    let dir = place_dir.path().join("pod");
    for part in ["", "log", "blobs", "quarantine"] {
        std::fs::create_dir(dir.join(part)).expect("a directory");
    }
    let first = if place % 8 == 7 { 15 } else { 1 };
    write(&dir, first, &bytes, place & 8 == 0);
    let before = read(&dir);
    let opened = Session::open(&dir, options());
    match opened {
        Ok(opened) => {
            let kept = opened.recovered.last;
            drop(opened);
            let after = read(&dir).expect("what was repaired is read");
            // Opening checks the newest segment; damage in an older one is found by a reader.
            let damaged =
                Reader::open(&dir).is_ok_and(|reader| reader.frames().any(|frame| frame.is_err()));
            let last = after.last().map_or(0, |(seq, _)| *seq);
            assert!(
                last == kept || damaged && last < kept,
                "all that was kept is read"
            );
            if let Some(before) = before {
                assert!(
                    before.starts_with(&after) || after.starts_with(&before),
                    "repair changed records"
                );
            }
            let again = Session::open(&dir, options()).expect("what was repaired opens");
            assert_eq!(
                (again.recovered.last, again.recovered.cut),
                (kept, 0),
                "a repair leaves nothing to repair"
            );
            drop(again);
            if damaged {
                salvage(&dir, &place_dir.path().join("saved"));
            }
        }
        Err(_damaged) => salvage(&dir, &place_dir.path().join("saved")),
    }
}

fn salvage(dir: &Path, into: &Path) {
    if let Ok(salvaged) = Session::salvage(dir, into, options()) {
        drop(salvaged);
        let opened = Session::open(into, options()).expect("what was salvaged opens");
        assert_eq!(opened.recovered.cut, 0, "what was salvaged is whole");
        if opened.recovered.last > 0 {
            let reader = Reader::open(into).expect("what was salvaged is read");
            let read = reader.frames().map(|frame| frame.expect("it is whole").seq);
            assert!(read.eq(1..=opened.recovered.last), "it has every seq");
        }
    }
}

/// Writes the log's files. A segment behind the first is named as its first record says.
fn write(dir: &Path, first: u64, bytes: &[u8], apart: bool) {
    let mut files = vec![(first, Vec::new())];
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let opens = apart && line.get(KIND).is_some_and(|kind| kind == b"segment\"");
        let seq = line
            .get(SEQ)
            .and_then(|seq| std::str::from_utf8(seq).ok()?.trim().parse().ok());
        let begun = files.last().is_some_and(|(_, bytes)| !bytes.is_empty());
        if let Some(seq) = seq.filter(|_| opens && begun && files.len() < MAX_FILES) {
            files.push((seq, Vec::new()));
        }
        files
            .last_mut()
            .expect("the first")
            .1
            .extend_from_slice(line);
    }
    for (first, bytes) in files {
        std::fs::write(dir.join(format!("log/{first:020}.jsonl")), bytes).expect("a log");
    }
}

/// The records, each with its line, as a reader gives them, folded as far as they go.
fn read(dir: &Path) -> Option<Vec<(u64, String)>> {
    let reader = Reader::open(dir).ok()?;
    let mut records: Vec<(u64, String)> = Vec::new();
    let mut restored = Some(Restored::default());
    for frame in reader.frames() {
        let Ok(frame) = frame else { break };
        if let Some((last, _)) = records.last() {
            assert_eq!(frame.seq, last + 1, "seqs are dense");
        }
        assert!(frame.line.len() < MAX_LINE, "a line is bounded");
        restored = restored.and_then(|mut so_far| {
            let record = decode(&frame).ok()?;
            so_far.take(frame.seq, frame.time, &record).ok()?;
            Some(so_far)
        });
        records.push((frame.seq, frame.line));
    }
    let _: Result<_, _> = reader.tail();
    let _: Result<_, _> = reader.losses();
    Some(records)
}

/// The same lines with lengths, chain and checksums that fit, as far as they are long enough.
fn right(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut previous = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let at = out.len();
        out.extend_from_slice(line);
        let Some(line) = out
            .get_mut(at..)
            .filter(|line| line.len() > HEADER && line.ends_with(b"\n"))
        else {
            continue;
        };
        let length = u32::try_from(line.len()).unwrap_or(u32::MAX);
        line[LENGTH].copy_from_slice(format!("{length:08x}").as_bytes());
        line[PREVIOUS].copy_from_slice(format!("{previous:08x}").as_bytes());
        previous = crc32c::crc32c(&line[COVERED..line.len() - 1]);
        line[CRC].copy_from_slice(format!("{previous:08x}").as_bytes());
    }
    out
}

fn options() -> Options {
    let mut options = Options::new("fuzz", Arc::new(|| 1_790_000_000_000_000));
    options.disk = Arc::new(Unsynced);
    options.any_file_system = true;
    options
}

fn shared_memory() -> &'static Path {
    let here = Path::new("/dev/shm");
    if here.is_dir() {
        here
    } else {
        Path::new("/tmp")
    }
}

/// The real one, without waiting for a disk: nothing here is kept.
struct Unsynced;

impl Disk for Unsynced {
    fn sync(&self, _: &DiskFile) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _: &DiskFile, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed with segments of several formats is a log of as many files.
    #[test]
    fn segments_are_files_and_read_on() {
        let seed = right(include_bytes!("../seeds/journal/two-formats.jsonl"));
        let dir = tempfile::tempdir_in(shared_memory()).unwrap();
        std::fs::create_dir(dir.path().join("log")).unwrap();
        write(dir.path(), 1, &seed, true);
        assert_eq!(
            std::fs::read_dir(dir.path().join("log")).unwrap().count(),
            4
        );
        let reader = Reader::open(dir.path()).unwrap();
        assert_eq!(
            (reader.tail().unwrap(), reader.losses().unwrap()),
            (session_store::Tail::Clean, vec![])
        );
        assert_eq!(reader.upto(41).frames().filter(Result::is_ok).count(), 41);
    }

    /// Otherwise nothing behind a checksum is ever reached.
    #[test]
    fn what_is_made_right_is_read() {
        let seed = include_bytes!("../seeds/journal/run.jsonl");
        let dir = tempfile::tempdir_in(shared_memory()).unwrap();
        std::fs::create_dir(dir.path().join("log")).unwrap();
        std::fs::write(
            dir.path().join("log/00000000000000000001.jsonl"),
            right(seed),
        )
        .unwrap();
        let reader = Reader::open(dir.path()).unwrap();
        let restored = Restored::from_frames(reader.frames()).unwrap();
        assert!(restored.items.len() > 5, "{} items", restored.items.len());
    }
}
