//! Options that several commands have.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Command to describe
    #[arg(value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
