//! The one task that owns a pod. It reads the commands of clients and the requests of features, takes inputs
//! through turns one after the other, and releases the session at the end. Between turns and in them it waits in
//! one place.
//!
//! ```text
//!   clients ───> commands ─┐                              ┌─> journal ─> fold ─> watchers
//!   features ──> mailbox ──┼─> Actor: At::Idle ⇄ At::Turn ┤
//!   gates, calls, stream ──┘                              └─> callback threads, model
//! ```
//!
//! It never runs code of features, tools or models: those answer through channels. Does not depend on sockets or
//! terminals.

mod closing;
mod commands;
mod turns;

use super::call::approvals::{ApprovalEnds, ApprovalReplies};
use super::client::between_turns::TurnBlock;
use super::client::{Client, Command, Reply, client};
use super::commit::Batch;
use super::core::{Core, Fatal};
use super::limits::RunLimits;
use super::pipeline::{ActorCommit, CommitResult};
use super::queue::submission::{Prepared, Submissions};
use super::queue::{self, TakeRule};
use super::tasks::{TaskEvent, Tasks};
use super::turn::stream::{Stream, StreamEvent};
use super::turn::{Running, TurnEvent, TurnTasks};
use crate::mailbox::requests::Wakeup;
use crate::record::{InputId, Record, SystemItem};
use crate::session::fold::{EndVerdict, SessionState};
use closing::Closing;
use llm_worker::history::History;
use session_store::{Committed, Refused};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// The use of grants is journaled again at the first turn after this time.
const GRANTS_EVERY: Duration = Duration::from_secs(60 * 60);

/// An open pod. The host creates it with its [`Client`]; it does nothing until [`run`](Self::run) is polled.
pub struct Actor {
    core: Core,
    at: At,
    commands: mpsc::Receiver<Command>,
    /// Whether any client still exists.
    asked: bool,
    preamble: Preamble,
    submissions: Submissions,
    tasks: Tasks,
    answers: ApprovalReplies,
    approval_ends: ApprovalEnds,
    /// The clients that wait for an [`ActorCommit::Client`], in the order of the commits.
    replies: VecDeque<Reply<()>>,
    turn_block: TurnBlock,
    /// Limits of a turn whose input sets none.
    limits: RunLimits,
    /// The gates at the end of the newest turn were not asked before the pod was opened.
    owes_end_gates: bool,
    /// The newest input that existed when the pod was opened.
    opened_at: InputId,
    closing: Closing,
    observer_flush: JoinSet<()>,
    grants_written: Instant,
}

/// What a start leaves for the actor. The records are committed with the first input, in one flush; the model gets the
/// notes in the first turn.
pub(crate) struct Preamble {
    pub(crate) records: Vec<Record>,
    /// Until a turn has delivered them.
    pub(crate) notes: Vec<SystemItem>,
    /// Describes date, directory and git state as each turn begins; the model is informed if the text changed.
    pub(crate) environment: Box<dyn Fn() -> String + Send>,
}

/// The end of a pod, for the program that ran it.
pub struct ActorEnd {
    pub state: SessionState,
    /// The reason why the pod could not continue; `Ok` after an orderly stop. Committed records are on disk in both
    /// cases.
    pub result: Result<(), Fatal>,
}

enum At {
    Idle(Box<History>),
    Turn(Box<Running>),
    /// While the actor changes from one to the other; never while it waits.
    Between,
}

/// An event that the actor waits for.
enum DriverEvent {
    Cancelled,
    Committed(Result<Committed<Batch>, Refused<Batch>>),
    Asked(Option<Command>),
    Prepared(Result<Prepared, JoinError>),
    Task(TurnEvent),
    Wakeup(Wakeup),
    Background(TaskEvent),
    TaskDue,
    Stream(StreamEvent),
    ObserversFlushed(Result<(), JoinError>),
    Retry,
    TurnBlockEnded,
    SendAgain,
    ApprovalEnded,
    Shown,
}

impl Actor {
    pub(crate) fn new(
        core: Core,
        history: History,
        preamble: Preamble,
        limits: RunLimits,
    ) -> (Self, Client) {
        let (client, commands) = client(&core, limits);
        let opened_at = core.state.inputs;
        let owes_end_gates = core.state.end_verdict == EndVerdict::Due;
        let tasks = Tasks::new(&core);
        let actor = Self {
            core,
            tasks,
            at: At::Idle(Box::new(history)),
            commands,
            asked: true,
            preamble,
            submissions: Submissions::default(),
            answers: ApprovalReplies::default(),
            approval_ends: ApprovalEnds::default(),
            replies: VecDeque::new(),
            turn_block: TurnBlock::default(),
            limits,
            owes_end_gates,
            opened_at,
            closing: Closing::Open,
            observer_flush: JoinSet::new(),
            grants_written: Instant::now(),
        };
        (actor, client)
    }

