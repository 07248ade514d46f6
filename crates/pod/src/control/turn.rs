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

use super::authorize::{About, Court, Judged, PLACES};
use super::calls::{Calls, Came, Done};
use super::core::{Core, DISK_PAUSE, DISK_RETRIES, Fatal};
use super::gates;
use super::stream::{Heard, Stream};
use crate::feature::MAX_GATES;
use crate::foreign::MAX_STUCK;
use crate::hook::{HookPoint, Passed, PreRequest, RequestView};
use crate::mailbox::events::Event;
use crate::mailbox::pending::{MAX_RIDE, MAX_RIDERS, Riders, settle};
use crate::mailbox::requests::{Mail, Ticket};
use crate::permission::Remedy;
use crate::session::commit::{Batch, Judgement, Ledger, Turn, counted};
use crate::session::record::{NotificationQueued, Resumed, Suspended, SystemItem};
use llm_worker::effect::{CallView, Effect, Fact, Gated, Input, Outcome, Stop};
use llm_worker::history::History;
use llm_worker::turn::Limits as Answers;
use llm_worker::{CallId, Cost, ErrorKind, Item, ModelError, ModelEvent, Usage};
use session_store::{Commit, Committed, MAX_BATCH_RECORDS, Refused};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Bytes of one call's raw arguments. A record is at most 1 MiB, and JSON may need six bytes for one.
pub(super) const MAX_ARGUMENTS: usize = 160 * 1024;

/// Bytes of one answer: above the longest output of any vendor, and text seldom needs escapes.
pub(super) const MAX_ANSWER: usize = 768 * 1024;

/// Bytes of the arguments of all calls of one answer, as they came and again as they would run: both stand in one batch,
/// and with six bytes for one it still takes them.
pub(super) const MAX_CALLS: usize = 1 << 20;

/// The batch of an answer holds what rides along, what gates said before the request and again of each call, the parts
/// of the answer, and for each call a verdict and its start or its result.
const _: () = {
    let calls = Answers::CALLS * (MAX_GATES + 2);
    assert!(MAX_RIDE + 2 * MAX_GATES + Answers::PARTS + 1 + calls <= MAX_BATCH_RECORDS, "an answer fits a batch");
};

/// Commits without a part of the turn that may be on their way at once. While there are so many, features wait: what
/// they hand in must not keep the turn's own commits from the journal.
const MAX_AHEAD: usize = 2;

/// One turn under way.
pub(super) struct Running {
    pub(super) core: Core,
    pub(super) turn: Turn,
    ledger: Ledger,
    commits: VecDeque<Flight>,
    /// Whether records wait for a commit of their own.
    owed: bool,
    stream: Option<Stream>,
    gates: JoinSet<Passed>,
    judges: JoinSet<(CallId, Box<Judged>)>,
    places: Arc<Semaphore>,
    turnstile: Arc<Mutex<()>>,
    calls: Calls,
    /// Bytes of arguments of this answer's calls that may run.
    starting: usize,
    refusals: u32,
    retry_at: Option<Instant>,
    /// What the session had cost before.
    spent: Cost,
    /// What the attempt under way has counted.
    attempt: Usage,
    /// An answer came for which nothing was counted, though its model has a price.
    uncounted: bool,
}

/// A commit under way; they resolve in the order they were appended.
struct Flight {
    commit: Commit<Batch>,
    /// Whether it carries a part of the turn.
    of_turn: bool,
    /// How many of the ledger's verdicts it carries.
    verdicts: usize,
    /// Who is told what became of it.
    tickets: Vec<Box<dyn Ticket>>,
}

/// What the driver waits for.
enum Happened {
    Committed(Result<Committed<Batch>, Refused<Batch>>),
    Heard(Heard),
    Gated(Result<Passed, JoinError>),
    Judged(Result<(CallId, Box<Judged>), JoinError>),
    Came(Came),
    Mail(Mail),
    Resume,
    Cancelled,
    Shown,
}

