//! Background tasks and jobs of a pod, one line each.

use super::escape::line;
use pod::session::restore::utc;
use protocol::status::{BackgroundTaskStatus, EndedRunStatus, JobStatus, OpenRunStatus};
use std::time::Duration;
use tui::count;

/// Characters of a reason that are shown.
const REASON: usize = 200;

/// Characters of a job's command that are shown.
const COMMAND: usize = 80;

/// Failures that are this old are not counted: a day.
const RECENT_MS: u64 = 24 * 60 * 60 * 1000;

/// What a task does now, how its newest run ended, and how often it failed. `hosted`: a process has the pod.
pub(crate) fn task_line(task: &BackgroundTaskStatus, hosted: bool, now_ms: u64) -> String {
    let mut parts = vec![now_text(task, hosted, now_ms)];
    parts.extend(task.last.as_ref().map(|last| last_text(last, now_ms)));
    let failures = task
        .failures_ms
        .iter()
        .filter(|at| now_ms.saturating_sub(**at) < RECENT_MS)
        .count();
    parts.extend((failures > 1).then(|| format!("{failures} failures in the last 24 hours")));
    parts.retain(|part| !part.is_empty());
    let about = if parts.is_empty() {
        "has not run".to_owned()
    } else {
        parts.join("; ")
    };
    format!(
        "{} {}: {about}",
        line(&task.feature, REASON),
        line(&task.task, REASON)
    )
}

/// A job that runs: its command, its owner, and for how long.
pub(crate) fn job_line(job: &JobStatus, now_ms: u64) -> String {
    format!(
        "{:>4}  {}: {}",
        job.job,
        line(&job.command, COMMAND),
        job_text(job, now_ms)
    )
}

/// The owner of a job, how long it runs, and when it is stopped.
pub(crate) fn job_text(job: &JobStatus, now_ms: u64) -> String {
    let JobStatus {
        feature,
        call,
        run,
        since_ms,
        until_ms,
        ..
    } = job;
    let by = match (call, run) {
        (Some(call), _) => format!("call {}", line(call, REASON)),
        (None, Some(run)) => format!("run {run}"),
        (None, None) => "-".to_owned(),
    };
    let age = ago(*since_ms, now_ms);
    let left = ago(now_ms, *until_ms);
    format!(
        "of {} ({by}), runs for {age}, is stopped in {left} at the latest",
        line(feature, REASON)
    )
}

/// A run as its pod numbers it, with what made it due: `run 7, interval, attempt 2`.
pub(crate) fn run_text(run: &OpenRunStatus) -> String {
    let OpenRunStatus {
        run,
        trigger,
        attempt,
        ..
    } = run;
    let attempt = if *attempt > 1 {
        format!(", attempt {attempt}")
    } else {
        String::new()
    };
    format!("run {run}, {}{attempt}", word(trigger))
}

fn now_text(task: &BackgroundTaskStatus, hosted: bool, now_ms: u64) -> String {
    match (&task.run, &task.off, task.next_due_ms) {
        (Some(run), _, _) if hosted => {
            format!("runs for {} ({})", ago(run.since_ms, now_ms), run_text(run))
        }
        (Some(run), _, _) => format!(
            "run {} has no end; the next start records it as interrupted",
            run.run
        ),
        (None, Some(why), _) => format!("off until the next start: {}", line(why, REASON)),
        (None, None, Some(due)) if due > now_ms => {
            format!(
                "next run in {} ({})",
                ago(now_ms, due),
                utc(due.saturating_mul(1000))
            )
        }
        (None, None, Some(_)) => "waits for other tasks".to_owned(),
        (None, None, None) if hosted => "no run is due".to_owned(),
        (None, None, None) => String::new(),
    }
}

fn last_text(last: &EndedRunStatus, now_ms: u64) -> String {
    let why = last
        .reason
        .as_ref()
        .map(|why| format!(": {}", line(why, REASON)))
        .unwrap_or_default();
    format!(
        "run {} {} {} ago{why}",
        last.run,
        word(&last.state),
        ago(last.at_ms, now_ms)
    )
}

