//! What reaches the actor from running tools and from features: one bounded channel, whoever asks.
//!
//! Only the actor appends to the log, so whoever wants something durable hands it in here and is told when it is.
//! What nobody waits for rides with the next commit; the first who does wait has it written at once.

use crate::feature::FeatureId;
use crate::record::{FeatureState, Record};
use llm_worker::CallId;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot};

/// How many requests may wait for the actor.
pub(crate) const INBOX: usize = 256;

/// What is asked of the actor.
pub(crate) enum Method {
    /// A running call is about to change something on disk, as this record says.
    Changing { call: CallId, change: Box<Record>, reply: oneshot::Sender<Result<(), String>> },
    /// A feature's state has a new value, of so many bytes.
    UpdateState { state: FeatureState, bytes: usize, ticket: Box<dyn Ticket> },
    /// A feature has words for the model.
    Notify { words: Words, reply: oneshot::Sender<Result<u64, Declined>> },
    /// A feature has words for people, as it said them.
    Alert { feature: FeatureId, level: AlertLevel, text: String },
    /// A feature was given up on.
    Off { feature: FeatureId },
    /// A feature has a note for the report, as it said it.
    Note { feature: FeatureId, text: String },
}

/// A notification on its way, within the bounds of its grant.
pub(crate) struct Words {
    pub(crate) feature: FeatureId,
    pub(crate) text: String,
    pub(crate) per_turn: u32,
}

/// Why a notification was not accepted.
pub(crate) enum Declined {
    /// Too many, in this turn or waiting.
    TooMany(String),
    Refused(String),
}

/// How much a person should mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertLevel {
    Info,
    Warning,
    Error,
}

/// Somebody who is told what became of a record.
pub(crate) trait Ticket: Send {
    /// Whether it is still to be written: what it was built on may have been refused.
    fn stands(&self) -> bool;
    /// It is durable and folded, or it is not in the log.
    fn settle(self: Box<Self>, done: Result<(), &str>);
}

impl Ticket for oneshot::Sender<Result<(), String>> {
    fn stands(&self) -> bool {
        true
    }

    fn settle(self: Box<Self>, done: Result<(), &str>) {
        // Whoever asked may have been cancelled meanwhile; the record stands.
        drop(self.send(done.map_err(str::to_owned)));
    }
}

/// The askers' end; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    methods: mpsc::Sender<Method>,
    wanted: Arc<Notify>,
}

/// The actor's end.
#[derive(Debug)]
pub(crate) struct Inbox {
    methods: mpsc::Receiver<Method>,
    wanted: Arc<Notify>,
}

/// The actor's end and the askers'.
pub(crate) fn inbox() -> (Inbox, Line) {
    let (sender, methods) = mpsc::channel(INBOX);
    let wanted = Arc::new(Notify::new());
    (Inbox { methods, wanted: Arc::clone(&wanted) }, Line { methods: sender, wanted })
}

/// What the actor finds in its inbox.
pub(crate) enum Mail {
    Asked(Method),
    /// Somebody waits for what was handed in.
    Wanted,
}

/// Why nothing was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    Full,
    Closed,
}

impl Line {
    /// Hands in, or not, without waiting.
    pub(crate) fn hand_in(&self, method: Method) -> Result<(), NotTaken> {
        self.methods.try_send(method).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => NotTaken::Full,
            mpsc::error::TrySendError::Closed(_) => NotTaken::Closed,
        })
    }

    /// Hands in as soon as there is room.
    pub(crate) async fn send(&self, method: Method) -> Result<(), NotTaken> {
        self.methods.send(method).await.map_err(|_closed| NotTaken::Closed)
    }

    /// Says that somebody waits.
    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }
}

impl Inbox {
    /// What comes next. Cancel-safe; pending while nothing comes.
    pub(crate) async fn next(&mut self) -> Mail {
        tokio::select! {
            biased;
            Some(method) = self.methods.recv() => Mail::Asked(method),
            () = self.wanted.notified() => Mail::Wanted,
        }
    }

    /// What is there now.
    pub(crate) fn now(&mut self) -> Option<Method> {
        self.methods.try_recv().ok()
    }

    /// Takes nothing more.
    pub(crate) fn close(&mut self) {
        self.methods.close();
    }
}
