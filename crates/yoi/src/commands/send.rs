//! `yoi send`: an input for a live pod, durable when the command prints its number.

use crate::cli::SendArgs;
use crate::commands::ending::{self, EndedIn, FinishedRun};
use crate::commands::input;
use crate::commands::live::{kept, live, waits};
use crate::commands::output_schema::AnswerForm;
use crate::compose::model::OFFLINE;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::hosting::messages::Messages;
use crate::pods::Pods;
use crate::show::out;
use crate::show::progress::OutputStyle;
use crate::socket::{LiveClient, block_on};
use client::cmd_id::cmd_id;
use protocol::method::{AllowOrDeny, AllowScope, Approve, GetApprovals, SendInput};
use protocol::status::DeliveryMode;
use std::time::Instant;

const COMMAND: &str = "yoi send";

pub(crate) fn run(args: &SendArgs, env: &Env) -> Result<Exit, Failure> {
    let began = Instant::now();
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let text = input::given(&args.text, env)?;
    block_on(async {
        let mut pod = live(&pods, &name, COMMAND).await?;
        let mode = if args.steer || args.deny_parked { DeliveryMode::Steer } else { DeliveryMode::Queue };
        let cmd_id = args.key.clone().unwrap_or_else(cmd_id);
        let input = pod.send(SendInput { text, mode, cmd_id, ..SendInput::default() }).await?;
        if args.deny_parked {
            let denied = deny_all(&mut pod).await;
            denied.map_err(|failure| {
                failure.help(format!("input {input} is accepted; `yoi status {name}` shows what waits"))
            })?;
        }
        let status = pod.status().await.ok();
        let is_planner = status.as_ref().is_some_and(|status| status.model == OFFLINE);
        let waiting = status.and_then(|status| waits(&status, &name));
        waiting.iter().for_each(|line| Messages { quiet: false }.warn(line));
        if !args.wait {
            match args.json {
                true => out::json(&serde_json::json!({ "pod": name, "input": input })),
                false => out::line(&input.to_string()),
            }
            return Ok(Exit::Done);
        }
        let wait = pod.begin_wait(input)?;
        let end = pod.end(&wait, input).await.map_err(|failure| kept(failure, &name, input))?.end;
        let ended = FinishedRun { end, streamed: false, output: AnswerForm::Free, ending: None, late: None };
        let (json, terminal, colour) = (args.json, env.stdout_terminal, env.colour());
        let style = OutputStyle { json, terminal, quiet: true, stream: false, colour };
        Ok(ending::report(&ended, EndedIn::live(&name, is_planner), style, began.elapsed()))
    })?
}

/// Denies every call that waits for a person: the input that was accepted comes with the next request.
async fn deny_all(pod: &mut LiveClient) -> Result<(), Failure> {
    for open in pod.ask(&GetApprovals {}).await?.approvals {
        let words = Some("another input came instead".to_owned());
        let (decision, scope) = (AllowOrDeny::Deny, AllowScope::Once);
        let (id, arguments_digest) = (open.approval, open.arguments_digest);
        let recorded = pod.ask(&Approve { id, decision, scope, arguments_digest, words, cmd_id: cmd_id() }).await?;
        if recorded.decision == "allow" {
            Messages { quiet: false }.warn(&format!("another client allowed the call of approval {id}; it runs"));
        }
    }
    Ok(())
}
