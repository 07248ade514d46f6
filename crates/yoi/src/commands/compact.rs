//! `yoi compact`: the next request of a live pod shows as little as the rules allow.

use crate::cli::CompactArgs;
use crate::commands::live::live;
use crate::show::out;
use crate::socket::block_on;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use protocol::method::Compact;
use protocol::status::{State, Status};

pub(crate) fn run(args: &CompactArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    block_on(async {
        let mut pod = live(&pods, &name, "yoi compact").await?;
        let before = pod.status().await?;
        let told = pod
            .tell(|cmd_id| Compact {
                drop_turns: args.drop_turns,
                cmd_id,
            })
            .await?;
        let unchanged = told.unchanged.map(|why| nothing_changed(&name, &why));
        out::line(&unchanged.unwrap_or_else(|| done(&name, &before, args.drop_turns)));
        Ok(Exit::Done)
    })?
}

/// Why a command changed nothing.
pub(super) fn nothing_changed(name: &str, why: &str) -> String {
    format!("{name}: {why}; nothing changed")
}

/// What the wish does, given the state before.
pub(super) fn done(name: &str, before: &Status, drop_turns: bool) -> String {
    let what = if drop_turns {
        "old steps and the oldest turns leave"
    } else {
        "old steps leave"
    };
    let when = match before.state {
        State::Working | State::Waiting => "the next request of the running turn",
        State::Idle | State::Held | State::Stopping | State::Unknown => "the next request",
    };
    format!("{name}: {what} {when}; `yoi log {name}` shows what left, and keeps it")
}
