//! What the terminal shows before and after a screen: a hint at its start; at its end the last input, the beginning of
//! the answer to it and the state.

use super::Screen;
use super::cell::CellKind;
use super::status::state;
use crate::line::Line;
use crate::markdown::markdown;
use crate::style::Tone;

/// Lines of the input and of the answer.
const INPUT: usize = 2;
const ANSWER: usize = 6;

impl Screen {
    /// Lines of the program for a person who begins, in the transcript of this screen only.
    pub fn hint(&mut self, text: &str) {
        text.lines()
            .for_each(|line| self.fold.local("· ", Tone::Plain, line.to_owned()));
    }

    /// Lines for the terminal behind the screen.
    #[must_use]
    pub fn farewell(&self, columns: usize) -> Vec<Line> {
        let mut input = None;
        let mut answer = None;
        for cell in self.fold.cells.iter().rev() {
            match &cell.kind {
                CellKind::Answer(text) if answer.is_none() => answer = Some(text),
                CellKind::Input { text, .. } => {
                    input = Some(text);
                    break;
                }
                _ => {}
            }
        }
        let mut lines = Vec::new();
        if let Some(text) = input {
            let sign = Line::of("> ", Tone::Strong);
            let margin = Line::of("  ", Tone::Plain);
            lines.extend(beginning(
                Line::of(text.trim(), Tone::Strong).wrap(columns, &sign, &margin),
                INPUT,
            ));
        }
        if let Some(text) = answer {
            lines.extend(beginning(markdown(text, columns, self.theme), ANSWER));
        }
        let status = self.model.status();
        let (state, tone) = state(status, &self.connection, None, None, 0);
        lines.push(
            Line::of(&status.pod, Tone::Strong)
                .with(" · ", Tone::Dim)
                .with(&state, tone)
                .cut(columns),
        );
        lines
    }
}

fn beginning(mut lines: Vec<Line>, most: usize) -> Vec<Line> {
    if lines.len() > most {
        lines.truncate(most);
        lines.push(Line::of("…", Tone::Dim));
    }
    lines
}