impl Running {
    pub(super) fn start(mut core: Core, history: History, notes: Vec<SystemItem>) -> Self {
        core.desk.turn_began();
        let mut ledger = Ledger {
            turn: core.state.turns + 1,
            generation: history.surface().generation,
            price: core.model.price(),
            inputs: core.state.queued.keys().copied().collect(),
            ..Ledger::default()
        };
        let mut items: Vec<Item> = notes.iter().map(SystemItem::item).collect();
        ledger.said = notes;
        items.extend(core.state.queued.values().map(|text| Item::User { text: text.clone() }));
        let limits = Answers {
            argument_bytes: MAX_ARGUMENTS,
            all_argument_bytes: MAX_CALLS,
            text_bytes: MAX_ANSWER,
            ..Answers::steps(core.limits.max_steps)
        };
        let spent = core.state.cost.unwrap_or_default();
        let turn = Turn::start(history, items, limits);
        Self {
            core,
            turn,
            ledger,
            commits: VecDeque::new(),
            owed: false,
            stream: None,
            gates: JoinSet::new(),
            judges: JoinSet::new(),
            places: Arc::new(Semaphore::new(PLACES)),
            turnstile: Arc::default(),
            calls: Calls::new(),
            starting: 0,
            refusals: 0,
            retry_at: None,
            spent,
            attempt: Usage::default(),
            uncounted: false,
        }
    }

    pub(super) async fn drive(&mut self, cancel: &CancellationToken) -> Result<Outcome, Fatal> {
        let mut cancelled = false;
        loop {
            while let Some(effect) = self.turn.poll() {
                if let Some(outcome) = self.perform(effect)? {
                    self.settle().await?;
                    return Ok(outcome);
                }
            }
            self.calls.fill(&self.core);
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
        let heeds = (self.ahead() < MAX_AHEAD || self.core.desk.waiting() < MAX_RIDERS) && !self.core.outbox.is_over();
        tokio::select! {
            biased;
            () = cancel.cancelled(), if !cancelled => Happened::Cancelled,
            done = front(&mut self.commits), if !self.commits.is_empty() => Happened::Committed(done),
            Some(passed) = self.gates.join_next() => Happened::Gated(passed),
            Some(judged) = self.judges.join_next() => Happened::Judged(judged),
            came = self.calls.next() => Happened::Came(came),
            mail = self.core.desk.next(), if heeds => Happened::Mail(mail),
            heard = listen(&mut self.stream), if self.stream.is_some() && room => Happened::Heard(heard),
            () = self.core.outbox.progress(), if behind => Happened::Shown,
            () = sleep_until(self.retry_at), if self.turn.suspended() => Happened::Resume,
        }
    }

    fn take(&mut self, happened: Happened) -> Result<(), Fatal> {
        match happened {
            Happened::Shown => {}
            Happened::Cancelled => self.turn.handle(Input::Cancel)?,
            Happened::Resume => self.turn.handle(Input::Resume)?,
            Happened::Heard(heard) => self.heard(heard)?,
            Happened::Gated(passed) => {
                let passed = passed?;
                self.ledger.verdicts.extend(gates::verdicts(HookPoint::PreRequest, None, &passed));
                let stop = gates::refusal(&passed).map(|reason| Stop::Aborted { reason });
                self.gated(stop)?;
            }
            Happened::Judged(judged) => {
                let (id, judged) = judged?;
                let Judged { verdict, judgement, ready } = self.beside_others(*judged);
                self.ledger.judged.insert(id, judgement);
                if let Some(ready) = ready {
                    self.calls.keep(id, ready);
                }
                self.turn.handle(Input::Judged(id, verdict))?;
            }
            Happened::Came(Came::Done(done)) => self.done(*done)?,
            Happened::Came(Came::Broken(broken)) => return Err(broken.into()),
            Happened::Mail(mail) => self.mail(mail),
            Happened::Committed(done) => self.committed(done)?,
        }
        Ok(())
    }

    fn heard(&mut self, heard: Heard) -> Result<(), Fatal> {
        match heard {
            Heard::Event(event) => {
                (self.core.store.probe)("stream");
                let again = matches!(event, ModelEvent::Retrying { .. });
                self.count(&event);
                self.turn.handle(Input::Model(event))?;
                if again && self.beyond_budget() {
                    self.stream = None;
                    let message = "the cost limit was reached by attempts that brought no answer".to_owned();
                    let help = Some((self.core.permission.policy.terms.remedy)(&Remedy::RaiseCost));
                    let error = ModelError { kind: ErrorKind::Exhausted, message, help };
                    self.turn.handle(Input::ModelFailed(error))?;
                }
            }
            Heard::Whole => self.stream = None,
            Heard::Failed(error) => {
                self.stream = None;
                self.turn.handle(Input::ModelFailed(error))?;
            }
        }
        Ok(())
    }

    /// Keeps count of what no answer has paid for yet.
    fn count(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Usage(usage) => self.attempt = *usage,
            ModelEvent::Retrying { .. } => {
                self.ledger.unanswered = self.ledger.unanswered.plus(std::mem::take(&mut self.attempt));
            }
            ModelEvent::Stop(_) => {
                // The answer's own record has it all.
                let usage = std::mem::take(&mut self.ledger.unanswered).plus(std::mem::take(&mut self.attempt));
                self.uncounted |= self.ledger.price.is_some_and(|price| !counted(price, &usage));
            }
            ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Sealed(_)
            | ModelEvent::Shortfall(_)
            | ModelEvent::CallStarted { .. }
            | ModelEvent::CallArguments { .. } => {}
        }
    }

