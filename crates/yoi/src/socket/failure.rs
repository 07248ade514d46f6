//! The words for what a live pod refuses, and for one that does not answer.

use super::owner;
use client::ClientError;
use host::exit::{Exit, Failure, Help};
use protocol::error::{Error, ErrorKind};
use protocol::method;
use session_store::Owner;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a process may hold its pod after it closed its connections, when it ends.
const ENDING: Duration = Duration::from_secs(2);

/// Characters of what could not be read.
const GARBLED: usize = 120;

/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The words for what failed between a command and this pod.
pub(crate) fn failure(error: ClientError, name: &str, owner: &Owner) -> Failure {
    let Owner { pid, .. } = owner;
    match error {
        ClientError::Refused(error) | ClientError::Dismissed(error) => refused(&error, name),
        ClientError::Silent(_) => {
            Failure::new(Exit::Busy, format!("{name} does not answer (process {pid})")).help(format!(
                "if a signal stopped the process, `kill -CONT {pid}` continues it; `yoi stop {name} --now` ends it"
            ))
        }
        ClientError::TooLong(_) => {
            let max = protocol::MAX_LINE / 1024;
            Failure::new(Exit::Data, format!("the input is too long for a running pod: over {max} KiB"))
                .help("save it to a file in the project and name that file in the prompt")
        }
        ClientError::Version(_) => another_version(name),
        ClientError::Garbled(what) => {
            let what: String = what.chars().take(GARBLED).collect();
            Failure::new(Exit::Unavailable, format!("{name} sent data that this version of yoi cannot read: {what}"))
                .help(restart(name))
        }
        ClientError::OutOfOrder { cursor, seq } => {
            Failure::new(Exit::Internal, format!("{name} sent record {seq} after record {cursor}"))
                .help(format!("`yoi log {name} --from {cursor}` shows the journal"))
        }
        ClientError::Behind { cursor, seq } => {
            let text = format!("{name} has only {seq} records now; record {cursor} was shown before");
            Failure::new(Exit::Unavailable, text).help(format!("`yoi attach {name}` shows the journal as it is now"))
        }
        ClientError::Removed | ClientError::AnotherSession => removed(name),
        ClientError::Unreachable(_)
        | ClientError::Io(_)
        | ClientError::Closed
        | ClientError::Cut
        | ClientError::Overrun
        | ClientError::Unanswered(_) => Failure::new(Exit::Unavailable, format!("{name}: {error}"))
            .help(format!("`yoi status {name}` shows its state")),
    }
}

fn refused(error: &Error, name: &str) -> Failure {
    let Error { kind, message } = error;
    let fail = |exit: Exit, help: String| Failure::new(exit, message.clone()).help(help);
    match kind {
        ErrorKind::Disk => fail(
            Exit::Journal,
            "nothing was accepted; free disk space, then try again".to_owned(),
        ),
        ErrorKind::TooLong => fail(
            Exit::Data,
            "save the text to a file in the project and name that file in the prompt".to_owned(),
        ),
        ErrorKind::Refused => Failure::new(
            Exit::Refused,
            format!("a hook refused the input: {message}"),
        ),
        ErrorKind::Failed => Failure::new(Exit::Failed, message.clone()),
        ErrorKind::NotAllowed => fail(
            Exit::Refused,
            "run this command in your own terminal".to_owned(),
        ),
        ErrorKind::Busy => fail(Exit::Busy, "try again when a turn has ended".to_owned()),
        ErrorKind::NotWaiting => fail(
            Exit::Usage,
            format!("`yoi status {name}` lists the inputs that wait"),
        ),
        ErrorKind::NoApproval => fail(
            Exit::Usage,
            format!("`yoi approve {name}` lists the calls that wait for approval"),
        ),
        ErrorKind::Over => fail(Exit::Failed, format!("`yoi log {name}` shows its answer")),
        ErrorKind::Required => fail(
            Exit::Config,
            format!(
                "`yoi resume {name}` lets it go on; if a key is missing, set it and run `yoi start {name}` again"
            ),
        ),
        ErrorKind::Budget => fail(
            Exit::Limit,
            format!(
                "`yoi resume {name} --more` allows as much again; `yoi status {name}` shows what else can be done"
            ),
        ),
        ErrorKind::Working => Failure::new(
            Exit::Busy,
            format!("{name} is working; undo is possible only between turns"),
        )
        .help(format!("`yoi cancel {name}` ends the turn")),
        ErrorKind::Closing => Failure::new(Exit::Unavailable, format!("{name} is stopping")).help(
            format!("`yoi start {name}` starts it again once it has stopped"),
        ),
        // The pod is older than the method.
        ErrorKind::Version | ErrorKind::Method => another_version(name),
        // What a person gave: a number of nothing, for example.
        ErrorKind::Params => Failure::new(Exit::Usage, format!("{name}: {message}")),
        ErrorKind::Parse | ErrorKind::Request | ErrorKind::Internal | ErrorKind::Unknown => {
            Failure::new(Exit::Internal, format!("{name}: {message}"))
        }
    }
}

/// The words for a pod whose directory is not there any more, or is another pod's.
pub(crate) fn removed(name: &str) -> Failure {
    Failure::new(Exit::Unavailable, format!("{name} was removed"))
        .help("unless it was purged, it is in the directory `trash` next to the pods")
}

fn another_version(name: &str) -> Failure {
    Failure::new(
        Exit::Unavailable,
        format!("{name} runs in another version of yoi"),
    )
    .help(restart(name))
}

fn restart(name: &str) -> String {
    format!("`yoi stop {name}` ends its process; `yoi start {name}` then starts it in this version")
}

/// The words for a closed connection. A process that ends closes it a moment before it lets go of the pod.
pub(super) async fn gone(dir: &Path, name: &str, before: &Owner) -> Failure {
    let pid = before.pid;
    let holds = || {
        owner(dir).is_ok_and(|owner| owner.is_some_and(|owner| owner.pid == pid))
            && authority::is_running(&ambient::claim(), pid)
    };
    let began = Instant::now();
    while holds() {
        if began.elapsed() >= ENDING {
            let text = format!("the connection to {name} was closed; the process {pid} still runs");
            return Failure::new(Exit::Busy, text)
                .help(format!("`yoi status {name}` shows its state"));
        }
        sleep(LOOK).await;
    }
    Failure::new(Exit::Unavailable, format!("the process of {name} ended"))
        .help(format!("`yoi log {name}` shows what was recorded"))
}

/// A failure of the pod's process, as a command reports it.
pub(crate) fn of_wire(failure: method::Failure) -> Failure {
    let method::Failure {
        exit,
        message,
        help,
    } = failure;
    let exits = [
        Exit::Usage,
        Exit::Data,
        Exit::Unavailable,
        Exit::Internal,
        Exit::Journal,
        Exit::Busy,
        Exit::Config,
    ];
    let exit = exits
        .into_iter()
        .find(|known| known.number() == exit)
        .unwrap_or(Exit::Failed);
    Failure {
        exit,
        message,
        help: help.map(Help::Text),
    }
}
