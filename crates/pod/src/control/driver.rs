//! The one task that owns a pod's state: it performs what the turn machine asks for, and tells it what came of
//! it.
//!
//! ```text
//!   Turn::poll ──> effects ──> journal · model task · callback threads
//!        ▲                                   │
//!        └── Turn::handle <── one of: committed, refused, model event, judged, call ended
//! ```
//!
//! Only this task appends to the log, and it folds what was committed, in that order. It never runs feature,
//! tool or model code: those answer through channels.

use super::call::{ASKS, Ask, Custody};
use super::callbacks::{Callbacks, Lost, MAX_STUCK};
use super::gates;
use super::judge::{About, Court, Judged, Permission, Ready};
use super::outbox::{Event, Outbox};
use crate::feature::FeatureRegistry;
use crate::hook::{HookPoint, HookRegistry, Passed, PreRequest, RequestView, TurnEndView};
use crate::session::commit::{Ack, Batch, Ended, Ledger, Turn};
use crate::session::fold::{Illegal, State};
use crate::session::record::{Record, Resumed, Suspended};
use llm_worker::effect::{Effect, Gated, Input, Outcome, Stop};
use llm_worker::history::History;
use llm_worker::model::EVENT_QUEUE;
use llm_worker::projection::ModelRequest;
use llm_worker::{
    CallId, ErrorKind, Item, Model, ModelError, ModelEvent, ResultStatus, ToolContext, ToolError, ToolOutcome, Usage,
};
use session_store::{Blobs, Commit, Committed, Journal, Refused};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// How long the disk is given before a refused commit is tried once more.
pub const DISK_PAUSE: Duration = Duration::from_secs(1);

/// How many times a refused commit is tried again before the run gives up.
pub const DISK_RETRIES: u32 = 1;

/// Bytes of one call's raw arguments. A record is at most 1 MiB, and JSON may need six bytes for one.
const MAX_ARGUMENTS: usize = 160 * 1024;

/// Bytes of one answer: above the longest output of any vendor, and text seldom needs escapes.
const MAX_ANSWER: usize = 768 * 1024;

/// What one turn may use, from configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests in one turn.
    pub max_steps: u32,
    /// Calls that run at once; the others wait their turn.
    pub tool_concurrency: usize,
}

/// A session open for writing, and the names of things that tests may wait or die at.
pub struct Store {
    /// Where to append.
    pub journal: Journal,
    /// Larger payloads.
    pub blobs: Blobs,
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
    /// How its last call ended.
    pub last_result: Option<ResultStatus>,
    /// Requests it sent.
    pub steps: u64,
    /// Tokens it used.
    pub usage: Usage,
    /// Why a person should look before anything goes on, when a gate at its end says so.
    pub paused: Option<String>,
}

impl TurnEnd {
    /// The end of a turn that never began: a gate refused its input.
    pub(crate) fn refused(reason: String) -> Self {
        let (outcome, usage) = (Outcome::Aborted { reason }, Usage::default());
        Self { outcome, answer: None, last_result: None, steps: 0, usage, paused: None }
    }
}

/// Why a pod cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The journal refuses to be written.
    #[error("{0}")]
    Journal(String),
    /// Too many callbacks never came back.
    #[error("{MAX_STUCK} tool or feature threads are stuck and were abandoned")]
    Stuck,
    /// What was committed does not fold: a fault in this program.
    #[error("{0}; this is a bug")]
    Fold(#[from] Illegal),
    /// The turn machine refused what it was told: a fault in this program.
    #[error("{0}; this is a bug")]
    Turn(#[from] llm_worker::turn::Illegal),
}

impl Fatal {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Journal(_) => ErrorKind::Unavailable,
            Self::Stuck => ErrorKind::Exhausted,
            Self::Fold(_) | Self::Turn(_) => ErrorKind::Bug,
        }
    }
}

