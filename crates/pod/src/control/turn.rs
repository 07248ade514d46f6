//! The one task that owns a pod's state: it performs what the turn machine asks for, and tells it what came of
//! it.
//!
//! ```text
//!   Turn::poll ──> effects ──> journal · model task · callback threads
//!        ▲                                   │
//!        └── Turn::handle <── one of: committed, refused, model event, judged, call ended
//! ```
//!
//! It borrows the [`Core`], which alone appends to the log and folds what was committed, in that order. It never runs
//! feature, tool or model code: those answer through channels.

use super::authorize::{Authorization, Authorizer};
use super::budget::Budget;
use super::calls::{Calls, Came, Done};
use super::commit::{Batch, Journaled, Note, Turn, TurnInfo};
use super::core::{Core, Fatal};
use super::gates;
use super::pipeline::Landed;
use super::stream::{Heard, Stream};
use crate::feature::MAX_GATES;
use crate::foreign::MAX_STUCK;
use crate::hook::{GateOutcome, HookPoint, PreRequest, RequestView};
use crate::mailbox::events::Event;
use crate::mailbox::pending::MAX_RIDE;
use crate::mailbox::requests::Mail;
use crate::permission::Remedy;
use crate::record::{NotificationQueued, Suspended, SystemItem, VerdictGiven};
use llm_worker::effect::{CallView, Effect, Gated, Input, Outcome, Stop};
use llm_worker::history::History;
use llm_worker::turn::Limits as Answers;
use llm_worker::{CallId, ErrorKind, ModelError, ModelEvent};
use session_store::{Committed, MAX_BATCH_RECORDS, Refused};
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

/// One turn under way.
pub(super) struct Running {
    turn: Turn,
    info: TurnInfo,
    stream: Option<Stream>,
    gates: JoinSet<GateOutcome>,
    judges: JoinSet<(CallId, Box<Authorization>)>,
    authorizer: Authorizer,
    calls: Calls,
    /// Bytes of arguments of this answer's calls that may run.
    starting: usize,
}

/// What the driver waits for.
enum Happened {
    Committed(Result<Committed<Batch>, Refused<Batch>>),
    Heard(Heard),
    Gated(Result<GateOutcome, JoinError>),
    Judged(Result<(CallId, Box<Authorization>), JoinError>),
    Came(Came),
    Mail(Mail),
    Resume,
    Cancelled,
    Shown,
}

impl Running {
    pub(super) fn start(core: &mut Core, history: History, notes: Vec<SystemItem>) -> Self {
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
        let authorizer = Authorizer::new(core, info.generation);
        let turn = Turn::start(history, notes, limits);
        Self {
            turn,
            info,
            stream: None,
            gates: JoinSet::new(),
            judges: JoinSet::new(),
            authorizer,
            calls: Calls::new(),
            starting: 0,
        }
    }

    pub(super) async fn drive(&mut self, core: &mut Core, cancel: &CancellationToken) -> Result<Outcome, Fatal> {
        let mut cancelled = false;
        loop {
            while let Some(effect) = self.turn.poll() {
                if let Some(outcome) = self.perform(core, effect)? {
                    core.settle().await?;
                    return Ok(outcome);
                }
            }
            self.calls.fill(core);
            if core.callbacks.stuck() >= MAX_STUCK {
                return Err(Fatal::Stuck);
            }
            let happened = self.next(core, cancel, cancelled).await;
            cancelled |= matches!(happened, Happened::Cancelled);
            self.take(core, happened)?;
        }
    }

    /// Waits for whatever comes first. Every branch is cancel-safe.
    async fn next(&mut self, core: &mut Core, cancel: &CancellationToken, cancelled: bool) -> Happened {
        let room = !core.outbox.is_full();
        let behind = !core.outbox.is_empty();
        let (heeds, retry_at) = (core.heeds(), core.pipeline.retry_at());
        tokio::select! {
            biased;
            () = cancel.cancelled(), if !cancelled => Happened::Cancelled,
            done = core.pipeline.front() => Happened::Committed(done),
            Some(passed) = self.gates.join_next() => Happened::Gated(passed),
            Some(judged) = self.judges.join_next() => Happened::Judged(judged),
            came = self.calls.next() => Happened::Came(came),
            mail = core.desk.next(), if heeds => Happened::Mail(mail),
            heard = listen(&mut self.stream), if self.stream.is_some() && room => Happened::Heard(heard),
            () = core.outbox.progress(), if behind => Happened::Shown,
            () = sleep_until(retry_at), if self.turn.suspended() => Happened::Resume,
        }
    }

    fn take(&mut self, core: &mut Core, happened: Happened) -> Result<(), Fatal> {
        match happened {
            Happened::Shown => {}
            Happened::Cancelled => self.turn.handle(Input::Cancel)?,
            Happened::Resume => self.turn.handle(Input::Resume)?,
            Happened::Heard(heard) => self.heard(core, heard)?,
            Happened::Gated(passed) => {
                let passed = passed?;
                let judgement = gates::verdicts(HookPoint::PreRequest, None, &passed);
                self.gated(core, Some(judgement), gates::refusal(&passed).map(|reason| Stop::Aborted { reason }))?;
            }
            Happened::Judged(judged) => {
                let (id, judged) = judged?;
                let judged = judged.within(&mut self.starting, core.registry.redactor());
                self.turn.handle(judged.into_input(id))?;
            }
            Happened::Came(Came::Done(done)) => {
                (core.store.probe)("tool:ended");
                self.done(*done)?;
            }
            Happened::Came(Came::Broken(broken)) => return Err(broken.into()),
            Happened::Mail(mail) => self.mail(core, mail),
            Happened::Committed(done) => match core.landed(done)? {
                Some(Landed::Durable(ack)) => self.turn.handle(Input::Committed(ack))?,
                Some(Landed::Refused(request)) => self.turn.handle(Input::Refused(request))?,
                None => {}
            },
        }
        Ok(())
    }

