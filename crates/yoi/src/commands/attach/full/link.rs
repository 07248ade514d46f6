//! The connection of the full screen, in a task of its own: it follows the pod, connects again for as long as the screen
//! is there, and does what the screen asks for, one request after the other. Draws nothing.

use super::feature_changes::{FeatureFiles, ShownChange};
use crate::commands::attach::screen::PAGE;
use crate::commands::control::unchanged;
use crate::commands::live::{LOST_LOOK, lost};
use crate::commands::new_rules::NewRules;
use crate::remedy::in_one;
use crate::show::rule_preview;
use crate::socket::failure;
use client::ClientError;
use client::attachment::Attachment;
use client::cmd_id::cmd_id;
use client::connection::Next;
use host::config::UserRules;
use host::env::Env;
use host::exit::{Exit, Failure};
use protocol::event::Event;
use protocol::method::{
    AllowOrDeny, AllowScope, Approve, Ask, Attached, CallTool, Done, EditInput, GetApprovals,
    GetFeatures, GetPastCalls, GetStatus, Page, PreviewCall, PreviewedCall, SendInput, SetDraft,
    Shutdown, StopJob, Undo, Verb, Withdraw,
};
use protocol::record::ApprovalResolved;
use protocol::status::DeliveryMode;
use session_store::{Owner, Session};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tui::{Intent, Reply, ShownText};

/// How long one series of attempts to connect again takes; the next one follows.
const SERIES: Duration = Duration::from_secs(600);

/// How long an answer may take before the connection is made again.
const ANSWER: Duration = Duration::from_secs(60);

/// What the screen is told.
pub(super) enum Update {
    Event(Box<Event>),
    /// The connection was lost, and why; it is being made again.
    Lost(String),
    /// No process has the pod, which did not say that it ends; what is known of the end.
    Died(String),
    Resumed(Box<Attached>),
    /// The request is done: the next one can come.
    Done(Option<Reply>),
    /// There will be no connection any more.
    Over(Failure),
}

/// Nothing more can be done: the screen is gone, or the failure was told.
struct Over;

pub(super) struct Link {
    pub(super) name: String,
    /// Of the pod.
    pub(super) dir: PathBuf,
    pub(super) owner: Owner,
    pub(super) env: Env,
    pub(super) attachment: Attachment,
    pub(super) updates: mpsc::Sender<Update>,
    pub(super) intents: mpsc::Receiver<Intent>,
    pub(super) shown: LastShown,
}

/// What was shown last and may be written.
#[derive(Default)]
pub(super) struct LastShown {
    /// For the configuration, with the question.
    rules: Option<(u64, NewRules)>,
    /// Of a feature.
    change: Option<ShownChange>,
}

impl Link {
    /// Runs until the screen is gone.
    pub(super) async fn run(mut self) {
        while self.step().await.is_ok() {}
    }

    async fn step(&mut self) -> Result<(), Over> {
        tokio::select! {
            event = self.attachment.next() => match event {
                Ok(event) => self.tell(Update::Event(Box::new(event))).await,
                Err(error) => self.reconnect(error).await,
            },
            intent = self.intents.recv() => {
                let reply = self.perform(intent.ok_or(Over)?).await?;
                self.tell(Update::Done(reply)).await
            }
        }
    }

    async fn tell(&self, update: Update) -> Result<(), Over> {
        self.updates.send(update).await.map_err(|_gone| Over)
    }

    /// Tells what still arrived, and goes on behind it over a new connection.
    async fn reconnect(&mut self, error: ClientError) -> Result<(), Over> {
        while let Ok(event) = self.attachment.next().await {
            self.tell(Update::Event(Box::new(event))).await?;
        }
        if !error.may_pass() {
            return self.over(error).await;
        }
        self.tell(Update::Lost(error.to_string())).await?;
        let mut has_died = false;
        loop {
            let Self {
                attachment,
                updates,
                dir,
                ..
            } = &mut *self;
            let attached = {
                // A look at the process does not begin the connection anew.
                let mut resumed = pin!(attachment.resume(SERIES));
                loop {
                    tokio::select! {
                        attached = &mut resumed => break attached,
                        () = updates.closed() => return Err(Over),
                        () = sleep(LOST_LOOK), if !has_died => {
                            has_died = matches!(Session::owner(dir), Ok(None));
                            if has_died {
                                let told = Update::Died(lost(dir));
                                updates.send(told).await.map_err(|_gone| Over)?;
                            }
                        }
                    }
                }
            };
            match attached {
                Ok(attached) => return self.tell(Update::Resumed(Box::new(attached))).await,
                Err(error) if error.may_pass() => {}
                Err(error) => return self.over(error).await,
            }
        }
    }

