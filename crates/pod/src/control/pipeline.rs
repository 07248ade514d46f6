//! Commits in flight: those of a turn, of the actor, and of requests from features; and the retry after the disk
//! refused one. It knows no turn beyond the part that a commit carries.

use super::commit::{Ack, Batch, Journaled};
use super::core::{Core, DISK_PAUSE, DISK_RETRIES, Fatal};
use crate::mailbox::events::Event;
use crate::mailbox::pending::{MAX_UNCOMMITTED, Piggybacked, resolve_all};
use crate::mailbox::requests::CommitWaiter;
use crate::record::{Record, Resumed};
use llm_worker::turn::CommitRequest;
use session_store::{Commit, Committed, Refusal, Refused};
use std::collections::VecDeque;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, debug_span, info, warn};

/// Commits that only carry what features handed in and may be on their way at once. While there are so many, features
/// wait: they must not keep the turn's own commits from the journal.
const MAX_AHEAD: usize = 2;

/// Commits resolve in the order they were appended.
#[derive(Default)]
pub(crate) struct Pipeline {
    flights: VecDeque<Flight>,
    /// Whether records wait for a commit of their own.
    owed: bool,
    /// Refusals in a row of the turn's commit.
    refusals: u32,
    /// The actor's commits that the disk refused; they are appended again at `retry_at`.
    held: Vec<Held>,
    retry_at: Option<Instant>,
}

struct Flight {
    commit: Commit<Batch>,
    part: CommitPart,
    /// Ends with the commit, in the log of the host.
    span: Span,
    waiters: Vec<Box<dyn CommitWaiter>>,
}

struct Held {
    batch: Batch,
    part: ActorPart,
    waiters: Vec<Box<dyn CommitWaiter>>,
}

/// What a commit carries besides what features handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitPart {
    Nothing,
    Turn,
    Actor(ActorPart),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ActorPart {
    commit: ActorCommit,
    /// Records of features in front of it.
    piggybacked: usize,
    refusals: u32,
}

/// The reason for a commit of the actor that belongs to no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActorCommit {
    /// Records that recovery adds to a log whose host did not stop.
    Repair,
    Input,
    TurnEnd,
    Stop,
}

/// The end of a commit that the turn or the actor waits for.
pub(super) enum CommitResult {
    Durable(Ack),
    /// The turn must commit its part again.
    Refused(CommitRequest<Journaled>),
    Actor(ActorCommit),
}

impl Pipeline {
    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty() && self.held.is_empty()
    }

    /// The oldest commit's end; pending while there is none. Cancel-safe.
    pub(super) async fn front(&mut self) -> Result<Committed<Batch>, Refused<Batch>> {
        match self.flights.front_mut() {
            Some(flight) => (&mut flight.commit).await,
            None => std::future::pending().await,
        }
    }

    /// When a refused commit is tried again; none while none is held here or by the turn (`suspended`).
    pub(super) fn retry_at(&self, suspended: bool) -> Option<Instant> {
        self.retry_at.filter(|_| suspended || !self.held.is_empty())
    }

    fn ahead(&self) -> usize {
        self.flights.iter().filter(|flight| flight.part == CommitPart::Nothing).count()
    }
}

impl Core {
    /// Whether requests of features may be read: there is room for their records and their events.
    pub(super) fn accepts_feature_requests(&self) -> bool {
        (self.pipeline.ahead() < MAX_AHEAD || self.pending.waiting() < MAX_UNCOMMITTED) && !self.outbox.is_over()
    }

    /// Appends the turn's commit, with what waits as far as it has room for it.
    pub(super) fn append_of_turn(&mut self, of: impl FnOnce(Vec<Record>) -> Batch) {
        let Piggybacked { records, waiters } = self.pending.piggybacked();
        self.append(of(records), CommitPart::Turn, waiters);
        self.pipeline.owed |= self.pending.waiting() > 0;
    }

    /// Appends records of the actor's own, behind everything that waits.
    pub(super) fn append_actor_commit(&mut self, commit: ActorCommit, mut records: Vec<Record>) {
        loop {
            let Piggybacked { records: mut all, waiters } = self.pending.piggybacked();
            if self.pending.waiting() == 0 {
                let piggybacked = all.len();
                all.append(&mut records);
                return self.append(
                    Batch::of(all),
                    CommitPart::Actor(ActorPart { commit, piggybacked, refusals: 0 }),
                    waiters,
                );
            }
            self.append(Batch::of(all), CommitPart::Nothing, waiters);
        }
    }

    /// Commits records before anybody else can ask for anything.
    ///
    /// # Errors
    /// The journal refused, or they do not fold.
    pub(crate) async fn repair(&mut self, records: Vec<Record>) -> Result<(), Fatal> {
        self.append_actor_commit(ActorCommit::Repair, records);
        while !self.pipeline.is_empty() {
            if self.pipeline.flights.is_empty() {
                tokio::time::sleep(DISK_PAUSE).await;
                self.append_held();
            }
            let done = self.pipeline.front().await;
            self.commit_ended(done)?;
        }
        Ok(())
    }

    fn append(&mut self, batch: Batch, part: CommitPart, waiters: Vec<Box<dyn CommitWaiter>>) {
        self.announce(batch.records());
        let (records, first) = (batch.records().len(), batch.records().first().map_or("", Record::kind));
        let span = debug_span!("commit", records, first, refused = Empty);
        let commit = self.store.journal.append(batch);
        self.pipeline.flights.push_back(Flight { commit, part, span, waiters });
    }

