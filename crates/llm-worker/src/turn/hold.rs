//! Holding a turn before its next request: the pending facts become durable first, and then nothing is outstanding.
//!
//! A hold takes effect at the next boundary before a request: the request that is being committed or answered comes
//! first, and a turn that ends without another request is not held. Gates that run are asked again after the release.

use super::phase::Phase;
use super::{Payload, Turn};
use crate::effect::Fact;
use std::mem;

impl<P: Payload> Turn<P> {
    pub(super) fn hold(&mut self) {
        self.hold_wanted = true;
        if let Phase::Gating(pending_facts) = &mut self.phase {
            self.withdrawn.gate = true;
            self.phase = Phase::BeforeGate(mem::take(pending_facts));
        }
    }

    pub(super) fn release(&mut self) {
        self.hold_wanted = false;
        if matches!(self.phase, Phase::Held) {
            self.phase = Phase::BeforeGate(Vec::new());
        }
    }

    /// Lets a wanted hold take effect. The slot is free.
    pub(super) fn hold_here(&mut self, pending_facts: Vec<Fact<P>>) {
        if pending_facts.is_empty() {
            self.phase = Phase::Held;
        } else {
            self.prepare(pending_facts);
            self.phase = Phase::Holding;
        }
    }
}
