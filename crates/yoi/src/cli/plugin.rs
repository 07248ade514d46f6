//! `yoi plugin`: its actions and their options.

use super::shared::HelpArgs;
use super::texts::HELP_BELOW;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginAction {
    /// List the plugins that were found, where, and whether you granted them
    List(PluginListArgs),
    /// Show a plugin: its package, its features, their tools, and what each tool runs
    Show(PluginShowArgs),
    /// Check the package in DIR, without running any of it
    Check(PluginDirArgs),
    /// Run the examples in DIR/tests, confined as calls are; it is you who runs the programs of the package, granted or not
    Test(PluginTestArgs),
    /// Create a package with one tool, which works as it is
    New(PluginNewArgs),
    /// Copy a package to the plugins of your configuration; it runs after you grant it with `yoi grant`
    Add(PluginAddArgs),
    /// Take an added plugin again from where it came, after showing what changed; it runs after you grant it again
    Update(PluginUpdateArgs),
    /// Remove a plugin from the plugins of your configuration, and its grant
    Remove(PluginNameArgs),
    #[command(about = HELP_BELOW)]
    Help(HelpArgs),
}

/// For commands that start no pod.
#[derive(Debug, Args)]
pub(crate) struct PluginDirsArgs {
    /// Look for plugins in the directories in DIR, too (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PluginListArgs {
    #[command(flatten)]
    pub(crate) plugins: PluginDirsArgs,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginShowArgs {
    /// Name of the plugin, as `yoi plugin list` shows it
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) plugins: PluginDirsArgs,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginDirArgs {
    /// The directory with the file plugin.toml
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PluginAddArgs {
    /// The directory of the package, its archive (.tar.gz or .zip), or the https address of one
    pub(crate) source: PathBuf,
    /// Replace the added plugin of the same name; nothing of the new one runs before you grant it
    #[arg(long)]
    pub(crate) replace: bool,
    /// Take the archive only with this SHA-256 digest
    #[arg(long, value_name = "HEX")]
    pub(crate) sha256: Option<String>,
    /// Take the archive, now and in updates, only with a signature of this minisign key (SOURCE.minisig): the key, or its file
    #[arg(long)]
    pub(crate) key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PluginUpdateArgs {
    /// Name of the plugin
    pub(crate) name: String,
    /// Take it from here, now and later: the signature is still checked against the key that it was added with
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: Option<PathBuf>,
    /// Take the archive only with this SHA-256 digest
    #[arg(long, value_name = "HEX")]
    pub(crate) sha256: Option<String>,
    /// Take what changed without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginTestArgs {
    /// The directory with the file plugin.toml
    pub(crate) dir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginNewArgs {
    /// Name of the package and its directory: 1 to 32 characters of a-z, 0-9 and -
    pub(crate) name: String,
    /// Create the directory of the package in DIR instead of the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Write one whose tool, gate and state a guest in Python answers
    #[arg(long)]
    pub(crate) python: bool,
    /// Write the same with a script in Lua, which needs no other program
    #[arg(long, conflicts_with = "python")]
    pub(crate) lua: bool,
    /// The same in Node
    #[arg(long, conflicts_with_all = ["python", "lua"])]
    pub(crate) node: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginNameArgs {
    /// Name of the plugin
    pub(crate) name: String,
}
