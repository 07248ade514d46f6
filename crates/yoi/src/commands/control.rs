//! `yoi pause`, `yoi resume`, `yoi cancel`, `yoi compact` and `yoi stop`: what a person asks of a live pod.

use crate::cli::{CompactArgs, PodArgs, ResumeArgs, StopArgs};
use crate::commands::host_process::HostProcess;
use crate::commands::live::live;
use crate::show::out;
use crate::socket::{LiveClient, Reached, block_on, owner};
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use pod::session::summary::Summary;
use protocol::method::{Cancel, Compact, Done, Pause, Resume, Shutdown, Verb};
use protocol::status::{State, Status};
use rustix::process::Signal;
use session_store::{Owner, Reader};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a pod may take to end. A host leaves 20 s after it was asked.
const ENDS: Duration = Duration::from_secs(40);

/// How long one that is to leave at once may take before it is killed, and the time between its two signals.
const LEAVES: Duration = Duration::from_secs(10);
const APART: Duration = Duration::from_millis(50);

/// How often the lock of a pod that ends is looked at.
const LOOK: Duration = Duration::from_millis(10);

pub(crate) fn pause(args: &PodArgs, env: &Env) -> Result<Exit, Failure> {
    tell(&args.name, env, "yoi pause", Pause::default())
}

pub(crate) fn resume(args: &ResumeArgs, env: &Env) -> Result<Exit, Failure> {
    let resume = Resume {
        more: args.more,
        ..Resume::default()
    };
    tell(&args.name, env, "yoi resume", resume)
}

pub(crate) fn cancel(args: &PodArgs, env: &Env) -> Result<Exit, Failure> {
    tell(&args.name, env, "yoi cancel", Cancel::default())
}

pub(crate) fn compact(args: &CompactArgs, env: &Env) -> Result<Exit, Failure> {
    let compact = Compact {
        drop_turns: args.drop_turns,
        ..Compact::default()
    };
    tell(&args.name, env, "yoi compact", compact)
}

/// What a verb does, given the state before and the pod's answer.
pub(super) fn said(verb: &Verb, name: &str, before: &Status, done: &Done) -> String {
    if let Some(unchanged) = unchanged(verb, name, before, done) {
        return unchanged;
    }
    match verb {
        Verb::Pause(_) => paused(name, before),
        Verb::Resume(_) if before.held.is_none() => format!("{name} asks the model again now"),
        Verb::Resume(_) => format!("{name} is resumed"),
        Verb::Cancel(_) => format!("the turn of {name} is being cancelled"),
        Verb::Compact(compact) => compacted(name, before, compact.drop_turns),
        Verb::Pin(_) => format!("{name}: pinned"),
        Verb::Unpin(unpin) => format!("{name}: pin {} is removed", unpin.pin),
        Verb::ForgetRules(_) | Verb::Withdraw(_) | Verb::MoveInput(_) | Verb::StopRun(_) => {
            format!("{name}: done")
        }
    }
}

/// Why a verb changes nothing, given the state before and the pod's answer; none if it changes something.
pub(super) fn unchanged(verb: &Verb, name: &str, before: &Status, done: &Done) -> Option<String> {
    if let Some(why) = &done.unchanged {
        return Some(format!("{name}: {why}; nothing changed"));
    }
    let works = matches!(before.state, State::Working | State::Waiting) || before.turn.is_some();
    let held = before.held.as_ref();
    match (verb, &before.model_wait) {
        (Verb::Pause(_), _)
            if before.state == State::Held && held.is_some_and(|held| held.cause == PERSON) =>
        {
            Some(format!(
                "{name} was held already; nothing changed; `yoi resume {name}` continues it"
            ))
        }
        (Verb::Resume(_), None) if held.is_none() => {
            Some(format!("{name} was not held; nothing changed"))
        }
        (Verb::Resume(_), Some(wait)) if held.is_none() && wait.retry_in_s <= 1 => Some(format!(
            "{name} was not held; it asks the model again already"
        )),
        (Verb::Cancel(_), _) if !works => {
            Some(format!("{name} has no running turn; nothing changed"))
        }
        _ => None,
    }
}

/// The cause of a hold that a person asked for.
const PERSON: &str = "person";

/// What a pause does, given the state before.
fn paused(name: &str, before: &Status) -> String {
    match before.state {
        State::Working => {
            format!("{name} will be held before its next request; `yoi resume {name}` continues it")
        }
        State::Idle | State::Waiting | State::Held | State::Stopping | State::Unknown => {
            format!("{name} is held; `yoi resume {name}` continues it")
        }
    }
}

/// What the wish does, given the state before.
fn compacted(name: &str, before: &Status, drop_turns: bool) -> String {
    let what = if drop_turns {
        "old steps and the oldest turns leave"
    } else {
        "old steps leave"
    };
    let when = match before.state {
        State::Working | State::Waiting => "the next request of the running turn",
        State::Idle | State::Held | State::Stopping | State::Unknown => "the next request",
    };
    format!("{name}: {what} {when}; `yoi log {name}` shows what left, and keeps it")
}

