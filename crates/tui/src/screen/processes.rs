//! What runs beside the turns, in the panel of the pod: jobs and runs of background tasks, one of them chosen and stopped.

use super::exchange::{Intent, Key};
use super::status::left;
use crate::count::{bytes, duration};
use crate::line::Line;
use crate::style::Tone;
use protocol::method::StopRun;
use protocol::status::{BackgroundTaskStatus, JobStatus, Status};
use std::ops::Range;
use std::time::Duration;

/// Something that runs and can be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    Job(u64),
    /// A run of a background task.
    Run(u64),
}

/// What is chosen, and whether to stop it is being asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Processes {
    chosen: Option<Running>,
    /// Asked, and whether the question was seen.
    asks: Option<bool>,
    /// When the pod was asked for the memory of its jobs.
    measured_ms: Option<u64>,
}

/// The memory of jobs is asked for again after this time.
const MEASURED_MS: u64 = 2000;

/// Everything that can be stopped, in the order of the panel.
fn running(status: &Status) -> Vec<Running> {
    let runs = status
        .tasks
        .iter()
        .filter_map(|task| task.run.as_ref())
        .map(|run| Running::Run(run.run));
    runs.chain(status.jobs.iter().map(|job| Running::Job(job.job)))
        .collect()
}

/// Whether there is something whose age is shown.
pub(super) fn any_runs(status: &Status) -> bool {
    !running(status).is_empty()
}

impl Processes {
    /// Whether a key does something other than in the rest of the screen.
    pub(super) fn key(&mut self, key: Key, status: &Status) -> Option<Vec<Intent>> {
        let all = running(status);
        self.chosen.take_if(|chosen| !all.contains(chosen));
        let at = self
            .chosen
            .and_then(|chosen| all.iter().position(|one| *one == chosen));
        if self.chosen.is_none() {
            self.asks = None;
        }
        match (key, at, self.asks) {
            (Key::Char('y'), Some(_), Some(true)) => {
                self.asks = None;
                return Some(self.chosen.map(stop).into_iter().collect());
            }
            // Nobody has read the question yet.
            (Key::Char('y'), Some(_), Some(false)) => {}
            (Key::Char('n') | Key::Esc, Some(_), Some(_)) => self.asks = None,
            (Key::Char('x'), Some(_), None) => self.asks = Some(false),
            (Key::Up, _, _) if !all.is_empty() => {
                self.choose(&all, at.map_or(all.len() - 1, |at| at.saturating_sub(1)));
            }
            (Key::Down, _, _) if !all.is_empty() => {
                self.choose(&all, at.map_or(0, |at| (at + 1).min(all.len() - 1)));
            }
            (Key::Esc, Some(_), None) => self.chosen = None,
            _ => return None,
        }
        Some(Vec::new())
    }

    fn choose(&mut self, all: &[Running], at: usize) {
        (self.chosen, self.asks) = (all.get(at).copied(), None);
    }

    /// Whether to ask the pod for the memory of its jobs now, which it tells with its status.
    pub(super) fn measures(&mut self, status: &Status, now_ms: u64) -> bool {
        let is_due = self
            .measured_ms
            .is_none_or(|at| now_ms.abs_diff(at) >= MEASURED_MS)
            && !status.jobs.is_empty();
        if is_due {
            self.measured_ms = Some(now_ms);
        }
        is_due
    }

    /// Several keys came at once: nobody has read a question.
    pub(super) fn not_seen(&mut self) {
        self.asks = self.asks.map(|_| false);
    }

