//! Folds a log with lost records: a copy of a damaged log has a `gap` record for each. Does not read files.
//!
//! The content of a gap is unknown: a turn may have begun or ended in it, a call may have its result there, numbers
//! may have increased. So until a recovery has reported the loss, a record that does not fit the state is accepted
//! and the state is adjusted to it. A call that was open at the gap stays open. When the next item of another kind
//! shows that its result is lost, it gets a result that says so, at the place where a model expects it.

use super::calls::OpenCall;
use super::fold::{IllegalRecord, SessionState};
use crate::record::{
    ApprovalRequested, ApprovalResolved, Gap, InputId, InputQueued, NotificationQueued, Record,
    Recovery, Request, SystemItem,
};
use llm_worker::effect::Outcome;
use llm_worker::{CallId, Item, ResultStatus, ToolOutcome};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The lost records of a session, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostRecords {
    pub first: u64,
    pub last: u64,
    pub records: u64,
    /// The highest input accepted before the gap: a turn may have taken queued inputs in the gap.
    pub inputs: u64,
}

impl LostRecords {
    fn and(before: Option<Self>, gap: &Gap, inputs: u64) -> Self {
        let Gap {
            first,
            last,
            reason: _,
        } = gap;
        before.map_or(
            Self {
                first: *first,
                last: *last,
                records: 1,
                inputs,
            },
            |before| Self {
                first: before.first.min(*first),
                last: before.last.max(*last),
                records: before.records.saturating_add(1),
                inputs,
            },
        )
    }
}

impl fmt::Display for LostRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.records {
            1 => write!(f, "record {} is lost", self.first),
            all if all == self.last - self.first + 1 => {
                write!(f, "records {} to {} are lost", self.first, self.last)
            }
            some => write!(
                f,
                "{some} of the records {} to {} are lost",
                self.first, self.last
            ),
        }
    }
}

/// Why an approval is void whose answer is lost.
const ANSWER_LOST: &str = "its answer was in damaged records";

/// The result for a call whose result may be lost. A fold makes it, no record has it: with other words, requests of
/// salvaged pods could not be rebuilt.
pub(super) fn lost_result() -> ToolOutcome {
    let words = "lost: what came of it was in damaged records; verify before retrying";
    ToolOutcome {
        status: ResultStatus::Interrupted,
        summary: words.to_owned(),
        content: String::new(),
        attachments: Vec::new(),
    }
}

/// Folds a record after a gap. An error changes nothing.
pub(super) fn bridged(
    state: &mut SessionState,
    record: &Record,
) -> Result<Vec<Item>, IllegalRecord> {
    let mut bridge = Bridge {
        state: state.clone(),
        items: Vec::new(),
    };
    if bridge.fits(record) {
        let item = bridge.state.follow(record)?;
        bridge.items.extend(item);
    }
    *state = bridge.state;
    Ok(bridge.items)
}

impl SessionState {
    pub(super) fn part(&mut self, gap: &Gap) {
        self.lost = Some(LostRecords::and(self.lost, gap, self.inputs));
        self.untold = Some(LostRecords::and(self.untold, gap, self.inputs));
        self.open_calls
            .values_mut()
            .for_each(|call| call.records_lost_after_start = true);
        // A lost record may have changed it.
        self.environment = None;
        // A lost record may have taken them back.
        self.approvals.rules.clear();
    }

    /// Handles a recovery that reported the loss: from here on every record must fit again.
    pub(super) fn recovered(&mut self, recovery: &Recovery) {
        if let Some(lost) = self.lost.filter(|_| recovery.lost > 0) {
            self.queued.keep_above(lost.inputs);
            self.lost = None;
        }
    }
}

/// A state that is being adjusted to a record.
struct Bridge {
    state: SessionState,
    items: Vec<Item>,
}

