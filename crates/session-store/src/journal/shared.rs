//! What a journal's handle and its thread share. Knows neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use super::commit::QueueEntry;
use crate::checkpoint::Checkpoint;

/// What the handle and the thread both look at.
pub(crate) struct Shared {
    pub(crate) durable: AtomicU64,
    pub(crate) suspended: AtomicBool,
    pub(crate) closed: Arc<AtomicBool>,
    pub(crate) flushes: Arc<AtomicU64>,
    /// Refusals whose caller has not looked yet. While there is one, nothing may overtake the batch refused.
    pub(crate) unseen: Arc<AtomicUsize>,
    /// Refusals so far: a batch queued before the last one may have been built on what was refused.
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

/// What the handle asks of the thread.
pub(super) enum WriterRequest {
    Append(QueueEntry),
    Checkpoint(Checkpoint),
    Close,
}
