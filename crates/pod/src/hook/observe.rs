//! Telling observers: a bounded queue beside the path, never on it.

use super::chain::HookRegistry;
use super::point::{Event, EventView};
use crate::control::Callbacks;
use crate::feature::FeatureRegistry;
use crate::session::record::Record;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How many events may wait for observers; more are dropped and counted.
const QUEUE: usize = 1024;

/// How long a pod that lets go waits for observers to hear the last events.
const FAREWELL: Duration = Duration::from_secs(1);

/// What the task is handed.
enum Told {
    Event(EventView),
    /// Everything before this was told.
    Heard(oneshot::Sender<()>),
}

/// The way to the task that tells observers.
#[derive(Default)]
pub(super) struct Listeners {
    queue: OnceLock<mpsc::Sender<Told>>,
    missed: AtomicU64,
}

impl HookRegistry {
    /// Tells observers of a durable record, some time soon. Without observers nothing happens; when they do not
    /// keep up, the event is dropped and the next one they get says how many were.
    pub(crate) fn tell(registry: &Arc<FeatureRegistry>, callbacks: &Callbacks, seq: u64, record: &Arc<Record>) {
        let hooks = registry.hooks();
        // A feature's state is its own affair.
        if !hooks.any::<Event>("") || matches!(**record, Record::FeatureState(_)) {
            return;
        }
        let queue = hooks.listeners.queue.get_or_init(|| {
            let (sender, events) = mpsc::channel(QUEUE);
            drop(tokio::spawn(listen(Arc::clone(registry), callbacks.clone(), events)));
            sender
        });
        let missed = hooks.listeners.missed.swap(0, Ordering::Relaxed);
        if queue.try_send(Told::Event(EventView { seq, missed, record: Arc::clone(record) })).is_err() {
            hooks.listeners.missed.fetch_add(missed + 1, Ordering::Relaxed);
        }
    }

    /// Waits until observers heard what they were told, at most [`FAREWELL`].
    pub(crate) async fn farewell(&self) {
        let Some(queue) = self.listeners.queue.get() else { return };
        let (heard, all) = oneshot::channel();
        let wait = async {
            if queue.send(Told::Heard(heard)).await.is_ok() {
                drop(all.await);
            }
        };
        drop(tokio::time::timeout(FAREWELL, wait).await);
    }
}

async fn listen(registry: Arc<FeatureRegistry>, callbacks: Callbacks, mut events: mpsc::Receiver<Told>) {
    while let Some(told) = events.recv().await {
        match told {
            Told::Event(event) => registry.hooks().chains.event.tell(&callbacks, event).await,
            Told::Heard(heard) => drop(heard.send(())),
        }
    }
}
