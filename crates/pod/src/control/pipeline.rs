//! Commits under way, in a turn and behind it, and the disk's retry. It knows no turn beyond the part that a commit
//! carries.

use super::commit::{Ack, Batch, Journaled};
use super::core::{Core, DISK_PAUSE, DISK_RETRIES, Fatal};
use crate::mailbox::events::Event;
use crate::mailbox::pending::{MAX_RIDERS, Riders, settle};
use crate::mailbox::requests::Ticket;
use crate::record::{Record, Resumed};
use llm_worker::turn::CommitRequest;
use session_store::{Commit, Committed, Refused};
use std::collections::VecDeque;
use tokio::time::Instant;

/// Commits without a part of the turn that may be on their way at once. While there are so many, features wait: what
/// they hand in must not keep the turn's own commits from the journal.
const MAX_AHEAD: usize = 2;

/// Commits resolve in the order they were appended.
#[derive(Default)]
pub(crate) struct Pipeline {
    flights: VecDeque<Flight>,
    /// Whether records wait for a commit of their own.
    owed: bool,
    /// Refusals in a row of the turn's commit.
    refusals: u32,
    retry_at: Option<Instant>,
}

struct Flight {
    commit: Commit<Batch>,
    /// Whether it carries a part of the turn.
    of_turn: bool,
    /// Who is told what became of it.
    tickets: Vec<Box<dyn Ticket>>,
}

/// What became of the turn's part of a commit.
pub(super) enum Landed {
    Durable(Ack),
    /// It is to be tried again.
    Refused(CommitRequest<Journaled>),
}

impl Pipeline {
    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// The oldest commit's end; pending while there is none. Cancel-safe.
    pub(super) async fn front(&mut self) -> Result<Committed<Batch>, Refused<Batch>> {
        match self.flights.front_mut() {
            Some(flight) => (&mut flight.commit).await,
            None => std::future::pending().await,
        }
    }

    /// When the refused commit is tried again.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    fn ahead(&self) -> usize {
        self.flights.iter().filter(|flight| !flight.of_turn).count()
    }
}

impl Core {
    /// Whether there is room for what features hand in.
    pub(super) fn heeds(&self) -> bool {
        (self.pipeline.ahead() < MAX_AHEAD || self.desk.waiting() < MAX_RIDERS) && !self.outbox.is_over()
    }

    /// Appends the turn's commit, with what waits as far as it has room for it.
    pub(super) fn append_of_turn(&mut self, of: impl FnOnce(Vec<Record>) -> Batch) {
        let Riders { records, tickets } = self.desk.riders();
        self.append(of(records), true, tickets);
        self.pipeline.owed |= self.desk.waiting() > 0;
    }

    fn append(&mut self, batch: Batch, of_turn: bool, tickets: Vec<Box<dyn Ticket>>) {
        self.announce(batch.records());
        let commit = self.store.journal.append(batch);
        self.pipeline.flights.push_back(Flight { commit, of_turn, tickets });
    }

    /// Gives what waits commits of its own; as far as there may be more of them.
    pub(super) fn write_out(&mut self) {
        while self.desk.waiting() > 0 && self.pipeline.ahead() < MAX_AHEAD {
            let Riders { records, tickets } = self.desk.riders();
            if !records.is_empty() {
                self.append(Batch::of(records), false, tickets);
            }
        }
        self.pipeline.owed = self.desk.waiting() > 0;
    }

    /// Takes the end of the oldest commit. Answers what became of the turn's part, if it carried one.
    pub(super) fn landed(&mut self, done: Result<Committed<Batch>, Refused<Batch>>) -> Result<Option<Landed>, Fatal> {
        let tickets = self.pipeline.flights.pop_front().map_or_else(Vec::new, |flight| flight.tickets);
        if self.pipeline.owed {
            self.write_out();
        }
        match done {
            Ok(done) => {
                let ack = self.fold(done)?;
                settle(tickets, Ok(()));
                if ack.is_some() && std::mem::take(&mut self.pipeline.refusals) > 0 {
                    // The log says that it could not be written for a while.
                    self.append(Batch::of(vec![Resumed {}.into()]), false, Vec::new());
                }
                Ok(ack.map(Landed::Durable))
            }
            Err(Refused { batch, why }) => {
                let reason = why.to_string();
                settle(tickets, Err(&reason));
                // Without its batch the turn's commit can neither be tried again nor given back.
                let Some(batch) = batch else { return Err(Fatal::Journal(reason)) };
                let Some(request) = batch.into_turn() else { return Ok(None) };
                if let Some(unstorable) = Fatal::unstorable(&why) {
                    return Err(unstorable);
                }
                self.pipeline.refusals += 1;
                self.pipeline.retry_at = Some(Instant::now() + DISK_PAUSE);
                self.outbox.show(Event::Suspended { reason: reason.clone() });
                match self.pipeline.refusals > DISK_RETRIES {
                    true => Err(Fatal::Journal(reason)),
                    false => Ok(Some(Landed::Refused(request))),
                }
            }
        }
    }

    /// The turn's end is durable; what was appended behind it is still folded and shown, and no call asks for more.
    pub(super) async fn settle(&mut self) -> Result<(), Fatal> {
        self.collect(&|_| false);
        self.write_out();
        while !self.pipeline.is_empty() {
            let done = self.pipeline.front().await;
            // Nothing here carries a part of a turn.
            self.landed(done)?;
        }
        Ok(())
    }

    /// The pod cannot go on: what was appended is awaited, and if it became durable, watchers are told and its caller may
    /// go on.
    pub(super) async fn drain(&mut self) {
        while !self.pipeline.is_empty() {
            let done = self.pipeline.front().await;
            let tickets = self.pipeline.flights.pop_front().map_or_else(Vec::new, |flight| flight.tickets);
            let told = match done {
                Ok(done) => self.fold(done).map(drop).map_err(|fold| fold.to_string()),
                Err(refused) => Err(refused.why.to_string()),
            };
            settle(tickets, told.as_ref().copied().map_err(String::as_str));
        }
    }
}
