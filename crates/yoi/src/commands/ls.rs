//! `yoi ls`: what pods there are and how they stand.

use crate::cli::LsArgs;
use crate::commands::left_running::{HELP, LeftRunning};
use crate::commands::live::{approval_line, lost, model_wait};
use crate::commands::status::{CRASHED, drop_turns, is_context_full};
use crate::look::Look;
use crate::show::escape::line;
use crate::show::out;
use crate::socket::{block_on, hold, state_word, statuses};
use host::compose::model::context_window;
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::session_location::now;
use host::pods::{Pods, is_of_run};
use host::project::Project;
use llm_worker::Cost;
use llm_worker::effect::Outcome;
use pod::record::{BudgetScope, HoldCause};
use pod::session::fold::{EndVerdict, Hold, SessionState};
use pod::session::summary::Summary;
use protocol::status::{ApprovalStatus, ModelRetry};
use session_store::{ReadError, Reader, Session};
use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use tui::transcript::{self, WAITING};
use tui::{Line, PodEntry, Theme, Tone, count, duration, short_model};

/// Columns that a prompt needs to stand in a row; with fewer, it stands below.
const PROMPT: usize = 16;

/// How many unnamed runs are listed without `--all`.
const RUNS: usize = 10;

/// How much of a model's name is shown, in columns.
const MODEL: usize = 20;

/// The column of the cost.
const COST_COLUMN: usize = 3;

/// How much of the reason of a hold is shown, in characters.
const WHY: usize = 60;

/// How long all live pods together may take to answer: a hung one is listed with what its files tell.
const ASKED: Duration = Duration::from_millis(300);

/// How long it takes before it says why.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct PodRow {
    pub(super) name: String,
    /// For scripts; people see [`PodRow::shown`].
    state: &'static str,
    /// How the newest turn ended.
    outcome: Option<&'static str>,
    /// The beginning of the first input.
    prompt: Option<String>,
    /// The root of the project that it works in.
    directory: Option<String>,
    /// Inputs wait.
    queued: bool,
    model: String,
    turns: u64,
    tokens: u64,
    cost: Option<Cost>,
    /// Microseconds since 1970 of the newest record.
    last: u64,
    problem: Option<String>,
    /// A process has it. Its own state is more than its files tell.
    pub(super) live: bool,
    held: Option<Hold>,
    /// The hold is for a context that is full.
    is_full: bool,
    approvals: Vec<ApprovalStatus>,
    model_wait: Option<ModelRetry>,
    left: Option<LeftRunning>,
    /// How its process ended, if it did not record that.
    crash: Option<String>,
    /// The used part of the model's context window, in percent.
    context_percent: Option<u64>,
}

/// The state of a pod that works, and whose model cannot be reached.
const NO_MODEL: &str = "waiting";

impl PodRow {
    /// The state, for people.
    pub(super) fn shown(&self) -> &'static str {
        match self.state {
            "working" if self.model_wait.is_some() => NO_MODEL,
            "held"
                if self
                    .held
                    .as_ref()
                    .is_some_and(|hold| hold.cause == HoldCause::Budget) =>
            {
                WAITING
            }
            "stopped" if !self.approvals.is_empty() => WAITING,
            "stopped" if !self.queued => self.outcome.unwrap_or(self.state),
            state => state,
        }
    }

    /// Pods that need a person come first.
    fn rank(&self) -> u8 {
        match self.shown() {
            WAITING => 0,
            CRASHED | "damaged" => 1,
            "held" | NO_MODEL => 2,
            "working" | "running" | "stopping" => 3,
            "idle" => 4,
            _ => 5,
        }
    }
}

/// Lists pods: first those that need a person, then those that run, then the others, newest first. A pod that does not
/// read is a row that says so.
pub(crate) fn run(args: &LsArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let mut names: Vec<(SystemTime, String)> = pods
        .names()?
        .into_iter()
        .map(|name| (pods.touched(&name), name))
        .collect();
    names.sort_by_key(|(when, name)| (Reverse(*when), name.clone()));
    let mut runs = 0;
    names.retain(|(_, name)| {
        runs += usize::from(is_of_run(name));
        args.all || !is_of_run(name) || runs <= RUNS
    });
    let older = runs.saturating_sub(RUNS) as u64;
    let mut left = LeftRunning::find(env);
    let began = Instant::now();
    let mut said = false;
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
    let mut rows: Vec<PodRow> = names
        .iter()
        .map(|(_, name)| row(&pods, name, config.as_ref(), &mut patience))
        .collect();
    ask_live(&pods, &mut rows)?;
    rows.sort_by_key(PodRow::rank);
    for row in rows.iter_mut().filter(|row| row.state == CRASHED) {
        row.left = left
            .iter()
            .position(|left| left.is_of(&pods, &row.name))
            .map(|at| left.swap_remove(at));
    }
    if args.json {
        out::json(&rows.iter().map(json).collect());
    } else if rows.is_empty() {
        out::line("no pods yet; create one with yoi run \"what is in this directory?\"");
    } else {
        print(&rows, env);
    }
    if !args.json {
        let of_rows = rows
            .iter()
            .any(|row| row.left.is_some())
            .then(|| "help: ".to_owned() + HELP);
        let others = left.iter().map(|left| {
            format!(
                "{}, left by a killed run that is not listed; {HELP}",
                left.text()
            )
        });
        let older = (older > 0 && !args.all)
            .then(|| format!("and {}: `yoi ls --all`", count(older, "older run")));
        others
            .chain(of_rows)
            .chain(older)
            .for_each(|line| out::line(&line));
    }
    Ok(Exit::Done)
}

