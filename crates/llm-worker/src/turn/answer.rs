//! An answer while it comes: bounded, and worth nothing before its stop.

use super::Limits;
use super::phase::{Judging, Proposed, Standing};
use crate::effect::{Delta, Fact, Outcome};
use crate::item::{CallId, Item};
use crate::model::{ErrorKind, ModelError, ModelEvent, StopReason, Usage};

#[derive(Default)]
pub(super) struct Answer {
    text: String,
    reasoning: String,
    calls: Vec<Draft>,
    usage: Usage,
}

struct Draft {
    name: String,
    arguments: String,
}

pub(super) enum Taken {
    More(Option<Delta>),
    Whole(StopReason),
}

impl Answer {
    /// Takes one event. On an error the answer is void: it is over a limit, or its events contradict each other.
    pub(super) fn take(&mut self, event: ModelEvent, limits: &Limits) -> Result<Taken, ModelError> {
        let delta = match event {
            ModelEvent::Text(more) => {
                self.make_room(&more, limits)?;
                self.text.push_str(&more);
                Some(Delta::Text(more))
            }
            ModelEvent::Reasoning(more) => {
                self.make_room(&more, limits)?;
                self.reasoning.push_str(&more);
                Some(Delta::Reasoning(more))
            }
            ModelEvent::CallStarted { index, name } => {
                self.start_call(index, name.clone(), limits)?;
                Some(Delta::CallStarted { index, name })
            }
            ModelEvent::CallArguments { index, fragment } => {
                self.extend_call(index, &fragment, limits)?;
                None
            }
            ModelEvent::Usage(usage) => {
                self.usage = usage;
                None
            }
            ModelEvent::Retrying { attempt, delay, why } => {
                *self = Self::default();
                Some(Delta::Retrying { attempt, delay, why })
            }
            ModelEvent::Stop(stop) => return Ok(Taken::Whole(stop)),
        };
        Ok(Taken::More(delta))
    }

    fn make_room(&self, more: &str, limits: &Limits) -> Result<(), ModelError> {
        if self.text.len() + self.reasoning.len() + more.len() > limits.text_bytes {
            return Err(overflow(format!("the answer is longer than {} bytes", limits.text_bytes)));
        }
        Ok(())
    }

    fn start_call(&mut self, index: usize, name: String, limits: &Limits) -> Result<(), ModelError> {
        if index != self.calls.len() {
            return Err(contradiction(format!("call {index} began where call {} was due", self.calls.len())));
        }
        if self.calls.len() >= limits.calls {
            return Err(overflow(format!("the answer has more than {} tool calls", limits.calls)));
        }
        if name.len() > limits.argument_bytes {
            return Err(too_long(index, limits));
        }
        self.calls.push(Draft { name, arguments: String::new() });
        Ok(())
    }

    fn extend_call(&mut self, index: usize, fragment: &str, limits: &Limits) -> Result<(), ModelError> {
        let Some(call) = self.calls.get_mut(index) else {
            return Err(contradiction(format!("arguments came for call {index}, which never began")));
        };
        if call.name.len() + call.arguments.len() + fragment.len() > limits.argument_bytes {
            return Err(too_long(index, limits));
        }
        call.arguments.push_str(fragment);
        Ok(())
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// How a turn ends that ends with this answer.
    pub(super) fn outcome(&self, stop: &StopReason) -> Outcome {
        match stop {
            StopReason::Refusal => Outcome::Refused,
            StopReason::MaxTokens => Outcome::MaxTokens,
            StopReason::EndTurn | StopReason::ToolUse | StopReason::Other(_) if blank(&self.text) => Outcome::Empty,
            StopReason::EndTurn | StopReason::ToolUse | StopReason::Other(_) => Outcome::Done,
        }
    }

    /// The whole answer, its calls numbered from behind `last`. `None` when a session has no numbers left.
    pub(super) fn into_judging(self, stop: StopReason, last: u64) -> Option<Judging> {
        let mut answer = Vec::with_capacity(self.calls.len() + 3);
        if !blank(&self.reasoning) {
            answer.push(Fact::Item(Item::Reasoning { text: self.reasoning }));
        }
        if !blank(&self.text) {
            answer.push(Fact::Item(Item::Assistant { text: self.text }));
        }
        let mut calls = Vec::with_capacity(self.calls.len());
        for (number, Draft { name, arguments }) in (last + 1..).zip(self.calls) {
            let id = CallId::new(number)?;
            let item = Item::ToolCall { id, name: name.clone(), arguments: arguments.clone() };
            answer.push(Fact::Item(item));
            calls.push(Proposed { id, name, arguments, standing: Standing::Proposed });
        }
        answer.push(Fact::Response { stop, usage: self.usage });
        Some(Judging { answer, calls })
    }
}

/// No vendor takes white space for content, and no reader misses it.
fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn overflow(message: String) -> ModelError {
    let help = "ask for less at once, or for the work in smaller parts".to_owned();
    ModelError { kind: ErrorKind::Exhausted, message, help: Some(help) }
}

fn too_long(index: usize, limits: &Limits) -> ModelError {
    overflow(format!("tool call {index} of the answer is longer than {} bytes", limits.argument_bytes))
}

fn contradiction(what: String) -> ModelError {
    ModelError {
        kind: ErrorKind::Bug,
        message: format!("the model's events contradict each other: {what}"),
        help: None,
    }
}
