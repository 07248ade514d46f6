//! Whether the providers of a configuration work, for a person who asks.

use super::secrets;
use super::settings::written;
use crate::config::Config;
use crate::env::Env;
use api_core::source::CheckedSource;
use authority::{Ambient, HostPattern, Net, Secret};
use builtins::policies::checked_sources;
use pod::feature::FeatureId;

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
