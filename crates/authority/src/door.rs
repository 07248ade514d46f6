//! Doors: one for each grant. Every use of a grant enters its door, and a door that is shut never opens again. Does not
//! depend on the purpose of grants.
//!
//! ```text
//! open ──enter──▶ in flight (counted) ──drop──▶ open
//!   ├──drain──▶ draining: enter and begin are refused, running uses continue ──deadline──▶ shut
//!   └──shut───▶ shut: everything is refused at once, closed() fires; shut().await resolves when no use is in flight,
//!               here and at every derived door
//! ```
//!
//! Entering counts *first* and reads the state *afterwards*; shutting writes the state first and reads the count
//! afterwards, all sequentially consistent. So one of the two sees the other, and no use slips between the check and
//! the count. Leaving works the same way, so every waiter is woken.

use std::future::Future;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

const OPEN: u8 = 0;
const DRAINING: u8 = 1;
const SHUT: u8 = 2;

/// The door of one grant: handles enter it for each use, and the host shuts it to revoke the grant.
///
/// ```
/// use authority::Door;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let grant = Door::new();
/// let narrower = grant.derive();
///
/// // Each use goes in, is counted, and leaves when its guard is dropped.
/// drop(narrower.enter()?);
/// assert_eq!(narrower.uses(), 1);
///
/// // Shutting the grant shuts every door derived from it; it resolves when no use is in flight at any of them.
/// grant.shut().await;
/// assert!(narrower.enter().is_err());
/// assert_eq!(narrower.refused(), 1);
/// # Ok::<(), authority::Shut>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Door {
    state: AtomicU8,
    in_flight: AtomicU64,
    uses: AtomicU64,
    /// Milliseconds since 1970; 0 before the first use.
    last_use: AtomicU64,
    /// Number of [`LongUse`]s.
    long_uses: AtomicU64,
    refused: AtomicU64,
    changed: Notify,
    closed: CancellationToken,
    derived: Mutex<Vec<Weak<Door>>>,
    /// Keeps the parent alive: a door reaches its grandchildren through its children.
    _parent: Option<Arc<Door>>,
}

/// The error of entering a door that is shut: the grant was revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the grant was revoked")]
pub struct Shut;

/// One use of a grant in flight. Held while host code runs under the grant, never across a wait that a caller controls.
#[derive(Debug)]
pub struct UseGuard<'a>(&'a Door);

/// A [`UseGuard`] that owns its door, so that it can move into another thread or a future.
#[derive(Debug)]
pub struct OwnedUseGuard(Arc<Door>);

/// A use that lasts longer than one operation, such as a running call: it enters the door for each of its steps.
/// [`Door::drain`] waits for it, [`Door::shut`] does not.
#[derive(Debug)]
pub struct LongUse(Arc<Door>);

impl Door {
    /// Creates an open door.
    #[allow(clippy::new_ret_no_self, reason = "a door is always shared")]
    pub fn new() -> Arc<Self> {
        Self::with_parent(None)
    }

