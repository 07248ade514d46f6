//! What `yoi undo` did with each path, told as it is done. Changes no file.

use authority::escape;
use host::exit::{Exit, Failure};
use pod::session::changes::relocated;
use std::path::Path;

/// What helps when the journal cannot be written.
const UNWRITTEN: &str =
    "only the changes listed above were undone; fix the cause, then run the command again";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndoAction {
    /// It stands as it was before.
    Nothing,
    Restored,
    Removed,
    MovedBack,
}

/// Why a file was not taken back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SkipReason {
    /// This one is left alone.
    File(String),
    /// Nothing can be recorded, so nothing more is done.
    Journal(String),
}

pub(super) struct Tally<'a> {
    say: &'a dyn Fn(&str),
    /// Nothing is done: it says what would be.
    preview: bool,
    pub(super) undone: usize,
    pub(super) left: Vec<String>,
    /// What is gone again, and the topmost directory that was made for it.
    pub(super) gone: Vec<(String, String)>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(say: &'a dyn Fn(&str), preview: bool) -> Self {
        Self {
            say,
            preview,
            undone: 0,
            left: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Tells what was done about a path.
    pub(super) fn note(
        &mut self,
        path: &str,
        done: Result<UndoAction, SkipReason>,
    ) -> Result<UndoAction, Failure> {
        let word = match &done {
            Ok(UndoAction::Nothing) | Err(SkipReason::File(_)) => "",
            Ok(UndoAction::Restored) if self.preview => "would restore",
            Ok(UndoAction::Removed) if self.preview => "would remove",
            Ok(UndoAction::MovedBack) if self.preview => "would move back",
            Ok(UndoAction::Restored) => "restored",
            Ok(UndoAction::Removed) => "removed",
            Ok(UndoAction::MovedBack) => "moved back",
            Err(SkipReason::Journal(what)) => {
                return Err(Failure::new(Exit::Journal, what.clone()).help(UNWRITTEN));
            }
        };
        if let Err(SkipReason::File(why)) = &done {
            (self.say)(&format!("skipped: {why}"));
            self.left.push(path.to_owned());
        } else if !word.is_empty() {
            (self.say)(&format!("{word}: {}", escape(Path::new(path))));
            self.undone += 1;
        }
        Ok(done.unwrap_or(UndoAction::Nothing))
    }

    /// Whether it is in a directory that was left alone.
    pub(super) fn holds(&self, path: &str) -> bool {
        self.left
            .iter()
            .any(|dir| relocated(path, dir, "").is_some())
    }

    /// A directory was moved back.
    pub(super) fn moved_back(&mut self, from: &str, to: &str) {
        let relocate = |path: &mut String| {
            *path = relocated(path, from, to).unwrap_or_else(|| std::mem::take(path))
        };
        self.left.iter_mut().for_each(relocate);
        self.gone
            .iter_mut()
            .for_each(|(path, made)| [path, made].into_iter().for_each(relocate));
    }
}