    /// Runs until a client closes the pod, or no client is left. `cancel` ends turns in good order.
    pub async fn run(mut self, cancel: CancellationToken) -> ActorEnd {
        let result = contained(self.work(&cancel)).await;
        // Clients get an error at once.
        let Self {
            mut core,
            at,
            commands,
            submissions,
            answers,
            replies,
            closing,
            ..
        } = self;
        drop((commands, submissions, answers, replies));
        match &result {
            Ok(()) => core.pending.close(),
            Err(fatal) => {
                // Its text may be a panic's, which can quote what was being worked on.
                error!(kind = ?fatal.kind(), "the pod cannot continue");
                if let At::Turn(turn) = at {
                    turn.abandon(&mut core).await;
                }
                // If the last record does not fit, the log stays as it is: the next start finds no `host_stopped`.
                core.give_up(fatal, !matches!(closing, Closing::Stopping))
                    .await;
            }
        }
        // The lock is released first: a slow watcher must not keep other processes out.
        core.store.journal.close();
        core.outbox.drain().await;
        core.registry.hooks().flush_observers().await;
        ActorEnd {
            state: core.state,
            result,
        }
    }

    async fn work(&mut self, cancel: &CancellationToken) -> Result<(), Fatal> {
        self.begin();
        loop {
            self.advance()?;
            if matches!(self.closing, Closing::Stopped) {
                return Ok(());
            }
            let event = self.next(cancel).await;
            self.take(event)?;
        }
    }

    /// A pod that stays has no first input that its start could be committed with.
    fn begin(&mut self) {
        if self.core.stays {
            let records = std::mem::take(&mut self.preamble.records);
            self.core.append_actor_commit(ActorCommit::Start, records);
        }
    }

    /// Proceeds as far as it can without waiting.
    fn advance(&mut self) -> Result<(), Fatal> {
        let taking = match &self.at {
            At::Turn(turn) => turn.taking(),
            At::Idle(_) | At::Between => &[],
        };
        // What a client asks for is not done before the start is in the log, and not while a hold is on its way there.
        if !self.starts() && !self.core.pipeline.changes_queue() {
            self.submissions
                .advance(&mut self.core, &mut self.preamble.records, taking);
        }
        loop {
            self.answer()?;
            if self.owes_end_gates && self.may_begin() {
                self.ask_end_gates();
            }
            match &mut self.at {
                At::Turn(turn) => match turn.advance(&mut self.core)? {
                    true => self.end_turn()?,
                    false => break,
                },
                At::Idle(_) => match self.next_turn() {
                    Some(_) if self.hold_at_budget() => break,
                    Some(inputs) => self.begin_turn(&inputs)?,
                    None => break,
                },
                At::Between => break,
            }
        }
        self.ask()?;
        let rests = match &self.at {
            At::Idle(_) => true,
            At::Turn(turn) => turn.is_waiting() || turn.waits_for_model(),
            At::Between => false,
        };
        let waits = self.core.stays && rests && self.core.pipeline.is_empty();
        if waits {
            self.core.collect(&|_| false);
        }
        if !self.starts() && !matches!(self.closing, Closing::Stopping | Closing::Stopped) {
            self.tasks.advance(&mut self.core);
        }
        if waits {
            // No commit may come for days.
            self.core.write_out();
        }
        self.close();
        Ok(())
    }

    /// Denies what nobody answered in time, then hands the answers of people to the turn.
    fn answer(&mut self) -> Result<(), Fatal> {
        let Self {
            core,
            at,
            answers,
            approval_ends,
            ..
        } = self;
        let At::Turn(turn) = at else { return Ok(()) };
        let ended = approval_ends.ended(&turn.unanswered(core), &core.store.clock);
        ended.iter().try_for_each(|asked| turn.expire(asked))?;
        let due = answers.due(&core.state);
        due.into_iter()
            .try_for_each(|(approval, answer)| turn.answer(core, approval, answer))
    }

    /// The turn waits for a person: clients that want to know are told. A pod that closes waits neither for a person nor
    /// for a model that cannot be reached.
    fn ask(&mut self) -> Result<(), Fatal> {
        let Self {
            core,
            at,
            submissions,
            closing,
            ..
        } = self;
        let At::Turn(turn) = at else { return Ok(()) };
        if turn.is_waiting() {
            submissions.asked(|| turn.waiting(core));
        } else if !turn.waits_for_model() {
            return Ok(());
        }
        if matches!(closing, Closing::Asked(_)) && !turn.is_cancelled() {
            turn.leave()?;
            turn.advance(core)?;
        }
        Ok(())
    }

