//! Received bytes as lines, bounded, for both ends. Knows nothing of sockets or of what a line contains.

/// Capacity that is kept when every line was taken.
const KEPT: usize = 128 << 10;

/// The part of a stream that no line was taken from yet.
pub struct LineBuffer {
    received: Vec<u8>,
    /// Up to here lines were taken.
    taken: usize,
    /// Up to here there is no further line end.
    searched: usize,
    max: usize,
}

/// A line has more than the permitted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong;

impl LineBuffer {
    /// For lines of at most `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            received: Vec::new(),
            taken: 0,
            searched: 0,
            max,
        }
    }

    /// The next complete line, without its end. What was received is never more than a line and what was pushed last, if
    /// lines are taken until there is none.
    ///
    /// # Errors
    /// It is too long, and so is everything that follows.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, LineTooLong> {
        let unseen = self.received.get(self.searched..).unwrap_or_default();
        let end = unseen
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|at| self.searched + at);
        let line = self
            .received
            .get(self.taken..end.unwrap_or(self.received.len()))
            .unwrap_or_default();
        if line.len() > self.max {
            return Err(LineTooLong);
        }
        let Some(end) = end else {
            self.searched = self.received.len();
            return Ok(None);
        };
        let line = line.to_vec();
        (self.taken, self.searched) = (end + 1, end + 1);
        Ok(Some(line))
    }

    /// Appends what was received.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken == self.received.len() && self.received.capacity() > KEPT {
            self.received = Vec::new();
        } else {
            self.received.drain(..self.taken);
        }
        self.searched -= self.taken;
        self.taken = 0;
        self.received.extend_from_slice(bytes);
    }

    /// Bytes that no line was taken from; once all lines were taken, those of a line whose end is missing.
    #[must_use]
    pub fn rest(&self) -> usize {
        self.received.len() - self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_whole_however_they_arrive() {
        let text = "one\ntwo\n\nfour\nfi";
        for piece in 1..text.len() {
            let mut lines = LineBuffer::new(16);
            let mut got = Vec::new();
            for bytes in text.as_bytes().chunks(piece) {
                lines.push(bytes);
                got.extend(std::iter::from_fn(|| lines.take().unwrap()));
            }
            assert_eq!(
                (got.join(&b'|'), lines.rest()),
                (b"one|two||four".to_vec(), 2),
                "{piece}"
            );
        }
    }

    #[test]
    fn a_line_over_the_bound_is_a_fault_with_and_without_its_end() {
        for bytes in [&b"12345\n"[..], b"12345"] {
            let mut lines = LineBuffer::new(4);
            lines.push(b"1234\n");
            assert_eq!(lines.take(), Ok(Some(b"1234".to_vec())));
            lines.push(bytes);
            assert_eq!(
                (lines.take(), lines.take()),
                (Err(LineTooLong), Err(LineTooLong))
            );
        }
    }

    #[test]
    fn a_long_line_leaves_no_memory_behind() {
        let mut lines = LineBuffer::new(4 << 20);
        lines.push(&vec![b'x'; 4 << 20]);
        lines.push(b"\n");
        assert_eq!(lines.take().unwrap().map(|line| line.len()), Some(4 << 20));
        lines.push(b"y");
        assert!(lines.received.capacity() <= KEPT);
        assert_eq!(lines.rest(), 1);
    }
}
