//! What a terminal sends, as keys: plain bytes, and the sequences of xterm, of its `modifyOtherKeys` and of the keyboard
//! protocol of kitty. Does not read; unknown sequences are dropped.

use tui::Key;

/// Bytes of a sequence; a longer one is none.
const MAX_SEQUENCE: usize = 64;

/// Bytes of a pasted text; of a longer one nothing is used. No input is longer.
const MAX_PASTE: usize = protocol::MAX_LINE;

const PASTE_END: &[u8] = b"\x1b[201~";

/// Something that came from a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TerminalInput {
    Key(Key),
    Paste(String),
    /// More than a terminal's paste may have.
    LongPaste,
    /// The terminal got the focus, or lost it.
    Focus(bool),
}

/// Bytes on their way to keys.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a sequence or character.
    rest: Vec<u8>,
    /// A text that is being pasted.
    paste: Option<Vec<u8>>,
}

/// What the first bytes are.
enum Read {
    /// The beginning of something.
    Part,
    /// So many bytes, and what they say.
    Whole(usize, Option<TerminalInput>),
}

impl Decoder {
    /// Takes bytes; gives what they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<TerminalInput> {
        self.rest.extend_from_slice(bytes);
        self.take(false)
    }

    /// Whether what follows decides what the last bytes are: the key Escape, or the beginning of a sequence.
    pub(crate) fn is_undecided(&self) -> bool {
        self.paste.is_none() && !self.rest.is_empty()
    }

    /// Nothing followed for a moment.
    pub(crate) fn decide(&mut self) -> Vec<TerminalInput> {
        self.take(true)
    }

    fn take(&mut self, is_all: bool) -> Vec<TerminalInput> {
        let bytes = std::mem::take(&mut self.rest);
        let mut at = 0;
        let mut typed = Vec::new();
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some(paste) = &mut self.paste {
                let end = end_of_paste(rest);
                let text =
                    end.map_or_else(|| kept(rest), |end| rest.get(..end).unwrap_or_default());
                let room = (MAX_PASTE + 1).saturating_sub(paste.len()).min(text.len());
                paste.extend_from_slice(text.get(..room).unwrap_or_default());
                at += text.len();
                if end.is_none() {
                    break;
                }
                at += PASTE_END.len();
                let paste = self.paste.take().unwrap_or_default();
                let is_long = paste.len() > MAX_PASTE;
                typed.push(if is_long {
                    TerminalInput::LongPaste
                } else {
                    TerminalInput::Paste(pasted(&paste))
                });
                continue;
            }
            match read(rest, is_all) {
                Read::Part => break,
                Read::Whole(used, what) => {
                    at += used.max(1);
                    match what {
                        Some(TerminalInput::Paste(_)) => self.paste = Some(Vec::new()),
                        what => typed.extend(what),
                    }
                }
            }
        }
        self.rest = bytes.get(at..).unwrap_or_default().to_vec();
        typed
    }
}

/// Where the paste ends.
fn end_of_paste(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(PASTE_END.len())
        .position(|window| window == PASTE_END)
}

/// The bytes that are no beginning of the end of a paste.
fn kept(bytes: &[u8]) -> &[u8] {
    let begins = |length: &usize| bytes.ends_with(PASTE_END.get(..*length).unwrap_or_default());
    let length = (1..PASTE_END.len()).rev().find(begins).unwrap_or(0);
    bytes.get(..bytes.len() - length).unwrap_or_default()
}

/// Terminals send the lines of a paste with carriage returns.
fn pasted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .replace("\r\n", "\n")
        .replace('\r', "\n")
}

fn read(bytes: &[u8], is_all: bool) -> Read {
    let one = |key| Read::Whole(1, Some(TerminalInput::Key(key)));
    match bytes {
        [0x1b] if is_all => one(Key::Esc),
        [0x1b, 0x1b, ..] => one(Key::Esc),
        [0x1b, b'[', ..] => sequence(bytes, is_all),
        [0x1b, b'O', letter, ..] => Read::Whole(3, lettered(*letter, 1).map(TerminalInput::Key)),
        [0x1b] | [0x1b, b'O'] if !is_all => Read::Part,
        [0x1b, rest @ ..] => match character(rest, is_all) {
            Read::Whole(used, Some(TerminalInput::Key(key))) => {
                Read::Whole(1 + used, with_alt(key).map(TerminalInput::Key))
            }
            Read::Whole(used, _) => Read::Whole(1 + used, None),
            Read::Part => Read::Part,
        },
        bytes => character(bytes, is_all),
    }
}

