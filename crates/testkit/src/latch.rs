//! A latch: code under test waits at it until the test opens it.

use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;
use tokio::sync::Notify;

/// The longest wait of the testkit before the test fails: enough for a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A named point at which code under test waits until the test opens it. Clones share one latch. Once open, it stays
/// open.
#[derive(Clone, Debug)]
pub struct Latch(Arc<LatchState>);

#[derive(Debug)]
struct LatchState {
    name: String,
    /// The number of arrivals, and whether it is open.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
    opened: Notify,
}

impl Latch {
    /// A closed latch.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let state = Mutex::new((0, false));
        let changed = Condvar::new();
        let opened = Notify::new();
        Self(Arc::new(LatchState {
            name: name.to_owned(),
            state,
            changed,
            opened,
        }))
    }

    /// Opens the latch; all waiting code continues.
    pub fn open(&self) {
        self.lock().1 = true;
        self.0.changed.notify_all();
        self.0.opened.notify_waiters();
    }

    /// The number of arrivals so far, whether they still wait or not.
    #[must_use]
    pub fn came(&self) -> usize {
        self.lock().0
    }

    /// Blocks this thread until `many` have arrived.
    pub fn wait_for(&self, many: usize) {
        self.until(|state| state.0 >= many, "nobody came to");
    }

    /// Arrives and blocks this thread until the latch is open.
    pub fn pass_blocking(&self) {
        self.come();
        self.until(|state| state.1, "nobody opened");
    }

    /// Arrives and waits until the latch is open.
    pub async fn pass(&self) {
        self.come();
        loop {
            let opened = self.0.opened.notified();
            if self.lock().1 {
                return;
            }
            opened.await;
        }
    }

    fn come(&self) {
        self.lock().0 += 1;
        self.0.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (usize, bool)> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self, done: impl Fn(&(usize, bool)) -> bool, complaint: &str) {
        let waited = self
            .0
            .changed
            .wait_timeout_while(self.lock(), PATIENCE, |state| !done(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(done(&state), "{complaint} latch `{}`", self.0.name);
    }
}

/// Runs `work` on a new thread; panics when it panics or takes longer than [`PATIENCE`].
pub fn within<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    let thread = thread::spawn(move || {
        // The receiver was dropped if the test has failed already.
        drop(done.send(work()));
    });
    match result.recv_timeout(PATIENCE) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Ok(()) => panic!("{what}: no result"),
            Err(panic) => std::panic::resume_unwind(panic),
        },
    }
}
