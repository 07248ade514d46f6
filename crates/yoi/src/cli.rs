//! The command line: commands, options and their help. Runs nothing and opens nothing.

mod agent;
mod context;
mod limit_flags;
mod mcp;
mod plugin;
mod shared;
mod texts;

mod values;

pub(crate) use self::agent::{AgentFlags, AgentsArgs};
pub(crate) use self::context::{
    ContextAction, ContextGetArgs, ContextMode, ContextSearchArgs, ContextSyncArgs,
};
use self::limit_flags::LimitFlags;
pub(crate) use self::mcp::{McpAction, McpAddArgs, McpPinArgs, McpServeArgs};
pub(crate) use self::plugin::{
    PluginAction, PluginAddArgs, PluginDirsArgs, PluginListArgs, PluginNewArgs, PluginShowArgs,
    PluginUpdateArgs,
};
pub(crate) use self::shared::{HelpArgs, JsonArgs};
pub(crate) use self::values::Span;
use self::values::{key, modes, seq, size, time};
use crate::candidates::{models, pods};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;
use host::added::AddedFeatures;
use host::allow;
use host::bad_value::BadValue;
use host::config::file::Mode;
use host::launch::LaunchOptions;
use host::limits::LIMITS;
use llm_worker::Effort;
use pod::record::Launch;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use texts::{ATTACH, COMPLETIONS, EXIT_CODES, HELP, HELP_BELOW, PENDING, START, VARIABLES};
use tui::ScreenSize;

/// Hosts a pod for `yoi start`, which writes the options to its standard input. No command of [`Cli`]: no help, page,
/// completion or suggestion names it.
pub(crate) const HOST: &str = "__host";

/// Runs LLM agents in pods: named sessions that are saved on disk.
#[derive(Debug, Parser)]
#[command(name = "yoi", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Work in DIR instead of the current directory
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Without one, the pod of this directory is shown at a terminal; elsewhere a short help is printed.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Reads a command line of a program with these features.
    ///
    /// # Errors
    /// What clap says of it.
    pub(crate) fn parsed(args: &[OsString], added: &AddedFeatures) -> Result<Self, clap::Error> {
        let command = reading_rules(Self::command(), added);
        Self::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    /// The command line with `--help` that prints what a `help` command asks for.
    pub(crate) fn help_wanted(&self) -> Option<Vec<OsString>> {
        let (path, args) = match self.command.as_ref()? {
            Command::Help(args) => (None, args),
            Command::Feature(FeatureAction::Help(args)) => (Some("feature"), args),
            Command::Plugin(PluginAction::Help(args)) => (Some("plugin"), args),
            Command::Mcp(McpAction::Help(args)) => (Some("mcp"), args),
            Command::Context(ContextAction::Help(args)) => (Some("context"), args),
            Command::Config(ConfigAction::Help(args)) => (Some("config"), args),
            _ => return None,
        };
        let commands = args
            .commands
            .iter()
            .map(String::as_str)
            .filter(|word| !word.starts_with('-'));
        Some(
            ["yoi"]
                .into_iter()
                .chain(path)
                .chain(commands)
                .chain(["--help"])
                .map(OsString::from)
                .collect(),
        )
    }
}

