//! What stays in the context whatever leaves it: pins, and the facts of the pod that the host tells anew in one note once
//! old steps have left. Pure.

use super::fold::SessionState;
use super::queue::QueuedInput;
use super::restore::utc;
use crate::record::{InputId, Pinned, ProposedDecision, ProposedRule};
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
const MAX_REPEATED: usize = 2 * 1024;

/// Changed files that are remembered, the newest.
const MAX_PATHS: usize = 32;

/// Entries of each list in a note; more are counted.
const MAX_LISTED: usize = 16;

/// Bytes of a text in a list of a note.
const MAX_LINE: usize = 200;

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
            return Some(format!("the text has {} bytes; a pin has at most {MAX_PIN}", text.len()));
        }
        let is_full = self.pins.len() >= MAX_PINS || all + text.len() > MAX_PINNED;
        is_full.then(|| format!("there is room for {MAX_PINS} pins with {MAX_PINNED} bytes in all; unpin one first"))
    }

    pub(super) fn taken(&mut self, queued: &QueuedInput, item: u64) {
        let text = clip(&queued.text, MAX_REPEATED).to_owned();
        self.inputs.push(ActiveInput { input: queued.input, item, text, since_us: 0 });
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
        self.changed.drain(..self.changed.len().saturating_sub(MAX_PATHS));
    }
}

impl SessionState {
    /// The note that tells the model the state of the pod. The turn is about to take the waiting inputs `taking`; `budget`
    /// says what is left of its limits.
    #[must_use]
    pub fn context_note(&self, now_us: u64, taking: &[InputId], budget: &str) -> String {
        let mut lines = vec![format!(
            "State of this pod at {}. It replaces earlier such notes; an input that comes later is newer than this.",
            utc(now_us)
        )];
        if !self.standing.pins.is_empty() {
            lines.push("Pinned by a person, always in force:".to_owned());
            lines.extend(self.standing.pins.iter().map(|(pin, text)| format!("[pin {pin}] {text}")));
        }
        lines.extend(self.environment.iter().cloned());
        let taken = self.standing.inputs.iter().filter(|_| self.turn_open);
        lines.extend(taken.map(|it| working(it.input, it.since_us, &it.text)));
        let (taken, waiting): (Vec<_>, Vec<_>) = self.queued.iter().partition(|it| taking.contains(&it.input));
        lines.extend(taken.into_iter().map(|it| working(it.input, now_us, &it.text)));
        listed(&mut lines, "Waiting for later turns", waiting.into_iter().map(|it| format!("input {}", it.input)));
        let open = self.approvals.open.values();
        listed(
            &mut lines,
            "Waiting for a person",
            open.map(|asked| format!("approval {} of {}", asked.approval, asked.call)),
        );
        let tasks = self.open_tasks().map(|((feature, task), _)| format!("{task} of {feature}"));
        listed(&mut lines, "Background tasks that run", tasks);
        let jobs = self.open_jobs().map(|job| format!("job {}: {}", job.job, clip(&job.command, MAX_LINE)));
        listed(&mut lines, "Jobs that run", jobs);
        let rules = self.approvals.rules.iter().map(|allowed| rule(&allowed.rule));
        listed(&mut lines, "Allowed by a person for this pod", rules);
        listed(&mut lines, "Files changed, newest first", self.standing.changed.iter().rev().cloned());
        if !budget.is_empty() {
            lines.push(format!("Budget: {budget}"));
        }
        lines.join("\n")
    }
}

fn working(input: InputId, since_us: u64, text: &str) -> String {
    let begin = clip(text, MAX_REPEATED);
    // A remembered text may end there, too.
    let more = if text.len() >= MAX_REPEATED { "…" } else { "" };
    format!("Working on input {input} since {}: {begin}{more}", utc(since_us))
}

/// A rule that a person allowed, for the model.
fn rule(rule: &ProposedRule) -> String {
    let ProposedRule { tool, path, host, program, subcommand, decision: ProposedDecision::Allow } = rule;
    let about = [path, host, program].into_iter().flatten().map(String::as_str);
    let words = about.chain(subcommand.iter().flatten().map(String::as_str));
    clip(&[tool.as_str()].into_iter().chain(words).collect::<Vec<_>>().join(" "), MAX_LINE).to_owned()
}

/// One line for a list that is not empty.
fn listed(lines: &mut Vec<String>, title: &str, entries: impl Iterator<Item = String>) {
    let mut all: Vec<String> = entries.collect();
    let more = all.len().saturating_sub(MAX_LISTED);
    all.truncate(MAX_LISTED);
    all.extend((more > 0).then(|| format!("{more} more")));
    if !all.is_empty() {
        lines.push(format!("{title}: {}", all.join("; ")));
    }
}

fn clip(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
