//! The body of a binary, [`Program`]: command line, environment, configuration, and the composition root.
//!
//! This crate alone holds ambient authority: it opens directories, reads the environment and starts the runtime,
//! and hands handles down. It knows no turn order, no record format and no vendor's bytes; those live below.

mod candidates;
mod cli;
mod commands;
mod look;
mod past_turn;
mod program;
mod remedy;
mod report;
mod scripts;
mod show;
mod socket;
mod terminal;
mod usage;

pub use host::exit::Exit;
#[cfg(feature = "fuzzing")]
pub use host::fuzzing;
pub use host::points::Points;
pub use program::Program;

use crate::report::Report;
use clap::CommandFactory;
use host::added::AddedFeatures;
use host::env::Env;
use std::ffi::OsString;
use std::process::ExitCode;

fn command_line(
    args: Vec<OsString>,
    added: AddedFeatures,
    runtimes: &[program::Runtime],
    points: &Points,
) -> ExitCode {
    // Before there is a thread.
    if args
        .get(1)
        .is_some_and(|word| word == host::compose::HELPER)
    {
        let served = authority::serve_helper(&ambient::claim());
        return if served.is_ok() {
            ExitCode::SUCCESS
        } else {
            Exit::Unavailable.code()
        };
    }
    let words = args.get(1..).unwrap_or_default();
    let answered = runtimes.iter().find_map(|runtime| runtime.answered(words));
    if let Some(code) = answered.or_else(|| commands::completions::answered(&args)) {
        return code;
    }
    if args.get(1).is_some_and(|word| word == cli::HOST) {
        return ended(commands::host::run(added, points));
    }
    let cli = match cli::Cli::parsed(&args, &added) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error, &args, cli::Cli::command()),
    };
    if let Some(args) = cli.help_wanted() {
        return match cli::Cli::parsed(&args, &added) {
            Err(help) => usage::report(&help, &args, cli::Cli::command()),
            Ok(_) => Exit::Usage.code(),
        };
    }
    let env = match Env::of_process(cli.directory.as_deref(), added, remedy::WORDS) {
        Ok(env) => env,
        Err(failure) => return failure.report(),
    };
    ended(commands::dispatch(cli, &env, points))
}

fn ended(result: Result<Exit, host::exit::Failure>) -> ExitCode {
    match result {
        Ok(exit) => match show::out::refused() {
            Some(failure) if exit == Exit::Done => failure.report(),
            Some(_) | None => exit.code(),
        },
        Err(failure) => failure.report(),
    }
}