    async fn over(&self, error: ClientError) -> Result<(), Over> {
        self.tell(Update::Over(failure(error, &self.name, &self.owner)))
            .await?;
        Err(Over)
    }

    async fn answer<A: Ask>(&mut self, ask: &A) -> Result<A::Answer, ClientError> {
        let begun = self.attachment.begin_request(ask)?;
        let answered = async {
            loop {
                match self.attachment.next_or(&begun).await? {
                    // A screen that is gone is noticed when the answer has come.
                    Next::Event(event) => {
                        drop(self.updates.send(Update::Event(Box::new(event))).await)
                    }
                    Next::Answer(answer) => return Ok(answer),
                }
            }
        };
        timeout(ANSWER, answered)
            .await
            .unwrap_or(Err(ClientError::Silent(ANSWER)))
    }

    /// Asks, again over a new connection if need be.
    async fn ask<A: Ask>(&mut self, ask: A) -> Result<Result<A::Answer, Failure>, Over> {
        loop {
            match self.answer(&ask).await {
                Ok(answer) => return Ok(Ok(answer)),
                Err(error) => {
                    if let Some(failure) = self.failed(error).await? {
                        return Ok(Err(failure));
                    }
                }
            }
        }
    }

    /// The same, but not again: what it is about may be over when the connection is there again.
    async fn ask_once<A: Ask>(&mut self, ask: A) -> Result<Result<A::Answer, Reply>, Over> {
        let failure = match self.answer(&ask).await {
            Ok(answer) => return Ok(Ok(answer)),
            Err(error) => self.failed(error).await?,
        };
        let lost = || {
            Failure::new(
                Exit::Unavailable,
                "the connection was lost, and the request may have been lost, too",
            )
        };
        Ok(Err(Reply::Failed(in_one(&failure.unwrap_or_else(lost)))))
    }

    /// The same; tells what failed.
    async fn ask_now<A: Ask<Answer = Done>>(&mut self, ask: A) -> Result<Option<Reply>, Over> {
        Ok(self.ask_once(ask).await?.err())
    }

    /// Has the pod do it; tells why nothing changed, if nothing did.
    async fn tell_pod(&mut self, verb: Verb) -> Result<Option<Reply>, Over> {
        let before = match self.ask_once(GetStatus {}).await? {
            Ok(before) => before,
            Err(failed) => return Ok(Some(failed)),
        };
        let done = match self.ask_once(verb.clone().with_cmd_id(cmd_id())).await? {
            Ok(done) => done,
            Err(failed) => return Ok(Some(failed)),
        };
        Ok(unchanged(&verb, &self.name, &before, &done).map(Reply::Failed))
    }

    /// The pod's refusal; none once the connection is there again.
    async fn failed(&mut self, error: ClientError) -> Result<Option<Failure>, Over> {
        if matches!(error, ClientError::Refused(_) | ClientError::TooLong(_)) {
            return Ok(Some(failure(error, &self.name, &self.owner)));
        }
        self.reconnect(error).await.map(|()| None)
    }

