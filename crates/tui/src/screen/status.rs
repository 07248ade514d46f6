//! The line that says what the pod does.

use super::exchange::ConnectionState;
use super::fold::TurnClock;
use crate::count::{count, duration};
use crate::line::Line;
use crate::style::Tone;
use crate::transcript::{self, WAITING};
use client::model::is_context_full;
use protocol::status::{ModelRetry, State, Status};
use std::time::Duration;

/// The sandbox of a pod that was not told otherwise.
const DEFAULT_SANDBOX: &str = "workspace-write";

/// How a pod that does not run is started from its screen.
const AGAIN: &str = " · Enter starts it again";

/// Of the model's window, from which on it is worth a look.
const FULL: u64 = 80;

/// Counts down to the next request to a model that could not be reached: the pod tells the time once.
#[derive(Debug, Default)]
pub(super) struct RetryClock {
    /// What the pod told, and when that was seen first.
    told: Option<(ModelRetry, u64)>,
}

impl RetryClock {
    /// Follows what the pod tells; gives the seconds that are left, rounded up.
    pub(super) fn left_s(&mut self, wait: Option<&ModelRetry>, now_ms: u64) -> Option<u64> {
        let since = match (&self.told, wait) {
            (Some((told, since)), Some(wait)) if told == wait => *since,
            (_, wait) => {
                self.told = wait.map(|wait| (wait.clone(), now_ms));
                now_ms
            }
        };
        wait.map(|wait| {
            wait.retry_in_s
                .saturating_sub(now_ms.saturating_sub(since) / 1000)
        })
    }

    /// Milliseconds until another number is shown.
    pub(super) fn changes_in(&self, now_ms: u64) -> Option<u64> {
        let (wait, since) = self.told.as_ref()?;
        let age = now_ms.saturating_sub(*since);
        (age / 1000 < wait.retry_in_s).then_some(1000 - age % 1000)
    }
}

/// What the pod does, in a few words, and how they are shown.
pub(super) fn state(
    status: &Status,
    connection: &ConnectionState,
    turn: Option<TurnClock>,
    retry_in_s: Option<u64>,
    now_ms: u64,
) -> (String, Tone) {
    if let Some(gone) = gone(connection, now_ms) {
        return gone;
    }
    if let Some(disk) = &status.disk {
        return (format!("the disk refuses writes: {disk}"), Tone::Failed);
    }
    if !status.approvals.is_empty() {
        return (WAITING.to_owned(), Tone::Waiting);
    }
    if let Some(held) = &status.held {
        let when = if status.state == State::Working {
            "will be held"
        } else {
            "held"
        };
        return match (held.cause.as_str(), held.budget.as_deref()) {
            _ if is_context_full(status) => (
                "waiting for you: the context is full".to_owned(),
                Tone::Waiting,
            ),
            ("budget", Some("pod")) => (
                format!("waiting for you (/more): {}", held.reason),
                Tone::Waiting,
            ),
            ("budget", _) => (
                format!("waiting for you (/resume): {}", held.reason),
                Tone::Waiting,
            ),
            (_, _) => (format!("{when}: {}", held.reason), Tone::Refused),
        };
    }
    if let Some(wait) = &status.model_wait {
        let when = match retry_in_s {
            None => String::new(),
            Some(0) => "; next attempt now".to_owned(),
            Some(seconds) => format!(
                "; next attempt in {}",
                duration(Duration::from_secs(seconds))
            ),
        };
        let passed = |since_ms| {
            format!(
                " for {}",
                duration(Duration::from_secs(now_ms.saturating_sub(since_ms) / 1000))
            )
        };
        let since = wait.since_ms.map(passed).unwrap_or_default();
        return (
            format!("waiting for the model{since}: {}{when}", wait.reason),
            Tone::Refused,
        );
    }
    match status.state {
        State::Working | State::Waiting => {
            let since = turn.filter(|_| *connection == ConnectionState::Live);
            let time = since.map_or_else(String::new, |turn| {
                format!(" {}", clock(now_ms.saturating_sub(turn.since_us / 1000)))
            });
            (format!("working{time}"), Tone::Ok)
        }
        State::Held => (transcript::state(State::Held).to_owned(), Tone::Refused),
        other => (transcript::state(other).to_owned(), Tone::Dim),
    }
}

