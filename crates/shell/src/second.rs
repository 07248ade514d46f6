//! A second parser, independent of the parser's crate, to cross-check the first one.
//!
//! It covers the plain part of bash's grammar and rejects everything else, so it errs on the safe side: text that it
//! rejects, or parses differently than the first parser, is opaque. It evaluates nothing and does not depend on
//! programs.
//!
//! ```text
//! list:     pipeline [ && | || | ; | & | newline  pipeline ]…      until a word that closes
//! pipeline: [ ! | time [-p] ]… command [ | | |&  command ]…
//! command:  compound redirection…  |  simple words  |  function definition
//! word:     literals, quotes, $name, ${…}, $(list), `list`, <(list), $((numbers))
//! ```

mod command;
mod here;
mod words;

use here::Here;

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 64;

/// One simple command, or the redirections of a compound one.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reading {
    /// Names of the variables that are set before it.
    pub(crate) assignments: Vec<String>,
    /// Its words. `None`: expanded when it runs.
    pub(crate) words: Vec<Option<String>>,
    /// Targets of its redirections: [`DESCRIPTOR`] where it is one, `None` where it is expanded or a here-document.
    pub(crate) redirections: Vec<Option<String>>,
}

/// The placeholder for any open descriptor; its name starts nothing.
pub(crate) const DESCRIPTOR: Option<String> = None;

/// Whether this reading finds the same commands in `text` as the first one, in any order.
pub(crate) fn agrees(text: &str, mut first: Vec<Reading>) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut reader = Reader {
        text: &text,
        at: 0,
        depth: 0,
        inside: 0,
        pending: Vec::new(),
        found: Vec::new(),
    };
    if reader.script().is_none() {
        return false;
    }
    first.sort();
    reader.found.sort();
    first == reader.found
}

/// Reads from left to right. Its methods return `None` for text that this parser rejects.
struct Reader<'a> {
    text: &'a [char],
    at: usize,
    depth: usize,
    /// How many substitutions are open.
    inside: usize,
    /// Here-documents whose bodies begin at the next end of a line.
    pending: Vec<Here>,
    found: Vec<Reading>,
}

impl Reader<'_> {
    fn script(&mut self) -> Option<()> {
        self.list()?;
        (self.at == self.text.len() && self.pending.is_empty()).then_some(())
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn after(&self, count: usize) -> Option<char> {
        self.text.get(self.at + count).copied()
    }

    fn starts(&self, with: &str) -> bool {
        with.chars()
            .enumerate()
            .all(|(i, c)| self.after(i) == Some(c))
    }

    /// The characters up to where a word ends, quotes and all.
    fn raw_word(&self) -> String {
        self.text
            .iter()
            .skip(self.at)
            .take_while(|c| !ends_word(**c))
            .collect()
    }

    /// Takes `with` if it comes next.
    fn take(&mut self, with: &str) -> bool {
        let starts = self.starts(with);
        if starts {
            self.at += with.chars().count();
        }
        starts
    }

    fn expect(&mut self, with: &str) -> Option<()> {
        self.take(with).then_some(())
    }

    fn reserved(&mut self, word: &str) -> Option<()> {
        (self.raw_word() == word).then(|| self.at += word.len())
    }

    /// White space inside of a line.
    fn blanks(&mut self) -> Option<()> {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.after(1) == Some('\n') => {
                    // Where a here-document begins then is not worth knowing.
                    self.pending.is_empty().then(|| self.at += 2)?;
                }
                _ => return Some(()),
            }
        }
    }

    /// White space, comments and ends of lines, with the here-documents that begin at these.
    fn gap(&mut self) -> Option<()> {
        loop {
            self.blanks()?;
            match self.peek() {
                Some('#') => {
                    self.at += self
                        .text
                        .iter()
                        .skip(self.at)
                        .take_while(|c| **c != '\n')
                        .count()
                }
                Some('\n') => {
                    self.at += 1;
                    self.here_documents()?;
                }
                _ => return Some(()),
            }
        }
    }

    /// Counts one level of nesting around `read`.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    /// A list inside of a word, up to the parenthesis that closes it. Here-documents of both sides stay apart.
    fn substitution(&mut self) -> Option<()> {
        let from = self.at;
        let outside = std::mem::take(&mut self.pending);
        self.inside += 1;
        self.nested(|reader| reader.list().map(drop))?;
        self.inside -= 1;
        self.expect(")")?;
        let lines = self
            .text
            .get(from..self.at)
            .is_some_and(|inside| inside.contains(&'\n'));
        let apart = self.pending.is_empty() && (!lines || outside.is_empty());
        self.pending = outside;
        apart.then_some(())
    }

    /// Commands in backquotes. What a backslash means in there depends on what is around: not read.
    fn backquotes(&mut self, in_double_quotes: bool) -> Option<()> {
        let inside: Vec<char> = self
            .text
            .iter()
            .skip(self.at + 1)
            .copied()
            .take_while(|c| *c != '`')
            .collect();
        let odd = |c: &char| *c == '\\' || (*c == '"' && in_double_quotes);
        if inside.iter().any(odd) || (inside.contains(&'\n') && !self.pending.is_empty()) {
            return None;
        }
        self.at += inside.len() + 1;
        self.expect("`")?;
        self.nested(|reader| {
            let found = std::mem::take(&mut reader.found);
            let depth = reader.depth;
            let pending = Vec::new();
            let mut inner = Reader {
                text: &inside,
                at: 0,
                depth,
                inside: reader.inside + 1,
                pending,
                found,
            };
            let read = inner.script();
            reader.found = inner.found;
            read
        })
    }

    /// Calculation with nothing but numbers, up to the parentheses that close it.
    fn numbers(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            let c = self.peek()?;
            self.at += 1;
            match c {
                '(' => open += 1,
                ')' if open == 0 => return self.expect(")"),
                ')' => open -= 1,
                c if c.is_ascii_digit() || " \t+-*/%<>=&|^~!?:,".contains(c) => {}
                _ => return None,
            }
        }
    }
}

/// Whether an unquoted character ends a word.
fn ends_word(c: char) -> bool {
    " \t\n;&|()<>".contains(c)
}

fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
