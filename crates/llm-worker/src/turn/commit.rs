//! The commit slot: at most one commit is in flight; its effects start on its acknowledgement.

use super::{IllegalInput, Turn};
use crate::effect::Fact;
use crate::history::Staged;
use crate::payload::{CommitRequest, Payload};
use std::mem;

pub(super) enum CommitSlot<P: Payload> {
    Idle,
    /// The next poll returns it.
    Ready {
        request: CommitRequest<P>,
        staged: Box<Staged>,
    },
    /// The host has it. `staged` is the history once it is durable.
    InFlight {
        turn: u64,
        number: u64,
        staged: Box<Staged>,
    },
    /// The host refused it; it waits for `Resume`.
    Suspended {
        request: CommitRequest<P>,
        staged: Box<Staged>,
    },
}

impl<P: Payload> CommitSlot<P> {
    /// Returns the commit to write now, if there is one; it is in flight from then on.
    pub(super) fn hand_out(&mut self) -> Option<CommitRequest<P>> {
        match mem::replace(self, Self::Idle) {
            Self::Ready { request, staged } => {
                *self = Self::InFlight {
                    turn: request.turn,
                    number: request.number,
                    staged,
                };
                Some(request)
            }
            other @ (Self::Idle | Self::InFlight { .. } | Self::Suspended { .. }) => {
                *self = other;
                None
            }
        }
    }

    /// Takes the commit in flight, if `request` is that one.
    pub(super) fn take_flight(
        &mut self,
        request: &CommitRequest<P>,
    ) -> Result<Box<Staged>, IllegalInput> {
        match mem::replace(self, Self::Idle) {
            Self::InFlight {
                turn,
                number,
                staged,
            } if turn == request.turn && number == request.number => Ok(staged),
            other @ (Self::Idle
            | Self::Ready { .. }
            | Self::InFlight { .. }
            | Self::Suspended { .. }) => {
                *self = other;
                Err(IllegalInput::ForeignAck)
            }
        }
    }
}

impl<P: Payload> Turn<P> {
    /// Prepares a commit of these facts. The slot is free.
    pub(super) fn prepare(&mut self, facts: Vec<Fact<P>>) {
        let staged = self.history.stage(&facts);
        self.prepare_staged(facts, staged);
    }

    pub(super) fn prepare_staged(&mut self, facts: Vec<Fact<P>>, staged: Box<Staged>) {
        self.commits += 1;
        let request = CommitRequest {
            turn: self.id,
            number: self.commits,
            facts,
        };
        self.slot = CommitSlot::Ready { request, staged };
    }

    pub(super) fn committed(&mut self, request: CommitRequest<P>) -> Result<(), IllegalInput> {
        let staged = self.slot.take_flight(&request)?;
        self.history.accept(*staged);
        self.advance(request.facts);
        Ok(())
    }

    pub(super) fn refused(&mut self, request: CommitRequest<P>) -> Result<(), IllegalInput> {
        let staged = self.slot.take_flight(&request)?;
        self.slot = CommitSlot::Suspended { request, staged };
        Ok(())
    }

    pub(super) fn resume(&mut self) -> Result<(), IllegalInput> {
        match mem::replace(&mut self.slot, CommitSlot::Idle) {
            CommitSlot::Suspended { request, staged } => {
                self.slot = CommitSlot::Ready { request, staged };
                Ok(())
            }
            other @ (CommitSlot::Idle | CommitSlot::Ready { .. } | CommitSlot::InFlight { .. }) => {
                self.slot = other;
                Err(self.illegal("Resume"))
            }
        }
    }
}
