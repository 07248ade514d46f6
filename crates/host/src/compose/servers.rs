//! What the MCP servers of a person come to: features that need what the person gave when they were added.

use super::off::is_unused;
use super::packages::{self, mode};
use crate::config::Config;
use crate::config::file::Mode;
use crate::env::Env;
use crate::exit::Failure;
use crate::mcp::{self, FoundServer};
use ::mcp::{Launch, McpFeature, ServerPin};
use authority::{Ambient, EnvPolicy, Net, Withheld};
use pod::feature::{CapabilityPolicy, FeatureModule, HostCapability};
use pod::hook::{HookClass, HookPoint};
use pod::permission::{Layer, Rule, RuleDecision};
use std::cell::LazyCell;
use std::path::PathBuf;
use std::sync::Arc;

/// What grants a server its capabilities.
const GRANT: &str = "`yoi mcp add`";

/// What asks a person on behalf of a server.
const QUESTIONS: HostCapability = HostCapability::ContributeHook {
    point: HookPoint::PreToolCall,
    class: HookClass::Gate,
};

/// How the reason begins for which the feature of a server is off.
const OFF: &str = "MCP server: ";

/// Why a server is not used in this sandbox. One on the network needs none, and is used where something may be sent.
#[must_use]
pub fn withheld(mode: Mode, launch: &Launch) -> Option<&'static str> {
    match (&launch.url, mode) {
        (None, mode) => packages::withheld(mode, launch.network),
        (Some(_), Mode::ReadOnly) => Some("in read-only mode nothing is sent to the network"),
        (Some(_), Mode::WorkspaceWrite | Mode::Off) => None,
    }
}

/// What reaches a server at this address, as its feature would.
///
/// # Errors
/// It is neither https nor of this machine.
pub fn net(ambient: &Ambient, url: &str) -> Result<Net, String> {
    let wrong = |error: authority::Error| error.to_string();
    match ::mcp::reach(url)? {
        HostCapability::Network { hosts, .. } => {
            let hosts: Result<Vec<_>, _> = hosts.iter().map(|host| host.parse()).collect();
            Ok(Net::public(ambient, hosts.map_err(wrong)?))
        }
        HostCapability::Endpoint { at, .. } => {
            let at: Result<Vec<_>, _> = at.iter().map(|at| at.parse()).collect();
            Ok(Net::to(ambient, at.map_err(wrong)?))
        }
        _ => Err("it is no address".to_owned()),
    }
}

/// Adds the features of all servers to the modules of a start, and what they may have to its policy; tells what is wrong. `off` says why
/// a server does not run.
pub(super) fn decided(
    config: &Config,
    env: &Env,
    mut policy: CapabilityPolicy,
    modules: &mut Vec<Arc<dyn FeatureModule>>,
    problems: &mut Vec<String>,
    off: impl Fn(&Launch) -> Option<&'static str>,
) -> CapabilityPolicy {
    let servers = config.servers(env);
    problems.extend(servers.problems.iter().cloned());
    for FoundServer { pin, feature, odd } in &servers.all {
        let id = McpFeature::id(&pin.name);
        problems.extend(odd.iter().map(|what| format!("{id}: {what}")));
        if let Some(why) = off(&pin.launch) {
            policy = policy.disable(id.clone(), format!("{OFF}{why}"));
        }
        let requested = feature.descriptor().requested_capabilities;
        let all = requested.into_iter().map(|request| request.capability);
        policy = all
            .chain([
                HostCapability::tool("*"),
                QUESTIONS,
                HostCapability::SESSION_STATE,
            ])
            .fold(policy, |policy, capability| {
                policy.grant(id.clone(), capability, GRANT)
            });
        modules.push(Arc::clone(feature) as Arc<dyn FeatureModule>);
    }
    policy
}

/// The rules of the person for servers that are on and whose calls they allowed, before those of the files, which override them.
/// Those of one that is off would be about whatever else takes a name of its tools. `off` is
/// that of [`decided`].
pub(super) fn layers(
    config: &Config,
    env: &Env,
    off: impl Fn(&Launch) -> Option<&'static str>,
) -> Vec<Layer> {
    let found = config.servers(env).all.iter();
    let is_off = |pin: &ServerPin| {
        let switches = config.features.get(&McpFeature::id(&pin.name).to_string());
        switches.is_some_and(|switches| switches.off().is_some()) || off(&pin.launch).is_some()
    };
    let allowed = found.filter(|found| found.pin.allowed && !is_off(&found.pin));
    let layer = |found: &FoundServer| {
        let tools = found.feature.descriptor().declared_tools.into_iter();
        let rules = tools.map(|tool| Rule::new(tool.name, RuleDecision::Allow));
        Layer::new(format!("MCP server {}", found.pin.name), rules.collect()).ok()
    };
    allowed.filter_map(layer).collect()
}

/// The directories that children read because a server does that is on. One that is gone, or that no run may have, is left
/// out: its server says what it misses.
pub(super) fn read(
    ambient: &Ambient,
    config: &Config,
    env: &Env,
    inherited: &EnvPolicy,
) -> Vec<PathBuf> {
    let withheld = LazyCell::new(|| Withheld::of(ambient, inherited));
    let found = config.servers(env).all.iter();
    let dirs = found
        .filter(|found| is_on(config, found))
        .flat_map(|found| found.pin.launch.read.iter());
    let real = dirs.filter_map(|dir| dir.canonicalize().ok());
    real.filter(|dir| dir.is_dir() && withheld.conflict(dir).is_none())
        .collect()
}

fn is_on(config: &Config, found: &FoundServer) -> bool {
    let switches = config
        .features
        .get(&McpFeature::id(&found.pin.name).to_string());
    switches.is_none_or(|switches| switches.off().is_none())
        && withheld(mode(config), &found.pin.launch).is_none()
        && !is_unused(config, &found.feature.descriptor())
}

/// Where servers start, if there are any.
pub(super) fn start_dir(config: &Config, env: &Env) -> Result<Option<PathBuf>, Failure> {
    let is_needed = config
        .servers(env)
        .all
        .iter()
        .any(|found| found.pin.launch.url.is_none() && is_on(config, found));
    is_needed.then(|| mcp::start_dir(env)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp;
    use ::mcp::{Era, Launch, ServerInfo};
    use serde_json::json;

    #[test]
    fn calls_are_allowed_of_a_server_that_is_on() {
        let home = tempfile::tempdir().unwrap();
        let env = Env::with(&[
            ("HOME", home.path()),
            ("XDG_CONFIG_HOME", home.path()),
            ("XDG_STATE_HOME", home.path()),
        ]);
        let tool = json!({ "name": "create", "inputSchema": { "type": "object" } });
        let mut pin = ServerPin::new(
            "x".to_owned(),
            Launch::default(),
            (Era::Modern, "2026-07-28".to_owned(), ServerInfo::default()),
            vec![serde_json::from_value(tool).unwrap()],
        );
        pin.launch.command = vec!["x".to_owned()];
        pin.allowed = true;
        mcp::save(&env, pin).unwrap();
        let mut sources = Vec::new();
        for config in ["", "[features.\"plugin:mcp/x\"]\nenabled = false\n"] {
            std::fs::write(home.path().join("yoi/config.toml"), config).unwrap();
            let config = Config::load(&env).unwrap();
            let withheld = [None, Some("withheld")];
            sources.extend(withheld.map(|why| layers(&config, &env, |_| why).len()));
        }
        assert_eq!(sources, [1, 0, 0, 0]);
    }
}
