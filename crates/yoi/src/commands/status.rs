//! `yoi status`: what one pod is doing, why it does not continue, and what to do. Of a live pod its process tells; the rest, and
//! all of a stopped pod, is read from its files.

use crate::cli::StatusArgs;
use crate::commands::context_lines::context_lines;
use crate::commands::left_running::{HELP, LeftRunning};
use crate::commands::live::{lost, model_wait};
use crate::look::Look;
use crate::remedy::{self, more_budget};
use crate::show::background_tasks::{job_line, task_line, tasks_text};
use crate::show::escape::line;
use crate::show::out;
use crate::show::question::end;
use crate::socket::{LiveClient, Reached, block_on, hold, state_word};
use authority::text::escape_line;
use host::compose::model::context_window;
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::session_location::now;
use host::pods::{Pods, read_failure};
use llm_worker::effect::Outcome;
use llm_worker::{Cost, Effort};
use pod::record::{BudgetScope, HoldCause};
use pod::session::approvals::AllowedRule;
use pod::session::fold::{Hold, SessionState};
use pod::session::summary::Summary;
use protocol::status::{
    ApprovalStatus, BackgroundTaskStatus, ContextStatus, DeliveryMode, JobStatus, Queued, State,
    Status,
};
use serde_json::{Value, json};
use session_store::{ReadError, Reader};
use std::time::Duration;
use tui::arguments::brief;
use tui::transcript::{self, WAITING};
use tui::{Tone, count, duration, labelled};

/// Characters of a call or an input that are shown.
const SHOWN: usize = 80;

/// Characters of the reason of a reload that failed, and of the keys that wait.
const REASON: usize = 400;

/// The state of a pod whose process did not record its end.
pub(crate) const CRASHED: &str = "crashed";

/// How many waiting inputs, and how many background tasks are listed.
const LISTED: usize = 10;

pub(crate) fn run(args: &StatusArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let live = block_on(async {
        let (told, owner) = match LiveClient::reach(&pods.dir(&name), &name, "yoi status").await? {
            Reached::Live(mut live) => (live.status().await.map(Some), live.owner.clone()),
            Reached::Locked(owner) | Reached::Silent(owner, _) => {
                return Ok((None, Some(Unasked::silent(owner.pid, &name))));
            }
            Reached::Incompatible(owner, failure) => {
                return Ok((None, Some(Unasked::incompatible(owner.pid, failure))));
            }
            Reached::Free => return Ok((None, None)),
        };
        match told {
            // Its files tell the rest.
            Err(failure) if failure.exit == Exit::Busy => {
                Ok((None, Some(Unasked::silent(owner.pid, &name))))
            }
            told => Ok((told?, None)),
        }
    })?;
    let (live, unasked) = live?;
    // Read after the process answered: the files have all that it told.
    let mut found = Found::read(&pods, &name, live, unasked)?;
    if found.live.is_none() {
        found.context = recorded_context(&found.summary.state, env);
    }
    let left = LeftRunning::find(env)
        .into_iter()
        .find(|left| found.live.is_none() && found.unasked.is_none() && left.is_of(&pods, &name));
    if args.json {
        out::json(&found.json(left.as_ref()));
    } else {
        found.print(left.as_ref());
    }
    Ok(Exit::Done)
}

/// Prints what is known of a live pod.
pub(super) fn print_live(pods: &Pods, name: &str, status: Status) -> Result<(), Failure> {
    Found::read(pods, name, Some(status), None)?.print(None);
    Ok(())
}

/// The process of a pod that gave no status, and what a person can do about it.
struct Unasked {
    pid: u32,
    why: String,
    help: String,
}

impl Unasked {
    fn silent(pid: u32, name: &str) -> Self {
        let stopped = format!("if a signal stopped the process, `kill -CONT {pid}` continues it");
        let help = format!("{stopped}; `yoi stop {name} --now` ends it");
        Self {
            pid,
            why: format!("{pid} does not answer"),
            help,
        }
    }

    fn incompatible(pid: u32, failure: Failure) -> Self {
        let Failure {
            exit: _,
            message,
            help,
        } = failure;
        Self {
            pid,
            why: format!("{pid}: {message}"),
            help: help.as_ref().map(remedy::help).unwrap_or_default(),
        }
    }
}