/// Has a live pod do it, and says what that does, given its state before.
fn tell(
    name: &str,
    env: &Env,
    command: &'static str,
    verb: impl Into<Verb>,
) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(name)?;
    let verb = verb.into();
    block_on(async {
        let mut live = live(&pods, &name, command).await?;
        let before = live.status().await?;
        let done = live.tell(|cmd_id| verb.clone().with_cmd_id(cmd_id)).await?;
        out::line(&said(&verb, &name, &before, &done));
        Ok(Exit::Done)
    })?
}

pub(crate) fn stop(args: &StopArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let dir = pods.dir(&name);
    block_on(async {
        let (owner, mut live) = match LiveClient::reach(&dir, &name, "yoi stop").await? {
            Reached::Live(live) => (live.owner.clone(), Some(live)),
            Reached::Locked(owner)
            | Reached::Silent(owner, _)
            | Reached::Incompatible(owner, _) => (owner, None),
            Reached::Free => {
                out::line(&format!("{name} is not running"));
                return Ok(Exit::Done);
            }
        };
        let asked = match &mut live {
            Some(live) => asked(live, args.now).await?,
            None => false,
        };
        if !asked {
            signalled(&owner, &dir, args.now).await?;
        }
        if !released(&dir, owner.pid, ENDS).await? {
            let help =
                format!("`yoi stop {name} --now` kills running calls instead of waiting for them");
            let pid = owner.pid;
            let help = if args.now {
                format!("`kill -KILL {pid}` ends the process as soon as the kernel allows it")
            } else {
                help
            };
            return Err(Failure::new(
                Exit::Busy,
                format!("{name} is still stopping (process {pid})"),
            )
            .help(help));
        }
        let told = match &mut live {
            Some(live) if asked => live.ended().await,
            Some(_) | None => None,
        };
        stopped(&name, recorded(&dir)?, told)
    })?
}

/// What the journal of a pod that has ended says about its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordedEnd {
    There,
    Missing,
}

fn recorded(dir: &Path) -> Result<RecordedEnd, Failure> {
    let summary = Reader::open(dir)
        .ok()
        .and_then(|reader| Summary::read(&reader, || {}).ok());
    let state = summary.unwrap_or_default().state;
    // Another process may have the pod by now.
    let missing = (state.hosted || state.turn_open) && owner(dir)?.is_none();
    Ok(if missing {
        RecordedEnd::Missing
    } else {
        RecordedEnd::There
    })
}

/// Says that a pod is stopped, and what `yoi status` says about it. `told`: why it could not end in good order.
fn stopped(name: &str, end: RecordedEnd, told: Option<Failure>) -> Result<Exit, Failure> {
    let kept = "accepted inputs are kept";
    match (end, told) {
        (RecordedEnd::There, _) => out::line(&format!("{name} is stopped")),
        (
            RecordedEnd::Missing,
            Some(Failure {
                exit,
                message,
                help: _,
            }),
        ) => {
            let text = format!("{name} is stopped, but its end could not be recorded: {message}");
            let help = format!("{kept}; fix the cause, then `yoi start {name}` recovers it");
            return Err(Failure::new(exit, text).help(help));
        }
        (RecordedEnd::Missing, None) => {
            out::line(&format!(
                "{name} is stopped, but could not record its end; {kept}; `yoi start {name}` recovers it"
            ));
        }
    }
    Ok(Exit::Done)
}

/// Whether the process of the pod took the request; it may end before it answers.
async fn asked(live: &mut LiveClient, now: bool) -> Result<bool, Failure> {
    // One that does not answer must not find a request later, in addition to a signal.
    if live
        .status()
        .await
        .is_err_and(|failure| failure.exit == Exit::Busy)
    {
        return Ok(false);
    }
    match live.tell(|cmd_id| Shutdown { now, cmd_id }).await {
        Ok(_done) => Ok(true),
        Err(failure) => match failure.exit {
            Exit::Unavailable => Ok(true),
            Exit::Busy => Ok(false),
            _ => Err(failure),
        },
    }
}

/// Ends a process that does not answer, by what its socket would have asked of it.
async fn signalled(owner: &Owner, dir: &Path, now: bool) -> Result<(), Failure> {
    let Some(process) = HostProcess::of(owner, dir) else {
        return Ok(());
    };
    process.signal(Signal::TERM);
    process.signal(Signal::CONT);
    if now {
        // Two of a kind that arrive together are one.
        sleep(APART).await;
        process.signal(Signal::TERM);
        if !released(dir, owner.pid, LEAVES).await? {
            process.signal(Signal::KILL);
        }
    }
    Ok(())
}

/// Waits until the process has let go of the pod; whether it has.
async fn released(dir: &Path, pid: u32, bound: Duration) -> Result<bool, Failure> {
    let began = Instant::now();
    while owner(dir)?.is_some_and(|owner| owner.pid == pid) {
        if began.elapsed() >= bound {
            return Ok(false);
        }
        sleep(LOOK).await;
    }
    Ok(true)
}