impl Core {
    /// Commits records that belong to no turn, and folds them.
    ///
    /// # Errors
    /// The journal refused, or they do not fold.
    pub async fn commit(&mut self, records: Vec<Record>) -> Result<(), Fatal> {
        let mut batch = Batch::of(records);
        let mut refusals = 0;
        loop {
            self.announce(batch.records());
            let Refused { batch: back, why } = match self.store.journal.append(batch).await {
                Ok(done) => return self.fold(done).map(drop),
                Err(refused) => refused,
            };
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

    /// Asks the gates at the end of a turn; answers why to pause, if one says so.
    async fn turn_ended(&mut self, outcome: &Outcome, steps: u64) -> Result<Option<String>, Fatal> {
        let view = || TurnEndView { turn: self.state.turns, outcome: outcome.clone(), steps };
        let passed = self.registry.hooks().decide::<crate::hook::TurnEnd>(&self.callbacks, view).await;
        if passed.ran.is_empty() {
            return Ok(None);
        }
        let verdicts = gates::verdicts(HookPoint::TurnEnd, None, &passed);
        self.commit(verdicts.into_iter().map(Record::from).collect()).await?;
        let paused = gates::refusal(&passed);
        if let Some(reason) = &paused {
            self.outbox.show(Event::Alert(reason.clone()));
        }
        Ok(paused)
    }

    fn announce(&self, records: &[Record]) {
        records.iter().for_each(|record| (self.store.probe)(&format!("commit:{}", record.kind())));
    }

    /// The other half of every commit: state, then watchers. Nothing else changes the state.
    fn fold(&mut self, done: Committed<Batch>) -> Result<Option<Ack>, Fatal> {
        let first = *done.seqs().start();
        let (ack, records) = Ack::of(done);
        for (seq, record) in (first..).zip(records) {
            self.state.apply(&record)?;
            (self.store.probe)(record.kind());
            let record = Arc::new(record);
            HookRegistry::tell(&self.registry, &self.callbacks, seq, &record);
            self.outbox.show(Event::Record { seq, record });
        }
        Ok(ack)
    }
}

impl Pod {
    /// Takes every queued input through one turn. `notes` go in front of them, each with its topic. `cancel`
    /// ends the turn in good order.
    ///
    /// # Errors
    /// The pod cannot go on; what was committed is on disk.
    pub async fn turn(
        self,
        notes: Vec<(String, String)>,
        cancel: &CancellationToken,
    ) -> Result<(Self, TurnEnd), Fatal> {
        let Self { core, history } = self;
        let (steps, usage) = (core.state.requests, core.state.usage);
        let mut running = Running::start(core, history, notes);
        match running.drive(cancel).await {
            Ok(outcome) => {
                let Running { mut core, turn, .. } = running;
                let history = turn.finish().map_err(|_open| Fatal::Journal("the turn did not end".to_owned()))?;
                let paused = core.turn_ended(&outcome, core.state.requests - steps).await?;
                let end = TurnEnd {
                    paused,
                    outcome,
                    answer: core.state.last_answer.clone(),
                    last_result: core.state.last_result,
                    steps: core.state.requests - steps,
                    usage: since(core.state.usage, usage),
                };
                Ok((Self { core, history }, end))
            }
            Err(fatal) => {
                running.abandon(&fatal).await;
                Err(fatal)
            }
        }
    }
}

fn since(now: Usage, before: Usage) -> Usage {
    Usage { input: now.input - before.input, output: now.output - before.output, cached: now.cached - before.cached }
}

/// One turn under way.
struct Running {
    core: Core,
    turn: Turn,
    ledger: Ledger,
    commits: VecDeque<Flight>,
    stream: Option<Stream>,
    gates: JoinSet<Passed>,
    judges: JoinSet<(CallId, Judged)>,
    turnstile: Arc<tokio::sync::Mutex<()>>,
    calls: Calls,
    refusals: u32,
    retry_at: Option<tokio::time::Instant>,
}

/// A commit under way; they resolve in the order they were appended.
struct Flight {
    commit: Commit<Batch>,
    /// How many of the ledger's verdicts it carries.
    verdicts: usize,
    reply: Option<oneshot::Sender<Result<(), String>>>,
}

/// A model's answer under way.
struct Stream {
    events: mpsc::Receiver<ModelEvent>,
    done: JoinHandle<Result<(), ModelError>>,
    stopped: bool,
}

/// Calls that were allowed: waiting, running, and what they ask for.
struct Calls {
    ready: HashMap<CallId, Ready>,
    waiting: VecDeque<CallId>,
    running: HashMap<CallId, CancellationToken>,
    tasks: JoinSet<(CallId, ToolOutcome, Ended)>,
    ask: mpsc::Sender<Ask>,
    asked: mpsc::Receiver<Ask>,
}

/// What the driver waits for.
enum Happened {
    Committed(Result<Committed<Batch>, Refused<Batch>>),
    Event(ModelEvent),
    StreamEnded(Result<(), ModelError>),
    Gated(Passed),
    Judged(CallId, Box<Judged>),
    Called(CallId, ToolOutcome, Ended),
    Asked(Ask),
    Resume,
    Cancelled,
    Shown,
}

impl Running {
    fn start(core: Core, history: History, notes: Vec<(String, String)>) -> Self {
        let mut ledger = Ledger {
            turn: core.state.turns + 1,
            generation: history.surface().generation,
            inputs: core.state.queued.keys().copied().collect(),
            ..Ledger::default()
        };
        let mut items = Vec::new();
        for (topic, text) in notes {
            ledger.topics.push(topic);
            items.push(Item::System { source: "host".to_owned(), text });
        }
        items.extend(core.state.queued.values().map(|text| Item::User { text: text.clone() }));
        let limits = llm_worker::turn::Limits {
            argument_bytes: MAX_ARGUMENTS,
            text_bytes: MAX_ANSWER,
            ..llm_worker::turn::Limits::steps(core.limits.max_steps)
        };
        let turn = Turn::start(history, items, limits);
        let (ask, asked) = mpsc::channel(ASKS);
        let calls = Calls {
            ready: HashMap::new(),
            waiting: VecDeque::new(),
            running: HashMap::new(),
            tasks: JoinSet::new(),
            ask,
            asked,
        };
        Self {
            core,
            turn,
            ledger,
            commits: VecDeque::new(),
            stream: None,
            gates: JoinSet::new(),
            judges: JoinSet::new(),
            turnstile: Arc::default(),
            calls,
            refusals: 0,
            retry_at: None,
        }
    }

    async fn drive(&mut self, cancel: &CancellationToken) -> Result<Outcome, Fatal> {
        let mut cancelled = false;
        loop {
            while let Some(effect) = self.turn.poll() {
                if let Some(outcome) = self.perform(effect)? {
                    self.settle().await?;
                    return Ok(outcome);
                }
            }
            self.fill();
            if self.core.callbacks.stuck() >= MAX_STUCK {
                return Err(Fatal::Stuck);
            }
            let happened = self.next(cancel, cancelled).await;
            cancelled |= matches!(happened, Happened::Cancelled);
            self.take(happened)?;
        }
    }

    /// Waits for whatever comes first. Every branch is cancel-safe.
    async fn next(&mut self, cancel: &CancellationToken, cancelled: bool) -> Happened {
        let room = !self.core.outbox.is_full();
        let behind = !self.core.outbox.is_empty();
        tokio::select! {
            biased;
            () = cancel.cancelled(), if !cancelled => Happened::Cancelled,
            done = front(&mut self.commits), if !self.commits.is_empty() => {
                Happened::Committed(done)
            }
            Some(Ok(passed)) = self.gates.join_next() => Happened::Gated(passed),
            Some(Ok((id, judged))) = self.judges.join_next() => Happened::Judged(id, Box::new(judged)),
            Some(Ok((id, outcome, ended))) = self.calls.tasks.join_next() => Happened::Called(id, outcome, ended),
            Some(ask) = self.calls.asked.recv() => Happened::Asked(ask),
            heard = listen(&mut self.stream), if self.stream.is_some() && room => heard,
            () = self.core.outbox.progress(), if behind => Happened::Shown,
            () = sleep_until(self.retry_at), if self.turn.suspended() => Happened::Resume,
        }
    }

    fn take(&mut self, happened: Happened) -> Result<(), Fatal> {
        match happened {
            Happened::Shown => {}
            Happened::Cancelled => self.turn.handle(Input::Cancel)?,
            Happened::Resume => self.turn.handle(Input::Resume)?,
            Happened::Event(event) => {
                (self.core.store.probe)("stream");
                self.turn.handle(Input::Model(event))?;
            }
            Happened::StreamEnded(end) => self.stream_ended(end)?,
            Happened::Gated(passed) => {
                self.ledger.verdicts.extend(gates::verdicts(HookPoint::PreRequest, None, &passed));
                let stop = gates::refusal(&passed).map(|reason| Stop::Aborted { reason });
                self.turn.handle(Input::Gated(Gated { add: Vec::new(), stop }))?;
            }
            Happened::Judged(id, judged) => {
                let Judged { verdict, judgement, ready } = *judged;
                self.ledger.judged.insert(id, judgement);
                self.calls.ready.extend(ready.map(|ready| (id, ready)));
                self.turn.handle(Input::Judged(id, verdict))?;
            }
            Happened::Called(id, outcome, ended) => {
                self.calls.running.remove(&id);
                self.ledger.ended.insert(id, ended);
                (self.core.store.probe)("tool:ended");
                self.turn.handle(Input::ToolDone { id, outcome })?;
            }
            Happened::Asked(ask) => self.asked(ask),
            Happened::Committed(done) => self.committed(done)?,
        }
        Ok(())
    }

    /// A call wants a file change recorded. One that was written off has its result and changes nothing more.
    fn asked(&mut self, Ask { change, reply }: Ask) {
        if !change.call.is_some_and(|call| self.calls.running.contains_key(&call)) {
            drop(reply.send(Err("the call was given up; nothing was changed".to_owned())));
            return;
        }
        let records = vec![Record::from(change)];
        self.core.announce(&records);
        let commit = self.core.store.journal.append(Batch::of(records));
        self.commits.push_back(Flight { commit, verdicts: 0, reply: Some(reply) });
    }

    /// The turn's end is durable; what was appended behind it is still folded and shown, and nothing more is asked.
    async fn settle(&mut self) -> Result<(), Fatal> {
        self.calls.asked.close();
        while !self.commits.is_empty() {
            let done = front(&mut self.commits).await;
            self.committed(done)?;
        }
        Ok(())
    }

    fn committed(&mut self, done: Result<Committed<Batch>, Refused<Batch>>) -> Result<(), Fatal> {
        let (reply, verdicts) = self.commits.pop_front().map_or((None, 0), |flight| (flight.reply, flight.verdicts));
        match done {
            Ok(done) => {
                let ack = self.core.fold(done)?;
                self.ledger.verdicts.drain(..verdicts.min(self.ledger.verdicts.len()));
                if let Some(reply) = reply {
                    // The call may have been cancelled meanwhile; its record stands, undo copes with it.
                    drop(reply.send(Ok(())));
                }
                if let Some(ack) = ack {
                    if std::mem::take(&mut self.refusals) > 0 {
                        self.resumed();
                    }
                    self.turn.handle(Input::Committed(ack))?;
                }
                Ok(())
            }
            Err(Refused { batch, why }) => {
                let reason = why.to_string();
                if let Some(reply) = reply {
                    drop(reply.send(Err(reason.clone())));
                }
                // Without its batch the turn's commit can neither be tried again nor given back.
                let Some(batch) = batch else { return Err(Fatal::Journal(reason)) };
                let Some(request) = batch.into_turn() else { return Ok(()) };
                self.turn.handle(Input::Refused(request))?;
                self.refusals += 1;
                self.retry_at = Some(tokio::time::Instant::now() + DISK_PAUSE);
                self.core.outbox.show(Event::Suspended { reason: reason.clone() });
                if self.refusals > DISK_RETRIES { Err(Fatal::Journal(reason)) } else { Ok(()) }
            }
        }
    }

    /// Says in the log that it could not be written for a while.
    fn resumed(&mut self) {
        let commit = self.core.store.journal.append(Batch::of(vec![Resumed {}.into()]));
        self.commits.push_back(Flight { commit, verdicts: 0, reply: None });
    }

    fn stream_ended(&mut self, end: Result<(), ModelError>) -> Result<(), Fatal> {
        let stopped = self.stream.take().is_some_and(|stream| stream.stopped);
        let failed = match end {
            Ok(()) if stopped => return Ok(()),
            Ok(()) => ModelError {
                kind: ErrorKind::Bug,
                message: "the model's answer ended without a stop reason".to_owned(),
                help: None,
            },
            Err(error) => error,
        };
        // After its stop an answer is whole; what the connection does then is no longer of interest.
        if stopped { Ok(()) } else { Ok(self.turn.handle(Input::ModelFailed(failed))?) }
    }

    /// Performs one effect, or starts what will perform it.
    fn perform(&mut self, effect: Effect) -> Result<Option<Outcome>, Fatal> {
        match effect {
            Effect::Gate => self.gate()?,
            Effect::Commit(request) => {
                let batch = Batch::of_turn(request, &self.ledger);
                self.core.announce(batch.records());
                let commit = self.core.store.journal.append(batch);
                self.commits.push_back(Flight { commit, verdicts: self.ledger.verdicts.len(), reply: None });
            }
            Effect::Send(request) => self.send(request),
            Effect::Delta(delta) => self.core.outbox.show(Event::Delta(delta)),
            Effect::Judge(call) => self.judge(call),
            Effect::Run(run) => self.calls.waiting.push_back(run.id()),
            Effect::CancelModel => {
                if let Some(stream) = self.stream.take() {
                    stream.done.abort();
                }
            }
            Effect::CancelTool(id) => self.cancel_call(id)?,
            Effect::Finished(outcome) => return Ok(Some(outcome)),
        }
        Ok(None)
    }

    fn send(&mut self, request: ModelRequest) {
        let (sink, events) = mpsc::channel(EVENT_QUEUE);
        let model = self.core.model.clone();
        let done = tokio::spawn(async move { model.stream(request, sink).await });
        self.stream = Some(Stream { events, done, stopped: false });
    }

    /// Asks the gates before a request; without any, it is cleared at once.
    fn gate(&mut self) -> Result<(), Fatal> {
        let stuck = self.core.callbacks.stuck() >= MAX_STUCK;
        if stuck || !self.core.registry.hooks().any::<PreRequest>("") {
            let stop = stuck.then(|| Stop::Aborted { reason: Fatal::Stuck.to_string() });
            self.turn.handle(Input::Gated(Gated { add: Vec::new(), stop }))?;
            return Ok(());
        }
        let (registry, callbacks) = (self.core.registry.clone(), self.core.callbacks.clone());
        let State { requests, items, .. } = self.core.state;
        let view = RequestView { turn: self.ledger.turn, number: requests + 1, items };
        self.gates.spawn(async move { registry.hooks().decide::<PreRequest>(&callbacks, || view).await });
        Ok(())
    }

    fn judge(&mut self, call: llm_worker::effect::CallView) {
        let court = Court {
            registry: self.core.registry.clone(),
            permission: self.core.permission.clone(),
            about: About { generation: self.ledger.generation, key: self.core.store.key.clone() },
            callbacks: self.core.callbacks.clone(),
            turnstile: self.turnstile.clone(),
        };
        self.judges.spawn(async move { (call.id, court.judge(call).await) });
    }

    /// Starts waiting calls while there is room under the cap.
    fn fill(&mut self) {
        while self.calls.running.len() < self.core.limits.tool_concurrency.max(1) {
            let Some(id) = self.calls.waiting.pop_front() else { return };
            let Some(Ready { view, prepared, deadline }) = self.calls.ready.remove(&id) else { continue };
            let cancel = CancellationToken::new();
            self.calls.running.insert(id, cancel.clone());
            let outputs = self.core.state.outputs.clone();
            let custody = Arc::new(Custody::new(id, self.core.store.blobs.clone(), outputs, self.calls.ask.clone()));
            let cx = ToolContext { call: id, cancel: cancel.clone(), deadline, host: custody.clone() };
            let began = Instant::now();
            let work = async move {
                let stopped = cx.cancel.clone();
                let result = prepared.run(cx).await;
                custody.finish(result, stopped.is_cancelled())
            };
            (self.core.store.probe)("tool:running");
            let done = self.core.callbacks.run(deadline, cancel, work);
            let (registry, callbacks) = (self.core.registry.clone(), self.core.callbacks.clone());
            self.calls.tasks.spawn(async move {
                let (outcome, mut ended) = done.await.unwrap_or_else(|lost| (lost_call(&lost), Ended::default()));
                ended.ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                let (outcome, transforms) = gates::outcome(&registry, &callbacks, view, outcome).await;
                ended.transforms = transforms;
                (id, outcome, ended)
            });
        }
    }

    /// A running call is told to end; one that still waits never starts.
    fn cancel_call(&mut self, id: CallId) -> Result<(), Fatal> {
        if let Some(cancel) = self.calls.running.get(&id) {
            cancel.cancel();
            return Ok(());
        }
        if let Some(at) = self.calls.waiting.iter().position(|waiting| *waiting == id) {
            self.calls.waiting.remove(at);
            let outcome = ToolOutcome {
                status: ResultStatus::Cancelled,
                summary: "cancelled before it started".to_owned(),
                content: String::new(),
            };
            self.turn.handle(Input::ToolDone { id, outcome })?;
        }
        Ok(())
    }

    /// The pod cannot go on: nothing more starts, children end, and the reason is written if it still fits.
    async fn abandon(&mut self, fatal: &Fatal) {
        if let Some(stream) = self.stream.take() {
            stream.done.abort();
        }
        self.calls.waiting.clear();
        self.calls.running.values().for_each(CancellationToken::cancel);
        self.calls.asked.close();
        while let Ok(ask) = self.calls.asked.try_recv() {
            drop(ask);
        }
        // What was appended is awaited: if it became durable, watchers are told and its caller may go on.
        while !self.commits.is_empty() {
            let done = front(&mut self.commits).await;
            let reply = self.commits.pop_front().and_then(|flight| flight.reply);
            let told = match done {
                Ok(done) => self.core.fold(done).map(drop).map_err(|fold| fold.to_string()),
                Err(refused) => Err(refused.why.to_string()),
            };
            if let Some(reply) = reply {
                drop(reply.send(told));
            }
        }
        while let Some(ended) = self.calls.tasks.join_next().await {
            drop(ended);
        }
        let records = vec![Suspended { reason: fatal.to_string() }.into()];
        let last = self.core.store.journal.append_reserved(Batch::of(records)).await;
        let lost = match last {
            Ok(done) => self.core.fold(done).err().map(|fold| fold.to_string()),
            Err(refused) => Some(refused.why.to_string()),
        };
        if let Some(why) = lost {
            self.core.outbox.show(Event::Alert(format!("the reason could not be journaled: {why}")));
        }
    }
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn front(commits: &mut VecDeque<Flight>) -> Result<Committed<Batch>, Refused<Batch>> {
    match commits.front_mut() {
        Some(flight) => (&mut flight.commit).await,
        None => std::future::pending().await,
    }
}

/// The next event of an answer, or its end once every event was taken.
async fn listen(stream: &mut Option<Stream>) -> Happened {
    let Some(stream) = stream else { return std::future::pending().await };
    while let Some(event) = stream.events.recv().await {
        // What a client says after the stop is not part of the answer.
        if !stream.stopped {
            stream.stopped = matches!(event, ModelEvent::Stop(_));
            return Happened::Event(event);
        }
    }
    match (&mut stream.done).await {
        Ok(end) => Happened::StreamEnded(end),
        Err(panic) => {
            let message = format!("the model's client failed: {panic}");
            Happened::StreamEnded(Err(ModelError { kind: ErrorKind::Bug, message, help: None }))
        }
    }
}

fn lost_call(lost: &Lost) -> ToolOutcome {
    let error = ToolError::new(ErrorKind::Bug, format!("the tool failed: {lost}"));
    ToolOutcome { status: ResultStatus::Error, summary: error.message, content: error.content }
}
