//! Commits in flight: of the turn, of the actor, and of requests from features; and the retry after the disk refused
//! one. Does not depend on the turn, except for its part of a commit.

use super::commit::{Ack, Batch, Journaled};
use super::core::{Core, DISK_PAUSE, DISK_RETRIES, Fatal, MAX_DISK_PAUSE};
use super::submit_error::SubmitError;
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

/// Commits in flight that have only records of features. At this many, features wait: they must not keep the turn's own
/// commits from the journal.
const MAX_AHEAD: usize = 2;

/// Commits resolve in the order they were appended.
#[derive(Default)]
pub(crate) struct Pipeline {
    flights: VecDeque<Flight>,
    /// Whether waiting records need a commit of their own.
    owed: bool,
    /// The turn's next commit takes no waiting records: with them it could not be stored.
    alone: bool,
    /// Refusals in a row of the turn's commit.
    refusals: u32,
    /// The actor's commits that the disk refused; they are appended again at `retry_at`.
    held: Vec<Held>,
    retry_at: Option<Instant>,
    /// Why the disk refused the newest commit.
    trouble: Option<String>,
}

struct Flight {
    commit: Commit<Batch>,
    part: CommitPart,
    /// The span of the commit in the log of the host.
    span: Span,
    waiters: Vec<Box<dyn CommitWaiter>>,
}

struct Held {
    batch: Batch,
    part: ActorPart,
    waiters: Vec<Box<dyn CommitWaiter>>,
}

/// The part of a commit that is not from features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitPart {
    Nothing,
    /// With the number of records of features before it in the batch.
    Turn(usize),
    Actor(ActorPart),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ActorPart {
    commit: ActorCommit,
    /// Records of features before it in the batch.
    piggybacked: usize,
    refusals: u32,
}

/// The reason for a commit of the actor that belongs to no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActorCommit {
    /// Records that recovery adds to a log whose host did not stop.
    Repair,
    /// The records of the start, of a pod that waits for its inputs.
    Start,
    /// A change of the queue.
    Queue,
    /// Records that a client waits for: the beginning or the end of a hold, or its own between turns.
    Client,
    TurnEnd,
    /// A change of the view, for which the turn is held.
    View,
    Task(TaskCommit),
    Stop,
}

/// What a commit of an effectful run of a background task is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskCommit {
    /// The start of this run. A refused one is not appended again: its run is due again later, under another number.
    Start(u64),
    End,
    /// The end of this job.
    JobEnd(u64),
}

/// The end of a commit that the turn or the actor waits for.
pub(super) enum CommitResult {
    Durable(Ack),
    /// The turn must commit its part again.
    Refused(CommitRequest<Journaled>),
    /// The turn must commit its part again, at once: records of features beside it could not be stored.
    Again(CommitRequest<Journaled>),
    /// The turn's part can never be stored; with the reason.
    Unstorable(CommitRequest<Journaled>, String),
    Actor(ActorCommit),
    /// The actor's commit will not be tried again; with its own records and the error for the client.
    ActorRefused(ActorCommit, Vec<Record>, SubmitError),
}

impl Pipeline {
    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty() && self.held.is_empty()
    }

    /// The end of the oldest commit; pending while there is none. Cancel-safe.
    pub(super) async fn front(&mut self) -> Result<Committed<Batch>, Refused<Batch>> {
        match self.flights.front_mut() {
            Some(flight) => (&mut flight.commit).await,
            None => std::future::pending().await,
        }
    }

    /// The time of the next retry; none if neither the pipeline nor the turn (`suspended`) has a refused commit.
    pub(super) fn retry_at(&self, suspended: bool) -> Option<Instant> {
        self.retry_at.filter(|_| suspended || !self.held.is_empty())
    }

    /// Whether a change of the queue or a hold is on its way: no turn begins or takes an input meanwhile.
    pub(super) fn changes_queue(&self) -> bool {
        self.has(|commit| {
            matches!(
                commit,
                ActorCommit::Queue | ActorCommit::Client | ActorCommit::TurnEnd
            )
        })
    }

    /// Whether the records of the start are on their way.
    pub(super) fn starts(&self) -> bool {
        self.has(|commit| commit == ActorCommit::Start)
    }

    fn has(&self, wanted: impl Fn(ActorCommit) -> bool) -> bool {
        let flies =
            |flight: &Flight| matches!(flight.part, CommitPart::Actor(part) if wanted(part.commit));
        self.flights.iter().any(flies) || self.held.iter().any(|held| wanted(held.part.commit))
    }

    /// The pod ends: what the disk refused is tried again at once.
    pub(super) fn hurry(&mut self) {
        self.retry_at = self.retry_at.map(|at| at.min(Instant::now()));
    }

    /// Why the disk refused the newest commit, until one is accepted.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn ahead(&self) -> usize {
        self.flights
            .iter()
            .filter(|flight| flight.part == CommitPart::Nothing)
            .count()
    }
}

