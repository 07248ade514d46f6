//! A pod between turns, and everything a turn works with.

use super::authorize::Permission;
use super::commit::{Ack, Batch};
use super::gates;
use super::pipeline::Pipeline;
use super::turn::Running;
use crate::feature::FeatureRegistry;
use crate::foreign::{Callbacks, MAX_STUCK};
use crate::hook::{HookPoint, TurnEndView};
use crate::mailbox::events::{Event, Outbox};
use crate::mailbox::pending::{Around, Desk, Riders, settle};
use crate::mailbox::requests::{Mail, Method};
use crate::record::{Record, SystemItem};
use crate::session::checkpoint::{Draft, VERSION};
use crate::session::fold::{Illegal, State};
use llm_worker::effect::Outcome;
use llm_worker::history::History;
use llm_worker::{CallId, Cost, ErrorKind, Model, Shortfall, Usage};
use session_store::{Blobs, Committed, Journal, Refusal, Refused};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long the disk is given before a refused commit is tried once more.
pub const DISK_PAUSE: Duration = Duration::from_secs(1);

/// How many times a refused commit is tried again before the run gives up.
pub const DISK_RETRIES: u32 = 1;

/// What one turn may use, from configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests in one turn.
    pub max_steps: u32,
    /// Calls that run at once; the others wait their turn.
    pub tool_concurrency: usize,
    /// What one turn may cost: once that much is spent, no further request is sent.
    pub max_cost: Option<Cost>,
}

/// A session open for writing, and the names of things that tests may wait or die at.
pub struct Store {
    /// Where to append.
    pub journal: Journal,
    /// Larger payloads.
    pub blobs: Blobs,
    /// The session's id.
    pub session: Arc<str>,
    /// `<session>/<epoch>`: the front of idempotency keys and of `YOI_CALL`.
    pub key: Arc<str>,
    /// Called with a record's kind before it is committed (`commit:KIND`) and after (`KIND`).
    pub probe: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Everything a turn works with; lives as long as the pod.
pub struct Core {
    /// The session.
    pub store: Store,
    /// What the session comes to.
    pub state: State,
    /// What the next checkpoint needs besides.
    pub(crate) draft: Draft,
    /// What features contributed.
    pub registry: Arc<FeatureRegistry>,
    /// What may run.
    pub permission: Arc<Permission>,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Threads for foreign code.
    pub callbacks: Callbacks,
    /// Who watches.
    pub outbox: Outbox,
    /// What a turn may use.
    pub limits: Limits,
    /// What tools and features hand in.
    pub(crate) desk: Desk,
    pub(crate) pipeline: Pipeline,
}

/// A pod between turns.
pub struct Pod {
    /// What it works with.
    pub core: Core,
    /// What its model has seen.
    pub history: History,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnd {
    /// Its outcome, as journaled.
    pub outcome: Outcome,
    /// The last answer text.
    pub answer: Option<Arc<str>>,
    /// What was refused among the calls of its last answer with calls, and why: the model did not work round it.
    pub refused: Option<String>,
    /// Why its answer is not what was asked for, from a model that knows.
    pub shortfall: Option<Shortfall>,
    /// Requests it sent.
    pub steps: u64,
    /// Tokens it used.
    pub usage: Usage,
    /// What they cost, as far as a price was known.
    pub cost: Option<Cost>,
    /// Why a person should look before anything goes on, when a gate at its end says so.
    pub paused: Option<String>,
}

impl TurnEnd {
    /// The end of a turn that never began: a gate refused its input.
    pub(crate) fn refused(reason: String) -> Self {
        let (outcome, usage) = (Outcome::Aborted { reason }, Usage::default());
        Self { outcome, answer: None, refused: None, shortfall: None, steps: 0, usage, cost: None, paused: None }
    }
}

/// Why a pod cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The journal refuses to be written.
    #[error("{0}")]
    Journal(String),
    /// A record is over its bound or does not encode: no disk will ever take it.
    #[error("{0}")]
    Unstorable(String),
    /// Too many callbacks never came back.
    #[error("{MAX_STUCK} tool or feature threads are stuck and were abandoned")]
    Stuck,
    /// What was committed does not fold: a fault in this program.
    #[error("{0}; this is a bug")]
    Fold(#[from] Illegal),
    /// The turn machine refused what it was told: a fault in this program.
    #[error("{0}; this is a bug")]
    Turn(#[from] llm_worker::turn::Illegal),
    /// A task of the host's own died: a fault in this program.
    #[error("{0}; this is a bug")]
    Broken(#[from] tokio::task::JoinError),
}

impl Fatal {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Journal(_) => ErrorKind::Unavailable,
            Self::Stuck => ErrorKind::Exhausted,
            Self::Unstorable(_) => ErrorKind::FixInput,
            Self::Fold(_) | Self::Turn(_) | Self::Broken(_) => ErrorKind::Bug,
        }
    }
}

impl Fatal {
    /// What of a refusal no retry can mend.
    pub(super) fn unstorable(why: &Refusal) -> Option<Self> {
        match why {
            Refusal::TooLarge(_) | Refusal::Encode(_) => Some(Self::Unstorable(why.to_string())),
            Refusal::Disk(_) | Refusal::Full(_) | Refusal::Busy | Refusal::Behind | Refusal::Closed => None,
        }
    }
}

impl Core {
    /// Commits records that belong to no turn, behind what features handed in, and folds them.
    ///
    /// # Errors
    /// The journal refused, or they do not fold.
    pub async fn commit(&mut self, mut records: Vec<Record>) -> Result<(), Fatal> {
        self.collect(&|_| false);
        loop {
            let Riders { records: mut all, tickets } = self.desk.riders();
            let last = self.desk.waiting() == 0;
            if last {
                all.append(&mut records);
            }
            if !all.is_empty() {
                let done = self.commit_all(all).await;
                let why = done.as_ref().copied().map_err(ToString::to_string);
                settle(tickets, why.as_ref().copied().map_err(String::as_str));
                done?;
            }
            if last {
                return Ok(());
            }
        }
    }

