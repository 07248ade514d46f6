//! The events that a pod sends to its watcher. A watcher loses no event: one that does not keep up slows down the
//! model's stream, then features, never the turn's commits. A watcher that ended gets no more events.

use super::live_output::LiveOutputs;
use crate::feature::FeatureId;
use crate::record::Record;
use llm_worker::effect::Delta;
use protocol::event::AlertLevel;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc, watch};

/// How many events may wait in the channel.
pub const CHANNEL: usize = 256;

/// How many events may wait behind it before the model's stream is held back.
pub const BACKLOG: usize = 1024;

/// At this many waiting events requests of features wait, too, since they cause events. The events of a running turn
/// alone are bounded.
pub const MOST: usize = 4 * BACKLOG;

/// How many events that are no records are kept for clients. One that does not keep up misses the oldest.
const TRANSIENT: usize = 1024;

/// An event for the watcher of a pod: `yoi run` prints it, tests check it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A record became durable.
    Record { seq: u64, record: Arc<Record> },
    /// Part of an answer that is not durable yet, and the number of its request.
    Delta {
        turn: u64,
        request: u64,
        delta: Delta,
    },
    /// The disk refused a commit; the pod retries it shortly. Not the record `suspended`, which ends a pod.
    Suspended { reason: String },
    /// A text for people; in no log and no context.
    Alert(Alert),
}

/// A short text of a feature or of the host for the people who watch a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    pub level: AlertLevel,
    /// The author; none for the host.
    pub from: Option<FeatureId>,
    pub text: String,
}

impl Event {
    /// A warning of the host.
    pub(crate) fn warning(text: String) -> Self {
        Self::Alert(Alert {
            level: AlertLevel::Warning,
            from: None,
            text,
        })
    }
}

/// The pod's end of the channel to its watcher, with a backlog. The program creates it and passes it to the host.
#[derive(Debug)]
pub struct Outbox {
    watcher: Option<mpsc::Sender<Event>>,
    backlog: VecDeque<Event>,
    /// The newest folded record: readers of the files may read up to it.
    folded: watch::Sender<u64>,
    /// Everything but records, for clients, who may miss some.
    transient: broadcast::Sender<Event>,
    outputs: LiveOutputs,
}

impl Outbox {
    /// An outbox without a watcher.
    #[must_use]
    pub fn unwatched() -> Self {
        let transient = broadcast::Sender::new(TRANSIENT);
        let backlog = VecDeque::new();
        let folded = watch::Sender::default();
        let outputs = LiveOutputs::new();
        Self {
            watcher: None,
            backlog,
            folded,
            transient,
            outputs,
        }
    }

    /// An outbox and the receiving end for its watcher.
    #[must_use]
    pub fn watched() -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(CHANNEL);
        (
            Self {
                watcher: Some(sender),
                ..Self::unwatched()
            },
            receiver,
        )
    }

    /// Sends one event, now or as soon as there is room.
    pub fn show(&mut self, event: Event) {
        if self.transient.receiver_count() > 0 && !matches!(event, Event::Record { .. }) {
            // The last client may have left meanwhile.
            drop(self.transient.send(event.clone()));
        }
        if self.watcher.is_some() {
            self.backlog.push_back(event);
            self.flush();
        }
    }

    /// Publishes that this record and all before it are folded.
    pub(crate) fn folded(&self, seq: u64) {
        self.folded.send_replace(seq);
    }

    /// The newest folded record.
    pub(crate) fn newest(&self) -> u64 {
        *self.folded.borrow()
    }

    /// Follows the newest folded record; readers of the files may read up to it.
    pub(crate) fn following(&self) -> watch::Receiver<u64> {
        self.folded.subscribe()
    }

    /// For clients that want the events that are no records.
    pub(crate) fn transient(&self) -> broadcast::Sender<Event> {
        self.transient.clone()
    }

    /// The newest output of the running calls, beside the events.
    #[must_use]
    pub fn outputs(&self) -> &LiveOutputs {
        &self.outputs
    }

    /// Whether the watcher is so far behind that the model's stream should wait.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.backlog.len() >= BACKLOG
    }

    /// Whether the watcher is so far behind that features should wait, too.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.backlog.len() >= MOST
    }

    /// Whether events wait.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Resolves when a waiting event was sent, or the watcher ended. Cancel-safe.
    pub async fn progress(&mut self) {
        let Some(watcher) = &self.watcher else { return };
        let watching = match watcher.reserve().await {
            Ok(permit) => {
                if let Some(event) = self.backlog.pop_front() {
                    permit.send(event);
                }
                true
            }
            Err(_gone) => false,
        };
        if !watching {
            self.forget();
        }
    }

    /// Resolves when all events were sent, or the watcher ended. Takes as long as the watcher does.
    pub async fn drain(&mut self) {
        while !self.backlog.is_empty() {
            self.progress().await;
        }
    }

    fn flush(&mut self) {
        let gone = loop {
            let Some(watcher) = &self.watcher else { return };
            match watcher.try_reserve() {
                Ok(permit) => match self.backlog.pop_front() {
                    Some(event) => permit.send(event),
                    None => break false,
                },
                Err(mpsc::error::TrySendError::Full(())) => break false,
                Err(mpsc::error::TrySendError::Closed(())) => break true,
            }
        };
        if gone {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.watcher = None;
        self.backlog.clear();
    }
}