/// The pods that run, need a person or are of this directory, for a screen that lists them; what needs a person first.
pub(super) fn entries(env: &Env) -> Result<Vec<PodEntry>, Failure> {
    let here = Project::around(env).root;
    let is_here = |row: &PodRow| {
        row.directory
            .as_ref()
            .is_some_and(|dir| Path::new(dir) == here)
    };
    listed(
        env,
        |_| true,
        |row| row.live || !row.approvals.is_empty() || is_here(row),
    )
}

/// The pods that run.
pub(super) fn live_entries(env: &Env) -> Result<Vec<PodEntry>, Failure> {
    let has_process = |dir: &Path| matches!(Session::owner(dir), Ok(Some(_)));
    listed(env, has_process, |row| row.live)
}

/// What needs a person first. Of pods that are not looked at, no file is read.
fn listed(
    env: &Env,
    is_looked_at: impl Fn(&Path) -> bool,
    is_listed: impl Fn(&PodRow) -> bool,
) -> Result<Vec<PodEntry>, Failure> {
    let pods = Pods::of(env)?;
    let names = pods.names()?.into_iter();
    let mut rows: Vec<PodRow> = names
        .filter(|name| is_looked_at(&pods.dir(name)))
        .map(|name| row(&pods, &name, None, &mut || {}))
        .collect();
    ask_live(&pods, &mut rows)?;
    rows.retain(is_listed);
    rows.sort_by_key(|row| (row.rank(), Reverse(row.last)));
    let entry = |row: PodRow| PodEntry {
        state: row.shown().to_owned(),
        is_live: row.live,
        waits: row.shown() == WAITING,
        details: details(&row),
        name: row.name,
    };
    Ok(rows.into_iter().map(entry).collect())
}

/// Asks every live pod for its state. One that does not answer in time has the state of its files.
fn ask_live(pods: &Pods, rows: &mut [PodRow]) -> Result<(), Failure> {
    let live: Vec<_> = rows
        .iter()
        .filter(|row| row.live)
        .map(|row| (pods.dir(&row.name), row.name.clone()))
        .collect();
    if live.is_empty() {
        return Ok(());
    }
    let mut found = block_on(statuses(live, "yoi ls", ASKED))?;
    for row in rows {
        let Some(status) = found.remove(&row.name) else {
            continue;
        };
        row.state = transcript::state(status.state);
        row.held = status.held.as_ref().and_then(hold);
        row.is_full = client::model::is_context_full(&status);
        row.approvals = status.approvals;
        row.model_wait = status.model_wait;
        row.context_percent = status.context.and_then(|context| context.percent);
    }
    Ok(())
}

/// A pod as its files tell of it.
pub(super) fn row(
    pods: &Pods,
    name: &str,
    config: Option<&Config>,
    patience: &mut impl FnMut(),
) -> PodRow {
    let dir = pods.dir(name);
    let mut row = PodRow {
        name: name.to_owned(),
        state: "damaged",
        ..PodRow::default()
    };
    let folded = match Reader::open(&dir) {
        // Ended before anything was recorded: nothing is lost.
        Err(ReadError::NoSuch(_)) => Ok(Summary::default()),
        Err(error) => Err(error.to_string()),
        Ok(reader) => Summary::read(&reader, patience).map_err(|e| e.to_string()),
    };
    match folded {
        Ok(Summary {
            state,
            last_time,
            prompt,
        }) => {
            row.outcome = outcome(&state);
            row.prompt = prompt;
            row.queued = !state.queued.is_empty();
            let live = matches!(Session::owner(&dir), Ok(Some(_)));
            row.live = live;
            let window = |model: &str| config.and_then(|config| context_window(model, config));
            let window = state
                .surface
                .as_ref()
                .and_then(|(surface, _)| window(&surface.model));
            row.context_percent = state.context(window).and_then(|context| context.percent);
            row.is_full = state
                .held
                .as_ref()
                .is_some_and(|hold| is_context_full(hold, state.last_outcome.as_ref()));
            row.held = state.held;
            row.approvals = state
                .approvals
                .open
                .values()
                .map(|open| pod::ipc::approval(open))
                .collect();
            row.state = match (live, state.turn_open || (!live && state.hosted)) {
                (false, _) if last_time == 0 => "empty",
                (true, _) if row.held.is_some() => "held",
                (true, _) if !row.approvals.is_empty() => WAITING,
                (true, true) => "working",
                (true, false) => "idle",
                (false, true) => CRASHED,
                (false, false) => "stopped",
            };
            row.crash = (row.state == CRASHED).then(|| lost(&dir));
            row.directory = state.started.map(|started| started.project);
            row.model = state
                .surface
                .map(|(surface, _)| surface.model)
                .unwrap_or_default();
            row.turns = state.turns;
            row.cost = state.cost;
            row.tokens = state.usage.input.saturating_add(state.usage.output);
            row.last = last_time;
        }
        Err(problem) => row.problem = Some(problem),
    }
    row
}