impl Core {
    /// Whether requests of features may be read: there is room for their records and their events.
    pub(super) fn accepts_feature_requests(&self) -> bool {
        (self.pipeline.ahead() < MAX_AHEAD || self.pending.waiting() < MAX_UNCOMMITTED)
            && !self.outbox.is_over()
    }

    /// Appends the turn's commit, with as many waiting records as fit.
    pub(super) fn append_of_turn(&mut self, of: impl FnOnce(Vec<Record>) -> Batch) {
        let alone = std::mem::take(&mut self.pipeline.alone);
        let Piggybacked { records, waiters } = if alone {
            Piggybacked::default()
        } else {
            self.pending.piggybacked()
        };
        let part = CommitPart::Turn(records.len());
        self.append(of(records), part, waiters);
        self.pipeline.owed |= self.pending.waiting() > 0;
    }

    /// Appends records of the actor, after all waiting records.
    pub(super) fn append_actor_commit(&mut self, commit: ActorCommit, mut records: Vec<Record>) {
        let is_alone = matches!(commit, ActorCommit::Task(_));
        if is_alone {
            // Records of one task keep their order: the end of a run comes before the start of the next.
            self.append_held();
        }
        loop {
            let Piggybacked {
                records: mut all,
                waiters,
            } = self.pending.piggybacked();
            if self.pending.waiting() == 0 && (all.is_empty() || !is_alone) {
                let piggybacked = all.len();
                all.append(&mut records);
                return self.append(
                    Batch::of(all),
                    CommitPart::Actor(ActorPart {
                        commit,
                        piggybacked,
                        refusals: 0,
                    }),
                    waiters,
                );
            }
            self.append(Batch::of(all), CommitPart::Nothing, waiters);
        }
    }

