//! What the MCP servers of a person come to: features that need what the person gave when they were added.

use crate::config::Config;
use crate::env::Env;
use crate::mcp::FoundServer;
use mcp::McpFeature;
use pod::feature::{CapabilityPolicy, FeatureModule, HostCapability};
use pod::permission::{Layer, Rule, RuleDecision};
use std::path::PathBuf;
use std::sync::Arc;

/// What grants a server its capabilities.
const GRANT: &str = "`yoi mcp add`";

/// How the reason begins for which the feature of a server is off.
const OFF: &str = "MCP server: ";

/// Adds the features of all servers to the modules of a start, and what they may have to its policy; tells what is wrong. `off` says why
/// a server does not run, by whether it uses the network.
pub(super) fn decided(
    config: &Config,
    env: &Env,
    mut policy: CapabilityPolicy,
    modules: &mut Vec<Arc<dyn FeatureModule>>,
    problems: &mut Vec<String>,
    off: impl Fn(bool) -> Option<&'static str>,
) -> CapabilityPolicy {
    let servers = config.servers(env);
    problems.extend(servers.problems.iter().cloned());
    for FoundServer { pin, feature, odd } in &servers.all {
        let id = McpFeature::id(&pin.name);
        problems.extend(odd.iter().map(|what| format!("{id}: {what}")));
        if let Some(why) = off(pin.launch.network) {
            policy = policy.disable(id.clone(), format!("{OFF}{why}"));
        }
        let requested = feature.descriptor().requested_capabilities;
        let all = requested.into_iter().map(|request| request.capability);
        policy = all
            .chain([HostCapability::tool("*")])
            .fold(policy, |policy, capability| {
                policy.grant(id.clone(), capability, GRANT)
            });
        modules.push(Arc::clone(feature) as Arc<dyn FeatureModule>);
    }
    policy
}

/// The rules of the person for servers whose calls they allowed, before those of the files, which override them.
pub(super) fn layers(config: &Config, env: &Env) -> Vec<Layer> {
    let found = config.servers(env).all.iter();
    let allowed = found.filter(|found| found.pin.allowed);
    let layer = |found: &FoundServer| {
        let tools = found.feature.descriptor().declared_tools.into_iter();
        let rules = tools.map(|tool| Rule::new(tool.name, RuleDecision::Allow));
        Layer::new(format!("MCP server {}", found.pin.name), rules.collect()).ok()
    };
    allowed.filter_map(layer).collect()
}

/// The directories that children read because a server does. One that is gone is left out: its server says what it misses.
pub(super) fn read(config: &Config, env: &Env) -> Vec<PathBuf> {
    let found = config.servers(env).all.iter();
    let dirs = found.flat_map(|found| found.pin.launch.read.iter().cloned());
    dirs.filter(|dir| dir.is_dir()).collect()
}