    async fn commit_all(&mut self, records: Vec<Record>) -> Result<(), Fatal> {
        let mut batch = Batch::of(records);
        let mut refusals = 0;
        loop {
            self.announce(batch.records());
            let Refused { batch: back, why } = match self.store.journal.append(batch).await {
                Ok(done) => return self.fold(done).map(drop),
                Err(refused) => refused,
            };
            if let Some(unstorable) = Fatal::unstorable(&why) {
                return Err(unstorable);
            }
            let reason = why.to_string();
            refusals += 1;
            self.outbox.show(Event::Suspended { reason: reason.clone() });
            match back {
                Some(back) if refusals <= DISK_RETRIES => batch = back,
                Some(_) | None => return Err(Fatal::Journal(reason)),
            }
            tokio::time::sleep(DISK_PAUSE).await;
        }
    }

    /// Takes everything handed in so far. Answers whether somebody waits for it. `runs` says which calls may still
    /// change files.
    pub(super) fn collect(&mut self, runs: &dyn Fn(CallId) -> bool) -> bool {
        let mut urgent = false;
        while let Some(method) = self.desk.now() {
            urgent |= self.asked(method, runs);
        }
        urgent
    }

    /// Takes one request. Answers whether its record should be written without waiting for another commit.
    pub(super) fn asked(&mut self, method: Method, runs: &dyn Fn(CallId) -> bool) -> bool {
        let Self { desk, registry, state, outbox, .. } = self;
        desk.take(method, &mut Around { registry, state, outbox }, runs)
    }

