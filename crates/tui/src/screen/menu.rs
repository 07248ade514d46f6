//! What may complete the text that is being written: a path behind an `@`, or a command behind a slash. Arrows choose one.

use super::state::Screen;
use crate::Line;
use crate::slash::{self, COMMANDS, TypedText};
use crate::style::Tone;
use protocol::method::Role;

/// Only for a pod that tells its features.
const FEATURES: &str = "features";

/// What was chosen, for as long as the text stays the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Menu {
    text: String,
    at: Option<usize>,
}

/// What is offered for a text.
enum Offered<'a> {
    /// In place of all behind this byte.
    Paths(usize, Vec<&'a str>),
    Commands(Vec<OfferedCommand<'a>>),
}

/// A command that may be meant.
struct OfferedCommand<'a> {
    name: &'a str,
    about: &'a str,
    /// What brings it, if it is no part of this program.
    source: Option<&'a str>,
}

impl Offered<'_> {
    fn count(&self) -> usize {
        match self {
            Self::Paths(_, paths) => paths.len(),
            Self::Commands(commands) => commands.len(),
        }
    }
}

impl Screen {
    fn offered(&self) -> Offered<'_> {
        if let Some((start, paths)) = self.paths() {
            return Offered::Paths(start, paths);
        }
        let Some(begun) = self
            .composer
            .marked()
            .strip_prefix('/')
            .filter(|begun| !begun.contains(char::is_whitespace))
        else {
            return Offered::Commands(Vec::new());
        };
        let own = COMMANDS.iter().map(|command| OfferedCommand {
            name: command.name,
            about: command.about,
            source: None,
        });
        let own = own.filter(|command| self.has_features || command.name != FEATURES);
        let foreign = self.foreign.iter().map(|command| OfferedCommand {
            name: &command.name,
            about: &command.about,
            source: Some(&command.source),
        });
        let all = own.chain(foreign);
        Offered::Commands(all.filter(|one| one.name.starts_with(begun)).collect())
    }

    fn chosen(&self) -> Option<usize> {
        self.menu
            .at
            .filter(|_| self.menu.text == self.composer.marked())
    }

    /// Chooses the next one, or the one before; `false` if the key is for something else.
    pub(super) fn choose(&mut self, is_down: bool) -> bool {
        let last = self.offered().count().checked_sub(1);
        let at = match (self.chosen(), last) {
            (_, None) => return false,
            (None, Some(_)) if is_down => Some(0),
            (None, Some(_)) => return false,
            (Some(at), Some(last)) if is_down => Some(at.saturating_add(1).min(last)),
            (Some(at), Some(_)) => at.checked_sub(1),
        };
        self.menu = Menu {
            text: self.composer.marked().to_owned(),
            at,
        };
        true
    }

    /// Chooses nothing any more; `false` if nothing was chosen.
    pub(super) fn unchoose(&mut self) -> bool {
        self.chosen().is_some() && self.menu.at.take().is_some()
    }

    /// Writes out what is chosen, or else the first.
    pub(super) fn complete(&mut self) {
        let at = self.chosen().unwrap_or(0);
        match self.offered() {
            Offered::Paths(start, paths) => {
                let Some(path) = paths.get(at) else { return };
                let has_gap = path.contains(char::is_whitespace);
                let text = if has_gap {
                    format!("@\"{path}\" ")
                } else {
                    format!("@{path} ")
                };
                self.composer.replace_from(start, &text);
            }
            Offered::Commands(commands) => {
                if let Some(command) = commands.get(at) {
                    self.composer.set(&format!("/{} ", command.name));
                }
            }
        }
    }

    /// Writes out what is chosen; `true` if it waits for more text.
    pub(super) fn take_chosen(&mut self) -> bool {
        if self.chosen().is_none() {
            return false;
        }
        let is_path = matches!(self.offered(), Offered::Paths(..));
        self.complete();
        let read = slash::read(&self.composer.text(), &self.foreign);
        is_path || matches!(read, TypedText::Wrong(_))
    }

    pub(super) fn completion_rows(&self, columns: usize, most: usize) -> Vec<Line> {
        if self.search.is_some() || self.role != Role::Driver {
            return Vec::new();
        }
        if self.composer.marked().starts_with(slash::RUN) {
            let about = "Enter runs the rest as a shell command of yours; the model sees it with its next request";
            return vec![
                Line::of("  !", Tone::Strong)
                    .with(&format!(" {about}"), Tone::Dim)
                    .cut(columns),
            ];
        }
        let offered = self.offered();
        let chosen = self.chosen();
        let mark = |at: usize| if chosen == Some(at) { "▸" } else { " " };
        let row = |at: usize| match &offered {
            Offered::Paths(_, paths) => {
                let tone = if chosen.unwrap_or(0) == at {
                    Tone::Strong
                } else {
                    Tone::Dim
                };
                let path = paths.get(at)?;
                Some(Line::of(&format!("{} @{path}", mark(at)), tone))
            }
            Offered::Commands(commands) => {
                let command = commands.get(at)?;
                let name = format!("{} /{:<10}", mark(at), command.name);
                let row = Line::of(&name, Tone::Strong);
                let row = row.with(&format!(" {}", command.about), Tone::Dim);
                Some(match command.source {
                    Some(source) => row.with(&format!(" ({source})"), Tone::Dim),
                    None => row,
                })
            }
        };
        let count = offered.count();
        let has_unknown = matches!(offered, Offered::Paths(..)) && self.files.is_cut();
        let is_cut = (count > most || has_unknown) && most > 1;
        let room = if is_cut { most - 1 } else { most };
        let first = chosen.map_or(0, |at| (at + 1).saturating_sub(room));
        let mut lines: Vec<Line> = (first..first + room).filter_map(row).collect();
        if is_cut {
            let more = match (count.saturating_sub(room), has_unknown) {
                (more, false) => format!("  … {more} more"),
                (0, true) => "  … and files that were not listed: there are too many".to_owned(),
                (more, true) => {
                    format!("  … {more} more, and files that were not listed: there are too many")
                }
            };
            lines.push(Line::of(&more, Tone::Dim));
        }
        lines.into_iter().map(|line| line.cut(columns)).collect()
    }
}
