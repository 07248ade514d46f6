//! Reading a configuration file of git the way git does: sections, subsections, quotes, continued lines, comments.
//!
//! Input that git refuses is refused here, and nothing is guessed: the caller treats an unreadable file as dangerous.

use std::ops::Range;

const MAX_ENTRIES: usize = 65_536;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The section and the subsection, as git prints them: the section in lower case, the subsection as it is.
    pub(super) section: Vec<u8>,
    pub(super) name: Vec<u8>,
    /// The value without quotes and escapes; `None` for a name without a value.
    pub(super) value: Option<Vec<u8>>,
    /// Its bytes in the file: from its name to the end of its last line.
    pub(super) span: Range<usize>,
}

/// A file that git would refuse, too, or that exceeds the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Entry>, Unreadable> {
    // git works with C strings: what follows such a byte would be seen here and not there.
    if bytes.contains(&0) {
        return Err(Unreadable);
    }
    let mut reader = Reader {
        bytes,
        at: if bytes.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        },
    };
    let mut entries = Vec::new();
    let mut section = Vec::new();
    while let Some((at, byte)) = reader.next() {
        match byte {
            _ if is_space(byte) => {}
            b'#' | b';' => reader.skip_line(),
            b'[' => section = reader.section()?,
            _ if byte.is_ascii_alphabetic() => {
                if entries.len() == MAX_ENTRIES {
                    return Err(Unreadable);
                }
                let (name, value) = reader.entry(byte)?;
                entries.push(Entry {
                    section: section.clone(),
                    name,
                    value,
                    span: at..reader.before_newline(),
                });
            }
            _ => return Err(Unreadable),
        }
    }
    Ok(entries)
}

impl Entry {
    /// The whole key as git prints it.
    pub(super) fn key(&self) -> Vec<u8> {
        [&self.section, &b"."[..], &self.name].concat()
    }

    /// The parts of the key before the name: the section and the subsection.
    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        match self.section.iter().position(|byte| *byte == b'.') {
            Some(dot) => (
                self.section.get(..dot).unwrap_or_default(),
                self.section.get(dot + 1..).unwrap_or_default(),
            ),
            None => (&self.section, b""),
        }
    }

    /// The entry under a header of its own, as it can be added to the end of a file.
    pub(super) fn written(&self) -> Vec<u8> {
        let (section, subsection) = self.parts();
        let mut text = [b"[", section].concat();
        if self.section.contains(&b'.') {
            text.extend_from_slice(b" \"");
            quote(subsection, &mut text);
            text.push(b'"');
        }
        text.extend_from_slice(b"]\n\t");
        text.extend_from_slice(&self.name);
        if let Some(value) = &self.value {
            text.extend_from_slice(b" = \"");
            quote(value, &mut text);
            text.push(b'"');
        }
        text.push(b'\n');
        text
    }
}

fn quote(bytes: &[u8], text: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'\n' => text.extend_from_slice(b"\\n"),
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            other => text.push(*other),
        }
    }
}

/// White space to git: vertical tabs and form feeds are not.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next byte and its offset; a line end of two bytes counts as one.
    fn next(&mut self) -> Option<(usize, u8)> {
        let at = self.at;
        let byte = *self.bytes.get(at)?;
        let two = byte == b'\r' && self.bytes.get(at + 1) == Some(&b'\n');
        self.at += if two { 2 } else { 1 };
        Some((at, if two { b'\n' } else { byte }))
    }

    /// The next byte; the end of the file ends a line.
    fn byte(&mut self) -> u8 {
        self.next().map_or(b'\n', |(_, byte)| byte)
    }

    fn skip_line(&mut self) {
        while self.byte() != b'\n' {}
    }

    /// Where the line that was just read ends, without its line end.
    fn before_newline(&self) -> usize {
        let read = self.bytes.get(..self.at).unwrap_or(self.bytes);
        let line = read.strip_suffix(b"\n").unwrap_or(read);
        line.strip_suffix(b"\r")
            .filter(|_| line.len() < read.len())
            .unwrap_or(line)
            .len()
    }

    fn section(&mut self) -> Result<Vec<u8>, Unreadable> {
        let mut name = Vec::new();
        loop {
            match self.byte() {
                b']' => return Ok(name),
                space if is_space(space) => return self.subsection(space, name),
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return Err(Unreadable),
            }
        }
    }

    fn subsection(&mut self, mut byte: u8, mut name: Vec<u8>) -> Result<Vec<u8>, Unreadable> {
        while is_space(byte) {
            if byte == b'\n' {
                return Err(Unreadable);
            }
            byte = self.byte();
        }
        if byte != b'"' {
            return Err(Unreadable);
        }
        name.push(b'.');
        loop {
            match self.byte() {
                b'\n' => return Err(Unreadable),
                b'"' => break,
                b'\\' => match self.byte() {
                    b'\n' => return Err(Unreadable),
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        if self.byte() == b']' {
            Ok(name)
        } else {
            Err(Unreadable)
        }
    }

    fn entry(&mut self, first: u8) -> Result<(Vec<u8>, Option<Vec<u8>>), Unreadable> {
        let mut name = vec![first.to_ascii_lowercase()];
        let mut byte = self.byte();
        while is_key(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.byte();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.byte();
        }
        match byte {
            b'\n' => Ok((name, None)),
            b'=' => Ok((name, Some(self.value()?))),
            _ => Err(Unreadable),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, Unreadable> {
        let mut value = Vec::new();
        let mut quoted = false;
        // Spaces at the end, outside of quotes, do not count.
        let mut end = 0;
        loop {
            match self.byte() {
                b'\n' if quoted => return Err(Unreadable),
                b'\n' => break,
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                byte if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b'\\' => match self.byte() {
                    // Spaces before it count, also when nothing follows.
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return Err(Unreadable),
                },
                b'"' => quoted = !quoted,
                byte => value.push(byte),
            }
            end = value.len();
        }
        value.truncate(end);
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
