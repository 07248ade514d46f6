//! One turn: performs the effects of the turn machine and feeds the results back. Does not depend on clients.
//!
//! ```text
//!   Turn::poll ──> effects ──> journal · model task · callback threads
//!        ▲                                   │
//!        └── Turn::handle <── one of: committed, refused, model event, judged, call ended
//! ```
//!
//! It borrows the [`Core`] from the actor, which alone appends to the log and folds what was committed, in that
//! order. It never runs code of features, tools or models: those answer through channels.

mod answering;
mod answers;
mod before_request;
mod end_gates;
mod model_backoff;
mod review;
pub(super) mod stream;
mod used_up;
mod view_change;

use self::answering::{Answering, Reviewing};
use self::model_backoff::ModelBackoff;
use self::stream::{Stream, StreamEvent};
pub(super) use self::view_change::frees_any;
use super::budget::Budget;
use super::call::approvals::ApprovalAnswer;
use super::call::authorize::Authorizer;
use super::call::authorized::Authorized;
use super::call::order::Claims;
use super::call::running::{CallEvent, Calls, Done};
use super::call::verdict::Authorization;
use super::commit::{Batch, Journaled, Note, Turn, TurnInfo};
use super::core::{Core, Fatal};
use super::limits::{MAX_ANSWER, MAX_ARGUMENTS, MAX_CALLS, RunLimits};
use super::person_command;
use super::pipeline::{ActorCommit, CommitResult};
use super::pod_budget::PodLimits;
use super::status::Activity;
use super::turn_end::{ANSWER_NOT_STORED, TurnEnd};
use crate::feature::MAX_GATES;
use crate::foreign::MAX_STUCK;
use crate::hook::GateOutcome;
use crate::mailbox::events::Event;
use crate::mailbox::pending::MAX_PIGGYBACK;
use crate::mailbox::requests::Wakeup;
use crate::record::{ApprovalId, InputId, SystemItem, ToolFinished, Who};
use crate::session::approvals::MAX_OPEN_APPROVALS;
use crate::session::spent::Spent;
use llm_worker::effect::{CallView, Effect, Fact, Input, Outcome};
use llm_worker::history::History;
use llm_worker::turn::{CommitRequest, IllegalInput, TurnLimits};
use llm_worker::{CallId, ModelEvent};
use session_store::MAX_BATCH_RECORDS;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet};
use tracing::field::Empty;
use tracing::{Span, debug, info_span, warn};

/// The batch of an answer has the piggybacked records, the verdicts of gates before the request, about it and about each call,
/// the parts of the answer, and for each call a verdict and its start or its result.
const _: () = {
    let calls = TurnLimits::CALLS * (MAX_GATES + 2);
    assert!(
        MAX_PIGGYBACK + 3 * MAX_GATES + TurnLimits::PARTS + 1 + calls <= MAX_BATCH_RECORDS,
        "an answer fits a batch"
    );
};

/// The running turn. The actor creates it, passes events to it and takes its result.
pub(super) struct Running {
    turn: Turn,
    info: TurnInfo,
    /// What the turn may use, within what was left to the pod when it began.
    limits: RunLimits,
    /// The pod's when it began.
    pod_limits: PodLimits,
    stage: TurnStage,
    stream: Option<Stream>,
    backoff: ModelBackoff,
    answering: Answering,
    tasks: TurnTasks,
    authorizer: Authorizer,
    /// Argument bytes of this answer's calls that may run.
    starting: usize,
    /// Calls of this answer about which a person is asked.
    asking: usize,
    /// Approvals whose answer is on its way.
    answered: BTreeSet<ApprovalId>,
    /// Items for the first request of a turn that began with waiting calls: nothing may stand between a call and its
    /// result.
    deferred: Vec<Note>,
    /// What the session had used when the turn began.
    before: Spent,
    cancelled: bool,
    /// It makes the call of a person's command or of a client, and asks no model.
    is_command: bool,
    /// The result of that call.
    result: Option<Arc<ToolFinished>>,
    /// It had ended before the pod was opened.
    reopened: bool,
    /// Whether it was asked to wait before its next request.
    holds: bool,
    view_change: ViewChange,
    /// The inputs that it takes; those not in the queue any more are taken.
    taking: Vec<InputId>,
    /// How many of them it began with.
    own: usize,
    /// The span of the latest request in the log of the host.
    step_span: Span,
    turn_span: Span,
}

