//! Received bytes as lines, bounded. Knows nothing of sockets or of what a line contains.

/// Bytes for which there is room before each read.
const ROOM: usize = 64 << 10;

/// The part of a stream that no line was taken from yet.
pub(crate) struct LineBuffer {
    received: Vec<u8>,
    /// Up to here lines were taken.
    taken: usize,
    /// Up to here there is no further line end.
    searched: usize,
    max: usize,
}

/// Why there is no next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFault {
    TooLong,
    NotUtf8,
}

impl LineBuffer {
    /// For lines of at most `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { received: Vec::new(), taken: 0, searched: 0, max }
    }

    /// The next complete line, without its end. What was received is never more than a line and a read.
    pub(crate) fn take(&mut self) -> Result<Option<String>, LineFault> {
        let unseen = self.received.get(self.searched..).unwrap_or_default();
        let Some(at) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.received.len();
            let long = self.searched - self.taken > self.max;
            return if long { Err(LineFault::TooLong) } else { Ok(None) };
        };
        let end = self.searched + at;
        let line = self.received.get(self.taken..end).unwrap_or_default();
        if line.len() > self.max {
            return Err(LineFault::TooLong);
        }
        let line = std::str::from_utf8(line).map_err(|_invalid| LineFault::NotUtf8)?.to_owned();
        (self.taken, self.searched) = (end + 1, end + 1);
        Ok(Some(line))
    }

    /// Where the next bytes are appended, with room for some.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        if self.taken == self.received.len() && self.received.capacity() > 2 * ROOM {
            self.received = Vec::new();
        } else {
            self.received.drain(..self.taken);
        }
        self.searched -= self.taken;
        self.taken = 0;
        self.received.reserve(ROOM);
        &mut self.received
    }

    /// Whether a part of a line is here, once all lines were taken.
    pub(crate) fn is_within_line(&self) -> bool {
        self.taken < self.received.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut LineBuffer) -> Vec<String> {
        std::iter::from_fn(|| lines.take().unwrap()).collect()
    }

    #[test]
    fn lines_are_taken_whole_however_they_arrive() {
        let text = "one\ntwo\n\nfour\nfi";
        for piece in 1..text.len() {
            let (mut lines, mut got) = (LineBuffer::new(16), Vec::new());
            for bytes in text.as_bytes().chunks(piece) {
                lines.room().extend_from_slice(bytes);
                got.extend(all(&mut lines));
            }
            assert_eq!((got.join("|").as_str(), lines.is_within_line()), ("one|two||four", true), "{piece}");
        }
    }

    #[test]
    fn a_line_over_the_bound_or_of_other_bytes_is_a_fault() {
        for (bytes, fault) in
            [(&b"12345\n"[..], LineFault::TooLong), (b"12345", LineFault::TooLong), (b"1\xff\n", LineFault::NotUtf8)]
        {
            let mut lines = LineBuffer::new(4);
            lines.room().extend_from_slice(b"1234\n");
            assert_eq!(lines.take(), Ok(Some("1234".to_owned())));
            lines.room().extend_from_slice(bytes);
            assert_eq!(lines.take(), Err(fault));
        }
    }

    #[test]
    fn a_long_line_leaves_no_room_behind() {
        let mut lines = LineBuffer::new(4 << 20);
        lines.room().extend_from_slice(&vec![b'x'; 4 << 20]);
        lines.room().push(b'\n');
        assert_eq!(lines.take().unwrap().map(|line| line.len()), Some(4 << 20));
        assert!(lines.room().capacity() <= 2 * ROOM);
        assert!(!lines.is_within_line());
    }
}
