//! The keys of `vi` for a composer: a mode in which letters write, and one in which they move, cut and paste. `u` undoes
//! as in the other mode. Sends nothing and draws nothing.

use super::{CHIP, Composer, EditKind};
use std::rc::Rc;
use unicode_segmentation::UnicodeSegmentation;

/// What the keys of `vi` remember.
#[derive(Clone, Debug, Default)]
pub(in crate::screen) struct ViKeys {
    is_normal: bool,
    /// The first key of `dd` or `cc`.
    begun: Option<char>,
    cut: CutText,
}

/// What was cut last.
#[derive(Clone, Debug, Default)]
struct CutText {
    text: String,
    chips: Vec<Rc<str>>,
    /// Whole lines, without the last line feed.
    is_lines: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Blank,
    Word,
    Sign,
}

impl ViKeys {
    /// Whether letters are commands.
    pub(in crate::screen) fn is_normal(&self) -> bool {
        self.is_normal
    }

    /// In words.
    pub(in crate::screen) fn mode(&self) -> &'static str {
        if self.is_normal { "NORMAL" } else { "INSERT" }
    }

    /// Letters write from now on.
    pub(in crate::screen) fn insert(&mut self) {
        (self.is_normal, self.begun) = (false, None);
    }

    /// Letters are commands from now on.
    pub(in crate::screen) fn normal(&mut self, text: &mut Composer) {
        self.is_normal = true;
        text.move_to(text.left_in_line());
    }

    /// A key that is no letter was pressed in normal mode: the caret stands on a character.
    pub(in crate::screen) fn settle(&mut self, text: &mut Composer) {
        self.begun = None;
        if text.caret() == text.line_end() {
            text.move_to(text.left_in_line());
        }
    }

    /// A letter in normal mode.
    pub(in crate::screen) fn key(&mut self, key: char, text: &mut Composer) {
        let caret = text.caret();
        let end = text.line_end();
        match (self.begun.take(), key) {
            (None, 'd' | 'c') => self.begun = Some(key),
            (Some('d'), 'd') => self.cut_line(text),
            (Some('c'), 'c') => {
                self.cut(text, text.line_start(), end, true);
                self.insert();
            }
            // No command.
            (Some(_), _) => {}
            (_, 'h') => text.move_to(text.left_in_line()),
            (_, 'l') => text.move_to(text.right_in_line()),
            (_, 'w') => text.move_to(text.next_word()),
            (_, 'b') => text.move_to(text.last_word()),
            (_, 'e') => text.move_to(text.word_end()),
            (_, '0') => text.move_to(text.line_start()),
            (_, '$') => text.move_to(end),
            (_, 'x') => self.cut(text, caret, text.right_in_line(), false),
            (_, 'D') => self.cut(text, caret, end, false),
            (_, 'C') => {
                self.cut(text, caret, end, false);
                self.insert();
            }
            (_, 'p') => self.paste(text),
            (_, 'u') => text.undo(),
            (_, key) => self.begin_insert(key, text),
        }
        if self.is_normal && text.caret() == text.line_end() {
            text.move_to(text.left_in_line());
        }
    }

    fn begin_insert(&mut self, key: char, text: &mut Composer) {
        match key {
            'i' => {}
            'I' => text.move_to(text.first_in_line()),
            'a' => text.move_to(text.right_in_line()),
            'A' => text.move_to(text.line_end()),
            'o' => {
                text.move_to(text.line_end());
                text.type_char('\n');
            }
            _ => return,
        }
        self.insert();
    }

    /// Cuts what stands between two places; nothing where nothing is.
    fn cut(&mut self, text: &mut Composer, from: usize, to: usize, is_lines: bool) {
        if from < to {
            self.cut = text.copy(from, to, is_lines);
            text.erase(from, to, EditKind::Other);
        }
    }

    fn cut_line(&mut self, text: &mut Composer) {
        let start = text.line_start();
        let end = text.line_end();
        if text.is_empty() {
            return;
        }
        self.cut = text.copy(start, end, true);
        // With the line feed behind it; the last line goes with the one before it.
        let is_last = end == text.marked().len();
        let (from, to) = if is_last {
            (start.saturating_sub(1), end)
        } else {
            (start, end + 1)
        };
        text.erase(from, to, EditKind::Other);
        text.move_to(text.line_start());
        text.move_to(text.first_in_line());
    }

    fn paste(&self, text: &mut Composer) {
        let CutText {
            text: cut,
            chips,
            is_lines,
        } = &self.cut;
        let bytes = cut.len() + chips.iter().map(|chip| chip.len()).sum::<usize>() + 1;
        if !text.fits(bytes) || (cut.is_empty() && !is_lines) {
            return;
        }
        text.begin(EditKind::Other);
        let at = if *is_lines {
            text.line_end()
        } else {
            text.right_in_line()
        };
        let before = text.chips_before(at);
        text.now.chips.splice(before..before, chips.iter().cloned());
        text.now.caret = at;
        text.put(&if *is_lines {
            format!("\n{cut}")
        } else {
            cut.clone()
        });
        text.move_to(if *is_lines {
            at + 1
        } else {
            text.before(text.caret())
        });
        if *is_lines {
            text.move_to(text.first_in_line());
        }
    }
}

