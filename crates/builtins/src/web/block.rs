//! Text in blocks: white space is collapsed, blocks are apart, quotes and lists are indented. Does not depend on HTML.

/// The most bytes of text that are made of one page.
pub(super) const MAX_TEXT: usize = 2 << 20;

/// The deepest indentation of lists and quotes; deeper ones are shown at this depth.
const MAX_DEPTH: usize = 8;

/// The text built so far.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    out: String,
    /// Line ends that are before the next word.
    ends: usize,
    space: bool,
    /// The prefixes of each line, innermost last.
    prefixes: Vec<&'static str>,
    /// Prefixes beyond the depth that is shown.
    deeper: usize,
    /// The mark of a list's item, written after the prefixes of the next line.
    mark: String,
    /// Whether the page was longer than [`MAX_TEXT`].
    pub(super) cut: bool,
}

impl Blocks {
    /// Words; white space in them is one space.
    pub(super) fn words(&mut self, text: &str) {
        for (at, word) in text.split(char::is_whitespace).enumerate() {
            self.space |= at > 0;
            if !word.is_empty() {
                self.push(word);
            }
        }
    }

    /// Text as it is, in one line.
    pub(super) fn push(&mut self, text: &str) {
        if self.out.len() + text.len() > MAX_TEXT {
            self.cut = true;
            return;
        }
        if self.ends > 0 || self.out.is_empty() {
            let breaks = if self.out.is_empty() { 0 } else { self.ends };
            for _ in 0..breaks {
                self.out.push('\n');
            }
            self.prefixes
                .iter()
                .for_each(|prefix| self.out.push_str(prefix));
            self.out.push_str(&std::mem::take(&mut self.mark));
        } else if self.space {
            self.out.push(' ');
        }
        (self.ends, self.space) = (0, false);
        self.out.push_str(text);
    }

    /// Adds text directly behind the last word, before any pending separator.
    pub(super) fn glue(&mut self, text: &str) {
        let due = (
            std::mem::take(&mut self.ends),
            std::mem::take(&mut self.space),
        );
        self.push(text);
        (self.ends, self.space) = due;
    }

    /// Starts a new line.
    pub(super) fn line(&mut self) {
        self.ends = self.ends.max(1);
        self.space = false;
    }

    /// Starts a new block after an empty line.
    pub(super) fn block(&mut self) {
        self.ends = self.ends.max(2);
        self.space = false;
    }

    /// Lines from here on begin with this, too.
    pub(super) fn indent(&mut self, prefix: &'static str) {
        if self.prefixes.len() < MAX_DEPTH {
            self.prefixes.push(prefix);
        } else {
            self.deeper += 1;
        }
    }

    pub(super) fn outdent(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.prefixes.pop();
        }
    }

    /// The next line begins with this.
    pub(super) fn mark(&mut self, mark: String) {
        self.mark = mark;
    }

    /// Lines as they are.
    pub(super) fn verbatim(&mut self, text: &str) {
        for line in text.lines() {
            self.push(line);
            self.ends = 1;
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}
