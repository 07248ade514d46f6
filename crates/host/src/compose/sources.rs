//! The providers of a start: the tools of their categories, and what their settings grant them.

use crate::config::Config;
use crate::env::Env;
use api_core::tools::{self, CategoryTools};
use pod::feature::{CapabilityPolicy, FeatureDescriptor, FeatureModule, HostCapability};
use std::sync::Arc;

/// What grants a provider its host and its secret: a person named them in its settings.
const GRANT: &str = "its settings";

/// The features that may be providers and are on.
pub(super) struct Sources {
    /// Those of this build, by their settings.
    built_in: Vec<FeatureDescriptor>,
    tools: CategoryTools,
    /// Whether one of them is a provider.
    pub(super) has_provider: bool,
}

impl Sources {
    pub(super) fn of(config: &Config, env: &Env, opted: &[Arc<dyn FeatureModule>]) -> Self {
        let is_on = |of: &FeatureDescriptor| {
            let switches = config.features.get(&of.id.to_string());
            switches.is_none_or(|switches| switches.off().is_none())
        };
        let built_in: Vec<_> = opted
            .iter()
            .map(|module| module.descriptor())
            .filter(is_on)
            .collect();
        let all: Vec<_> = built_in
            .iter()
            .cloned()
            .chain(env.added.own().filter(is_on))
            .collect();
        Self {
            tools: CategoryTools::of(&all),
            has_provider: CategoryTools::has_provider(&all),
            built_in,
        }
    }

    /// Adds the tools, which are off without a provider, and grants the providers of this build the public hosts and the
    /// secrets that their settings name. A private endpoint is for `grant` to name.
    pub(super) fn decided(
        self,
        mut policy: CapabilityPolicy,
        modules: &mut Vec<Arc<dyn FeatureModule>>,
    ) -> CapabilityPolicy {
        modules.push(Arc::new(self.tools));
        if !self.has_provider {
            policy = policy.disable(tools::ID, "default");
        }
        let providers = self
            .built_in
            .into_iter()
            .filter(|of| CategoryTools::has_provider(std::slice::from_ref(of)));
        for provider in providers {
            for request in provider.requested_capabilities {
                if let HostCapability::Network { .. } | HostCapability::SecretRef { .. } =
                    &request.capability
                {
                    policy = policy.grant(provider.id.clone(), request.capability, GRANT);
                }
            }
        }
        policy
    }
}
