//! `yoi pause`, `yoi resume`, `yoi cancel` and `yoi stop`: what a person asks of a live pod.

use crate::cli::{PodArgs, StopArgs};
use crate::commands::live::{live, reach};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::Pods;
use crate::show::out;
use crate::socket::client::{block_on, owner};
use crate::socket::message::{Ask, LiveState};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long a pod may take to end. A host leaves 20 s after it was asked.
const ENDS: Duration = Duration::from_secs(40);

/// How often the lock of a pod that ends is looked at, once the pod closed its connections.
const LOOK: Duration = Duration::from_millis(10);

pub(crate) fn pause(args: &PodArgs, env: &Env) -> Result<Exit, Failure> {
    tell(args, env, "yoi pause", Ask::Pause, |name, state| match state {
        LiveState::Working => format!("{name} pauses before its next request; `yoi resume {name}` continues"),
        LiveState::Idle | LiveState::Held | LiveState::Stopping => {
            format!("{name} is paused; `yoi resume {name}` continues")
        }
    })
}

pub(crate) fn resume(args: &PodArgs, env: &Env) -> Result<Exit, Failure> {
    tell(args, env, "yoi resume", Ask::Resume, |name, _| format!("{name} is resumed"))
}

pub(crate) fn cancel(args: &PodArgs, env: &Env) -> Result<Exit, Failure> {
    tell(args, env, "yoi cancel", Ask::Cancel { input: None }, |name, state| match state {
        LiveState::Working => format!("the turn of {name} is being cancelled"),
        LiveState::Idle | LiveState::Held | LiveState::Stopping => format!("{name} has no running turn"),
    })
}

/// Asks a live pod, and says what that does, given its state before.
fn tell(
    args: &PodArgs,
    env: &Env,
    command: &'static str,
    ask: Ask,
    done: impl Fn(&str, LiveState) -> String,
) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    block_on(async {
        let mut live = live(&pods, &name, command).await?;
        let state = live.status().await?.state;
        live.tell(ask).await?;
        out::line(&done(&name, state));
        Ok(Exit::Done)
    })?
}

pub(crate) fn stop(args: &StopArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let dir = pods.dir(&name);
    block_on(async {
        let Some(mut live) = reach(&pods, &name, "yoi stop").await? else {
            out::line(&format!("{name} is not running"));
            return Ok(Exit::Done);
        };
        let pid = live.owner.pid;
        match live.tell(Ask::Stop { now: args.now }).await {
            // Its process may end before it answers.
            Err(failure) if failure.exit == Exit::Unavailable => {}
            told => told?,
        }
        let ended = timeout(ENDS, async {
            live.closed().await;
            released(&dir, pid).await
        });
        ended.await.unwrap_or_else(|_late| {
            Err(Failure::new(Exit::Busy, format!("{name} is still stopping (process {pid})"))
                .help(format!("`yoi stop {name} --now` does not wait for its tools")))
        })?;
        out::line(&format!("{name} is stopped"));
        Ok(Exit::Done)
    })?
}

/// Waits until the process has let go of the pod.
async fn released(dir: &Path, pid: u32) -> Result<(), Failure> {
    let began = Instant::now();
    while owner(dir)?.is_some_and(|owner| owner.pid == pid) && began.elapsed() < ENDS {
        sleep(LOOK).await;
    }
    Ok(())
}
