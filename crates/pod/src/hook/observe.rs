//! Tells observers in the background, through a bounded queue. It knows no registry of features.

use super::chain::{HookChain, HookRegistry};
use super::typed::{Event, EventView};
use crate::foreign::Callbacks;
use crate::record::Record;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How many events may wait for observers; more are dropped and counted.
const QUEUE: usize = 1024;

/// How long a pod that lets go waits for observers to hear the last events.
const FAREWELL: Duration = Duration::from_secs(1);

/// What the task is handed.
enum ObserverMessage {
    Event(EventView),
    /// Everything before this was told.
    Heard(oneshot::Sender<()>),
}

/// The way to the task that tells observers.
#[derive(Default)]
pub(super) struct Listeners {
    queue: OnceLock<mpsc::Sender<ObserverMessage>>,
    missed: AtomicU64,
}

impl HookRegistry {
    /// Tells observers of a durable record, some time soon. Without observers nothing happens; when they do not
    /// keep up, the event is dropped and the next one they get says how many were.
    pub(crate) fn tell(&self, callbacks: &Callbacks, seq: u64, record: &Arc<Record>) {
        // A feature's state is its own affair.
        if !self.any::<Event>("") || matches!(**record, Record::FeatureState(_)) {
            return;
        }
        let queue = self.listeners.queue.get_or_init(|| {
            let (sender, events) = mpsc::channel(QUEUE);
            drop(tokio::spawn(listen(self.chains.event.clone(), callbacks.clone(), events)));
            sender
        });
        let missed = self.listeners.missed.swap(0, Ordering::Relaxed);
        if queue.try_send(ObserverMessage::Event(EventView { seq, missed, record: Arc::clone(record) })).is_err() {
            self.listeners.missed.fetch_add(missed + 1, Ordering::Relaxed);
        }
    }

    /// Waits until observers heard what they were told, at most [`FAREWELL`].
    pub(crate) async fn farewell(&self) {
        let Some(queue) = self.listeners.queue.get() else { return };
        let (heard, all) = oneshot::channel();
        let wait = async {
            if queue.send(ObserverMessage::Heard(heard)).await.is_ok() {
                drop(all.await);
            }
        };
        drop(tokio::time::timeout(FAREWELL, wait).await);
    }
}

async fn listen(observers: HookChain<Event>, callbacks: Callbacks, mut events: mpsc::Receiver<ObserverMessage>) {
    while let Some(told) = events.recv().await {
        match told {
            ObserverMessage::Event(event) => observers.tell(&callbacks, event).await,
            ObserverMessage::Heard(heard) => drop(heard.send(())),
        }
    }
}
