//! `--agent` of several commands, and `yoi agents`.

use super::PluginDirsArgs;
use super::values::argument;
use crate::candidates::agents;
use clap::Args;
use clap_complete::ArgValueCandidates;
use host::agent::Agent;
use host::agents::AgentRegistry;
use host::config::Config;
use host::env::Env;
use host::exit::Failure;
use std::path::{Path, PathBuf};

/// The agent of one start.
#[derive(Debug, Default, Args)]
pub(crate) struct AgentFlags {
    /// Run as this agent, which has a prompt, tools, features and limits: NAME as `yoi agents` lists it, or FILE, which is TOML or
    /// Markdown. For a new pod, or one that this agent made
    #[arg(long, value_name = "NAME|FILE", add = ArgValueCandidates::new(agents))]
    pub(crate) agent: Option<PathBuf>,
    /// Give the argument NAME of the agent (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument, requires = "agent")]
    pub(crate) arg: Vec<(String, String)>,
}

impl AgentFlags {
    /// The agent that they mean. `plugin_dirs` are those of the command line.
    pub(crate) fn load<'a>(
        &self,
        plugin_dirs: impl Iterator<Item = &'a Path>,
        env: &Env,
    ) -> Result<Option<Agent>, Failure> {
        let Some(wanted) = &self.agent else {
            return Ok(None);
        };
        let dirs: Vec<PathBuf> = plugin_dirs.map(Path::to_path_buf).collect();
        let config = || Config::load_with_plugins(env, &dirs);
        AgentRegistry::named_or_file(wanted, &self.arg, config, env).map(Some)
    }
}

#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    #[command(flatten)]
    pub(crate) plugins: PluginDirsArgs,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