/// The command, with values of `--allow` that are rules about the tools that are declared.
fn reading_rules(command: clap::Command, added: &AddedFeatures) -> clap::Command {
    let read = |arg: clap::Arg| {
        if arg.get_id() != "allow" {
            return arg;
        }
        let added = added.clone();
        // What is declared is made anew each time, which only a rule is worth.
        arg.value_parser(move |text: &str| allow::written(text, &added.declared()))
    };
    command
        .mut_args(read)
        .mut_subcommands(|below| reading_rules(below, added))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a prompt: the answer goes to stdout, progress to stderr
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// Start a pod that keeps running in the background, or start a stopped pod again
    #[command(after_help = START)]
    Start(StartArgs),
    /// Send an input to a running pod and print the input's number
    #[command(after_help = EXIT_CODES)]
    Send(SendArgs),
    /// Call a tool of a running pod as its model does, under the same rules, and print the result
    #[command(after_help = EXIT_CODES)]
    Call(CallArgs),
    /// Show a running pod on a full screen, and talk to it
    #[command(after_help = ATTACH)]
    Attach(AttachArgs),
    /// Serve an editor on stdin and stdout, in the Agent Client Protocol: each of its sessions is a pod that keeps running
    #[command(after_help = EXIT_CODES)]
    Acp(AcpArgs),
    /// Send a notification to the model of a running pod; the model reads it at its next step
    #[command(after_help = EXIT_CODES)]
    Notify(NotifyArgs),
    /// List, add or cancel the scheduled prompts of a pod, which are texts that it gets at set times; the feature builtin:schedule
    /// must be enabled in the configuration
    #[command(disable_help_subcommand = true)]
    Schedule(ScheduleArgs),
    /// Show what a pod is doing, which inputs are waiting, and why it does not continue
    Status(StatusArgs),
    /// Stop the process of a pod; the next start continues the interrupted turn and then takes up the waiting inputs
    Stop(StopArgs),
    /// Hold a pod before its next request to the model; inputs wait until `yoi resume`
    Pause(PodArgs),
    /// Continue a held pod, for instance after `yoi pause`
    Resume(ResumeArgs),
    /// Cancel the running turn of a pod
    Cancel(PodArgs),
    /// Shorten what a pod sends to the model: old steps are left out of its requests from the next one on; the log keeps everything
    #[command(after_help = EXIT_CODES)]
    Compact(CompactArgs),
    /// Keep a text in every request of a pod to the model, word for word; list such texts, or remove one
    #[command(after_help = EXIT_CODES)]
    Pin(PinArgs),
    /// List the calls that wait for your approval, or allow or deny one of them
    #[command(after_help = EXIT_CODES)]
    Approve(ApproveArgs),
    /// List the processes of running pods
    Ps(PsArgs),
    /// List pods, first those that wait for you, crashed or are held; of those that `yoi run` created without --pod, only the ten newest
    Ls(LsArgs),
    /// Print the transcript of a pod
    Log(LogArgs),
    /// Check every record of a pod and rebuild every request that the pod sent to the model
    Verify(VerifyArgs),
    /// Show what shorter results saved
    #[command(subcommand)]
    Format(FormatAction),
    /// Show the file changes that a pod made, except those made by commands
    Diff(DiffArgs),
    /// Undo the file changes that a pod made, except those made by commands
    Undo(UndoArgs),
    /// Move pods to the trash, or delete them: those that you name, or all old or failed ones
    Rm(RmArgs),
    /// Show the features (parts of yoi that add tools and hooks to a pod), what they may do, and the permission rules
    Features(FeaturesArgs),
    /// Create a Rust crate for a new feature
    #[command(subcommand)]
    Feature(FeatureAction),
    /// List, check, test, create, add, update and remove plugins, which are packages of tools
    #[command(subcommand)]
    Plugin(PluginAction),
    /// Add, list, show, pin and remove MCP servers, which offer tools, or serve one
    #[command(subcommand)]
    Mcp(McpAction),
    /// Index the documents of this project, and search them
    #[command(subcommand)]
    Context(ContextAction),
    /// Check the environment, configuration, models, sandbox and journals
    Doctor(JsonArgs),
    /// Show, check or create the configuration
    #[command(subcommand, after_help = VARIABLES)]
    Config(ConfigAction),
    /// List or grant what needs your consent: entries of the project's yoi.toml, and plugins
    #[command(after_help = PENDING)]
    Grant(GrantArgs),
    /// List what you granted, entries of the project's yoi.toml and plugins, or revoke grants
    Revoke(RevokeArgs),
    /// List the models that you can use now, and show how to set up others
    Models(JsonArgs),
    /// List the agents that --agent can name, and say why one cannot be used
    Agents(AgentsArgs),
    /// Print a script that completes commands, options, pods and models in a shell
    #[command(after_help = COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Write the manual pages of yoi and of its commands to a directory
    Man(ManArgs),
    #[command(about = HELP)]
    Help(HelpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The prompt; `-` reads the prompt from stdin. Text that is piped to stdin is added to PROMPT; without PROMPT, it is the prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<OsString>,
    /// Run the prompt in the pod of the last run in this directory
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["pod", "ephemeral", "agent"])]
    pub(crate) resume: bool,
    /// Run in the pod NAME; create it if it does not exist
    // A name that starts with a dash is refused as a name.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, add = ArgValueCandidates::new(pods))]
    pub(crate) pod: Option<String>,
    /// Do not save this run
    #[arg(long, conflicts_with = "pod")]
    pub(crate) ephemeral: bool,
    #[command(flatten)]
    pub(crate) agent: AgentFlags,
    #[command(flatten)]
    pub(crate) options: PodFlags,
    /// Cancel the run after this time, for example 90s, 10m or 2h
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Duration>,
    /// Require an answer that is one JSON document valid against the JSON Schema in FILE, and print only that document
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Show FILE, an image or a PDF, to the model beside the prompt (repeatable). `@FILE` in PROMPT does the same
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// Name of this prompt: if the pod has already accepted an input with the same KEY, wait for its turn and print its
    /// answer, and send nothing
    #[arg(long, value_name = "KEY", value_parser = key, requires = "pod")]
    pub(crate) key: Option<String>,
    /// Print each new record of the journal as one line of JSON; the last line is the result
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not print progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Do not ask at the terminal about calls that need approval: refuse them
    #[arg(long)]
    pub(crate) no_ask: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Name of the pod, which is created if it does not exist
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// An input; `-` reads it from stdin. Without INPUT, a new pod waits for `yoi send`
    #[arg(value_name = "INPUT")]
    pub(crate) prompt: Option<OsString>,
    #[command(flatten)]
    pub(crate) agent: AgentFlags,
    #[command(flatten)]
    pub(crate) options: PodFlags,
    /// Stay in the foreground and log to stderr, for service managers such as systemd
    #[arg(long, conflicts_with = "json")]
    pub(crate) foreground: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not print progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The options are those of the pods that it creates.