    /// Appends again what the disk refused of the actor's own.
    pub(super) fn append_held(&mut self) {
        for Held { batch, part, waiters } in std::mem::take(&mut self.pipeline.held) {
            self.append(batch, CommitPart::Actor(part), waiters);
        }
    }

    /// Gives what waits commits of its own; as far as there may be more of them.
    pub(super) fn write_out(&mut self) {
        while self.pending.waiting() > 0 && self.pipeline.ahead() < MAX_AHEAD {
            let Piggybacked { records, waiters } = self.pending.piggybacked();
            if !records.is_empty() {
                self.append(Batch::of(records), CommitPart::Nothing, waiters);
            }
        }
        self.pipeline.owed = self.pending.waiting() > 0;
    }

    /// Handles the end of the oldest commit. Returns its result if the turn or the actor waits for it.
    pub(super) fn commit_ended(
        &mut self,
        done: Result<Committed<Batch>, Refused<Batch>>,
    ) -> Result<Option<CommitResult>, Fatal> {
        let Some(Flight { part, waiters, span, commit: _ }) = self.pipeline.flights.pop_front() else {
            return Ok(None);
        };
        span.record("refused", done.is_err());
        drop(span);
        if self.pipeline.owed {
            self.write_out();
        }
        match done {
            Ok(done) => {
                let ack = self.fold(done)?;
                resolve_all(waiters, Ok(()));
                if ack.is_some() && std::mem::take(&mut self.pipeline.refusals) > 0 {
                    info!("the journal takes commits again");
                    // The log says that it could not be written for a while.
                    self.append(Batch::of(vec![Resumed {}.into()]), CommitPart::Nothing, Vec::new());
                }
                Ok(match part {
                    CommitPart::Actor(part) => Some(CommitResult::Actor(part.commit)),
                    CommitPart::Turn | CommitPart::Nothing => ack.map(CommitResult::Durable),
                })
            }
            Err(Refused { batch, why }) => self.refused(batch, &why, part, waiters),
        }
    }

    fn refused(
        &mut self,
        batch: Option<Batch>,
        why: &Refusal,
        part: CommitPart,
        waiters: Vec<Box<dyn CommitWaiter>>,
    ) -> Result<Option<CommitResult>, Fatal> {
        let reason = why.to_string();
        let mut part = match part {
            CommitPart::Nothing | CommitPart::Turn => {
                resolve_all(waiters, Err(&reason));
                // Without its batch a commit can neither be tried again nor given back.
                let Some(batch) = batch else { return Err(Fatal::Journal(reason)) };
                let Some(request) = batch.into_turn() else {
                    // In a turn its next commit says the same.
                    if !self.state.turn_open {
                        let text = format!("the journal did not take what features handed in: {reason}");
                        self.outbox.show(Event::warning(text));
                    }
                    return Ok(None);
                };
                let refusals = self.pipeline.refusals.saturating_add(1);
                self.pipeline.refusals = refusals;
                return self.suspend(why, refusals).map(|()| Some(CommitResult::Refused(request)));
            }
            CommitPart::Actor(part) => part,
        };
        part.refusals = part.refusals.saturating_add(1);
        match self.suspend(why, part.refusals).and(batch.ok_or(Fatal::Journal(reason.clone()))) {
            Ok(mut batch) => {
                let mut waiters = waiters;
                if matches!(part.commit, ActorCommit::Input | ActorCommit::TurnEnd) {
                    // What features hand in meanwhile must not be overtaken by what they handed in before.
                    batch = batch.behind(part.piggybacked);
                    part.piggybacked = 0;
                    resolve_all(std::mem::take(&mut waiters), Err(&reason));
                }
                self.pipeline.held.push(Held { batch, part, waiters });
                Ok(None)
            }
            Err(fatal) => {
                resolve_all(waiters, Err(&reason));
                Err(fatal)
            }
        }
    }

    /// The disk refused: says so, and when it is tried again, unless it was tried often enough.
    fn suspend(&mut self, why: &Refusal, refusals: u32) -> Result<(), Fatal> {
        if let Some(unstorable) = Fatal::unstorable(why) {
            return Err(unstorable);
        }
        let reason = why.to_string();
        warn!(reason, refusals, "the journal refused a commit");
        self.pipeline.retry_at = Some(Instant::now() + DISK_PAUSE);
        // The one in front of it was told.
        if !matches!(why, Refusal::Behind) {
            self.outbox.show(Event::Suspended { reason: reason.clone() });
        }
        if refusals > DISK_RETRIES { Err(Fatal::Journal(reason)) } else { Ok(()) }
    }

    /// The pod cannot go on: what was appended is awaited, and if it became durable, watchers are told and its caller may
    /// go on. What is held goes nowhere any more.
    pub(super) async fn drain(&mut self) {
        for Held { waiters, .. } in std::mem::take(&mut self.pipeline.held) {
            resolve_all(waiters, Err("the pod cannot go on"));
        }
        while !self.pipeline.flights.is_empty() {
            let done = self.pipeline.front().await;
            let waiters = self.pipeline.flights.pop_front().map_or_else(Vec::new, |flight| flight.waiters);
            let told = match done {
                Ok(done) => self.fold(done).map(drop).map_err(|fold| fold.to_string()),
                Err(refused) => Err(refused.why.to_string()),
            };
            resolve_all(waiters, told.as_ref().copied().map_err(String::as_str));
        }
    }
}
