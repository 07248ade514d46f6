//! A service between its provider and its consumers.

use super::handle::ServiceHandle;
use super::key::{ServiceId, ServiceKey};
use crate::feature::id::FeatureId;
use authority::{Door, Redactor};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The services of the features that are installed so far.
pub(in crate::feature) type Services = BTreeMap<ServiceId, Arc<Service>>;

/// A service as it was staged.
pub(in crate::feature) struct Service {
    pub(in crate::feature) id: ServiceId,
    pub(in crate::feature) provider: FeatureId,
    /// An `Arc` of the contract, known by its type.
    target: Box<dyn Any + Send + Sync>,
    /// Of the provider's grant; its consumers' are derived from it.
    pub(in crate::feature) door: Arc<Door>,
    left: AtomicBool,
}

impl Service {
    pub(in crate::feature) fn new<T: ?Sized + Send + Sync + 'static>(
        key: ServiceKey<T>,
        provider: FeatureId,
        target: Arc<T>,
    ) -> Self {
        let (door, left) = (Door::new(), AtomicBool::new(false));
        Self { id: key.id(), provider, target: Box::new(target), door, left }
    }

    /// A handle under a grant of its own; nothing if this is a service of another contract.
    pub(in crate::feature) fn handle<T: ?Sized + Send + Sync + 'static>(
        self: &Arc<Self>,
        door: Arc<Door>,
        redactor: Redactor,
    ) -> Option<ServiceHandle<T>> {
        let target = self.target.downcast_ref::<Arc<T>>()?;
        Some(ServiceHandle { target: Arc::clone(target), service: Arc::clone(self), door, redactor })
    }

    /// Says why the doors of its consumers shut; before they do.
    pub(in crate::feature) fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }
}