/// The stage of a turn.
enum TurnStage {
    Machine,
    /// The machine has ended; commits in flight are still folded and shown, and requests of calls are not read.
    Settling(Outcome),
    /// Gates at the end of the turn are running.
    Asking(Outcome),
    /// The gates have answered; no other commit may change the queue.
    Answered(Outcome, GateOutcome),
    /// The verdicts of those gates are being committed.
    Noting(Outcome, AfterTurn),
    Over(Outcome, AfterTurn),
}

/// How far a change of the view is, since the newest request.
#[derive(Default)]
enum ViewChange {
    /// It was not looked at.
    #[default]
    Open,
    /// The turn is to be held.
    Wanted,
    /// Hooks are asked about it.
    Asking,
    /// Its record is on its way; an early end of the turn waits for it.
    Recording(Option<Box<Input<Journaled>>>),
    /// It was made, or is not needed.
    Settled,
}

/// What follows a turn.
#[derive(Clone, Default)]
pub(super) struct AfterTurn {
    /// The reason to have a person look.
    paused: Option<String>,
    /// The input with which the model goes on.
    again: Option<InputId>,
    /// The limit that keeps the model from going on.
    limit: Option<Outcome>,
}

/// The work that a turn waits for: gates, authorizations and calls.
pub(super) struct TurnTasks {
    gates: JoinSet<GateOutcome>,
    /// Gates that see an answer or a failure, and hooks that are asked about a change of the view.
    reviews: JoinSet<Reviewing>,
    judges: JoinSet<(CallId, Box<Authorization>)>,
    answers: JoinSet<Box<Answered>>,
    calls: Calls,
}

/// A call that a person has allowed, ready to run or not.
pub(super) struct Answered {
    call: CallId,
    answer: ApprovalAnswer,
    ready: Result<Box<Authorized>, String>,
}

/// The result of one of the [`TurnTasks`].
pub(super) enum TurnEvent {
    Gated(Result<GateOutcome, JoinError>),
    Reviewed(Result<Reviewing, JoinError>),
    Judged(Result<(CallId, Box<Authorization>), JoinError>),
    Answered(Result<Box<Answered>, JoinError>),
    Call(CallEvent),
}

impl TurnTasks {
    /// The next result; pending while no task runs. Cancel-safe.
    pub(super) async fn next(&mut self) -> TurnEvent {
        tokio::select! {
            biased;
            Some(outcome) = self.gates.join_next() => TurnEvent::Gated(outcome),
            Some(reviewed) = self.reviews.join_next() => TurnEvent::Reviewed(reviewed),
            Some(judged) = self.judges.join_next() => TurnEvent::Judged(judged),
            Some(answered) = self.answers.join_next() => TurnEvent::Answered(answered),
            event = self.calls.next() => TurnEvent::Call(event),
        }
    }
}

impl Running {
    /// Begins a turn that takes these inputs, or that goes on with the calls that wait for a person.
    pub(super) fn start(
        core: &mut Core,
        history: History,
        notes: Vec<SystemItem>,
        inputs: &[InputId],
        limits: RunLimits,
    ) -> Self {
        core.pending.turn_began();
        let mut notes: Vec<Note> = notes.into_iter().map(Note::System).collect();
        let queued = || {
            inputs
                .iter()
                .filter_map(|input| core.state.queued.get(*input))
        };
        notes.extend(queued().map(Note::from));
        let command =
            queued().find_map(|input| person_command::call(&core.permission.policy.terms, input));
        let answers = TurnLimits {
            argument_bytes: MAX_ARGUMENTS,
            all_argument_bytes: MAX_CALLS,
            text_bytes: MAX_ANSWER,
            ..TurnLimits::steps(limits.max_steps)
        };
        let generation = history.surface().generation;
        let mut taking = inputs.to_vec();
        let own = inputs.len();
        taking.extend(core.state.continued().map(|before| before.input));
        let parked: BTreeSet<CallId> = core.state.parked().collect();
        let is_command =
            command.is_some() || core.state.continued().is_some_and(|before| before.run);
        let (turn, deferred) = match (parked.is_empty(), command) {
            (true, Some(call)) => (Turn::start_call(history, notes, call, answers), Vec::new()),
            (true, None) => (Turn::start(history, notes, answers), Vec::new()),
            (false, _) if is_command => (
                Turn::go_on(history, parked.clone(), answers).ending_with_calls(),
                notes,
            ),
            (false, _) => (Turn::go_on(history, parked.clone(), answers), notes),
        };
        let number = core.state.turns + 1;
        let before = core.state.spent();
        let mut running = Self::of(core, turn, (number, generation), before, limits);
        for call in parked {
            // What it touches is not in the log.
            running.tasks.calls.order.add(call, Claims::All);
        }
        Self {
            deferred,
            taking,
            own,
            is_command,
            ..running
        }
    }

