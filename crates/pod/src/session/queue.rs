//! Accepted inputs that no turn has taken, in the order in which turns will take them. Pure: the fold changes it, and
//! what the actor does next is decided in `control::queue`.

use crate::record::{
    Again, InputEdited, InputId, InputLimits, InputMode, InputMoved, InputQueued, RequestedCall,
    Who, call_item, command_item,
};
use llm_worker::{Attachment, Item};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many keys of accepted inputs, and of notifications, are remembered: another with one of them is not accepted.
pub const MAX_KEYS: usize = 256;

/// An input that no turn has taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuedInput {
    pub input: InputId,
    /// The exact model-visible text, except with `run` and `call`; every status shares it.
    pub text: Arc<str>,
    /// A person's command, as in the record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    pub mode: InputMode,
    /// Limits of its turn; none if the pod's apply.
    pub limits: Option<InputLimits>,
    /// The JSON Schema that the answer has to fit, as text.
    pub output_schema: Option<Arc<str>>,
    /// The gate that had the model go on; its input comes before all others.
    pub again: Option<Again>,
    /// The client that sent it.
    pub by: Option<Who>,
    /// The files beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The call that its turn makes, as in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<RequestedCall>,
}

impl QueuedInput {
    /// What the model reads once a turn took it.
    #[must_use]
    pub fn item(&self) -> Item {
        match (&self.call, self.run) {
            (Some(call), _) => call_item(call),
            (None, true) => command_item(&self.text),
            (None, false) => Item::User {
                text: self.text.to_string(),
                attachments: self.attachments.clone(),
            },
        }
    }

    /// Whether its turn makes one call and asks no model: a person's command, or a call of a client.
    #[must_use]
    pub fn is_call(&self) -> bool {
        self.run || self.call.is_some()
    }
}

/// The newest keys, each with the number that it was accepted with; newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecentKeys<K>(VecDeque<(K, u64)>);

impl<K> RecentKeys<K> {
    /// The number of the newest such key, if it is among the newest [`MAX_KEYS`].
    pub fn number(&self, is: impl Fn(&K) -> bool) -> Option<u64> {
        self.0
            .iter()
            .rev()
            .find(|(key, _)| is(key))
            .map(|(_, number)| *number)
    }

    pub(super) fn push(&mut self, key: K, number: u64) {
        self.0.push_back((key, number));
        self.0.drain(..self.0.len().saturating_sub(MAX_KEYS));
    }
}

/// The inputs that wait, and the keys of the newest accepted ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputQueue {
    waiting: VecDeque<QueuedInput>,
    keys: RecentKeys<String>,
}

impl InputQueue {
    /// How many inputs wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no input waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The inputs, in order.
    pub fn iter(&self) -> impl Iterator<Item = &QueuedInput> {
        self.waiting.iter()
    }

    /// The input with this number, if it waits.
    #[must_use]
    pub fn get(&self, input: InputId) -> Option<&QueuedInput> {
        self.waiting.iter().find(|waiting| waiting.input == input)
    }

    /// The input that was accepted with this key, if it is among the newest [`MAX_KEYS`] with keys.
    #[must_use]
    pub fn accepted(&self, key: &str) -> Option<InputId> {
        self.keys.number(|known| known == key)
    }

    pub(super) fn push(&mut self, queued: &InputQueued) {
        let InputQueued {
            input,
            text,
            run,
            mode,
            limits,
            output_schema,
            key,
            whole: _,
            by,
            again,
            command: _,
            attachments,
            call,
        } = queued.clone();
        let text = text.into();
        let output_schema = output_schema.map(Arc::from);
        self.waiting.push_back(QueuedInput {
            input,
            text,
            run,
            mode,
            limits,
            output_schema,
            again,
            by,
            attachments,
            call,
        });
        if let Some(key) = key {
            self.keys.push(key, input);
        }
    }

    /// Removes an input; none if it does not wait.
    pub(super) fn take(&mut self, input: InputId) -> Option<QueuedInput> {
        let at = self.position(input)?;
        self.waiting.remove(at)
    }

    /// Replaces a text. Returns whether the input waits.
    pub(super) fn edit(&mut self, edited: &InputEdited) -> bool {
        let found = self
            .waiting
            .iter_mut()
            .find(|waiting| waiting.input == edited.input);
        found
            .map(|waiting| waiting.text = edited.text.as_str().into())
            .is_some()
    }

    /// Moves an input. Returns whether it and the one that it goes before wait.
    pub(super) fn reorder(&mut self, moved: &InputMoved) -> bool {
        let Some(from) = self.position(moved.input) else {
            return false;
        };
        if moved.before == Some(moved.input)
            || moved
                .before
                .is_some_and(|before| self.position(before).is_none())
        {
            return false;
        }
        let Some(entry) = self.waiting.remove(from) else {
            return false;
        };
        let to = moved
            .before
            .and_then(|before| self.position(before))
            .unwrap_or(self.waiting.len());
        self.waiting.insert(to, entry);
        true
    }

    /// Keeps only inputs with higher numbers than this one: a turn may have taken the others in lost records.
    pub(super) fn keep_above(&mut self, input: InputId) {
        self.waiting.retain(|waiting| waiting.input > input);
    }

    fn position(&self, input: InputId) -> Option<usize> {
        self.waiting
            .iter()
            .position(|waiting| waiting.input == input)
    }
}