    /// Whether this turn has cost as much as it may.
    fn beyond_budget(&self) -> bool {
        let unanswered = self.ledger.price.map_or_else(Cost::default, |price| price.of(&self.ledger.unanswered));
        let cost = self.core.state.cost.unwrap_or_default().since(self.spent).plus(unanswered);
        self.core.limits.max_cost.is_some_and(|most| cost >= most)
    }

    /// A call ended.
    fn done(&mut self, Done { id, outcome, ended }: Done) -> Result<(), Fatal> {
        self.ledger.ended.insert(id, ended);
        (self.core.store.probe)("tool:ended");
        Ok(self.turn.handle(Input::ToolDone { id, outcome })?)
    }

    /// Takes what was handed in; if somebody waits for it, it is written at once.
    fn mail(&mut self, mail: Mail) {
        let calls = &self.calls;
        let runs = |call| calls.runs(call);
        let urgent = match mail {
            Mail::Asked(method) => self.core.asked(method, &runs),
            Mail::Wanted => true,
        };
        if self.core.collect(&runs) || urgent {
            self.write_out();
        }
    }

    /// Gives what waits commits of its own; as far as there may be more of them.
    fn write_out(&mut self) {
        while self.core.desk.waiting() > 0 && self.ahead() < MAX_AHEAD {
            let Riders { records, tickets } = self.core.desk.riders();
            if !records.is_empty() {
                self.core.announce(&records);
                let commit = self.core.store.journal.append(Batch::of(records));
                self.commits.push_back(Flight { commit, of_turn: false, verdicts: 0, tickets });
            }
        }
        self.owed = self.core.desk.waiting() > 0;
    }

    fn ahead(&self) -> usize {
        self.commits.iter().filter(|flight| !flight.of_turn).count()
    }

    /// The turn's end is durable; what was appended behind it is still folded and shown, and no call asks for more.
    async fn settle(&mut self) -> Result<(), Fatal> {
        self.core.collect(&|_| false);
        self.write_out();
        while !self.commits.is_empty() {
            let done = front(&mut self.commits).await;
            self.committed(done)?;
        }
        Ok(())
    }

