//! Threads for code of features and tools. Do not depend on the registry of features.
//!
//! A callback is a future that is *blocked on* in its own thread: a panic becomes an error value, a callback that
//! spins or sleeps cannot block the control thread, and one that never returns costs one thread.

use super::attribution::Attribution;
use crate::feature::{FeatureId, clamp};
use crate::mailbox::requests::{DriverRequest, MailboxSender};
use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Limit on callback threads; configure the runtime with as many blocking threads.
pub const MAX_THREADS: usize = 64;

/// Time between the cancellation of a callback and its abandonment.
pub const GRACE: Duration = Duration::from_secs(5);

/// With this many abandoned threads, half of all, the pod ends before it runs out of them. Calls of one feature cannot
/// reach it: a feature with an abandoned thread is not called again, and running calls leave one thread over. Calls of
/// as many features can, since one call may always run.
pub const MAX_STUCK: usize = MAX_THREADS / 2;

/// Runs code of features and tools on threads with a deadline, and counts the threads that do not return. The program
/// creates it once; hooks, calls and permission use it.
#[derive(Clone)]
pub struct Callbacks {
    runtime: Handle,
    grace: Duration,
    stuck: Arc<AtomicUsize>,
    /// State of this generation's features. The count above is of all generations.
    features: Arc<Mutex<BTreeMap<FeatureId, FeatureStatus>>>,
    pod: Option<(MailboxSender, RevokeFeature)>,
}

/// A feature whose code kept a thread past its deadline.
#[derive(Default)]
struct FeatureStatus {
    disabled: bool,
    /// Threads that the feature's code holds past their deadline at this moment.
    overdue_threads: usize,
}

/// Revokes every grant of a feature.
type RevokeFeature = Arc<dyn Fn(&FeatureId) + Send + Sync>;

/// The reason why a callback returned no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackFailure {
    #[error("it panicked: {0}")]
    Panicked(String),
    /// It did not end within this grace after its cancellation. If it only waited, its thread was recovered; else the
    /// thread is abandoned.
    #[error("it did not stop within {0:?} of being cancelled and was abandoned")]
    Stuck(Duration),
}

impl Callbacks {
    /// Callbacks on this runtime's blocking threads, with [`GRACE`].
    #[must_use]
    pub fn new(runtime: Handle) -> Self {
        Self::with_grace(runtime, GRACE)
    }

    /// As [`Self::new`], with another grace.
    #[must_use]
    pub fn with_grace(runtime: Handle, grace: Duration) -> Self {
        Self {
            runtime,
            grace,
            stuck: Arc::default(),
            features: Arc::default(),
            pod: None,
        }
    }

    /// The same threads for one generation of a pod's features, with no feature disabled. `mailbox` gets notes about
    /// late answers, and `revoke` revokes the grants of a disabled feature.
    pub(crate) fn serving(
        self,
        mailbox: MailboxSender,
        revoke: impl Fn(&FeatureId) + Send + Sync + 'static,
    ) -> Self {
        Self {
            features: Arc::default(),
            pod: Some((mailbox, Arc::new(revoke))),
            ..self
        }
    }

    /// Sends a note about a feature to the pod, if there is one and its mailbox has room.
    pub(crate) fn note(&self, feature: FeatureId, text: String) {
        if let Some((mailbox, _)) = &self.pod {
            // If the pod has ended or the mailbox is full, the note is dropped.
            mailbox.try_send(DriverRequest::Note { feature, text }).ok();
        }
    }