    /// Waits for `work` outside of a turn, and meanwhile commits what features wait for.
    ///
    /// # Errors
    /// As for [`Self::commit`].
    pub(crate) async fn attend<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Fatal> {
        let mut work = std::pin::pin!(work);
        loop {
            let mail = tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                mail = self.desk.next() => mail,
            };
            let urgent = match mail {
                Mail::Asked(method) => self.asked(method, &|_| false),
                Mail::Wanted => true,
            };
            if self.collect(&|_| false) || urgent {
                self.commit(Vec::new()).await?;
            }
        }
    }

    /// Asks the gates at the end of a turn; answers why to pause, if one says so.
    async fn turn_ended(&mut self, outcome: &Outcome, steps: u64) -> Result<Option<String>, Fatal> {
        let turn = self.state.turns;
        let view = || TurnEndView { turn, outcome: outcome.clone(), steps };
        let (registry, callbacks) = (self.registry.clone(), self.callbacks.clone());
        let passed = self.attend(registry.hooks().decide::<crate::hook::TurnEnd>(&callbacks, view)).await?;
        if passed.ran.is_empty() {
            return Ok(None);
        }
        let verdicts = gates::verdicts(HookPoint::TurnEnd, None, &passed);
        self.commit(verdicts.into_iter().map(Record::from).collect()).await?;
        let paused = gates::refusal(&passed);
        if let Some(reason) = &paused {
            self.outbox.show(Event::warning(reason.clone()));
        }
        Ok(paused)
    }

    pub(super) fn announce(&self, records: &[Record]) {
        records.iter().for_each(|record| (self.store.probe)(&format!("commit:{}", record.kind())));
    }

    /// The other half of every commit: state, then watchers. Nothing else changes the state.
    pub(super) fn fold(&mut self, done: Committed<Batch>) -> Result<Option<Ack>, Fatal> {
        let (first, time, mut checkpoint, last) = (*done.seqs().start(), done.time(), done.seal(), done.mark());
        let (ack, records) = Ack::of(done);
        for (seq, record) in (first..).zip(records) {
            let items = self.state.apply(&record)?;
            self.draft.take(&items, time, matches!(record, Record::ToolStarted(_)));
            (self.store.probe)(record.kind());
            if matches!(record, Record::HostStopped(_)) && self.draft.due(last.seq()) {
                checkpoint = checkpoint.or(Some(last));
            }
            let record = Arc::new(record);
            self.registry.hooks().tell(&self.callbacks, seq, &record);
            self.outbox.show(Event::Record { seq, record });
        }
        if let Some((mark, bytes)) = checkpoint.and_then(|mark| Some((mark, self.draft.bytes(&self.state)?))) {
            self.store.journal.checkpoint(mark, VERSION, bytes);
        }
        Ok(ack)
    }
}

impl Pod {
    /// Takes every queued input through one turn. `notes` go in front of them. `cancel` ends the turn in good order.
    ///
    /// # Errors
    /// The pod cannot go on; what was committed is on disk.
    pub async fn turn(self, notes: Vec<SystemItem>, cancel: &CancellationToken) -> Result<(Self, TurnEnd), Fatal> {
        let Self { mut core, history } = self;
        let (steps, usage, spent) = (core.state.requests, core.state.usage, core.state.cost.unwrap_or_default());
        let mut running = Running::start(&mut core, history, notes);
        match running.drive(&mut core, cancel).await {
            Ok(outcome) => {
                let history = running.finish().ok_or_else(|| Fatal::Journal("the turn did not end".to_owned()))?;
                let paused = core.turn_ended(&outcome, core.state.requests - steps).await?;
                let end = TurnEnd {
                    paused,
                    outcome,
                    answer: core.state.last_answer.clone(),
                    refused: core.state.refused.clone(),
                    shortfall: core.state.shortfall,
                    steps: core.state.requests - steps,
                    usage: core.state.usage.since(usage),
                    cost: core.state.cost.map(|cost| cost.since(spent)),
                };
                Ok((Self { core, history }, end))
            }
            Err(fatal) => {
                running.abandon(&mut core, &fatal).await;
                Err(fatal)
            }
        }
    }
}
