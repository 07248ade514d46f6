//! Live pods as commands meet them: connected to by name, and the words for what stands in the way.

use crate::commands::status::drop_turns;
use crate::show::escape::line;
use crate::show::question::end;
use crate::socket::{LiveClient, Reached, hold};
use client::model::is_context_full;
use host::exit::{Exit, Failure};
use host::hosting::lost_host::{HostEnd, LostHost, lost_host};
use host::hosting::session_location::{now, open_failure};
use host::pods::Pods;
use pod::record::{HoldCause, InputId};
use protocol::method::Role;
use protocol::status::{ApprovalStatus, ModelRetry, State, Status};
use session_store::OpenError;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tui::duration;

/// Characters of the reason why a model could not be reached.
pub(crate) const WHY: usize = 120;

/// How often the process of a pod is looked for whose connection was lost.
pub(crate) const LOST_LOOK: Duration = Duration::from_millis(500);

/// Characters of the reason why a process ended.
const REASON: usize = 300;

/// Connects to a pod; none if it is not running.
pub(crate) async fn reach(
    pods: &Pods,
    name: &str,
    command: &'static str,
) -> Result<Option<LiveClient>, Failure> {
    reach_as(pods, name, command, Role::Driver).await
}

async fn reach_as(
    pods: &Pods,
    name: &str,
    command: &'static str,
    role: Role,
) -> Result<Option<LiveClient>, Failure> {
    let dir = pods.dir(name);
    match LiveClient::reach_as(&dir, name, command, role).await? {
        Reached::Live(live) => Ok(Some(*live)),
        Reached::Free => Ok(None),
        Reached::Silent(_, failure) | Reached::Incompatible(_, failure) => Err(failure),
        Reached::Locked(owner) => {
            let pid = owner.pid;
            Err(open_failure(
                &OpenError::Busy {
                    dir,
                    owner: Some(owner),
                },
                now(),
                Some(name),
            )
            .help(format!(
                "`yoi stop {name} --now` or `kill {pid}` ends that process"
            )))
        }
    }
}

/// Connects to a pod that has to be running.
pub(crate) async fn live(
    pods: &Pods,
    name: &str,
    command: &'static str,
) -> Result<LiveClient, Failure> {
    live_as(pods, name, command, Role::Driver).await
}

/// As [`live`], in another role than that of a driver.
pub(crate) async fn live_as(
    pods: &Pods,
    name: &str,
    command: &'static str,
    role: Role,
) -> Result<LiveClient, Failure> {
    reach_as(pods, name, command, role).await?.ok_or_else(|| {
        Failure::new(Exit::Unavailable, format!("{name} is not running")).help(format!(
            "`yoi start {name}` starts the pod; `yoi run --pod {name} \"PROMPT\"` runs one prompt in the pod"
        ))
    })
}

/// Why an accepted input is not worked on, if it is not.
pub(crate) fn waits(status: &Status, name: &str) -> Option<String> {
    let Some(held) = status.held.as_ref() else {
        let approval = status.approvals.first()?;
        let asked = approval_line(approval, WHY);
        return Some(format!(
            "{name} waits for {asked}; the input waits until `yoi approve {name} {}`",
            approval.approval
        ));
    };
    let end = match hold(held).map(|hold| hold.cause) {
        Some(HoldCause::Required) => format!("`yoi start {name}` is run with the key"),
        _ if is_context_full(status) => format!("`{}`", drop_turns(name)),
        _ if held.budget.as_deref() == Some("pod") => format!("`yoi resume {name} --more`"),
        _ => format!("`yoi resume {name}`"),
    };
    // A pause of a pod that works takes effect at its next request.
    let when = if status.state == State::Working {
        "will be held before its next request"
    } else {
        "is held"
    };
    Some(format!(
        "{name} {when}: {}; the input waits until {end}",
        held.reason
    ))
}

/// What a person is asked, in one line of about so many characters, and when that ends.
pub(crate) fn approval_line(approval: &ApprovalStatus, chars: usize) -> String {
    let asked = line(
        &format!("approval {}: {}", approval.approval, approval.question),
        chars,
    );
    end(approval.expires_ms, Some(now() / 1000))
        .map_or_else(|| asked.clone(), |end| format!("{asked}; {end}"))
}

/// What a pod waits for whose model could not be reached, and for how long.
pub(crate) fn model_wait(wait: &ModelRetry) -> String {
    let next = match wait.retry_in_s {
        0 => "the next attempt is under way".to_owned(),
        seconds => format!("the next attempt is in {seconds} s"),
    };
    let passed = |since_ms: u64| {
        duration(Duration::from_secs(
            (now() / 1000).saturating_sub(since_ms) / 1000,
        ))
    };
    let since = wait
        .since_ms
        .map(|since_ms| format!("; no answer for {}", passed(since_ms)))
        .unwrap_or_default();
    format!("for the model: {}; {next}{since}", line(&wait.reason, WHY))
}

/// How the process of a pod ended that could not record its end.
pub(crate) fn lost(dir: &Path) -> String {
    let LostHost { end, at } = lost_host(dir);
    let at = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let ago = at.map_or_else(String::new, |at| {
        let passed = Duration::from_micros(now()).saturating_sub(at);
        format!(" {} ago", duration(Duration::from_secs(passed.as_secs())))
    });
    match end {
        HostEnd::Failed { exit, why } => {
            format!(
                "its process ended{ago} with exit code {exit}: {}",
                line(&why, REASON)
            )
        }
        HostEnd::LastWords(words) => {
            format!(
                "its process ended{ago} with the words: {}",
                line(&words, REASON)
            )
        }
        HostEnd::MachineStarted => "the machine was started again".to_owned(),
        HostEnd::Unknown => {
            "its process was killed, probably by signal 9 or for lack of memory".to_owned()
        }
    }
}

/// What failed while the end of an input's turn was waited for.
pub(crate) fn kept(failure: Failure, name: &str, input: InputId) -> Failure {
    let turn = format!("input {input} is kept; `yoi log {name}` shows its turn");
    match failure.exit {
        Exit::Unavailable => {
            failure.help(format!("{turn}, `yoi start {name}` starts the pod again"))
        }
        Exit::Busy => failure.help(turn),
        _ => failure,
    }
}
