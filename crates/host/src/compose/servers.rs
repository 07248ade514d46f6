//! What the MCP servers of a person come to: features that need what the person gave when they were added.

use super::model::context_window;
use super::off::is_unused;
use super::packages::{self, OFF, mode};
use crate::config::Config;
use crate::config::file::Mode;
use crate::env::Env;
use crate::exit::Failure;
use crate::mcp::{self, FoundServer};
use ::mcp::{Launch, McpFeature, ServerPin};
use authority::text::escape_line;
use authority::{Ambient, EnvPolicy, Net, Withheld};
use builtins::tool_search::{self, ToolGroup, ToolSearch};
use pod::feature::{CapabilityPolicy, FeatureModule, HostCapability, estimated_tokens};
use pod::hook::{HookClass, HookPoint};
use pod::permission::{Layer, Rule, RuleDecision};
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// What grants a server its capabilities.
const GRANT: &str = "`yoi mcp add`";

/// What asks a person on behalf of a server.
const QUESTIONS: HostCapability = HostCapability::ContributeHook {
    point: HookPoint::PreToolCall,
    class: HookClass::Gate,
};

/// The window of a model of which nothing is known, in tokens.
const UNKNOWN_WINDOW: u64 = 128_000;

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
                HostCapability::ANY_COMMAND,
                QUESTIONS,
                HostCapability::SESSION_STATE,
            ])
            .fold(policy, |policy, capability| {
                policy.grant(id.clone(), capability, GRANT)
            });
        modules.push(Arc::clone(feature) as Arc<dyn FeatureModule>);
    }
    if servers.all.is_empty() {
        return policy;
    }
    let mut kept: BTreeSet<&str> = config.mcp_always.value.iter().map(String::as_str).collect();
    let deferred = deferred(config, env, off, &mut kept);
    let unknown = kept.into_iter().map(escape_line);
    problems.extend(unknown.map(|name| {
        let source = &config.mcp_always.source;
        format!("{source}: mcp.always: no MCP server has a tool `{name}`")
    }));
    let names = deferred.iter().flat_map(|group| &group.tools);
    let names: Vec<String> = names.map(|tool| tool.name.clone()).collect();
    modules.push(Arc::new(ToolSearch(deferred.into())));
    match names.is_empty() {
        true => policy.disable(tool_search::ID, format!("{OFF}the model has all tools")),
        false => policy
            .grant(tool_search::ID, HostCapability::tool("*"), "default")
            .defer(names, tool_search::CALLER),
    }
}

/// Those tools of servers that requests leave out: none if all of them take no more of the model's window than they may, else
/// all but those that the person wants to have defined, of which `kept` has those that no server has afterwards.
fn deferred(
    config: &Config,
    env: &Env,
    off: impl Fn(&Launch) -> Option<&'static str>,
    kept: &mut BTreeSet<&str>,
) -> Vec<ToolGroup> {
    let found = config.servers(env).all.iter();
    let on = found.filter(|found| !is_off(config, &found.pin, &off));
    let mut bytes = 0;
    let mut groups = Vec::new();
    for found in on {
        let mut tools = found.feature.descriptor().declared_tools;
        bytes += tools.iter().map(|tool| tool.bytes() as u64).sum::<u64>();
        tools.retain(|tool| {
            let is_kept = config.mcp_always.value.contains(&tool.name);
            kept.remove(tool.name.as_str());
            !is_kept
        });
        if !tools.is_empty() {
            let prefix = format!("mcp__{}__", found.pin.name);
            groups.push(ToolGroup { prefix, tools });
        }
    }
    let model = config.model.as_ref();
    let window = model.and_then(|model| context_window(&model.value, config));
    let most = window
        .unwrap_or(UNKNOWN_WINDOW)
        .saturating_mul(config.mcp_defer.value);
    let fits = estimated_tokens(bytes).saturating_mul(100) <= most;
    // Who names the tools of a start wants these.
    let is_named = config.only_tools.is_some();
    let switches = config.features.get(&tool_search::ID.to_string());
    let is_switched_off = switches.is_some_and(|switches| switches.off().is_some());
    let is_never = config.mcp_defer.value == 100;
    match fits || is_named || is_switched_off || is_never {
        true => Vec::new(),
        false => groups,
    }
}

/// Whether a server does not run in a start; `off` is that of [`decided`].
fn is_off(config: &Config, pin: &ServerPin, off: impl Fn(&Launch) -> Option<&'static str>) -> bool {
    let switches = config.features.get(&McpFeature::id(&pin.name).to_string());
    switches.is_some_and(|switches| switches.off().is_some()) || off(&pin.launch).is_some()
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
    let allowed = found.filter(|found| found.pin.allowed && !is_off(config, &found.pin, &off));
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
    use ::mcp::{Definitions, Era, Launch, ServerInfo};
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
            Definitions {
                tools: vec![serde_json::from_value(tool).unwrap()],
                ..Definitions::default()
            },
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
