//! Records for clients, from the journal's files: the newest ones are read once and kept for all, older ones are read by
//! each client that is behind.

use session_store::{Following, OwnedFrame, ReadError, Reader};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of the newest records that are kept.
const KEPT: usize = 256 * 1024;

/// A record for clients.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) seq: u64,
    pub(super) kind: LineKind,
    /// As in the journal, without the newline.
    pub(super) text: Arc<str>,
}

/// What a feed has to know of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// `feature_state`: for its feature alone.
    Hidden,
    /// A request with this number was about to be sent: deltas of it follow.
    Request(u64),
    /// The answer of the newest request is complete, or there is none: its deltas are of no use any more.
    Answered,
    SystemItem,
    Other,
}

impl Line {
    pub(super) fn of(frame: OwnedFrame) -> Self {
        let kind = match frame.kind.as_str() {
            "feature_state" => LineKind::Hidden,
            "request" => LineKind::Request(number(&frame.line)),
            "response" | "turn_finished" => LineKind::Answered,
            "system_item" => LineKind::SystemItem,
            _ => LineKind::Other,
        };
        Self {
            seq: frame.seq,
            kind,
            text: frame.line.trim_end_matches('\n').into(),
        }
    }

    fn bytes(&self) -> usize {
        self.text.len() + size_of::<Self>()
    }
}

/// The number of a request.
fn number(line: &str) -> u64 {
    #[derive(serde::Deserialize)]
    struct Numbered {
        number: u64,
    }
    serde_json::from_str::<Numbered>(line).map_or(0, |numbered| numbered.number)
}

/// The newest records.
pub(super) struct Tail {
    dir: PathBuf,
    following: Option<Following>,
    lines: VecDeque<Line>,
    bytes: usize,
    /// The first record that is kept, or would be.
    first: u64,
    newest: u64,
}

impl Tail {
    pub(super) fn new(dir: PathBuf, newest: u64) -> Self {
        Self {
            dir,
            following: None,
            lines: VecDeque::new(),
            bytes: 0,
            first: newest + 1,
            newest,
        }
    }

    /// Begins anew behind this record, if it is ahead.
    pub(super) fn skip_to(&mut self, newest: u64) {
        if newest > self.newest {
            *self = Self::new(std::mem::take(&mut self.dir), newest);
        }
    }

    /// Reads up to this record. After an error it begins anew behind that record.
    pub(super) fn advance(&mut self, upto: u64) -> Result<(), ReadError> {
        if upto <= self.newest {
            return Ok(());
        }
        let read = self.read(upto);
        if read.is_err() {
            *self = Self::new(std::mem::take(&mut self.dir), upto);
        }
        read
    }

    fn read(&mut self, upto: u64) -> Result<(), ReadError> {
        let following = match &mut self.following {
            Some(following) => following,
            none => none.insert(Reader::open(&self.dir)?.upto(upto).from(self.newest + 1)?),
        };
        following.upto(upto)?;
        for frame in following {
            let line = Line::of(frame?);
            (self.newest, self.bytes) = (line.seq, self.bytes + line.bytes());
            self.lines.push_back(line);
            while self.bytes > KEPT && self.lines.len() > 1 {
                let dropped = self.lines.pop_front();
                self.bytes -= dropped.as_ref().map_or(0, Line::bytes);
                self.first = dropped.map_or(self.first, |dropped| dropped.seq + 1);
            }
        }
        Ok(())
    }

    /// The kept records from `next` on, up to `bytes` and one at least; none if it is older than those.
    pub(super) fn from(&self, next: u64, bytes: usize) -> Option<Vec<Line>> {
        let skipped = usize::try_from(next.checked_sub(self.first)?).ok()?;
        let mut room = bytes;
        let fits = |line: &&Line| {
            let before = room;
            room = room.saturating_sub(line.bytes());
            before > 0
        };
        Some(
            self.lines
                .iter()
                .skip(skipped)
                .take_while(fits)
                .cloned()
                .collect(),
        )
    }
}

/// Reads records that are not among the newest, for one client, in order. To open a log takes a read of each of its
/// segments, so it is kept open while the client is behind.
#[derive(Default)]
pub(super) struct Older {
    following: Option<Following>,
    /// The record that it reads next.
    next: u64,
}

impl Older {
    /// Records from `next` to `upto` from the files, up to `bytes` and one at least. After an error it begins anew.
    ///
    /// # Errors
    /// The files cannot be read.
    pub(super) fn read(
        &mut self,
        dir: &Path,
        next: u64,
        upto: u64,
        bytes: usize,
    ) -> Result<Vec<Line>, ReadError> {
        let mut following = match self.following.take().filter(|_| self.next == next) {
            Some(following) => following,
            None => Reader::open(dir)?.upto(upto).from(next)?,
        };
        following.upto(upto)?;
        let mut lines = Vec::new();
        let mut read = 0;
        while read < bytes
            && let Some(frame) = following.next()
        {
            let line = Line::of(frame?);
            (self.next, read) = (line.seq + 1, read + line.bytes());
            lines.push(line);
        }
        self.following = Some(following);
        Ok(lines)
    }

    /// Releases the files: the client is no longer behind.
    pub(super) fn close(&mut self) {
        self.following = None;
    }
}
