//! `yoi agents`: the agents that a start can name, whose they are, and why one cannot be used.

use crate::cli::AgentsArgs;
use crate::show::{checklist, out};
use host::agents::{AgentRegistry, FoundAgent};
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use serde_json::{Value, json};

/// Columns of a name.
const NAMES: usize = 20;

pub(crate) fn run(args: &AgentsArgs, env: &Env) -> Result<Exit, Failure> {
    let config = Config::load_with_plugins(env, &args.plugins.plugin_dir)?;
    let AgentRegistry { agents, problems } = AgentRegistry::tried(&config, env);
    if args.json {
        let rows: Vec<Value> = agents
            .iter()
            .map(|found| row(found, &config, env))
            .collect();
        out::json(&json!({ "agents": rows, "problems": problems }));
        return Ok(Exit::Done);
    }
    for found in &agents {
        tell(found, &config, env);
    }
    for problem in &problems {
        checklist::item("!", "", 0, problem);
    }
    if agents.is_empty() && problems.is_empty() {
        out::wrapped(
            "there are no agents; docs/CONFIGURATION.md shows an agent file, which belongs in the directory `agents` beside your \
             config.toml, or in .yoi/agents of a project",
        );
    }
    Ok(Exit::Done)
}

fn tell(found: &FoundAgent, config: &Config, env: &Env) {
    match (&found.agent, found.unusable()) {
        (Ok(agent), None) => {
            checklist::item("✓", &found.name, NAMES, &agent.description());
            let needed = agent.needed();
            if !needed.is_empty() {
                let all: Vec<String> = needed
                    .iter()
                    .map(|name| format!("--arg {name}=VALUE"))
                    .collect();
                checklist::below("needs", &all.join(" "));
            }
            if let Some(ignored) = agent.ignored(config, env) {
                checklist::below("ignored:", &ignored);
            }
        }
        (_, why) => checklist::item("✗", &found.name, NAMES, why.unwrap_or_default()),
    }
    let at = env.shown(&found.path);
    checklist::below("", &format!("of {}: {at}", found.origin));
}

fn row(found: &FoundAgent, config: &Config, env: &Env) -> Value {
    let agent = found.agent.as_ref().ok();
    json!({
        "name": found.name, "source": found.origin.to_string(), "file": env.shown(&found.path),
        "usable": found.unusable().is_none(), "why": found.unusable(),
        "description": agent.map(|agent| agent.description()), "needs": agent.map(|agent| agent.needed()),
        "ignored": agent.and_then(|agent| agent.ignored(config, env)),
    })
}
