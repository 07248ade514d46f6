//! What an editor is told of a pod, from its records and the answer under way. Pure: the same records give the same updates,
//! also in another process. An editor cannot take back what it was told, so text of an answer is told once, as it arrives,
//! and what its record adds.

mod answer;

use crate::call::{Call, FileBefore};
use crate::update::{Update, chunk};
use answer::Answer;
use protocol::event::{DeltaEvent, DeltaPart};
use protocol::record::{
    ApprovalRequested, InputQueued, Item, RecordBody, RecordLine, ToolFinished,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Texts of inputs that wait; a pod has fewer.
const MAX_INPUTS: usize = 256;

/// Calls without a result; a pod has fewer.
const MAX_CALLS: usize = 4096;

/// Bytes of a running call's output that are kept, at most twice.
const MAX_OUTPUT: usize = 16 << 10;

/// What was told, as far as later records need it.
pub(crate) struct Transcript {
    /// Of the pod, absolute.
    cwd: PathBuf,
    /// The names of inputs that this editor sent and shows itself.
    own: BTreeSet<String>,
    inputs: BTreeMap<u64, String>,
    calls: BTreeMap<String, Call>,
    outputs: BTreeMap<String, String>,
    open: BTreeMap<u64, ApprovalRequested>,
    answer: Answer,
    /// Calls that changed the model's list of tasks since this was last asked.
    tasks_changed: bool,
}

impl Transcript {
    pub(crate) fn new(cwd: PathBuf) -> Self {
        Self {
            cwd,
            own: BTreeSet::new(),
            inputs: BTreeMap::new(),
            calls: BTreeMap::new(),
            outputs: BTreeMap::new(),
            open: BTreeMap::new(),
            answer: Answer::default(),
            tasks_changed: false,
        }
    }

    /// The editor shows the input of this name itself.
    pub(crate) fn own(&mut self, key: String) {
        self.own.insert(key);
        if self.own.len() > MAX_INPUTS {
            self.own.pop_first();
        }
    }

    /// The questions that wait for a person, by number.
    pub(crate) fn open(&self) -> impl Iterator<Item = &ApprovalRequested> {
        self.open.values()
    }

    /// A call as it stands in a question.
    pub(crate) fn asked(&self, asked: &ApprovalRequested) -> Value {
        let unseen = || Call::of(&asked.tool, &asked.arguments, &self.cwd);
        let call = self.calls.get(&asked.call).cloned();
        call.unwrap_or_else(unseen)
            .asked(&asked.call, &asked.question)
    }

    /// Whether the model's list of tasks may have changed, once.
    pub(crate) fn take_tasks_changed(&mut self) -> bool {
        std::mem::take(&mut self.tasks_changed)
    }

    /// The connection was lost, and with it what was not durable.
    pub(crate) fn missed(&mut self) {
        self.answer.missed();
        self.outputs.clear();
    }

    /// Takes a part of the answer or of an output.
    pub(crate) fn delta(&mut self, delta: &DeltaEvent) -> Vec<Update> {
        let DeltaEvent { request, part, .. } = delta;
        let live = |body| Update { body, seq: None };
        if let DeltaPart::Output { call, text, anew } = part {
            return self
                .printed(call, text, *anew)
                .map(live)
                .into_iter()
                .collect();
        }
        let told = self.answer.part(*request, part);
        told.map(live).into_iter().collect()
    }

    fn printed(&mut self, id: &str, text: &str, anew: bool) -> Option<Value> {
        let call = self.calls.get(id)?;
        let output = self.outputs.entry(id.to_owned()).or_default();
        if anew {
            output.clear();
        }
        output.push_str(text);
        if output.len() > 2 * MAX_OUTPUT {
            let from = output.ceil_char_boundary(output.len() - MAX_OUTPUT);
            output.drain(..from);
        }
        Some(call.printed(id, output))
    }

    /// Takes a record. One that a later program wrote tells nothing.
    /// `before` gives the text of a file before a change, by its digest.
    pub(crate) fn record(
        &mut self,
        line: &RecordLine,
        before: impl FnOnce(&str) -> Option<String>,
    ) -> Vec<Update> {
        let Ok(record) = line.read() else {
            return Vec::new();
        };
        let seq = Some(record.seq);
        let bodies = self.body(record.body, before);
        bodies
            .into_iter()
            .map(|body| Update { body, seq })
            .collect()
    }

    fn body(
        &mut self,
        body: RecordBody,
        before: impl FnOnce(&str) -> Option<String>,
    ) -> Vec<Value> {
        match body {
            RecordBody::HostStarted(host) => self.cwd = PathBuf::from(host.cwd),
            RecordBody::InputQueued(queued) => self.queued(queued),
            RecordBody::InputEdited(edited) => {
                if let Some(text) = self.inputs.get_mut(&edited.input) {
                    *text = edited.text;
                }
            }
            RecordBody::InputWithdrawn(gone) => {
                self.inputs.remove(&gone.input);
            }
            RecordBody::InputConsumed(taken) => {
                let text = self.inputs.remove(&taken.input);
                let id = format!("input-{}", taken.input);
                let said = text.map(|text| chunk("user_message_chunk", &text, &id));
                return said.into_iter().collect();
            }
            RecordBody::Request(request) => self.answer.begin(request.number),
            RecordBody::ItemAdded(added) => return self.item(&added.item),
            RecordBody::ToolStarted(started) => {
                let id = &started.call;
                let mut told = Vec::new();
                // A person's command is called by no model.
                if !self.calls.contains_key(id) {
                    told.extend(self.begin_call(id, &started.name, &started.arguments));
                }
                told.extend(self.calls.get(id).map(|call| call.started(id)));
                return told;
            }
            RecordBody::FileChanged(changed) => {
                let before = || match changed.before {
                    None => FileBefore::Absent,
                    Some(stored) => {
                        before(&stored.digest).map_or(FileBefore::Unknown, FileBefore::Text)
                    }
                };
                let call = changed.call.as_ref().map(|id| (id, self.calls.get_mut(id)));
                if let Some((id, Some(call))) = call {
                    return vec![call.changed(id, &changed.path, before)];
                }
            }
            RecordBody::ToolFinished(finished) => return self.finished(&finished),
            RecordBody::ApprovalRequested(asked) => {
                self.open.insert(asked.approval, asked);
            }
            RecordBody::ApprovalResolved(answer) => {
                self.open.remove(&answer.approval);
            }
            _ => {}
        }
        Vec::new()
    }

    fn queued(&mut self, queued: InputQueued) {
        // What a gate adds to a turn is no word of a person.
        let is_own = |key: &String| self.own.contains(key);
        if queued.again.is_some() || queued.key.as_ref().is_some_and(is_own) {
            return;
        }
        let typed = queued.command.map(|command| command.typed);
        self.inputs
            .insert(queued.input, typed.unwrap_or(queued.text));
        if self.inputs.len() > MAX_INPUTS {
            self.inputs.pop_first();
        }
    }

    fn item(&mut self, item: &Item) -> Vec<Value> {
        let text = item.text.as_deref().unwrap_or_default();
        match (item.r#type.as_str(), &item.id) {
            ("assistant", _) => self.answer.text(text),
            ("reasoning", _) => self.answer.reasoning(text),
            ("tool_call", Some(id)) => {
                self.answer.call();
                let name = item.name.as_deref().unwrap_or_default();
                let arguments = item.arguments.as_deref().unwrap_or_default();
                self.begin_call(id, name, arguments).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn begin_call(&mut self, id: &str, name: &str, arguments: &str) -> Option<Value> {
        let call = Call::of(name, arguments, &self.cwd);
        let begun = call.begun(id);
        self.calls.insert(id.to_owned(), call);
        if self.calls.len() > MAX_CALLS {
            self.calls.pop_first();
        }
        Some(begun)
    }

    fn finished(&mut self, finished: &ToolFinished) -> Vec<Value> {
        let id = &finished.call;
        self.outputs.remove(id);
        let Some(call) = self.calls.remove(id) else {
            return Vec::new();
        };
        self.tasks_changed |= call.changes_tasks();
        let outcome = &finished.outcome;
        let output = outcome.content.as_deref().unwrap_or_default();
        vec![call.finished(id, &outcome.status, &outcome.summary, output)]
    }
}