/// All that is known of a pod.
struct Found {
    name: String,
    live: Option<Status>,
    /// The process that holds the pod, if it gave no status.
    unasked: Option<Unasked>,
    summary: Summary,
    /// The tokens of the next request.
    context: Option<ContextStatus>,
    /// How its process ended, if it did not record that.
    crash: Option<String>,
}

impl Found {
    fn read(
        pods: &Pods,
        name: &str,
        live: Option<Status>,
        unasked: Option<Unasked>,
    ) -> Result<Self, Failure> {
        let mut found = Self {
            name: name.to_owned(),
            live,
            unasked,
            summary: Summary::default(),
            context: None,
            crash: None,
        };
        let reader = match Reader::open(&pods.dir(name)) {
            // Nothing was recorded yet.
            Err(ReadError::NoSuch(_)) => return Ok(found),
            reader => reader.map_err(|e| read_failure(name, &e))?,
        };
        let unread = |e: &dyn std::fmt::Display| Failure::new(Exit::Data, format!("{name}: {e}"));
        found.summary = Summary::read(&reader, || {}).map_err(|e| unread(&e))?;
        found.context = found.live.as_ref().and_then(|live| live.context.clone());
        found.crash = (found.state() == CRASHED).then(|| lost(&pods.dir(name)));
        Ok(found)
    }

    fn print(&self, left: Option<&LeftRunning>) {
        let look = Look::of_stdout();
        for (what, text) in self.lines(left) {
            match look {
                Some(look) => {
                    let rows = labelled(
                        &format!("{what:9}"),
                        Tone::Strong,
                        &escape_line(&text),
                        look.width(),
                    );
                    out::raw(&look.text(&rows));
                }
                None => out::line(&format!("{what:9} {text}")),
            }
        }
    }

