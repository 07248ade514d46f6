//! What goes on and is in no record yet: the answer under way, and what a silent model is waited for.

use crate::finished::finished;
use crate::line::Line;
use crate::markdown::markdown;
use crate::style::{Theme, Tone};
use crate::transcript::{model_does, retrying};
use client::model::LiveAnswer;
use std::rc::Rc;
use std::time::Duration;

/// A model that answers sooner is not worth a line.
const WAIT_SHOWN_MS: u64 = 2000;

/// Bytes of an unfinished block that are made into lines at once; a longer one is shown by its end.
const MAX_BLOCK: usize = 32 << 10;

/// The finished blocks of the answer under way, as lines, and how much of its text they are.
#[derive(Default)]
pub(super) struct LiveLines {
    request: u64,
    width: usize,
    theme: Theme,
    done: usize,
    lines: Rc<Vec<Line>>,
}

impl LiveLines {
    /// What is not in records: blocks that do not change any more, and what does. Each begins with an empty line.
    /// `asked_us`: when the request was sent that is not answered.
    pub(super) fn blocks(
        &mut self,
        answer: Option<&LiveAnswer>,
        model: &str,
        asked_us: Option<u64>,
        (width, theme): (usize, Theme),
        now_ms: u64,
    ) -> [Rc<Vec<Line>>; 2] {
        let mut rest = match answer {
            Some(answer) => self.answer(answer, width, theme),
            None => {
                *self = Self::default();
                Vec::new()
            }
        };
        if self.lines.is_empty() && rest.is_empty() {
            rest.extend(waiting(answer, model, asked_us, width, now_ms));
        }
        if !rest.is_empty() {
            rest.insert(0, Line::default());
        }
        [Rc::clone(&self.lines), Rc::new(rest)]
    }

    fn answer(&mut self, answer: &LiveAnswer, width: usize, theme: Theme) -> Vec<Line> {
        let is_same = (self.request, self.width, self.theme) == (answer.request, width, theme);
        // The beginning of a long text is dropped by the model.
        if !is_same || answer.text.len() < self.done || !answer.text.is_char_boundary(self.done) {
            *self = Self {
                request: answer.request,
                width,
                theme,
                ..Self::default()
            };
        }
        let pending = answer.text.get(self.done..).unwrap_or_default();
        let end = if pending.len() > MAX_BLOCK {
            pending.len()
        } else {
            finished(pending)
        };
        if end > 0 {
            let more = markdown(pending.get(..end).unwrap_or_default(), width, theme);
            if !more.is_empty() {
                Rc::make_mut(&mut self.lines).extend(std::iter::once(Line::default()).chain(more));
            }
            self.done += end;
        }
        let mut lines = markdown(
            answer.text.get(self.done..).unwrap_or_default(),
            width,
            theme,
        );
        if answer.incomplete {
            lines.push(
                Line::of(
                    "… parts of this answer are shown when it is complete",
                    Tone::Dim,
                )
                .cut(width),
            );
        }
        if let Some(retry) = &answer.retry {
            let text = format!("! {}", retrying(&retry.why, retry.attempt, retry.delay_ms));
            lines.extend(Line::of(&text, Tone::Refused).wrap(
                width,
                &Line::default(),
                &Line::of("  ", Tone::Plain),
            ));
        }
        lines
    }
}

/// What the model does that is not seen, and for how long.
fn waiting(
    answer: Option<&LiveAnswer>,
    model: &str,
    asked_us: Option<u64>,
    width: usize,
    now_ms: u64,
) -> Option<Line> {
    let asked_ms = asked_us? / 1000;
    let age = now_ms.saturating_sub(asked_ms);
    if age < WAIT_SHOWN_MS {
        return None;
    }
    let call = answer.and_then(|answer| answer.calls.last());
    let thinks = answer.is_some_and(|answer| !answer.reasoning.is_empty());
    let does = model_does(model, call.map(String::as_str), thinks);
    let took = crate::count::duration(Duration::from_secs(age / 1000));
    Some(Line::of(&format!("◦ {does} · {took}"), Tone::Dim).cut(width))
}