/// A character or a control character.
fn character(bytes: &[u8], is_all: bool) -> Read {
    let Some(first) = bytes.first().copied() else {
        return Read::Part;
    };
    let key = match first {
        b'\r' => Key::Enter,
        b'\t' => Key::Tab,
        0x7f | 0x08 => Key::Backspace,
        0 => Key::Ctrl(' '),
        1..=26 => Key::Ctrl(char::from(first - 1 + b'a')),
        27 => Key::Esc,
        28..=31 => Key::Ctrl(char::from(first - 28 + b'\\')),
        0x20..=0x7e => Key::Char(char::from(first)),
        _ => return wide(bytes, is_all),
    };
    Read::Whole(1, Some(TerminalInput::Key(key)))
}

/// A character of more than one byte; those that control terminals are dropped.
fn wide(bytes: &[u8], is_all: bool) -> Read {
    let chunk = bytes.utf8_chunks().next();
    let (valid, invalid) = chunk.map_or(("", &[][..]), |chunk| (chunk.valid(), chunk.invalid()));
    match valid.chars().next() {
        Some(c) => Read::Whole(
            c.len_utf8(),
            (!c.is_control()).then_some(TerminalInput::Key(Key::Char(c))),
        ),
        None if invalid.len() == bytes.len() && bytes.len() < 4 && !is_all => Read::Part,
        None => Read::Whole(invalid.len(), None),
    }
}

fn with_alt(key: Key) -> Option<Key> {
    Some(match key {
        Key::Enter => Key::AltEnter,
        Key::Backspace => Key::Ctrl('w'),
        Key::Char('b') => Key::WordLeft,
        Key::Char('f') => Key::WordRight,
        Key::Char(c) => Key::Alt(c),
        _ => return None,
    })
}

/// What begins with `ESC [`.
fn sequence(bytes: &[u8], is_all: bool) -> Read {
    let body = bytes.get(2..).unwrap_or_default();
    // The console of Linux: F1 to F5.
    if let [b'[', rest @ ..] = body {
        return match rest {
            [letter @ b'A'..=b'E', ..] => {
                Read::Whole(4, Some(TerminalInput::Key(Key::F(letter - b'A' + 1))))
            }
            [_, ..] => Read::Whole(4, None),
            [] if is_all => Read::Whole(3, None),
            [] => Read::Part,
        };
    }
    let Some(end) = body.iter().position(|byte| !matches!(byte, 0x20..=0x3f)) else {
        let is_over = is_all || bytes.len() > MAX_SEQUENCE;
        return if is_over {
            Read::Whole(bytes.len(), None)
        } else {
            Read::Part
        };
    };
    let params = body.get(..end).unwrap_or_default();
    let last = body.get(end).copied().unwrap_or_default();
    // Another sequence began within this one.
    if last < 0x20 {
        return Read::Whole(2 + end, None);
    }
    Read::Whole(2 + end + 1, meaning(params, last))
}

fn meaning(params: &[u8], last: u8) -> Option<TerminalInput> {
    if let Some(mouse) = params.strip_prefix(b"<") {
        return wheel(numbers(mouse)).map(TerminalInput::Key);
    }
    let params = numbers(params);
    let first = params[0];
    let modifiers = params[1].max(1);
    Some(match (last, first) {
        (b'I', _) => TerminalInput::Focus(true),
        (b'O', _) => TerminalInput::Focus(false),
        (b'~', 200) => TerminalInput::Paste(String::new()),
        (b'~', 27) => TerminalInput::Key(coded(params[2], modifiers)?),
        (b'u', code) => TerminalInput::Key(coded(code, modifiers)?),
        (b'~', number) => TerminalInput::Key(numbered(number, modifiers)?),
        (letter, _) => TerminalInput::Key(lettered(letter, modifiers)?),
    })
}

/// The first three parameters; what stands behind a colon is left out.
fn numbers(params: &[u8]) -> [u32; 3] {
    let mut numbers = [0; 3];
    for (number, text) in numbers.iter_mut().zip(params.split(|byte| *byte == b';')) {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
        *number = digits.fold(0_u32, |sum, digit| {
            sum.saturating_mul(10)
                .saturating_add(u32::from(digit - b'0'))
        });
    }
    numbers
}

/// The modifiers of a sequence: a sum of 1 for Shift, 2 for Alt and 4 for Ctrl, and 1.
const fn has(modifiers: u32, bit: u32) -> bool {
    modifiers.wrapping_sub(1) & bit != 0
}