/// Why the pod does nothing here.
fn gone(connection: &ConnectionState, now_ms: u64) -> Option<(String, Tone)> {
    match connection {
        ConnectionState::Lost(why) => {
            let text = format!("connection lost, connecting again: {why}");
            Some((text, Tone::Failed))
        }
        ConnectionState::Ended(Some(why)) => Some((format!("ended: {why}{AGAIN}"), Tone::Failed)),
        ConnectionState::Ended(None) => Some((format!("ended{AGAIN}"), Tone::Dim)),
        ConnectionState::Died(at) => {
            let ago = duration(Duration::from_secs(now_ms.saturating_sub(*at) / 1000));
            let text = format!("the process died {ago} ago{AGAIN}");
            Some((text, Tone::Failed))
        }
        ConnectionState::Live | ConnectionState::Recorded => None,
    }
}

/// Minutes and seconds: `0:42`, `1:02:03`.
fn clock(ms: u64) -> String {
    let seconds = ms / 1000 % 60;
    let minutes = ms / 60_000;
    match minutes {
        0..60 => format!("{minutes}:{seconds:02}"),
        _ => format!("{}:{:02}:{seconds:02}", minutes / 60, minutes % 60),
    }
}

/// Billionths of a dollar, as people read them.
pub(super) fn dollars(billionths: u64) -> String {
    let cents = billionths / 10_000_000;
    if cents == 0 {
        format!("${:.4}", billionths as f64 / 1e9)
    } else {
        format!("${}.{:02}", cents / 100, cents % 100)
    }
}

/// A model without its provider, or that it answers from a script.
#[must_use]
pub fn short_model(model: &str) -> &str {
    match model.split_once('/') {
        _ if model.starts_with("scripted:") => "scripted",
        Some((_, own)) if !model.starts_with("record:") => own,
        _ => model,
    }
}

/// A number of tokens, short.
pub(super) fn tokens(number: u64) -> String {
    match number {
        0..1000 => format!("{number} tokens"),
        1000..1_000_000 => format!("{}k tokens", number / 1000),
        _ => format!("{:.1}M tokens", number as f64 / 1e6),
    }
}

/// The line in at most `width` columns: what is least important goes first.
pub(super) fn line(
    status: &Status,
    mode: Option<&str>,
    state: &(String, Tone),
    others: usize,
    width: usize,
) -> Line {
    let sandbox = Some(&status.host.sandbox)
        .filter(|sandbox| !sandbox.is_empty() && *sandbox != DEFAULT_SANDBOX);
    let used = status.usage.input.saturating_add(status.usage.output);
    let mut facts: Vec<(String, Tone)> = mode
        .map(|mode| (mode.to_owned(), Tone::Strong))
        .into_iter()
        .collect();
    let fewest = facts.len() + 2;
    facts.extend([(status.pod.clone(), Tone::Strong), state.clone()]);
    let wait = if others == 1 { "waits" } else { "wait" };
    let others =
        (others > 0).then(|| format!("{} {wait} for you (F4)", count(others as u64, "other pod")));
    facts.extend(others.map(|text| (text, Tone::Waiting)));
    facts.extend(sandbox.map(|sandbox| (format!("sandbox {sandbox}"), Tone::Refused)));
    facts.extend(
        (!status.queued.is_empty())
            .then(|| (format!("{} queued", status.queued.len()), Tone::Plain)),
    );
    facts.extend(
        (!status.jobs.is_empty()).then(|| (count(status.jobs.len() as u64, "job"), Tone::Plain)),
    );
    facts.extend(
        (!status.model.is_empty()).then(|| (short_model(&status.model).to_owned(), Tone::Dim)),
    );
    let percent = status.context.as_ref().and_then(|context| context.percent);
    facts.extend(percent.map(|percent| {
        let tone = if percent >= FULL {
            Tone::Refused
        } else {
            Tone::Dim
        };
        (format!("context {percent} %"), tone)
    }));
    facts.extend(status.cost.map(|cost| (dollars(cost), Tone::Dim)));
    facts.extend((used > 0).then(|| (tokens(used), Tone::Dim)));
    facts.extend(
        status
            .host
            .branch
            .iter()
            .map(|branch| (format!("branch {branch}"), Tone::Dim)),
    );
    facts.extend((status.clients > 1).then(|| (count(status.clients, "client"), Tone::Dim)));
    facts.push(("F1 keys".to_owned(), Tone::Dim));
    let whole = |facts: &[(String, Tone)]| {
        let mut line = Line::default();
        for (at, (text, tone)) in facts.iter().enumerate() {
            line = line
                .with(if at == 0 { "" } else { " · " }, Tone::Dim)
                .with(text, *tone);
        }
        line
    };
    while facts.len() > fewest && whole(&facts).width() > width {
        facts.pop();
    }
    whole(&facts).cut(width)
}

/// Time that is left, rounded to what matters.
pub(super) fn left(ms: u64) -> String {
    duration(Duration::from_secs(ms.div_ceil(1000)))
}
