//! The only path from the turn machine to the log and back. It performs no I/O.
//!
//! A [`Batch`] is made from a commit request of the machine: each fact becomes a record, in the machine's order.
//! The log returns the batch as `Committed<Batch>` once it is durable, and only that yields the [`Ack`] that the
//! machine accepts.

use super::budget::Budget;
use super::call::authorized::Authorized;
use crate::record::{
    ApprovalId, ApprovalRequested, ApprovalResolved, CommandEnd, Encoder, HookName, InputConsumed,
    InputId, ItemAdded, Output, Record, Request, Response, ResultData, Suspended, SystemItem,
    ToolFinished, TransformNote, TurnFinished, TurnStarted, VerdictGiven, View, Who,
};
use crate::session::queue::QueuedInput;
use llm_worker::Item;
use llm_worker::effect::{Fact, Outcome};
use llm_worker::projection::Projection;
use llm_worker::turn::{Acknowledged, CommitRequest, Payload};
use session_store::{Committed, EncodeError, Frames, Records};

/// The payload type of this pod for the turn machine: it fixes the types that the host attaches to facts.
#[derive(Debug)]
pub(crate) struct Journaled;

impl Payload for Journaled {
    type Proof = Ack;
    type Note = Note;
    type AuthorizationRecord = Vec<VerdictGiven>;
    type Question = Box<ApprovalRequested>;
    type Resolution = Box<ApprovalResolved>;
    type Start = Box<Authorized>;
    type Ending = CallEnd;

    fn item(note: &Note) -> Item {
        match note {
            Note::Input { item, .. } => item.clone(),
            Note::System(item) => item.item(),
        }
    }
}

/// The turn machine, as this pod runs it.
pub(crate) type Turn = llm_worker::turn::Turn<Journaled>;

/// An item that the host adds.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// A queued input, with what the model reads; the turn consumes it.
    Input {
        input: InputId,
        item: Item,
    },
    System(SystemItem),
}

impl From<&QueuedInput> for Note {
    fn from(queued: &QueuedInput) -> Self {
        Self::Input {
            input: queued.input,
            item: queued.item(),
        }
    }
}

/// The end of a started call, beyond the result for the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallEnd {
    pub(crate) feature: Option<String>,
    /// The full output, if it did not fit.
    pub(crate) output: Option<Output>,
    pub(crate) ms: u64,
    pub(crate) transforms: Vec<TransformNote>,
    /// Warnings for the person.
    pub(crate) warnings: Vec<String>,
    pub(crate) command: Option<CommandEnd>,
    /// The hook that answered in place of the tool.
    pub(crate) answered_by: Option<HookName>,
    pub(crate) data: Option<ResultData>,
}

impl From<Box<Authorized>> for CallEnd {
    fn from(call: Box<Authorized>) -> Self {
        Self {
            feature: Some(call.record.feature),
            ..Self::default()
        }
    }
}

/// Facts of the running turn for its records.
#[derive(Debug)]
pub(crate) struct TurnInfo {
    pub(crate) number: u64,
    /// The surface in force.
    pub(crate) generation: u64,
    pub(crate) budget: Budget,
    /// The client that cancelled it.
    pub(crate) cancelled_by: Option<Who>,
    /// The view in force.
    pub(crate) view: View,
    /// Gates at its end will be asked.
    pub(crate) end_gates: bool,
    /// What holds the pod behind it, if it ends at a limit.
    pub(crate) used_up: Option<Suspended>,
}

/// One atomic batch: the facts of a turn as records, and records of the host and of features.
#[derive(Debug, Default)]
pub struct Batch {
    turn: Option<CommitRequest<Journaled>>,
    records: Vec<Record>,
}

impl Batch {
    /// A batch without a turn's facts.
    #[must_use]
    pub fn of(records: Vec<Record>) -> Self {
        Self {
            turn: None,
            records,
        }
    }

    /// The piggybacked records, then the turn's facts in their order; `approval` is the next free number.
    pub(crate) fn of_turn(
        request: CommitRequest<Journaled>,
        turn: &TurnInfo,
        mut approval: ApprovalId,
        mut records: Vec<Record>,
    ) -> Self {
        request
            .facts()
            .iter()
            .for_each(|fact| add_record(&mut records, fact, turn, &mut approval));
        Self {
            turn: Some(request),
            records,
        }
    }

    /// The batch without its first records.
    pub(crate) fn behind(mut self, first: usize) -> Self {
        self.records.drain(..first.min(self.records.len()));
        self
    }

