//! Callers that wait for the commit of a notification: one, or several that sent the same key.

use super::requests::{CommitWaiter, Declined};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::oneshot;

/// Gets the number of the notification.
pub(super) type NumberReply = oneshot::Sender<Result<u64, Declined>>;

/// The callers of one notification.
type Callers = Mutex<Vec<NumberReply>>;

/// Keyed notifications that wait for their commit, by sender and key.
#[derive(Default)]
pub(super) struct UncommittedKeys(Vec<((String, String), Weak<Callers>)>);

impl UncommittedKeys {
    /// Lets a caller wait for the notification that was sent with this key; gives it back if none waits for its commit.
    pub(super) fn join(
        &mut self,
        key: &(String, String),
        reply: NumberReply,
    ) -> Option<NumberReply> {
        self.0.retain(|(_, callers)| callers.strong_count() > 0);
        let Some(callers) = self
            .0
            .iter()
            .find(|(known, _)| known == key)
            .and_then(|(_, callers)| callers.upgrade())
        else {
            return Some(reply);
        };
        let mut callers = callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|caller| !caller.is_closed());
        callers.push(reply);
        None
    }
}

/// Resolves the callers of one notification.
pub(super) struct NotificationWaiter {
    number: u64,
    callers: Arc<Callers>,
    _in_flight: Arc<()>,
}

impl NotificationWaiter {
    /// The waiter of a notification; with a key, later callers can join it. `in_flight` is held until it is resolved.
    pub(super) fn new(
        number: u64,
        reply: NumberReply,
        key: Option<(String, String)>,
        keys: &mut UncommittedKeys,
        in_flight: Arc<()>,
    ) -> Self {
        let callers = Arc::new(Mutex::new(vec![reply]));
        keys.0
            .extend(key.map(|key| (key, Arc::downgrade(&callers))));
        Self {
            number,
            callers,
            _in_flight: in_flight,
        }
    }
}

impl CommitWaiter for NotificationWaiter {
    fn is_valid(&self) -> bool {
        true
    }

    fn resolve(self: Box<Self>, done: Result<(), &str>) {
        for caller in self
            .callers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            let done = done
                .map(|()| self.number)
                .map_err(|why| Declined::Refused(why.to_owned()));
            drop(caller.send(done));
        }
    }
}