    fn state(&self) -> &'static str {
        let state = &self.summary.state;
        match &self.live {
            Some(live) => transcript::state(live.state),
            None if self.unasked.is_some() && state.held.is_some() => "held",
            None if self.unasked.is_some() && !state.approvals.open.is_empty() => WAITING,
            None if self.unasked.is_some() && state.turn_open => "working",
            None if self.unasked.is_some() => "idle",
            None if self.summary.last_time == 0 => "empty",
            None if state.turn_open || state.hosted => CRASHED,
            None => "stopped",
        }
    }

    fn held(&self) -> Option<Hold> {
        let stopped = || self.summary.state.held.clone();
        self.live
            .as_ref()
            .map_or_else(stopped, |live| live.held.as_ref().and_then(hold))
    }

    fn approvals(&self) -> Vec<ApprovalStatus> {
        let open = &self.summary.state.approvals.open;
        let stopped = || open.values().map(|open| pod::ipc::approval(open)).collect();
        self.live
            .as_ref()
            .map_or_else(stopped, |live| live.approvals.clone())
    }

    fn queued(&self) -> Vec<Queued> {
        let stopped = || {
            self.summary
                .state
                .queued
                .iter()
                .map(pod::ipc::queued)
                .collect()
        };
        self.live
            .as_ref()
            .map_or_else(stopped, |live| live.queued.clone())
    }

    /// The background tasks, with how many more there are.
    fn tasks(&self) -> (Vec<BackgroundTaskStatus>, u64) {
        let recorded = || {
            let known = self.summary.state.tasks.iter();
            pod::ipc::background_tasks(known.map(|(key, task)| task.status(key)).collect())
        };
        self.live
            .as_ref()
            .map_or_else(recorded, |live| (live.tasks.clone(), live.more_tasks))
    }

    /// The jobs that run; of a pod that does not run, those without an end.
    fn jobs(&self) -> Vec<JobStatus> {
        let recorded = || self.summary.state.open_jobs().map(pod::ipc::job).collect();
        self.live
            .as_ref()
            .map_or_else(recorded, |live| live.jobs.clone())
    }

    /// Whether a process has the pod.
    fn is_hosted(&self) -> bool {
        self.live.is_some() || self.unasked.is_some()
    }

    /// The calls that run, or that a crash left open.
    fn calls(&self) -> impl Iterator<Item = String> {
        let call =
            |name: &str, arguments: &str| format!("{name} {}", line(&brief(arguments), SHOWN));
        self.summary
            .state
            .open_calls
            .values()
            .map(move |open| call(&open.name, &open.arguments))
    }

    fn model(&self) -> String {
        let recorded = || {
            self.summary
                .state
                .surface
                .as_ref()
                .map(|(surface, _)| surface.model.clone())
        };
        self.live
            .as_ref()
            .map(|live| live.model.clone())
            .or_else(recorded)
            .unwrap_or_else(|| "-".to_owned())
    }

    /// Of the newest requests.
    fn effort(&self) -> Option<Effort> {
        self.summary.state.surface.as_ref()?.0.effort
    }

    fn sandbox(&self) -> Option<&str> {
        let live = self.live.as_ref().map(|live| live.host.sandbox.as_str());
        live.or_else(|| {
            self.summary
                .state
                .started
                .as_ref()
                .map(|start| start.sandbox.as_str())
        })
    }

    fn lines(&self, left: Option<&LeftRunning>) -> Vec<(&'static str, String)> {
        let mut lines = vec![("state", self.state_line())];
        let mut add = |what: &'static str, text: String| lines.push((what, text));
        if let Some(crash) = &self.crash {
            add("crash", crash.clone());
        }
        self.calls().for_each(|call| add("", call));
        self.approval_lines()
            .into_iter()
            .for_each(|(what, text)| add(what, text));
        self.rule_lines()
            .into_iter()
            .for_each(|(what, text)| add(what, text));
        if let Some(held) = self.held() {
            let next = next_step(
                &held,
                self.summary.state.last_outcome.as_ref(),
                &self.name,
                self.is_hosted(),
            );
            add("held", held.reason);
            add("", next);
        }
        if let Some(wait) = self.live.as_ref().and_then(|live| live.model_wait.as_ref()) {
            add("waiting", model_wait(wait));
        }
        if let Some(disk) = self.live.as_ref().and_then(|live| live.disk.as_ref()) {
            add(
                "disk",
                format!("{disk}; yoi retries until the write succeeds"),
            );
        }
        let queued = self.queued();
        if !queued.is_empty() {
            let verb = if queued.len() == 1 { "waits" } else { "wait" };
            add(
                "queue",
                format!("{} {verb}", count(queued.len() as u64, "input")),
            );
        }
        for queued in queued.iter().take(LISTED) {
            let steered = if queued.mode == DeliveryMode::Steer {
                " (steered)"
            } else {
                ""
            };
            add(
                "",
                format!(
                    "{:>4}{steered}  {}",
                    queued.input,
                    line(&queued.text, SHOWN)
                ),
            );
        }
        if let Some(more) = queued.len().checked_sub(LISTED).filter(|more| *more > 0) {
            add("", format!("{more} more; --json lists them"));
        }
        self.task_lines()
            .into_iter()
            .for_each(|(what, text)| add(what, text));
        self.job_lines()
            .into_iter()
            .for_each(|(what, text)| add(what, text));
        add("model", self.model());
        if let Some(effort) = self.effort() {
            add("effort", effort.word().to_owned());
        }
        if let Some(sandbox) = self.sandbox() {
            add("sandbox", sandbox.to_owned());
        }
        add("usage", self.usage());
        if let Some(cost) = self.summary.state.cost {
            add("cost", cost.to_string());
        }
        self.context
            .iter()
            .flat_map(context_lines)
            .for_each(|(what, text)| add(what, text));
        if let Some(outcome) = self.summary.state.last_outcome.as_ref() {
            add(
                "last turn",
                transcript::outcome(&pod::ipc::outcome(outcome, self.summary.state.end_verdict)),
            );
        }
        if let Some(live) = &self.live {
            let age = duration(Duration::from_micros(
                now().saturating_sub(live.host.since_us),
            ));
            add(
                "process",
                format!(
                    "{}, running for {age} (yoi {})",
                    live.host.pid, live.host.version
                ),
            );
            if live.stuck > 0 {
                add(
                    "stuck",
                    format!("{} did not return", count(live.stuck, "tool or hook call")),
                );
            }
            if let Some(why) = &live.host.reload.refused {
                add(
                    "config",
                    format!("not changed by the newest reload: {}", line(why, REASON)),
                );
            }
            if !live.host.reload.next_start.is_empty() {
                let keys = line(&live.host.reload.next_start.join(", "), REASON);
                add("config", format!("changed for the next start: {keys}"));
            }
        }
        if let Some(Unasked { why, help, .. }) = &self.unasked {
            add("process", why.clone());
            add("", help.clone());
        }
        if self.summary.last_time > 0 {
            add(
                "active",
                format!(
                    "{} ago",
                    duration(Duration::from_micros(
                        now().saturating_sub(self.summary.last_time)
                    ))
                ),
            );
        }
        if let Some(left) = left {
            add("left", format!("{}; {HELP}", left.text()));
        }
        lines
    }

    fn approval_lines(&self) -> Vec<(&'static str, String)> {
        let approvals = self.approvals();
        if approvals.is_empty() {
            return Vec::new();
        }
        let what = std::iter::once("approval").chain(std::iter::repeat(""));
        let asked = |approval: &ApprovalStatus| {
            let end = end(approval.expires_ms, Some(now() / 1000))
                .map(|end| format!("; {end}"))
                .unwrap_or_default();
            format!(
                "{:>4}  {}{end}",
                approval.approval,
                line(&approval.question, SHOWN)
            )
        };
        let mut lines: Vec<_> = what.zip(approvals.iter().map(asked)).collect();
        let start = if self.is_hosted() {
            String::new()
        } else {
            format!("`yoi start {}`, then ", self.name)
        };
        lines.push((
            "",
            format!(
                "{start}`yoi approve {}` shows the calls that wait",
                self.name
            ),
        ));
        lines
    }

    /// The rules that a person allowed for this pod.
    fn rule_lines(&self) -> Vec<(&'static str, String)> {
        let rules = &self.summary.state.approvals.rules;
        if rules.is_empty() {
            return Vec::new();
        }
        let what = std::iter::once("allowed").chain(std::iter::repeat(""));
        let text = |allowed: &AllowedRule| {
            format!(
                "{:>4}  {}",
                allowed.number,
                line(&allowed.rule.to_string(), SHOWN)
            )
        };
        let mut lines: Vec<_> = what.zip(rules.iter().take(LISTED).map(text)).collect();
        let all = if rules.len() > LISTED {
            format!("{} rules; ", rules.len())
        } else {
            String::new()
        };
        lines.push((
            "",
            format!(
                "{all}`yoi approve {} --forget` lists them and takes them back",
                self.name
            ),
        ));
        lines
    }

    fn task_lines(&self) -> Vec<(&'static str, String)> {
        let (tasks, more) = self.tasks();
        if tasks.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![("tasks", tasks_text(&tasks, more, self.is_hosted()))];
        lines.extend(
            tasks
                .iter()
                .take(LISTED)
                .map(|task| ("", task_line(task, self.is_hosted(), now() / 1000))),
        );
        let hidden = (tasks.len().saturating_sub(LISTED) as u64).saturating_add(more);
        if hidden > 0 {
            lines.push((
                "",
                format!("{hidden} more; --json lists up to {}", protocol::MAX_TASKS),
            ));
        }
        lines
    }

    fn job_lines(&self) -> Vec<(&'static str, String)> {
        let jobs = self.jobs();
        if jobs.is_empty() {
            return Vec::new();
        }
        let what = if self.is_hosted() {
            "running"
        } else {
            "did not end; the next start ends their processes"
        };
        let mut lines = vec![(
            "jobs",
            format!("{} {what}", count(jobs.len() as u64, "job")),
        )];
        lines.extend(jobs.iter().map(|job| ("", job_line(job, now() / 1000))));
        lines
    }

    fn state_line(&self) -> String {
        let waits = self
            .live
            .as_ref()
            .is_some_and(|live| live.state == State::Working && live.model_wait.is_some());
        let state = if waits {
            "waiting for the model"
        } else {
            self.state()
        };
        match self
            .live
            .as_ref()
            .and_then(|live| live.turn.zip(Some(live.step.unwrap_or_default())))
        {
            Some((turn, 0)) => format!("{state} (turn {turn})"),
            Some((turn, step)) => format!("{state} (turn {turn}, step {step})"),
            None if self
                .held()
                .is_some_and(|hold| hold.cause == HoldCause::Budget)
                && self.is_hosted() =>
            {
                format!("{state}, {WAITING}")
            }
            None if state == CRASHED => {
                format!("{state}; `yoi start {}` starts it again", self.name)
            }
            None => state.to_owned(),
        }
    }

    fn usage(&self) -> String {
        let state = &self.summary.state;
        let turns = count(state.turns, "turn");
        let steps = count(state.requests, "step");
        let tokens = state.usage.input.saturating_add(state.usage.output);
        format!("{turns}, {steps}, {}", count(tokens, "token"))
    }

    fn json(&self, left: Option<&LeftRunning>) -> Value {
        let state = &self.summary.state;
        let live = self.live.as_ref();
        let (tasks, more_tasks) = self.tasks();
        json!({
            "name": self.name, "state": state_word(self.state()), "crash": self.crash, "approvals": self.approvals(), "rules": state.approvals.rules, "turn": live.and_then(|live| live.turn),
            "step": live.and_then(|live| live.step), "calls": self.calls().collect::<Vec<_>>(), "held": self.held(),
            "model_wait": live.and_then(|live| live.model_wait.as_ref()),
            "disk": live.and_then(|live| live.disk.clone()), "queued": self.queued(), "model": self.model(), "effort": self.effort(),
            "sandbox": self.sandbox(), "turns": state.turns, "requests": state.requests, "usage": state.usage,
            "cost": state.cost.map(Cost::dollars), "context": self.context.as_ref().map(|context| context.used),
            "context_usage": self.context,
            "last_outcome": state.last_outcome.as_ref().map(|last| pod::ipc::outcome(last, state.end_verdict)),
            "tasks": tasks, "more_tasks": more_tasks, "jobs": self.jobs(),
            "notices": live.map_or(state.notices.len() as u64, |live| live.notices),
            "stuck": live.map(|live| live.stuck), "pid": live.map(|live| live.host.pid).or(self.unasked.as_ref().map(|unasked| unasked.pid)), "answers": live.is_some(),
            "since_us": live.map(|live| live.host.since_us), "version": live.map(|live| live.host.version.clone()),
            "cwd": live.map(|live| live.host.cwd.clone()), "last_us": self.summary.last_time,
            "reload": live.map(|live| json!({ "next_start": live.host.reload.next_start, "refused": live.host.reload.refused })), "left_running": left.map_or(&[][..], |left| &left.pids),
        })
    }
}