    async fn perform(&mut self, intent: Intent) -> Result<Option<Reply>, Over> {
        match intent {
            Intent::Send { text, mode } => {
                let expand = text.starts_with('/') && mode != DeliveryMode::Run;
                self.send(text, mode, expand).await
            }
            Intent::EditInput { input, text } => {
                let edit = EditInput {
                    input,
                    text: text.clone(),
                    cmd_id: cmd_id(),
                };
                let edited = self.ask(edit).await?;
                Ok(edited.err().map(|failure| Reply::SendFailed {
                    text,
                    why: in_one(&failure),
                }))
            }
            Intent::SendNow { input, text, typed } => match self
                .ask(Withdraw {
                    input,
                    cmd_id: cmd_id(),
                })
                .await?
            {
                Ok(_withdrawn) => {
                    let expand = typed.is_some();
                    let text = typed.unwrap_or(text);
                    self.send(text, DeliveryMode::Steer, expand).await
                }
                Err(failure) => Ok(Some(Reply::Failed(in_one(&failure)))),
            },
            Intent::Do(verb) => {
                let asked = matches!(verb, Verb::StopRun(_))
                    .then(|| Reply::Note("the task was asked to stop".to_owned()));
                let failed = self.tell_pod(verb).await?;
                Ok(failed.or(asked))
            }
            Intent::Stop => {
                self.ask_now(Shutdown {
                    now: false,
                    cmd_id: cmd_id(),
                })
                .await
            }
            Intent::SetDraft(text) => {
                // A draft that is lost is still in this screen.
                self.ask(SetDraft {
                    text,
                    cmd_id: cmd_id(),
                })
                .await?
                .ok();
                Ok(None)
            }
            Intent::OlderPage { before } => {
                let page = self
                    .ask(Page {
                        before,
                        limit: PAGE,
                    })
                    .await?;
                Ok(Some(page.map_or_else(
                    |failure| Reply::PageFailed(in_one(&failure)),
                    Reply::Page,
                )))
            }
            Intent::FetchApprovals => {
                let open = self.ask(GetApprovals {}).await?;
                Ok(Some(open.map_or_else(
                    |failure| Reply::ApprovalsFailed(in_one(&failure)),
                    Reply::Approvals,
                )))
            }
            Intent::ListTasks => {
                let list = CallTool {
                    tool: "TaskList".to_owned(),
                    arguments: serde_json::Map::new(),
                    cmd_id: None,
                };
                // A pod without the feature has none.
                let answer = self.ask(list).await?.ok();
                let content = answer.map(|answer| answer.content).unwrap_or_default();
                let tasks = content.lines().map(str::to_owned).collect();
                Ok(Some(Reply::Tasks(tasks)))
            }
            Intent::Undo { to } => {
                let undone = self
                    .ask(Undo {
                        to,
                        cmd_id: cmd_id(),
                    })
                    .await?;
                Ok(Some(Reply::Shown(undone.map_or_else(
                    |failure| Err(in_one(&failure)),
                    |undone| {
                        let failed = undone.failure.map(|failure| failure.message);
                        let lines: Vec<String> = undone.lines.into_iter().chain(failed).collect();
                        Ok(ShownText::of(&lines.join("\n")))
                    },
                ))))
            }
            Intent::FetchStatus
            | Intent::StopJob(_)
            | Intent::FetchFeatures
            | Intent::PreviewFeature { .. }
            | Intent::ChangeFeature { .. } => self.perform_in_panel(intent).await,
            Intent::PreviewCall { id } => {
                let call = self.ask(PreviewCall { id }).await?;
                let call = call.unwrap_or_else(|failure| PreviewedCall::unknown(in_one(&failure)));
                Ok(Some(Reply::CallPreview { id, call }))
            }
            Intent::PreviewRule { id } => {
                let text = self.preview(id).await?;
                Ok(Some(Reply::RulePreview { id, text }))
            }
            Intent::Approve {
                id,
                decision,
                scope,
                words,
                arguments_digest,
            } => {
                let approve = Approve {
                    id,
                    decision,
                    scope,
                    arguments_digest,
                    words,
                    cmd_id: cmd_id(),
                };
                self.approve(approve).await
            }
            // The driver does these itself.
            Intent::Copy(_)
            | Intent::OpenEditor(_)
            | Intent::OpenConversation
            | Intent::PrintConversation
            | Intent::ListFiles(_)
            | Intent::ListPods
            | Intent::ShowDiff { .. }
            | Intent::PreviewUndo { .. }
            | Intent::ListAgents
            | Intent::ListModels
            | Intent::Restart { .. }
            | Intent::NewPod { .. }
            | Intent::TurnMouse
            | Intent::StartPod(_)
            | Intent::Switch(_)
            | Intent::Detach => Ok(None),
        }
    }

    /// What a panel asks for.
    async fn perform_in_panel(&mut self, intent: Intent) -> Result<Option<Reply>, Over> {
        match intent {
            Intent::FetchStatus => {
                let status = self.ask(GetStatus {}).await?;
                Ok(Some(status.map_or_else(
                    |failure| Reply::Failed(in_one(&failure)),
                    |status| Reply::Status(Box::new(status)),
                )))
            }
            Intent::StopJob(job) => {
                let failed = self
                    .ask_now(StopJob {
                        job,
                        cmd_id: cmd_id(),
                    })
                    .await?;
                Ok(failed.or_else(|| Some(Reply::Note(format!("job {job} was stopped")))))
            }
            Intent::FetchFeatures => {
                let told = match (self.ask(GetFeatures {}).await?, self.feature_files().await?) {
                    (Ok(told), Ok(files)) => Ok(files.list(&told.report)),
                    (Err(failure), _) | (_, Err(failure)) => Err(in_one(&failure)),
                };
                Ok(Some(Reply::Features(told)))
            }
            Intent::PreviewFeature { id, change } => {
                let files = self.feature_files().await?;
                let text = files.and_then(|files| {
                    let shown = files.plan(&id, change)?;
                    let text = files.shown(&shown);
                    self.shown.change = Some(shown);
                    Ok(text)
                });
                Ok(Some(Reply::FeaturePreview {
                    id,
                    change,
                    text: text.map_err(|failure| in_one(&failure)),
                }))
            }
            Intent::ChangeFeature { id, change } => {
                let shown = self
                    .shown
                    .change
                    .take_if(|shown| shown.id == id && shown.change == change);
                let unseen = || Failure::new(Exit::Usage, "the change was not shown");
                let done = self
                    .feature_files()
                    .await?
                    .and_then(|files| files.write(&shown.ok_or_else(unseen)?));
                Ok(Some(done.map_or_else(
                    |failure| Reply::Failed(in_one(&failure)),
                    Reply::FeatureChanged,
                )))
            }
            _ => Ok(None),
        }
    }

