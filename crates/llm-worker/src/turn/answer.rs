//! Collecting an answer from stream events, within limits. It is used only once its stop arrived.

use super::phase::{CallState, Judging, Proposed};
use super::{Payload, TurnLimits};
use crate::ErrorKind;
use crate::effect::{Delta, Fact, Outcome, short};
use crate::item::{CallId, Item, ProviderSignature, SealedReasoning};
use crate::model::{ModelError, ModelEvent, Shortfall, StopReason, Usage};
use crate::projection::Surface;
use crate::sendable::{sendable_arguments, sendable_name, sendable_text};

#[derive(Default)]
pub(super) struct Answer {
    /// In the order in which they started.
    parts: Vec<Part>,
    /// Bytes of text, reasoning and seals.
    bytes: usize,
    calls: Vec<Draft>,
    /// Bytes of their names and arguments.
    call_bytes: usize,
    sealed: bool,
    usage: Usage,
    shortfall: Option<Shortfall>,
    /// Tokens of the attempts that failed.
    voided: Usage,
}

enum Part {
    Text(String),
    Reasoning(String, Option<ProviderSignature>),
    /// The next of the calls.
    Call,
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
    /// Adds one event. On an error the answer is void: it exceeds a limit, or its events contradict each other.
    pub(super) fn take(
        &mut self,
        event: ModelEvent,
        limits: &TurnLimits,
    ) -> Result<Taken, ModelError> {
        let delta = match event {
            ModelEvent::Text(more) => {
                self.make_room(more.len(), limits)?;
                match self.parts.last_mut() {
                    Some(Part::Text(text)) => text.push_str(&more),
                    Some(Part::Reasoning(..) | Part::Call) | None => {
                        self.parts.push(Part::Text(more.clone()))
                    }
                }
                Some(Delta::Text { text: more })
            }
            ModelEvent::Reasoning(more) => {
                self.make_room(more.len(), limits)?;
                match self.parts.last_mut() {
                    Some(Part::Reasoning(text, None)) => text.push_str(&more),
                    Some(Part::Reasoning(_, Some(_)) | Part::Text(_) | Part::Call) | None => {
                        self.parts.push(Part::Reasoning(more.clone(), None));
                    }
                }
                Some(Delta::Reasoning { text: more })
            }
            ModelEvent::Sealed(signature) => {
                self.seal(signature, limits)?;
                None
            }
            ModelEvent::CallStarted { index, name } => {
                self.start_call(index, name.clone(), limits)?;
                let index = index as u64;
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
            ModelEvent::Shortfall(shortfall) => {
                self.shortfall = Some(shortfall);
                None
            }
            ModelEvent::Notice(_) => None,
            ModelEvent::Retrying {
                attempt,
                delay,
                why,
            } => {
                *self = Self {
                    voided: self.voided.plus(self.usage),
                    ..Self::default()
                };
                Some(Delta::Retrying {
                    attempt,
                    delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    why,
                })
            }
            ModelEvent::Stop(stop) => return Ok(Taken::Whole(bounded(stop))),
        };
        if self.sealed && self.parts.len() > limits.parts {
            return Err(overflow(format!(
                "the answer has more than {} parts",
                limits.parts
            )));
        }
        Ok(Taken::More(delta))
    }

    /// Starts an answer after failed attempts that used these tokens.
    pub(super) fn after(voided: Usage) -> Self {
        Self {
            voided,
            ..Self::default()
        }
    }

    /// Tokens used so far, with the attempts before it.
    pub(super) fn spent(&self) -> Usage {
        self.voided.plus(self.usage)
    }

    fn make_room(&mut self, more: usize, limits: &TurnLimits) -> Result<(), ModelError> {
        if self.bytes + more > limits.text_bytes {
            return Err(overflow(format!(
                "the answer is longer than {} bytes",
                limits.text_bytes
            )));
        }
        self.bytes += more;
        Ok(())
    }

    fn seal(
        &mut self,
        signature: ProviderSignature,
        limits: &TurnLimits,
    ) -> Result<(), ModelError> {
        // Counts one byte more than the signature has, so that empty ones are bounded, too.
        self.make_room(signature.kind.len() + signature.data.len() + 1, limits)?;
        self.sealed = true;
        match self.parts.last_mut() {
            Some(Part::Reasoning(_, seal @ None)) => *seal = Some(signature),
            Some(Part::Reasoning(_, Some(_)) | Part::Text(_) | Part::Call) | None => {
                self.parts
                    .push(Part::Reasoning(String::new(), Some(signature)));
            }
        }
        Ok(())
    }

    fn start_call(
        &mut self,
        index: usize,
        name: String,
        limits: &TurnLimits,
    ) -> Result<(), ModelError> {
        if index != self.calls.len() {
            return Err(contradiction(format!(
                "call {index} began where call {} was expected",
                self.calls.len()
            )));
        }
        if self.calls.len() >= limits.calls {
            return Err(overflow(format!(
                "the answer has more than {} tool calls",
                limits.calls
            )));
        }
        if name.len() > limits.argument_bytes {
            return Err(too_long(index, limits));
        }
        self.make_room_for_calls(name.len(), limits)?;
        self.calls.push(Draft {
            name,
            arguments: String::new(),
        });
        self.parts.push(Part::Call);
        Ok(())
    }

    fn extend_call(
        &mut self,
        index: usize,
        fragment: &str,
        limits: &TurnLimits,
    ) -> Result<(), ModelError> {
        let Some(call) = self.calls.get(index) else {
            return Err(contradiction(format!(
                "arguments arrived for call {index}, which did not begin"
            )));
        };
        if call.name.len() + call.arguments.len() + fragment.len() > limits.argument_bytes {
            return Err(too_long(index, limits));
        }
        self.make_room_for_calls(fragment.len(), limits)?;
        if let Some(call) = self.calls.get_mut(index) {
            call.arguments.push_str(fragment);
        }
        Ok(())
    }

    fn make_room_for_calls(&mut self, more: usize, limits: &TurnLimits) -> Result<(), ModelError> {
        self.call_bytes += more;
        if self.call_bytes > limits.all_argument_bytes {
            let most = limits.all_argument_bytes;
            return Err(overflow(format!(
                "the calls of the answer are together longer than {most} bytes"
            )));
        }
        Ok(())
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The outcome of a turn that ends with this answer.
    pub(super) fn outcome(&self, stop: &StopReason) -> Outcome {
        let blank = !self
            .parts
            .iter()
            .any(|part| matches!(part, Part::Text(text) if !blank(text)));
        match stop {
            StopReason::Refusal => Outcome::Refused,
            StopReason::MaxTokens => Outcome::MaxTokens,
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::Paused
            | StopReason::Other(_)
                if blank =>
            {
                Outcome::Empty
            }
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::Paused
            | StopReason::Other(_) => Outcome::Done,
        }
    }

    /// Turns the complete answer to a request of this surface into items. Its calls are numbered from `last` + 1;
    /// `None` if the session has no numbers left.
    pub(super) fn into_judging<P: Payload>(
        self,
        stop: StopReason,
        last: u64,
        surface: &Surface,
    ) -> Option<Judging<P>> {
        let usage = self.spent();
        let parts = if self.sealed {
            self.parts
        } else {
            gathered(self.parts)
        };
        let mut answer = Vec::with_capacity(parts.len() + 1);
        let mut calls = Vec::with_capacity(self.calls.len());
        let mut drafts = (last + 1..).zip(self.calls);
        for part in parts {
            let item = match part {
                Part::Text(text) | Part::Reasoning(text, None) if blank(&text) => continue,
                Part::Text(text) => Item::Assistant {
                    text: sendable_text(text),
                },
                Part::Reasoning(text, signature) => Item::Reasoning {
                    text,
                    seal: signature.map(|signature| sealed(signature, surface)),
                },
                Part::Call => {
                    let (number, Draft { name, arguments }) = drafts.next()?;
                    let id = CallId::new(number)?;
                    let state = CallState::Proposed;
                    let item = called(id, &name, &arguments);
                    calls.push(Proposed {
                        id,
                        name,
                        arguments,
                        state,
                    });
                    item
                }
            };
            answer.push(Fact::Item(item));
        }
        answer.push(Fact::Response {
            stop,
            usage,
            shortfall: self.shortfall,
        });
        Some(Judging { answer, calls })
    }
}

/// A call as the history holds it. What the model wrote is judged as it is.
pub(super) fn called(id: CallId, name: &str, arguments: &str) -> Item {
    let name = sendable_name(name).into_owned();
    let arguments = sendable_arguments(arguments).into_owned();
    Item::ToolCall {
        id,
        name,
        arguments,
    }
}

/// Joins the fragments of reasoning, of text and of each call, in this order: servers that send no seals mix the
/// fragments.
fn gathered(parts: Vec<Part>) -> Vec<Part> {
    let mut thought = String::new();
    let mut said = String::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => said.push_str(&text),
            Part::Reasoning(text, _) => thought.push_str(&text),
            Part::Call => calls.push(Part::Call),
        }
    }
    [Part::Reasoning(thought, None), Part::Text(said)]
        .into_iter()
        .chain(calls)
        .collect()
}