    /// The runtime whose threads these are.
    #[must_use]
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Threads that were abandoned and have not returned.
    #[must_use]
    pub fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }

    fn features(&self) -> MutexGuard<'_, BTreeMap<FeatureId, FeatureStatus>> {
        self.features.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Disables a feature: callers that check [`Self::is_disabled`] no longer call it, its grants are revoked, and the
    /// pod is informed.
    pub fn disable(&self, feature: &FeatureId) {
        if std::mem::replace(
            &mut self.features().entry(feature.clone()).or_default().disabled,
            true,
        ) {
            return;
        }
        warn!(%feature, "feature disabled: its code did not return");
        if let Some((mailbox, revoke)) = self.pod.clone() {
            revoke(feature);
            let feature = feature.clone();
            drop(self.runtime.spawn(async move {
                mailbox
                    .send(DriverRequest::FeatureDisabled { feature })
                    .await
            }));
        }
    }

    /// Whether a feature was disabled because its code did not return.
    #[must_use]
    pub fn is_disabled(&self, feature: &FeatureId) -> bool {
        self.features()
            .get(feature)
            .is_some_and(|status| status.disabled)
    }

    /// Whether the feature's code holds a thread past its deadline.
    pub(crate) fn has_overdue_thread(&self, feature: &FeatureId) -> bool {
        self.features()
            .get(feature)
            .is_some_and(|status| status.overdue_threads > 0)
    }

    /// Counts a thread that the feature's code holds past its deadline.
    pub(crate) fn add_overdue_thread(&self, feature: &FeatureId) {
        self.features()
            .entry(feature.clone())
            .or_default()
            .overdue_threads += 1;
    }

    /// A thread counted by [`Self::add_overdue_thread`] returned.
    pub(crate) fn remove_overdue_thread(&self, feature: &FeatureId) {
        if let Some(status) = self.features().get_mut(feature) {
            status.overdue_threads = status.overdue_threads.saturating_sub(1);
        }
    }

    /// Runs `work` on its own thread, starting at once. At `deadline`, or when `cancel` fires earlier, the token is
    /// cancelled. If the work has not ended after the grace, it is dropped if it only waits; else its thread is
    /// abandoned. In both cases the responsible feature is disabled, unless the work ends at the last moment. A result of
    /// an abandoned thread is void, and the pod gets a note about it.
    pub fn run<F, T>(
        &self,
        deadline: Duration,
        cancel: CancellationToken,
        work: F,
    ) -> impl Future<Output = Result<T, CallbackFailure>> + Send + 'static
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        self.run_with(deadline, cancel, work, true)
    }

    /// As [`Self::run`]; `notes`: whether the pod gets the note.
    pub(crate) fn run_with<F, T>(
        &self,
        deadline: Duration,
        cancel: CancellationToken,
        work: F,
        notes: bool,
    ) -> impl Future<Output = Result<T, CallbackFailure>> + Send + 'static
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let handle = self.runtime.clone();
        let attribution = Arc::new(Attribution::default());
        let here = Arc::clone(&attribution);
        let parking = Arc::clone(&attribution);
        let over = CancellationToken::new();
        let work = over.clone().run_until_cancelled_owned(work);
        let mut thread = self
            .runtime
            .spawn_blocking(move || here.watch(|| handle.block_on(parking.parking(work))));
        let callbacks = self.clone();
        let stuck = self.stuck.clone();
        let grace = self.grace;
        async move {
            tokio::select! {
                biased;
                done = &mut thread => return ended(done, grace),
                () = cancel.cancelled() => {}
                () = tokio::time::sleep(deadline) => cancel.cancel(),
            }
            if let Ok(done) = tokio::time::timeout(grace, &mut thread).await {
                return ended(done, grace);
            }
            let (who, parked) = attribution.who();
            over.cancel();
            // Work that waits can be dropped, which frees its thread; work that blocks the thread cannot be stopped.
            let back = if parked {
                tokio::time::timeout(grace, &mut thread).await.ok()
            } else {
                None
            };
            let came_back = back.is_some();
            if let Some(Ok(Some(done))) = back {
                return Ok(done);
            }
            if let Some(feature) = &who {
                callbacks.disable(feature);
            }
            if !came_back {
                let before = stuck.fetch_add(1, Ordering::Relaxed);
                warn!(
                    abandoned = before + 1,
                    most = MAX_STUCK,
                    "a callback thread was abandoned"
                );
                // If it returns after all, its thread is available again.
                tokio::spawn(async move {
                    let is_void = matches!(thread.await, Ok(Some(_)));
                    stuck.fetch_sub(1, Ordering::Relaxed);
                    if let Some(feature) = who.filter(|_| is_void && notes) {
                        let text =
                            "its code returned after it had been abandoned; the result is void";
                        callbacks.note(feature, text.to_owned());
                    }
                });
            }
            Err(CallbackFailure::Stuck(grace))
        }
    }
}