#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) options: PodFlags,
}

/// Options that a pod is started with.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PodFlags {
    /// Use this model: PROVIDER/MODEL, offline (the built-in planner), scripted:FILE (plays back the prepared answers in FILE,
    /// a model script) or record:MODEL (uses MODEL and saves the answers to a model script in the state directory)
    #[arg(short, long, value_name = "MODEL", add = ArgValueCandidates::new(models))]
    pub(crate) model: Option<String>,
    /// How much the model thinks: none, minimal, low, medium, high or max. `yoi models` shows which of these it has
    #[arg(long, value_name = "EFFORT", value_parser = effort)]
    pub(crate) effort: Option<Effort>,
    /// Choose where tools and commands can write, and whether commands have network access
    #[arg(long, value_name = "MODE", value_parser = modes())]
    pub(crate) sandbox: Option<Mode>,
    /// Do not change project files; the same as --sandbox read-only
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) read_only: bool,
    /// Allow reading DIR (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Allow reading and writing DIR (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) add_write_dir: Vec<PathBuf>,
    /// Allow calls that otherwise need approval (repeatable). RULE names a tool and, optionally, a path, a host or a
    /// command: 'Read .env', 'Write yoi.toml', 'Fetch docs.example.org', 'Bash on crates.io' (a host that a command asks
    /// for); with --sandbox off also 'Bash git status,diff' (git status and git diff), 'Bash ls' or 'Bash' (every command). `deny` rules in configuration files still apply
    // A program with features of its own knows more tools: `Cli::parsed` reads it.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// Do not read AGENTS.md or CLAUDE.md
    #[arg(long)]
    pub(crate) no_instructions: bool,
    /// Look for plugins in the directories in DIR, too (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<String>,
    /// Do not start when a plugin is found and not installed
    #[arg(long)]
    pub(crate) strict_plugins: bool,
    #[command(flatten)]
    pub(crate) attached: AttachFlags,
    /// Go on although a feature that can refuse calls, or one that is required, is gone or has other settings than at the last
    /// start of the pod
    #[arg(long)]
    pub(crate) adopt: bool,
}

