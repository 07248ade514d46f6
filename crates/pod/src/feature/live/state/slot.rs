//! One state's value in memory, and how it becomes durable. Depends on the actor's mailbox only.

use super::files::{FileContent, Keeper, NotQueued, NotWritten, StateFile};
use super::link::PodLink;
use super::{MAX_NESTING, MAX_STATE};
use crate::feature::FeatureId;
use crate::feature::declare::diagnostic::MAX_MESSAGE;
use crate::feature::declare::state::{StateKey, StateScope};
use crate::feature::declare::text::{sanitize, secret};
use crate::feature::live::presence::{Absent, Presence};
use crate::foreign::caught;
use crate::mailbox::requests::{CommitWaiter, DriverRequest, MailboxSender, NotTaken};
use crate::record::FeatureState;
use authority::{Door, Redactor};
use llm_worker::ErrorKind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// A feature's handle on a value that survives restarts; see [`crate::feature::FeatureInstallContext::state`]. Clones
/// share it.
pub struct DurableState<T> {
    slot: Arc<Slot<T>>,
}

impl<T> Clone for DurableState<T> {
    fn clone(&self) -> Self {
        Self {
            slot: Arc::clone(&self.slot),
        }
    }
}

impl<T> fmt::Debug for DurableState<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state `{}` of {}", self.slot.key.name, self.slot.feature)
    }
}

/// The reason why an update is not durable. The value is unchanged then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("the update was not written: {0}")]
    Refused(String),
    /// An earlier update, which this one depends on, was refused.
    #[error(
        "an earlier update, on which this one was based, was refused; read the state and update it again"
    )]
    Superseded,
    /// The value grew over [`MAX_STATE`]; this many bytes of JSON.
    #[error(
        "the state would have {0} bytes of JSON, which is over the limit of {MAX_STATE}; keep less in it"
    )]
    TooLarge(usize),
    #[error("too many updates are waiting to be written; try again")]
    Busy,
    /// The closure panicked; nothing was changed.
    #[error("the update panicked: {0}")]
    Panicked(String),
    /// The pod has ended, the grant was revoked, or the feature is not live any more.
    #[error("the state is closed")]
    Closed,
    /// The feature is still installing: an update could not be withdrawn if the install failed.
    #[error("the feature is not installed yet; update the state from a tool or a hook")]
    Early,
    /// The value does not encode as JSON, or its JSON cannot be read again.
    #[error("the state cannot be stored as JSON: {0}")]
    Json(String),
    /// The state changed since the caller read it; it has this revision now.
    #[error("the state has changed and is at revision {0}; read it again")]
    Conflict(u64),
    /// Another process wrote a value that this build cannot read. The file is kept, and nothing is written until the
    /// next start.
    #[error("another writer changed the state, and it cannot be read: {0}")]
    Unreadable(String),
}

impl StateError {
    /// The category of the error, which decides the caller's reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(_) | Self::Closed | Self::Unreadable(_) => ErrorKind::Unavailable,
            Self::Superseded | Self::Busy | Self::Conflict(_) => ErrorKind::Retry,
            Self::TooLarge(_) => ErrorKind::Exhausted,
            Self::Panicked(_) | Self::Json(_) | Self::Early => ErrorKind::Bug,
        }
    }
}

/// The pending result of an update. Dropping it loses the result, not the update.
#[must_use = "an update is durable only when this says so; drop it on purpose where that does not matter"]
pub struct Update<R> {
    begun: Result<Begun<R>, Option<StateError>>,
}

struct Begun<R> {
    value: Option<R>,
    done: oneshot::Receiver<Result<(), StateError>>,
    /// The mailbox, to request a commit when the caller waits.
    mailbox: Option<MailboxSender>,
}

impl<R> Update<R> {
    /// The error if the update was rejected before it was queued. For callers that do not await the update but must not
    /// continue after a rejection.
    #[must_use]
    pub fn refused(&self) -> Option<&StateError> {
        self.begun.as_ref().err().and_then(Option::as_ref)
    }
}

impl<R: Unpin> Future for Update<R> {
    type Output = Result<R, StateError>;