const SHIFT: u32 = 1;
const ALT: u32 = 2;
const CTRL: u32 = 4;

/// Super, Hyper and Meta: with one of them, a key is the desktop's and no character.
const FOREIGN: u32 = 8 | 16 | 32;

fn wheel([button, ..]: [u32; 3]) -> Option<Key> {
    // Bits 2 to 4 are Shift, Alt and Ctrl.
    match button & !0b11100 {
        64 => Some(Key::WheelUp),
        65 => Some(Key::WheelDown),
        _ => None,
    }
}

fn lettered(letter: u8, modifiers: u32) -> Option<Key> {
    let by_words = has(modifiers, CTRL) || has(modifiers, ALT);
    Some(match letter {
        b'A' if has(modifiers, ALT) => Key::AltUp,
        b'B' if has(modifiers, ALT) => Key::AltDown,
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if by_words => Key::WordRight,
        b'D' if by_words => Key::WordLeft,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' if has(modifiers, CTRL) => Key::CtrlHome,
        b'F' if has(modifiers, CTRL) => Key::CtrlEnd,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'M' => Key::Enter,
        b'P'..=b'S' => Key::F(letter - b'P' + 1),
        b'Z' => Key::BackTab,
        _ => return None,
    })
}

fn numbered(number: u32, modifiers: u32) -> Option<Key> {
    Some(match number {
        1 | 7 => return lettered(b'H', modifiers),
        4 | 8 => return lettered(b'F', modifiers),
        3 => Key::Delete,
        5 => Key::PageUp,
        6 => Key::PageDown,
        11..=15 => Key::F(u8::try_from(number - 10).ok()?),
        17..=21 => Key::F(u8::try_from(number - 11).ok()?),
        23 | 24 => Key::F(u8::try_from(number - 12).ok()?),
        _ => return None,
    })
}