impl PodFlags {
    /// What they say of a start.
    pub(crate) fn launch(&self) -> LaunchOptions {
        let mode = self.sandbox.or(self.read_only.then_some(Mode::ReadOnly));
        let mut launch = Launch {
            model: self.model.clone(),
            effort: self.effort,
            sandbox: mode.map(|mode| mode.text().to_owned()),
            allow: self.allow.clone(),
            instructions: self.no_instructions.then_some(false),
            plugin_dirs: self.plugin_dir.clone(),
            strict_plugins: self.strict_plugins.then_some(true),
            ..self.attached.launch()
        };
        for limit in LIMITS {
            (limit.launch)(&mut launch, self.limits.0.get(&limit.kind).copied());
        }
        let add_dirs = self.add_dir.clone();
        let add_write_dirs = self.add_write_dir.clone();
        LaunchOptions::new(launch, add_dirs, add_write_dirs, self.adopt)
    }
}

fn effort(word: &str) -> Result<Effort, String> {
    Effort::named(word)
        .ok_or_else(|| format!("write one of {}", Effort::ALL.map(Effort::word).join(", ")))
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Name of the tool, such as Read
    pub(crate) tool: String,
    /// The arguments as a JSON object; `-` reads them from stdin
    #[arg(default_value = "{}")]
    pub(crate) arguments: OsString,
    /// Name of this call: if the pod has already accepted one with the same KEY, wait for the result of that one and call
    /// nothing
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(crate) key: Option<String>,
    /// Print one JSON document, with the result's value for programs in `data`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// The input; `-` reads it from stdin
    #[arg(value_name = "INPUT")]
    pub(crate) text: OsString,
    /// Wait for the end of the input's turn, and print the answer instead of the input's number
    #[arg(long)]
    pub(crate) wait: bool,
    /// Deliver the input at the next step of the running turn instead of in a turn of its own
    #[arg(long)]
    pub(crate) steer: bool,
    /// Deny every call that waits for approval, and deliver the input at the next step of the turn
    #[arg(long)]
    pub(crate) deny_parked: bool,
    /// Run INPUT as a shell command of yours, in a turn of its own that asks no model. The pod runs it as it runs a call of
    /// the model; the model sees the command and its output with its next request. With --wait, the output is printed, and a command that
    /// fails ends yoi with 1
    #[arg(long, conflicts_with_all = ["steer", "deny_parked"])]
    pub(crate) run: bool,
    /// Show FILE, an image or a PDF, to the model beside the input (repeatable). `@FILE` in INPUT does the same
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub(crate) attach: Vec<PathBuf>,
    /// Name of this input: if the pod has already accepted an input with the same KEY, print the number of that input and
    /// send nothing
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(crate) key: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct AttachArgs {
    /// Name of the pod, or a unique prefix of it; without NAME, the most recently started of this directory's running pods
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Print plain lines, for scripts, simple terminals and screen readers, also on a terminal that could show the full
    /// screen
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print what is finished as ordinary lines, and draw below them only what still changes: the terminal itself scrolls
    /// and searches the transcript
    #[arg(long, conflicts_with = "plain")]
    pub(crate) inline: bool,
    /// Leave the mouse to the terminal: the wheel does not scroll, and selecting text needs no Shift key
    #[arg(long)]
    pub(crate) no_mouse: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NotifyArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// The notification, at most 16 KiB; `-` reads it from stdin
    #[arg(value_name = "NOTIFICATION")]
    pub(crate) text: OsString,
    /// If the pod is idle, start a turn that delivers the notification
    #[arg(long)]
    pub(crate) wake: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Leave out the oldest turns, too. A pod that is held because its context is full then continues
    #[arg(long)]
    pub(crate) drop_turns: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// The text, at most 4 KiB; `-` reads it from stdin. Without it, the pinned texts are listed
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<OsString>,
    /// Remove the pinned text with this number
    #[arg(long, value_name = "NUMBER", conflicts_with = "text")]
    pub(crate) remove: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Without one, the prompts are listed
    #[command(subcommand)]
    pub(crate) action: Option<ScheduleAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleAction {
    /// List the scheduled prompts of the pod, and when each is due next
    List,
    /// Schedule a prompt in a running pod
    Add(ScheduleAddArgs),
    /// Cancel a scheduled prompt of a running pod
    Cancel {
        /// Number of the prompt; `yoi schedule NAME` lists the numbers
        id: u32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleAddArgs {
    /// The prompt, at most 1000 bytes; `-` reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) text: OsString,
    #[command(flatten)]
    pub(crate) time: ScheduleTime,
    /// Time zone of --at and --cron, such as Europe/Berlin. The default is the setting `time_zone` of the feature
    /// builtin:schedule
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ScheduleTime {
    /// Deliver the prompt once, at TIME, for example '2026-11-24 09:00'
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Deliver the prompt once, after TIME, for example 10m or 2h
    #[arg(long = "in", value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    pub(crate) after: Option<Duration>,
    /// Deliver the prompt at each time that matches the cron expression, for example '0 9 * * 1-5' (minute, hour, day of the month,
    /// month, day of the week)
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) cron: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// Kill running calls instead of waiting for them to end. The next start does not repeat them
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Name of the pod, or a unique prefix of it; without NAME, all running pods
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PodArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Name of the pod, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: String,
    /// If the pod has reached a limit under [limits.pod], allow it to use as much again
    #[arg(long)]
    pub(crate) more: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Name of the pod, or a unique prefix of it; without NAME, all pods
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Number of the waiting call. Without ID, list the waiting calls and, at a terminal, ask about each of them
    pub(crate) id: Option<u64>,
    /// Deny the call; the model reads WORDS as the reason
    #[arg(long, value_name = "WORDS", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "id")]
    pub(crate) deny: Option<String>,
    /// Allow only this call (`once`, the default), or also later calls of this pod that match the rules that `yoi approve`
    /// shows for this call (`pod`); `rule` also adds these rules to your configuration file, for all pods
    #[arg(long, value_name = "SCOPE", requires = "id", conflicts_with = "deny")]
    pub(crate) scope: Option<ApproveScope>,
    /// Without a value, list the rules that were added for the pod with --scope=pod or --scope=rule, with their numbers;
    /// `--forget=N` removes rule N, and `--forget=all` removes all of them. Rules in your configuration file stay
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "name", conflicts_with_all = ["id", "deny", "scope"], value_parser = forgotten)]
    pub(crate) forget: Option<Forget>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// What an allowance is about.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ApproveScope {
    Once,
    Pod,
    Rule,
}

/// Which rules of a pod are taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forget {
    /// None: they are listed.
    List,
    Number(u64),
    All,
}

fn forgotten(text: &str) -> Result<Forget, BadValue> {
    match text {
        "" => Ok(Forget::List),
        "all" => Ok(Forget::All),
        number => number.parse().map(Forget::Number).map_err(|_| {
            BadValue::new(
                format!("`{number}` is not the number of a rule"),
                "`yoi approve NAME --forget` lists the rules",
            )
        }),
    }
}

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// List all pods, including those of older runs without --pod
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Name of the pod, or a unique prefix of it; without NAME, the pod of the last run in this directory
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Keep printing new records until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Start at record SEQ (`yoi log NAME` shows the numbers)
    #[arg(long, value_name = "SEQ", value_parser = seq)]
    pub(crate) from: Option<u64>,
    /// Print the raw records as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
    /// Print tool results in full
    #[arg(long)]
    pub(crate) full: bool,
    /// Print what the full screen of `yoi attach` shows at the newest record, or at the record of --at. What is not recorded
    /// is missing: an answer that is still arriving, and text that was written but not sent
    #[arg(long, conflicts_with_all = ["follow", "from", "json", "full"])]
    pub(crate) screen: bool,
    /// With --screen: show the screen at record SEQ
    #[arg(long, value_name = "SEQ", value_parser = seq, requires = "screen")]
    pub(crate) at: Option<u64>,
    /// With --screen: the size of the screen in columns and rows, such as 80x24
    #[arg(long, value_name = "CxR", value_parser = size, requires = "screen")]
    pub(crate) size: Option<ScreenSize>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Name of the pod, or a unique prefix of it; without NAME, the pod of the last run in this directory
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Copy the intact records into the new pod NEW; the damaged pod is not changed
    #[arg(long, value_name = "NEW")]
    pub(crate) salvage: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Name of the pod, or a unique prefix of it; without NAME, the pod of the last run in this directory
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Show only the changes after record SEQ (`yoi log NAME` shows the numbers)
    #[arg(long, value_name = "SEQ")]
    pub(crate) to: Option<u64>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Name of the pod, or a unique prefix of it; without NAME, the pod of the last run in this directory
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Undo only the changes after record SEQ (`yoi log NAME` shows the numbers)
    #[arg(long, value_name = "SEQ", value_parser = seq)]
    pub(crate) to: Option<u64>,
    /// Do not ask first. At a terminal, the command otherwise shows what it would undo and asks; elsewhere, it asks nothing,
    /// but needs NAME or this option
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Full names of pods
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(pods), required_unless_present_any = ["older_than", "failed", "all"])]
    pub(crate) names: Vec<String>,
    /// Remove the pods that have not been active for at least TIME, for example 12h or 30d
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true, conflicts_with = "names")]
    pub(crate) older_than: Option<Duration>,
    /// Remove the pods that `yoi ls` shows as failed; with --older-than, only those of them that have not been active for at
    /// least TIME
    #[arg(long, conflicts_with = "names")]
    pub(crate) failed: bool,
    /// Remove all pods that are not running
    #[arg(long, conflicts_with_all = ["names", "older_than", "failed"])]
    pub(crate) all: bool,
    /// Delete the pods instead of moving them to the trash
    #[arg(long)]
    pub(crate) purge: bool,
    /// Do not ask. With --older-than, --failed or --all, the command otherwise says how many pods it would remove, and asks; where
    /// there is no terminal, it removes nothing and exits with 2
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// The features of one start.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct AttachFlags {
    /// Enable the feature ID for this start, with settings as a JSON object (repeatable); a feature that a configuration file
    /// disables stays disabled
    #[arg(long, value_name = "ID[=JSON]", value_parser = host::attachment::written)]
    pub(crate) with: Vec<String>,
    /// Disable the feature ID for this start (repeatable): one that --profile, --agent or --with enabled, or one that only
    /// offers tools
    #[arg(long, value_name = "ID")]
    pub(crate) without: Vec<String>,
    /// Enable the features of [profiles.NAME.features] in the configuration
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
}

