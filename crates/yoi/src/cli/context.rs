//! `yoi context`: its actions and their options.

use super::shared::{HelpArgs, JsonArgs};
use super::texts::HELP_BELOW;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ContextAction {
    /// Bring the index of this project up to date with its files, or create it
    Sync(ContextSyncArgs),
    /// Print the passages that fit QUERY best
    Search(ContextSearchArgs),
    /// Print a document of the index
    Get(ContextGetArgs),
    /// List what is indexed, with the health of each source
    Sources(JsonArgs),
    /// Show how large the index is, and where
    Stats(JsonArgs),
    #[command(about = HELP_BELOW)]
    Help(HelpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ContextSyncArgs {
    /// Only show what would change
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print progress and results as lines of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ContextSearchArgs {
    /// Words that the text has; nothing in them is syntax
    // Options are written with dashes in what is looked for, too.
    #[arg(value_name = "QUERY", required = true, allow_hyphen_values = true)]
    pub(crate) query: Vec<String>,
    /// Only documents whose path in their source begins with PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Only this source
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Compare words, meaning or both; by default both where the index has vectors ([embeddings])
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ContextMode>,
    /// Print at most this many passages, 1 to 50
    #[arg(long, value_name = "NUMBER", default_value_t = 12)]
    pub(crate) limit: usize,
    /// Show why each passage is where it is
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a search compares.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ContextMode {
    /// Words
    Keyword,
    /// Meaning
    Semantic,
    /// Both, by their scaled scores
    Hybrid,
    /// Both, by their ranks
    Ranks,
}

#[derive(Debug, Args)]
pub(crate) struct ContextGetArgs {
    /// The id of a document, or of one of its passages
    pub(crate) id: String,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
