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
use llm_worker::Outcome;
use protocol::MAX_PAGE;
use protocol::method::{Page, Role, SendInput};
use protocol::record::{RecordBody, ToolOutcome};
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
        let wait = pod.begin_wait(input)?;
        let Ended { end, folded } = pod
            .end(&wait, input)
            .await
            .map_err(|failure| kept(failure, &name, input))?;
        if args.run && end.outcome == Outcome::Done {
            let result = result_of(&mut pod, input, folded).await?;
            return told(&name, input, result, args.json);
        }
        let ended = FinishedRun {
            end,
            streamed: false,
            output: AnswerForm::Free,
            ending: None,
            late: None,
        };
        let json = args.json;
        let terminal = env.stdout_terminal;
        let colour = env.colour();
        let style = OutputStyle {
            json,
            terminal,
            quiet: true,
            stream: false,
            colour,
            cells: None,
            answer: Look::of_stdout(),
        };
        Ok(ending::report(
            &ended,
            EndedIn::live(&name, is_planner),
            style,
            began.elapsed(),
        ))
    })?
}

/// The result of a person's command, whose turn took this input. None if it is not among the newest records.
async fn result_of(
    pod: &mut LiveClient,
    input: u64,
    folded: u64,
) -> Result<Option<ToolOutcome>, Failure> {
    let page = pod
        .ask(&Page {
            before: folded.saturating_add(1),
            limit: MAX_PAGE,
        })
        .await?;
    let records = page
        .records
        .iter()
        .filter_map(|line| line.read().ok())
        .map(|view| view.body);
    let turn = records.skip_while(
        |body| !matches!(body, RecordBody::InputConsumed(taken) if taken.input == input),
    );
    let result = |body| {
        if let RecordBody::ToolFinished(finished) = body {
            Some(finished.outcome)
        } else {
            None
        }
    };
    Ok(turn.filter_map(result).next())
}

/// Prints what a command printed. A command that failed is not done.
fn told(name: &str, input: u64, result: Option<ToolOutcome>, json: bool) -> Result<Exit, Failure> {
    let Some(ToolOutcome {
        status,
        summary,
        content,
        ..
    }) = result
    else {
        let why = format!("the result of input {input} is not among the newest records");
        return Err(Failure::new(Exit::Failed, why).help(format!("`yoi log {name}` shows it")));
    };
    let content = content.unwrap_or_default();
    if json {
        out::json(
            &json!({ "pod": name, "input": input, "status": status, "summary": summary, "output": content }),
        );
    } else if !content.is_empty() {
        out::lines(for_people(&content).trim_end());
    }
    if status == "ok" {
        Ok(Exit::Done)
    } else {
        Err(Failure::new(Exit::Failed, summary))
    }
}
