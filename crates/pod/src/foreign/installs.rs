//! Runs `descriptor()` and `install()` of features: synchronous code, called by a host without a runtime. Does not
//! depend on the plan.
//!
//! Callbacks run one after another on one thread, since a start has many and each change of thread costs. A
//! callback that misses its deadline is abandoned with its thread, its late answer is dropped, and the others
//! continue on a new thread. These threads are not those of [`super::Callbacks`], where a feature could not block
//! on a runtime of its own.

use super::contained::caught;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
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

/// The callbacks that one worker thread has not started; empty once the thread is abandoned.
type Queue<T> = Arc<Mutex<VecDeque<InstallCallback<T>>>>;

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
            let (count, queue) = (left.len(), Arc::new(Mutex::new(left)));
            let (answers, results) = channel();
            let worker = Arc::clone(&queue);
            let thread = thread::Builder::new()
                .name("feature-install".into())
                .spawn(move || work(&worker, &answers));
            let Ok(thread) = thread else { break };
            left = match listen(count, &queue, &results, self.limit, &mut ended) {
                None => break,
                Some(unstarted) => {
                    self.stuck.push(thread);
                    ended.push(CallbackEnd::TimedOut);
                    unstarted
                }
            };
        }
        ended.resize_with(total, || CallbackEnd::NotCalled);
        ended
    }
}

/// Collects a worker's results of `count` callbacks until it is done or one is late. If one is late, returns the
/// callbacks that have not started.
fn listen<T>(
    count: usize,
    queue: &Queue<T>,
    results: &Receiver<CallbackEnd<T>>,
    limit: Duration,
    ended: &mut Vec<CallbackEnd<T>>,
) -> Option<VecDeque<InstallCallback<T>>> {
    let all = ended.len() + count;
    loop {
        match results.recv_timeout(limit) {
            Ok(answer) => ended.push(answer),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                // A worker sends its result before it takes the next callback. So while the queue is locked every
                // result is in the channel, and a callback that is in neither is running. If none is running, the
                // thread has not started yet.
                let mut callbacks = queue.lock().unwrap_or_else(PoisonError::into_inner);
                ended.extend(results.try_iter());
                if ended.len() + callbacks.len() < all {
                    return Some(std::mem::take(&mut callbacks));
                }
            }
        }
    }
}

fn work<T>(queue: &Queue<T>, answers: &Sender<CallbackEnd<T>>) {
    loop {
        let next = queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let Some(callback) = next else { return };
        let began = Instant::now();
        let answer = match caught(callback) {
            Ok(value) => CallbackEnd::Done {
                value,
                took: began.elapsed(),
            },
            Err(message) => CallbackEnd::Panicked { message },
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}