    /// Must not be polled again after it was ready; it is then `Closed`.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.begun {
            Err(error) => Poll::Ready(Err(error.take().unwrap_or(StateError::Closed))),
            Ok(begun) => {
                if let Some(mailbox) = begun.mailbox.take() {
                    mailbox.want_commit();
                }
                let done = std::task::ready!(Pin::new(&mut begun.done).poll(cx));
                let value = begun.value.take().ok_or(StateError::Closed);
                Poll::Ready(done.unwrap_or(Err(StateError::Closed)).and(value))
            }
        }
    }
}

struct Slot<T> {
    feature: FeatureId,
    key: StateKey<T>,
    way: Durability,
    door: Arc<Door>,
    presence: Arc<Presence>,
    redactor: Redactor,
    /// Locked while a closure runs. The actor locks only `cells`, so it never waits for a feature.
    turn: Mutex<()>,
    cells: Mutex<Cells<T>>,
}

/// How a value becomes durable.
enum Durability {
    Journal(MailboxSender),
    File(Keeper, Arc<StateFile>),
}

struct Cells<T> {
    durable: Arc<T>,
    newest: Arc<T>,
    /// Raised when updates were refused: later updates that depend on those are invalid.
    epoch: u64,
    /// Raised whenever `newest` changes.
    revision: u64,
    /// A value of another process that is not parsed yet: parsing runs the feature's code, on the feature's thread.
    found: Option<FileContent>,
    /// The error of parsing it. The stored value is unknown, so it is not overwritten.
    unreadable: Option<String>,
}

impl<T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static> DurableState<T> {
    /// The stored state, or its default.
    pub(crate) fn load(
        key: &StateKey<T>,
        feature: &FeatureId,
        link: &PodLink,
        (door, presence): (Arc<Door>, Arc<Presence>),
        redactor: Redactor,
    ) -> Result<Self, String> {
        let (left, way) = match key.scope {
            StateScope::Session => (
                link.left(feature, &key.name).cloned(),
                Durability::Journal(link.mailbox.clone()),
            ),
            StateScope::Pod | StateScope::User => {
                let dir = link
                    .dir(key.scope)
                    .ok_or_else(|| format!("this host keeps no {} state", key.scope))?;
                let file = StateFile::new(dir.derive(), feature, &key.name);
                let (left, stamp) = file.read()?;
                file.adopt(stamp);
                (left, Durability::File(link.keeper.clone(), Arc::new(file)))
            }
        };
        let durable = Arc::new(key.left(left.as_ref())?);
        let newest = Arc::clone(&durable);
        let cells = Mutex::new(Cells {
            newest,
            durable,
            epoch: 0,
            revision: 1,
            found: None,
            unreadable: None,
        });
        let feature = feature.clone();
        let turn = Mutex::default();
        let slot = Slot {
            feature,
            key: key.copy(),
            way,
            door,
            presence,
            redactor,
            turn,
            cells,
        };
        Ok(Self {
            slot: Arc::new(slot),
        })
    }

    /// The committed value. Cheap; for hooks too.
    #[must_use]
    pub fn read(&self) -> Arc<T> {
        self.slot.catch_up();
        Arc::clone(&self.slot.cells().durable)
    }

    /// The newest value, committed or not: the base of the next update. Use it to find out whether an update is needed;
    /// show or report only [`DurableState::read`].
    #[must_use]
    pub fn newest(&self) -> Arc<T> {
        self.slot.catch_up();
        Arc::clone(&self.slot.cells().newest)
    }

