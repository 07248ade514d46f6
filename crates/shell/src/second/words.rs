//! Words of the second reading: what is literal in them. Nothing is expanded.

use super::{Reader, ends_word, is_name};

/// A word as far as it is read.
#[derive(Default)]
pub(super) struct RawWord {
    /// Without its quotes.
    bare: String,
    /// Whether something in it is expanded.
    expands: bool,
    /// Whether something in it is quoted or expanded.
    touched: bool,
    /// Whether a line continuation is in it.
    pub(super) continued: bool,
    /// How much of an assignment's name and sign is before its value.
    sets: Option<String>,
    opens_brace: bool,
    divides_brace: bool,
}

impl RawWord {
    pub(super) fn literal(&self) -> Option<String> {
        let expands = self.expands || (self.opens_brace && self.divides_brace);
        (!expands || (self.bare == "[" && !self.touched)).then(|| self.bare.clone())
    }

    /// The variable that it sets, if the word is in a position for an assignment.
    pub(super) fn sets(&self) -> Option<String> {
        self.sets.clone()
    }

    fn expanded(&mut self) {
        self.expands = true;
        self.touched = true;
    }

    /// A character that is not quoted and means nothing to the grammar.
    fn unquoted(&mut self, c: char) {
        self.divides_brace |=
            self.opens_brace && (c == ',' || (c == '.' && self.bare.ends_with('.')));
        self.opens_brace |= c == '{';
        let tilde = c == '~' && (self.bare.is_empty() || self.bare.ends_with([':', '=']));
        self.expands |= tilde || matches!(c, '*' | '?' | '[');
        self.bare.push(c);
    }
}

