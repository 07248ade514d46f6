//! `yoi completions`: the script by which a shell asks `yoi` itself how a line may go on, and the answers.

use crate::cli::{Cli, CompletionsArgs, Shell};
use crate::show::out;
use clap::{CommandFactory, ValueEnum};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Zsh};
use host::exit::{Exit, Failure};
use std::ffi::OsString;
use std::process::ExitCode;

/// Names the shell that asks.
const ASKS: &str = "YOI_COMPLETE";

/// What is completed, and what is asked: `yoi`, wherever it is on the path.
const NAME: &str = "yoi";

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
    let words = args
        .iter()
        .skip_while(|arg| *arg != "--")
        .skip(1)
        .cloned()
        .collect();
    let mut answer = Vec::new();
    let cwd = std::env::current_dir().ok();
    let written =
        completer(shell).write_complete(&mut Cli::command(), words, cwd.as_deref(), &mut answer);
    if written.is_err() {
        return Some(Exit::Internal.code());
    }
    out::raw(&String::from_utf8_lossy(&answer));
    Some(Exit::Done.code())
}

fn completer(shell: Shell) -> &'static dyn EnvCompleter {
    match shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::Zsh => &Zsh,
    }
}
