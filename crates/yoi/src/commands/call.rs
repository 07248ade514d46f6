//! `yoi call`: one call of a tool of a live pod, in a turn that asks no model.

use crate::cli::CallArgs;
use crate::commands::input;
use crate::commands::live::live_as;
use crate::commands::send::{EndForm, wait_for};
use crate::socket::block_on;
use client::cmd_id::cmd_id;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use protocol::method::{Role, SendCall};
use std::time::Instant;

const COMMAND: &str = "yoi call";

pub(crate) fn run(args: &CallArgs, env: &Env) -> Result<Exit, Failure> {
    let began = Instant::now();
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let text = input::given(&args.arguments, env)?;
    let arguments = serde_json::from_str(&text).map_err(|why| {
        let text = format!("the arguments are no JSON object: {why}");
        Failure::new(Exit::Usage, text).help("write them as in '{\"path\":\"README.md\"}'")
    })?;
    block_on(async {
        let mut pod = live_as(&pods, &name, COMMAND, Role::Driver).await?;
        let call = SendCall {
            tool: args.tool.clone(),
            arguments,
            cmd_id: args.key.clone().unwrap_or_else(cmd_id),
        };
        let input = pod.ask(&call).await?.input;
        let shown = EndForm {
            json: args.json,
            is_planner: false,
            began,
        };
        wait_for(&mut pod, &name, input, &shown, env).await
    })?
}
