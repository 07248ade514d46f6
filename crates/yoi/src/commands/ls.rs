//! `yoi ls`: what pods there are and how they stand.

use crate::cli::LsArgs;
use crate::commands::left_running::{HELP, LeftRunning};
use crate::commands::live::{approval_line, model_wait};
use crate::compose::model::context_window;
use crate::config::Config;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::hosting::session_location::now;
use crate::pods::Pods;
use crate::show::escape::line;
use crate::show::out;
use crate::socket::{WAITING, block_on, state_text, state_word, statuses};
use llm_worker::Cost;
use pod::session::restore::duration;
use pod::session::summary::Summary;
use protocol::status::{ApprovalStatus, ModelRetry};
use session_store::{ReadError, Reader, Session};
use std::cmp::Reverse;
use std::fs;
use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How many unnamed runs are listed without `--all`.
const RUNS: usize = 10;

/// How much of a model's name is shown, in characters.
const MODEL: usize = 40;

/// How much of the reason of a hold is shown, in characters.
const WHY: usize = 60;

/// How long all live pods together may take to answer: a hung one is listed with what its files tell.
const ASKED: Duration = Duration::from_millis(300);

/// How long it takes before it says why.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
struct PodRow {
    name: String,
    state: &'static str,
    model: String,
    turns: u64,
    tokens: u64,
    cost: Option<Cost>,
    /// Microseconds since 1970 of the newest record.
    last: u64,
    problem: Option<String>,
    /// A process has it. Its own state is more than its files tell.
    live: bool,
    held: Option<String>,
    approvals: Vec<ApprovalStatus>,
    model_wait: Option<ModelRetry>,
    left: Option<LeftRunning>,
    /// The used part of the model's context window, in percent.
    context_percent: Option<u64>,
}

/// Lists pods, newest first. A pod that does not read is a row that says so.
pub(crate) fn run(args: &LsArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let mut names: Vec<(SystemTime, String)> =
        pods.names()?.into_iter().map(|name| (touched(&pods, &name), name)).collect();
    names.sort_by_key(|(when, name)| (Reverse(*when), name.clone()));
    let mut runs = 0;
    names.retain(|(_, name)| {
        runs += usize::from(name.starts_with("run-"));
        args.all || !name.starts_with("run-") || runs <= RUNS
    });
    let mut left = LeftRunning::find(env);
    let (began, mut said) = (Instant::now(), false);
    let mut patience = || {
        if !said && began.elapsed() > PATIENCE {
            said = true;
            let why =
                "reading whole journals: pods without a checkpoint take longer; their next run writes a checkpoint
";
            drop(io::stderr().write_all(why.as_bytes()));
        }
    };
    // A broken configuration hides no pod.
    let config = Config::load(env).ok();
    let mut rows: Vec<PodRow> =
        names.iter().map(|(_, name)| row(&pods, name, config.as_ref(), &mut patience)).collect();
    ask_live(&pods, &mut rows)?;
    for row in rows.iter_mut().filter(|row| row.state == "crashed") {
        row.left = left.iter().position(|left| left.is_of(&pods, &row.name)).map(|at| left.swap_remove(at));
    }
    if args.json {
        out::json(&rows.iter().map(json).collect());
    } else if rows.is_empty() {
        out::line("no pods yet; create one with yoi run \"what is in this directory?\"");
    } else {
        print(&rows);
    }
    if !args.json {
        let of_rows = rows.iter().any(|row| row.left.is_some()).then(|| "help: ".to_owned() + HELP);
        let others =
            left.iter().map(|left| format!("{}, left by a killed run that is not listed; {HELP}", left.text()));
        others.chain(of_rows).for_each(|line| out::line(&line));
    }
    Ok(Exit::Done)
}

/// When a pod's log last grew; a pod without one is oldest.
pub(crate) fn touched(pods: &Pods, name: &str) -> SystemTime {
    fs::metadata(pods.dir(name).join("HEAD")).and_then(|meta| meta.modified()).unwrap_or(UNIX_EPOCH)
}

/// Asks every live pod for its state. One that does not answer in time has the state of its files.
fn ask_live(pods: &Pods, rows: &mut [PodRow]) -> Result<(), Failure> {
    let live: Vec<_> = rows.iter().filter(|row| row.live).map(|row| (pods.dir(&row.name), row.name.clone())).collect();
    if live.is_empty() {
        return Ok(());
    }
    let mut found = block_on(statuses(live, "yoi ls", ASKED))?;
    for row in rows {
        let Some(status) = found.remove(&row.name) else { continue };
        row.state = state_text(status.state);
        row.held = status.held.map(|held| held.reason);
        row.approvals = status.approvals;
        row.model_wait = status.model_wait;
        row.context_percent = status.context.and_then(|context| context.percent);
    }
    Ok(())
}