impl Bridge {
    /// Adjusts the state so that this record can follow; returns whether the record must still be folded.
    fn fits(&mut self, record: &Record) -> bool {
        match record {
            Record::SurfaceSet(set) => {
                below(&mut self.state.surface_generation, set.surface.generation)
            }
            Record::InputQueued(queued) => below(&mut self.state.inputs, queued.input),
            Record::InputConsumed(consumed) => {
                self.within_turn();
                self.close_calls_with_lost_results();
                raise(&mut self.state.inputs, consumed.input);
                if self.state.queued.get(consumed.input).is_none() {
                    let text = format!("[input {}: its text is lost]", consumed.input);
                    self.state.queued.push(&InputQueued {
                        input: consumed.input,
                        text,
                        ..InputQueued::default()
                    });
                }
            }
            Record::TurnStarted(started) if started.turn > self.state.turns => {
                self.turn_began(started.turn)
            }
            Record::SystemItem(said) => self.said(said),
            Record::ItemAdded(added) => self.added(&added.item),
            Record::Request(request) => return self.request(request),
            // What a lost record queued cannot be withdrawn, edited or moved.
            Record::InputWithdrawn(withdrawn) => return self.waits(withdrawn.input),
            Record::InputEdited(edited) => return self.waits(edited.input),
            Record::InputMoved(moved) => {
                return self.waits(moved.input) && moved.before.is_none_or(|next| self.waits(next));
            }
            // Which items it masks is unknown.
            Record::Pruned(_) => return false,
            Record::ToolStarted(started) => return self.started(started.call),
            Record::ApprovalRequested(asked) => return self.asked(asked),
            Record::ApprovalResolved(answer) => return self.answered(answer),
            Record::ToolFinished(finished) if !self.known(finished.call) => {
                self.state.keep(finished.output.as_ref());
                return false;
            }
            Record::TurnFinished(finished) if finished.turn >= self.state.turns => {
                self.close_turn(&finished.outcome);
                raise(&mut self.state.turns, finished.turn);
                self.state.turn_open = true;
            }
            Record::TurnStarted(_)
            | Record::TurnFinished(_)
            | Record::ToolFinished(_)
            | Record::HostStarted(_)
            | Record::HostStopped(_)
            | Record::Recovery(_)
            | Record::Features(_)
            | Record::Response(_)
            | Record::VerdictGiven(_)
            | Record::FileChanged(_)
            | Record::DirectoryMoved(_)
            | Record::FeatureState(_)
            | Record::NotificationQueued(_)
            | Record::FeatureNote(_)
            | Record::BackgroundTask(_)
            | Record::ChildProcess(_)
            | Record::ClientCall(_)
            | Record::Suspended(_)
            | Record::Resumed(_)
            | Record::GrantsUsed(_)
            | Record::ToolRepeated(_)
            | Record::Gap(_)
            | Record::RulesForgotten(_)
            | Record::CompactRequested(_)
            | Record::Pinned(_)
            | Record::Unpinned(_)
            | Record::Other { .. } => {}
        }
        true
    }

    /// The answer to a call that starts may be lost. Whether the call is known.
    fn started(&mut self, id: CallId) -> bool {
        if let Some(call) = self.state.open_calls.get_mut(&id) {
            if let Some(approval) = call.waits() {
                self.state.approvals.withdraw(approval, ANSWER_LOST);
            }
            call.approval = None;
        }
        self.known(id)
    }

    /// Whether the question is about a call that is known.
    fn asked(&mut self, asked: &ApprovalRequested) -> bool {
        below(&mut self.state.approvals.newest, asked.approval);
        let fits = |call: &OpenCall| call.started.is_none() && call.approval.is_none();
        self.state.open_calls.get(&asked.call).is_some_and(fits)
    }

    /// Whether the answer is about a question that is known.
    fn answered(&mut self, answer: &ApprovalResolved) -> bool {
        raise(&mut self.state.approvals.newest, answer.approval);
        self.state.approvals.open.contains_key(&answer.approval)
    }

    fn close_turn(&mut self, outcome: &Outcome) {
        if *outcome == Outcome::Waiting {
            self.close_all_but_waiting();
        } else {
            self.close(|_| true);
        }
    }

