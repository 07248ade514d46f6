//! `yoi schedule`: the prompts of a pod that come at set times. A live pod lists, sets and cancels them through the tools of its
//! feature; those of a stopped pod are read from its journal.

use crate::cli::{ScheduleAction, ScheduleAddArgs, ScheduleArgs, ScheduleTime};
use crate::commands::input;
use crate::commands::live::{live, reach};
use crate::show::escape::line;
use crate::show::out;
use crate::socket::{LiveClient, block_on};
use builtins::schedule::{ID, PROMPTS, Prompts, recorded_lines};
use client::cmd_id::cmd_id;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::session_location::now;
use host::pods::{Pods, read_failure};
use pod::session::summary::Summary;
use protocol::method::{CallTool, GetFeatures, ToolAnswer};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use session_store::{ReadError, Reader};
use tui::count;

const COMMAND: &str = "yoi schedule";

/// Characters of a line of the list.
const SHOWN: usize = 400;

pub(crate) fn run(args: &ScheduleArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let (tool, arguments) = match &args.action {
        None | Some(ScheduleAction::List) => return list(&pods, &name),
        Some(ScheduleAction::Add(new)) => ("ScheduleCreate", creation(new, env)?),
        Some(ScheduleAction::Cancel { id }) => ("ScheduleCancel", json!({ "id": id })),
    };
    block_on(async {
        let mut pod = live(&pods, &name, COMMAND).await?;
        let ToolAnswer { summary, .. } =
            call(&mut pod, &name, tool, arguments, Some(cmd_id())).await?;
        out::line(&format!("prompt {}", line(&summary, SHOWN)));
        Ok(Exit::Done)
    })?
}

fn creation(new: &ScheduleAddArgs, env: &Env) -> Result<Value, Failure> {
    let ScheduleAddArgs {
        text,
        time: ScheduleTime { at, after, cron },
        time_zone,
    } = new;
    let mut arguments = Map::from_iter([("text".to_owned(), input::given(text, env)?.into())]);
    let mut add = |key: &str, value: Option<Value>| {
        arguments.extend(value.map(|value| (key.to_owned(), value)))
    };
    add("at", at.clone().map(Value::from));
    // A prompt does not come earlier than was asked for.
    let seconds = after.map(|after| after.as_millis().div_ceil(1000));
    let is_minutes = seconds.is_some_and(|seconds| seconds.is_multiple_of(60));
    add(
        "in_minutes",
        seconds
            .filter(|_| is_minutes)
            .map(|seconds| json!(seconds / 60)),
    );
    add(
        "in_seconds",
        seconds
            .filter(|_| !is_minutes)
            .map(|seconds| json!(seconds)),
    );
    add("cron", cron.clone().map(Value::from));
    add("time_zone", time_zone.clone().map(Value::from));
    Ok(arguments.into())
}

async fn call(
    pod: &mut LiveClient,
    name: &str,
    tool: &str,
    arguments: Value,
    cmd_id: Option<String>,
) -> Result<ToolAnswer, Failure> {
    let report = pod.ask(&GetFeatures {}).await?.report;
    let part = |feature: &Value, key: &str| {
        feature
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let all = report.get("features").and_then(Value::as_array);
    let is_installed = |feature: &Value| {
        part(feature, "feature_id") == ID.to_string()
            && ["installed", "degraded"].contains(&&*part(feature, "outcome"))
    };
    if !all.is_some_and(|all| all.iter().any(is_installed)) {
        let text = format!("{name} has no schedule: {ID} is not installed in it");
        let help = format!(
            "set `enabled = true` below `[features.\"{ID}\"]` in the configuration, then `yoi stop {name}` and \
             `yoi start {name}`"
        );
        return Err(Failure::new(Exit::Config, text).help(help));
    }
    let arguments = if let Value::Object(arguments) = arguments {
        arguments
    } else {
        Map::new()
    };
    pod.ask(&CallTool {
        tool: tool.to_owned(),
        arguments,
        cmd_id,
    })
    .await
}

fn list(pods: &Pods, name: &str) -> Result<Exit, Failure> {
    let told = block_on(async {
        match reach(pods, name, COMMAND).await? {
            Some(mut pod) => call(&mut pod, name, "ScheduleList", json!({}), None)
                .await
                .map(Some),
            None => Ok(None),
        }
    })??;
    let (summary, lines) = match told {
        Some(ToolAnswer { summary, content }) => {
            (summary, content.lines().map(str::to_owned).collect())
        }
        None => {
            let lines = recorded_lines(&recorded(pods, name)?, now() / 1000);
            (
                format!(
                    "{}; {name} is not running",
                    count(lines.len() as u64, "prompt")
                ),
                lines,
            )
        }
    };
    out::line(&line(&summary, SHOWN));
    lines
        .iter()
        .for_each(|prompt| out::line(&format!("  {}", line(prompt, SHOWN))));
    Ok(Exit::Done)
}

/// The prompts in the journal of a pod.
fn recorded(pods: &Pods, name: &str) -> Result<Prompts, Failure> {
    let reader = match Reader::open(&pods.dir(name)) {
        // Nothing was recorded yet.
        Err(ReadError::NoSuch(_)) => return Ok(Prompts::default()),
        reader => reader.map_err(|e| read_failure(name, &e))?,
    };
    let unread = |e: &dyn std::fmt::Display| Failure::new(Exit::Data, format!("{name}: {e}"));
    let state = Summary::read(&reader, || {}).map_err(|e| unread(&e))?.state;
    let known = state
        .features
        .get(&(ID.to_string(), PROMPTS.name().to_owned()));
    known.map_or_else(
        || Ok(Prompts::default()),
        |known| Prompts::deserialize(known.value.as_ref()).map_err(|e| unread(&e)),
    )
}
