//! Runs feature callbacks so that one that panics or hangs loses only itself.
//!
//! Callbacks run one after another on a thread of their own. One that does not answer in time is written off with
//! its thread, and the rest go on in a new thread; what it answers later reaches nobody.

use super::words;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that may be written off before nothing more is called.
const MAX_STUCK: usize = 8;

/// A callback.
pub(crate) type Job<T> = Box<dyn FnOnce() -> T + Send>;

/// How a callback ended.
pub(crate) enum Ended<T> {
    Done { value: T, took: Duration },
    Panicked { message: String },
    TimedOut,
    NotCalled,
}

/// What one worker thread has left to do; empty once it is written off.
type Queue<T> = Arc<Mutex<VecDeque<Job<T>>>>;

/// Runs callbacks; what is written off is counted over all of them.
pub(crate) struct Runner {
    limit: Duration,
    stuck: usize,
}

impl Runner {
    /// Each callback may take `limit`.
    pub(crate) const fn new(limit: Duration) -> Self {
        Self { limit, stuck: 0 }
    }

    /// Runs all jobs; the answers stand in the jobs' order.
    pub(crate) fn run_all<T: Send + 'static>(&mut self, jobs: Vec<Job<T>>) -> Vec<Ended<T>> {
        let total = jobs.len();
        let mut ended = Vec::with_capacity(total);
        let mut left = VecDeque::from(jobs);
        while !left.is_empty() && self.stuck < MAX_STUCK {
            let queue = Arc::new(Mutex::new(left));
            let (answers, inbox) = channel();
            let worker = Arc::clone(&queue);
            if thread::Builder::new().name("feature-install".into()).spawn(move || work(&worker, &answers)).is_err() {
                break;
            }
            left = match listen(&queue, &inbox, self.limit, &mut ended) {
                Verdict::Finished => VecDeque::new(),
                Verdict::Stuck { unstarted } => {
                    self.stuck += 1;
                    ended.push(Ended::TimedOut);
                    unstarted
                }
            };
        }
        ended.resize_with(total, || Ended::NotCalled);
        ended
    }
}

enum Verdict<T> {
    Finished,
    Stuck { unstarted: VecDeque<Job<T>> },
}

/// Collects a worker's answers until it is done or one is late.
fn listen<T>(queue: &Queue<T>, inbox: &Receiver<Ended<T>>, limit: Duration, ended: &mut Vec<Ended<T>>) -> Verdict<T> {
    loop {
        match inbox.recv_timeout(limit) {
            Ok(answer) => ended.push(answer),
            Err(RecvTimeoutError::Disconnected) => return Verdict::Finished,
            Err(RecvTimeoutError::Timeout) => {
                // A worker answers before it takes the next job. So with the queue held, an answer that is not
                // there belongs to the job in hand, and the jobs in the queue were not begun.
                let mut jobs = queue.lock().unwrap_or_else(PoisonError::into_inner);
                match inbox.try_recv() {
                    Ok(answer) => ended.push(answer),
                    Err(_) => return Verdict::Stuck { unstarted: std::mem::take(&mut jobs) },
                }
            }
        }
    }
}

fn work<T>(queue: &Queue<T>, answers: &Sender<Ended<T>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(job) = next else { return };
        let began = Instant::now();
        let answer = match catch_unwind(AssertUnwindSafe(job)) {
            Ok(value) => Ended::Done { value, took: began.elapsed() },
            Err(payload) => Ended::Panicked { message: words(&*payload) },
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}
