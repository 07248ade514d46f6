//! What an undo did with each path, told as it is done. Changes no file.

use crate::session::changes::relocated;

/// What was done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoAction {
    Restored,
    Removed,
    MovedBack,
}

/// Why a file was not taken back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SkipReason {
    /// This one is left alone.
    File(String),
    /// So is this one: something else changed it between the pod's changes, the last time before the record behind `after`.
    Between {
        path: String,
        after: u64,
        within: Option<String>,
    },
    /// Nothing can be recorded, so nothing more is done.
    Journal(String),
}

/// What an undo tells while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoEvent<'a> {
    /// This was done with a path, or would be.
    Did(UndoAction, &'a str),
    /// Why a path is left alone.
    Skipped(&'a str),
    /// A path is left alone because something else changed it between the pod's changes; those behind the record `after`
    /// alone can be taken back.
    SkippedBetween {
        /// The path.
        path: &'a str,
        /// The last record before them.
        after: u64,
        /// The moved directory that it is in, which therefore was not moved back.
        within: Option<&'a str>,
    },
    /// What was just told also undoes what commands changed in the file.
    OfCommandsToo,
}

pub(super) struct Tally<'a> {
    tell: &'a dyn Fn(UndoEvent<'_>),
    pub(super) undone: usize,
    pub(super) left: Vec<String>,
    /// What is gone again, and the topmost directory that was made for it.
    pub(super) gone: Vec<(String, String)>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(tell: &'a dyn Fn(UndoEvent<'_>)) -> Self {
        Self {
            tell,
            undone: 0,
            left: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Tells what was done about a path; none if it stands as it was before.
    pub(super) fn note(
        &mut self,
        path: &str,
        done: Result<Option<UndoAction>, SkipReason>,
    ) -> Result<Option<UndoAction>, String> {
        match done {
            Err(SkipReason::Journal(why)) => return Err(why),
            Err(SkipReason::File(why)) => {
                (self.tell)(UndoEvent::Skipped(&why));
                self.left.push(path.to_owned());
            }
            Err(SkipReason::Between {
                path: at,
                after,
                within,
            }) => {
                (self.tell)(UndoEvent::SkippedBetween {
                    path: &at,
                    after,
                    within: within.as_deref(),
                });
                self.left.push(path.to_owned());
            }
            Ok(None) => {}
            Ok(Some(action)) => {
                (self.tell)(UndoEvent::Did(action, path));
                self.undone += 1;
                return Ok(Some(action));
            }
        }
        Ok(None)
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