    /// The newest turn, which has ended: the process ended before the gates at its end had answered.
    pub(super) fn ended(
        core: &Core,
        history: History,
        outcome: Outcome,
        limits: RunLimits,
    ) -> Self {
        let numbers = (core.state.turns, history.surface().generation);
        let mut running = Self::of(
            core,
            Turn::ended(history),
            numbers,
            core.state.turn_began,
            limits,
        );
        running.answering.paused.clone_from(&core.state.pause_due);
        (running.stage, running.reopened) = (TurnStage::Settling(outcome), true);
        running
    }

    fn of(
        core: &Core,
        turn: Turn,
        (number, generation): (u64, u64),
        before: Spent,
        limits: RunLimits,
    ) -> Self {
        let budget = Budget::new(core.price, before.cost.unwrap_or_default());
        let info = TurnInfo {
            number,
            generation,
            budget,
            cancelled_by: None,
            end_gates: false,
            used_up: None,
            view: core.state.shown.view,
        };
        let gates = JoinSet::new();
        let reviews = JoinSet::new();
        let judges = JoinSet::new();
        let answers = JoinSet::new();
        let tasks = TurnTasks {
            gates,
            reviews,
            judges,
            answers,
            calls: Calls::new(),
        };
        Self {
            turn,
            turn_span: info_span!("turn", turn = info.number, outcome = Empty),
            info,
            limits,
            pod_limits: core.pod_limits,
            stage: TurnStage::Machine,
            stream: None,
            backoff: ModelBackoff::default(),
            answering: Answering::default(),
            tasks,
            authorizer: Authorizer::new(core, generation),
            starting: 0,
            asking: 0,
            answered: BTreeSet::new(),
            deferred: Vec::new(),
            before,
            cancelled: false,
            is_command: false,
            result: None,
            reopened: false,
            holds: false,
            view_change: ViewChange::default(),
            taking: Vec::new(),
            own: 0,
            step_span: Span::none(),
        }
    }

    /// Proceeds as far as it can without waiting. Returns whether the turn is over and all its commits have ended.
    pub(super) fn advance(&mut self, core: &mut Core) -> Result<bool, Fatal> {
        while matches!(self.stage, TurnStage::Machine) {
            let Some(effect) = self.turn.poll() else {
                self.record_view(core)?;
                self.tasks
                    .calls
                    .fill(core, self.limits.tool_concurrency, &self.step_span);
                return if core.callbacks.stuck() >= MAX_STUCK {
                    Err(Fatal::Stuck)
                } else {
                    Ok(false)
                };
            };
            if let Some(outcome) = self.perform(core, effect)? {
                core.collect(&|_| false);
                self.stage = TurnStage::Settling(outcome);
            }
        }
        if let TurnStage::Settling(outcome) = &self.stage {
            core.write_out();
            if core.pipeline.is_empty() {
                let outcome = outcome.clone();
                self.stage = self.ask_end_gates(core, outcome);
            }
        }
        if matches!(self.stage, TurnStage::Answered(..)) && !core.pipeline.changes_queue() {
            self.end_gates_answered(core);
        }
        Ok(matches!(self.stage, TurnStage::Over(..)))
    }

    /// The sources of events that the turn waits for: its tasks and the model's stream.
    pub(super) fn parts(&mut self) -> (Option<&mut TurnTasks>, Option<&mut Stream>) {
        (Some(&mut self.tasks), self.stream.as_mut())
    }