/// How the newest turn ended, as far as it did.
fn outcome(state: &SessionState) -> Option<&'static str> {
    Some(
        match state.last_outcome.as_ref().filter(|_| !state.turn_open)? {
            Outcome::Done if state.end_verdict == EndVerdict::Due => return None,
            Outcome::Done
                if state.end_verdict == EndVerdict::Accepted
                    && state.refused.is_none()
                    && state.shortfall.is_none() =>
            {
                "done"
            }
            Outcome::Cancelled => "cancelled",
            Outcome::Interrupted | Outcome::Waiting => return None,
            _ => "failed",
        },
    )
}

/// What a pod waits for: the first question, and how many more there are.
fn asked(approvals: &[ApprovalStatus]) -> String {
    let first = approvals
        .first()
        .map(|first| approval_line(first, WHY))
        .unwrap_or_default();
    match approvals.len().saturating_sub(1) {
        0 => first,
        more => format!("{first}, and {more} more"),
    }
}

fn json(row: &PodRow) -> serde_json::Value {
    serde_json::json!({
        "name": row.name, "state": state_word(row.state), "outcome": row.outcome, "prompt": row.prompt, "directory": row.directory,
        "approvals": row.approvals, "model": row.model, "turns": row.turns, "tokens": row.tokens, "cost": row.cost.map(Cost::dollars), "context_percent": row.context_percent,
        "held": row.held.as_ref().map(|hold| &hold.reason), "model_wait": row.model_wait, "last_us": row.last, "problem": row.problem, "crash": row.crash, "left_running": row.left.as_ref().map_or(&[][..], |left| &left.pids),
    })
}

/// When a pod was last active, in one unit.
fn last(row: &PodRow, now: u64) -> String {
    let ago = Duration::from_micros(now.saturating_sub(row.last));
    match row.last {
        0 => "never".to_owned(),
        _ if ago < Duration::from_secs(1) => "just now".to_owned(),
        _ => {
            let time = duration(Duration::from_secs(ago.as_secs()));
            let unit: Vec<&str> = time.split(' ').take(2).collect();
            format!("{} ago", unit.join(" "))
        }
    }
}

/// The first line of the prompt, behind the directory where that is another one.
fn prompt(row: &PodRow, here: &Path, env: &Env) -> Line {
    let elsewhere = row
        .directory
        .as_deref()
        .map(Path::new)
        .filter(|directory| *directory != here);
    let at = elsewhere
        .map(|directory| format!("{}: ", env.shown(directory)))
        .unwrap_or_default();
    let text = row.prompt.as_deref().unwrap_or_default();
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    Line::of(&at, Tone::Dim).with(first.trim(), Tone::Plain)
}

fn tone(state: &str) -> Tone {
    match state {
        WAITING => Tone::Waiting,
        CRASHED | "damaged" | "failed" => Tone::Failed,
        "held" | NO_MODEL => Tone::Refused,
        "working" | "running" | "stopping" => Tone::Strong,
        "done" => Tone::Ok,
        _ => Tone::Dim,
    }
}

/// Why a pod is held, and the command that answers where it waits for a person.
fn held_text(hold: &Hold, is_full: bool, name: &str) -> String {
    let why = line(&hold.reason, WHY);
    match (hold.cause, hold.budget) {
        _ if is_full => format!("held: {why}; `{}`", drop_turns(name)),
        (HoldCause::Budget, Some(BudgetScope::Pod)) => {
            format!("held: {why}; `yoi resume {name} --more`")
        }
        (HoldCause::Budget, _) => format!("held: {why}; `yoi resume {name}`"),
        (_, _) => format!("held: {why}"),
    }
}

