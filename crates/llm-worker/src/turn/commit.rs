//! The pen: at most one commit is under way, and its effects come into being on its acknowledgement.

use super::{Illegal, Turn};
use crate::effect::Fact;
use crate::history::Staged;
use crate::item::Item;
use std::fmt;
use std::mem;

/// What a host attaches to facts. A turn carries it, unread, from where the host hands it in to the fact it belongs to.
pub trait Payload: Sized + fmt::Debug {
    /// The proof that a commit is durable.
    type Proof: Acknowledged<Self>;
    /// An item that the host adds, and what its record says of it.
    type Note: fmt::Debug;
    /// What is recorded of a verdict.
    type Judgement: fmt::Debug;
    /// What an allowed call runs with, and what is recorded of its start.
    type Start: fmt::Debug;
    /// What is recorded of a result besides; of a call that was cancelled behind its start, what that start knows.
    type Ending: fmt::Debug + From<Self::Start>;

    /// What the model sees of a note: a user or system item.
    fn item(note: &Self::Note) -> Item;
}

/// The host's proof that a [`CommitRequest`] is durable. Implemented once, by the host, over its store's receipt.
pub trait Acknowledged<P: Payload>: fmt::Debug {
    /// The commit that is durable.
    fn into_request(self) -> CommitRequest<P>;
}

/// Facts to make durable as one atomic batch. Made by [`Turn`] alone; it cannot be copied, so one commit is
/// acknowledged or refused once.
#[derive(Debug)]
#[must_use = "a commit is a debt: answer it with Committed or Refused"]
pub struct CommitRequest<P: Payload> {
    turn: u64,
    number: u64,
    facts: Vec<Fact<P>>,
}

impl<P: Payload> CommitRequest<P> {
    /// What to write, in order.
    #[must_use]
    pub fn facts(&self) -> &[Fact<P>] {
        &self.facts
    }
}

pub(super) enum Pen<P: Payload> {
    Idle,
    Ready { request: CommitRequest<P>, staged: Box<Staged> },
    InFlight { turn: u64, number: u64, staged: Box<Staged> },
    Suspended { request: CommitRequest<P>, staged: Box<Staged> },
}

impl<P: Payload> Pen<P> {
    /// The commit to write now, if there is one; it is in flight from here on.
    pub(super) fn hand_out(&mut self) -> Option<CommitRequest<P>> {
        match mem::replace(self, Self::Idle) {
            Self::Ready { request, staged } => {
                *self = Self::InFlight { turn: request.turn, number: request.number, staged };
                Some(request)
            }
            other @ (Self::Idle | Self::InFlight { .. } | Self::Suspended { .. }) => {
                *self = other;
                None
            }
        }
    }

    /// Takes the commit in flight, when `request` is that one.
    fn take_flight(&mut self, request: &CommitRequest<P>) -> Result<Box<Staged>, Illegal> {
        match mem::replace(self, Self::Idle) {
            Self::InFlight { turn, number, staged } if turn == request.turn && number == request.number => Ok(staged),
            other @ (Self::Idle | Self::Ready { .. } | Self::InFlight { .. } | Self::Suspended { .. }) => {
                *self = other;
                Err(Illegal::ForeignAck)
            }
        }
    }
}

impl<P: Payload> Turn<P> {
    /// Prepares a commit of these facts. The pen is idle.
    pub(super) fn write(&mut self, facts: Vec<Fact<P>>) {
        let staged = self.history.stage(&facts);
        self.write_staged(facts, staged);
    }

    pub(super) fn write_staged(&mut self, facts: Vec<Fact<P>>, staged: Box<Staged>) {
        self.commits += 1;
        let request = CommitRequest { turn: self.id, number: self.commits, facts };
        self.pen = Pen::Ready { request, staged };
    }

    pub(super) fn committed(&mut self, request: CommitRequest<P>) -> Result<(), Illegal> {
        let staged = self.pen.take_flight(&request)?;
        self.history.accept(*staged);
        self.advance(request.facts);
        Ok(())
    }

    pub(super) fn refused(&mut self, request: CommitRequest<P>) -> Result<(), Illegal> {
        let staged = self.pen.take_flight(&request)?;
        self.pen = Pen::Suspended { request, staged };
        Ok(())
    }

    pub(super) fn resume(&mut self) -> Result<(), Illegal> {
        match mem::replace(&mut self.pen, Pen::Idle) {
            Pen::Suspended { request, staged } => {
                self.pen = Pen::Ready { request, staged };
                Ok(())
            }
            other @ (Pen::Idle | Pen::Ready { .. } | Pen::InFlight { .. }) => {
                self.pen = other;
                Err(self.illegal("Resume"))
            }
        }
    }
}