fn sealed(signature: ProviderSignature, surface: &Surface) -> SealedReasoning {
    SealedReasoning {
        model: surface.model.clone(),
        generation: surface.generation,
        signature,
    }
}

/// Cuts a provider's own stop reason to [`crate::effect::MAX_REASON`], because it is recorded.
fn bounded(stop: StopReason) -> StopReason {
    if let StopReason::Other(word) = stop {
        StopReason::Other(short(word))
    } else {
        stop
    }
}

/// Whether a text is only white space; providers do not accept it as content.
fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The system item that tells the model which limit its answer exceeded.
pub(super) fn dropped(why: &str) -> Item {
    let text = format!(
        "Your last answer was dropped, because {why}. None of it was kept, and no call of it was run. Do the work in smaller \
         parts: fewer calls in an answer, long content in several calls that each add a part, shorter text."
    );
    Item::System {
        source: "host".to_owned(),
        text,
    }
}

fn overflow(message: String) -> ModelError {
    let help = "ask for less at once, or split the work into smaller parts".to_owned();
    ModelError {
        kind: ErrorKind::Exhausted,
        message,
        help: Some(help),
    }
}

fn too_long(index: usize, limits: &TurnLimits) -> ModelError {
    overflow(format!(
        "tool call {index} of the answer is longer than {} bytes",
        limits.argument_bytes
    ))
}

fn contradiction(what: String) -> ModelError {
    ModelError {
        kind: ErrorKind::Bug,
        message: format!("the model's events contradict each other: {what}"),
        help: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::MAX_REASON;

    #[test]
    fn a_vendors_own_stop_reason_fits_a_record() {
        let stop = ModelEvent::Stop(StopReason::Other("z".repeat(2 << 20)));
        let Ok(Taken::Whole(StopReason::Other(word))) =
            Answer::default().take(stop, &TurnLimits::steps(1))
        else {
            panic!("a stop")
        };
        assert_eq!(word.len(), MAX_REASON);
    }
}
