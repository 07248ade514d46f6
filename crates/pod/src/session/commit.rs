//! The whole of the trust between the turn machine and the log.
//!
//! A [`Batch`] is made from what the machine wants committed; it becomes records here, in the machine's own
//! order. The log gives it back as `Committed<Batch>` only once it is durable, and only that yields the
//! [`Ack`] which the machine accepts. Nothing else makes an `Ack`.

use crate::record::{
    Decision, Encoder, GateNote, InputConsumed, InputId, ItemAdded, Output, Record, Request, Response, SystemItem,
    ToolFinished, ToolStarted, TransformNote, TurnFinished, TurnStarted, Unanswered, VerdictGiven,
};
use llm_worker::effect::{Fact, Verdict};
use llm_worker::projection::{Dialect, Neutral};
use llm_worker::turn::{Acknowledged, CommitRequest};
use llm_worker::{CallId, Item, Price, Usage};
use session_store::{Committed, EncodeError, Frames, Records};
use std::collections::HashMap;

/// The turn machine, as this pod runs it.
pub type Turn = llm_worker::turn::Turn<Ack>;

/// What a fact alone does not say and its record must: known to the driver, dropped when the turn ends.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The turn's number.
    pub turn: u64,
    /// The inputs the turn consumes, oldest first.
    pub inputs: Vec<InputId>,
    /// The generation in force.
    pub generation: u64,
    /// What the model's tokens cost, where that is known.
    pub price: Option<Price>,
    /// Tokens counted since the last answer, for attempts that brought none.
    pub unanswered: Usage,
    /// What the driver has the machine say and the log does not hold yet, oldest first.
    pub said: Vec<SystemItem>,
    /// For each judged call: the rule that decided, and its start record if it was allowed.
    pub judged: HashMap<CallId, Judgement>,
    /// For each ended call: where its full output is, and how long it ran.
    pub ended: HashMap<CallId, Ended>,
    /// Verdicts about no call, to stand in front of the next commit.
    pub verdicts: Vec<VerdictGiven>,
}

/// How one call was judged.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// The rule or check that decided.
    pub rule: String,
    /// The gate that decided, when one did.
    pub gate: GateNote,
    /// What the gates said that allowed it.
    pub allowed: Vec<VerdictGiven>,
    /// What became of its arguments.
    pub transforms: Vec<TransformNote>,
    /// Written when the call starts.
    pub start: Option<ToolStarted>,
}

/// How one call ended, beyond what the model sees.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// The full output, where it did not fit.
    pub output: Option<Output>,
    /// Milliseconds it ran.
    pub ms: u64,
    /// What became of its result.
    pub transforms: Vec<TransformNote>,
    /// What the person must know of it.
    pub warnings: Vec<String>,
}

/// One atomic batch: a turn's facts as records, and what else belongs to them.
#[derive(Debug, Default)]
pub struct Batch {
    turn: Option<CommitRequest>,
    records: Vec<Record>,
}

impl Batch {
    /// A batch that says nothing of a turn.
    #[must_use]
    pub fn of(records: Vec<Record>) -> Self {
        Self { turn: None, records }
    }

    /// What rides along, then the ledger's verdicts, then the turn's facts in their order.
    #[must_use]
    pub fn of_turn(turn: CommitRequest, ledger: &Ledger, riders: Vec<Record>) -> Self {
        let mut records = riders;
        records.extend(ledger.verdicts.iter().cloned().map(Record::from));
        let (mut said, mut inputs) = (ledger.said.iter().collect::<Vec<_>>(), ledger.inputs.iter());
        for fact in turn.facts() {
            if let Fact::Judged { call, .. } = fact {
                let allowed = ledger.judged.get(call).map_or(&[][..], |judgement| &judgement.allowed);
                records.extend(allowed.iter().cloned().map(Record::from));
            }
            records.extend(record_of(fact, ledger, &mut said, &mut inputs));
        }
        Self { turn: Some(turn), records }
    }

    /// What it will write.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The turn's part, given back by a log that refused it.
    #[must_use]
    pub fn into_turn(self) -> Option<CommitRequest> {
        self.turn
    }
}

impl Records for Batch {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        self.records.iter().try_for_each(|record| record.encode(frames))
    }
}