/// A key by the number of its character, with modifiers.
fn coded(code: u32, modifiers: u32) -> Option<Key> {
    let c = char::from_u32(code).filter(|_| !has(modifiers, FOREIGN))?;
    Some(match c {
        '\r' if has(modifiers, SHIFT | ALT | CTRL) => Key::AltEnter,
        '\t' if has(modifiers, SHIFT) => Key::BackTab,
        '\u{7f}' | '\u{8}' if has(modifiers, ALT | CTRL) => Key::Ctrl('w'),
        '\r' => Key::Enter,
        '\t' => Key::Tab,
        '\u{1b}' => Key::Esc,
        '\u{7f}' | '\u{8}' => Key::Backspace,
        // Keys without a character, in the private area.
        '\u{e000}'..='\u{f8ff}' => return None,
        c if c.is_control() => return None,
        c if has(modifiers, CTRL) => Key::Ctrl(c.to_ascii_lowercase()),
        c if has(modifiers, ALT) => return with_alt(Key::Char(c)),
        c => Key::Char(c),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Key::{
        Alt, AltDown, AltEnter, AltUp, BackTab, Backspace, Char, Ctrl, CtrlEnd, CtrlHome, Delete,
        Down, End, Enter, Esc, F, Home, Left, PageDown, PageUp, Right, Tab, Up, WheelDown, WheelUp,
        WordLeft, WordRight,
    };

    fn keys(bytes: &[u8]) -> Vec<TerminalInput> {
        let mut decoder = Decoder::default();
        let mut typed = decoder.push(bytes);
        typed.extend(decoder.decide());
        assert!(!decoder.is_undecided());
        typed
    }

    fn key(key: Key) -> Vec<TerminalInput> {
        vec![TerminalInput::Key(key)]
    }

    #[test]
    fn each_sequence_is_its_key_also_byte_by_byte() {
        let table: &[(&[u8], Key)] = &[
            (b"a", Char('a')),
            ("é".as_bytes(), Char('é')),
            ("漢".as_bytes(), Char('漢')),
            (b"\r", Enter),
            (b"\n", Ctrl('j')),
            (b"\t", Tab),
            (b"\x03", Ctrl('c')),
            (b"\x04", Ctrl('d')),
            (b"\x1c", Ctrl('\\')),
            (b"\x7f", Backspace),
            (b"\x1b\r", AltEnter),
            (b"\x1b[13;2u", AltEnter),
            (b"\x1b[27;2;13~", AltEnter),
            (b"\x1b[13u", Enter),
            (b"\x1b[27u", Esc),
            (b"\x1b[99;5u", Ctrl('c')),
            (b"\x1b[99:67;5:1u", Ctrl('c')),
            (b"\x1b[27;5;92~", Ctrl('\\')),
            (b"\x1bb", WordLeft),
            (b"\x1b[1;5C", WordRight),
            (b"\x1b[1;3D", WordLeft),
            (b"\x1b\x7f", Ctrl('w')),
            (b"\x1bx", Alt('x')),
            (b"\x1b[A", Up),
            (b"\x1bOB", Down),
            (b"\x1b[C", Right),
            (b"\x1b[D", Left),
            (b"\x1b[1;3A", AltUp),
            (b"\x1b[1;3B", AltDown),
            (b"\x1b[H", Home),
            (b"\x1b[1;5H", CtrlHome),
            (b"\x1b[8;5~", CtrlEnd),
            (b"\x1b[4~", End),
            (b"\x1b[3~", Delete),
            (b"\x1b[5~", PageUp),
            (b"\x1b[6;5~", PageDown),
            (b"\x1bOP", F(1)),
            (b"\x1b[1;2Q", F(2)),
            (b"\x1b[[C", F(3)),
            (b"\x1b[15~", F(5)),
            (b"\x1b[24~", F(12)),
            (b"\x1b[Z", BackTab),
            (b"\x1b[<64;10;4M", WheelUp),
            (b"\x1b[<69;10;4M", WheelDown),
        ];
        for (bytes, wanted) in table {
            assert_eq!(
                keys(bytes),
                key(*wanted),
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
            let mut decoder = Decoder::default();
            let typed: Vec<TerminalInput> = bytes
                .iter()
                .flat_map(|byte| decoder.push(&[*byte]))
                .collect();
            assert_eq!(
                typed,
                key(*wanted),
                "byte by byte: {:?}",
                String::from_utf8_lossy(bytes)
            );
        }
    }

    #[test]
    fn escape_is_a_key_when_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"\x1b"), []);
        assert!(decoder.is_undecided());
        assert_eq!(decoder.decide(), key(Esc));
        assert_eq!(
            decoder.push(b"\x1b\x1b[A"),
            [TerminalInput::Key(Esc), TerminalInput::Key(Up)]
        );
        assert!(!decoder.is_undecided());
    }

    #[test]
    fn a_paste_is_one_text_whatever_is_in_it() {
        let text = "one\rtwo\x1b[A \x1b[20\r\nthree";
        let bytes = format!("\x1b[200~{text}\x1b[201~x");
        let wanted = [
            TerminalInput::Paste("one\ntwo\x1b[A \x1b[20\nthree".to_owned()),
            TerminalInput::Key(Char('x')),
        ];
        assert_eq!(keys(bytes.as_bytes()), wanted);
        let mut decoder = Decoder::default();
        let typed: Vec<TerminalInput> = bytes
            .bytes()
            .flat_map(|byte| decoder.push(&[byte]))
            .collect();
        assert_eq!(typed, wanted);
        assert_eq!(decoder.push(b"\x1b[200~part"), []);
        assert!(!decoder.is_undecided(), "a paste has its own end");
        let whole = vec![b'y'; MAX_PASTE - b"part".len()];
        assert_eq!(decoder.push(&whole), []);
        let typed = decoder.push(b"\x1b[201~");
        assert!(matches!(&typed[..], [TerminalInput::Paste(text)] if text.len() == MAX_PASTE));
        // A longer one is not cut.
        assert_eq!(
            decoder.push(&[&b"\x1b[200~long"[..], &whole, b"y\x1b[201~"].concat()),
            [TerminalInput::LongPaste]
        );
    }

    #[test]
    fn what_is_no_key_is_dropped() {
        assert_eq!(
            keys(b"\x1b[?1;2c\x1b[<0;5;5M\x1b[57441;2u\x1b[99xa"),
            key(Char('a'))
        );
        // Super, Hyper and Meta with a letter; the locks of the keyboard are none of them.
        assert_eq!(
            keys(b"\x1b[112;9u\x1b[112;17u\x1b[112;33u\x1b[27;9;112~\x1b[112;65u"),
            key(Char('p'))
        );
        assert_eq!(keys(b"\xff\xc3\x28"), key(Char('(')));
        assert_eq!(keys("\u{9b}".as_bytes()), []);
        assert_eq!(
            keys(b"\x1b[I\x1b[O"),
            [TerminalInput::Focus(true), TerminalInput::Focus(false)]
        );
        let mut endless = b"\x1b[".to_vec();
        endless.extend([b'1'; 100]);
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(&endless), []);
        assert!(!decoder.is_undecided());
    }
}