    /// Whether the records of the start are on their way.
    fn starts(&self) -> bool {
        self.core.pipeline.starts()
    }

    /// Whether a turn may begin, as far as the pod is open and the log is not about to change what is due.
    fn may_begin(&self) -> bool {
        let Core {
            pipeline, stays, ..
        } = &self.core;
        // A start that no input has recorded yet.
        let is_unrecorded = !stays && !self.preamble.records.is_empty();
        // What waits when the pod closes is kept for the next start.
        let is_open = !is_unrecorded
            && matches!(self.closing, Closing::Open)
            && !self.turn_block.is_active()
            && !self.starts();
        is_open && !pipeline.changes_queue()
    }

    /// The inputs of the turn that begins now; none if no turn begins.
    fn next_turn(&self) -> Option<Vec<InputId>> {
        let Core { state, stays, .. } = &self.core;
        if !self.may_begin() {
            return None;
        }
        let opened_at = if self.submissions.takes_over() {
            0
        } else {
            self.opened_at
        };
        let goes_on = self.submissions.waits_for_interrupted(state);
        queue::next_turn(
            state,
            if *stays {
                TakeRule::Stay
            } else {
                TakeRule::Run { opened_at, goes_on }
            },
        )
    }

    /// Waits for the next event. Every branch is cancel-safe.
    async fn next(&mut self, cancel: &CancellationToken) -> DriverEvent {
        let Self {
            core,
            at,
            commands,
            asked,
            submissions,
            tasks: background,
            turn_block,
            closing,
            observer_flush,
            approval_ends,
            ..
        } = self;
        let room = !core.outbox.is_full();
        let behind = !core.outbox.is_empty();
        let mut accepts_requests = core.accepts_feature_requests();
        let mut suspended = false;
        let mut cancellable = false;
        let mut tasks = None;
        let mut stream = None;
        let mut approval_at = None;
        let mut model_at = None;
        match at {
            At::Turn(turn) => {
                accepts_requests &= turn.accepts_feature_requests();
                suspended = turn.suspended();
                cancellable = !turn.is_cancelled();
                model_at = turn.retry_at();
                (tasks, stream) = turn.parts();
                approval_at = approval_ends.look_at(&core.store.clock);
            }
            // Nothing may follow the last record.
            At::Idle(_) | At::Between => accepts_requests &= !matches!(closing, Closing::Stopping),
        }
        let retry_at = core.pipeline.retry_at(suspended);
        let task_at = background.look_at(&core.store.clock);
        let Core {
            pipeline,
            pending,
            outbox,
            ..
        } = core;
        tokio::select! {
            biased;
            () = cancel.cancelled(), if cancellable => DriverEvent::Cancelled,
            done = pipeline.front() => DriverEvent::Committed(done),
            command = commands.recv(), if *asked => DriverEvent::Asked(command),
            () = turn_block.released() => DriverEvent::TurnBlockEnded,
            prepared = submissions.next() => DriverEvent::Prepared(prepared),
            result = task_result(tasks) => DriverEvent::Task(result),
            event = background.next() => DriverEvent::Background(event),
            wakeup = pending.next(), if accepts_requests => DriverEvent::Wakeup(wakeup),
            event = streamed(stream), if room => DriverEvent::Stream(event),
            Some(flushed) = observer_flush.join_next() => DriverEvent::ObserversFlushed(flushed),
            () = outbox.progress(), if behind => DriverEvent::Shown,
            () = sleep_until(retry_at) => DriverEvent::Retry,
            () = sleep_until(model_at) => DriverEvent::SendAgain,
            () = sleep_until(task_at) => DriverEvent::TaskDue,
            () = sleep_until(approval_at) => DriverEvent::ApprovalEnded,
        }
    }