impl AttachFlags {
    /// What they say of a start.
    pub(crate) fn launch(&self) -> Launch {
        Launch {
            with: self.with.clone(),
            without: self.without.clone(),
            profile: self.profile.clone(),
            ..Launch::default()
        }
    }

    const fn is_empty(&self) -> bool {
        self.with.is_empty() && self.without.is_empty() && self.profile.is_none()
    }
}

#[derive(Debug, Args)]
pub(crate) struct FeaturesArgs {
    /// Show what the last start of the pod NAME installed; without NAME, show the plan for the next start. With --diff or
    /// --unused, NAME is by default the pod of the last run in this directory
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Show the plan for the next start, without installing anything (the default without NAME)
    #[arg(long)]
    pub(crate) plan: bool,
    /// Show what changed between start N and start M of the pod; without M, between start N and the last start. The first
    /// start has the number 1
    #[arg(long, value_name = "N[..M]", conflicts_with = "plan")]
    pub(crate) diff: Option<Span>,
    /// Show the rules that apply to calls to TOOL and where each rule is written, or show when TASK runs. TASK is a
    /// background task: code of a feature; yoi runs this code without a call from the model
    #[arg(long, value_name = "TOOL|TASK", conflicts_with_all = ["plan", "diff"])]
    pub(crate) explain: Option<String>,
    /// Show the permissions that the features of the pod NAME got at its last start and have not used since
    #[arg(long, conflicts_with_all = ["plan", "diff", "explain"])]
    pub(crate) unused: bool,
    #[command(flatten)]
    pub(crate) plugins: PluginDirsArgs,
    #[command(flatten)]
    pub(crate) attached: AttachFlags,
    #[command(flatten)]
    pub(crate) agent: AgentFlags,
    /// Print the JSON Schema of the --json output
    #[arg(long, conflicts_with = "json")]
    pub(crate) schema: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl FeaturesArgs {
    /// Whether an option says what the next start attaches.
    pub(crate) const fn attaches(&self) -> bool {
        self.agent.agent.is_some() || !self.attached.is_empty()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeatureAction {
    /// Create a Rust crate for a new feature; it has one tool, one hook that can refuse calls, saved state and a test, and compiles as it is
    New(FeatureNewArgs),
    #[command(about = HELP_BELOW)]
    Help(HelpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FeatureNewArgs {
    /// Name of the feature, its crate and its directory: words of a-z and 0-9 that start with a letter, joined by -; at
    /// most 64 characters
    pub(crate) name: String,
    /// Create the crate's directory in DIR instead of the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Build against the clone of yoi in DIR instead of the clone that contains the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) yoi: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FormatAction {
    /// Count, by tool, the tokens of a pod's results as they are stored and as the model got them
    Stats(FormatStatsArgs),
    #[command(about = HELP_BELOW)]
    Help(HelpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FormatStatsArgs {
    /// Name of the pod, or a unique prefix of it; without NAME, the pod of the last run in this directory
    #[arg(add = ArgValueCandidates::new(pods))]
    pub(crate) name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// Grant these pending entries; each is named by its number in the list, its key, or at least the first 8 digits of
    /// its digest, which the list shows. With neither ENTRY nor --all, the command lists the pending entries
    #[arg(value_name = "ENTRY", conflicts_with = "all")]
    pub(crate) entries: Vec<String>,
    /// Grant all pending entries
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) plugins: PluginDirsArgs,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Revoke these granted entries; each is named by its number in the list, its key, or at least the first 8 digits of
    /// its digest, which the list shows. With neither ENTRY nor --all, the command lists the granted entries
    #[arg(value_name = "ENTRY", conflicts_with = "all")]
    pub(crate) entries: Vec<String>,
    /// Revoke all granted entries
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that will read the script
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory for the pages; it is created if it does not exist
    pub(crate) dir: PathBuf,
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
    /// List the configuration files that yoi reads
    Path,
    /// Read every configuration file and report errors
    Check,
    /// Create a commented configuration file
    Init,
    /// Print the JSON Schema of a configuration file
    Schema,
    #[command(about = HELP_BELOW)]
    Help(HelpArgs),
}
