//! One state's value in memory, and its way to the log.

use super::MAX_STATE;
use super::files::{Keeper, NotWritten, StateFile};
use super::key::{StateKey, StateScope};
use super::link::PodLink;
use crate::control::callbacks::words;
use crate::control::inbox::{Line, Method, NotTaken, Ticket};
use crate::feature::FeatureId;
use crate::session::record::FeatureState;
use authority::Door;
use llm_worker::ErrorKind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// A value that survives restarts; see [`crate::feature::FeatureInstallContext::state`]. Clones share it.
pub struct DurableState<T> {
    slot: Arc<Slot<T>>,
}

impl<T> Clone for DurableState<T> {
    fn clone(&self) -> Self {
        Self { slot: Arc::clone(&self.slot) }
    }
}

impl<T> fmt::Debug for DurableState<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state `{}` of {}", self.slot.key.name, self.slot.feature)
    }
}

/// Why an update is not durable. The value is then what it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The log refused it.
    #[error("the update was not written: {0}")]
    Refused(String),
    /// An update it was built on was refused.
    #[error("the update was built on one that was refused; read the state and update it again")]
    Superseded,
    /// The value grew over [`MAX_STATE`]; this many bytes of JSON.
    #[error("the state would have {0} bytes of JSON, at most {MAX_STATE} are allowed; keep less in it")]
    TooLarge(usize),
    /// Too much waits to be written.
    #[error("too much waits to be written; try again")]
    Busy,
    /// The closure panicked; nothing was changed.
    #[error("the update panicked: {0}")]
    Panicked(String),
    /// The pod has let go, or the grant was revoked.
    #[error("the state is closed")]
    Closed,
    /// The value does not encode.
    #[error("the state does not encode as JSON: {0}")]
    Json(String),
}

impl StateError {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(_) | Self::Closed => ErrorKind::Unavailable,
            Self::Superseded | Self::Busy => ErrorKind::Retry,
            Self::TooLarge(_) => ErrorKind::Exhausted,
            Self::Panicked(_) | Self::Json(_) => ErrorKind::Bug,
        }
    }
}

/// The answer to an update. Dropping it loses the answer, not the update.
#[must_use = "an update is durable only when this says so; drop it on purpose where that does not matter"]
pub struct Update<R> {
    begun: Result<Begun<R>, Option<StateError>>,
}

struct Begun<R> {
    value: Option<R>,
    done: oneshot::Receiver<Result<(), StateError>>,
    /// Whom to tell that somebody waits.
    line: Option<Line>,
}

impl<R: Unpin> Future for Update<R> {
    type Output = Result<R, StateError>;

    /// Must not be polled again after it was ready; it is then `Closed`.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.begun {
            Err(error) => Poll::Ready(Err(error.take().unwrap_or(StateError::Closed))),
            Ok(begun) => {
                if let Some(line) = begun.line.take() {
                    line.want();
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
    way: Way,
    door: Arc<Door>,
    /// Held while a closure runs, so that the driver, which takes only `cells`, never waits for a feature.
    turn: Mutex<()>,
    cells: Mutex<Cells<T>>,
}

/// How a value becomes durable.
enum Way {
    Journal(Line),
    File(Keeper, Arc<StateFile>),
}

struct Cells<T> {
    durable: Arc<T>,
    newest: Arc<T>,
    /// Raised when updates were refused: those built on them are void.
    epoch: u64,
}

impl<T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static> DurableState<T> {
    /// The state a feature left, or its default.
    pub(in crate::feature) fn load(
        key: &StateKey<T>,
        feature: &FeatureId,
        link: &PodLink,
        door: Arc<Door>,
    ) -> Result<Self, String> {
        let (left, way) = match key.scope {
            StateScope::Session => (link.left(feature, key.name).cloned(), Way::Journal(link.line.clone())),
            StateScope::Pod | StateScope::User => {
                let dir = link.dir(key.scope).ok_or_else(|| format!("this host keeps no {} state", key.scope))?;
                let file = StateFile::new(dir.derive(), feature, key.name);
                (file.read()?, Way::File(link.keeper.clone(), Arc::new(file)))
            }
        };
        let value = left.map_or_else(|| Ok(T::default()), |left| key.read(left.version, &left.value))?;
        let durable = Arc::new(value);
        let cells = Mutex::new(Cells { newest: Arc::clone(&durable), durable, epoch: 0 });
        let (feature, turn) = (feature.clone(), Mutex::default());
        let slot = Slot { feature, key: key.copy(), way, door, turn, cells };
        Ok(Self { slot: Arc::new(slot) })
    }

    /// The committed value. Cheap; for hooks too.
    #[must_use]
    pub fn read(&self) -> Arc<T> {
        Arc::clone(&self.slot.cells().durable)
    }

    /// The newest value, committed or not: what the next update starts from. For finding out whether there is anything
    /// to update; what is shown or promised to anybody comes from [`DurableState::read`].
    #[must_use]
    pub fn newest(&self) -> Arc<T> {
        Arc::clone(&self.slot.cells().newest)
    }

    /// Runs `change` now, on a copy of the newest value, committed or not, and hands the result in. Must not be called
    /// from within another update of the same state: that never returns.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Update<R> {
        Update { begun: self.begin(change).map_err(Some) }
    }

    fn begin<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<Begun<R>, StateError> {
        let slot = &self.slot;
        let _pass = slot.door.enter().map_err(|_shut| StateError::Closed)?;
        let _turn = slot.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, epoch) = {
            let cells = slot.cells();
            (Arc::clone(&cells.newest), cells.epoch)
        };
        let mut value = (*before).clone();
        let answer = catch_unwind(AssertUnwindSafe(|| change(&mut value)))
            .map_err(|panic| StateError::Panicked(words(&*panic)))?;
        let json = serde_json::to_value(&value).map_err(|e| StateError::Json(e.to_string()))?;
        let bytes = json.to_string().len();
        if bytes > MAX_STATE {
            return Err(StateError::TooLarge(bytes));
        }
        let value = Arc::new(value);
        let (reply, done) = oneshot::channel();
        let ticket = Pending { slot: Arc::clone(slot), epoch, value: Arc::clone(&value), reply };
        let (feature, name) = (slot.feature.to_string(), slot.key.name.to_owned());
        let state = FeatureState { feature, name, version: slot.key.version, value: Arc::new(json) };
        {
            let mut cells = slot.cells();
            if cells.epoch != epoch {
                return Err(StateError::Superseded);
            }
            slot.hand_in(state, ticket)?;
            cells.newest = value;
        }
        let line = match &slot.way {
            Way::Journal(line) => Some(line.clone()),
            Way::File(..) => None,
        };
        Ok(Begun { value: Some(answer), done, line })
    }
}

