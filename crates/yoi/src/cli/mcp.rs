//! `yoi mcp`: its actions and their options.

use super::shared::{HelpArgs, JsonArgs};
use super::texts::HELP_BELOW;
use crate::candidates::{pods, servers};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum McpAction {
    /// Start the server COMMAND once, confined, or ask the one at URL, and keep the definitions of its tools
    Add(McpAddArgs),
    /// List the servers that you added
    List(JsonArgs),
    /// Show a server: how it is started, what it may have, and its tools
    Show(McpShowArgs),
    /// Ask a server for its definitions again, show what changed and keep that if you agree
    Pin(McpPinArgs),
    /// List the servers that other programs are configured with, each with the command that adds it; add none
    Import(McpImportArgs),
    /// Remove a server
    Remove(McpNameArgs),
    /// Serve the tools of a pod to programs that speak the Model Context Protocol, on standard input and output
    Serve(McpServeArgs),
    #[command(about = HELP_BELOW)]
    Help(HelpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct McpServeArgs {
    /// Name of the pod, or a unique prefix of it, which is started if it is stopped. Without NAME, a pod of this directory
    /// that asks no model and ends with its last client
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Serve only the tools whose names GLOB matches (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) tools: Vec<String>,
    /// Serve on ADDRESS of this machine, such as 127.0.0.1:8350, over HTTP instead: the protocol at /mcp, and /tools for
    /// scripts. Requests need the token in the file that is named at the start
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct McpAddArgs {
    /// A name for the server: 1 to 24 characters of a-z, 0-9 and -
    pub(crate) name: String,
    /// The program and its arguments; it starts in an empty directory
    #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// The address of a server on the network, instead: https, or of this machine
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "network", "read_dir", "env", "secret"])]
    pub(crate) url: Option<String>,
    /// Give the server at URL a secret of your configuration as a bearer
    #[arg(long, value_name = "SECRET", requires = "url")]
    pub(crate) bearer: Option<String>,
    /// Give the server at URL a secret of your configuration as a header (repeatable)
    #[arg(long, value_name = "HEADER=SECRET", value_parser = pair, requires = "url")]
    pub(crate) header_secret: Vec<(String, String)>,
    /// Let the server use the network
    #[arg(long)]
    pub(crate) network: bool,
    /// Let commands and servers of pods read DIR (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) read_dir: Vec<PathBuf>,
    /// Give the server a variable; not for keys (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) env: Vec<(String, String)>,
    /// Give the server a secret of your configuration as a variable (repeatable)
    #[arg(long, value_name = "NAME=SECRET", value_parser = pair)]
    pub(crate) secret: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) view: McpViewArgs,
    /// Replace the server of the same name
    #[arg(long)]
    pub(crate) replace: bool,
}

/// How a person takes what a server says.
#[derive(Debug, Args)]
pub(crate) struct McpViewArgs {
    /// Believe what the server says about its tools: those that it calls read-only then run without approval
    #[arg(long)]
    pub(crate) trust: bool,
    /// Let calls of all of its tools run without approval; rules of your configuration override this
    #[arg(long)]
    pub(crate) allow_calls: bool,
    /// Give a tool another name before the model (repeatable)
    #[arg(long, value_name = "TOOL=NAME", value_parser = pair)]
    pub(crate) rename: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct McpPinArgs {
    /// Name of the server
    #[arg(add = ArgValueCandidates::new(servers))]
    pub(crate) name: String,
    /// Only show what changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take what changed without a question
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) view: McpViewArgs,
    /// Do not believe what the server says about its tools any more
    #[arg(long, conflicts_with = "trust")]
    pub(crate) no_trust: bool,
    /// Ask before calls again
    #[arg(long, conflicts_with = "allow_calls")]
    pub(crate) no_allow_calls: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpImportArgs {
    /// Configuration files, instead of those of Claude Code, Codex, Cursor and VS Code, of you and of this project
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct McpShowArgs {
    /// Name of the server
    #[arg(add = ArgValueCandidates::new(servers))]
    pub(crate) name: String,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpNameArgs {
    /// Name of the server
    #[arg(add = ArgValueCandidates::new(servers))]
    pub(crate) name: String,
}

/// A name and a value.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write two values with `=` between them".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_a_name_and_a_value() {
        let of = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(pair("a=b=c"), of("a", "b=c"));
        assert_eq!(pair("a="), of("a", ""));
        for odd in ["a", "=a", ""] {
            let why = "write two values with `=` between them".to_owned();
            assert_eq!(pair(odd), Err(why));
        }
    }
}