    fn committed(&mut self, done: Result<Committed<Batch>, Refused<Batch>>) -> Result<(), Fatal> {
        let flight = self.commits.pop_front();
        if self.owed {
            self.write_out();
        }
        let (tickets, verdicts) = flight.map_or((Vec::new(), 0), |flight| (flight.tickets, flight.verdicts));
        match done {
            Ok(done) => {
                let ack = self.core.fold(done)?;
                self.ledger.verdicts.drain(..verdicts.min(self.ledger.verdicts.len()));
                settle(tickets, Ok(()));
                if let Some(ack) = ack {
                    self.said();
                    if std::mem::take(&mut self.refusals) > 0 {
                        self.resumed();
                    }
                    self.turn.handle(Input::Committed(ack))?;
                }
                Ok(())
            }
            Err(Refused { batch, why }) => {
                let reason = why.to_string();
                settle(tickets, Err(&reason));
                // Without its batch the turn's commit can neither be tried again nor given back.
                let Some(batch) = batch else { return Err(Fatal::Journal(reason)) };
                let Some(request) = batch.into_turn() else { return Ok(()) };
                if let Some(unstorable) = Fatal::unstorable(&why) {
                    return Err(unstorable);
                }
                self.turn.handle(Input::Refused(request))?;
                self.refusals += 1;
                self.retry_at = Some(Instant::now() + DISK_PAUSE);
                self.core.outbox.show(Event::Suspended { reason: reason.clone() });
                if self.refusals > DISK_RETRIES { Err(Fatal::Journal(reason)) } else { Ok(()) }
            }
        }
    }

    /// Forgets what the log says now.
    fn said(&mut self) {
        let notices = &self.core.state.notices;
        self.ledger.said.retain(|said| match said {
            SystemItem::Notification { number, .. } => notices.contains_key(number),
            SystemItem::Environment { .. } | SystemItem::Recovery { .. } => false,
        });
    }

    /// Says in the log that it could not be written for a while.
    fn resumed(&mut self) {
        let commit = self.core.store.journal.append(Batch::of(vec![Resumed {}.into()]));
        self.commits.push_back(Flight { commit, of_turn: false, verdicts: 0, tickets: Vec::new() });
    }

    /// Performs one effect, or starts what will perform it.
    fn perform(&mut self, effect: Effect) -> Result<Option<Outcome>, Fatal> {
        match effect {
            Effect::Gate => self.gate()?,
            Effect::Commit(request) => {
                let calls = &self.calls;
                self.core.collect(&|call| calls.runs(call));
                if request.facts().iter().any(|fact| matches!(fact, Fact::TurnFinished(_))) {
                    self.ledger.unanswered = self.ledger.unanswered.plus(std::mem::take(&mut self.attempt));
                }
                let Riders { records, tickets } = self.core.desk.riders();
                let batch = Batch::of_turn(request, &self.ledger, records);
                self.core.announce(batch.records());
                let commit = self.core.store.journal.append(batch);
                let verdicts = self.ledger.verdicts.len();
                self.commits.push_back(Flight { commit, of_turn: true, verdicts, tickets });
                self.owed |= self.core.desk.waiting() > 0;
            }
            Effect::Send(request) => {
                self.starting = 0;
                self.stream = Some(Stream::of(self.core.model.clone(), request));
            }
            Effect::Delta(delta) => self.core.outbox.show(Event::Delta(delta)),
            Effect::Judge(call) => self.judge(call),
            Effect::Run(run) => self.calls.wait(run.id()),
            Effect::CancelModel => {
                self.stream = None;
                // No answer of its own says what it cost.
                self.ledger.unanswered = self.ledger.unanswered.plus(std::mem::take(&mut self.attempt));
            }
            Effect::CancelTool(id) => {
                if let Some(outcome) = self.calls.cancel(id) {
                    self.turn.handle(Input::ToolDone { id, outcome })?;
                }
            }
            Effect::Finished(outcome) => return Ok(Some(outcome)),
        }
        Ok(None)
    }

