//! Bytes line by line, however long a line is. Does not depend on files.

use std::io::{self, BufRead};
use tokio_util::sync::CancellationToken;

/// The bytes between two checks of the cancellation token.
pub(crate) const CHECK_EVERY: usize = 64 * 1024;

/// Reads lines and keeps only the beginning of each.
pub(crate) struct LineReader<R> {
    from: R,
    cancel: CancellationToken,
    since: usize,
}

/// One line, without its end.
pub(crate) struct LineSize {
    /// Its length in bytes.
    pub(crate) len: u64,
    /// Whether it ended in `\r\n`.
    pub(crate) crlf: bool,
    /// Whether it ended, and was not the rest of the file.
    pub(crate) ended: bool,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(from: R, cancel: CancellationToken) -> Self {
        Self {
            from,
            cancel,
            since: 0,
        }
    }

    /// The next line: its first `keep` bytes replace what is in `kept`. `None` at the end.
    pub(crate) fn next(&mut self, kept: &mut Vec<u8>, keep: usize) -> io::Result<Option<LineSize>> {
        kept.clear();
        let mut len = 0_u64;
        let mut last = 0_u8;
        loop {
            let chunk = self.from.fill_buf()?;
            if chunk.is_empty() {
                return Ok((len > 0).then_some(LineSize {
                    len,
                    crlf: false,
                    ended: false,
                }));
            }
            let window = chunk.get(..CHECK_EVERY).unwrap_or(chunk);
            let end = memchr::memchr(b'\n', window);
            let part = window.get(..end.unwrap_or(window.len())).unwrap_or(window);
            let room = keep.saturating_sub(kept.len()).min(part.len());
            kept.extend(part.iter().take(room));
            len += part.len() as u64;
            last = part.last().copied().unwrap_or(last);
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            self.checked(used)?;
            if end.is_some() {
                let crlf = last == b'\r' && len > 0;
                if crlf {
                    len -= 1;
                    kept.truncate(usize::try_from(len).unwrap_or(usize::MAX));
                }
                return Ok(Some(LineSize {
                    len,
                    crlf,
                    ended: true,
                }));
            }
        }
    }

    pub(crate) fn at_end(&mut self) -> io::Result<bool> {
        Ok(self.from.fill_buf()?.is_empty())
    }

    fn checked(&mut self, used: usize) -> io::Result<()> {
        self.since += used;
        if self.since >= CHECK_EVERY {
            self.since = 0;
            if self.cancel.is_cancelled() {
                return Err(io::Error::other("cancelled"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    // The buffer's edge falls between \r and \n, on \n, and inside the kept part.
    #[test]
    fn lines_are_the_same_for_every_buffer_size() {
        let text = b"one\r\ntwo\n\n\r\nlonger than kept\r\nends in cr\rx\nlast";
        for size in 1..text.len() + 1 {
            let mut lines = LineReader::new(
                io::BufReader::with_capacity(size, &text[..]),
                CancellationToken::new(),
            );
            let mut kept = Vec::new();
            let mut got = Vec::new();
            while let Some(line) = lines.next(&mut kept, 6).unwrap() {
                got.push((
                    String::from_utf8(kept.clone()).unwrap(),
                    line.len,
                    line.crlf,
                ));
            }
            let want = [
                ("one", 3, true),
                ("two", 3, false),
                ("", 0, false),
                ("", 0, true),
                ("longer", 16, true),
                ("ends i", 12, false),
                ("last", 4, false),
            ];
            assert_eq!(
                got,
                want.map(|(kept, len, crlf)| (kept.to_owned(), len, crlf)),
                "buffer of {size}"
            );
        }
    }

    #[test]
    fn a_cancelled_read_ends_within_a_chunk() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let long = io::BufReader::with_capacity(
            CHECK_EVERY,
            io::repeat(b'x').take(9 * CHECK_EVERY as u64),
        );
        assert!(
            LineReader::new(long, cancel)
                .next(&mut Vec::new(), 10)
                .is_err()
        );
    }
}