fn row(pods: &Pods, name: &str, config: Option<&Config>, patience: &mut impl FnMut()) -> PodRow {
    let dir = pods.dir(name);
    let mut row = PodRow { name: name.to_owned(), state: "damaged", ..PodRow::default() };
    let folded = match Reader::open(&dir) {
        // Ended before anything was recorded: nothing is lost.
        Err(ReadError::NoSuch(_)) => Ok(Summary::default()),
        Err(error) => Err(error.to_string()),
        Ok(reader) => Summary::read(&reader, patience).map_err(|e| e.to_string()),
    };
    match folded {
        Ok(Summary { state, last_time }) => {
            let live = matches!(Session::owner(&dir), Ok(Some(_)));
            row.live = live;
            let window = |model: &str| config.and_then(|config| context_window(model, config));
            let window = state.surface.as_ref().and_then(|(surface, _)| window(&surface.model));
            row.context_percent = state.context(window).and_then(|context| context.percent());
            row.held = state.held.map(|hold| hold.reason);
            row.approvals = state.approvals.open.values().map(|open| pod::ipc::approval(open)).collect();
            row.state = match (live, state.turn_open || (!live && state.hosted)) {
                (false, _) if last_time == 0 => "empty",
                (true, _) if row.held.is_some() => "held",
                (true, _) if !row.approvals.is_empty() => WAITING,
                (true, true) => "working",
                (true, false) => "idle",
                (false, true) => "crashed",
                (false, false) => "stopped",
            };
            row.model = state.surface.map(|(surface, _)| surface.model).unwrap_or_default();
            row.turns = state.turns;
            row.cost = state.cost;
            row.tokens = state.usage.input.saturating_add(state.usage.output);
            row.last = last_time;
        }
        Err(problem) => row.problem = Some(problem),
    }
    row
}

/// What a pod waits for: the first question, and how many more there are.
fn asked(approvals: &[ApprovalStatus]) -> String {
    let first = approvals.first().map(|first| approval_line(first, WHY)).unwrap_or_default();
    match approvals.len().saturating_sub(1) {
        0 => first,
        more => format!("{first}, and {more} more"),
    }
}

fn json(row: &PodRow) -> serde_json::Value {
    serde_json::json!({
        "name": row.name, "state": state_word(row.state), "approvals": row.approvals, "model": row.model, "turns": row.turns, "tokens": row.tokens,
        "cost": row.cost.map(Cost::dollars), "context_percent": row.context_percent,
        "held": row.held, "model_wait": row.model_wait, "last_us": row.last, "problem": row.problem, "left_running": row.left.as_ref().map_or(&[][..], |left| &left.pids),
    })
}

fn print(rows: &[PodRow]) {
    let now = now();
    let widest = |of: fn(&PodRow) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
    let (width, models) = (widest(|row| &row.name).max(4), widest(|row| &row.model).clamp(5, MODEL + 1));
    let states = widest(|row| row.state).max(8);
    out::line(&format!(
        "{:width$}  {:states$}  {:models$}  {:>5}  {:>8}  {:>8}  {}",
        "NAME", "STATE", "MODEL", "TURNS", "TOKENS", "COST", "LAST"
    ));
    for row in rows {
        let ago = match row.last {
            0 => "never".to_owned(),
            last if now.saturating_sub(last) < 1_000_000 => "just now".to_owned(),
            last => format!("{} ago", duration(now.saturating_sub(last))),
        };
        let last = row.problem.clone().unwrap_or(ago);
        let last = row.left.as_ref().map_or(last.clone(), |left| format!("{last}, {}", left.text()));
        let last = match (&row.held, &row.model_wait) {
            _ if !row.approvals.is_empty() => format!("{last}, waiting for {}", asked(&row.approvals)),
            (Some(why), _) => format!("{last}, held: {}", line(why, WHY)),
            (None, Some(wait)) => format!("{last}, waiting {}", model_wait(wait)),
            (None, None) => last,
        };
        let cost = row.cost.map_or_else(|| "-".to_owned(), |cost| cost.to_string());
        out::line(&format!(
            "{:width$}  {:states$}  {:models$}  {:>5}  {:>8}  {cost:>8}  {last}",
            row.name,
            row.state,
            line(&row.model, MODEL),
            row.turns,
            row.tokens
        ));
    }
}
