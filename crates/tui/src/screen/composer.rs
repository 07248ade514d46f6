//! The text that a person is writing: a caret between graphemes, long pastes as one piece each, undo. Draws nothing.

pub(super) mod vi;

use std::rc::Rc;
use unicode_segmentation::UnicodeSegmentation;

/// Stands for a paste in the text. What is typed or pasted never has this character.
pub(super) const CHIP: char = '\u{fffc}';

/// Bytes of an input, as JSON: a line of the protocol has room for it and for what stands around it.
pub(super) const MAX_INPUT: usize = protocol::MAX_LINE - (64 << 10);

/// A paste of more lines or bytes is one piece.
const CHIP_LINES: usize = 4;
const CHIP_BYTES: usize = 400;

/// Bytes of a text that comes as a whole and can be changed; a longer one is one piece.
const MAX_INLINE: usize = 16 << 10;

/// States that can be called back, and their bytes.
const MAX_UNDO: usize = 200;
const MAX_UNDO_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Snapshot {
    text: String,
    caret: usize,
    chips: Vec<Rc<str>>,
}

/// What the newest change was: changes of one kind in a row are undone together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EditKind {
    #[default]
    Other,
    Typed,
    Erased,
}

/// A text, its caret and its past.
#[derive(Clone, Debug, Default)]
pub(super) struct Composer {
    now: Snapshot,
    undo: Vec<Snapshot>,
    redo: Vec<Snapshot>,
    kind: EditKind,
}

impl Composer {
    /// The text with marks for pastes.
    pub(super) fn marked(&self) -> &str {
        &self.now.text
    }

    pub(super) fn caret(&self) -> usize {
        self.now.caret
    }

    pub(super) fn is_empty(&self) -> bool {
        self.now.text.is_empty()
    }

    /// The text as it is sent.
    pub(super) fn text(&self) -> String {
        let mut chips = self.now.chips.iter();
        let mut text = String::with_capacity(self.now.text.len());
        for c in self.now.text.chars() {
            match c {
                CHIP => text.push_str(chips.next().map_or("", |chip| chip)),
                c => text.push(c),
            }
        }
        text
    }

    /// What is shown for the pastes, in order.
    pub(super) fn labels(&self) -> impl Iterator<Item = String> {
        self.now
            .chips
            .iter()
            .map(|chip| match chip.lines().count() {
                0 | 1 => format!("[pasted {} characters]", chip.chars().count()),
                lines => format!("[pasted {lines} lines]"),
            })
    }

    /// Replaces everything; can be undone. A long text is one piece.
    pub(super) fn set(&mut self, text: &str) {
        self.begin(EditKind::Other);
        let text = clean(text);
        let (text, chips) = if text.len() > MAX_INLINE {
            (CHIP.to_string(), vec![text.into()])
        } else {
            (text, Vec::new())
        };
        self.now = Snapshot {
            caret: text.len(),
            text,
            chips,
        };
    }

    /// Takes the text as it is sent, and leaves none.
    pub(super) fn take(&mut self) -> String {
        let text = self.text();
        self.begin(EditKind::Other);
        self.now = Snapshot::default();
        text
    }

    /// Adds a character; `false` if there is no room.
    pub(super) fn type_char(&mut self, c: char) -> bool {
        let text = clean(c.encode_utf8(&mut [0; 4]));
        if !self.fits(text.len()) {
            return false;
        }
        // A word and what stands before it are undone together.
        self.begin(if c.is_whitespace() {
            EditKind::Other
        } else {
            EditKind::Typed
        });
        self.put(&text);
        true
    }

    /// Adds a paste; `false` if there is no room.
    pub(super) fn paste(&mut self, text: &str) -> bool {
        let text = clean(text);
        if !self.fits(text.len()) {
            return false;
        }
        self.begin(EditKind::Other);
        if text.lines().count() >= CHIP_LINES || text.len() > CHIP_BYTES {
            let before = self.chips_before(self.now.caret);
            self.now
                .chips
                .insert(before.min(self.now.chips.len()), text.into());
            self.put(&CHIP.to_string());
        } else {
            self.put(&text);
        }
        true
    }

    fn put(&mut self, text: &str) {
        self.now.text.insert_str(self.now.caret, text);
        self.now.caret += text.len();
        // A mark may join the character before it, and then there is no place between them.
        self.now.caret = self.at_or_after(self.now.caret);
    }

    fn fits(&self, more: usize) -> bool {
        let chips: usize = self.now.chips.iter().map(|chip| chip.len()).sum();
        self.now.text.len() + chips + more <= MAX_INPUT
    }

    fn chips_before(&self, at: usize) -> usize {
        self.now
            .text
            .get(..at)
            .unwrap_or_default()
            .matches(CHIP)
            .count()
    }

    fn begin(&mut self, kind: EditKind) {
        if kind == EditKind::Other || kind != self.kind {
            self.undo.push(self.now.clone());
            let mut bytes: usize = self.undo.iter().map(|past| past.text.len()).sum();
            while self.undo.len() > MAX_UNDO || (bytes > MAX_UNDO_BYTES && self.undo.len() > 1) {
                bytes -= self.undo.remove(0).text.len();
            }
        }
        self.redo.clear();
        self.kind = kind;
    }