    /// The person's files, as they count in the directory of the pod.
    async fn feature_files(&mut self) -> Result<Result<FeatureFiles, Failure>, Over> {
        let status = self.ask(GetStatus {}).await?;
        Ok(status.and_then(|status| FeatureFiles::of(&self.env, &status.host.cwd)))
    }

    /// Sends an input, or a command behind its `!`; it goes back to the person who wrote it, if it is not accepted.
    /// `expand`: a person typed it as a command of the pod.
    async fn send(
        &mut self,
        text: String,
        mode: DeliveryMode,
        expand: bool,
    ) -> Result<Option<Reply>, Over> {
        let command = text.strip_prefix('!').filter(|_| mode == DeliveryMode::Run);
        let sent = command.unwrap_or(&text).to_owned();
        let sent = self
            .ask(SendInput {
                expand,
                text: sent,
                mode,
                cmd_id: cmd_id(),
                ..SendInput::default()
            })
            .await?;
        Ok(sent.err().map(|failure| Reply::SendFailed {
            text,
            why: in_one(&failure),
        }))
    }

    /// What the scope `rule` would write.
    async fn preview(&mut self, id: u64) -> Result<Result<String, String>, Over> {
        let open = match self.ask(GetApprovals {}).await? {
            Ok(open) => open.approvals.into_iter().find(|open| open.approval == id),
            Err(failure) => return Ok(Err(in_one(&failure))),
        };
        let Some(asked) = open else {
            return Ok(Err(format!("approval {id} does not wait any more")));
        };
        let new =
            match UserRules::of(&self.env).and_then(|file| NewRules::of_question(file, &asked)) {
                Ok(new) => new,
                Err(failure) => return Ok(Err(in_one(&failure))),
            };
        let past = self
            .ask(GetPastCalls { id })
            .await?
            .map_err(|failure| failure.message);
        let text = new.preview(&past);
        self.shown.rules = Some((id, new));
        Ok(text)
    }

    async fn approve(&mut self, approve: Approve) -> Result<Option<Reply>, Over> {
        let id = approve.id;
        let decision = approve.decision;
        let failed = |failure: &Failure| {
            Ok(Some(Reply::ApproveFailed {
                id,
                why: in_one(failure),
            }))
        };
        let shown = self
            .shown
            .rules
            .take_if(|(shown, _)| *shown == id && approve.scope == AllowScope::Rule);
        let rules = shown.map(|(_, rules)| rules);
        if rules.is_none() && approve.scope == AllowScope::Rule {
            return failed(&Failure::new(Exit::Usage, "the rules were not shown"));
        }
        let _lock = match rules.as_ref().map(|rules| rules.file.lock()).transpose() {
            Ok(lock) => lock,
            Err(failure) => return failed(&failure),
        };
        let recorded = match self.ask(approve).await? {
            Ok(recorded) => recorded,
            Err(failure) => return failed(&failure),
        };
        if let Some(why) = another(&recorded, decision) {
            return Ok(Some(Reply::ApproveFailed { id, why }));
        }
        let Some(rules) = rules else { return Ok(None) };
        Ok(
            match rules.write(&recorded.decision, recorded.scope.as_deref()) {
                Ok(Some(added)) => Some(Reply::Note(
                    rule_preview::after(&rules.file.shown, &added.toml).join("\n"),
                )),
                Ok(None) => Some(Reply::Failed(format!(
                    "approval {id} was answered before, and no rule was written"
                ))),
                Err(failure) => Some(Reply::Failed(in_one(&failure))),
            },
        )
    }
}

/// The answer that counts, if it is not this one.
fn another(recorded: &ApprovalResolved, decision: AllowOrDeny) -> Option<String> {
    let id = recorded.approval;
    let by = recorded
        .by
        .as_ref()
        .map_or_else(String::new, |by| format!(" by {}", by.client));
    match (recorded.decision.as_str(), decision) {
        ("allow", AllowOrDeny::Allow) | ("deny", AllowOrDeny::Deny) => None,
        ("void", _) => {
            let why = recorded.reason.as_deref().unwrap_or("its turn has ended");
            Some(format!(
                "approval {id} is void, and the call did not run: {why}"
            ))
        }
        ("allow", _) => Some(format!("approval {id} was already allowed{by}")),
        _ => Some(format!("approval {id} was already denied{by}")),
    }
}