    /// The lines of tasks and jobs, and which of them are about what is chosen. `may_stop`: this client may.
    pub(super) fn lines(
        &mut self,
        status: &Status,
        may_stop: bool,
        now_ms: u64,
        width: usize,
    ) -> (Vec<Line>, Range<usize>) {
        let all = running(status);
        self.chosen
            .take_if(|chosen| !all.contains(chosen) || !may_stop);
        let mut lines = Vec::new();
        let mut chosen = 0..0;
        let mut row = |own: Option<Running>, (label, tone, text): (String, Tone, String)| {
            let begin = lines.len();
            let is_chosen = own.is_some() && own == self.chosen;
            lines.extend(entry(is_chosen, &label, tone, &text, width));
            if is_chosen {
                let keys = match self.asks {
                    Some(_) => format!("stop {label} with all of its processes? y stop · n back"),
                    None => "x stop".to_owned(),
                };
                self.asks = self.asks.map(|_| true);
                lines.extend(Line::of(&keys, Tone::Waiting).wrap(width, &margin(), &margin()));
                chosen = begin..lines.len();
            }
        };
        for of in &status.tasks {
            row(
                of.run.as_ref().map(|run| Running::Run(run.run)),
                task(of, now_ms),
            );
        }
        if status.more_tasks > 0 {
            row(
                None,
                (
                    format!("… {} more tasks", status.more_tasks),
                    Tone::Dim,
                    String::new(),
                ),
            );
        }
        for of in &status.jobs {
            row(Some(Running::Job(of.job)), job(of, now_ms));
        }
        if status.tasks.is_empty() && status.jobs.is_empty() {
            row(
                None,
                (
                    "no background task, no job".to_owned(),
                    Tone::Dim,
                    String::new(),
                ),
            );
        } else if may_stop && !all.is_empty() && self.chosen.is_none() {
            lines.extend(
                Line::of("↑ ↓ choose what runs, to stop it", Tone::Dim).wrap(
                    width,
                    &none(),
                    &margin(),
                ),
            );
        }
        (lines, chosen)
    }
}

fn stop(running: Running) -> Intent {
    match running {
        Running::Job(job) => Intent::StopJob(job),
        Running::Run(run) => Intent::verb(StopRun {
            run,
            ..StopRun::default()
        }),
    }
}

fn none() -> Line {
    Line::default()
}

fn margin() -> Line {
    Line::of("  ", Tone::Plain)
}

fn task(task: &BackgroundTaskStatus, now_ms: u64) -> (String, Tone, String) {
    let mut facts = Vec::new();
    let mut tone = Tone::Dim;
    if let Some(run) = &task.run {
        tone = Tone::Ok;
        facts.push(format!(
            "runs for {} ({})",
            left(now_ms.saturating_sub(run.since_ms)),
            run.trigger
        ));
    } else if let Some(off) = &task.off {
        tone = Tone::Failed;
        facts.push(format!("off until the next start: {off}"));
    } else if let Some(due) = task.next_due_ms {
        facts.push(format!("due in {}", left(due.saturating_sub(now_ms))));
    }
    if let Some(last) = &task.last {
        let reason = last
            .reason
            .as_ref()
            .map_or_else(String::new, |reason| format!(": {reason}"));
        facts.push(format!("last {}{reason}", last.state.replace('_', " ")));
    }
    (
        format!("task {} of {}", task.task, task.feature),
        tone,
        facts.join(" · "),
    )
}

/// With who owns it, its age and its memory.
fn job(job: &JobStatus, now_ms: u64) -> (String, Tone, String) {
    let took = duration(Duration::from_secs(
        now_ms.saturating_sub(job.since_ms) / 1000,
    ));
    let rest = left(job.until_ms.saturating_sub(now_ms));
    let memory = job
        .memory
        .map_or_else(String::new, |memory| format!(" · {}", bytes(memory)));
    let starter = match (&job.call, job.run) {
        (Some(call), _) => format!(", by call {call}"),
        (None, Some(run)) => format!(", by run {run} of a task"),
        (None, None) => String::new(),
    };
    let text = format!(
        "{} · {took}, at most {rest} more{memory} · of {}{starter}",
        job.command, job.feature
    );
    (format!("job {}", job.job), Tone::Ok, text)
}

fn entry(is_chosen: bool, label: &str, tone: Tone, text: &str, width: usize) -> Vec<Line> {
    let sign = if is_chosen {
        Line::of("▶ ", Tone::Strong)
    } else {
        none()
    };
    let mut line = sign.with(label, tone);
    if !text.is_empty() {
        line = line.with(" · ", Tone::Dim).with(text, Tone::Plain);
    }
    line.wrap(width, &none(), &margin())
}
