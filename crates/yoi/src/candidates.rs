//! What a shell may complete on the command line: pods, models, agents and MCP servers.
//!
//! The shell asks at each press of Tab, so all are those of that moment. Nothing is connected or written.

use crate::remedy::WORDS;
use clap_complete::CompletionCandidate;
use host::added::AddedFeatures;
use host::agents::AgentRegistry;
use host::compose::model::OFFLINE;
use host::config::Config;
use host::env::Env;
use host::pods::Pods;
use provider::catalog;
use std::collections::BTreeSet;

pub(crate) fn pods() -> Vec<CompletionCandidate> {
    let pods = env().and_then(|env| Pods::of(&env).ok());
    pods.and_then(|pods| pods.names().ok())
        .unwrap_or_default()
        .into_iter()
        .map(CompletionCandidate::new)
        .collect()
}

/// MCP servers that the person added.
pub(crate) fn servers() -> Vec<CompletionCandidate> {
    let Some(env) = env() else {
        return Vec::new();
    };
    let config = Config::load(&env);
    let names = config.map(|config| {
        let all = config.servers(&env).all.iter();
        all.map(|found| CompletionCandidate::new(&found.pin.name))
            .collect()
    });
    names.unwrap_or_default()
}

/// Agents that can be used in this directory.
pub(crate) fn agents() -> Vec<CompletionCandidate> {
    let Some(env) = env() else {
        return Vec::new();
    };
    let found = Config::load(&env).map(|config| AgentRegistry::tried(&config, &env));
    let usable = found.into_iter().flat_map(|found| found.agents);
    let usable = usable.filter(|found| found.unusable().is_none());
    usable
        .map(|found| CompletionCandidate::new(found.name))
        .collect()
}

/// Models that are named here: the embedded one, those of the configuration, and what vendors are asked for by default.
pub(crate) fn models() -> Vec<CompletionCandidate> {
    let mut names: BTreeSet<String> = [OFFLINE.to_owned()].into();
    names.extend(
        catalog::PROVIDERS
            .iter()
            .filter_map(|p| Some(format!("{}/{}", p.name, p.default_model?))),
    );
    // A configuration that does not read is told by the command itself.
    if let Some(config) = env().and_then(|env| Config::load(&env).ok()) {
        names.extend(config.model.map(|model| model.value));
        names.extend(config.models.into_keys());
    }
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn env() -> Option<Env> {
    Env::of_process(None, AddedFeatures::default(), WORDS).ok()
}
