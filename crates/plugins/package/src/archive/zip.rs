//! The `.zip` form: its list of files at the end is what counts, and each file must have the same name where it begins. Of
//! its many variants only files that are stored or deflated are read; none in parts, none over 4 GiB, nothing encrypted.

use super::{Archive, BadArchive, Entry, Kind, MAX_ENTRIES};
use flate2::Crc;
use flate2::read::DeflateDecoder;
use std::io::Read;

/// How the records begin: a file, its row in the list, the end of the list.
const FILE: &[u8] = b"PK\x03\x04";
const ROW: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";

/// Their fixed lengths.
const FILE_BYTES: usize = 30;
const ROW_BYTES: usize = 46;
const END_BYTES: usize = 22;
/// The longest comment behind the end of the list.
const MAX_COMMENT: usize = u16::MAX as usize;

/// The flag of an encrypted file, and how files are compressed.
const ENCRYPTED: u16 = 1;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Systems whose files have a mode: Unix and macOS.
const UNIX: [u8; 2] = [3, 19];
/// The bits of a mode that say what a file is, and their values.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// A row of the list.
struct Row<'a> {
    name: &'a [u8],
    flags: u16,
    method: u16,
    crc: u32,
    packed: usize,
    size: u64,
    mode: u32,
    at: usize,
}

pub(super) fn read(bytes: &[u8]) -> Result<Archive, BadArchive> {
    let end = end(bytes)?;
    let disk = u16_at(bytes, end + 4)?;
    let list_disk = u16_at(bytes, end + 6)?;
    let here = u16_at(bytes, end + 8)?;
    let rows = u16_at(bytes, end + 10)?;
    let at = u32_at(bytes, end + 16)?;
    if disk != 0 || list_disk != 0 || here != rows || rows == u16::MAX || at == u32::MAX {
        return Err(damaged("it is in parts, or of a larger form"));
    }
    if usize::from(rows) > MAX_ENTRIES {
        return Err(BadArchive::Entries);
    }
    let mut all = Archive::default();
    let mut at = index(at);
    let mut packed = 0_usize;
    for _ in 0..rows {
        let (row, next) = row(bytes, at)?;
        // Each byte is unpacked once at most.
        packed = packed.saturating_add(row.packed);
        if packed > bytes.len() {
            return Err(damaged("its files lie in one another"));
        }
        file(bytes, &row, &mut all)?;
        at = next;
    }
    Ok(all)
}

/// Where the end of the list begins: the last record whose comment goes up to the end of the file.
fn end(bytes: &[u8]) -> Result<usize, BadArchive> {
    let last = bytes.len().checked_sub(END_BYTES);
    let first = bytes.len().saturating_sub(END_BYTES + MAX_COMMENT);
    let found = last.and_then(|last| {
        (first..=last).rev().find(|at| {
            begins(bytes, *at, END)
                && u16_at(bytes, at + 20)
                    .is_ok_and(|comment| at + END_BYTES + usize::from(comment) == bytes.len())
        })
    });
    found.ok_or_else(|| damaged("the list of its files is missing"))
}

/// A row, and where the next one begins.
fn row(bytes: &[u8], at: usize) -> Result<(Row<'_>, usize), BadArchive> {
    if !begins(bytes, at, ROW) {
        return Err(damaged("the list of its files is damaged"));
    }
    let of = |field: usize| u16_at(bytes, at + field);
    let extra = of(30)?;
    let comment = of(32)?;
    let name_at = at + ROW_BYTES;
    let name = part(bytes, name_at, usize::from(of(28)?))?;
    let attributes = u32_at(bytes, at + 38)?;
    let system = part(bytes, at + 5, 1)?;
    let mode = match UNIX.iter().any(|unix| system == [*unix]) {
        true => attributes >> 16,
        false => 0o644,
    };
    let row = Row {
        name,
        flags: of(8)?,
        method: of(10)?,
        crc: u32_at(bytes, at + 16)?,
        packed: index(u32_at(bytes, at + 20)?),
        size: u32_at(bytes, at + 24)?.into(),
        mode,
        at: index(u32_at(bytes, at + 42)?),
    };
    let next = name_at + name.len() + usize::from(extra) + usize::from(comment);
    Ok((row, next))
}

fn file(bytes: &[u8], row: &Row<'_>, all: &mut Archive) -> Result<(), BadArchive> {
    let refused = |why| Err(BadArchive::entry(row.name, why));
    let kind = match row.mode & KIND {
        LINK => Kind::Link,
        _ if row.name.ends_with(b"/") => Kind::Directory,
        DIRECTORY => Kind::Directory,
        0 | REGULAR => Kind::File,
        _ => Kind::Other,
    };
    if row.flags & ENCRYPTED != 0 {
        return refused("is encrypted");
    }
    if !begins(bytes, row.at, FILE) {
        return refused("is not where the list says");
    }
    let name = usize::from(u16_at(bytes, row.at + 26)?);
    let extra = usize::from(u16_at(bytes, row.at + 28)?);
    if part(bytes, row.at + FILE_BYTES, name)? != row.name {
        return refused("has two names");
    }
    let packed = part(bytes, row.at + FILE_BYTES + name + extra, row.packed)?;
    let mut crc = Crc::new();
    let read: Box<dyn Read + '_> = match row.method {
        STORED => Box::new(packed),
        DEFLATED => Box::new(DeflateDecoder::new(packed)),
        _ => return refused("is compressed in a way that is not known"),
    };
    let summed = Summed {
        read,
        crc: &mut crc,
    };
    let entry = Entry {
        path: row.name,
        kind,
        mode: row.mode,
        size: row.size,
    };
    all.add(entry, summed)?;
    match kind {
        Kind::File if crc.sum() != row.crc => refused("does not have its checksum"),
        _ => Ok(()),
    }
}

/// Counts the checksum of what is read.
struct Summed<'a> {
    read: Box<dyn Read + 'a>,
    crc: &'a mut Crc,
}

impl Read for Summed<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.read.read(into)?;
        self.crc.update(into.get(..count).unwrap_or_default());
        Ok(count)
    }
}

fn damaged(what: &str) -> BadArchive {
    BadArchive::Damaged(what.to_owned())
}

fn part(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], BadArchive> {
    let part = bytes.get(at..at.saturating_add(length));
    part.ok_or_else(|| damaged("a part of it is missing"))
}

fn begins(bytes: &[u8], at: usize, with: &[u8]) -> bool {
    part(bytes, at, with.len()).is_ok_and(|part| part == with)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, BadArchive> {
    let part = part(bytes, at, 2)?.try_into();
    part.map(u16::from_le_bytes)
        .map_err(|_| damaged("a number"))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, BadArchive> {
    let part = part(bytes, at, 4)?.try_into();
    part.map(u32::from_le_bytes)
        .map_err(|_| damaged("a number"))
}

fn index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX / 2)
}
