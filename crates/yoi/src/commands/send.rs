//! `yoi send`: an input for a live pod, durable when the command prints its number.

use crate::cli::SendArgs;
use crate::commands::ending::{self, EndedIn, FinishedRun};
use crate::commands::input;
use crate::commands::live::{kept, live_as, waits};
use crate::commands::output_schema::AnswerForm;
use crate::commands::person::only_a_person;
use crate::compose::model::OFFLINE;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::hosting::messages::Messages;
use crate::look::Look;
use crate::pods::Pods;
use crate::show::out;
use crate::show::progress::OutputStyle;
use crate::socket::block_on;
use client::cmd_id::cmd_id;
use protocol::method::{Role, SendInput};
use protocol::status::DeliveryMode;
use std::time::Instant;

const COMMAND: &str = "yoi send";

pub(crate) fn run(args: &SendArgs, env: &Env) -> Result<Exit, Failure> {
    let began = Instant::now();
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    if args.deny_parked {
        only_a_person("deny calls that wait for approval")?;
    }
    let text = input::given(&args.text, env)?;
    block_on(async {
        let (mode, role) = match (args.deny_parked, args.steer) {
            _ if args.run => (DeliveryMode::Run, Role::Driver),
            (true, _) => (DeliveryMode::DenyParked, Role::Approver),
            (false, true) => (DeliveryMode::Steer, Role::Driver),
            (false, false) => (DeliveryMode::Queue, Role::Driver),
        };
        let mut pod = live_as(&pods, &name, COMMAND, role).await?;
        let cmd_id = args.key.clone().unwrap_or_else(cmd_id);
        let input = pod.send(SendInput { text, mode, cmd_id, ..SendInput::default() }).await?;
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
        let style =
            OutputStyle { json, terminal, quiet: true, stream: false, colour, cells: None, answer: Look::of_stdout() };
        Ok(ending::report(&ended, EndedIn::live(&name, is_planner), style, began.elapsed()))
    })?
}
