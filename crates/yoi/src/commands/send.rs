//! `yoi send`: an input for a live pod, durable when the command prints its number.

use crate::cli::SendArgs;
use crate::commands::attached_files;
use crate::commands::ending::{self, EndedIn, FinishedRun};
use crate::commands::input;
use crate::commands::live::{kept, live_as, waits};
use crate::commands::output_schema::AnswerForm;
use crate::commands::person::only_a_person;
use crate::look::Look;
use crate::report::messages;
use crate::show::out;
use crate::show::progress::OutputStyle;
use crate::socket::{Ended, LiveClient, block_on};
use client::cmd_id::cmd_id;
use host::compose::model::OFFLINE;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use llm_worker::{Outcome, ResultStatus, ToolOutcome};
use pod::record::ToolFinished;
use protocol::method::{Role, SendInput};
use protocol::status::DeliveryMode;
use serde_json::json;
use std::time::Instant;
use tui::for_people;

const COMMAND: &str = "yoi send";

pub(crate) fn run(args: &SendArgs, env: &Env) -> Result<Exit, Failure> {
    let began = Instant::now();
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    if args.deny_parked {
        only_a_person("deny calls that wait for approval")?;
    }
    let text = input::given(&args.text, env)?;
    let typed = args.text.to_str().filter(|_| !args.run);
    let files = attached_files::load(&args.attach, typed, env)?;
    block_on(async {
        let (mode, role) = match (args.deny_parked, args.steer) {
            _ if args.run => (DeliveryMode::Run, Role::Driver),
            (true, _) => (DeliveryMode::DenyParked, Role::Approver),
            (false, true) => (DeliveryMode::Steer, Role::Driver),
            (false, false) => (DeliveryMode::Queue, Role::Driver),
        };
        let mut pod = live_as(&pods, &name, COMMAND, role).await?;
        if !args.run {
            input::check_live_command(Some(&args.text), &mut pod).await?;
        }
        let cmd_id = args.key.clone().unwrap_or_else(cmd_id);
        let files = pod.send_files(&files).await?;
        let input = pod
            .send(SendInput {
                files,
                expand: input::is_command(Some(&args.text)),
                text,
                mode,
                cmd_id,
                ..SendInput::default()
            })
            .await?;
        let status = pod.status().await.ok();
        let is_planner = status
            .as_ref()
            .is_some_and(|status| status.model == OFFLINE);
        let waiting = status.and_then(|status| waits(&status, &name));
        waiting.iter().for_each(|line| messages(false).warn(line));
        if !args.wait {
            match args.json {
                true => out::json(&json!({ "pod": name, "input": input })),
                false => out::line(&input.to_string()),
            }
            return Ok(Exit::Done);
        }
        let shown = EndForm {
            json: args.json,
            is_planner,
            began,
        };
        wait_for(&mut pod, &name, input, &shown, env).await
    })?
}

/// How the end of an input's turn is shown.
pub(super) struct EndForm {
    pub(super) json: bool,
    pub(super) is_planner: bool,
    pub(super) began: Instant,
}

/// Waits for the end of an input's turn, and prints the answer; of a command or a call its result.
pub(super) async fn wait_for(
    pod: &mut LiveClient,
    name: &str,
    input: u64,
    shown: &EndForm,
    env: &Env,
) -> Result<Exit, Failure> {
    let &EndForm {
        json,
        is_planner,
        began,
    } = shown;
    let wait = pod.begin_wait(input)?;
    let Ended { end, .. } = pod
        .end(&wait, input)
        .await
        .map_err(|failure| kept(failure, name, input))?;
    if end.outcome == Outcome::Done
        && let Some(result) = &end.result
    {
        return told(name, input, result, json);
    }
    let ended = FinishedRun {
        end,
        streamed: false,
        output: AnswerForm::Free,
        ending: None,
        late: None,
    };
    let style = OutputStyle {
        json,
        terminal: env.stdout_terminal,
        quiet: true,
        stream: false,
        colour: env.colour(),
        cells: None,
        answer: Look::of_stdout(),
    };
    Ok(ending::report(
        &ended,
        EndedIn::live(name, is_planner),
        style,
        began.elapsed(),
    ))
}

/// Prints what a command printed, or what a call gave. One that failed is not done.
fn told(name: &str, input: u64, result: &ToolFinished, json: bool) -> Result<Exit, Failure> {
    let ToolOutcome {
        status,
        summary,
        content,
        ..
    } = &result.outcome;
    let is_ok = *status == ResultStatus::Ok;
    if json {
        let status = status.word();
        let mut document = json!({ "pod": name, "input": input, "status": status, "summary": summary, "output": content });
        if let (Some(data), Some(fields)) = (&result.data, document.as_object_mut()) {
            let value = data.value.clone().unwrap_or_else(|| json!(data.output));
            fields.insert("data".to_owned(), value);
        }
        out::json(&document);
    } else if !content.is_empty() {
        out::lines(for_people(content).trim_end());
    } else if is_ok && result.command.is_none() {
        out::line(&for_people(summary));
    }
    if is_ok {
        Ok(Exit::Done)
    } else {
        Err(Failure::new(Exit::Failed, summary.clone()))
    }
}