/// `timed_out` as `timed out`.
fn word(word: &str) -> String {
    if word == "orphaned" {
        "interrupted".to_owned()
    } else {
        line(word, REASON).replace('_', " ")
    }
}

fn ago(from_ms: u64, to_ms: u64) -> String {
    tui::duration(Duration::from_millis(to_ms.saturating_sub(from_ms)))
}

/// `3 background tasks`, with how many of them run.
pub(crate) fn tasks_text(tasks: &[BackgroundTaskStatus], more: u64, hosted: bool) -> String {
    let all = count((tasks.len() as u64).saturating_add(more), "background task");
    match tasks.iter().filter(|task| task.run.is_some()).count() {
        0 => all,
        open if hosted => format!("{all}, {open} running"),
        open => format!("{all}, {open} without an end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_780_000_000_000;

    fn task() -> BackgroundTaskStatus {
        BackgroundTaskStatus {
            feature: "user:press".to_owned(),
            task: "refresh".to_owned(),
            off: None,
            next_due_ms: None,
            run: None,
            last: None,
            failures_ms: Vec::new(),
        }
    }

    fn open() -> OpenRunStatus {
        OpenRunStatus {
            run: 7,
            trigger: "cron".to_owned(),
            attempt: 2,
            due_ms: NOW - 62_000,
            since_ms: NOW - 61_000,
        }
    }

    fn ended(state: &str, reason: Option<&str>) -> EndedRunStatus {
        let trigger = "restart".to_owned();
        let reason = reason.map(str::to_owned);
        EndedRunStatus {
            run: 6,
            trigger,
            attempt: 1,
            state: state.to_owned(),
            reason,
            at_ms: NOW - 3_600_000,
        }
    }

    #[test]
    fn a_line_for_each_state() {
        let failed = ended("timed_out", Some("no\nanswer"));
        for (task, hosted, expected) in [
            (
                BackgroundTaskStatus {
                    run: Some(open()),
                    ..task()
                },
                true,
                "runs for 1 min 1 s (run 7, cron, attempt 2)",
            ),
            (
                BackgroundTaskStatus {
                    run: Some(open()),
                    ..task()
                },
                false,
                "run 7 has no end; the next start records it as interrupted",
            ),
            (
                BackgroundTaskStatus {
                    next_due_ms: Some(NOW + 7_200_000),
                    last: Some(ended("completed", None)),
                    ..task()
                },
                true,
                "next run in 2 h (2026-05-28T22:26:40Z); run 6 completed 1 h ago",
            ),
            (
                BackgroundTaskStatus {
                    off: Some("failed 3 times within 1h".to_owned()),
                    last: Some(failed),
                    failures_ms: vec![NOW - RECENT_MS, NOW - RECENT_MS + 1, NOW - 1],
                    ..task()
                },
                true,
                "off until the next start: failed 3 times within 1h; run 6 timed out 1 h ago: no…; \
                 2 failures in the last 24 hours",
            ),
            (
                BackgroundTaskStatus {
                    next_due_ms: Some(NOW - 1),
                    ..task()
                },
                true,
                "waits for other tasks",
            ),
            (task(), true, "no run is due"),
            (task(), false, "has not run"),
        ] {
            assert_eq!(
                task_line(&task, hosted, NOW),
                format!("user:press refresh: {expected}")
            );
        }
    }

    #[test]
    fn a_sum_of_all_tasks() {
        let running = BackgroundTaskStatus {
            run: Some(open()),
            ..task()
        };
        assert_eq!(tasks_text(&[task()], 0, true), "1 background task");
        assert_eq!(
            tasks_text(&[running.clone(), task()], 3, true),
            "5 background tasks, 1 running"
        );
        assert_eq!(
            tasks_text(&[running], 0, false),
            "1 background task, 1 without an end"
        );
    }
}