impl<T: DeserializeOwned + Send + Sync + 'static> Slot<T> {
    fn hand_in(&self, state: FeatureState, ticket: Pending<T>) -> Result<(), StateError> {
        match &self.way {
            Way::Journal(line) => {
                line.hand_in(Method::UpdateState { state, ticket: Box::new(ticket) }).map_err(|not| match not {
                    NotTaken::Full => StateError::Busy,
                    NotTaken::Closed => StateError::Closed,
                })
            }
            Way::File(keeper, file) => {
                let file = Arc::clone(file);
                let queued = keeper.queue(Box::new(move || save(&file, &state, Box::new(ticket))));
                if queued { Ok(()) } else { Err(StateError::Busy) }
            }
        }
    }

    /// Starts over from what somebody else wrote.
    fn reload(&self, file: &StateFile) {
        let read = file.read().ok().flatten().and_then(|left| self.key.read(left.version, &left.value).ok());
        let mut cells = self.cells();
        if let Some(value) = read {
            cells.durable = Arc::new(value);
        }
        cells.newest = Arc::clone(&cells.durable);
        cells.epoch += 1;
    }
}

/// Writes one value to its file, on the keeper's thread.
fn save<T: DeserializeOwned + Send + Sync + 'static>(file: &StateFile, state: &FeatureState, ticket: Box<Pending<T>>) {
    if !ticket.stands() {
        return ticket.settle(Err("what it was built on was refused"));
    }
    match file.write(state) {
        Ok(()) => ticket.settle(Ok(())),
        Err(NotWritten::Refused(why)) => ticket.settle(Err(&why)),
        Err(NotWritten::Changed) => {
            ticket.slot.reload(file);
            ticket.settle(Err("somebody else wrote it meanwhile"));
        }
    }
}

impl<T> Slot<T> {
    fn cells(&self) -> MutexGuard<'_, Cells<T>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An update on its way to the log.
struct Pending<T> {
    slot: Arc<Slot<T>>,
    epoch: u64,
    value: Arc<T>,
    reply: oneshot::Sender<Result<(), StateError>>,
}

impl<T: Send + Sync> Ticket for Pending<T> {
    fn stands(&self) -> bool {
        self.slot.cells().epoch == self.epoch
    }

    fn settle(self: Box<Self>, done: Result<(), &str>) {
        let Self { slot, epoch, value, reply } = *self;
        let mut cells = slot.cells();
        let told = match done {
            Ok(()) => {
                cells.durable = value;
                Ok(())
            }
            Err(_) if cells.epoch != epoch => Err(StateError::Superseded),
            Err(why) => {
                cells.newest = Arc::clone(&cells.durable);
                cells.epoch += 1;
                Err(StateError::Refused(why.to_owned()))
            }
        };
        drop(cells);
        // Whoever asked may not wait for the answer.
        drop(reply.send(told));
    }
}
