//! One service, between its provider and its consumers. Does not depend on the policy.

use super::handle::ServiceHandle;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::{ServiceId, ServiceKey};
use authority::{Door, Redactor};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The services of the features that are installed so far.
pub(crate) type Services = BTreeMap<ServiceId, Arc<Service>>;

/// A staged service.
pub(crate) struct Service {
    pub(crate) id: ServiceId,
    pub(crate) provider: FeatureId,
    /// An `Arc` of the contract, known by its type.
    target: Box<dyn Any + Send + Sync>,
    /// The door of the provider's grant; those of consumers are derived from it.
    pub(crate) door: Arc<Door>,
    left: AtomicBool,
}

impl Service {
    pub(crate) fn new<T: ?Sized + Send + Sync + 'static>(
        key: ServiceKey<T>,
        provider: FeatureId,
        target: Arc<T>,
    ) -> Self {
        let (door, left) = (Door::new(), AtomicBool::new(false));
        Self { id: key.id(), provider, target: Box::new(target), door, left }
    }

    /// A handle under a grant of its own; none if the service has another contract.
    pub(crate) fn handle<T: ?Sized + Send + Sync + 'static>(
        self: &Arc<Self>,
        door: Arc<Door>,
        redactor: Redactor,
    ) -> Option<ServiceHandle<T>> {
        let target = self.target.downcast_ref::<Arc<T>>()?;
        Some(ServiceHandle { target: Arc::clone(target), service: Arc::clone(self), door, redactor })
    }

    /// Sets the reason before the doors of consumers shut.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }
}
