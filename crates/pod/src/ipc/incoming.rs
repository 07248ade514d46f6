//! What a client sends, as lines: bounded in bytes and in time, up to the end of what it sends.

use super::CLIENT_TIME;
use protocol::MAX_LINE;
use protocol::lines::{LineBuffer, LineTooLong};
use std::io;
use std::sync::Arc;
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Bytes of one read.
const PIECE: usize = 16 << 10;

/// A longer request counts as large: only a few are taken in at a time.
const LARGE: usize = 64 * 1024;

pub(super) struct Incoming {
    lines: LineBuffer,
    /// When the first byte of an incomplete line arrived.
    began: Option<Instant>,
    /// This client's share, while it sends a large request.
    large: Option<OwnedSemaphorePermit>,
    /// When the end arrived.
    ended: Option<Instant>,
    /// Every complete line was taken.
    all_taken: bool,
}

impl Incoming {
    pub(super) fn new() -> Self {
        Self {
            lines: LineBuffer::new(MAX_LINE),
            began: None,
            large: None,
            ended: None,
            all_taken: true,
        }
    }

    /// The next complete line.
    ///
    /// # Errors
    /// It is too long.
    pub(super) fn take(&mut self) -> Result<Option<Vec<u8>>, LineTooLong> {
        let line = self.lines.take();
        self.all_taken = matches!(line, Ok(None));
        if !self.all_taken {
            self.began = None;
        }
        line
    }

    /// Whether what is on its way in is small, or there is a share for it.
    pub(super) fn fits(&mut self, shares: &Arc<Semaphore>) -> bool {
        if self.lines.rest() <= LARGE {
            self.large = None;
        } else if self.large.is_none() {
            self.large = shares.clone().try_acquire_owned().ok();
            return self.large.is_some();
        }
        true
    }

    /// When a line that began has to be complete.
    pub(super) fn due(&mut self) -> Option<Instant> {
        self.began = (self.lines.rest() > 0).then(|| self.began.unwrap_or_else(Instant::now));
        self.began
            .filter(|_| self.ended.is_none())
            .map(|began| began + CLIENT_TIME)
    }

    /// When the client ended what it sends, if it did.
    pub(super) fn ended(&self) -> Option<Instant> {
        self.ended
    }

    /// Whether nothing follows the lines that were taken.
    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some() && self.all_taken
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// The connection failed.
    pub(super) fn receive(&mut self, stream: &UnixStream) -> io::Result<()> {
        let mut piece = [0; PIECE];
        match stream.try_read(&mut piece) {
            Ok(0) => self.ended = Some(Instant::now()),
            Ok(read) => {
                self.all_taken = false;
                self.lines.push(piece.get(..read).unwrap_or_default());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
