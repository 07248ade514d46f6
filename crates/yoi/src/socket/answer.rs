//! What each request does to the pod. Knows no sockets.

use super::live_pod::LivePod;
use super::message::{Answer, Ask, LiveStatus, Send};
use crate::exit::{Exit, Failure};
use pod::control::{Accepted, NewInput, SubmitError};
use pod::record::{InputLimits, Who};
use rustix::process::Signal;
use std::time::Duration;

/// Characters of a client's name that are kept.
const MAX_CLIENT: usize = 64;

/// Bytes of the lines of an undo.
const MAX_UNDONE: usize = 1 << 20;

/// Between two signals of the same kind.
const APART: Duration = Duration::from_millis(50);

/// How far a request is.
pub(super) enum Progress {
    Answered(Answer),
    /// The input is durable; whether the client waits for the end of its turn.
    Accepted(Accepted, bool),
    /// The pod was asked to end.
    Stopping,
}

impl Progress {
    /// Waits for the end of an accepted input's turn.
    pub(super) async fn ended(pod: &LivePod, accepted: Accepted) -> Self {
        let input = accepted.input;
        Self::Answered(match accepted.end().await {
            Ok(end) => Answer::Ended { end: Box::new(end), folded: *pod.client.folded().borrow() },
            Err(SubmitError::NotWaiting(_)) => Answer::failed(Exit::Failed, format!("input {input} was withdrawn")),
            Err(error) => Answer::Failed(failure(&error)),
        })
    }

    /// Waits for the end of the pod.
    pub(super) async fn stopped(pod: &LivePod) -> Self {
        let mut end = pod.end.clone();
        let told = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        Self::Answered(match told {
            Some(Err(failure)) => Answer::Failed(failure),
            Some(Ok(())) | None => Answer::Done,
        })
    }
}

pub(super) async fn carry_out(pod: &LivePod, ask: Ask, client: &str, uid: u32) -> Progress {
    let client: String = client.chars().filter(|c| !c.is_control()).take(MAX_CLIENT).collect();
    let by = || Some(Who { client: client.clone(), role: "driver".to_owned(), uid, name: None });
    let done = match ask {
        Ask::Status => {
            return Progress::Answered(match pod.client.status().await {
                Some(status) => {
                    Answer::Status(Box::new(LiveStatus::of(status, &pod.facts, pod.reloads.borrow().clone())))
                }
                None => Answer::Failed(failure(&SubmitError::Closed)),
            });
        }
        Ask::Send(Send { text, mode, key, limits, wait }) => {
            let limits = Some(limits).filter(|limits| *limits != InputLimits::default());
            let input = NewInput { text, mode, key, limits, by: by() };
            return match pod.client.send(input).await {
                Ok(accepted) => Progress::Accepted(accepted, wait),
                Err(error) => Progress::Answered(Answer::Failed(failure(&error))),
            };
        }
        Ask::Cancel { input: Some(input) } => pod.client.cancel_input(input, by()).await,
        Ask::Cancel { input: None } => {
            pod.client.cancel().await;
            Ok(())
        }
        Ask::Pause => pod.client.pause(by()).await,
        Ask::Resume => pod.client.resume(by()).await,
        Ask::Stop { now } => {
            return match stop(now).await {
                Answer::Done => Progress::Stopping,
                failed => Progress::Answered(failed),
            };
        }
        Ask::Undo { to } => return Progress::Answered(undo(pod, to).await),
    };
    Progress::Answered(match done {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Failed(failure(&error)),
    })
}

/// As a supervisor of processes stops one: SIGTERM ends the turn and the pod in good order, a second one leaves.
async fn stop(now: bool) -> Answer {
    let asked = signalled(Signal::TERM);
    if now && matches!(asked, Answer::Done) {
        // Two of a kind that arrive together are one.
        tokio::time::sleep(APART).await;
        return signalled(Signal::TERM);
    }
    asked
}

/// No turn begins meanwhile. A client that leaves does not interrupt it.
async fn undo(pod: &LivePod, to: u64) -> Answer {
    let turns = match pod.client.between_turns().await {
        Ok(turns) => turns,
        Err(error) => return Answer::Failed(failure(&error)),
    };
    let (undo, dir, name, runtime) = (pod.undo, pod.dir.clone(), pod.name.clone(), pod.runtime.clone());
    let done = pod.runtime.spawn_blocking(move || undo(&dir, &name, to, turns, &runtime)).await;
    match done {
        Ok(mut undone) => {
            let mut room = MAX_UNDONE;
            let shown = undone.lines.iter().take_while(|line| {
                room = room.saturating_sub(line.len());
                room > 0
            });
            let (shown, all) = (shown.count(), undone.lines.len());
            if shown < all {
                undone.lines.truncate(shown);
                undone.lines.push(format!("… {} more lines", all - shown));
            }
            Answer::Undone(undone)
        }
        Err(broken) => Answer::failed(Exit::Internal, broken.to_string()),
    }
}

fn signalled(signal: Signal) -> Answer {
    match rustix::process::kill_process(rustix::process::getpid(), signal) {
        Ok(()) => Answer::Done,
        Err(error) => Answer::failed(Exit::Internal, format!("the pod cannot signal itself: {error}")),
    }
}

fn failure(error: &SubmitError) -> Failure {
    match error {
        SubmitError::Blob(_) | SubmitError::Disk(_) => {
            Failure::new(Exit::Journal, error.to_string()).help("nothing was accepted; free disk space, then try again")
        }
        SubmitError::TooLong(_) | SubmitError::Unstorable(_) => Failure::new(Exit::Data, error.to_string())
            .help("save the text to a file in the project and name that file in the prompt"),
        SubmitError::Refused(reason) => Failure::new(Exit::Refused, format!("a hook refused the input: {reason}")),
        SubmitError::Busy => Failure::new(Exit::Busy, error.to_string()).help("try again when a turn has ended"),
        SubmitError::NotWaiting(_) => {
            Failure::new(Exit::Usage, error.to_string()).help("`yoi status NAME` lists the inputs that wait")
        }
        SubmitError::Over(_) => Failure::new(Exit::Failed, error.to_string()).help("`yoi log NAME` shows its answer"),
        SubmitError::Required(_) => {
            Failure::new(Exit::Config, error.to_string()).help("run `yoi start NAME` again once the key is set")
        }
        SubmitError::Working => Failure::new(Exit::Busy, "the pod is working, and undo is possible only between turns")
            .help("`yoi cancel NAME` ends the turn"),
        SubmitError::Closed => Failure::new(Exit::Unavailable, "the pod is stopping")
            .help("`yoi start NAME` starts it again once it has stopped"),
    }
}
