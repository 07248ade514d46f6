//! Lines on their way to a client, bounded by what fills them. Knows nothing of what they contain.

use super::CLIENT_TIME;
use protocol::error::{Error, ErrorKind};
use protocol::message::answer_line;
use std::io;
use tokio::net::UnixStream;
use tokio::time::Instant;

/// Bytes that wait for a client.
pub(super) struct Out {
    bytes: Vec<u8>,
    /// Up to here they were written.
    written: usize,
    /// When the client last took some, or the first of them came.
    since: Instant,
}

impl Out {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            written: 0,
            since: Instant::now(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn push(&mut self, line: &str) {
        if self.is_empty() {
            self.since = Instant::now();
        }
        self.bytes.extend_from_slice(line.as_bytes());
    }

    /// When the client is too slow, if something waits for it.
    pub(super) fn late(&self) -> Option<Instant> {
        (!self.is_empty()).then(|| self.since + CLIENT_TIME)
    }

    /// Writes what the client takes now.
    pub(super) fn write(&mut self, stream: &UnixStream) -> io::Result<()> {
        match stream.try_write(self.bytes.get(self.written..).unwrap_or_default()) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => (self.written, self.since) = (self.written + written, Instant::now()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if self.is_empty() {
            // A long line must not hold its memory for as long as the client is there.
            (self.bytes, self.written) = (Vec::new(), 0);
        } else if self.written > self.bytes.len() / 2 {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }
}

/// The line for a client that is not served.
pub(super) fn refusal(kind: ErrorKind, why: &str) -> String {
    answer_line::<()>(None, Err(&Error::new(kind, why))).unwrap_or_default()
}
