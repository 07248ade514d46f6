//! Checked lines in one buffer, read out later as records.

use super::HEADER;
use super::check::{Frame, OwnedFrame, RecordId};

/// Checked lines in order, in one buffer.
#[derive(Debug, Default)]
pub(crate) struct CheckedLines {
    text: String,
    heads: Vec<Head>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    seq: u64,
    durable: u64,
    time: u64,
    crc: u32,
    epoch: u32,
    batch_left: u32,
    length: usize,
    kind: usize,
    v: u16,
}

impl CheckedLines {
    pub(crate) fn sized(bytes: u64) -> Self {
        Self {
            text: String::with_capacity(usize::try_from(bytes).unwrap_or(0)),
            heads: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, frame: &Frame<'_>) {
        let Frame {
            crc,
            previous: _,
            epoch,
            seq,
            durable,
            batch_left,
            time,
            kind,
            v,
            line,
        } = *frame;
        self.text.push_str(line);
        let length = line.len();
        let kind = kind.len();
        self.heads.push(Head {
            seq,
            durable,
            time,
            crc,
            epoch,
            batch_left,
            length,
            kind,
            v,
        });
    }

    /// Drops the lines behind `seq`.
    pub(crate) fn end_at(&mut self, seq: u64) {
        while self.heads.pop_if(|head| head.seq > seq).is_some() {}
    }

    /// Whether the record with this mark is among the lines.
    pub(crate) fn holds(&self, mark: RecordId) -> bool {
        let found = self
            .heads
            .binary_search_by_key(&mark.seq, |head| head.seq)
            .ok();
        found
            .and_then(|at| self.heads.get(at))
            .is_some_and(|head| head.crc == mark.crc)
    }

    pub(crate) fn behind(self, seq: u64) -> CheckedRecords {
        let passed = self.heads.iter().take_while(|head| head.seq <= seq);
        let (next, at) = passed.fold((0, 0), |(next, at), head| (next + 1, at + head.length));
        CheckedRecords {
            kept: self,
            next,
            at,
        }
    }
}

#[derive(Debug)]
pub(crate) struct CheckedRecords {
    kept: CheckedLines,
    next: usize,
    at: usize,
}

impl Iterator for CheckedRecords {
    type Item = OwnedFrame;

    fn next(&mut self) -> Option<OwnedFrame> {
        let Head {
            seq,
            durable,
            time,
            crc,
            epoch,
            batch_left,
            length,
            kind,
            v,
        } = *self.kept.heads.get(self.next)?;
        let line = self.kept.text.get(self.at..self.at + length)?;
        let kind = line.get(HEADER..HEADER + kind)?.to_owned();
        self.next += 1;
        self.at += length;
        Some(OwnedFrame {
            seq,
            epoch,
            crc,
            durable,
            time,
            batch_left,
            kind,
            v,
            line: line.to_owned(),
        })
    }
}
