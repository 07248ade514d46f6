//! What a host attaches to the facts of a turn, and the commit that makes them durable. Knows no phase of a turn.

use crate::effect::Fact;
use crate::item::Item;
use std::fmt;

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

/// Facts to make durable as one atomic batch. Made by the turn machine alone; it cannot be copied, so one commit is
/// acknowledged or refused once.
#[derive(Debug)]
#[must_use = "a commit is a debt: answer it with Committed or Refused"]
pub struct CommitRequest<P: Payload> {
    pub(crate) turn: u64,
    pub(crate) number: u64,
    pub(crate) facts: Vec<Fact<P>>,
}

impl<P: Payload> CommitRequest<P> {
    /// What to write, in order.
    #[must_use]
    pub fn facts(&self) -> &[Fact<P>] {
        &self.facts
    }
}
