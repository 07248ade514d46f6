//! What follows from records alone, whatever a status says: calls without a result, the newest answer, crashes.

use protocol::record::{Item, RecordBody, RecordView};
use protocol::status::ApprovalStatus;
use std::collections::VecDeque;

/// Calls without a result that are kept; a pod has fewer.
const MAX_CALLS: usize = 4096;

/// Bytes of the newest answer that are kept; a record has fewer.
const MAX_ANSWER: usize = 4 << 20;

/// A call that has no result yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedCall {
    pub id: String,
    /// The tool, as the model named it.
    pub name: String,
    /// When it began to run, microseconds since 1970; none before.
    pub started_us: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Progress {
    calls: VecDeque<UnfinishedCall>,
    last_answer: Option<String>,
    /// The next answer text continues the last one.
    continues: bool,
    /// The provider paused: the answer to the next request continues this one.
    paused: bool,
    crashes: u32,
}

impl Progress {
    pub(super) fn calls(&self) -> impl Iterator<Item = &UnfinishedCall> {
        self.calls.iter()
    }

    /// Adds the calls that wait for a person, as a status tells them, if their records were not seen.
    pub(super) fn add_waiting(&mut self, approvals: &[ApprovalStatus]) {
        for waiting in approvals.iter().rev() {
            if !self.calls.iter().any(|call| call.id == waiting.call) {
                let id = waiting.call.clone();
                let name = waiting.tool.clone();
                self.calls.push_front(UnfinishedCall {
                    id,
                    name,
                    started_us: None,
                });
            }
        }
    }

    pub(super) fn last_answer(&self) -> Option<&str> {
        self.last_answer.as_deref()
    }

    /// Turns that a crash interrupted, since one ended otherwise or a process stopped in good order.
    pub(super) fn crashes(&self) -> u32 {
        self.crashes
    }

    /// Takes a record; these approvals are open before it.
    pub(super) fn fold(&mut self, record: &RecordView, approvals: &[ApprovalStatus]) {
        match &record.body {
            RecordBody::HostStopped(_) => self.crashes = 0,
            RecordBody::Recovery(recovery) => {
                // A turn that only waits for a person did nothing that could have ended the process.
                let waits =
                    |call: &UnfinishedCall| approvals.iter().any(|open| open.call == call.id);
                let is_waiting = !self.calls.is_empty() && self.calls.iter().all(waits);
                let crashed = recovery.open_turn && !is_waiting;
                self.crashes = self.crashes.saturating_add(u32::from(crashed));
            }
            // Calls that wait for a person are open across turns.
            RecordBody::TurnStarted(_) => self.last_answer = None,
            RecordBody::ItemAdded(added) => self.item(&added.item),
            RecordBody::Request(_) => (self.continues, self.paused) = (self.paused, false),
            RecordBody::Response(response) if response.stop == "paused" => {
                (self.continues, self.paused) = (false, true);
            }
            RecordBody::ToolStarted(started) => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == started.call) {
                    call.started_us = Some(record.time_us);
                }
            }
            RecordBody::ToolFinished(finished) => {
                self.calls.retain(|call| call.id != finished.call)
            }
            RecordBody::TurnFinished(finished) => {
                let outcome = finished.outcome.outcome.as_str();
                if outcome != "waiting" {
                    self.calls.clear();
                }
                if !matches!(outcome, "interrupted" | "waiting") {
                    self.crashes = 0;
                }
            }
            _ => {}
        }
    }

    fn item(&mut self, item: &Item) {
        match (item.r#type.as_str(), &item.text, &item.id) {
            ("assistant", Some(text), _) => {
                let before = self.last_answer.take().filter(|_| self.continues);
                let fits = before.filter(|before| before.len() + text.len() < MAX_ANSWER);
                self.last_answer =
                    Some(fits.map_or_else(|| text.clone(), |before| format!("{before}\n\n{text}")));
                (self.continues, self.paused) = (true, false);
            }
            ("tool_call", _, Some(id)) => {
                let name = item.name.clone().unwrap_or_default();
                self.calls.push_back(UnfinishedCall {
                    id: id.clone(),
                    name,
                    started_us: None,
                });
                self.calls
                    .drain(..self.calls.len().saturating_sub(MAX_CALLS));
            }
            _ => {}
        }
    }
}
