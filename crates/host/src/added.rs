//! The features and runtimes of a program beside the built-in ones. Installs nothing.

use pod::feature::{CapabilityPolicy, FeatureDescriptor, FeatureModule, HostCapability};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a program adds to the built-in features; shared by its copies.
#[derive(Clone, Default)]
pub struct AddedFeatures {
    features: Vec<Arc<AddedFeature>>,
    runtimes: Vec<&'static str>,
}

struct AddedFeature {
    module: Arc<dyn FeatureModule>,
    /// None if `descriptor()` panicked; the install report says so, too.
    declared: Option<FeatureDescriptor>,
    grants: Vec<HostCapability>,
}

impl AddedFeatures {
    /// Adds a feature with what it is granted by default.
    pub fn add(&mut self, module: Arc<dyn FeatureModule>, grants: &[HostCapability]) {
        let declared = catch_unwind(AssertUnwindSafe(|| module.descriptor())).ok();
        let grants = grants.to_vec();
        self.features.push(Arc::new(AddedFeature {
            module,
            declared,
            grants,
        }));
    }

    /// Adds a runtime for scripts of plugins by its name: the program runs them under a hidden command of its own.
    pub fn add_runtime(&mut self, name: &'static str) {
        self.runtimes.push(name);
    }

    /// The runtimes for scripts of plugins.
    pub fn runtimes(&self) -> &[&'static str] {
        &self.runtimes
    }

    /// The modules, in the order in which they were added.
    pub fn modules(&self) -> impl Iterator<Item = Arc<dyn FeatureModule>> {
        self.features.iter().map(|added| Arc::clone(&added.module))
    }

    /// Everything that the program has declared, the built-in features first.
    pub fn declared(&self) -> Vec<FeatureDescriptor> {
        builtins::declared().into_iter().chain(self.own()).collect()
    }

    /// What these features have declared.
    pub fn own(&self) -> impl Iterator<Item = FeatureDescriptor> {
        self.features
            .iter()
            .filter_map(|added| added.declared.clone())
    }

    /// A policy with the default grants of these features.
    pub fn granted(&self, mut policy: CapabilityPolicy) -> CapabilityPolicy {
        for added in &self.features {
            let Some(declared) = &added.declared else {
                continue;
            };
            for grant in &added.grants {
                policy = policy.grant(declared.id.clone(), grant.clone(), "default");
            }
        }
        policy
    }
}

impl fmt::Debug for AddedFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self
            .features
            .iter()
            .filter_map(|added| added.declared.as_ref());
        f.debug_list()
            .entries(ids.map(|declared| &declared.id))
            .finish()
    }
}
