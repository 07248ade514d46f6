//! HEAD: how far the log is known to be durable. A hint, written after every flush and never flushed itself: it can lag
//! behind the log, but never be ahead of it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::columns;
use crate::ops::Ops;

/// A reader may read HEAD while the writer writes it; the reader retries this often.
const LOOKS: usize = 8;
/// `{"c":"…8…"` and the rest in fixed columns, newline included.
const LENGTH: usize = 15 + 11 + 17 + 17 + 21 + 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Head {
    #[serde(rename = "e")]
    pub(crate) epoch: u32,
    #[serde(rename = "q")]
    pub(crate) durable: u64,
    /// First seq of the newest segment, and the durable bytes in it.
    #[serde(rename = "s")]
    pub(crate) segment: u64,
    #[serde(rename = "o")]
    pub(crate) offset: u64,
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("HEAD")
}

impl Head {
    fn line(&self) -> Vec<u8> {
        let Self {
            epoch,
            durable,
            segment,
            offset,
        } = self;
        let mut line = format!(
            "{{\"c\":\"00000000\",\"e\":{epoch:>6},\"q\":{durable:>12},\"s\":{segment:>12},\"o\":{offset:>16}}}\n"
        )
        .into_bytes();
        let crc = checksum(&line);
        if let Some(column) = line.get_mut(columns::C) {
            columns::put_hex(column, crc);
        }
        line
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let [text @ .., b'\n'] = line else {
            return None;
        };
        if line.len() != LENGTH || columns::hex(line.get(columns::C)?)? != checksum(line) {
            return None;
        }
        serde_json::from_slice(text).ok()
    }

    pub(crate) fn write(&self, ops: &Ops, file: &DiskFile) -> Result<(), DiskFault> {
        ops.write_at(file, &self.line(), 0)
    }

    /// Reads HEAD; `None` if it is missing or incomplete.
    pub(crate) fn read(ops: &Ops, dir: &Path) -> Result<Option<Self>, DiskFault> {
        let Some(file) = ops.open(&path(dir), false)? else {
            return Ok(None);
        };
        for _ in 0..LOOKS {
            let mut line = [0; LENGTH];
            let length = ops.read_at(&file, &mut line, 0)?;
            if let Some(head) = line.get(..length).and_then(Self::parse) {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }
}

fn checksum(line: &[u8]) -> u32 {
    crc32c::crc32c(line.get(columns::COVERED..LENGTH - 1).unwrap_or_default())
}