/// Proof that a turn's commit is durable.
#[derive(Debug)]
pub struct Ack(CommitRequest);

impl Ack {
    /// Takes a durable batch apart: the proof for its turn, and its records to fold.
    #[must_use]
    pub fn of(done: Committed<Batch>) -> (Option<Self>, Vec<Record>) {
        let Batch { turn, records } = done.into_inner();
        (turn.map(Self), records)
    }
}

impl Acknowledged for Ack {
    fn into_request(self) -> CommitRequest {
        self.0
    }
}

/// One fact, one record. A start whose judgement holds no start record, or an input nobody handed in, cannot come
/// about: the driver alone allows calls and hands inputs in. The fold would refuse the log.
fn record_of<'a>(
    fact: &Fact,
    ledger: &Ledger,
    said: &mut Vec<&SystemItem>,
    inputs: &mut impl Iterator<Item = &'a InputId>,
) -> Option<Record> {
    Some(match fact {
        Fact::TurnStarted => TurnStarted { turn: ledger.turn }.into(),
        Fact::Item(Item::User { .. }) => InputConsumed { input: *inputs.next()? }.into(),
        Fact::Item(Item::System { source, text }) => {
            match said.iter().position(|said| said.source() == source && said.text() == text) {
                Some(at) => said.remove(at).clone().into(),
                // The turn's own words, about an answer that it dropped.
                None => SystemItem::Recovery { generation: ledger.generation, text: text.clone() }.into(),
            }
        }
        Fact::Item(
            item @ (Item::Assistant { .. } | Item::Reasoning { .. } | Item::ToolCall { .. } | Item::ToolResult { .. }),
        ) => ItemAdded { item: item.clone() }.into(),
        Fact::Response { stop, usage, shortfall } => {
            let cost = ledger.price.filter(|price| counted(*price, usage)).map(|price| price.of(usage));
            Response { stop: stop.clone(), usage: *usage, cost, shortfall: *shortfall }.into()
        }
        Fact::Judged { call, verdict } => verdict_record(*call, verdict, ledger).into(),
        Fact::Started { call } => ledger.judged.get(call)?.start.clone()?.into(),
        Fact::Finished { call, outcome } => {
            let ended = ledger.ended.get(call).cloned().unwrap_or_default();
            let start = ledger.judged.get(call).and_then(|judged| judged.start.as_ref());
            let feature = start.map(|start| start.feature.clone());
            let Ended { output, ms, transforms, warnings } = ended;
            ToolFinished { call: *call, feature, outcome: outcome.clone(), output, ms, transforms, warnings }.into()
        }
        Fact::Request(r) => Request {
            number: r.number,
            generation: r.generation,
            items: r.items,
            projection: Neutral.version(),
            neutral_digest: r.neutral_digest.clone(),
            encoder: Encoder { id: r.dialect.clone(), version: r.dialect_version },
            body_digest: r.body_digest.clone(),
            bytes: r.body_len,
        }
        .into(),
        Fact::TurnFinished(outcome) => {
            let usage = ledger.unanswered;
            let cost = ledger.price.map(|price| price.of(&usage));
            let unanswered = (usage != Usage::default()).then_some(Unanswered { usage, cost });
            TurnFinished { turn: ledger.turn, outcome: outcome.clone(), unanswered }.into()
        }
    })
}

/// Whether tokens were counted, where counting matters: no answer takes none, so a vendor that says so did not count.
#[must_use]
pub fn counted(price: Price, usage: &Usage) -> bool {
    price == Price::FREE || *usage != Usage::default()
}

fn verdict_record(call: CallId, verdict: &Verdict, ledger: &Ledger) -> VerdictGiven {
    let Judgement { rule, gate, transforms, .. } = ledger.judged.get(&call).cloned().unwrap_or_default();
    let (decision, reason) = match verdict {
        Verdict::Allow => (Decision::Allow, String::new()),
        Verdict::Refuse { reason } => (Decision::Refuse, reason.clone()),
        Verdict::Invalid { problem } => (Decision::Invalid, problem.clone()),
        Verdict::Abort { reason } => (Decision::Abort, reason.clone()),
    };
    VerdictGiven { call: Some(call), decision, rule, reason, gate, transforms }
}
