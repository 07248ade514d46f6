//! The question of a pod that is held because its context is full, and the keys that answer it. The keys are digits: an
//! input seldom begins with one.

use super::approvals::{KeyResult, TakesAnswer, indented, margins};
use super::cell::texts;
use super::dead_time::DeadTime;
use super::exchange::{Intent, Key};
use super::status::tokens;
use crate::line::Line;
use crate::note::joined;
use crate::style::Tone;
use client::model::is_context_full;
use protocol::method::{Compact, Resume};
use protocol::status::Status;

const KEYS: &str = "1 drop the oldest turns · 2 resume · 3 stop the pod";

/// The question as this person sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct FullContext {
    /// The number of turns at the end of the one that did not fit; none: the context is not full.
    turns: Option<u64>,
    time: DeadTime,
    /// The person chose to answer.
    pub(super) focus: bool,
    /// The newest frame said that a digit answers.
    answerable: bool,
    is_sent: bool,
}

impl FullContext {
    /// Follows the state of the pod.
    pub(super) fn follow(&mut self, status: &Status) {
        let turns = is_context_full(status).then_some(status.turns);
        if self.turns != turns {
            *self = Self {
                turns,
                time: self.time.next(),
                ..Self::default()
            };
        }
    }

    pub(super) fn asks(&self) -> bool {
        self.turns.is_some()
    }

    /// The answer did not arrive, or may not have.
    pub(super) fn failed(&mut self) {
        self.is_sent = false;
    }

    pub(super) fn not_seen(&mut self) {
        self.time.not_seen();
    }

    pub(super) fn typed(&mut self, now_ms: u64) {
        self.time.typed(now_ms);
    }

    /// A key for the question. `free`: there is no text that the key may belong to.
    pub(super) fn key(&mut self, key: Key, free: bool, now_ms: u64) -> KeyResult {
        if !(self.focus || free) {
            return KeyResult::Ignored;
        }
        let intent = match key {
            Key::Esc if self.focus => {
                self.focus = false;
                return KeyResult::Taken(Vec::new());
            }
            Key::Char('1') => Intent::verb(Compact {
                drop_turns: true,
                ..Compact::default()
            }),
            Key::Char('2') => Intent::verb(Resume::default()),
            Key::Char('3') => Intent::Stop,
            Key::Char(_) if self.focus => return KeyResult::Taken(Vec::new()),
            _ => return KeyResult::Ignored,
        };
        if !self.time.is_over(now_ms) {
            // It belongs to what was typed before.
            return if self.focus {
                KeyResult::Taken(Vec::new())
            } else {
                KeyResult::Ignored
            };
        }
        if std::mem::replace(&mut self.is_sent, true) {
            return KeyResult::Told("this answer is on its way".to_owned());
        }
        KeyResult::Taken(vec![intent])
    }

    /// The question in at most `rows` rows; where there is little room, without what is known of the context.
    pub(super) fn lines(
        &mut self,
        status: &Status,
        takes: TakesAnswer,
        (width, rows): (usize, usize),
        now_ms: u64,
    ) -> Vec<Line> {
        let keys = self.keys(takes, width);
        let answerable = self.focus || takes == TakesAnswer::Letter;
        if answerable && !self.answerable {
            // The digits act only from now on.
            self.time.not_seen();
        }
        self.answerable = answerable;
        if rows < 1 + keys.len() {
            self.time.not_seen();
            return vec![
                Line::of("? a question waits: enlarge the terminal", Tone::Waiting).cut(width),
            ];
        }
        self.time.seen(now_ms);
        let mut lines = vec![Line::of("? the context is full", Tone::Waiting).cut(width)];
        let body = body(status, width);
        if 1 + body.len() + keys.len() <= rows {
            lines.extend(body);
        }
        lines.extend(keys);
        lines
    }

    fn keys(&self, takes: TakesAnswer, width: usize) -> Vec<Line> {
        let text = match takes {
            TakesAnswer::NotHere => "this terminal cannot answer now",
            _ if self.is_sent => "the answer is on its way",
            TakesAnswer::BehindF4 { is_writing: true } if !self.focus => {
                "F4, then 1, 2 or 3: what you write stays"
            }
            TakesAnswer::BehindF4 { .. } if !self.focus => "F4, then 1, 2 or 3",
            TakesAnswer::BehindF4 { .. } | TakesAnswer::Letter => KEYS,
        };
        joined(
            text.split(" · "),
            Tone::Strong,
            width.saturating_sub(2).max(1),
        )
        .iter()
        .map(indented)
        .collect()
    }
}

/// How full it is, and what the answers do.
fn body(status: &Status, width: usize) -> Vec<Line> {
    let (margin, deep) = margins();
    let context = status.context.as_ref();
    let size = context
        .and_then(|context| Some((context.used, context.window?)))
        .map_or_else(
            || "The next request does not fit the model's window.".to_owned(),
            |(used, window)| {
                format!(
                    "The next request has about {}, the model's window {}.",
                    tokens(used),
                    tokens(window)
                )
            },
        );
    let drop = "1: the oldest turns leave the next request; the journal keeps them.";
    let resume = "2: the pod tries again, for example after a start with a larger window.";
    [size.as_str(), drop, resume]
        .iter()
        .flat_map(|text| texts(text, Tone::Plain, width, &margin, &deep))
        .collect()
}