    /// Runs `change` at once, on a copy of the newest value, committed or not, and queues the result, as it reads back
    /// from its JSON. Must not be called from within another update of the same state: that never returns.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Update<R> {
        Update {
            begun: self.begin(None, change).map_err(Some),
        }
    }

    /// The revision of [`Self::newest`]: it grows with each change, from 1 at each start. To replace a value, get the
    /// revision first and the newest value then: a change in between is a conflict.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.slot.catch_up();
        self.slot.cells().revision
    }

    /// Replaces the newest value, if it still has this revision; otherwise the error is [`StateError::Conflict`]. For
    /// owners of the value in another process, which no closure of [`Self::update`] reaches.
    pub fn replace(&self, revision: u64, value: T) -> Update<()> {
        Update {
            begun: self.begin(Some(revision), |old| *old = value).map_err(Some),
        }
    }

    fn begin<R>(
        &self,
        expected: Option<u64>,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<Begun<R>, StateError> {
        let slot = &self.slot;
        slot.presence.check().map_err(|absent| match absent {
            Absent::Early => StateError::Early,
            Absent::Gone => StateError::Closed,
        })?;
        let _pass = slot.door.enter().map_err(|_shut| StateError::Closed)?;
        let _turn = slot.turn.lock().unwrap_or_else(PoisonError::into_inner);
        slot.catch_up();
        let (before, epoch) = {
            let cells = slot.cells();
            if let Some(why) = &cells.unreadable {
                return Err(StateError::Unreadable(why.clone()));
            }
            if expected.is_some_and(|expected| expected != cells.revision) {
                return Err(StateError::Conflict(cells.revision));
            }
            (Arc::clone(&cells.newest), cells.epoch)
        };
        let (answer, value, json, bytes) = slot
            .contained(|| slot.next(&before, change))
            .map_err(StateError::Panicked)??;
        let value = Arc::new(value);
        let (reply, done) = oneshot::channel();
        let waiter = PendingUpdate {
            slot: Arc::clone(slot),
            epoch,
            value: Arc::clone(&value),
            reply,
        };
        let feature = slot.feature.to_string();
        let name = slot.key.name.to_string();
        let state = FeatureState {
            feature,
            name,
            version: slot.key.version,
            value: Arc::new(json),
        };
        {
            let mut cells = slot.cells();
            if cells.epoch != epoch {
                return Err(StateError::Superseded);
            }
            slot.hand_in(state, bytes, waiter)?;
            cells.newest = value;
            cells.revision += 1;
        }
        let mailbox = match &slot.way {
            Durability::Journal(mailbox) => Some(mailbox.clone()),
            Durability::File(..) => None,
        };
        Ok(Begun {
            value: Some(answer),
            done,
            mailbox,
        })
    }
}

impl<T: Serialize + DeserializeOwned + Clone + Default> Slot<T> {
    /// The next value as a later reader gets it: changed, written as JSON and read again. So the value in memory equals
    /// the one in the log, and a value that cannot be read is never written.
    fn next<R>(
        &self,
        before: &T,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<(R, T, Value, usize), StateError> {
        let mut value = before.clone();
        let answer = change(&mut value);
        let unfit = |error: serde_json::Error| {
            StateError::Json(sanitize(&error.to_string(), MAX_MESSAGE, &self.redactor))
        };
        let text = serde_json::to_string(&value).map_err(unfit)?;
        if text.len() > MAX_STATE {
            return Err(StateError::TooLarge(text.len()));
        }
        let json: Value = serde_json::from_str(&text).map_err(unfit)?;
        let levels = nesting(&json);
        if levels > MAX_NESTING {
            return Err(StateError::Json(format!(
                "it has {levels} levels; the limit is {MAX_NESTING}"
            )));
        }
        if let Some(secret) = secret(&json, &self.redactor) {
            return Err(StateError::Refused(format!(
                "the state contains {secret}; keep the handle, not the secret"
            )));
        }
        let again = |why: String| format!("the stored value cannot be read back: {why}");
        let read = self.key.read(self.key.version, &json);
        let value = read
            .map_err(|why| StateError::Json(sanitize(&again(why), MAX_MESSAGE, &self.redactor)))?;
        Ok((answer, value, json, text.len()))
    }

    /// Replaces the value by that of another process, if there is one.
    fn catch_up(&self) {
        let Some((left, stamp)) = self.cells().found.take() else {
            return;
        };
        let read = self
            .contained(|| self.key.left(left.as_ref()))
            .and_then(|read| read);
        let mut cells = self.cells();
        match (read, &self.way) {
            (Ok(value), Durability::File(_, file)) => {
                cells.durable = Arc::new(value);
                file.adopt(stamp);
            }
            (Err(why), Durability::File(..)) => {
                cells.unreadable = Some(sanitize(&why, MAX_MESSAGE, &self.redactor))
            }
            (_, Durability::Journal(_)) => {}
        }
        cells.start_over();
    }
}

/// The nesting of arrays and objects. A parsed value has a bound on it.
fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(nesting).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(nesting).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

impl<T: Send + Sync + 'static> Slot<T> {
    fn hand_in(
        &self,
        state: FeatureState,
        bytes: usize,
        waiter: PendingUpdate<T>,
    ) -> Result<(), StateError> {
        match &self.way {
            Durability::Journal(mailbox) => {
                let request = DriverRequest::UpdateState {
                    state,
                    bytes,
                    waiter: Box::new(waiter),
                };
                mailbox.try_send(request).map_err(|not| match not {
                    NotTaken::Full => StateError::Busy,
                    NotTaken::Closed => StateError::Closed,
                })
            }
            Durability::File(keeper, file) => {
                let file = Arc::clone(file);
                let queued = keeper.queue(Box::new(move || save(&file, &state, Box::new(waiter))));
                queued.map_err(|not| match not {
                    NotQueued::Full => StateError::Busy,
                    NotQueued::Closed => StateError::Closed,
                })
            }
        }
    }
}

