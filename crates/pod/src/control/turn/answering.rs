//! The answer that a turn waits for, as gates see it. Does not depend on the turn.

use crate::hook::{GateOutcome, ProposedCall};
use crate::record::TransformNote;
use llm_worker::{CallId, ModelError, ModelEvent};

/// The model's answer so far, and what gates have to say of it.
#[derive(Default)]
pub(super) struct Answering {
    pub(super) text: String,
    pub(super) calls: Vec<ProposedCall>,
    /// The end of the answer, which waits for gates.
    pub(super) stop: Option<ModelEvent>,
    /// The failure that gates see.
    pub(super) error: Option<ModelError>,
    /// How often requests of this turn were sent again.
    pub(super) retries: u32,
    /// The reason of a gate to have a person look.
    pub(super) paused: Option<String>,
}

/// What the turn waits for.
pub(in crate::control) enum Reviewing {
    Answer(GateOutcome),
    Failure(GateOutcome),
    /// Hooks answered about a change of the view.
    View(Box<CompactionAnswer>),
}

/// What hooks say about a change of the view.
pub(in crate::control) struct CompactionAnswer {
    pub(super) gates: GateOutcome,
    pub(super) keep: Vec<CallId>,
    pub(super) transforms: Vec<TransformNote>,
}

impl Answering {
    /// Nothing of the answer counts.
    pub(super) fn drop_answer(&mut self) {
        self.text.clear();
        self.calls.clear();
        (self.stop, self.error) = (None, None);
    }

    /// Keeps a part of the answer; the turn machine bounds its length.
    pub(super) fn take(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text(text) => self.text.push_str(text),
            ModelEvent::CallStarted { name, .. } => {
                self.calls.push(ProposedCall {
                    tool: name.clone(),
                    arguments: String::new(),
                });
            }
            ModelEvent::CallArguments { index, fragment } => {
                if let Some(call) = self.calls.get_mut(*index) {
                    call.arguments.push_str(fragment);
                }
            }
            ModelEvent::Retrying { .. } => self.drop_answer(),
            ModelEvent::Reasoning(_)
            | ModelEvent::Sealed(_)
            | ModelEvent::Usage(_)
            | ModelEvent::Shortfall(_)
            | ModelEvent::Notice(_)
            | ModelEvent::Stop(_) => {}
        }
    }
}