    /// Asks the gates before a request; without any, it is cleared at once. A budget that is used up comes first.
    fn gate(&mut self) -> Result<(), Fatal> {
        if self.beyond_budget() {
            return self.gated(Some(Stop::CostLimit));
        }
        if self.uncounted && self.core.limits.max_cost.is_some() {
            let model = self.core.model.name();
            let reason = format!("{model} does not say how many tokens it used, so the cost limit cannot be kept");
            return self.gated(Some(Stop::Aborted { reason }));
        }
        let stuck = self.core.callbacks.stuck() >= MAX_STUCK;
        if stuck || !self.core.registry.hooks().any::<PreRequest>("") {
            return self.gated(stuck.then(|| Stop::Aborted { reason: Fatal::Stuck.to_string() }));
        }
        let (registry, callbacks) = (self.core.registry.clone(), self.core.callbacks.clone());
        let (number, items) = (self.core.state.requests + 1, self.core.state.items);
        let view = RequestView { turn: self.ledger.turn, number, items };
        self.gates.spawn(async move { registry.hooks().decide::<PreRequest>(&callbacks, || view).await });
        Ok(())
    }

    /// Clears or stops the next request. Notifications that wait go with it.
    fn gated(&mut self, stop: Option<Stop>) -> Result<(), Fatal> {
        let mut add = Vec::new();
        for notice in self.core.state.notices.values() {
            let NotificationQueued { number, feature, generation, text } = notice.clone();
            let said = SystemItem::Notification { number, feature, generation, text };
            add.push(said.item());
            self.ledger.said.push(said);
        }
        Ok(self.turn.handle(Input::Gated(Gated { add, stop }))?)
    }

    fn judge(&mut self, call: CallView) {
        let (registry, permission) = (self.core.registry.clone(), self.core.permission.clone());
        let about = About { generation: self.ledger.generation, key: self.core.store.key.clone() };
        let id = call.id;
        let callbacks = self.core.callbacks.clone();
        let (places, turnstile) = (self.places.clone(), self.turnstile.clone());
        let court = Court { registry, permission, about, callbacks, places, turnstile };
        self.judges.spawn(async move { (id, Box::new(court.judge(call).await)) });
    }

    /// The same, unless the calls of this answer have too many arguments together: a tool may word few at length.
    fn beside_others(&mut self, judged: Judged) -> Judged {
        let bytes = judged.judgement.start.as_ref().map_or(0, |start| start.arguments.len());
        if self.starting + bytes <= MAX_CALLS {
            self.starting += bytes;
            return judged;
        }
        let problem = format!(
            "the calls of this answer have over {MAX_CALLS} bytes of arguments together, defaults included; make this \
             one again by itself"
        );
        let invalid = Judged::invalid("host:arguments", &problem, self.core.registry.redactor());
        let judgement = Judgement { start: None, rule: invalid.judgement.rule, ..judged.judgement };
        Judged { judgement, ..invalid }
    }

    /// The pod cannot go on: nothing more starts, children end, and the reason is written if it still fits.
    pub(super) async fn abandon(&mut self, fatal: &Fatal) {
        self.stream = None;
        self.calls.end();
        // What was appended is awaited: if it became durable, watchers are told and its caller may go on.
        while !self.commits.is_empty() {
            let done = front(&mut self.commits).await;
            let tickets = self.commits.pop_front().map_or_else(Vec::new, |flight| flight.tickets);
            let told = match done {
                Ok(done) => self.core.fold(done).map(drop).map_err(|fold| fold.to_string()),
                Err(refused) => Err(refused.why.to_string()),
            };
            settle(tickets, told.as_ref().copied().map_err(String::as_str));
        }
        self.core.desk.shut();
        self.calls.ended().await;
        self.core.desk.close();
        let records = vec![Suspended { reason: fatal.to_string() }.into()];
        let last = self.core.store.journal.append_reserved(Batch::of(records)).await;
        let lost = match last {
            Ok(done) => self.core.fold(done).err().map(|fold| fold.to_string()),
            Err(refused) => Some(refused.why.to_string()),
        };
        if let Some(why) = lost {
            self.core.outbox.show(Event::warning(format!("the reason could not be journaled: {why}")));
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
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

async fn listen(stream: &mut Option<Stream>) -> Heard {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}
