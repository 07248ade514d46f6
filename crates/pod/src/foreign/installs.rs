//! Runs `descriptor()` and `install()` of features: synchronous code, called by a host without a runtime. Does not
//! depend on the plan.
//!
//! Callbacks run one after another on one thread, since a start has many and each change of thread costs. A
//! callback that misses its deadline is abandoned with its thread, its late answer is dropped, and the others
//! continue on a new thread. These threads are not those of [`super::Callbacks`], where a feature could not block
//! on a runtime of its own.

use super::contained::caught;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// After this many abandoned threads no further callback starts.
const MAX_STUCK: usize = 8;

/// One call of `descriptor()` or `install()`.
pub(crate) type InstallCallback<T> = Box<dyn FnOnce() -> T + Send>;

/// How a callback ended.
pub(crate) enum CallbackEnd<T> {
    Done { value: T, took: Duration },
    Panicked { message: String },
    TimedOut,
    NotCalled,
}

/// The callbacks of one worker thread, which wakes who waits for them when all have ended: with a wake for each, a
/// start would change threads fifty times.
struct Batch<T> {
    progress: Mutex<Progress<T>>,
    over: Condvar,
}

struct Progress<T> {
    /// Empty, too, once the thread is abandoned.
    left: VecDeque<InstallCallback<T>>,
    ended: Vec<CallbackEnd<T>>,
    /// When the one that runs began.
    running: Option<Instant>,
    /// The one that runs is late, and what it answers is dropped.
    abandoned: bool,
}

/// Runs install callbacks, one after another. Counts abandoned threads across all of its runs.
pub(crate) struct Runner {
    limit: Duration,
    stuck: Vec<JoinHandle<()>>,
}

impl Runner {
    /// Each callback may take `limit`.
    pub(crate) const fn new(limit: Duration) -> Self {
        Self {
            limit,
            stuck: Vec::new(),
        }
    }

    /// Runs all callbacks; the results are in the order of the callbacks.
    pub(crate) fn run_all<T: Send + 'static>(
        &mut self,
        callbacks: Vec<InstallCallback<T>>,
    ) -> Vec<CallbackEnd<T>> {
        let total = callbacks.len();
        let mut ended = Vec::with_capacity(total);
        let mut left = VecDeque::from(callbacks);
        while !left.is_empty() {
            self.stuck.retain(|thread| !thread.is_finished());
            if self.stuck.len() >= MAX_STUCK {
                break;
            }
            let batch = Arc::new(Batch::new(left));
            let worker = Arc::clone(&batch);
            let thread = thread::Builder::new()
                .name("feature-install".into())
                .spawn(move || worker.work());
            let Ok(thread) = thread else { break };
            left = batch.wait(self.limit, &mut ended);
            if batch.progress().abandoned {
                self.stuck.push(thread);
                ended.push(CallbackEnd::TimedOut);
            }
        }
        ended.resize_with(total, || CallbackEnd::NotCalled);
        ended
    }
}

impl<T> Batch<T> {
    fn new(left: VecDeque<InstallCallback<T>>) -> Self {
        let progress = Progress {
            ended: Vec::with_capacity(left.len()),
            left,
            running: None,
            abandoned: false,
        };
        Self {
            progress: Mutex::new(progress),
            over: Condvar::new(),
        }
    }

    /// Adds the results until all callbacks have ended or one is late; then it is abandoned, and those that have not
    /// started are given back.
    fn wait(
        &self,
        limit: Duration,
        ended: &mut Vec<CallbackEnd<T>>,
    ) -> VecDeque<InstallCallback<T>> {
        let mut progress = self.progress();
        while !progress.is_over() {
            let ran = progress
                .running
                .map_or(Duration::ZERO, |began| began.elapsed());
            progress.abandoned = ran >= limit;
            if progress.abandoned {
                break;
            }
            progress = self
                .over
                .wait_timeout(progress, limit.saturating_sub(ran))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        ended.append(&mut progress.ended);
        std::mem::take(&mut progress.left)
    }

    fn work(&self) {
        let mut progress = self.progress();
        while let Some(callback) = progress.left.pop_front() {
            let began = Instant::now();
            progress.running = Some(began);
            drop(progress);
            let answer = match caught(callback) {
                Ok(value) => CallbackEnd::Done {
                    value,
                    took: began.elapsed(),
                },
                Err(message) => CallbackEnd::Panicked { message },
            };
            progress = self.progress();
            if progress.abandoned {
                return;
            }
            progress.running = None;
            progress.ended.push(answer);
        }
        self.over.notify_one();
    }

    fn progress(&self) -> MutexGuard<'_, Progress<T>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Progress<T> {
    fn is_over(&self) -> bool {
        self.left.is_empty() && self.running.is_none()
    }
}
