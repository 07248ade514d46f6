//! Calls observers in the background, through a bounded queue. Does not depend on the registry of features.

use super::chain::{HookChain, HookRegistry};
use super::typed::{Event, EventView};
use crate::foreign::Callbacks;
use crate::record::Record;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Events that may wait for observers; more are dropped and counted.
const MAX_QUEUED: usize = 1024;

/// How long a closing pod waits until observers have received the last events.
const OBSERVER_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A message to the task that calls observers.
enum ObserverMessage {
    Event(EventView),
    /// Answered once observers were called with every earlier event.
    Flush(oneshot::Sender<()>),
}

/// The queue of the task that calls observers; the task starts with the first event.
#[derive(Default)]
pub(super) struct ObserverQueue {
    queue: OnceLock<mpsc::Sender<ObserverMessage>>,
    missed: AtomicU64,
}

impl HookRegistry {
    /// Queues a durable record for the observers. If the queue is full, the event is dropped, and the next event that
    /// they get has the number of dropped ones. Without observers it does nothing.
    pub(crate) fn tell(&self, callbacks: &Callbacks, seq: u64, record: &Arc<Record>) {
        // The state of a feature is private to that feature.
        if !self.any::<Event>("") || matches!(**record, Record::FeatureState(_)) {
            return;
        }
        let queue = self.observer_queue.queue.get_or_init(|| {
            let (sender, events) = mpsc::channel(MAX_QUEUED);
            drop(tokio::spawn(listen(
                self.chains.event.clone(),
                callbacks.clone(),
                events,
            )));
            sender
        });
        let missed = self.observer_queue.missed.swap(0, Ordering::Relaxed);
        if queue
            .try_send(ObserverMessage::Event(EventView {
                seq,
                missed,
                record: Arc::clone(record),
            }))
            .is_err()
        {
            self.observer_queue
                .missed
                .fetch_add(missed + 1, Ordering::Relaxed);
        }
    }

    /// Waits until observers were called with all queued events, at most [`OBSERVER_FLUSH_TIMEOUT`].
    pub(crate) async fn flush_observers(&self) {
        let Some(queue) = self.observer_queue.queue.get() else {
            return;
        };
        let (flushed, all) = oneshot::channel();
        let wait = async {
            if queue.send(ObserverMessage::Flush(flushed)).await.is_ok() {
                drop(all.await);
            }
        };
        drop(tokio::time::timeout(OBSERVER_FLUSH_TIMEOUT, wait).await);
    }
}

async fn listen(
    observers: HookChain<Event>,
    callbacks: Callbacks,
    mut events: mpsc::Receiver<ObserverMessage>,
) {
    while let Some(message) = events.recv().await {
        match message {
            ObserverMessage::Event(event) => observers.tell(&callbacks, event).await,
            ObserverMessage::Flush(flushed) => drop(flushed.send(())),
        }
    }
}
