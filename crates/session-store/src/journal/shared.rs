//! State and requests shared by a journal's handle and its thread. Does not depend on either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use super::commit::QueueEntry;
use crate::checkpoint::Checkpoint;

/// State of the handle and the thread.
pub(crate) struct Shared {
    pub(crate) durable: AtomicU64,
    pub(crate) suspended: AtomicBool,
    pub(crate) closed: Arc<AtomicBool>,
    pub(crate) flushes: Arc<AtomicU64>,
    /// The number of refusals whose result was not read. While there is one, no batch may overtake the refused one.
    pub(crate) unseen: Arc<AtomicUsize>,
    /// The number of refusals so far: a batch queued before the last refusal may depend on the refused one.
    pub(crate) generation: AtomicU64,
    pub(crate) epoch: u32,
}

impl Shared {
    pub(crate) fn new(epoch: u32, durable: u64, flushes: Arc<AtomicU64>) -> Self {
        Self {
            durable: AtomicU64::new(durable),
            suspended: AtomicBool::new(false),
            closed: Arc::default(),
            flushes,
            unseen: Arc::default(),
            generation: AtomicU64::new(0),
            epoch,
        }
    }
}

/// A request of the handle to the thread.
pub(super) enum WriterRequest {
    Append(QueueEntry),
    Checkpoint(Checkpoint),
    Close,
}