    /// Whether requests of features may be read in this stage.
    pub(super) fn accepts_feature_requests(&self) -> bool {
        !matches!(self.stage, TurnStage::Settling(_))
    }

    /// Whether the disk refused a commit of the turn.
    pub(super) fn suspended(&self) -> bool {
        self.turn.suspended()
    }

    /// Retries the turn's refused commit.
    pub(super) fn resume(&mut self) -> Result<(), Fatal> {
        if self.turn.suspended() {
            Ok(self.turn.handle(Input::Resume)?)
        } else {
            Ok(())
        }
    }

    /// The inputs that the turn is taking, took, or goes on with.
    pub(super) fn taking(&self) -> &[InputId] {
        &self.taking
    }

    /// The inputs that it began with.
    pub(super) fn own(&self) -> &[InputId] {
        self.taking.get(..self.own).unwrap_or_default()
    }

    /// Whether the items that it began with are in the log.
    pub(super) fn delivered(&self) -> bool {
        self.deferred.is_empty() && !self.reopened
    }

    /// What the turn does, for people.
    pub(super) fn activity(&self, core: &Core) -> Activity {
        if (self.turn.is_held() || self.waits_for_model()) && self.holds {
            return Activity::Paused {
                turn: self.info.number,
            };
        }
        let turn = self.info.number;
        let requests = core.state.spent().since(self.before).requests;
        if self.is_waiting() {
            Activity::Waiting { turn, requests }
        } else {
            Activity::Working { turn, requests }
        }
    }

    /// Whether an early end was asked for.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Ends the turn in good order, unless it ends already. The first client that asks for it is recorded.
    pub(super) fn cancel(&mut self, by: Option<Who>) -> Result<(), Fatal> {
        if !self.cancelled {
            self.info.cancelled_by = by;
        }
        self.end_early(Input::Cancel)
    }

    /// As [`Self::cancel`], and the next start goes on with this turn.
    pub(super) fn leave(&mut self) -> Result<(), Fatal> {
        self.end_early(Input::Leave)
    }

    fn end_early(&mut self, how: Input<Journaled>) -> Result<(), Fatal> {
        self.cancelled = true;
        match (&self.stage, &mut self.view_change) {
            // The history of the turn is being encoded again.
            (TurnStage::Machine, ViewChange::Recording(ends)) => {
                *ends = Some(Box::new(how));
                Ok(())
            }
            (TurnStage::Machine, change) => {
                if matches!(change, ViewChange::Wanted | ViewChange::Asking) {
                    *change = ViewChange::Settled;
                }
                Ok(self.turn.handle(how)?)
            }
            (
                TurnStage::Settling(_)
                | TurnStage::Asking(_)
                | TurnStage::Answered(..)
                | TurnStage::Noting(..)
                | TurnStage::Over(..),
                _,
            ) => Ok(()),
        }
    }

    /// A commit of this turn is durable, or the disk refused it.
    pub(super) fn commit_ended(
        &mut self,
        core: &mut Core,
        result: CommitResult,
    ) -> Result<(), Fatal> {
        match result {
            CommitResult::Durable(ack) => self.turn.handle(Input::Committed(ack))?,
            CommitResult::Refused(request) => self.turn.handle(Input::Refused(request))?,
            CommitResult::Again(request) => {
                self.turn.handle(Input::Refused(request))?;
                self.turn.handle(Input::Resume)?;
            }
            CommitResult::Unstorable(request, reason) => self.unstorable(request, reason)?,
            CommitResult::ActorRefused(_, _, reason) => {
                let text = format!(
                    "the verdicts of gates at the end of the turn could not be stored: {reason}"
                );
                core.outbox.show(Event::warning(text));
                self.end_gates_noted(core, false);
            }
            CommitResult::Actor(ActorCommit::View) => self.view_changed(core)?,
            CommitResult::Actor(_) => self.end_gates_noted(core, true),
        }
        Ok(())
    }

