//! The command line: commands, flags and their help. Runs nothing and opens nothing.

use crate::candidates::{models, pods};
use crate::config::file::Mode;
use crate::exit::Exit;
use authority::text::{escape_line, escape_lines};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes:
  0         success
  1         the run failed, or `offline` did not understand the prompt or could not do it
  2         wrong command line
  3         a hook ended the run, or the last call was refused
  4         step, cost or time limit reached
  5         model unreachable after retries
  65        damaged or invalid data
  69        something that is needed is unavailable
  70        internal error
  74        the journal or standard output cannot be written
  75        the pod is in use
  78        wrong configuration
  130, 143  ended by a signal";

const VARIABLES: &str = "\
Environment variables (they override the files; flags override them):
  YOI_MODEL · YOI_MAX_STEPS · YOI_MAX_COST · YOI_TOOL_CONCURRENCY · YOI_SANDBOX (read-only, workspace-write, off)
Log for debugging: YOI_LOG (a filter: info, or warn,pod::control=debug)
Directories: XDG_CONFIG_HOME (~/.config), XDG_STATE_HOME (~/.local/state), TMPDIR
Colour: NO_COLOR, CLICOLOR_FORCE";

const COMPLETIONS: &str = "\
Installation:
  bash    yoi completions bash > ~/.local/share/bash-completion/completions/yoi
  fish    yoi completions fish > ~/.config/fish/completions/yoi.fish
  zsh     source <(yoi completions zsh), in ~/.zshrc behind compinit
  elvish  eval (yoi completions elvish | slurp), in rc.elv";

