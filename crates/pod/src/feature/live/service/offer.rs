//! One service, between its provider and its consumers. Does not depend on the policy.

use super::handle::ServiceHandle;
use super::json::JsonService;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::ServiceId;
use authority::{Door, Redactor};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The services of the features that are installed so far.
pub(crate) type Services = BTreeMap<ServiceId, Arc<Service>>;

/// A staged service.
pub(crate) struct Service {
    pub(crate) id: ServiceId,
    pub(crate) provider: FeatureId,
    /// An `Arc` of the contract, known by its type.
    typed: OnceLock<Box<dyn Any + Send + Sync>>,
    json: OnceLock<Arc<dyn JsonService>>,
    /// The door of the provider's grant; those of consumers are derived from it.
    pub(crate) door: Arc<Door>,
    left: AtomicBool,
}

impl Service {
    /// A service that is not provided in any form yet.
    pub(crate) fn new(id: ServiceId, provider: FeatureId) -> Self {
        let door = Door::new();
        let left = AtomicBool::new(false);
        Self {
            id,
            provider,
            typed: OnceLock::new(),
            json: OnceLock::new(),
            door,
            left,
        }
    }

    /// Provides its typed form; whether there was none.
    pub(crate) fn provide<T: ?Sized + Send + Sync + 'static>(&self, target: Arc<T>) -> bool {
        self.typed.set(Box::new(target)).is_ok()
    }

    /// Provides its form as JSON; whether there was none.
    pub(crate) fn provide_json(&self, target: Arc<dyn JsonService>) -> bool {
        self.json.set(target).is_ok()
    }

    /// A handle on its form as JSON, under a grant of its own; none if it has no such form.
    pub(crate) fn json_handle(
        self: &Arc<Self>,
        door: Arc<Door>,
        redactor: Redactor,
    ) -> Option<ServiceHandle<dyn JsonService>> {
        let target = Arc::clone(self.json.get()?);
        Some(ServiceHandle {
            target,
            service: Arc::clone(self),
            door,
            redactor,
        })
    }

    /// A handle under a grant of its own; none if the service has another contract.
    pub(crate) fn handle<T: ?Sized + Send + Sync + 'static>(
        self: &Arc<Self>,
        door: Arc<Door>,
        redactor: Redactor,
    ) -> Option<ServiceHandle<T>> {
        let target = self.typed.get()?.downcast_ref::<Arc<T>>()?;
        Some(ServiceHandle {
            target: Arc::clone(target),
            service: Arc::clone(self),
            door,
            redactor,
        })
    }

    /// Sets the reason before the doors of consumers shut.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }
}