    fn heard(&mut self, core: &Core, heard: Heard) -> Result<(), Fatal> {
        match heard {
            Heard::Event(event) => {
                (core.store.probe)("stream");
                let again = matches!(event, ModelEvent::Retrying { .. });
                self.info.budget.count(&event);
                self.turn.handle(Input::Model(event))?;
                if again && self.is_spent(core) {
                    self.stream = None;
                    let message = "the cost limit was reached by attempts that brought no answer".to_owned();
                    let help = Some((core.permission.policy.terms.remedy)(&Remedy::RaiseCost));
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

    fn is_spent(&self, core: &Core) -> bool {
        self.info.budget.is_spent(core.limits.max_cost, core.state.cost.unwrap_or_default())
    }

    fn done(&mut self, Done { id, outcome, ended }: Done) -> Result<(), Fatal> {
        Ok(self.turn.handle(Input::ToolDone { id, outcome, ending: ended })?)
    }

    /// Takes what was handed in; if somebody waits for it, it is written at once.
    fn mail(&mut self, core: &mut Core, mail: Mail) {
        let calls = &self.calls;
        let runs = |call| calls.runs(call);
        let urgent = match mail {
            Mail::Asked(method) => core.asked(method, &runs),
            Mail::Wanted => true,
        };
        if core.collect(&runs) || urgent {
            core.write_out();
        }
    }

    /// Performs one effect, or starts what will perform it.
    fn perform(&mut self, core: &mut Core, effect: Effect<Journaled>) -> Result<Option<Outcome>, Fatal> {
        match effect {
            Effect::Gate => self.gate(core)?,
            Effect::Commit(request) => {
                let calls = &self.calls;
                core.collect(&|call| calls.runs(call));
                core.append_of_turn(|riders| Batch::of_turn(request, &self.info, riders));
            }
            Effect::Send(request) => {
                self.starting = 0;
                self.stream = Some(Stream::of(core.model.clone(), request));
            }
            Effect::Delta(delta) => core.outbox.show(Event::Delta(delta)),
            Effect::Judge(call) => self.judge(call),
            Effect::Run(run) => self.calls.wait(run.id(), run.into_start()),
            Effect::CancelModel => {
                self.stream = None;
                self.info.budget.attempt_failed();
            }
            Effect::CancelTool(id) => {
                if let Some(done) = self.calls.cancel(id) {
                    self.done(done)?;
                }
            }
            Effect::Finished(outcome) => return Ok(Some(outcome)),
        }
        Ok(None)
    }

    /// Asks the gates before a request; without any, it is cleared at once. A budget that is used up comes first.
    fn gate(&mut self, core: &Core) -> Result<(), Fatal> {
        if self.is_spent(core) {
            return self.gated(core, None, Some(Stop::CostLimit));
        }
        if self.info.budget.is_uncounted() && core.limits.max_cost.is_some() {
            let model = core.model.name();
            let reason = format!("{model} does not say how many tokens it used, so the cost limit cannot be kept");
            return self.gated(core, None, Some(Stop::Aborted { reason }));
        }
        let stuck = core.callbacks.stuck() >= MAX_STUCK;
        if stuck || !core.registry.hooks().any::<PreRequest>("") {
            return self.gated(core, None, stuck.then(|| Stop::Aborted { reason: Fatal::Stuck.to_string() }));
        }
        let (registry, callbacks) = (core.registry.clone(), core.callbacks.clone());
        let (number, items) = (core.state.requests + 1, core.state.items);
        let view = RequestView { turn: self.info.number, number, items };
        self.gates.spawn(async move { registry.hooks().decide::<PreRequest>(&callbacks, || view).await });
        Ok(())
    }

    /// Clears or stops the next request. Notifications that wait go with it.
    fn gated(&mut self, core: &Core, judgement: Option<Vec<VerdictGiven>>, stop: Option<Stop>) -> Result<(), Fatal> {
        let deliver = |notice: &NotificationQueued| {
            let NotificationQueued { number, feature, generation, text } = notice.clone();
            Note::System(SystemItem::Notification { number, feature, generation, text })
        };
        let notes = core.state.notices.values().map(deliver).collect();
        Ok(self.turn.handle(Input::Gated(Gated { judgement, notes, stop }))?)
    }

    fn judge(&mut self, call: CallView) {
        let (id, authorizer) = (call.id, self.authorizer.clone());
        self.judges.spawn(async move { (id, Box::new(authorizer.judge(call).await)) });
    }

    /// The history again, once the turn's end is durable.
    pub(super) fn finish(self) -> Option<History> {
        self.turn.finish().ok()
    }

    /// The pod cannot go on: nothing more starts, children end, and the reason is written if it still fits.
    pub(super) async fn abandon(mut self, core: &mut Core, fatal: &Fatal) {
        self.stream = None;
        self.calls.end();
        core.drain().await;
        core.desk.shut();
        self.calls.ended().await;
        core.desk.close();
        let records = vec![Suspended { reason: fatal.to_string() }.into()];
        let last = core.store.journal.append_reserved(Batch::of(records)).await;
        let lost = match last {
            Ok(done) => core.fold(done).err().map(|fold| fold.to_string()),
            Err(refused) => Some(refused.why.to_string()),
        };
        if let Some(why) = lost {
            core.outbox.show(Event::warning(format!("the reason could not be journaled: {why}")));
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn listen(stream: &mut Option<Stream>) -> Heard {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}