/// Runs LLM agents as pods: named sessions in which every event is on disk before anything acts on it.
#[derive(Debug, Parser)]
#[command(name = "yoi", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Work in DIR instead of the current directory
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Without one, a short help.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a prompt: the answer goes to stdout, progress to stderr
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// List named pods and the most recent runs
    Ls(LsArgs),
    /// Print the transcript of a pod
    Log(LogArgs),
    /// Check every record of a pod and rebuild every request that it sent
    Verify(VerifyArgs),
    /// Show the file changes of a pod
    Diff(DiffArgs),
    /// Undo the file changes of a pod
    Undo(UndoArgs),
    /// Move a pod to the trash, or delete it
    Rm(RmArgs),
    /// Show the features, what they add and what they may do
    Features(FeaturesArgs),
    /// Create a feature
    #[command(subcommand)]
    Feature(FeatureAction),
    /// Check the environment, configuration, models, sandbox and journals
    Doctor(JsonArgs),
    /// Show, check or create the configuration
    #[command(subcommand, after_help = VARIABLES)]
    Config(ConfigAction),
    /// List or grant what the project's yoi.toml requests beyond tightening your settings
    Grant(GrantArgs),
    /// List or revoke what was granted to the project's yoi.toml
    Revoke(GrantArgs),
    /// List the models that can be used now, and how to set up others
    Models(JsonArgs),
    /// Print a script that completes commands, flags, pods and models in a shell
    #[command(after_help = COMPLETIONS)]
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The prompt; `-` reads it from stdin. Piped stdin is attached to a given prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<OsString>,
    /// Continue the last run in this directory
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["pod", "ephemeral"])]
    pub(crate) resume: bool,
    /// Run in the pod NAME; create it if it does not exist
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(pods))]
    pub(crate) pod: Option<String>,
    /// Do not save this run
    #[arg(long, conflicts_with = "pod")]
    pub(crate) ephemeral: bool,
    /// Use this model: provider/name, offline, scripted:FILE, or record:MODEL
    #[arg(short, long, value_name = "MODEL", add = ArgValueCandidates::new(models))]
    pub(crate) model: Option<String>,
    /// What shell commands may write
    #[arg(long, value_name = "MODE")]
    pub(crate) sandbox: Option<Mode>,
    /// Change no files; the same as --sandbox read-only
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) read_only: bool,
    /// Allow reading DIR (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Allow reading and writing DIR (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) add_write_dir: Vec<PathBuf>,
    /// Allow calls that otherwise need approval (repeatable): 'Bash git status,diff', 'Bash ls', 'Write docs/**', 'Bash'.
    /// Rules in files that deny a call still apply
    #[arg(long, value_name = "RULE", value_parser = crate::allow::rule)]
    pub(crate) allow: Vec<pod::permission::Rule>,
    /// Stop after N model requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    /// Stop before the next request once USD dollars are spent
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// Stop after this time: 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Do not read AGENTS.md or CLAUDE.md
    #[arg(long)]
    pub(crate) no_instructions: bool,
    /// Require an answer that is valid against the JSON Schema in FILE, and print only this JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Print records as JSON Lines; the last line is the result
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not print progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// List all runs, not only the last ten
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Keep printing new records until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Start at record SEQ
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// Print the raw records as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not shorten outputs
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Copy the intact records into the new pod NEW; the damaged pod is not changed
    #[arg(long, value_name = "NEW")]
    pub(crate) salvage: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Undo only the changes after record SEQ
    #[arg(long, value_name = "SEQ")]
    pub(crate) to: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Full name of the pod
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Delete the pod instead of moving it to the trash
    #[arg(long)]
    pub(crate) purge: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeaturesArgs {
    /// Show the report of this pod's last start instead of the plan for the next one
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Show what would be installed, without installing it
    #[arg(long)]
    pub(crate) plan: bool,
    /// Show what changed from start N of the pod to start M (default: the last); the first start is 1
    #[arg(long, value_name = "N[..M]", conflicts_with = "plan")]
    pub(crate) diff: Option<Span>,
    /// Show what decides whether a call of TOOL runs, and where each rule is written
    #[arg(long, value_name = "TOOL", conflicts_with_all = ["plan", "diff"])]
    pub(crate) explain: Option<String>,
    /// Show the grants that the pod's last start did not use
    #[arg(long, conflicts_with_all = ["plan", "diff", "explain"])]
    pub(crate) unused: bool,
    /// Print the JSON Schema of the --json output
    #[arg(long, conflicts_with = "json")]
    pub(crate) schema: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// A start of a pod, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u64,
    /// To this one; else to the newest.
    pub(crate) to: Option<u64>,
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.parse() {
            Ok(number @ 1..) => Ok(number),
            Ok(0) | Err(_) => Err("expected the number of a start, from 1, or a range such as 1..3".to_owned()),
        };
        match text.split_once("..") {
            Some((from, to)) => Ok(Self { from: number(from)?, to: Some(number(to)?) }),
            None => Ok(Self { from: number(text)?, to: None }),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeatureAction {
    /// Create a working crate with a test: one tool, one gate, state
    New(FeatureNewArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FeatureNewArgs {
    /// Name of the feature, its crate and its directory: words of a-z and 0-9, joined by -
    pub(crate) name: String,
    /// Create the crate in DIR instead of the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Build against the clone of yoi in DIR instead of the enclosing one
    #[arg(long, value_name = "DIR")]
    pub(crate) yoi: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// Entries to select: by number, by key, or by at least 8 digits of the digest
    #[arg(value_name = "ENTRY", conflicts_with = "all")]
    pub(crate) entries: Vec<String>,
    /// Select all entries
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that will read the script
    pub(crate) shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Zsh,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Show every setting and where it comes from
    Show(JsonArgs),
    /// List the files that are read
    Path,
    /// Read every file and report errors
    Check,
    /// Create a commented configuration file
    Init,
    /// Print the JSON Schema of a configuration file
    Schema,
}

/// `--help` and `--version` are results; everything else clap says is a usage error. It quotes what was typed, so it is
/// made to say the same of words that no terminal acts on.
pub(crate) fn report(error: &clap::Error, args: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        drop(error.print());
        return Exit::Done.code();
    }
    let harmless = args.iter().map(|word| escape_line(&word.to_string_lossy()).into_owned());
    match Cli::try_parse_from(harmless) {
        Err(same) if same.kind() == error.kind() => drop(same.print()),
        // What is wrong with them is what was taken away.
        Ok(_) | Err(_) => drop(std::io::stderr().write_all(escape_lines(&error.render().to_string()).as_bytes())),
    }
    Exit::Usage.code()
}

/// `0.50`, `2`; also with the sign before it.
fn dollars(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.strip_prefix('$').unwrap_or(text).parse().ok();
    amount
        .filter(|dollars| *dollars > 0.0 && dollars.is_finite())
        .ok_or_else(|| "expected dollars, such as 0.50".to_owned())
}

/// `90s`, `10m`, `2h`; a plain number is seconds.
fn time(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok();
    match number.zip(seconds).and_then(|(n, s)| n.checked_mul(s)) {
        Some(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        Some(0) | None => Err("expected a time such as 90s, 10m or 2h".to_owned()),
    }
}
