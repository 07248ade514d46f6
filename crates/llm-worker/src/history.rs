//! Model-visible history. It grows only by facts whose commit was acknowledged.
//!
//! A [`History`] keeps the encoded request and three counters, not the items. Two callers add items: the turn machine,
//! on an acknowledgement, and [`History::restore`], with items read from the journal.

use crate::ErrorKind;
use crate::effect::Fact;
use crate::item::{CallId, Item};
use crate::payload::Payload;
use crate::projection::{Body, Dialect, Projection, Surface};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// All committed items of a session, encoded as the next request. A turn takes it and the host gets it back when the
/// turn ends.
#[derive(Debug)]
pub struct History {
    surface: Surface,
    projection: Projection,
    counters: Counters,
}

/// The last numbers that a session assigned to calls and requests. Numbers are never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The last tool call's number; 0 before the first.
    pub calls: u64,
    /// The last request's number; 0 before the first.
    pub requests: u64,
}

impl History {
    /// Creates a history without items, for a new session.
    #[must_use]
    pub fn begin(surface: Surface, dialect: Arc<dyn Dialect>) -> Self {
        let projection = Projection::new(&surface, dialect);
        Self {
            surface,
            projection,
            counters: Counters::default(),
        }
    }

    /// Rebuilds the history of these committed items, in journal order, for a resumed session.
    ///
    /// # Errors
    /// The items are not a history: a call without a result, a result without a call, a call number that does
    /// not rise or is above `counters.calls`.
    pub fn restore<I>(
        surface: Surface,
        dialect: Arc<dyn Dialect>,
        items: I,
        counters: Counters,
    ) -> Result<Self, HistoryError>
    where
        I: IntoIterator,
        I::Item: Borrow<Item>,
    {
        Self::restore_parked(surface, dialect, items, counters, &BTreeSet::new())
    }

    /// As [`Self::restore`], for a session in which these calls wait for a person and have no result.
    ///
    /// # Errors
    /// As [`Self::restore`]; other calls than these have no result, or one of them has.
    pub fn restore_parked<I>(
        surface: Surface,
        dialect: Arc<dyn Dialect>,
        items: I,
        counters: Counters,
        parked: &BTreeSet<CallId>,
    ) -> Result<Self, HistoryError>
    where
        I: IntoIterator,
        I::Item: Borrow<Item>,
    {
        let mut projection = Projection::new(&surface, dialect);
        let mut calls = Calls::default();
        for item in items {
            calls.see(item.borrow())?;
            projection.push(item.borrow());
        }
        calls.end(counters, parked)?;
        Ok(Self {
            surface,
            projection,
            counters,
        })
    }

    /// Encodes the items again as another view of the session shows them: not more than before. Called only by `turn`,
    /// while it is held.
    pub(crate) fn reviewed<I>(&mut self, items: I) -> Result<(), HistoryError>
    where
        I: IntoIterator,
        I::Item: Borrow<Item>,
    {
        let dialect = Arc::clone(self.projection.dialect());
        let reviewed = Self::restore(self.surface.clone(), dialect, items, self.counters)?;
        if reviewed.items() > self.items() {
            return Err(HistoryError::OtherItems {
                have: self.items(),
                given: reviewed.items(),
            });
        }
        *self = reviewed;
        Ok(())
    }

    /// The surface of the current generation.
    #[must_use]
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// How many items there are.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.projection.items()
    }

    /// The last numbers assigned.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The request with all items so far.
    #[must_use]
    pub fn body(&self) -> Body {
        self.projection.body()
    }

    /// BLAKE3 of that request in the [`crate::Neutral`] encoding, lower-case hex.
    #[must_use]
    pub fn neutral_digest(&self) -> String {
        self.projection.neutral_digest()
    }

    /// Computes the history as it will be once `facts` are durable.
    pub(crate) fn stage<P: Payload>(&self, facts: &[Fact<P>]) -> Box<Staged> {
        let mut staged = Box::new(Staged {
            projection: self.projection.clone(),
            counters: self.counters,
        });
        facts.iter().for_each(|fact| staged.see(fact));
        staged
    }

    /// Called only by `turn`, on the acknowledgement of exactly the facts that were staged.
    pub(crate) fn accept(&mut self, staged: Staged) {
        self.projection = staged.projection;
        self.counters = staged.counters;
    }
}

/// A history that is not yet durable; visible only to the turn machine.
pub(crate) struct Staged {
    pub(crate) projection: Projection,
    pub(crate) counters: Counters,
}

impl Staged {
    pub(crate) fn see<P: Payload>(&mut self, fact: &Fact<P>) {
        if let Some(item) = fact.item() {
            if let Item::ToolCall { id, .. } = &*item {
                self.counters.calls = id.number();
            }
            self.projection.push(&item);
        }
        if let Fact::Request(request) = fact {
            self.counters.requests = request.number;
        }
    }
}

/// Checks that a list of items has one result for each call.
#[derive(Default)]
struct Calls {
    last: u64,
    open: BTreeSet<CallId>,
}

impl Calls {
    fn see(&mut self, item: &Item) -> Result<(), HistoryError> {
        match item {
            Item::ToolCall { id, .. } if id.number() <= self.last => {
                Err(HistoryError::Numbered(*id))
            }
            Item::ToolCall { id, .. } => {
                self.last = id.number();
                self.open.insert(*id);
                Ok(())
            }
            Item::ToolResult { id, .. } if !self.open.remove(id) => Err(HistoryError::Unasked(*id)),
            Item::ToolResult { .. }
            | Item::User { .. }
            | Item::Command { .. }
            | Item::System { .. }
            | Item::Assistant { .. }
            | Item::Reasoning { .. } => Ok(()),
        }
    }

    fn end(self, counters: Counters, parked: &BTreeSet<CallId>) -> Result<(), HistoryError> {
        if let Some(id) = self.open.difference(parked).next() {
            return Err(HistoryError::Unanswered(*id));
        }
        if let Some(id) = parked.difference(&self.open).next() {
            return Err(HistoryError::NotOpen(*id));
        }
        match CallId::new(self.last) {
            Some(id) if id.number() > counters.calls => Err(HistoryError::Numbered(id)),
            Some(_) | None => Ok(()),
        }
    }
}

/// The error of restoring or re-encoding a history: the items are not valid, or belong to another history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// A call has no result.
    #[error("tool call {0} has no result; recovery must give it one before the session goes on")]
    Unanswered(CallId),
    /// A result has no call, or is the second one.
    #[error("there is a result for {0}, but no call that waits for one")]
    Unasked(CallId),
    /// A call that is to wait for a person has a result, or there is none of this number.
    #[error("tool call {0} is not open")]
    NotOpen(CallId),
    /// A call's number does not rise, or was never assigned.
    #[error("tool call {0} is out of order")]
    Numbered(CallId),
    /// A view came with more items.
    #[error("{given} items were given for a view of the {have} committed ones")]
    OtherItems { have: u64, given: u64 },
    /// The view of a turn that is not held cannot change.
    #[error("the turn is not held, so its view cannot change")]
    NotHeld,
}

impl HistoryError {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unanswered(_) | Self::Unasked(_) | Self::NotOpen(_) | Self::Numbered(_) => {
                ErrorKind::Corrupt
            }
            Self::OtherItems { .. } | Self::NotHeld => ErrorKind::Bug,
        }
    }
}
