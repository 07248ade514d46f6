//! Redirections and here-documents of the second reading. No file is opened.

use super::{Reader, Reading, ends_word};

/// A here-document whose body follows.
pub(super) struct Here {
    delimiter: String,
    /// Whether nothing in it is expanded.
    quoted: bool,
    /// Whether tabs before a line are taken away.
    strips: bool,
}

/// Longest first.
const OPERATORS: [&str; 12] = [
    "<<<", "<<-", "&>>", "<<", "<&", "<>", ">>", ">&", ">|", "&>", "<", ">",
];

impl Reader<'_> {
    /// Whether a redirection begins here: a number may be before it, and `<(` is a word.
    pub(super) fn at_redirection(&self) -> bool {
        let digits = self
            .text
            .iter()
            .skip(self.at)
            .take_while(|c| c.is_ascii_digit())
            .count();
        match self.after(digits) {
            Some('<' | '>') => self.after(digits + 1) != Some('(') || digits > 0,
            Some('&') => digits == 0 && self.after(1) == Some('>'),
            _ => false,
        }
    }

    pub(super) fn redirection(&mut self, reading: &mut Reading) -> Option<()> {
        self.at += self
            .text
            .iter()
            .skip(self.at)
            .take_while(|c| c.is_ascii_digit())
            .count();
        let operator = *OPERATORS.iter().find(|operator| self.starts(operator))?;
        self.at += operator.len();
        self.blanks()?;
        let target = match operator {
            "<<" | "<<-" => {
                let (delimiter, quoted) = self.delimiter()?;
                self.pending.push(Here {
                    delimiter,
                    quoted,
                    strips: operator == "<<-",
                });
                None
            }
            // `>&-` ends a redirection, and bash takes what follows it, as in `>&-x`, for the next word.
            "<&" | ">&" if self.peek() == Some('-') && !self.after(1).is_none_or(ends_word) => {
                return None;
            }
            "<&" | ">&" => self
                .word(false)?
                .literal()
                .filter(|target| !is_descriptor(target)),
            _ => self.word(false)?.literal(),
        };
        reading.redirections.push(target);
        Some(())
    }

    /// A delimiter that cannot be misread: a plain name, bare or in one kind of quotes from end to end.
    fn delimiter(&mut self) -> Option<(String, bool)> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
        let first = self.peek()?;
        let (quote, quoted) = match first {
            '\'' | '"' => (Some(first), true),
            '\\' => (None, true),
            _ => (None, false),
        };
        self.at += usize::from(quoted);
        let inside = |c: &char| {
            if quote == Some('\'') {
                *c != '\'' && *c != '\n'
            } else {
                plain(*c)
            }
        };
        let delimiter: String = self
            .text
            .iter()
            .skip(self.at)
            .copied()
            .take_while(inside)
            .collect();
        self.at += delimiter.chars().count();
        if let Some(quote) = quote {
            self.expect(quote.encode_utf8(&mut [0; 4]))?;
        }
        let ends = self.peek().is_none_or(ends_word);
        (ends && !delimiter.is_empty()).then_some((delimiter, quoted))
    }

    /// The bodies of those that are pending, from the line that begins here.
    pub(super) fn here_documents(&mut self) -> Option<()> {
        for here in std::mem::take(&mut self.pending) {
            while !self.line(&here)? {}
        }
        Some(())
    }

    /// Whether the next line is the last one.
    fn line(&mut self, here: &Here) -> Option<bool> {
        if self.at >= self.text.len() {
            return None;
        }
        let line: String = self
            .text
            .iter()
            .skip(self.at)
            .take_while(|c| **c != '\n')
            .collect();
        let length = line.chars().count();
        let text = if here.strips {
            line.trim_start_matches('\t')
        } else {
            &line
        };
        if text == here.delimiter {
            // The end of the line is kept if no command follows.
            self.at += (length + 1).min(self.text.len() - self.at);
            return Some(true);
        }
        // In a substitution bash ends it at any line that begins so and has a bracket in it, and runs the line.
        let ends_early = text.starts_with(&here.delimiter) && text.contains(')');
        if ends_early || !here.quoted && runs_or_joins(&line) {
            return None;
        }
        self.at += length + 1;
        Some(false)
    }
}

fn is_descriptor(target: &str) -> bool {
    target
        .trim_end_matches('-')
        .chars()
        .all(|c| c.is_ascii_digit())
}

/// Whether more than a variable is expanded, or the line after it is not a line.
fn runs_or_joins(line: &str) -> bool {
    let beyond_a_name = |(at, _): (usize, &str)| {
        let name = line.get(at + 2..).unwrap_or_default();
        let rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        rest.len() == name.len() || !rest.starts_with('}')
    };
    line.ends_with('\\')
        || ["`", "$(", "$["].iter().any(|opener| line.contains(opener))
        || line.match_indices("${").any(beyond_a_name)
}
