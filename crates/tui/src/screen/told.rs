//! A panel with what was asked for: a text such as a diff, what a `y` would do, or rows of which one is chosen. Draws nothing
//! itself.

use super::exchange::{Intent, Key, ShownText};
use crate::count::count;
use crate::line::Line;
use crate::style::Tone;
use std::ops::Range;

#[derive(Clone, Debug, Default)]
pub(super) struct ToldPanel {
    /// None: it is being looked up.
    known: Option<Result<ShownText, String>>,
    /// The row that is chosen.
    at: usize,
    /// The frame showed the text to its end.
    is_seen: bool,
}

impl ToldPanel {
    pub(super) fn know(&mut self, text: Result<ShownText, String>) {
        *self = Self {
            known: Some(text),
            ..Self::default()
        };
    }

    /// Several keys came at once: nobody has read what a `y` does.
    pub(super) fn not_seen(&mut self) {
        self.is_seen = false;
    }

    pub(super) fn seen_to_the_end(&mut self, is_seen: bool) {
        self.is_seen |= is_seen && self.known.is_some();
    }

    /// What a key does; none if it is for something else. An inner list that is not empty shuts the panel.
    pub(super) fn key(&mut self, key: Key) -> Option<Vec<Intent>> {
        let Some(Ok(shown)) = &self.known else {
            return None;
        };
        let last = shown.choices.len().checked_sub(1);
        match (key, last) {
            (Key::Char('y'), _) if shown.confirms.is_some() && self.is_seen => {
                return Some(shown.confirms.iter().cloned().collect());
            }
            (Key::Char('y'), _) if shown.confirms.is_some() => {}
            (Key::Enter, Some(_)) => {
                let chosen = shown.choices.get(self.at);
                return Some(chosen.iter().map(|(_, intent)| intent.clone()).collect());
            }
            (Key::Up, Some(_)) => self.at = self.at.saturating_sub(1),
            (Key::Down, Some(last)) => self.at = (self.at + 1).min(last),
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Its lines, and which of them is chosen.
    pub(super) fn lines(&self, width: usize) -> (Vec<Line>, Range<usize>) {
        let none = Line::default();
        let shown = match &self.known {
            None => return (vec![Line::of("looking it up …", Tone::Dim)], 0..0),
            Some(Err(why)) => return (Line::of(why, Tone::Failed).wrap(width, &none, &none), 0..0),
            Some(Ok(shown)) => shown,
        };
        let rest = Line::of("  ", Tone::Plain);
        let tone = |line: &str| match line.as_bytes().first() {
            _ if !shown.is_diff => Tone::Plain,
            Some(b'+') => Tone::Added,
            Some(b'-') => Tone::Removed,
            Some(b' ') => Tone::Plain,
            _ => Tone::Dim,
        };
        let text = shown.text.lines();
        let mut lines: Vec<Line> = text
            .flat_map(|line| Line::of_output(line, tone(line)).chop(width, &none, &rest))
            .collect();
        if shown.more > 0 {
            let more = format!("… {}", count(shown.more, "more line"));
            lines.push(Line::of(&more, Tone::Waiting));
        }
        if shown.confirms.is_some() {
            lines.push(Line::of("y does it · Esc leaves it", Tone::Strong));
        }
        let first = lines.len();
        for (at, (name, _)) in shown.choices.iter().enumerate() {
            let mark = if at == self.at { "▶ " } else { "  " };
            lines.push(
                Line::of(mark, Tone::Strong)
                    .with(name, Tone::Strong)
                    .cut(width),
            );
        }
        match shown.choices.is_empty() {
            true => (lines, 0..0),
            false => (lines, first + self.at..first + self.at + 1),
        }
    }
}