/// The value of a thread, unless its work was dropped.
fn ended<T>(
    done: Result<Option<T>, tokio::task::JoinError>,
    grace: Duration,
) -> Result<T, CallbackFailure> {
    done.map_err(lost)?.ok_or(CallbackFailure::Stuck(grace))
}

fn lost(error: tokio::task::JoinError) -> CallbackFailure {
    let Ok(panic) = error.try_into_panic() else {
        return CallbackFailure::Panicked("its runtime is going down".to_owned());
    };
    CallbackFailure::Panicked(words(&*panic))
}

/// The message of a panic.
pub(super) fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    clamp(text.unwrap_or("no message")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::requests::{Wakeup, mailbox};

    // A feature that was disabled in one generation may be called again in the next; a thread that it still blocks
    // stays counted.
    #[test]
    fn a_new_generation_forgets_who_is_off_not_stuck_threads() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (_mailbox, sender) = mailbox();
        let callbacks = Callbacks::with_grace(runtime.handle().clone(), Duration::from_millis(10));
        let callbacks = callbacks.serving(sender.clone(), |_| ());
        let feature = FeatureId::builtin("sleeper");
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let owner = feature.clone();
        let holds = async move {
            super::super::attribution::own(&owner);
            gate.recv().unwrap_err();
        };
        let lost = runtime.block_on(async {
            callbacks
                .run(Duration::from_millis(10), CancellationToken::new(), holds)
                .await
        });
        let next = callbacks.clone().serving(sender, |_| ());
        assert!(matches!(lost, Err(CallbackFailure::Stuck(_))));
        assert_eq!(
            (callbacks.is_disabled(&feature), next.is_disabled(&feature)),
            (true, false)
        );
        assert_eq!((callbacks.stuck(), next.stuck()), (1, 1));
        drop(open);
        runtime.block_on(async {
            while next.stuck() > 0 {
                tokio::task::yield_now().await;
            }
        });
    }

    // A tool that came back after its call was given up left no trace: the journal said only that it did not return.
    #[test]
    fn a_result_that_came_too_late_is_void_and_noted() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        // How long the work holds its thread, whether it is one whose caller notes it, and whether there is a note.
        for (late, notes, noted) in [
            (true, true, true),
            (true, false, false),
            (false, true, false),
        ] {
            let (mut events, sender) = mailbox();
            let callbacks =
                Callbacks::with_grace(runtime.handle().clone(), Duration::from_millis(10));
            let callbacks = callbacks.serving(sender, |_| ());
            let (open, gate) = std::sync::mpsc::channel::<()>();
            let mut open = Some(open).filter(|_| late);
            let work = async move {
                super::super::attribution::own(&FeatureId::builtin("sleeper"));
                gate.recv().unwrap_err();
                "done"
            };
            let all: Vec<String> = runtime.block_on(async {
                let done = callbacks
                    .run_with(
                        Duration::from_millis(10),
                        CancellationToken::new(),
                        work,
                        notes,
                    )
                    .await;
                assert_eq!(done.is_err(), late);
                drop(open.take());
                while callbacks.stuck() > 0 {
                    tokio::task::yield_now().await;
                }
                // The note is sent right behind the count.
                callbacks.note(FeatureId::builtin("sleeper"), "last".to_owned());
                let mut all = Vec::new();
                while all.last().is_none_or(|last| last != "last") {
                    if let Wakeup::Request(DriverRequest::Note { text, .. }) = events.next().await {
                        all.push(text);
                    }
                }
                all
            });
            assert_eq!(
                all.iter()
                    .filter(|text| text.contains("the result is void"))
                    .count(),
                usize::from(noted)
            );
        }
    }
}
