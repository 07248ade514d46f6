//! The events that a pod shows to its watcher. A watcher loses no event: one that does not keep up slows down the
//! model's stream, then features, never the turn's commits. A watcher that is gone is forgotten.

use super::requests::AlertLevel;
use crate::feature::FeatureId;
use crate::record::Record;
use llm_worker::effect::Delta;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// How many events may wait in the channel.
pub const CHANNEL: usize = 256;

/// How many events may wait behind it before the model's stream is held back.
pub const BACKLOG: usize = 1024;

/// With so many waiting, features are not heeded either: what they hand in makes events, too. What a running turn
/// still brings by itself is bounded.
pub const MOST: usize = 4 * BACKLOG;

/// One thing to show.
#[derive(Clone, Debug)]
pub enum Event {
    /// A record became durable.
    Record { seq: u64, record: Arc<Record> },
    /// Part of an answer that is not durable yet.
    Delta(Delta),
    /// Writing failed; it is tried again shortly.
    Suspended { reason: String },
    /// For people; in no log and no context.
    Alert(Alert),
}

/// Short words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    pub level: AlertLevel,
    /// The feature that says it; none for the host.
    pub from: Option<FeatureId>,
    pub text: String,
}

impl Event {
    /// The host's own words.
    pub(crate) fn warning(text: String) -> Self {
        Self::Alert(Alert { level: AlertLevel::Warning, from: None, text })
    }
}

/// The pod's end of the channel to its watcher.
#[derive(Debug)]
pub struct Outbox {
    watcher: Option<mpsc::Sender<Event>>,
    backlog: VecDeque<Event>,
    /// The newest record that the state stands for: who reads the files needs no more.
    folded: watch::Sender<u64>,
}

impl Outbox {
    /// An outbox nobody watches.
    #[must_use]
    pub fn unwatched() -> Self {
        Self { watcher: None, backlog: VecDeque::new(), folded: watch::Sender::default() }
    }

    /// An outbox and the end to watch it from.
    #[must_use]
    pub fn watched() -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(CHANNEL);
        (Self { watcher: Some(sender), ..Self::unwatched() }, receiver)
    }

    /// Shows one event, now or as soon as there is room.
    pub fn show(&mut self, event: Event) {
        if self.watcher.is_some() {
            self.backlog.push_back(event);
            self.flush();
        }
    }

    /// The state stands for this record and all before it.
    pub(crate) fn folded(&self, seq: u64) {
        self.folded.send_replace(seq);
    }

    /// Says up to where a reader of the files may go.
    pub(crate) fn following(&self) -> watch::Receiver<u64> {
        self.folded.subscribe()
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

    /// Resolves when some waiting event was handed over, or the watcher is gone. Cancel-safe.
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

    /// Resolves when everything was handed over, or the watcher is gone: as long as the watcher takes.
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