    /// A commit of this turn can never be stored: the turn ends without it.
    fn unstorable(
        &mut self,
        request: CommitRequest<Journaled>,
        reason: String,
    ) -> Result<(), Fatal> {
        let answered = |fact: &Fact<Journaled>| {
            if let Fact::Response { usage, .. } = fact {
                Some(*usage)
            } else {
                None
            }
        };
        let usage = request.facts().iter().find_map(answered);
        let what = if usage.is_some() {
            ANSWER_NOT_STORED
        } else {
            "the journal cannot store this"
        };
        let reason = format!("{what}: {reason}");
        match self.turn.handle(Input::Unstorable {
            request,
            reason: reason.clone(),
        }) {
            Ok(()) => {}
            Err(IllegalInput::EndUnstorable) => return Err(Fatal::Unstorable(reason)),
            Err(bug) => return Err(bug.into()),
        }
        usage
            .into_iter()
            .for_each(|usage| self.info.budget.answer_lost(usage));
        Ok(())
    }

    pub(super) fn task_result(&mut self, core: &mut Core, result: TurnEvent) -> Result<(), Fatal> {
        match result {
            TurnEvent::Gated(gates) => {
                if let TurnStage::Asking(outcome) = &self.stage {
                    self.stage = TurnStage::Answered(outcome.clone(), gates?);
                } else {
                    self.request_gates_answered(core, &gates?)?;
                }
            }
            TurnEvent::Reviewed(reviewed) => self.reviewed(core, reviewed?)?,
            TurnEvent::Judged(judged) => {
                let (id, judged) = judged?;
                let judged = judged.within(&mut self.starting, core.registry.redactor());
                let judged = judged.within_open(&mut self.asking, MAX_OPEN_APPROVALS);
                if let Some(claims) = judged.claims() {
                    self.tasks.calls.order.add(id, claims.clone());
                }
                self.turn.handle(judged.into_input(id))?;
            }
            TurnEvent::Answered(answered) => self.answered(*answered?)?,
            TurnEvent::Call(CallEvent::Done(done)) => {
                (core.store.probe)("tool:ended");
                self.done(*done)?;
            }
            TurnEvent::Call(CallEvent::Broken(broken)) => return Err(broken.into()),
        }
        Ok(())
    }

    pub(super) fn streamed(&mut self, core: &mut Core, event: StreamEvent) -> Result<(), Fatal> {
        match event {
            StreamEvent::Event(event) => {
                (core.store.probe)("stream");
                if let ModelEvent::Notice(words) = event {
                    core.outbox.show(Event::warning(words));
                    return Ok(());
                }
                self.backoff.take(&event, (core.store.clock)());
                let again = matches!(event, ModelEvent::Retrying { .. });
                if let ModelEvent::Retrying { attempt, delay, .. } = &event {
                    warn!(parent: &self.step_span, attempt, ?delay, "the request failed and is sent again");
                }
                let Some(event) = self.review(core, event) else {
                    return Ok(());
                };
                self.info.budget.count(&event);
                self.turn.handle(Input::Model(event))?;
                if let Some(stop) = self.spent_limit(core).filter(|_| again) {
                    self.stream = None;
                    self.give_up(self.limit_reached(core, &stop))?;
                }
            }
            StreamEvent::Whole => {
                self.stream = None;
                debug!(parent: &self.step_span, "the response is complete");
            }
            StreamEvent::Failed(error) => {
                self.stream = None;
                self.backoff.attempt_ended();
                warn!(parent: &self.step_span, kind = ?error.kind, "the request failed");
                self.failed(core, error)?;
            }
        }
        Ok(())
    }

    fn done(&mut self, Done { id, outcome, ended }: Done) -> Result<(), Fatal> {
        Ok(self.turn.handle(Input::ToolDone {
            id,
            outcome,
            ending: ended,
        })?)
    }

    /// Handles a wakeup of the mailbox.
    pub(super) fn wake(&self, core: &mut Core, wakeup: Wakeup) {
        core.wake(wakeup, &|call| self.tasks.calls.runs(call));
    }

