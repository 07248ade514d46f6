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
  0 done · 1 the run failed, or `offline` did not understand the prompt or could not do it · 2 usage
  3 a gate ended the run, or the model ended it on a refused call · 4 step, cost or time limit
  5 model unreachable after retries · 65 damaged data · 69 unavailable · 70 internal error
  74 journal not writable · 75 busy · 78 configuration · 130, 143 ended by a signal";

const VARIABLES: &str = "\
Variables, over the files and under the flags:
  YOI_MODEL · YOI_MAX_STEPS · YOI_MAX_COST · YOI_TOOL_CONCURRENCY · YOI_SANDBOX (read-only, workspace-write, off)
Log for debugging: YOI_LOG (a filter: info, or warn,pod::control=debug)
Directories: XDG_CONFIG_HOME (~/.config), XDG_STATE_HOME (~/.local/state), TMPDIR
Colour: NO_COLOR, CLICOLOR_FORCE";

const COMPLETIONS: &str = "\
Where it goes:
  bash    yoi completions bash > ~/.local/share/bash-completion/completions/yoi
  fish    yoi completions fish > ~/.config/fish/completions/yoi.fish
  zsh     source <(yoi completions zsh), in ~/.zshrc behind compinit
  elvish  eval (yoi completions elvish | slurp), in rc.elv";

/// Runs LLM agents as pods: named sessions whose every word is on disk, in order, and can be replayed.
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
    /// Run a prompt to its end: answer on stdout, progress on stderr
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// List named pods and the last runs
    Ls(LsArgs),
    /// Print a pod's transcript
    Log(LogArgs),
    /// Check every record of a pod and rebuild every request it sent
    Verify(VerifyArgs),
    /// Show what a pod changed in files
    Diff(DiffArgs),
    /// Take back what a pod changed in files
    Undo(UndoArgs),
    /// Move a pod to the trash, or delete it
    Rm(RmArgs),
    /// Show what features install and what they may do
    Features(FeaturesArgs),
    /// Begin a feature of one's own
    #[command(subcommand)]
    Feature(FeatureAction),
    /// Check environment, configuration, models, sandbox and journals
    Doctor(JsonArgs),
    /// Show, check or create the configuration
    #[command(subcommand, after_help = VARIABLES)]
    Config(ConfigAction),
    /// List what the project's yoi.toml asks for beyond narrowing, or grant it
    Grant(GrantArgs),
    /// List what was granted to the project's yoi.toml, or take it back
    Revoke(GrantArgs),
    /// List the models that can be used now, and how to set up others
    Models(JsonArgs),
    /// Print what a shell needs to complete yoi's commands, flags, pods and models
    #[command(after_help = COMPLETIONS)]
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` reads it from stdin. With a prompt, piped stdin is attached to it
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<OsString>,
    /// Continue this directory's last run
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["pod", "ephemeral"])]
    pub(crate) resume: bool,
    /// Run in the pod of this name, new or existing
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(pods))]
    pub(crate) pod: Option<String>,
    /// Keep nothing of this run
    #[arg(long, conflicts_with = "pod")]
    pub(crate) ephemeral: bool,
    /// The model: provider/name, offline, scripted:FILE, or record:MODEL
    #[arg(short, long, value_name = "MODEL", add = ArgValueCandidates::new(models))]
    pub(crate) model: Option<String>,
    /// How much the shell may touch
    #[arg(long, value_name = "MODE")]
    pub(crate) sandbox: Option<Mode>,
    /// Change no file: the same as --sandbox read-only
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) read_only: bool,
    /// Also read DIR (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Also read and write DIR (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) add_write_dir: Vec<PathBuf>,
    /// Allow calls that would be asked about (repeatable): 'Bash git status,diff', 'Bash ls', 'Write docs/**', 'Bash'. What
    /// a file denies stays denied
    #[arg(long, value_name = "RULE", value_parser = crate::allow::rule)]
    pub(crate) allow: Vec<pod::permission::Rule>,
    /// End after this many model requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    /// End before a request that would begin with this many dollars spent
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// End after this long: 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Read no AGENTS.md or CLAUDE.md
    #[arg(long)]
    pub(crate) no_instructions: bool,
    /// Have the answer be JSON that is valid against the JSON Schema in FILE, and print nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Print records as JSON Lines, the last one the result
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// All runs, not only the last ten
    #[arg(long)]
    pub(crate) all: bool,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// A pod, or a unique beginning of its name
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Then go on as records are written, until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Begin at this record
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// The records as they are, as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
    /// Outputs unabridged
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A pod, or a unique beginning of its name
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Copy what verifies into a new pod, with a gap for each record that is lost; the damaged one stays as it is
    #[arg(long, value_name = "NEW")]
    pub(crate) salvage: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// A pod, or a unique beginning of its name
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// A pod, or a unique beginning of its name
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Take back only what came after this record
    #[arg(long, value_name = "SEQ")]
    pub(crate) to: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The pod's whole name
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Delete it instead of moving it to the trash
    #[arg(long)]
    pub(crate) purge: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeaturesArgs {
    /// The report of this pod's newest start, instead of today's plan
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// What would be installed, without installing it
    #[arg(long)]
    pub(crate) plan: bool,
    /// What came, went and changed from start N of the pod to its newest, or to start M; the first is 1
    #[arg(long, value_name = "N[..M]", conflicts_with = "plan")]
    pub(crate) diff: Option<Span>,
    /// What decides whether a call of TOOL runs, and where that is written
    #[arg(long, value_name = "TOOL", conflicts_with_all = ["plan", "diff"])]
    pub(crate) explain: Option<String>,
    /// What the pod's newest start was granted and never used
    #[arg(long, conflicts_with_all = ["plan", "diff", "explain"])]
    pub(crate) unused: bool,
    /// The JSON Schema of what is printed with --json
    #[arg(long, conflicts_with = "json")]
    pub(crate) schema: bool,
    /// One JSON document
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
            Ok(0) | Err(_) => Err("give the number of a start, from 1, or two as in 1..3".to_owned()),
        };
        match text.split_once("..") {
            Some((from, to)) => Ok(Self { from: number(from)?, to: Some(number(to)?) }),
            None => Ok(Self { from: number(text)?, to: None }),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeatureAction {
    /// Write a working crate with its test: one tool, one gate, state
    New(FeatureNewArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FeatureNewArgs {
    /// The feature, its crate and its directory: words of a-z and 0-9 with - between them
    pub(crate) name: String,
    /// Where the crate's directory goes, instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The clone of yoi it builds against, instead of the one around it
    #[arg(long, value_name = "DIR")]
    pub(crate) yoi: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// Entries by their number in the list, by their key, or by at least 8 digits of their digest
    #[arg(value_name = "ENTRY", conflicts_with = "all")]
    pub(crate) entries: Vec<String>,
    /// Every entry of the list
    #[arg(long)]
    pub(crate) all: bool,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
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
    /// Every value in force and where it comes from
    Show(JsonArgs),
    /// The files that are read
    Path,
    /// Read every file and say what is wrong
    Check,
    /// Write a commented configuration file
    Init,
    /// The JSON Schema of a configuration file
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
    amount.filter(|dollars| *dollars > 0.0 && dollars.is_finite()).ok_or_else(|| "give dollars, as in 0.50".to_owned())
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
        Some(0) | None => Err("give a time like 90s, 10m or 2h".to_owned()),
    }
}
