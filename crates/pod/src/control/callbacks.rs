//! Threads for code that is not the host's: tools, hooks, feature installs.
//!
//! A callback is a future that is *blocked on* in its own thread, so one that panics is an error value, one
//! that spins or sleeps cannot hold the control thread, and one that never returns costs a thread and is
//! written off.

use super::inbox::{Line, Method};
use crate::feature::{FeatureId, raw};
use std::any::Any;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// How many callback threads there may be; give the runtime as many blocking threads.
pub const MAX_THREADS: usize = 64;

/// How long a callback may go on after its cancellation before it is written off.
pub const GRACE: Duration = Duration::from_secs(5);

/// With this many threads written off, the pod ends: it would run out of them.
pub const MAX_STUCK: usize = 8;

/// Starts callbacks and counts the ones that never came back.
#[derive(Clone, Debug)]
pub struct Callbacks {
    runtime: Handle,
    grace: Duration,
    stuck: Arc<AtomicUsize>,
    off: Arc<Mutex<BTreeSet<String>>>,
    line: Option<Line>,
}

/// Why a callback brought no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// It panicked.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// It did not end within this grace after its cancellation; its thread is written off.
    #[error("it did not stop within {0:?} of being cancelled and was abandoned")]
    Stuck(Duration),
}

impl Callbacks {
    /// Callbacks on this runtime's blocking threads, with [`GRACE`].
    #[must_use]
    pub fn new(runtime: Handle) -> Self {
        Self::with_grace(runtime, GRACE)
    }

    /// The same, with another grace.
    #[must_use]
    pub fn with_grace(runtime: Handle, grace: Duration) -> Self {
        Self { runtime, grace, stuck: Arc::default(), off: Arc::default(), line: None }
    }

    /// The same, with a pod that takes notes of what came too late.
    pub(crate) fn noting(self, line: Line) -> Self {
        Self { line: Some(line), ..self }
    }

    /// Leaves a note with the pod, if there is one and it takes it.
    pub(crate) fn note(&self, feature: FeatureId, text: String) {
        if let Some(line) = &self.line {
            // A pod that has let go, or is flooded, does without.
            line.hand_in(Method::Note { feature, text }).unwrap_or_default();
        }
    }

    /// The runtime whose threads these are.
    #[must_use]
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Threads written off and not come back since.
    #[must_use]
    pub fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Gives up on a feature: nothing of it is called again by whoever asks first.
    pub fn write_off(&self, feature: &str) {
        self.off.lock().unwrap_or_else(PoisonError::into_inner).insert(feature.to_owned());
    }

    /// Whether a feature was given up on.
    #[must_use]
    pub fn is_off(&self, feature: &str) -> bool {
        self.off.lock().unwrap_or_else(PoisonError::into_inner).contains(feature)
    }

    /// Runs `work` on a thread of its own. At `deadline`, or when `cancel` fires before, the token is
    /// cancelled; the grace later the thread is written off. The work itself starts on this call.
    pub fn run<F, T>(
        &self,
        deadline: Duration,
        cancel: CancellationToken,
        work: F,
    ) -> impl Future<Output = Result<T, Lost>> + Send + 'static
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let handle = self.runtime.clone();
        let mut thread = self.runtime.spawn_blocking(move || handle.block_on(work));
        let (stuck, grace) = (self.stuck.clone(), self.grace);
        async move {
            tokio::select! {
                biased;
                done = &mut thread => return done.map_err(lost),
                () = cancel.cancelled() => {}
                () = tokio::time::sleep(deadline) => cancel.cancel(),
            }
            match tokio::time::timeout(grace, &mut thread).await {
                Ok(done) => done.map_err(lost),
                Err(_elapsed) => {
                    stuck.fetch_add(1, Ordering::Relaxed);
                    // It may come back after all; then its thread counts again.
                    tokio::spawn(async move {
                        drop(thread.await);
                        stuck.fetch_sub(1, Ordering::Relaxed);
                    });
                    Err(Lost::Stuck(grace))
                }
            }
        }
    }
}

fn lost(error: tokio::task::JoinError) -> Lost {
    let Ok(panic) = error.try_into_panic() else { return Lost::Panicked("its runtime is going down".to_owned()) };
    Lost::Panicked(words(&*panic))
}

/// The words of a panic, as they were said.
pub(crate) fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    raw(text.unwrap_or("no message")).to_owned()
}