/// Writes one value to its file, on the keeper's thread. No code of a feature runs there: if it hung, it would block
/// the states of all features.
fn save<T: Send + Sync + 'static>(
    file: &StateFile,
    state: &FeatureState,
    waiter: Box<PendingUpdate<T>>,
) {
    if !waiter.is_valid() {
        return waiter.resolve(Err(
            "an earlier update, on which this one was based, was refused",
        ));
    }
    match file.write(state) {
        Ok(()) => waiter.resolve(Ok(())),
        Err(NotWritten::Refused(why)) => waiter.resolve(Err(&why)),
        Err(NotWritten::Changed) => {
            let found = file.read();
            let why = found.as_ref().err().cloned();
            {
                let mut cells = waiter.slot.cells();
                cells.found = found.ok();
                cells.start_over();
            }
            match why {
                None => waiter.resolve(Err("another writer changed it meanwhile")),
                Some(why) => waiter.answer(Err(StateError::Unreadable(why))),
            }
        }
    }
}

impl<T> Cells<T> {
    /// Discards updates that are not durable.
    fn start_over(&mut self) {
        self.newest = Arc::clone(&self.durable);
        self.epoch += 1;
        self.revision += 1;
    }
}

impl<T> Slot<T> {
    /// Runs code of the feature; the message of a panic is the error.
    fn contained<R>(&self, work: impl FnOnce() -> R) -> Result<R, String> {
        caught(work).map_err(|words| sanitize(&words, MAX_MESSAGE, &self.redactor))
    }

    fn cells(&self) -> MutexGuard<'_, Cells<T>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An update on its way to the log.
struct PendingUpdate<T> {
    slot: Arc<Slot<T>>,
    epoch: u64,
    value: Arc<T>,
    reply: oneshot::Sender<Result<(), StateError>>,
}

impl<T: Send + Sync> CommitWaiter for PendingUpdate<T> {
    fn is_valid(&self) -> bool {
        self.slot.cells().epoch == self.epoch
    }

    fn resolve(self: Box<Self>, done: Result<(), &str>) {
        let mut cells = self.slot.cells();
        let told = match done {
            Ok(()) => {
                cells.durable = Arc::clone(&self.value);
                Ok(())
            }
            Err(_) if cells.epoch != self.epoch => Err(StateError::Superseded),
            Err(why) => {
                cells.start_over();
                Err(StateError::Refused(why.to_owned()))
            }
        };
        drop(cells);
        self.answer(told);
    }
}

impl<T> PendingUpdate<T> {
    fn answer(self, told: Result<(), StateError>) {
        // The caller may not wait for the result.
        drop(self.reply.send(told));
    }
}