impl Composer {
    fn copy(&self, from: usize, to: usize, is_lines: bool) -> CutText {
        let text = self.now.text.get(from..to).unwrap_or_default().to_owned();
        let chips = self.now.chips.iter().skip(self.chips_before(from));
        let chips = chips.take(text.matches(CHIP).count()).cloned().collect();
        CutText {
            text,
            chips,
            is_lines,
        }
    }

    fn left_in_line(&self) -> usize {
        self.before(self.now.caret).max(self.line_start())
    }

    fn right_in_line(&self) -> usize {
        self.after(self.now.caret).min(self.line_end())
    }

    /// The first place of the line that is not blank.
    fn first_in_line(&self) -> usize {
        let line = self
            .now
            .text
            .get(self.line_start()..self.line_end())
            .unwrap_or_default();
        self.line_start()
            + line
                .find(|c: char| !c.is_whitespace())
                .unwrap_or(line.len())
    }

    /// Where words and empty lines begin, in order.
    fn words(&self) -> impl Iterator<Item = usize> {
        let text = &self.now.text;
        let all = text
            .grapheme_indices(true)
            .zip(std::iter::once("").chain(text.graphemes(true)));
        all.filter(|((_, now), before)| begins(before, now))
            .map(|((at, _), _)| at)
    }

    fn next_word(&self) -> usize {
        self.words()
            .find(|at| *at > self.now.caret)
            .unwrap_or(self.now.text.len())
    }

    fn last_word(&self) -> usize {
        self.words()
            .take_while(|at| *at < self.now.caret)
            .last()
            .unwrap_or(0)
    }

    /// The last character of this word, or of the next one if the caret is there.
    fn word_end(&self) -> usize {
        let mut rest = self
            .now
            .text
            .get(self.now.caret..)
            .unwrap_or_default()
            .grapheme_indices(true)
            .skip(1)
            .peekable();
        while let Some((at, now)) = rest.next() {
            let next = rest
                .peek()
                .map_or(CharClass::Blank, |(_, next)| class(next));
            if class(now) != CharClass::Blank && class(now) != next {
                return self.now.caret + at;
            }
        }
        self.now.text.len()
    }
}

/// Whether a word or an empty line begins between two characters.
fn begins(before: &str, now: &str) -> bool {
    let is_empty_line = now == "\n" && matches!(before, "\n" | "");
    is_empty_line || (class(now) != CharClass::Blank && class(now) != class(before))
}

fn class(grapheme: &str) -> CharClass {
    match grapheme.chars().next() {
        None => CharClass::Blank,
        Some(c) if c.is_whitespace() => CharClass::Blank,
        Some(c) if c.is_alphanumeric() || c == '_' => CharClass::Word,
        Some(_) => CharClass::Sign,
    }
}
