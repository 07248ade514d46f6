//! What stays in the context whatever leaves it: pins, and facts of the pod that no other part of the state holds. Pure.

use super::queue::QueuedInput;
use crate::record::{InputId, Pinned};
use authority::text::{Lines, escape_within};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Most pins of a session.
pub const MAX_PINS: usize = 64;

/// Bytes of the text of one pin.
pub const MAX_PIN: usize = 4 * 1024;

/// Bytes of the texts of all pins.
pub const MAX_PINNED: usize = 32 * 1024;

/// Inputs of a turn that are remembered: the first one and the newest.
const MAX_INPUTS: usize = 8;

/// Bytes of an input that a note repeats; the input itself stays in the context whole.
pub(super) const MAX_REPEATED: usize = 2 * 1024;

/// Changed files that are remembered, the newest.
const MAX_PATHS: usize = 32;

/// Facts for the notes of the host that no other part of the state holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandingFacts {
    /// Texts by number.
    pub pins: BTreeMap<u64, String>,
    /// The highest number of a pin.
    pub pin_numbers: u64,
    /// The next request brings a note.
    pub note_due: bool,
    /// What the newest turn works on.
    pub inputs: Vec<ActiveInput>,
    /// Paths of the newest changed files, newest last.
    pub changed: VecDeque<String>,
    /// Paths of the files that a person put back since the newest request, each with whether it is gone; at most as many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub undone: BTreeMap<String, bool>,
}

/// An input that the newest turn took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActiveInput {
    pub input: InputId,
    /// The number of its item.
    pub item: u64,
    /// The beginning of its text.
    pub text: String,
    /// When the turn took it, microseconds.
    pub since_us: u64,
}

impl StandingFacts {
    pub(super) fn pin(&mut self, pinned: &Pinned) -> Result<(), &'static str> {
        if pinned.pin <= self.pin_numbers {
            return Err("its number was given before");
        }
        self.pin_numbers = pinned.pin;
        self.pins.insert(pinned.pin, pinned.text.clone());
        self.note_due = true;
        Ok(())
    }

    pub(super) fn unpin(&mut self, pin: u64) {
        self.note_due |= self.pins.remove(&pin).is_some();
    }

    /// Why this text cannot be pinned, with the next step.
    #[must_use]
    pub fn refusal(&self, text: &str) -> Option<String> {
        let all: usize = self.pins.values().map(String::len).sum();
        if text.trim().is_empty() {
            return Some("there is no text to pin".to_owned());
        }
        if text.len() > MAX_PIN {
            return Some(format!(
                "the text has {} bytes; a pin has at most {MAX_PIN}",
                text.len()
            ));
        }
        let is_full = self.pins.len() >= MAX_PINS || all + text.len() > MAX_PINNED;
        is_full.then(|| {
            format!(
                "there is room for {MAX_PINS} pins with {MAX_PINNED} bytes in all; unpin one first"
            )
        })
    }

    pub(super) fn taken(&mut self, queued: &QueuedInput, item: u64) {
        let text = clip(&queued.text, MAX_REPEATED).to_owned();
        self.inputs.push(ActiveInput {
            input: queued.input,
            item,
            text,
            since_us: 0,
        });
        if self.inputs.len() > MAX_INPUTS {
            self.inputs.remove(1);
        }
    }

    pub(super) fn taken_at(&mut self, time_us: u64) {
        if let Some(newest) = self.inputs.last_mut() {
            newest.since_us = time_us;
        }
    }

    pub(super) fn file_changed(&mut self, path: &str) {
        self.changed.retain(|known| known != path);
        self.changed.push_back(path.to_owned());
        self.changed
            .drain(..self.changed.len().saturating_sub(MAX_PATHS));
    }
}

impl StandingFacts {
    pub(super) fn undone(&mut self, path: &str, gone: bool) {
        if self.undone.len() < MAX_PATHS || self.undone.contains_key(path) {
            self.undone.insert(path.to_owned(), gone);
        }
    }

    /// The note to the model about what a person undid, if anything.
    #[must_use]
    pub fn undo_note(&self) -> Option<String> {
        let named = |(path, gone): (&String, &bool)| {
            format!(
                "{}{}",
                escape_within(path, Lines::One, MAX_REPEATED),
                if *gone { " (removed)" } else { "" }
            )
        };
        let mut files: Vec<String> = self.undone.iter().map(named).collect();
        files.extend((files.len() >= MAX_PATHS).then(|| "and perhaps more".to_owned()));
        (!files.is_empty()).then(|| {
            format!(
                "A person undid your changes of these files; they are as before again: {}",
                files.join("; ")
            )
        })
    }
}

/// The beginning of a text.
pub(super) fn clip(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most))
        .unwrap_or_default()
}
