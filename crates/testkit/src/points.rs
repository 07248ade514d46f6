//! Named points that a run reaches: recorded, and a place to act, wait or die.

use crate::disk::FailingDisk;
use crate::latch::Latch;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use tokio_util::sync::CancellationToken;

type Act = Box<dyn FnOnce() + Send>;

/// The payload of the control thread's unwinding when the pod is killed.
pub(crate) struct Killed;

/// The named points that one pod reaches: a test lists them, runs code at them, or kills the pod at one. Clones share
/// them.
#[derive(Clone)]
pub struct KillPoints {
    disk: FailingDisk,
    inner: Arc<Mutex<PointState>>,
}

#[derive(Default)]
struct PointState {
    came: Vec<String>,
    /// How often each point was reached: a session of 100,000 records reaches a million.
    counts: HashMap<String, usize>,
    acts: Vec<(String, usize, Act)>,
    control: Option<ThreadId>,
    killed: bool,
    /// Fires when the pod is killed.
    gone: CancellationToken,
}

impl KillPoints {
    pub(crate) fn new(disk: FailingDisk) -> Self {
        Self {
            disk,
            inner: Arc::default(),
        }
    }

    /// Every point reached since the last start, in order.
    #[must_use]
    pub fn came(&self) -> Vec<String> {
        self.lock().came.clone()
    }

    /// Every point reached since the last start, with the number of earlier points of that name.
    #[must_use]
    pub fn numbered(&self) -> Vec<(String, usize)> {
        let came = self.came();
        let number =
            |at: usize, name: &String| came.iter().take(at).filter(|other| *other == name).count();
        came.iter()
            .enumerate()
            .map(|(at, name)| (name.clone(), number(at, name)))
            .collect()
    }

    /// Runs `act` at the `nth` point of that name, counted from 0, on the thread that reaches it.
    pub fn at(&self, name: &str, nth: usize, act: impl FnOnce() + Send + 'static) {
        self.lock().acts.push((name.to_owned(), nth, Box::new(act)));
    }

    /// Stops the thread that reaches this point until the latch is open.
    #[must_use]
    pub fn hold(&self, name: &str, nth: usize) -> Latch {
        let gate = Latch::new(&format!("{name} {nth}"));
        let held = gate.clone();
        self.at(name, nth, move || held.pass_blocking());
        gate
    }

    /// Stops the next thread that reaches a point of this name until the latch is open.
    #[must_use]
    pub fn hold_next(&self, name: &str) -> Latch {
        let gate = Latch::new(&format!("the next {name}"));
        let held = gate.clone();
        let mut inner = self.lock();
        let nth = inner.counts.get(name).copied().unwrap_or_default();
        let act = Box::new(move || held.pass_blocking());
        inner.acts.push((name.to_owned(), nth, act));
        gate
    }

    /// Kills the pod there: nothing reaches the disk any more, and its control thread unwinds at its next point.
    pub fn kill(&self, name: &str, nth: usize) {
        let points = self.clone();
        self.at(name, nth, move || {
            points.disk.die();
            let mut inner = points.lock();
            inner.killed = true;
            inner.gone.cancel();
        });
    }

    /// Resets the reached points for a new start on this thread; planned actions stay.
    pub(crate) fn start(&self) {
        let mut inner = self.lock();
        (inner.came, inner.control, inner.killed) =
            (Vec::new(), Some(thread::current().id()), false);
        inner.counts.clear();
        inner.gone = CancellationToken::new();
    }

    /// Fires when the pod is killed after this start, on whatever thread.
    pub(crate) fn gone(&self) -> CancellationToken {
        self.lock().gone.clone()
    }

    pub(crate) fn killed(&self) -> bool {
        self.lock().killed
    }

    /// Removes all planned actions.
    pub fn forget(&self) {
        self.lock().acts.clear();
    }

    pub(crate) fn reach(&self, name: &str) {
        let act = {
            let mut inner = self.lock();
            let count = inner.counts.entry(name.to_owned()).or_default();
            let nth = *count;
            *count += 1;
            inner.came.push(name.to_owned());
            let at = inner
                .acts
                .iter()
                .position(|(point, number, _)| point == name && *number == nth);
            at.map(|at| inner.acts.remove(at).2)
        };
        if let Some(act) = act {
            act();
        }
        let dies = {
            let inner = self.lock();
            inner.killed && inner.control == Some(thread::current().id())
        };
        if dies && !thread::panicking() {
            std::panic::resume_unwind(Box::new(Killed));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PointState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
