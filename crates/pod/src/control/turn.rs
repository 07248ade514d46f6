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

use super::authorize::{Authorization, Authorizer};
use super::budget::Budget;
use super::calls::{Calls, Came, Done};
use super::commit::{Batch, Journaled, Note, Turn, TurnInfo};
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
use crate::record::{NotificationQueued, Resumed, Suspended, SystemItem, VerdictGiven};
use llm_worker::effect::{CallView, Effect, Gated, Input, Outcome, Stop};
use llm_worker::history::History;
use llm_worker::turn::Limits as Answers;
use llm_worker::{CallId, ErrorKind, ModelError, ModelEvent};
use session_store::{Commit, Committed, MAX_BATCH_RECORDS, Refused};
use std::collections::VecDeque;
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
    info: TurnInfo,
    commits: VecDeque<Flight>,
    /// Whether records wait for a commit of their own.
    owed: bool,
    stream: Option<Stream>,
    gates: JoinSet<Passed>,
    judges: JoinSet<(CallId, Box<Authorization>)>,
    authorizer: Authorizer,
    calls: Calls,
    /// Bytes of arguments of this answer's calls that may run.
    starting: usize,
    refusals: u32,
    retry_at: Option<Instant>,
}

/// A commit under way; they resolve in the order they were appended.
struct Flight {
    commit: Commit<Batch>,
    /// Whether it carries a part of the turn.
    of_turn: bool,
    /// Who is told what became of it.
    tickets: Vec<Box<dyn Ticket>>,
}

/// What the driver waits for.
enum Happened {
    Committed(Result<Committed<Batch>, Refused<Batch>>),
    Heard(Heard),
    Gated(Result<Passed, JoinError>),
    Judged(Result<(CallId, Box<Authorization>), JoinError>),
    Came(Came),
    Mail(Mail),
    Resume,
    Cancelled,
    Shown,
}

