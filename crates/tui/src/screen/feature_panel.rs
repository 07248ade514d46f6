//! The panel of the features: what each adds and may do, and what a person can change about one of them. Nothing changes
//! before what it changes was shown and confirmed.

use super::exchange::{FeatureChange, FeatureEntry, FeatureList, Intent, Key};
use crate::line::Line;
use crate::style::Tone;
use std::ops::Range;

/// What the pod told of its features, and what is chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct FeaturePanel {
    /// None: the pod is asked.
    known: Option<Result<FeatureList, String>>,
    chosen: Option<String>,
    asks: Option<Asked>,
}

/// A change that is to be confirmed.
#[derive(Clone, Debug)]
struct Asked {
    id: String,
    change: FeatureChange,
    /// What it changes, or why it cannot be made; none while that is looked up.
    text: Option<Result<String, String>>,
    is_seen: bool,
}

impl FeaturePanel {
    pub(super) fn know(&mut self, features: Result<FeatureList, String>) {
        self.known = Some(features);
    }

    /// What a change would do is known.
    pub(super) fn preview(
        &mut self,
        id: &str,
        change: FeatureChange,
        text: Result<String, String>,
    ) {
        if let Some(asked) = self
            .asks
            .as_mut()
            .filter(|asked| asked.id == id && asked.change == change)
        {
            (asked.text, asked.is_seen) = (Some(text), false);
        }
    }

    /// Several keys came at once: nobody has read a question.
    pub(super) fn not_seen(&mut self) {
        if let Some(asked) = &mut self.asks {
            asked.is_seen = false;
        }
    }

    /// The frame shows the end of what would change, or not yet.
    pub(super) fn seen_to_the_end(&mut self, is_seen: bool) {
        if let Some(asked) = &mut self.asks {
            asked.is_seen |= is_seen;
        }
    }

    fn entries(&self) -> &[FeatureEntry] {
        match &self.known {
            Some(Ok(known)) => &known.entries,
            _ => &[],
        }
    }

    /// What a key does; none if it is for something else.
    pub(super) fn key(&mut self, key: Key) -> Option<Vec<Intent>> {
        let at = self
            .chosen
            .as_ref()
            .and_then(|chosen| self.entries().iter().position(|entry| entry.id == *chosen));
        let last = self.entries().len().checked_sub(1);
        match (key, &self.asks, at) {
            (
                Key::Char('y'),
                Some(Asked {
                    text: Some(Ok(_)),
                    is_seen: true,
                    ..
                }),
                _,
            ) => {
                let asked = self.asks.take();
                return Some(
                    asked
                        .into_iter()
                        .map(|Asked { id, change, .. }| Intent::ChangeFeature { id, change })
                        .collect(),
                );
            }
            (Key::Char('y'), Some(_), _) => {}
            (Key::Char('n') | Key::Esc, Some(_), _) => self.asks = None,
            (Key::Up, _, _) if last.is_some() => {
                self.choose(at.map_or(last, |at| Some(at.saturating_sub(1))))
            }
            (Key::Down, _, _) if last.is_some() => {
                self.choose(at.map_or(Some(0), |at| last.map(|last| last.min(at + 1))))
            }
            (Key::Esc, None, Some(_)) => self.chosen = None,
            (Key::Char(letter), None, Some(at)) => {
                let entry = self.entries().get(at)?;
                let change = entry
                    .changes
                    .iter()
                    .copied()
                    .find(|change| letter_of(*change) == letter)?;
                let id = entry.id.clone();
                self.asks = Some(Asked {
                    id: id.clone(),
                    change,
                    text: None,
                    is_seen: false,
                });
                return Some(vec![Intent::PreviewFeature { id, change }]);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn choose(&mut self, at: Option<usize>) {
        self.chosen = at
            .and_then(|at| self.entries().get(at))
            .map(|entry| entry.id.clone());
        self.asks = None;
    }

    /// The lines of the panel, and which of them are about the feature that is chosen; `may_change`: this client may.
    pub(super) fn lines(&self, may_change: bool, width: usize) -> (Vec<Line>, Range<usize>) {
        let none = Line::default();
        let dim = |text: &str| Line::of(text, Tone::Dim).wrap(width, &none, &none);
        let known = match &self.known {
            None => return (dim("asking the pod …"), 0..0),
            Some(Err(why)) => return (dim(why), 0..0),
            Some(Ok(known)) => known,
        };
        let chosen = known
            .entries
            .iter()
            .find(|entry| may_change && Some(&entry.id) == self.chosen.as_ref());
        let is_hinted = may_change && chosen.is_none() && !known.entries.is_empty();
        let mut lines = if is_hinted {
            dim("↑ ↓ choose a feature, to change what it may do")
        } else {
            Vec::new()
        };
        let mut seen = 0..0;
        for (at, row) in known.rows.iter().enumerate() {
            let begin = lines.len();
            lines.extend(row.lines(width));
            if let Some(entry) = chosen.filter(|entry| entry.row == at) {
                lines.extend(
                    self.asks
                        .as_ref()
                        .map_or_else(|| offers(entry, width), |asked| question(asked, width)),
                );
                seen = begin..lines.len();
            }
        }
        (lines, seen)
    }
}

fn letter_of(change: FeatureChange) -> char {
    match change {
        FeatureChange::Enable => 'e',
        FeatureChange::Disable => 'd',
        FeatureChange::Grant => 'g',
        FeatureChange::Revoke => 'x',
    }
}

fn word_of(change: FeatureChange) -> &'static str {
    match change {
        FeatureChange::Enable => "enable",
        FeatureChange::Disable => "disable",
        FeatureChange::Grant => "grant",
        FeatureChange::Revoke => "revoke",
    }
}

fn margin() -> Line {
    Line::of("  ", Tone::Plain)
}

/// What can be changed about a feature.
fn offers(entry: &FeatureEntry, width: usize) -> Vec<Line> {
    let keys: Vec<String> = entry
        .changes
        .iter()
        .map(|change| format!("{} {}", letter_of(*change), word_of(*change)))
        .collect();
    let text = if keys.is_empty() {
        "nothing to change from here".to_owned()
    } else {
        keys.join(" · ")
    };
    let line = Line::of("▶ ", Tone::Strong)
        .with(&entry.id, Tone::Strong)
        .with(&format!(": {text}"), Tone::Waiting);
    line.wrap(width, &Line::default(), &margin())
}

/// What the change writes, and whether to make it.
fn question(
    Asked {
        id, change, text, ..
    }: &Asked,
    width: usize,
) -> Vec<Line> {
    let head =
        Line::of("▶ ", Tone::Strong).with(&format!("{} {id}", word_of(*change)), Tone::Strong);
    let mut lines = head.wrap(width, &Line::default(), &margin());
    let (text, tone, keys) = match text {
        None => ("looking up what would change …", Tone::Dim, "n back"),
        Some(Ok(text)) => (text.as_str(), Tone::Plain, "y change it · n back"),
        Some(Err(why)) => (why.as_str(), Tone::Refused, "n back"),
    };
    lines.extend(
        text.lines()
            .flat_map(|line| Line::of_output(line, tone).wrap(width, &margin(), &margin())),
    );
    lines.extend(Line::of(keys, Tone::Waiting).wrap(width, &margin(), &margin()));
    lines
}
