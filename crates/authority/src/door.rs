//! Doors: every grant has one, every use passes it, and shutting it is final.
//!
//! ```text
//! open ──enter──▶ inside (counted) ──drop──▶ open
//!   └──shut──▶ shut: enter refused at once; shut().await resolves when nobody is inside, here and behind every derived door
//! ```
//!
//! Entering adds itself to the count *first* and looks at the shut bit in the same atomic step, so no use can slip
//! between the check and the count.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const SHUT: u64 = 1 << 63;

/// The door of one grant.
#[derive(Debug)]
pub struct Door {
    /// The shut bit, and how many are inside.
    state: AtomicU64,
    uses: AtomicU64,
    refused: AtomicU64,
    /// Milliseconds since 1970 of the last entry; 0 before the first.
    last_use: AtomicU64,
    empty: Notify,
    closed: CancellationToken,
    derived: Mutex<Vec<Weak<Door>>>,
    /// Keeps the chain whole: a parent finds its grandchildren through its children.
    _parent: Option<Arc<Door>>,
}

/// The door is shut: the grant was revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the grant was revoked")]
pub struct Shut;

/// Being inside; held while host code runs under the grant, never across a wait that a caller controls.
#[derive(Debug)]
pub struct Pass<'a>(&'a Door);

/// A pass that can be moved into another thread or a future.
#[derive(Debug)]
pub struct OwnedPass(Arc<Door>);

impl Door {
    /// An open door.
    #[allow(clippy::new_ret_no_self, reason = "a door is always shared")]
    pub fn new() -> Arc<Self> {
        Self::with_parent(None)
    }

    fn with_parent(parent: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last_use: AtomicU64::new(0),
            empty: Notify::new(),
            closed: CancellationToken::new(),
            derived: Mutex::new(Vec::new()),
            _parent: parent,
        })
    }

    /// A door that shuts when this one does, with counters of its own. Derived from a shut door it is shut.
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

    /// Goes in for the time the pass is held.
    ///
    /// # Errors
    /// [`Shut`].
    pub fn enter(&self) -> Result<Pass<'_>, Shut> {
        self.step_in()?;
        Ok(Pass(self))
    }

    /// [`Door::enter`] with a pass that owns its door.
    ///
    /// # Errors
    /// [`Shut`].
    pub fn enter_owned(self: &Arc<Self>) -> Result<OwnedPass, Shut> {
        self.step_in()?;
        Ok(OwnedPass(self.clone()))
    }

    /// Shuts at once, also every derived door; resolves when nobody is inside any of them. Dropping the future does
    /// not open anything again.
    ///
    /// Awaited by someone who is inside, it never resolves.
    #[must_use = "the door is shut at once, but uses under way end only when this resolves"]
    pub fn shut(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        let mut waiting = Vec::new();
        self.close_all(&mut waiting);
        async move {
            for door in waiting {
                door.emptied().await;
            }
        }
    }

    /// Whether it is shut.
    pub fn is_shut(&self) -> bool {
        self.state.load(Ordering::SeqCst) & SHUT != 0
    }

    /// Resolves when the door shuts; what a parked operation selects on.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// How often it was entered.
    pub fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// How often entry was refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// When it was last entered, to the millisecond.
    pub fn last_use(&self) -> Option<SystemTime> {
        let millis = self.last_use.load(Ordering::Relaxed);
        (millis != 0).then(|| UNIX_EPOCH + Duration::from_millis(millis))
    }

    fn step_in(&self) -> Result<(), Shut> {
        let before = self.state.fetch_add(1, Ordering::SeqCst);
        if before & SHUT != 0 {
            self.refused.fetch_add(1, Ordering::Relaxed);
            self.step_out();
            return Err(Shut);
        }
        self.uses.fetch_add(1, Ordering::Relaxed);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_use.store(u64::try_from(since.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(())
    }

    fn step_out(&self) {
        if self.state.fetch_sub(1, Ordering::SeqCst) == SHUT | 1 {
            self.empty.notify_waiters();
        }
    }

    fn close(&self) {
        self.state.fetch_or(SHUT, Ordering::SeqCst);
        self.closed.cancel();
    }

    fn close_all(self: &Arc<Self>, waiting: &mut Vec<Arc<Self>>) {
        // The bit before the lock: whoever derives at this moment either sees it or is in the list.
        self.close();
        waiting.push(self.clone());
        let derived: Vec<_> = {
            let derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
            derived.iter().filter_map(Weak::upgrade).collect()
        };
        for child in derived {
            child.close_all(waiting);
        }
    }

    async fn emptied(&self) {
        loop {
            let mut changed = std::pin::pin!(self.empty.notified());
            changed.as_mut().enable();
            if self.state.load(Ordering::SeqCst) == SHUT {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.step_out();
    }
}

impl Drop for OwnedPass {
    fn drop(&mut self) {
        self.0.step_out();
    }
}