    /// The end of the turn before may be lost.
    fn turn_began(&mut self, turn: u64) {
        self.close_all_but_waiting();
        self.state.turn_open = false;
        below(&mut self.state.turns, turn);
    }

    /// The start of the turn is lost; so is its number, which is at least the next.
    fn within_turn(&mut self) {
        if !self.state.turn_open {
            self.state.turn_open = true;
            self.state.turns = self.state.turns.saturating_add(1);
            (
                self.state.last_answer,
                self.state.refused,
                self.state.shortfall,
            ) = (None, None, None);
        }
    }

    /// The content of a request is unknown after a gap; only its number counts.
    fn request(&mut self, request: &Request) -> bool {
        self.within_turn();
        self.close_calls_with_lost_results();
        raise(&mut self.state.requests, request.number);
        raise(&mut self.state.surface_generation, request.generation);
        false
    }

    fn added(&mut self, item: &Item) {
        self.within_turn();
        self.close_calls_with_lost_results();
        match item {
            Item::ToolCall { id, .. } => below(&mut self.state.calls, id.number()),
            Item::Reasoning {
                seal: Some(seal), ..
            } => raise(&mut self.state.surface_generation, seal.generation),
            Item::User { .. }
            | Item::Command { .. }
            | Item::System { .. }
            | Item::Assistant { .. }
            | Item::Reasoning { seal: None, .. }
            | Item::ToolResult { .. } => {}
        }
    }

    /// Whether the input is known and waits.
    fn waits(&mut self, input: InputId) -> bool {
        raise(&mut self.state.inputs, input);
        self.state.queued.get(input).is_some()
    }

    /// Whether the call's own record is known.
    fn known(&mut self, call: CallId) -> bool {
        raise(&mut self.state.calls, call.number());
        self.state.open_calls.contains_key(&call)
    }

    fn said(&mut self, said: &SystemItem) {
        self.within_turn();
        self.close_calls_with_lost_results();
        match said {
            SystemItem::Environment { generation, .. }
            | SystemItem::Recovery { generation, .. }
            | SystemItem::Context { generation, .. } => {
                raise(&mut self.state.surface_generation, *generation);
            }
            SystemItem::Notification {
                number,
                feature,
                registry_generation,
                text,
            } => {
                raise(&mut self.state.notified, *number);
                let number = *number;
                let feature = feature.clone();
                let text = text.clone();
                let registry_generation = *registry_generation;
                let wake = false;
                let key = None;
                let by = None;
                let queued = NotificationQueued {
                    number,
                    feature,
                    registry_generation,
                    text,
                    wake,
                    key,
                    by,
                };
                self.state.notices.insert(number, queued);
            }
        }
    }

    /// Closes calls that were open at a gap: the log has no result of them.
    fn close_calls_with_lost_results(&mut self) {
        self.close(|call| call.records_lost_after_start);
    }

    /// A call that waits for a person stays open across turns.
    fn close_all_but_waiting(&mut self) {
        self.close(|call| call.waits_for().is_none());
    }

    fn close(&mut self, which: impl Fn(&OpenCall) -> bool) {
        let over: Vec<CallId> = self
            .state
            .open_calls
            .iter()
            .filter(|(_, call)| which(call))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            if let Some(approval) = self
                .state
                .open_calls
                .remove(&id)
                .and_then(|call| call.waits())
            {
                self.state.approvals.withdraw(approval, ANSWER_LOST);
            }
            let item = self.state.count(Item::ToolResult {
                id,
                outcome: lost_result(),
            });
            self.items.push(item);
        }
    }
}

/// Limit on numbers: higher than in any real log, with room to count on.
const MOST: u64 = u64::MAX >> 1;

/// Raises a number to `to`, if it is lower.
fn raise(number: &mut u64, to: u64) {
    *number = (*number).max(to.min(MOST));
}

/// Raises a number to `next - 1`, if it is lower: the numbers between were used in lost records.
fn below(number: &mut u64, next: u64) {
    raise(number, next.saturating_sub(1));
}