    /// What is written of a file's path at the caret, behind an `@` that begins a word, and where the `@` stands.
    pub(super) fn file_word(&self) -> Option<(usize, &str)> {
        let before = self.now.text.get(..self.now.caret)?;
        let gap = before.char_indices().rev().find(|(_, c)| c.is_whitespace());
        let start = gap.map_or(0, |(at, c)| at + c.len_utf8());
        before
            .get(start..)?
            .strip_prefix('@')
            .map(|path| (start, path))
    }

    /// Replaces what stands between this place and the caret; `false` if there is no room.
    pub(super) fn replace_from(&mut self, start: usize, text: &str) -> bool {
        let text = clean(text);
        if !self.fits(text.len()) {
            return false;
        }
        self.erase(start, self.now.caret, EditKind::Other);
        self.put(&text);
        true
    }

    pub(super) fn undo(&mut self) {
        self.kind = EditKind::Other;
        if let Some(past) = self.undo.pop() {
            self.redo.push(std::mem::replace(&mut self.now, past));
        }
    }

    pub(super) fn redo(&mut self) {
        self.kind = EditKind::Other;
        if let Some(next) = self.redo.pop() {
            self.undo.push(std::mem::replace(&mut self.now, next));
        }
    }

    /// Removes the text between two places.
    fn erase(&mut self, from: usize, to: usize, kind: EditKind) {
        if from >= to {
            return;
        }
        self.begin(kind);
        let first = self.chips_before(from);
        let end = self.chips_before(to);
        self.now
            .chips
            .drain(first.min(end)..end.min(self.now.chips.len()));
        self.now.text.drain(from..to);
        self.now.caret = self.at_or_after(from);
    }

    pub(super) fn backspace(&mut self) {
        self.erase(
            self.before(self.now.caret),
            self.now.caret,
            EditKind::Erased,
        );
    }

    pub(super) fn delete(&mut self) {
        self.erase(self.now.caret, self.after(self.now.caret), EditKind::Erased);
    }

    pub(super) fn erase_word(&mut self) {
        self.erase(self.word_before(), self.now.caret, EditKind::Other);
    }

    /// Removes what stands before the caret in its line.
    pub(super) fn erase_to_start(&mut self) {
        self.erase(self.line_start(), self.now.caret, EditKind::Other);
    }

    /// Removes what stands behind the caret in its line, or the line's end.
    pub(super) fn erase_to_end(&mut self) {
        let end = self.line_end();
        let to = if end == self.now.caret {
            self.after(end)
        } else {
            end
        };
        self.erase(self.now.caret, to, EditKind::Other);
    }

    pub(super) fn move_to(&mut self, caret: usize) {
        self.kind = EditKind::Other;
        self.now.caret = self.at_or_after(caret);
    }

    pub(super) fn left(&mut self) {
        self.move_to(self.before(self.now.caret));
    }

    pub(super) fn right(&mut self) {
        self.move_to(self.after(self.now.caret));
    }

    pub(super) fn word_left(&mut self) {
        self.move_to(self.word_before());
    }

    pub(super) fn word_right(&mut self) {
        let rest = self.now.text.get(self.now.caret..).unwrap_or_default();
        let mut at = 0;
        let mut words = rest.split_word_bounds().skip_while(|word| {
            let is_gap = word.trim().is_empty();
            at += if is_gap { word.len() } else { 0 };
            is_gap
        });
        let word = words.next().map_or(0, str::len);
        self.move_to(self.now.caret + at + word);
    }

    pub(super) fn line_start(&self) -> usize {
        self.now
            .text
            .get(..self.now.caret)
            .and_then(|before| before.rfind('\n'))
            .map_or(0, |at| at + 1)
    }

    pub(super) fn line_end(&self) -> usize {
        let rest = self.now.text.get(self.now.caret..).unwrap_or_default();
        rest.find('\n')
            .map_or(self.now.text.len(), |at| self.now.caret + at)
    }

    fn word_before(&self) -> usize {
        let before = self.now.text.get(..self.now.caret).unwrap_or_default();
        let trimmed = before.trim_end();
        trimmed
            .split_word_bound_indices()
            .next_back()
            .map_or(0, |(at, _)| at)
    }

    fn before(&self, at: usize) -> usize {
        let before = self.now.text.get(..at).unwrap_or_default();
        before
            .grapheme_indices(true)
            .next_back()
            .map_or(0, |(at, _)| at)
    }

    fn after(&self, at: usize) -> usize {
        let rest = self.now.text.get(at..).unwrap_or_default();
        at + rest.graphemes(true).next().map_or(0, str::len)
    }

    /// The place itself if it stands between graphemes, otherwise the next one that does.
    fn at_or_after(&self, at: usize) -> usize {
        let starts = self.now.text.grapheme_indices(true).map(|(start, _)| start);
        starts
            .into_iter()
            .find(|start| *start >= at)
            .unwrap_or(self.now.text.len())
    }
}

/// Line feeds are one character each, and no character is taken for a paste.
fn clean(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace(CHIP, "\u{fffd}")
}