    /// Performs one effect, or starts what will perform it.
    fn perform(
        &mut self,
        core: &mut Core,
        effect: Effect<Journaled>,
    ) -> Result<Option<Outcome>, Fatal> {
        match effect {
            Effect::Gate => self.gate(core)?,
            Effect::Commit(request) => {
                let calls = &self.tasks.calls;
                let approval = core.state.approvals.newest + 1;
                core.collect(&|call| calls.runs(call));
                self.info.used_up = self.used_up(core, &request);
                self.info.end_gates = self.any_end_gate(core) || self.answering.paused.is_some();
                let result = self.is_command.then_some(&mut self.result);
                core.append_of_turn(|piggybacked| {
                    let batch = Batch::of_turn(request, &self.info, approval, piggybacked);
                    if let (Some(result), Some(new)) = (result, batch.result()) {
                        *result = Some(Arc::new(new.clone()));
                    }
                    batch
                });
            }
            Effect::Send(request) => {
                (self.starting, self.asking, self.view_change) = (0, 0, ViewChange::Open);
                let number = request.number();
                let bytes = request.body().len;
                // The span of the previous request must end first.
                self.step_span = Span::none();
                self.step_span =
                    info_span!(parent: &self.turn_span, "step", request = number, bytes);
                self.answering.drop_answer();
                self.stream = Some(Stream::of(core.model.clone(), request, &core.store.blobs));
            }
            Effect::Delta(delta) => {
                let turn = self.info.number;
                let request = core.state.requests;
                core.outbox.show(Event::Delta {
                    turn,
                    request,
                    delta,
                });
            }
            Effect::Judge(call) => self.judge(core, call),
            Effect::Run(run) => self.tasks.calls.wait(run.id(), run.into_start()),
            Effect::CancelModel => {
                (self.stream, self.backoff) = (None, ModelBackoff::default());
                self.answering.drop_answer();
                self.tasks.reviews = JoinSet::new();
                self.info.budget.attempt_failed();
            }
            Effect::CancelTool(id) => {
                if let Some(done) = self.tasks.calls.cancel(id) {
                    self.done(done)?;
                }
            }
            Effect::Finished(outcome) => return Ok(Some(outcome)),
        }
        Ok(None)
    }

    fn judge(&mut self, core: &Core, call: CallView) {
        // Before a request, the project is looked at then.
        if self.is_command
            && let Err(replaced) = core.permission.workspace.check_roots()
        {
            let stopped = Authorization::project_replaced(replaced.to_string());
            self.tasks
                .judges
                .spawn(async move { (call.id, Box::new(stopped)) });
            return;
        }
        let authorizer = self
            .authorizer
            .with_rules(&core.state.approvals.rules)
            .on(core.state.going_on, core.state.turns);
        let id = call.id;
        self.tasks
            .judges
            .spawn(async move { (id, Box::new(authorizer.judge(call).await)) });
    }

    /// The history, the end of the turn and the input with which it goes on, once it is over.
    pub(super) fn finish(self, core: &Core) -> Result<(History, TurnEnd, Option<InputId>), Fatal> {
        let TurnStage::Over(outcome, after) = &self.stage else {
            return Err(Fatal::Journal("the turn did not end".to_owned()));
        };
        let AfterTurn {
            paused,
            again,
            limit,
        } = after.clone();
        self.turn_span.record("outcome", outcome.word());
        let end = self.end(core, limit.unwrap_or_else(|| outcome.clone()), paused);
        let history = self
            .turn
            .finish()
            .map_err(|_open| Fatal::Journal("the turn did not end".to_owned()))?;
        Ok((history, end, again))
    }

    /// How the turn stands, for clients that wait for its end.
    fn end(&self, core: &Core, outcome: Outcome, paused: Option<String>) -> TurnEnd {
        let state = &core.state;
        let Spent {
            requests,
            usage,
            cost,
            wall_us: _,
        } = state.spent().since(self.before);
        TurnEnd {
            outcome,
            held: state
                .held
                .clone()
                .filter(|hold| hold.budget.is_some())
                .map(Box::new),
            paused,
            answer: state.last_answer.clone(),
            refused: state.refused.clone(),
            shortfall: state.shortfall,
            steps: requests,
            usage,
            cost,
            result: self.result.clone(),
        }
    }

    /// For a pod that cannot continue: nothing more starts, and child processes are ended.
    pub(super) async fn abandon(mut self, core: &mut Core) {
        self.stream = None;
        self.tasks.calls.end();
        core.drain().await;
        core.pending.shut();
        self.tasks.calls.ended().await;
    }
}