    /// Commits records and waits for it, before clients or features can send anything.
    ///
    /// # Errors
    /// The journal refused, or the records do not fold.
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
        let records = batch.records().len();
        let first = batch.records().first().map_or("", Record::kind);
        let span = debug_span!("commit", records, first, refused = Empty);
        let again = matches!(
            part,
            CommitPart::Actor(ActorPart {
                commit: ActorCommit::Stop,
                refusals: 1..,
                ..
            })
        );
        let journal = &self.store.journal;
        // The end of a pod is recorded on a full disk, too.
        let commit = if again {
            journal.append_reserved(batch)
        } else {
            journal.append(batch)
        };
        self.pipeline.flights.push_back(Flight {
            commit,
            part,
            span,
            waiters,
        });
    }

    /// Retries the actor's commits that the disk refused.
    pub(super) fn append_held(&mut self) {
        for Held {
            batch,
            part,
            waiters,
        } in std::mem::take(&mut self.pipeline.held)
        {
            self.append(batch, CommitPart::Actor(part), waiters);
        }
    }

    /// Commits waiting records by themselves, as many as may be in flight.
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
        let Some(Flight {
            part,
            waiters,
            span,
            commit: _,
        }) = self.pipeline.flights.pop_front()
        else {
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
                self.pipeline.trouble = None;
                if ack.is_some() && std::mem::take(&mut self.pipeline.refusals) > 0 {
                    info!("the journal takes commits again");
                    // The record tells readers of the log that commits were refused for a while.
                    self.append(
                        Batch::of(vec![Resumed::default().into()]),
                        CommitPart::Nothing,
                        Vec::new(),
                    );
                }
                Ok(match part {
                    CommitPart::Actor(part) => Some(CommitResult::Actor(part.commit)),
                    CommitPart::Turn(_) | CommitPart::Nothing => ack.map(CommitResult::Durable),
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
        let unstorable = is_unstorable(why);
        let mut part = match part {
            CommitPart::Nothing | CommitPart::Turn(_) => {
                resolve_all(waiters, Err(&reason));
                // Without its batch a commit can neither be retried nor returned to the turn.
                let Some(batch) = batch else {
                    return Err(Fatal::Journal(reason));
                };
                let Some(request) = batch.into_turn() else {
                    // During a turn, the turn's next commit reports the same about the disk.
                    if unstorable || !self.state.turn_open {
                        let text = format!("the journal refused records of features: {reason}");
                        self.outbox.show(Event::warning(text));
                    }
                    return Ok(None);
                };
                if unstorable {
                    warn!(reason, "a commit of the turn cannot be stored");
                    self.pipeline.alone =
                        matches!(part, CommitPart::Turn(piggybacked) if piggybacked > 0);
                    let result = if self.pipeline.alone {
                        CommitResult::Again(request)
                    } else {
                        CommitResult::Unstorable(request, reason)
                    };
                    return Ok(Some(result));
                }
                let refusals = self.pipeline.refusals.saturating_add(1);
                self.pipeline.refusals = refusals;
                return self
                    .suspend(why, refusals, None)
                    .map(|()| Some(CommitResult::Refused(request)));
            }
            CommitPart::Actor(part) => part,
        };
        if unstorable {
            resolve_all(waiters, Err(&reason));
            let records = batch.map(Batch::into_records).unwrap_or_default();
            return self.actor_unstorable(records, part, reason);
        }
        part.refusals = part.refusals.saturating_add(1);
        let is_start = matches!(part.commit, ActorCommit::Task(TaskCommit::Start(_)));
        if is_start || self.stays && matches!(part.commit, ActorCommit::Queue | ActorCommit::Client)
        {
            // Who asked decides whether to ask again: a client, or the supervisor of background tasks.
            self.pipeline.trouble = Some(reason.clone());
            resolve_all(waiters, Err(&reason));
            let own = batch
                .map(|batch| batch.behind(part.piggybacked).into_records())
                .unwrap_or_default();
            return Ok(Some(CommitResult::ActorRefused(
                part.commit,
                own,
                SubmitError::Disk(reason),
            )));
        }
        match self
            .suspend(why, part.refusals, Some(part.commit))
            .and(batch.ok_or(Fatal::Journal(reason.clone())))
        {
            Ok(mut batch) => {
                let mut waiters = waiters;
                if !matches!(part.commit, ActorCommit::Repair | ActorCommit::Stop) {
                    // Later records of features must not overtake earlier ones.
                    batch = batch.behind(part.piggybacked);
                    part.piggybacked = 0;
                    resolve_all(std::mem::take(&mut waiters), Err(&reason));
                }
                self.pipeline.held.push(Held {
                    batch,
                    part,
                    waiters,
                });
                Ok(None)
            }
            Err(fatal) => {
                resolve_all(waiters, Err(&reason));
                Err(fatal)
            }
        }
    }

    /// Without the records of features, a commit of the actor is appended again; alone it is returned.
    fn actor_unstorable(
        &mut self,
        mut records: Vec<Record>,
        part: ActorPart,
        reason: String,
    ) -> Result<Option<CommitResult>, Fatal> {
        let ActorPart {
            commit,
            piggybacked,
            ..
        } = part;
        warn!(reason, ?commit, piggybacked, "a commit cannot be stored");
        records.drain(..piggybacked.min(records.len()));
        if piggybacked > 0 {
            let part = ActorPart {
                piggybacked: 0,
                ..part
            };
            self.append(Batch::of(records), CommitPart::Actor(part), Vec::new());
            return Ok(None);
        }
        match commit {
            ActorCommit::Queue
            | ActorCommit::Client
            | ActorCommit::TurnEnd
            | ActorCommit::Task(_) => Ok(Some(CommitResult::ActorRefused(
                commit,
                records,
                SubmitError::Unstorable(reason),
            ))),
            ActorCommit::Repair | ActorCommit::Start | ActorCommit::View | ActorCommit::Stop => {
                Err(Fatal::Unstorable(reason))
            }
        }
    }

    /// Reports that the disk refused a commit, of the actor or of the turn, and schedules the retry; unless the commit
    /// waits for the disk, an error after too many refusals.
    fn suspend(
        &mut self,
        why: &Refusal,
        refusals: u32,
        of_actor: Option<ActorCommit>,
    ) -> Result<(), Fatal> {
        let reason = why.to_string();
        warn!(reason, refusals, "the journal refused a commit");
        let pause = DISK_PAUSE
            .saturating_mul(1 << (refusals - 1).min(5))
            .min(MAX_DISK_PAUSE);
        self.pipeline.retry_at = Some(Instant::now() + pause);
        let known = self.pipeline.trouble.replace(reason.clone()).is_some();
        // The commit before it was reported, and so was the first refusal of a pod that waits.
        if !(matches!(why, Refusal::Behind) || known && self.stays) {
            self.outbox.show(Event::Suspended {
                reason: reason.clone(),
            });
        }
        // A start that cannot be recorded promises nothing, and its starter waits.
        let waits = self.stays && !self.is_ending && of_actor != Some(ActorCommit::Start);
        if refusals > DISK_RETRIES && !waits {
            Err(Fatal::Journal(reason))
        } else {
            Ok(())
        }
    }

    /// For a pod that cannot continue: awaits the commits in flight. Those that became durable are folded and their
    /// callers get the result. Refused ones are dropped.
    pub(super) async fn drain(&mut self) {
        for Held { waiters, .. } in std::mem::take(&mut self.pipeline.held) {
            resolve_all(waiters, Err("the pod cannot continue"));
        }
        while !self.pipeline.flights.is_empty() {
            let done = self.pipeline.front().await;
            let waiters = self
                .pipeline
                .flights
                .pop_front()
                .map_or_else(Vec::new, |flight| flight.waiters);
            let told = match done {
                Ok(done) => self.fold(done).map(drop).map_err(|fold| fold.to_string()),
                Err(refused) => Err(refused.why.to_string()),
            };
            resolve_all(waiters, told.as_ref().copied().map_err(String::as_str));
        }
    }
}

/// Whether no retry can help: the batch itself is the reason.
fn is_unstorable(why: &Refusal) -> bool {
    match why {
        Refusal::TooLarge(_) | Refusal::Encode(_) => true,
        Refusal::Disk(_) | Refusal::Full(_) | Refusal::Busy | Refusal::Behind | Refusal::Closed => {
            false
        }
    }
}
