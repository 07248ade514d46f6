//! The list of all pods: what waits for a person in each, and the way to another one. Draws nothing itself.

use super::exchange::{Key, PodEntry};
use crate::line::Line;
use crate::style::Tone;
use std::ops::Range;

/// Pods that are shown.
const MAX_PODS: usize = 200;

/// Characters by which the list is narrowed.
const MAX_QUERY: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct PodList {
    /// None: they are being listed.
    known: Option<Result<Vec<PodEntry>, String>>,
    /// Names without this are left out.
    query: String,
    /// Among those that are shown.
    at: usize,
}

impl PodList {
    pub(super) fn know(&mut self, pods: Result<Vec<PodEntry>, String>) {
        self.known = Some(pods);
    }

    /// Those that are shown, and how many more there are.
    fn shown(&self) -> (Vec<&PodEntry>, usize) {
        let known = self.known.iter().flatten().flatten();
        let found = || known.clone().filter(|pod| pod.name.contains(&self.query));
        let more = found().count().saturating_sub(MAX_PODS);
        (found().take(MAX_PODS).collect(), more)
    }

    pub(super) fn chosen(&self) -> Option<&PodEntry> {
        self.shown().0.get(self.at).copied()
    }

    pub(super) fn key(&mut self, key: Key) {
        match key {
            Key::Up => self.at = self.at.saturating_sub(1),
            Key::Down => self.at = (self.at + 1).min(self.shown().0.len().saturating_sub(1)),
            Key::Char(c) if self.query.chars().count() < MAX_QUERY => {
                self.query.push(c);
                self.at = 0;
            }
            Key::Backspace => {
                self.query.pop();
                self.at = 0;
            }
            _ => {}
        }
    }

    /// Its lines, and which of them are about the pod that is chosen. `own` is the pod of this screen.
    pub(super) fn lines(&self, own: &str, width: usize) -> (Vec<Line>, Range<usize>) {
        let (shown, more) = self.shown();
        let text = match (&self.known, shown.is_empty()) {
            (None, _) => "listing the pods …".to_owned(),
            (Some(Err(why)), _) => why.clone(),
            (Some(Ok(_)), true) if self.query.is_empty() => {
                "no pod runs, and none waits for you".to_owned()
            }
            (Some(Ok(_)), _) if self.query.is_empty() => {
                "Enter goes there, and starts it first · letters narrow the list".to_owned()
            }
            (Some(Ok(_)), true) => format!("no name has {}", self.query),
            (Some(Ok(_)), false) => format!("with {}", self.query),
        };
        let none = Line::default();
        let mut lines = Line::of(&text, Tone::Dim).wrap(width, &none, &none);
        let mut chosen = 0..0;
        for (at, pod) in shown.into_iter().enumerate() {
            let begin = lines.len();
            let sign = if at == self.at {
                Line::of("▶ ", Tone::Strong)
            } else {
                Line::of("  ", Tone::Plain)
            };
            let tone = if pod.waits { Tone::Waiting } else { Tone::Dim };
            let here = if pod.name == own { " · this one" } else { "" };
            let row = sign
                .with(&pod.name, Tone::Strong)
                .with(" · ", Tone::Dim)
                .with(&pod.state, tone);
            lines.push(row.with(here, Tone::Dim).cut(width));
            let margin = Line::of("    ", Tone::Plain);
            lines.extend(
                pod.details
                    .iter()
                    .flat_map(|text| Line::of(text, Tone::Plain).wrap(width, &margin, &margin)),
            );
            if at == self.at {
                chosen = begin..lines.len();
            }
        }
        if more > 0 {
            let text = format!("  … {more} more: letters narrow the list");
            lines.push(Line::of(&text, Tone::Dim).cut(width));
            // It is seen with the last one.
            if chosen.end + 1 == lines.len() {
                chosen.end += 1;
            }
        }
        (lines, chosen)
    }
}