impl Reader<'_> {
    /// A word, which must not be empty. `assigns`: whether `name=(…)` is allowed here.
    pub(super) fn word(&mut self, assigns: bool) -> Option<RawWord> {
        let from = self.at;
        let mut word = RawWord::default();
        if self.starts("<(") || self.starts(">(") {
            self.at += 2;
            word.expanded();
            self.substitution()?;
            return self
                .peek()
                .is_none_or(ends_word)
                .then_some(word)
                .filter(|_| !self.goes_on());
        }
        while let Some(c) = self.peek() {
            match c {
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '\\' if self.after(1) == Some('\n') => {
                    self.pending.is_empty().then(|| self.at += 2)?;
                    word.continued = true;
                }
                '\\' => {
                    word.bare.push(self.after(1)?);
                    word.touched = true;
                    self.at += 2;
                }
                '$' => self.dollar(&mut word, false)?,
                '`' => {
                    word.expanded();
                    self.backquotes(false)?;
                }
                '[' if !word.touched && is_name(&word.bare) => self.subscript(&mut word)?,
                '=' if !word.touched && word.sets.is_none() => self.equals(&mut word, assigns)?,
                c if ends_word(c) => break,
                c => {
                    word.unquoted(c);
                    self.at += 1;
                }
            }
        }
        let names_descriptor = word.bare.starts_with('{') && matches!(self.peek(), Some('<' | '>'));
        let odd = self.goes_on()
            || names_descriptor
            || (word.continued && matches!(self.peek(), Some('<' | '>')));
        (self.at > from && !odd).then_some(word)
    }

    /// Whether a substitution follows at once, which would belong to the word.
    fn goes_on(&self) -> bool {
        self.starts("<(") || self.starts(">(")
    }

    /// No here-document may begin inside of quotes.
    fn newline_is_plain(&self, c: char) -> Option<()> {
        (c != '\n' || self.pending.is_empty()).then_some(())
    }

    fn single(&mut self, word: &mut RawWord) -> Option<()> {
        word.touched = true;
        self.at += 1;
        loop {
            let c = self.peek()?;
            self.newline_is_plain(c)?;
            self.at += 1;
            if c == '\'' {
                return Some(());
            }
            word.bare.push(c);
        }
    }

    fn double(&mut self, word: &mut RawWord) -> Option<()> {
        word.touched = true;
        self.at += 1;
        loop {
            let c = self.peek()?;
            self.newline_is_plain(c)?;
            match c {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '\\' => {
                    let next = self.after(1)?;
                    self.newline_is_plain(next)?;
                    self.at += 2;
                    match next {
                        '\n' => {}
                        '$' | '`' | '"' | '\\' => word.bare.push(next),
                        _ => word.bare.extend(['\\', next]),
                    }
                }
                '$' => self.dollar(word, true)?,
                '`' => {
                    word.expanded();
                    self.backquotes(true)?;
                }
                _ => {
                    word.bare.push(c);
                    self.at += 1;
                }
            }
        }
    }

    fn dollar(&mut self, word: &mut RawWord, in_double_quotes: bool) -> Option<()> {
        let name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        match self.after(1) {
            Some('(') => {
                word.expanded();
                if self.take("$((") {
                    return self.numbers();
                }
                self.at += 2;
                self.substitution()
            }
            Some('{') => {
                word.expanded();
                self.parameter()
            }
            Some('\'') if !in_double_quotes => self.escaped(word),
            Some('"') if !in_double_quotes => {
                word.expanded();
                self.at += 1;
                self.double(word)
            }
            Some('[') => None,
            Some('\\') if self.after(2) == Some('\n') => None,
            Some(c) if name(&c) && !c.is_ascii_digit() => {
                word.expanded();
                self.at += 1 + self
                    .text
                    .iter()
                    .skip(self.at + 1)
                    .take_while(|c| name(c))
                    .count();
                Some(())
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                word.expanded();
                self.at += 2;
                Some(())
            }
            _ => {
                word.bare.push('$');
                self.at += 1;
                Some(())
            }
        }
    }

    /// `${name…}` with an unambiguous end: without quotes and commands.
    fn parameter(&mut self) -> Option<()> {
        self.expect("${")?;
        let special = |c: char| "@*#?$-".contains(c);
        let counts = self.peek() == Some('#') && self.after(1) != Some('}');
        self.at += usize::from(counts);
        let name = self
            .text
            .iter()
            .skip(self.at)
            .take_while(|c| c.is_ascii_alphanumeric() || **c == '_')
            .count();
        self.at += if name == 0 {
            usize::from(special(self.peek()?))
        } else {
            name
        };
        if name == 0 && !self.text.get(self.at - 1).copied().is_some_and(special) {
            return None;
        }
        loop {
            let c = self.peek()?;
            match c {
                '}' => {
                    self.at += 1;
                    return Some(());
                }
                '$' if self.after(1) == Some('{') => self.nested(Self::parameter)?,
                '$' if !self
                    .after(1)
                    .is_some_and(|next| next.is_ascii_alphanumeric() || next == '_') =>
                {
                    return None;
                }
                '\\' if self.after(1).is_some_and(|next| "/.#%*?-:+".contains(next)) => {
                    self.at += 2
                }
                '\'' | '"' | '`' | '\\' | '{' | '(' | ')' | '<' | '>' | ';' | '&' | '|' | '\n' => {
                    return None;
                }
                _ => self.at += 1,
            }
        }
    }

    /// `$'…'`: what is not an ASCII character for certain counts as expanded.
    fn escaped(&mut self, word: &mut RawWord) -> Option<()> {
        word.touched = true;
        self.at += 2;
        loop {
            let c = self.peek()?;
            self.newline_is_plain(c)?;
            self.at += 1;
            match c {
                '\'' => return Some(()),
                '\\' => {
                    let escape = self.peek()?;
                    self.newline_is_plain(escape)?;
                    self.at += 1;
                    match self.escape(escape) {
                        Some(decoded) if decoded != '\0' && decoded.is_ascii() => {
                            word.bare.push(decoded)
                        }
                        Some(_) | None => word.expanded(),
                    }
                }
                _ => word.bare.push(c),
            }
        }
    }

    fn escape(&mut self, escape: char) -> Option<char> {
        let code = match escape {
            'a' => 7,
            'b' => 8,
            't' => 9,
            'n' => 10,
            'v' => 11,
            'f' => 12,
            'r' => 13,
            'e' | 'E' => 27,
            '\\' | '\'' | '"' | '?' => u32::from(escape),
            'x' => self.digits(16, 2)?,
            'u' => self.digits(16, 4)?,
            'U' => self.digits(16, 8)?,
            '0'..='7' => {
                self.at -= 1;
                self.digits(8, 3)?
            }
            _ => return None,
        };
        char::from_u32(code)
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let digits: String = self
            .text
            .iter()
            .skip(self.at)
            .take(most)
            .take_while(|c| c.is_digit(radix))
            .collect();
        self.at += digits.len();
        u32::from_str_radix(&digits, radix).ok()
    }

    /// `[…]` behind a name, where a subscript may be meant: nothing but a name or a number in it.
    fn subscript(&mut self, word: &mut RawWord) -> Option<()> {
        let inside: String = self
            .text
            .iter()
            .skip(self.at + 1)
            .take_while(|c| **c != ']')
            .collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || "_@*.^!-".contains(c);
        if !inside.chars().all(plain) {
            return None;
        }
        self.at += inside.len() + 1;
        self.expect("]")?;
        word.bare.push_str(&format!("[{inside}]"));
        word.expands = true;
        Some(())
    }

    /// `=`, and what it makes of the word.
    fn equals(&mut self, word: &mut RawWord, assigns: bool) -> Option<()> {
        let left = word.bare.strip_suffix('+').unwrap_or(&word.bare);
        let name = left.split('[').next().unwrap_or_default().to_owned();
        let sets = is_name(&name) && (name == left || left.ends_with(']'));
        word.bare.push('=');
        self.at += 1;
        if sets {
            word.sets = Some(name);
        }
        if self.peek() == Some('(') {
            (sets && assigns && !word.bare.contains('[')).then_some(())?;
            self.at += 1;
            word.expanded();
            self.array()?;
            return self.peek().is_none_or(ends_word).then_some(());
        }
        Some(())
    }

    /// The words of `name=(…)`. A subscript in front of one is not read.
    fn array(&mut self) -> Option<()> {
        loop {
            self.gap()?;
            match self.peek()? {
                ')' => {
                    self.at += 1;
                    return Some(());
                }
                '[' => return None,
                _ => self.word(false).map(drop)?,
            }
        }
    }
}