/// What else there is to say about a pod.
fn details(row: &PodRow) -> Vec<String> {
    let waits =
        (!row.approvals.is_empty()).then(|| format!("waiting for {}", asked(&row.approvals)));
    let held = row
        .held
        .as_ref()
        .map(|hold| held_text(hold, row.is_full, &row.name));
    let model = row
        .model_wait
        .as_ref()
        .map(|wait| format!("waiting {}", model_wait(wait)));
    let first = waits.or(held).or(model);
    let left = row.left.as_ref().map(LeftRunning::text);
    let crash = row.crash.as_ref().map(|crash| {
        let name = &row.name;
        format!("{crash}; `yoi start {name}` starts it again")
    });
    row.problem
        .clone()
        .into_iter()
        .chain(crash)
        .chain(first)
        .chain(left)
        .collect()
}

/// A row for each pod. A terminal gets as much of it as has room; a pipe gets all of it.
fn print(rows: &[PodRow], env: &Env) {
    let now = now();
    let here = Project::around(env).root;
    let look = Look::of_stdout();
    let (theme, columns) = look.map_or((Theme::Plain, usize::MAX), |look| {
        (look.theme, look.width())
    });
    let cells = |row: &PodRow| {
        let cost = row
            .cost
            .map_or_else(|| "-".to_owned(), |cost| cost.to_string());
        let plain = |text: &str| Line::of(text, Tone::Plain);
        let state = Line::of(row.shown(), tone(row.shown()));
        [
            plain(&row.name),
            state,
            Line::of(&last(row, now), Tone::Dim),
            plain(&cost),
            plain(short_model(&row.model)).cut(MODEL),
        ]
    };
    let title = |text| Line::of(text, Tone::Dim);
    let titles = ["NAME", "STATE", "LAST", "COST", "MODEL"].map(title);
    let table: Vec<_> = rows.iter().map(cells).collect();
    let widths: Vec<usize> = (0..titles.len())
        .map(|at| {
            table
                .iter()
                .chain([&titles])
                .filter_map(|row| row.get(at))
                .map(Line::width)
                .max()
                .unwrap_or(0)
        })
        .collect();
    let used: usize = widths.iter().map(|width| width + 2).sum();
    let beside = columns.saturating_sub(used) >= PROMPT;
    let margin = Line::of("  ", Tone::Plain);
    let mut lines =
        vec![aligned(&titles, &widths, &title(if beside { "PROMPT" } else { "" })).cut(columns)];
    for (row, cells) in rows.iter().zip(&table) {
        let prompt = prompt(row, &here, env);
        let in_row = if beside {
            prompt.clone()
        } else {
            Line::default()
        };
        lines.push(aligned(cells, &widths, &in_row).cut(columns));
        if !beside && !prompt.is_empty() {
            lines.push(margin_of(&margin, &prompt).cut(columns));
        }
        for text in details(row) {
            lines.extend(Line::of(&text, Tone::Plain).wrap(columns, &margin, &margin));
        }
    }
    let text: String = lines.iter().map(|line| line.ansi(theme) + "\n").collect();
    out::raw(&text);
}

fn margin_of(margin: &Line, line: &Line) -> Line {
    let mut whole = margin.clone();
    whole.append(line);
    whole
}

/// Cells in columns, and `last` behind them; nothing stands behind the last text.
fn aligned(cells: &[Line], widths: &[usize], last: &Line) -> Line {
    let mut line = Line::default();
    let mut gap = 0;
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let free = width.saturating_sub(cell.width());
        // Amounts stand below each other.
        let before = if at == COST_COLUMN { free } else { 0 };
        if cell.is_empty() {
            gap += free + 2;
            continue;
        }
        line = line.with(&" ".repeat(gap + before), Tone::Plain);
        line.append(cell);
        gap = free - before + 2;
    }
    if last.is_empty() {
        return line;
    }
    line = line.with(&" ".repeat(gap), Tone::Plain);
    line.append(last);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_person_is_first() {
        let row = |state, outcome| PodRow {
            state,
            outcome,
            ..PodRow::default()
        };
        let call = String::new();
        let tool = String::new();
        let question = String::new();
        let asked = ApprovalStatus {
            approval: 1,
            call,
            tool,
            question,
            expires_ms: None,
        };
        let mut rows = [
            row("stopped", Some("done")),
            row("stopped", Some("failed")),
            PodRow {
                queued: true,
                ..row("stopped", Some("done"))
            },
            row("idle", Some("failed")),
            row("working", Some("done")),
            row("held", None),
            row(CRASHED, None),
            PodRow {
                approvals: vec![asked],
                ..row("stopped", None)
            },
        ];
        rows.sort_by_key(PodRow::rank);
        let shown = rows.each_ref().map(PodRow::shown);
        assert_eq!(
            shown,
            [
                "waiting for you",
                "crashed",
                "held",
                "working",
                "idle",
                "done",
                "failed",
                "stopped"
            ]
        );
    }
}
