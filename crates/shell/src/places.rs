//! Where the words of a command stand in its text. The parser counts characters from the begin of what it read: of the
//! text, or of the content of a substitution. A word whose place is not certain has none.

use rable::Node;
use std::ops::Range;

/// The places of words in one text.
pub(crate) struct Places {
    text: String,
    /// The byte at which each character begins, and the end.
    begins: Vec<usize>,
    /// The character at which the text begins that the parser counts from, if it is known.
    base: Option<usize>,
    /// The character behind the last word that has a place.
    behind: usize,
}

impl Places {
    pub(crate) fn new(text: &str) -> Self {
        let begins = text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .collect();
        Self {
            text: text.to_owned(),
            begins,
            base: Some(0),
            behind: 0,
        }
    }

    /// The first character and the bytes of a word, if the text has it there as the parser read it.
    pub(crate) fn word(&mut self, node: &Node, raw: &str) -> Option<(usize, Range<usize>)> {
        let first = self.base?.checked_add(node.span.start)?;
        let behind = self
            .passed(Some(first), raw)
            .filter(|behind| *behind > first)?;
        self.behind = self.behind.max(behind);
        Some((first, *self.begins.get(first)?..*self.begins.get(behind)?))
    }

    /// The character behind this text, if the text has it at `at`.
    pub(crate) fn passed(&self, at: Option<usize>, literal: &str) -> Option<usize> {
        let at = at?;
        let rest = self.text.get(*self.begins.get(at)?..)?;
        rest.starts_with(literal)
            .then(|| at + literal.chars().count())
    }

    /// The words up to [`Self::leave`] are those of a substitution that begins at `at`.
    pub(crate) fn enter(&mut self, at: Option<usize>) -> Outside {
        let openers = ["$(", "<(", ">(", "`"];
        let inside = openers.iter().find_map(|opener| self.passed(at, opener));
        let outside = Outside {
            base: self.base,
            behind: self.behind,
            is_quoted: self.passed(at, "`").is_some(),
        };
        (self.base, self.behind) = (inside, inside.unwrap_or_default());
        outside
    }

    /// The substitution has ended; gives the character behind it, if that is certain.
    pub(crate) fn leave(&mut self, outside: Outside) -> Option<usize> {
        let closer = if outside.is_quoted { '`' } else { ')' };
        let end = self.base.and_then(|_| {
            let rest = self.text.get(*self.begins.get(self.behind)?..)?;
            let blank = rest
                .chars()
                .take_while(|c| c.is_ascii_whitespace() || *c == ';')
                .count();
            (rest.chars().nth(blank) == Some(closer)).then_some(self.behind + blank + 1)
        });
        (self.base, self.behind) = (outside.base, outside.behind.max(end.unwrap_or_default()));
        end
    }
}

/// What is counted from outside of a substitution.
pub(crate) struct Outside {
    base: Option<usize>,
    behind: usize,
    /// It is written in backquotes.
    is_quoted: bool,
}
