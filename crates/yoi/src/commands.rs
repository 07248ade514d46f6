//! The commands, a file each: they read, decide and print. Formats, policy and the turn live below them.

mod acp;
mod agents;
mod approve;
mod attach;
mod attached_files;
mod bare;
mod call;
mod changes;
pub(crate) mod completions;
mod config;
mod context;
mod context_lines;
mod control;
mod doctor;
mod ending;
mod feature_new;
mod features;
mod format_stats;
mod grant;
mod grant_plugin;
pub(crate) mod host;
mod host_process;
mod input;
mod left_running;
mod live;
mod log;
mod ls;
mod man;
mod mcp;
mod mcp_import;
mod mcp_serve;
mod models;
mod new_rules;
mod notify;
mod output_schema;
mod person;
mod pin;
mod plugin;
mod plugin_add;
mod plugin_settings;
mod plugin_test;
mod pod_names;
mod ps;
mod rm;
mod run;
mod run_client;
mod run_person;
mod schedule;
mod send;
mod signals;
mod start;
mod status;
mod undo;
mod verify;

use crate::cli::{
    Cli, Command, ContextAction, FeatureAction, FormatAction, McpAction, PluginAction,
};
use ::host::env::Env;
use ::host::exit::{Exit, Failure};
use ::host::points::Points;

pub(crate) fn dispatch(cli: Cli, env: &Env, points: &Points) -> Result<Exit, Failure> {
    let Some(command) = cli.command else {
        return bare::run(cli.directory.is_some(), env, points);
    };
    match command {
        Command::Run(args) => run::run(&args, env, points),
        Command::Start(args) => start::run(&args, cli.directory.is_some(), env, points),
        Command::Send(args) => send::run(&args, env),
        Command::Call(args) => call::run(&args, env),
        Command::Attach(args) => attach::run(&args, env),
        Command::Acp(args) => acp::run(&args, env),
        Command::Notify(args) => notify::run(&args, env),
        Command::Schedule(args) => schedule::run(&args, env),
        Command::Status(args) => status::run(&args, env),
        Command::Stop(args) => control::stop(&args, env),
        Command::Pause(args) => control::pause(&args, env),
        Command::Resume(args) => control::resume(&args, env),
        Command::Cancel(args) => control::cancel(&args, env),
        Command::Compact(args) => control::compact(&args, env),
        Command::Pin(args) => pin::run(&args, env),
        Command::Approve(args) => approve::run(&args, env),
        Command::Ps(args) => ps::run(&args, env),
        Command::Ls(args) => ls::run(&args, env),
        Command::Log(args) => log::run(&args, env),
        Command::Verify(args) => verify::run(&args, env),
        Command::Format(FormatAction::Stats(args)) => format_stats::run(&args, env),
        Command::Diff(args) => changes::diff(&args, env),
        Command::Undo(args) => undo::run(&args, env, points),
        Command::Rm(args) => rm::run(&args, env, points),
        Command::Features(args) => features::run(&args, env),
        Command::Feature(FeatureAction::New(args)) => feature_new::run(&args, env),
        // Answered before the environment is read.
        Command::Help(_)
        | Command::Feature(FeatureAction::Help(_))
        | Command::Format(FormatAction::Help(_))
        | Command::Plugin(PluginAction::Help(_))
        | Command::Context(ContextAction::Help(_))
        | Command::Mcp(McpAction::Help(_)) => Ok(Exit::Done),
        Command::Mcp(McpAction::Serve(args)) => mcp_serve::run(&args, env),
        Command::Mcp(action) => mcp::run(&action, env),
        Command::Plugin(action) => plugin::run(&action, env),
        Command::Context(action) => context::run(&action, env),
        Command::Doctor(args) => doctor::run(&args, env),
        Command::Config(args) => config::run(&args, env),
        Command::Grant(args) => grant::grant(&args, env),
        Command::Revoke(args) => grant::revoke(&args, env),
        Command::Models(args) => models::run(&args, env),
        Command::Agents(args) => agents::run(&args, env),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args, env),
    }
}
