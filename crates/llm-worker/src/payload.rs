//! The data that a host attaches to the facts of a turn, and the commit that makes them durable. Does not depend on the
//! phases of a turn.

use crate::effect::Fact;
use crate::item::Item;
use std::fmt;

/// The types of the data that a host attaches to facts. A turn passes these values, without reading them, from the
/// input that contains them to the fact that they belong to. Implemented once by `pod`, and by tests.
pub trait Payload: Sized + fmt::Debug {
    /// The proof that a commit is durable.
    type Proof: Acknowledged<Self>;
    /// An item that the host adds, with the data for its record.
    type Note: fmt::Debug;
    /// The data recorded with a verdict.
    type AuthorizationRecord: fmt::Debug;
    /// The data recorded with a call that waits for a person.
    type Question: fmt::Debug;
    /// The data recorded with a person's answer.
    type Resolution: fmt::Debug;
    /// The data that an allowed call runs with and that is recorded with its start.
    type Start: fmt::Debug;
    /// Further data recorded with a result. For a call that was cancelled after its start and before it ran, it is made
    /// from the start's data.
    type Ending: fmt::Debug + From<Self::Start>;

    /// The item that the model sees for a note: user or system.
    fn item(note: &Self::Note) -> Item;
}

/// The host's proof that a [`CommitRequest`] is durable, passed in [`crate::Input::Committed`]. Implemented once, by
/// the host, over the store's `Committed`.
pub trait Acknowledged<P: Payload>: fmt::Debug {
    /// The durable commit.
    fn into_request(self) -> CommitRequest<P>;
}

/// Facts to make durable as one atomic batch. Only the turn machine creates it. It cannot be copied, so each commit is
/// acknowledged or refused once.
#[derive(Debug)]
#[must_use = "a commit is a debt: answer it with Committed or Refused"]
pub struct CommitRequest<P: Payload> {
    pub(crate) turn: u64,
    pub(crate) number: u64,
    pub(crate) facts: Vec<Fact<P>>,
}

impl<P: Payload> CommitRequest<P> {
    /// The facts to write, in order.
    #[must_use]
    pub fn facts(&self) -> &[Fact<P>] {
        &self.facts
    }
}