    fn with_parent(parent: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(OPEN),
            in_flight: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            last_use: AtomicU64::new(0),
            long_uses: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            changed: Notify::new(),
            closed: CancellationToken::new(),
            derived: Mutex::new(Vec::new()),
            _parent: parent,
        })
    }

    /// Creates a door that shuts and drains when this one does, with counters of its own. It is shut if this one is not
    /// open.
    pub fn derive(self: &Arc<Self>) -> Arc<Self> {
        let child = Self::with_parent(Some(self.clone()));
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        derived.retain(|door| door.strong_count() > 0);
        if self.is_shut() {
            child.close();
        } else {
            derived.push(Arc::downgrade(&child));
        }
        child
    }

    /// Starts a use that lasts until the guard is dropped.
    ///
    /// # Errors
    /// [`Shut`].
    #[inline]
    pub fn enter(&self) -> Result<UseGuard<'_>, Shut> {
        self.step_in(OPEN)?;
        Ok(UseGuard(self))
    }

    /// [`Door::enter`] with a guard that owns its door.
    ///
    /// # Errors
    /// [`Shut`].
    pub fn enter_owned(self: &Arc<Self>) -> Result<OwnedUseGuard, Shut> {
        self.step_in(OPEN)?;
        Ok(OwnedUseGuard(self.clone()))
    }

    /// Starts a use of several steps, such as a call: it enters the door for each step, and a drain lets it finish.
    ///
    /// # Errors
    /// [`Shut`].
    pub fn begin(self: &Arc<Self>) -> Result<LongUse, Shut> {
        self.long_uses.fetch_add(1, Ordering::SeqCst);
        // From here on dropping `begun` undoes the count.
        let begun = LongUse(self.clone());
        if self.state.load(Ordering::SeqCst) == OPEN {
            Ok(begun)
        } else {
            Err(self.refuse())
        }
    }

    /// Shuts at once, also every derived door; resolves when no use is in flight at any of them. Dropping the
    /// future does not open anything again. Waits by tokio's timer.
    ///
    /// It never resolves if the task that awaits it holds a guard of the door.
    #[must_use = "the door is shut at once, but uses under way end only when this resolves"]
    pub fn shut(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        let all = self.with_derived(Self::close);
        async move {
            for door in all {
                door.waited(Self::is_empty).await;
            }
        }
    }

    /// Refuses new uses at once, here and at every derived door; uses in flight and long uses may finish until `until`.
    /// Then, or when the future is dropped, all doors shut. Resolves like [`Door::shut`].
    #[must_use = "new uses are refused at once, but those under way end only when this resolves"]
    pub fn drain(self: &Arc<Self>, until: Instant) -> impl Future<Output = ()> + Send + use<> {
        let all = self.with_derived(Self::refuse_new);
        let rest = Closing(self.clone());
        async move {
            let finished = async {
                for door in &all {
                    door.waited(|door| {
                        door.is_empty() && door.long_uses.load(Ordering::SeqCst) == 0
                    })
                    .await;
                }
            };
            tokio::select! {
                () = finished => {}
                () = sleep_until(until) => {}
            }
            let shut = rest.0.shut();
            drop(rest);
            shut.await;
        }
    }

    /// Whether new uses are refused: the door is shut or draining.
    pub fn is_shut(&self) -> bool {
        self.state.load(Ordering::SeqCst) != OPEN
    }

    /// Resolves when the door shuts; a waiting operation selects on this. During a drain it resolves at the deadline.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// The number of uses so far.
    pub fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// The number of refused uses so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The time of the last use, by the system's wall clock.
    pub fn last_use(&self) -> Option<SystemTime> {
        let millis = self.last_use.load(Ordering::Relaxed);
        (millis != 0).then(|| UNIX_EPOCH + Duration::from_millis(millis))
    }

    /// Counts a use, unless the door's state is later than `state`.
    #[inline]
    fn step_in(&self, state: u8) -> Result<(), Shut> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        if self.state.load(Ordering::SeqCst) > state {
            self.step_out();
            return Err(self.refuse());
        }
        self.uses.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis();
        self.last_use
            .store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(())
    }

    #[inline]
    fn step_out(&self) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        self.tell();
    }

    #[cold]
    fn refuse(&self) -> Shut {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Shut
    }

    /// Wakes waiters; there are none while the door is open.
    fn tell(&self) {
        if self.is_shut() {
            self.changed.notify_waiters();
        }
    }

    fn refuse_new(&self) {
        self.state.fetch_max(DRAINING, Ordering::SeqCst);
    }

    fn close(&self) {
        self.state.fetch_max(SHUT, Ordering::SeqCst);
        self.closed.cancel();
    }

    fn with_derived(self: &Arc<Self>, act: fn(&Self)) -> Vec<Arc<Self>> {
        // Sets the state before taking the lock: a door derived at the same time either sees the state or is in the
        // list.
        act(self);
        let derived: Vec<_> = {
            let derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
            derived.iter().filter_map(Weak::upgrade).collect()
        };
        let mut all = vec![self.clone()];
        all.extend(derived.iter().flat_map(|child| child.with_derived(act)));
        all
    }

    fn is_empty(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) == 0
    }

    async fn waited(&self, until: impl Fn(&Self) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if until(self) {
                return;
            }
            changed.await;
        }
    }
}

struct Closing(Arc<Door>);

impl Drop for Closing {
    fn drop(&mut self) {
        drop(self.0.shut());
    }
}

impl LongUse {
    /// Enters the door for one step.
    ///
    /// # Errors
    /// [`Shut`], but not while the door drains.
    #[inline]
    pub fn enter(&self) -> Result<UseGuard<'_>, Shut> {
        self.0.step_in(DRAINING)?;
        Ok(UseGuard(&self.0))
    }

    /// The door of the grant.
    pub fn door(&self) -> &Arc<Door> {
        &self.0
    }
}

impl Drop for LongUse {
    fn drop(&mut self) {
        self.0.long_uses.fetch_sub(1, Ordering::SeqCst);
        self.0.tell();
    }
}

impl Drop for UseGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.step_out();
    }
}

impl Drop for OwnedUseGuard {
    fn drop(&mut self) {
        self.0.step_out();
    }
}
