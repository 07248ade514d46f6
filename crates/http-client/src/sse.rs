//! Server-sent events, incrementally: any fragmentation of the same bytes gives the same events. Does not depend on any
//! vendor.
//!
//! Lines end in LF, CR or CRLF; a byte-order mark, comments and unknown fields are dropped; `data` lines of one
//! event are joined by LF. A field called `error` is llama.cpp's way to fail in mid-stream: it counts as an event
//! named `error`. What is after the last blank line is an event too ([`Sse::finish`]): some servers omit it. The beginning
//! of a body that has no event at all is kept: it may be an error in another form.

/// The longest line, and the longest event, in bytes. Enough for a whole answer in one chunk.
pub const MAX_EVENT: usize = 4 << 20;

/// How much of a body without events is kept, in bytes.
const MAX_STRAY: usize = 64 << 10;

/// A byte-order mark.
pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// One dispatched event.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent {
    pub is_error: bool,
    pub data: Vec<u8>,
}

/// A line or an event over [`MAX_EVENT`].
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// Reads events from pieces of a body.
pub struct Sse {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    is_error: bool,
    after_cr: bool,
    begun: bool,
    /// Lines that are not of an event; `None` once there was an event.
    stray: Option<Vec<u8>>,
}

impl Default for Sse {
    fn default() -> Self {
        let line = Vec::new();
        let stray = Some(Vec::new());
        Self {
            line,
            data: None,
            is_error: false,
            after_cr: false,
            begun: false,
            stray,
        }
    }
}

