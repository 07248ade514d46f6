//! The lines of a stream, bounded. One that is too long costs no other line.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of a line: a prompt has at most 24 MiB of images, in base 64.
pub(crate) const MAX_LINE: usize = 40 << 20;

/// Bytes of one read.
const PIECE: usize = 64 << 10;

/// A line that arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Without its end.
    Whole(Vec<u8>),
    TooLong,
}

/// Reads lines.
pub(crate) struct Lines<R> {
    input: R,
    max: usize,
    received: Vec<u8>,
    /// Up to here there is no line end.
    searched: usize,
    /// The beginning of the line was dropped.
    skips: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// For lines of at most `max` bytes.
    pub(crate) fn new(input: R, max: usize) -> Self {
        Self {
            input,
            max,
            received: Vec::new(),
            searched: 0,
            skips: false,
        }
    }

    /// The next line; none at the end of the stream, which also ends a line. A stream that cannot be read any more has
    /// ended. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.received_line() {
                return Some(line);
            }
            let mut piece = vec![0; PIECE];
            let read = self.input.read(&mut piece).await.unwrap_or(0);
            if read == 0 {
                let rest = std::mem::take(&mut self.received);
                self.searched = 0;
                let is_line = self.skips || !rest.is_empty();
                return is_line.then(|| self.finished(rest));
            }
            self.received
                .extend_from_slice(piece.get(..read).unwrap_or_default());
        }
    }

    fn received_line(&mut self) -> Option<Line> {
        let unseen = self.received.get(self.searched..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.received.len();
            if self.searched > self.max {
                self.received = Vec::new();
                self.searched = 0;
                self.skips = true;
            }
            return None;
        };
        let rest = self.received.split_off(self.searched + end + 1);
        let mut line = std::mem::replace(&mut self.received, rest);
        line.pop();
        self.searched = 0;
        Some(self.finished(line))
    }

    fn finished(&mut self, line: Vec<u8>) -> Line {
        if std::mem::take(&mut self.skips) || line.len() > self.max {
            Line::TooLong
        } else {
            Line::Whole(line)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_no_other_line() {
        let long = "x".repeat(3 * PIECE);
        let text = format!("one\n\n{long}\ntwo\n{long}");
        let mut lines = Lines::new(text.as_bytes(), PIECE);
        let mut got = Vec::new();
        while let Some(line) = lines.next().await {
            got.push(line);
        }
        let whole = |text: &str| Line::Whole(text.into());
        let wanted = [
            whole("one"),
            whole(""),
            Line::TooLong,
            whole("two"),
            Line::TooLong,
        ];
        assert_eq!(got, wanted);
        assert!(lines.received.is_empty());
    }
}