impl Running {
    pub(super) fn start(mut core: Core, history: History, notes: Vec<SystemItem>) -> Self {
        core.desk.turn_began();
        let info = TurnInfo {
            number: core.state.turns + 1,
            generation: history.surface().generation,
            budget: Budget::new(core.model.price(), core.state.cost.unwrap_or_default()),
        };
        let mut notes: Vec<Note> = notes.into_iter().map(Note::System).collect();
        let inputs = core.state.queued.iter();
        notes.extend(inputs.map(|(input, text)| Note::Input { input: *input, text: text.clone() }));
        let limits = Answers {
            argument_bytes: MAX_ARGUMENTS,
            all_argument_bytes: MAX_CALLS,
            text_bytes: MAX_ANSWER,
            ..Answers::steps(core.limits.max_steps)
        };
        let authorizer = Authorizer::new(&core, info.generation);
        let turn = Turn::start(history, notes, limits);
        Self {
            core,
            turn,
            info,
            commits: VecDeque::new(),
            owed: false,
            stream: None,
            gates: JoinSet::new(),
            judges: JoinSet::new(),
            authorizer,
            calls: Calls::new(),
            starting: 0,
            refusals: 0,
            retry_at: None,
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
                let judgement = gates::verdicts(HookPoint::PreRequest, None, &passed);
                self.gated(Some(judgement), gates::refusal(&passed).map(|reason| Stop::Aborted { reason }))?;
            }
            Happened::Judged(judged) => {
                let (id, judged) = judged?;
                let judged = judged.within(&mut self.starting, self.core.registry.redactor());
                self.turn.handle(judged.into_input(id))?;
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
                self.info.budget.count(&event);
                self.turn.handle(Input::Model(event))?;
                if again && self.is_spent() {
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

    fn is_spent(&self) -> bool {
        self.info.budget.is_spent(self.core.limits.max_cost, self.core.state.cost.unwrap_or_default())
    }

    /// A call ended.
    fn done(&mut self, Done { id, outcome, ended }: Done) -> Result<(), Fatal> {
        (self.core.store.probe)("tool:ended");
        Ok(self.turn.handle(Input::ToolDone { id, outcome, ending: ended })?)
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
                self.commits.push_back(Flight { commit, of_turn: false, tickets });
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
        let tickets = flight.map_or_else(Vec::new, |flight| flight.tickets);
        match done {
            Ok(done) => {
                let ack = self.core.fold(done)?;
                settle(tickets, Ok(()));
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

    /// Says in the log that it could not be written for a while.
    fn resumed(&mut self) {
        let commit = self.core.store.journal.append(Batch::of(vec![Resumed {}.into()]));
        self.commits.push_back(Flight { commit, of_turn: false, tickets: Vec::new() });
    }

    /// Performs one effect, or starts what will perform it.
    fn perform(&mut self, effect: Effect<Journaled>) -> Result<Option<Outcome>, Fatal> {
        match effect {
            Effect::Gate => self.gate()?,
            Effect::Commit(request) => {
                let calls = &self.calls;
                self.core.collect(&|call| calls.runs(call));
                let Riders { records, tickets } = self.core.desk.riders();
                let batch = Batch::of_turn(request, &self.info, records);
                self.core.announce(batch.records());
                let commit = self.core.store.journal.append(batch);
                self.commits.push_back(Flight { commit, of_turn: true, tickets });
                self.owed |= self.core.desk.waiting() > 0;
            }
            Effect::Send(request) => {
                self.starting = 0;
                self.stream = Some(Stream::of(self.core.model.clone(), request));
            }
            Effect::Delta(delta) => self.core.outbox.show(Event::Delta(delta)),
            Effect::Judge(call) => self.judge(call),
            Effect::Run(run) => self.calls.wait(run.id(), run.into_start()),
            Effect::CancelModel => {
                self.stream = None;
                self.info.budget.attempt_failed();
            }
            Effect::CancelTool(id) => {
                if let Some(Done { id, outcome, ended }) = self.calls.cancel(id) {
                    self.turn.handle(Input::ToolDone { id, outcome, ending: ended })?;
                }
            }
            Effect::Finished(outcome) => return Ok(Some(outcome)),
        }
        Ok(None)
    }

    /// Asks the gates before a request; without any, it is cleared at once. A budget that is used up comes first.
    fn gate(&mut self) -> Result<(), Fatal> {
        if self.is_spent() {
            return self.gated(None, Some(Stop::CostLimit));
        }
        if self.info.budget.is_uncounted() && self.core.limits.max_cost.is_some() {
            let model = self.core.model.name();
            let reason = format!("{model} does not say how many tokens it used, so the cost limit cannot be kept");
            return self.gated(None, Some(Stop::Aborted { reason }));
        }
        let stuck = self.core.callbacks.stuck() >= MAX_STUCK;
        if stuck || !self.core.registry.hooks().any::<PreRequest>("") {
            return self.gated(None, stuck.then(|| Stop::Aborted { reason: Fatal::Stuck.to_string() }));
        }
        let (registry, callbacks) = (self.core.registry.clone(), self.core.callbacks.clone());
        let (number, items) = (self.core.state.requests + 1, self.core.state.items);
        let view = RequestView { turn: self.info.number, number, items };
        self.gates.spawn(async move { registry.hooks().decide::<PreRequest>(&callbacks, || view).await });
        Ok(())
    }

    /// Clears or stops the next request. Notifications that wait go with it.
    fn gated(&mut self, judgement: Option<Vec<VerdictGiven>>, stop: Option<Stop>) -> Result<(), Fatal> {
        let deliver = |notice: &NotificationQueued| {
            let NotificationQueued { number, feature, generation, text } = notice.clone();
            Note::System(SystemItem::Notification { number, feature, generation, text })
        };
        let notes = self.core.state.notices.values().map(deliver).collect();
        Ok(self.turn.handle(Input::Gated(Gated { judgement, notes, stop }))?)
    }

    fn judge(&mut self, call: CallView) {
        let (id, authorizer) = (call.id, self.authorizer.clone());
        self.judges.spawn(async move { (id, Box::new(authorizer.judge(call).await)) });
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
