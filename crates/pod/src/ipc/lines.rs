//! Lines from a socket, bounded. Knows nothing of what they contain.

use std::io;
use tokio::net::UnixStream;
use tokio::time::Instant;

/// Bytes of one read.
const PIECE: usize = 16 * 1024;

/// The received part of a stream that no line was taken from yet.
pub(super) struct Lines {
    received: Vec<u8>,
    /// Up to here there is no line end.
    searched: usize,
    /// When the first byte of an incomplete line arrived.
    began: Option<Instant>,
    max: usize,
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    Some,
    /// The other end has closed the stream.
    End,
    /// The line has more than the permitted bytes.
    TooLong,
}

impl Lines {
    pub(super) fn new(max: usize) -> Self {
        Self { received: Vec::new(), searched: 0, began: None, max }
    }

    /// The next complete line, without its end.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let unseen = self.received.get(self.searched..).unwrap_or_default();
        let Some(at) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.received.len();
            return None;
        };
        let rest = self.received.split_off(self.searched + at + 1);
        let mut line = std::mem::replace(&mut self.received, rest);
        line.pop();
        self.searched = 0;
        self.began = (!self.received.is_empty()).then(Instant::now);
        Some(line)
    }

    /// When the incomplete line began, if there is one.
    pub(super) fn began(&self) -> Option<Instant> {
        self.began
    }

    /// How much of it is here.
    pub(super) fn len(&self) -> usize {
        self.received.len()
    }

    /// Waits for the stream and reads once. Cancel-safe.
    pub(super) async fn fill(&mut self, stream: &UnixStream) -> io::Result<Filled> {
        let mut piece = [0; PIECE];
        loop {
            stream.readable().await?;
            match stream.try_read(&mut piece) {
                Ok(0) => return Ok(Filled::End),
                Ok(read) => {
                    self.began.get_or_insert_with(Instant::now);
                    self.received.extend_from_slice(piece.get(..read).unwrap_or_default());
                    let ended = piece.get(..read).is_some_and(|piece| piece.contains(&b'\n'));
                    let over = self.received.len() > self.max && !ended;
                    return Ok(if over { Filled::TooLong } else { Filled::Some });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_whole_however_they_arrive() {
        let mut lines = Lines::new(16);
        for (bytes, taken) in [(&b"on"[..], &[][..]), (b"e\ntwo\nth", &["one", "two"]), (b"ree\n", &["three"])] {
            lines.received.extend_from_slice(bytes);
            let got: Vec<_> = std::iter::from_fn(|| lines.take()).collect();
            assert_eq!(got, taken.iter().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>());
        }
        assert_eq!((lines.len(), lines.began()), (0, None));
    }
}
