//! `yoi completions`: the script by which a shell asks `yoi` itself how a line may go on, and the answers.
//!
//! The shell asks at each press of Tab, so pods and models are those of that moment. Nothing is connected or written.

use crate::cli::{Cli, CompletionsArgs, Global, Shell};
use crate::commands::out;
use crate::compose::model::OFFLINE;
use crate::config::Config;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::Pods;
use clap::{CommandFactory, ValueEnum};
use clap_complete::CompletionCandidate;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Zsh};
use provider::catalog;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::ExitCode;

/// Names the shell that asks.
const ASKS: &str = "YOI_COMPLETE";

/// What is completed, and what is asked: `yoi`, wherever it is on the path.
const NAME: &str = "yoi";

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    let written = completer(args.shell).write_registration(ASKS, NAME, NAME, NAME, &mut script);
    written.map_err(|e| Failure::new(Exit::Internal, format!("the script cannot be made: {e}")))?;
    out::raw(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}

/// Answers a shell that asks, with the words of its line behind `--`; nothing if none does.
pub(crate) fn answered(args: &[OsString]) -> Option<ExitCode> {
    let shell = Shell::from_str(std::env::var_os(ASKS)?.to_str()?, true).ok()?;
    let words = args.iter().skip_while(|arg| *arg != "--").skip(1).cloned().collect();
    let (mut answer, cwd) = (Vec::new(), std::env::current_dir().ok());
    let written = completer(shell).write_complete(&mut Cli::command(), words, cwd.as_deref(), &mut answer);
    if written.is_err() {
        return Some(Exit::Internal.code());
    }
    out::raw(&String::from_utf8_lossy(&answer));
    Some(Exit::Done.code())
}

/// Every pod.
pub(crate) fn pods() -> Vec<CompletionCandidate> {
    let pods = env().and_then(|env| Pods::of(&env).ok());
    pods.and_then(|pods| pods.names().ok()).unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

/// Models that are named here: the embedded one, those of the configuration, and what vendors are asked for by default.
pub(crate) fn models() -> Vec<CompletionCandidate> {
    let mut names: BTreeSet<String> = [OFFLINE.to_owned()].into();
    names.extend(catalog::PROVIDERS.iter().filter_map(|p| Some(format!("{}/{}", p.name, p.default_model?))));
    // A configuration that does not read is told by the command itself.
    if let Some(config) = env().and_then(|env| Config::load(&env).ok()) {
        names.extend(config.model.map(|model| model.value));
        names.extend(config.models.into_keys());
    }
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn env() -> Option<Env> {
    Env::of_process(&Global { directory: None }).ok()
}

fn completer(shell: Shell) -> &'static dyn EnvCompleter {
    match shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::Zsh => &Zsh,
    }
}