impl Sse {
    /// Reads a piece of the body; gives the events that end in it.
    ///
    /// # Errors
    /// A line or an event is too long.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), TooLong> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + part.len() > MAX_EVENT {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            let Some(ending) = rest.first() else { break };
            self.after_cr = *ending == b'\r';
            bytes = rest.get(1..).unwrap_or_default();
            self.end_line(out)?;
        }
        Ok(())
    }

    /// Ends the stream: an incomplete last event counts. Returns the beginning of a body that is not a stream of events.
    ///
    /// # Errors
    /// The last line or event is too long.
    pub fn finish(mut self, out: &mut Vec<SseEvent>) -> Result<Option<Vec<u8>>, TooLong> {
        let line = self.line.strip_prefix(BOM).unwrap_or(&self.line);
        let is_cut = !line.is_empty()
            && [&b"data"[..], b"event", b"error"]
                .iter()
                .any(|field| field.starts_with(line));
        if !self.line.is_empty() {
            self.end_line(out)?;
        }
        self.dispatch(out);
        Ok(self.stray.filter(|stray| !stray.is_empty() && !is_cut))
    }

    fn end_line(&mut self, out: &mut Vec<SseEvent>) -> Result<(), TooLong> {
        let whole = std::mem::take(&mut self.line);
        let begun = std::mem::replace(&mut self.begun, true);
        let line = if begun {
            &whole[..]
        } else {
            whole.strip_prefix(BOM).unwrap_or(&whole)
        };
        if line.is_empty() {
            self.dispatch(out);
            return Ok(());
        }
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.add(value)?,
            b"event" => {
                self.stray = None;
                self.is_error = value == b"error";
            }
            b"error" => {
                self.is_error = true;
                self.add(value)?;
            }
            b"" | b"id" | b"retry" => {}
            _unknown => {
                if let Some(stray) = self
                    .stray
                    .as_mut()
                    .filter(|stray| stray.len() + line.len() < MAX_STRAY)
                {
                    stray.extend([line, b"\n"].concat());
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, value: &[u8]) -> Result<(), TooLong> {
        self.stray = None;
        let data = match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data
            }
            empty @ None => empty.insert(Vec::new()),
        };
        if data.len() + value.len() > MAX_EVENT {
            return Err(TooLong);
        }
        data.extend_from_slice(value);
        Ok(())
    }

    fn dispatch(&mut self, out: &mut Vec<SseEvent>) {
        let is_error = std::mem::take(&mut self.is_error);
        if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
            out.push(SseEvent { is_error, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut sse = Sse::default();
        let mut out = Vec::new();
        for piece in pieces {
            sse.push(piece, &mut out).unwrap();
        }
        assert_eq!(sse.finish(&mut out).unwrap(), None);
        let mark = |event: &SseEvent| if event.is_error { "!" } else { "" };
        out.iter()
            .map(|event| format!("{}{}", mark(event), String::from_utf8_lossy(&event.data)))
            .collect()
    }

    const TABLE: &[(&str, &[&str])] = &[
        ("data: a\n\ndata: b\n\n", &["a", "b"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        ("data: a\r\ndata: b\r\n\r\n", &["a\nb"]),
        ("data: a\r\rdata: b\r\r", &["a", "b"]),
        ("data: a\n\r\ndata: b\r\n\n", &["a", "b"]),
        ("\u{feff}data: a\n\n", &["a"]),
        (
            ": keep-alive\n\ndata: a\n: in between\ndata: b\n\n",
            &["a\nb"],
        ),
        ("data:a\n\ndata:  b\n\n", &["a", " b"]),
        ("id: 7\nretry: 10\nevent: message\ndata: a\n\n", &["a"]),
        ("event: error\ndata: {}\n\ndata: b\n\n", &["!{}", "b"]),
        ("error: {}\n\n", &["!{}"]),
        ("data\n\ndata:\n\nevent: x\n\n", &[]),
        ("data: a\n\ndata: no blank line", &["a", "no blank line"]),
        (
            "data: a\n\ndata: only one newline\n",
            &["a", "only one newline"],
        ),
        ("\n\n\r\n\r\r", &[]),
        ("data: é😀\n\n", &["é😀"]),
    ];

    #[test]
    fn every_cut_gives_the_same_events() {
        for (text, want) in TABLE {
            let bytes = text.as_bytes();
            assert_eq!(read(&[bytes]), *want, "{text:?} whole");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single), *want, "{text:?} byte by byte");
            for at in 0..=bytes.len() {
                let (left, right) = bytes.split_at(at);
                assert_eq!(read(&[left, right]), *want, "{text:?} cut at {at}");
            }
        }
    }

    #[test]
    fn a_body_without_events_is_kept_up_to_a_bound() {
        let table: [(&str, Option<&str>); 6] = [
            ("Internal Server Error", Some("Internal Server Error\n")),
            ("{\n\"error\": 1}", Some("{\n\"error\": 1}\n")),
            ("dat", None),
            (": comment\n\nid: 1\n", None),
            ("odd: 1\ndata: x\n\nodd: 2\n", None),
            ("", None),
        ];
        for (text, want) in table {
            let mut sse = Sse::default();
            sse.push(text.as_bytes(), &mut Vec::new()).unwrap();
            assert_eq!(
                sse.finish(&mut Vec::new()).unwrap().as_deref(),
                want.map(str::as_bytes),
                "{text}"
            );
        }
        let mut sse = Sse::default();
        (0..99).for_each(|_| {
            sse.push(&[b'x'; 999], &mut Vec::new())
                .and_then(|()| sse.push(b"\n", &mut Vec::new()))
                .unwrap()
        });
        assert!(
            (50_000..=MAX_STRAY).contains(&sse.finish(&mut Vec::new()).unwrap().unwrap().len())
        );
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let long = vec![b'x'; MAX_EVENT + 1];
        assert_eq!(Sse::default().push(&long, &mut Vec::new()), Err(TooLong));
        let half = [b"data:", &long[..MAX_EVENT / 2 - 1], b"\n"].concat();
        let mut sse = Sse::default();
        let mut out = Vec::new();
        sse.push(&half, &mut out).unwrap();
        assert_eq!(sse.push(&half, &mut out), Ok(()), "two lines fill an event");
        assert_eq!(sse.push(b"data: xx\n", &mut out), Err(TooLong));
        assert!(out.is_empty());
    }
}
