//! A prompt that runs: what waits for its end, and what its end is in the words of the protocol.

use crate::message::{FAILED, Id, RpcError};
use client::ClientError;
use client::connection::{Connection, hello};
use client::model::is_context_full;
use protocol::method::{Role, TurnEnded, Wait};
use protocol::record::Outcome;
use protocol::status::Status;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// This program, for the journal.
pub(super) const CLIENT: &str = "yoi acp";

/// How long a pod that is gone may take to come back.
pub(super) const BACK: Duration = Duration::from_secs(10);

/// How long to wait before a lost connection is made again.
const PAUSE: Duration = Duration::from_millis(200);

/// A prompt without its answer.
pub(super) struct Running {
    pub(super) id: Id,
    pub(super) input: u64,
    pub(super) is_cancelled: bool,
    pub(super) end: Option<Result<TurnEnded, ClientError>>,
    /// The newest record that is told before the answer.
    pub(super) upto: Option<u64>,
}

/// How the turn of an input ended.
pub(super) struct Waited {
    pub(super) input: u64,
    pub(super) end: Result<TurnEnded, ClientError>,
}

/// Why a pod would not work on an input, if it would not.
pub(super) fn held(status: &Status) -> Option<RpcError> {
    let held = status.held.as_ref().filter(|held| held.cause != "cancel")?;
    let name = &status.pod;
    let help = match held.cause.as_str() {
        "required" => format!("set what is missing, then run `yoi start {name}`"),
        _ if is_context_full(status) => "`/compact turns` leaves out the oldest turns".to_owned(),
        _ if held.budget.as_deref() == Some("pod") => "`/more` allows as much again".to_owned(),
        _ => "`/resume` continues it".to_owned(),
    };
    let message = format!("{name} is held: {}", held.reason);
    Some(RpcError::new(FAILED, message, &help))
}

/// Why a turn ended; an error if it has no answer that a person could take for one.
pub(super) fn stop_reason(outcome: &Outcome, pod: &str) -> Result<&'static str, RpcError> {
    let failed = |message: String, help: &str| Err(RpcError::new(FAILED, message, help));
    let again = "send the prompt again";
    match outcome.outcome.as_str() {
        "done" | "answered" | "empty" => Ok("end_turn"),
        "max_tokens" | "token_limit" | "context_limit" => Ok("max_tokens"),
        "step_limit" | "cost_limit" | "time_limit" => Ok("max_turn_requests"),
        "refused" => Ok("refusal"),
        "cancelled" => Ok("cancelled"),
        "model_failed" => failed(
            outcome.message.clone().unwrap_or_default(),
            outcome.help.as_deref().unwrap_or(again),
        ),
        "aborted" => failed(
            outcome.reason.clone().unwrap_or_default(),
            &format!("`yoi log {pod}` shows the turn"),
        ),
        other => failed(
            format!("the turn ended as {other}"),
            &format!("`yoi status {pod}` shows what is next"),
        ),
    }
}

/// Waits for the end of the turn that takes an input, over a connection of its own, and over a new one when that is lost.
pub(super) async fn wait(dir: PathBuf, input: u64) -> Waited {
    let mut until = Instant::now() + BACK;
    loop {
        let mut is_served = false;
        let end = waits(&dir, input, &mut is_served).await;
        if is_served {
            until = Instant::now() + BACK;
        }
        match end {
            Err(error) if error.may_pass() && Instant::now() < until => sleep(PAUSE).await,
            end => return Waited { input, end },
        }
    }
}

async fn waits(dir: &Path, input: u64, is_served: &mut bool) -> Result<TurnEnded, ClientError> {
    let (mut connection, _) = Connection::connect(dir, &hello(CLIENT, Role::Viewer)).await?;
    *is_served = true;
    let wait = Wait {
        input,
        until_asked: false,
    };
    let begun = connection.begin(&wait)?;
    connection.finish(&begun).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(word: &str) -> Outcome {
        Outcome {
            outcome: word.to_owned(),
            message: Some("no answer".to_owned()),
            help: Some("check the key".to_owned()),
            reason: Some("a gate".to_owned()),
            ..Outcome::default()
        }
    }

    #[test]
    fn each_end_of_a_turn_has_a_reason_or_an_error() {
        for (word, wanted) in [
            ("done", "end_turn"),
            ("empty", "end_turn"),
            ("max_tokens", "max_tokens"),
            ("token_limit", "max_tokens"),
            ("context_limit", "max_tokens"),
            ("step_limit", "max_turn_requests"),
            ("cost_limit", "max_turn_requests"),
            ("time_limit", "max_turn_requests"),
            ("refused", "refusal"),
            ("cancelled", "cancelled"),
        ] {
            assert_eq!(stop_reason(&outcome(word), "p"), Ok(wanted));
        }
        for (word, says) in [
            ("model_failed", "no answer; check the key"),
            ("aborted", "a gate; `yoi log p`"),
            ("interrupted", "the turn ended as interrupted"),
            ("tired", "the turn ended as tired"),
        ] {
            let error = stop_reason(&outcome(word), "p").unwrap_err();
            assert!(error.message.contains(says), "{error:?}");
        }
    }
}