    /// The records of the batch.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// The newest result of a call in it.
    pub(crate) fn result(&self) -> Option<&ToolFinished> {
        self.records.iter().rev().find_map(|record| {
            if let Record::ToolFinished(finished) = record {
                Some(finished)
            } else {
                None
            }
        })
    }

    /// The records of a refused batch.
    pub(crate) fn into_records(self) -> Vec<Record> {
        self.records
    }

    /// The turn's part of a refused batch, for another attempt.
    pub(crate) fn into_turn(self) -> Option<CommitRequest<Journaled>> {
        self.turn
    }
}

impl Records for Batch {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        for record in &self.records {
            if let Some((kind, version, _)) = record.row() {
                frames.record(kind, version, record)?;
            }
        }
        Ok(())
    }

    fn format(&self) -> u32 {
        self.records.iter().map(Record::format).max().unwrap_or(1)
    }
}

/// Proof that a turn's commit is durable; only [`Self::of`] creates one, from a committed batch.
#[derive(Debug)]
pub(crate) struct Ack(CommitRequest<Journaled>);

impl Ack {
    /// Splits a durable batch into the proof for its turn and its records to fold.
    pub(crate) fn of(done: Committed<Batch>) -> (Option<Self>, Vec<Record>) {
        let Batch { turn, records } = done.into_inner();
        (turn.map(Self), records)
    }
}

impl Acknowledged<Journaled> for Ack {
    fn into_request(self) -> CommitRequest<Journaled> {
        self.0
    }
}

/// One fact, one record; an authorization has one for each verdict. `approval` is the next free number.
fn add_record(
    records: &mut Vec<Record>,
    fact: &Fact<Journaled>,
    turn: &TurnInfo,
    approval: &mut ApprovalId,
) {
    records.push(match fact {
        Fact::Judged(verdicts) => {
            return records.extend(verdicts.iter().cloned().map(Record::from));
        }
        Fact::TurnStarted => TurnStarted { turn: turn.number }.into(),
        Fact::Note(Note::Input { input, .. }) => InputConsumed { input: *input }.into(),
        Fact::Note(Note::System(item)) => item.clone().into(),
        // The note of the turn about an answer that it dropped.
        Fact::Item(Item::System { text, .. }) => SystemItem::Recovery {
            generation: turn.generation,
            text: text.clone(),
        }
        .into(),
        Fact::Item(
            item @ (Item::User { .. }
            | Item::Command { .. }
            | Item::Assistant { .. }
            | Item::Reasoning { .. }
            | Item::ToolCall { .. }
            | Item::ToolResult { .. }),
        ) => ItemAdded { item: item.clone() }.into(),
        Fact::Response {
            stop,
            usage,
            shortfall,
        } => {
            let cost = turn.budget.cost(usage);
            Response {
                stop: stop.clone(),
                usage: *usage,
                cost,
                shortfall: *shortfall,
            }
            .into()
        }
        Fact::Parked { question, .. } => {
            let requested = ApprovalRequested {
                approval: *approval,
                ..(**question).clone()
            };
            *approval = approval.saturating_add(1);
            requested.into()
        }
        Fact::Resolved(resolved) => (**resolved).clone().into(),
        Fact::Started { start, .. } => start.record.clone().into(),
        Fact::Finished {
            call,
            outcome,
            ending,
        } => {
            let CallEnd {
                feature,
                output,
                ms,
                transforms,
                warnings,
                command,
                answered_by,
                data,
            } = ending.clone().unwrap_or_default();
            let call = *call;
            let outcome = outcome.clone();
            ToolFinished {
                call,
                feature,
                outcome,
                output,
                ms,
                transforms,
                warnings,
                answered_by,
                command,
                data,
            }
            .into()
        }
        Fact::Request(r) => Request {
            number: r.number,
            generation: r.generation,
            items: r.items,
            view: turn.view.named(),
            projection: Projection::VERSION,
            neutral_digest: r.neutral_digest.clone(),
            encoder: Encoder {
                id: r.dialect.clone(),
                version: r.dialect_version,
            },
            body_digest: r.body_digest.clone(),
            bytes: r.body_len,
        }
        .into(),
        Fact::TurnFinished(outcome) => {
            let unanswered = turn.budget.unanswered();
            // The turn may have ended in another way before the cancel.
            let by = turn
                .cancelled_by
                .clone()
                .filter(|_| *outcome == Outcome::Cancelled);
            let end_gates = turn.end_gates && *outcome != Outcome::Waiting;
            records.push(
                TurnFinished {
                    turn: turn.number,
                    outcome: outcome.clone(),
                    unanswered,
                    by,
                    end_gates,
                }
                .into(),
            );
            return records.extend(turn.used_up.clone().map(Record::from));
        }
    });
}