    fn take(&mut self, event: DriverEvent) -> Result<(), Fatal> {
        let Self {
            core,
            at,
            submissions,
            preamble,
            ..
        } = self;
        match (event, at) {
            (DriverEvent::Committed(done), _) => {
                let accepted = core.state.inputs;
                let result = core.commit_ended(done)?;
                let is_new = core.state.inputs > accepted;
                self.committed(result)?;
                // Whoever sends an input is there to wait for its answer.
                if let (true, At::Turn(turn)) = (is_new, &mut self.at) {
                    turn.try_now()?;
                }
            }
            (DriverEvent::Cancelled, At::Turn(turn)) => turn.cancel(None)?,
            (DriverEvent::Asked(Some(command)), _) => self.asked(command)?,
            (DriverEvent::Asked(None), _) => {
                self.asked = false;
                self.closing.ask("no client is left".to_owned());
            }
            (DriverEvent::Prepared(prepared), at) => {
                let taking = match at {
                    At::Turn(turn) => turn.taking(),
                    At::Idle(_) | At::Between => &[],
                };
                submissions.prepared(core, &mut preamble.records, taking, prepared?);
            }
            (DriverEvent::ObserversFlushed(flushed), _) => {
                flushed?;
                self.stop();
            }
            (DriverEvent::Background(event), _) => self.tasks.take(core, event)?,
            (DriverEvent::TaskDue, _) => self.tasks.woke(core),
            (DriverEvent::Wakeup(wakeup), At::Turn(turn)) => turn.wake(core, wakeup),
            (DriverEvent::Wakeup(wakeup), _) => core.wake(wakeup, &|_| false),
            (DriverEvent::Retry, at) => {
                core.append_held();
                if let At::Turn(turn) = at {
                    turn.resume()?;
                }
            }
            (DriverEvent::SendAgain, At::Turn(turn)) => turn.try_now()?,
            (DriverEvent::Task(result), At::Turn(turn)) => turn.task_result(core, result)?,
            (DriverEvent::Stream(event), At::Turn(turn)) => turn.streamed(core, event)?,
            (
                DriverEvent::Cancelled
                | DriverEvent::TurnBlockEnded
                | DriverEvent::ApprovalEnded
                | DriverEvent::Shown,
                _,
            )
            | (
                DriverEvent::Task(_) | DriverEvent::Stream(_) | DriverEvent::SendAgain,
                At::Idle(_) | At::Between,
            ) => {}
        }
        Ok(())
    }

    /// A commit has ended. What was folded may begin or end a hold, and take inputs.
    fn committed(&mut self, result: Option<CommitResult>) -> Result<(), Fatal> {
        let Self {
            core,
            at,
            submissions,
            preamble,
            replies,
            tasks,
            answers,
            ..
        } = self;
        answers.recorded(&core.state.approvals);
        match (result, &mut *at) {
            (Some(CommitResult::Actor(ActorCommit::Queue)), _) => submissions.commit_ended(),
            (Some(CommitResult::Actor(ActorCommit::Client)), _) => {
                replies.pop_front().map(|reply| reply.send(Ok(())));
            }
            (Some(CommitResult::ActorRefused(ActorCommit::Client, _, error)), _) => {
                replies.pop_front().map(|reply| reply.send(Err(error)));
            }
            (Some(CommitResult::ActorRefused(ActorCommit::Queue, records, error)), _) => {
                submissions.commit_refused(error, records, &mut preamble.records);
            }
            (Some(CommitResult::Actor(ActorCommit::Task(commit))), _) => {
                tasks.committed(core, commit, true)
            }
            (Some(CommitResult::ActorRefused(ActorCommit::Task(commit), ..)), _) => {
                tasks.committed(core, commit, false)
            }
            (Some(CommitResult::Actor(ActorCommit::Stop)), _) => self.closing = Closing::Stopped,
            (Some(result), At::Turn(turn)) => turn.commit_ended(core, result)?,
            (Some(_) | None, _) => {}
        }
        if let At::Turn(turn) = at {
            let state = &core.state;
            let taken = turn
                .taking()
                .iter()
                .copied()
                .filter(|input| state.queued.get(*input).is_none());
            submissions.taken(taken);
            turn.hold(state.held.is_some())?;
        }
        Ok(())
    }
}

/// Runs the work of the actor; a panic in it is an error. One that carries no text is none of this program's.
async fn contained(work: impl Future<Output = Result<(), Fatal>>) -> Result<(), Fatal> {
    let mut work = pin!(work);
    let polled = std::future::poll_fn(|cx| {
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(polled) => polled,
            Err(panic) => match panic
                .downcast_ref::<String>()
                .cloned()
                .or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            {
                Some(text) => std::task::Poll::Ready(Err(Fatal::Panicked(format!(
                    "the pod's own task failed: {text}"
                )))),
                None => resume_unwind(panic),
            },
        }
    });
    polled.await
}

async fn streamed(stream: Option<&mut Stream>) -> StreamEvent {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

async fn task_result(tasks: Option<&mut TurnTasks>) -> TurnEvent {
    match tasks {
        Some(tasks) => tasks.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
