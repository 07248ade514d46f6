//! Keys that change a text, wherever it is written.

use super::composer::Composer;
use super::exchange::Key;

/// Changes the text as a key says; other keys change nothing.
pub(super) fn edit(text: &mut Composer, key: Key) {
    match key {
        Key::Backspace => text.backspace(),
        Key::Delete => text.delete(),
        Key::Left | Key::Ctrl('b') => text.left(),
        Key::Right => text.right(),
        Key::WordLeft | Key::Alt('b') => text.word_left(),
        Key::WordRight | Key::Alt('f') => text.word_right(),
        Key::Home | Key::Ctrl('a') => text.move_to(text.line_start()),
        Key::End | Key::Ctrl('e') => text.move_to(text.line_end()),
        Key::Ctrl('w') => text.erase_word(),
        Key::Ctrl('u') => text.erase_to_start(),
        Key::Ctrl('k') => text.erase_to_end(),
        Key::Ctrl('z' | '_') => text.undo(),
        Key::Ctrl('y') => text.redo(),
        _ => {}
    }
}
