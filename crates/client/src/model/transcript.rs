//! The newest records, as they came. Does not know what they mean.

use protocol::record::RecordLine;
use std::collections::VecDeque;

/// Records that are kept.
pub const MAX_ENTRIES: usize = 2000;

/// Bytes of the lines of records that are kept; the newest one is kept whatever it has.
pub const MAX_ENTRY_BYTES: usize = 4 << 20;

/// A record of the transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptEntry {
    pub seq: u64,
    pub line: RecordLine,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Transcript {
    entries: VecDeque<TranscriptEntry>,
    bytes: usize,
    /// The cursor for the page before the oldest entry.
    before: Option<u64>,
    seen: u64,
}

impl Transcript {
    /// Takes a record, and drops the oldest ones that are too many. Returns whether it is new.
    pub(super) fn push(&mut self, seq: u64, line: &RecordLine) -> bool {
        if seq <= self.seen {
            return false;
        }
        self.seen = seq;
        self.before.get_or_insert(seq);
        self.bytes += line.as_str().len();
        self.entries.push_back(TranscriptEntry {
            seq,
            line: line.clone(),
        });
        while self.entries.len() > MAX_ENTRIES
            || (self.bytes > MAX_ENTRY_BYTES && self.entries.len() > 1)
        {
            let dropped = self
                .entries
                .pop_front()
                .map_or(0, |entry| entry.line.as_str().len());
            self.bytes -= dropped;
            self.before = self.entries.front().map(|oldest| oldest.seq);
        }
        true
    }

    /// The oldest entry will be this record, or one after it with nothing to page between.
    pub(super) fn begin_at(&mut self, first: u64) {
        self.before = Some(first);
    }

    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = &TranscriptEntry> {
        self.entries.iter()
    }

    pub(super) fn before(&self) -> Option<u64> {
        self.before
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen
    }
}
