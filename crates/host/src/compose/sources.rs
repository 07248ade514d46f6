//! The providers of a start: the tools of their categories, and what their settings grant them.

use super::secrets;
use super::switches::written;
use crate::config::Config;
use crate::env::Env;
use api_core::source::CheckedSource;
use api_core::tools::{self, CategoryTools};
use authority::{Ambient, HostPattern, Net, Secret};
use builtins::policies::checked_sources;
use pod::feature::{CapabilityPolicy, FeatureDescriptor, FeatureId, FeatureModule, HostCapability};
use std::sync::Arc;

/// What grants a provider its host and its secret: a person named them in its settings.
const GRANT: &str = "its settings";

/// What a provider says about the way to its vendor.
pub struct SourceCheck {
    /// The vendor.
    pub name: &'static str,
    /// Lines for a person, or why it does not work.
    pub found: Result<Vec<String>, String>,
}

/// Asks each provider of this build that is on about its token and its project.
pub fn check(ambient: &Ambient, config: &Config, env: &Env) -> Vec<SourceCheck> {
    let is_on = |id: &FeatureId| {
        let switches = config.features.get(&id.to_string());
        switches.is_some_and(|switches| switches.on())
    };
    let all = written(config).map(|settings| checked_sources(&settings, is_on));
    let check = |source: Box<dyn CheckedSource>| SourceCheck {
        name: source.name(),
        found: found(source.as_ref(), ambient, config, env),
    };
    all.into_iter().flatten().map(check).collect()
}

fn found(
    source: &dyn CheckedSource,
    ambient: &Ambient,
    config: &Config,
    env: &Env,
) -> Result<Vec<String>, String> {
    let at = source.base().host_port();
    let net = match source.base().is_public() {
        true => {
            let host: Result<HostPattern, _> = at.to_string().parse();
            Net::public(ambient, host)
        }
        false => Net::to(ambient, [at]),
    };
    let secret = source.secret().map(|name| {
        let value = secrets::named(ambient, config, env, name);
        value.map(|value| Secret::new(ambient, name, value))
    });
    let secret = secret.transpose().map_err(|failure| failure.message)?;
    source.check(net, secret)
}

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
