//! Prompts of a session: inputs of its pod, answered when their turns have ended and everything was told.

use super::running::{Running, Waited, held, stop_reason, wait};
use super::{Session, Stop};
use crate::command::{Typed, read};
use crate::content::{Prompt, PromptFile};
use crate::message::{Id, RpcError};
use crate::out::Gone;
use crate::pods::PodOpener;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::ClientError;
use client::cmd_id::cmd_id;
use protocol::MAX_PIECE;
use protocol::error::ErrorKind;
use protocol::event::AlertLevel;
use protocol::method::{Cancel, GetStatus, SendFile, SendInput, SentFile, TurnEnded, Verb};
use protocol::status::DeliveryMode;
use serde_json::json;
use tokio::task::JoinError;

impl<P: PodOpener> Session<P> {
    pub(super) async fn prompt(&mut self, id: Id, prompt: Prompt) -> Result<(), Gone> {
        match self.hand_in(prompt).await {
            Ok(Some(input)) => {
                self.waits.spawn(wait(self.place.dir.clone(), input));
                self.prompts.push(Running {
                    id,
                    input,
                    is_cancelled: false,
                    end: None,
                    upto: None,
                });
                Ok(())
            }
            Ok(None) => {
                let done = Ok(json!({ "stopReason": "end_turn" }));
                self.out.answer(&id, done).await
            }
            Err(Stop::Failed(error)) => self.out.fail(Some(&id), &error).await,
            Err(Stop::Gone) => Err(Gone),
        }
    }

    /// The number of the input; none if the prompt was a command that is done.
    async fn hand_in(&mut self, prompt: Prompt) -> Result<Option<u64>, Stop> {
        self.connected().await?;
        let Prompt {
            text,
            files,
            is_typed,
        } = prompt;
        let typed = match is_typed {
            true => read(&text, &self.offered, &self.place.name),
            false => Typed::Input,
        };
        let (text, mode) = match typed {
            Typed::Input => (text, DeliveryMode::Queue),
            Typed::Steer(text) => (text, DeliveryMode::Steer),
            Typed::Wrong(why) => {
                self.say(AlertLevel::Error, &why).await?;
                return Ok(None);
            }
            Typed::Verb(verb) => {
                self.obey(verb).await?;
                return Ok(None);
            }
        };
        let status = self.ask(&GetStatus {}).await?;
        if let Some(held) = held(&status) {
            return Err(Stop::Failed(held));
        }
        let files = self.send_files(files).await?;
        let cmd_id = cmd_id();
        self.transcript.own(cmd_id.clone());
        let input = SendInput {
            expand: is_typed && text.starts_with('/'),
            text,
            mode,
            files,
            cmd_id,
            ..SendInput::default()
        };
        Ok(Some(self.ask(&input).await?.input))
    }

    async fn send_files(&mut self, files: Vec<PromptFile>) -> Result<Vec<SentFile>, Stop> {
        let mut sent = Vec::new();
        for PromptFile { name, bytes } in files {
            let mut after = None;
            for piece in bytes.chunks(MAX_PIECE) {
                let ask = SendFile {
                    data: STANDARD.encode(piece),
                    after,
                    cmd_id: cmd_id(),
                };
                after = Some(self.ask(&ask).await?.digest);
            }
            sent.extend(after.map(|digest| SentFile { digest, name }));
        }
        Ok(sent)
    }

    /// Has the pod do what a command asks for, and says what came of it.
    async fn obey(&mut self, verb: Verb) -> Result<(), Stop> {
        let done = self.ask(&verb.with_cmd_id(cmd_id())).await?;
        let text = done.unchanged.unwrap_or_else(|| "Done.".to_owned());
        Ok(self.say(AlertLevel::Info, &text).await?)
    }

    /// Cancels the prompts of this client; without one, the turn that runs.
    pub(super) async fn cancel(&mut self) -> Result<(), Gone> {
        let mut inputs: Vec<Option<u64>> = Vec::new();
        for prompt in &mut self.prompts {
            prompt.is_cancelled = true;
            inputs.push(Some(prompt.input));
        }
        if inputs.is_empty() {
            inputs.push(None);
        }
        for input in inputs {
            let cancel = Cancel {
                input,
                cmd_id: cmd_id(),
            };
            // A turn that has ended meanwhile is not there to be cancelled, and its prompt is answered.
            drop(self.asked_pod(&cancel).await?);
        }
        Ok(())
    }

    pub(super) fn waited(&mut self, waited: Result<Waited, JoinError>) {
        let Ok(Waited { input, end }) = waited else {
            return;
        };
        let mut prompts = self.prompts.iter_mut();
        if let Some(prompt) = prompts.find(|prompt| prompt.input == input) {
            prompt.end = Some(end);
        }
    }

    /// Answers the prompts whose turns have ended, once their last records were told.
    pub(super) async fn answer_ended(&mut self) -> Result<(), Stop> {
        for at in (0..self.prompts.len()).rev() {
            let Some(prompt) = self.prompts.get(at) else {
                continue;
            };
            let upto = match (&prompt.end, prompt.upto) {
                (None, _) => continue,
                (Some(Err(_)), _) => 0,
                (Some(Ok(_)), Some(upto)) => upto,
                (Some(Ok(end)), None) => {
                    let newest = end.seq;
                    self.newest_told(newest).await?
                }
            };
            if self.attachment.cursor() < upto {
                if let Some(prompt) = self.prompts.get_mut(at) {
                    prompt.upto = Some(upto);
                }
                continue;
            }
            // The list of tasks and the like come from records of the turn.
            self.tell_tasks().await?;
            let prompt = self.prompts.remove(at);
            if let Some(end) = prompt.end {
                let answer = self.ended(end, prompt.is_cancelled);
                let answer = answer.map(|reason| json!({ "stopReason": reason }));
                self.out.answer(&prompt.id, answer).await?;
            }
        }
        Ok(())
    }

    /// Why a turn ended, in the words of the protocol.
    fn ended(
        &self,
        end: Result<TurnEnded, ClientError>,
        is_cancelled: bool,
    ) -> Result<&'static str, RpcError> {
        let reason = match end {
            Ok(end) => stop_reason(&end.outcome, &self.place.name),
            Err(ClientError::Refused(error)) if error.kind == ErrorKind::NotWaiting => {
                Ok("cancelled")
            }
            Err(error) => Err(self.pods.explain(&self.place.name, error).into()),
        };
        // A client that cancelled gets this whatever came of it.
        if is_cancelled {
            Ok("cancelled")
        } else {
            reason
        }
    }
}