/// The context of a pod that gives no status of its own, with the window of the configuration as it is now.
fn recorded_context(state: &SessionState, env: &Env) -> Option<ContextStatus> {
    let (surface, _) = state.surface.as_ref()?;
    let config = Config::load(env).ok();
    let window = config
        .as_ref()
        .and_then(|config| context_window(&surface.model, config));
    let policy = config
        .as_ref()
        .map(Config::context_policy)
        .unwrap_or_default();
    state.context_under(window, policy)
}

/// Whether a pod is held because its next request does not fit the model's context; its provider may have said so.
pub(crate) fn is_context_full(hold: &Hold, last: Option<&Outcome>) -> bool {
    let is_full = match last {
        Some(Outcome::ModelFailed {
            help: Some(help), ..
        }) => client::model::drops_turns(help),
        last => last == Some(&Outcome::ContextLimit),
    };
    hold.cause == HoldCause::Budget && hold.budget.is_none() && is_full
}

/// The command that answers a full context.
pub(crate) fn drop_turns(name: &str) -> String {
    format!("yoi compact {name} --drop-turns")
}

/// What ends a hold.
fn next_step(hold: &Hold, last: Option<&Outcome>, name: &str, live: bool) -> String {
    if hold.budget == Some(BudgetScope::Pod) {
        return more_budget(Some(name), live);
    }
    match (hold.cause, live) {
        _ if is_context_full(hold, last) => {
            let start = if live {
                String::new()
            } else {
                format!("run `yoi start {name}`, then ")
            };
            let failed = matches!(last, Some(Outcome::ModelFailed { .. }));
            let then = if failed {
                format!("; `yoi send {name} \"continue\"` then continues the turn")
            } else {
                String::new()
            };
            format!(
                "{start}`{}` continues it without the oldest turns{then}",
                drop_turns(name)
            )
        }
        (HoldCause::Disk, _) => "free disk space; the pod then continues by itself".to_owned(),
        (HoldCause::Required, _) => format!("run `yoi start {name}` again once the key is set"),
        (HoldCause::Cancel, true) => {
            format!("`yoi send {name} \"INPUT\"` or `yoi resume {name}` ends the hold")
        }
        (HoldCause::Bug, true) => {
            format!("`yoi log {name}` shows the last turns; `yoi resume {name}` tries again")
        }
        (HoldCause::Budget, true) if matches!(last, Some(Outcome::ModelFailed { .. })) => {
            format!(
                "`yoi resume {name}` ends the hold, and `yoi send {name} \"continue\"` then continues the turn"
            )
        }
        (HoldCause::Person | HoldCause::Budget | HoldCause::Gate, true) => {
            format!("`yoi resume {name}` continues it")
        }
        (_, false) => format!("run `yoi start {name}`, then `yoi resume {name}`"),
    }
}
