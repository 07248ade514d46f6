//! A run whose calls may wait for the person at its terminal: from an input to the end of its turn, with the answers.

use crate::commands::signals::Signals;
use crate::show::progress::QuestionOutcome;
use llm_worker::effect::Outcome;
use pod::control::{Client, NewInput, SubmitError, TurnEnd};
use pod::record::{ApprovalId, InputId};
use std::path::PathBuf;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The person, and what ends the run.
pub(crate) struct PersonAsked<'a> {
    signals: &'a Signals,
    /// Cancels the turn: a signal does not while a call waits.
    cancel: CancellationToken,
    outcomes: mpsc::UnboundedReceiver<QuestionOutcome>,
    /// The session.
    dir: PathBuf,
    /// Nothing more is asked.
    left: bool,
}

impl<'a> PersonAsked<'a> {
    pub(crate) fn new(
        signals: &'a Signals,
        outcomes: mpsc::UnboundedReceiver<QuestionOutcome>,
        dir: PathBuf,
    ) -> Self {
        Self {
            signals,
            cancel: CancellationToken::new(),
            outcomes,
            dir,
            left: false,
        }
    }

    /// What ends the turns of the pod in good order.
    pub(crate) fn cancel(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Submits an input, and waits until its turn has ended or the person leaves what it asks.
    pub(crate) async fn submit(
        &mut self,
        client: &Client,
        input: NewInput,
    ) -> Result<TurnEnd, SubmitError> {
        let end = self.end_of(client, input).await;
        // The thread of the screen may wait for a reply.
        self.outcomes.close();
        while self.outcomes.try_recv().is_ok() {}
        end
    }

    async fn end_of(&mut self, client: &Client, input: NewInput) -> Result<TurnEnd, SubmitError> {
        // What an earlier process asked is not asked here.
        let earlier = open(client).await;
        let input = match client.begin(input).await {
            Ok(accepted) => accepted.input,
            Err(SubmitError::Refused(reason)) => return Ok(TurnEnd::refused(reason)),
            Err(error) => return Err(error),
        };
        // The turn waits for the person, and the person is being asked.
        let mut waits = false;
        loop {
            tokio::select! {
                end = client.wait_until_asked(input), if !waits => {
                    let end = end?;
                    let asks = end.outcome == Outcome::Waiting && !self.left;
                    waits = asks && open(client).await.iter().any(|approval| !earlier.contains(approval));
                    if !waits {
                        return Ok(end);
                    }
                }
                outcome = self.outcomes.recv(), if !self.left => {
                    waits = matches!(
                        outcome,
                        Some(QuestionOutcome::PastCalls(..) | QuestionOutcome::PreviewCall(..))
                    );
                    self.take(client, outcome).await;
                    // The signal may be why the person left.
                    if self.left && self.signals.cancel.is_cancelled() {
                        return self.end_early(client, input).await;
                    }
                }
                () = self.signals.cancel.cancelled() => return self.end_early(client, input).await,
            }
        }
    }

    async fn take(&mut self, client: &Client, outcome: Option<QuestionOutcome>) {
        match outcome {
            // One that is not taken goes on waiting.
            Some(QuestionOutcome::Answer(answer, reply)) => match client.approve(answer).await {
                Ok(recorded) => drop(reply.send(recorded)),
                Err(_refused) => self.left = true,
            },
            Some(QuestionOutcome::PastCalls(approval, reply)) => {
                let past = client.past_calls(approval, &self.dir).await;
                drop(reply.send(past.map_err(|error| error.to_string())));
            }
            Some(QuestionOutcome::PreviewCall(approval, reply)) => {
                // A question that does not wait any more has no change.
                let call = client.preview_call(approval).await;
                drop(reply.send(call.unwrap_or_default()));
            }
            Some(QuestionOutcome::Over) => {}
            Some(QuestionOutcome::Left) | None => self.left = true,
        }
    }

    /// Ctrl-C cancels. Anything else that ends a run leaves what waits.
    async fn end_early(&self, client: &Client, input: InputId) -> Result<TurnEnd, SubmitError> {
        let cancels = self.signals.interrupted() || open(client).await.is_empty();
        let stop = async {
            if cancels {
                self.cancel.cancel();
            } else {
                client.leave("left while a call waited").await;
            }
        };
        // The pod is asked for the end first: once it has ended it answers nobody.
        tokio::join!(biased; client.wait(input), stop).0
    }
}

/// What waits for a person.
async fn open(client: &Client) -> Vec<ApprovalId> {
    let status = client.status().await;
    status
        .into_iter()
        .flat_map(|status| status.approvals)
        .map(|open| open.approval)
        .collect()
}
