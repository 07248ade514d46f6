//! The stop of a pod: nothing new begins, tasks and observers end, and the last record is written. Does not depend on
//! why it was requested.

use super::{Actor, At};
use crate::control::pipeline::ActorCommit;
use crate::record::{HostStopped, Record};

/// How far the stop is.
pub(super) enum Closing {
    Open,
    /// With the reason; it takes effect once nothing is in flight.
    Asked(String),
    FlushingObservers(String),
    /// The last record is being committed.
    Stopping,
    Stopped,
}

impl Closing {
    /// The first reason counts.
    pub(super) fn ask(&mut self, reason: String) {
        if matches!(self, Self::Open) {
            *self = Self::Asked(reason);
        }
    }
}

impl Actor {
    /// Starts the stop, if one was requested and nothing is in flight: observers get the last event first, and records
    /// that they cause are piggybacked on the last one.
    pub(super) fn close(&mut self) {
        let in_flight = !self.submissions.is_idle()
            || !self.replies.is_empty()
            || self.turn_block.is_active()
            || self.starts();
        if !matches!(self.at, At::Idle(_)) || in_flight {
            return;
        }
        if let Closing::Asked(reason) = &mut self.closing {
            if !self.tasks.close(&mut self.core) {
                return;
            }
            let registry = self.core.registry.clone();
            self.observer_flush
                .spawn(async move { registry.hooks().flush_observers().await });
            self.closing = Closing::FlushingObservers(std::mem::take(reason));
        }
    }

    /// Writes the last record.
    pub(super) fn stop(&mut self) {
        let Closing::FlushingObservers(reason) =
            std::mem::replace(&mut self.closing, Closing::Stopping)
        else {
            return;
        };
        self.core.collect(&|_| false);
        let mut records = std::mem::take(&mut self.preamble.records);
        // Without an input the recorded surface still applies.
        records.retain(|record| !matches!(record, Record::SurfaceSet(_)));
        records.push(self.core.registry.grants_used().into());
        records.push(HostStopped { reason }.into());
        self.core.append_actor_commit(ActorCommit::Stop, records);
    }
}
