//! A client's handle on a pod: people and scripts send commands to the actor through it. Does not depend on the journal.

pub(super) mod between_turns;
mod calls;

use super::call::approvals::ApprovalAnswer;
use super::call::past_calls::PastSearch;
use super::call::preview::CallPreview;
use super::core::{Core, Permission};
use super::drivers::{AttachedDriver, Drivers};
use super::limits::RunLimits;
use super::pod_budget::PodLimits;
use super::status::PodStatus;
use super::submit_error::SubmitError;
use super::turn_end::TurnEnd;
use crate::feature::{
    FeatureRegistry, JobBoard, Lines, MAX_NOTIFICATION, MAX_PER_TURN, RegistryReport, check_text,
};
use crate::hook::MAX_OUTPUT_SCHEMA;
use crate::mailbox::events::Event;
use crate::mailbox::live_output::{LiveOutputs, OutputFollower};
use crate::mailbox::requests::{Declined, Notification, answered};
use crate::record::{
    ApprovalId, ApprovalResolved, ClientCall, ExpandedCommand, InputId, InputLimits, InputMode,
    Record, RequestedCall, Who,
};
use crate::session::view::ContextPolicy;
use authority::ChildMemory;
use between_turns::{BetweenTurns, Opened};
use calls::ClientTools;
pub use calls::NewClientCall;
use llm_worker::attachment::{MAX_FILES, attachment, check_total};
use llm_worker::{Attachment, Price};
use protocol::method::{
    Cancel, MatchedCalls, OfferedTool, OfferedTools, Pause, PreviewedCall, Resume, Verb, Withdraw,
};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// Commands that may wait for the actor.
const MAX_COMMANDS: usize = 64;

/// Bytes of one input.
pub const MAX_INPUT: usize = 64 << 20;

/// Bytes of the key of an input.
pub const MAX_KEY: usize = 128;

/// A command of a client. Commands are read even while requests of features wait.
pub(super) enum Command {
    /// Does what a person asks for; answered once that is durable.
    Do(Verb, Option<Who>, Reply<()>),
    Queue(NewText),
    Status(oneshot::Sender<PodStatus>),
    Wait(InputId, EndWaiter),
    Approve(ApprovalAnswer, Reply<ApprovalResolved>),
    PastCalls(ApprovalId, Reply<Box<PastSearch>>),
    PreviewCall(ApprovalId, Reply<Box<CallPreview>>),
    Notify(Notification, oneshot::Sender<Result<u64, Declined>>),
    /// Journals a call that is about to run.
    Call(ClientCall, Reply<()>),
    BetweenTurns(Reply<Opened>),
    /// Records of the holder of the [`BetweenTurns`].
    Append(Vec<Record>, Reply<()>),
    Reload(Box<Reload>),
    /// Release the session once nothing is in flight.
    Close {
        reason: String,
        /// End the running turn first; the next start goes on with it.
        leave: bool,
    },
}

/// A change of the queue. They are done one after the other, in the order of arrival.
pub(super) enum QueueCommand {
    Text(NewText),
    Withdraw {
        input: InputId,
        by: Option<Who>,
        reply: Reply<()>,
    },
    Reorder {
        input: InputId,
        before: Option<InputId>,
        by: Option<Who>,
        reply: Reply<()>,
    },
}

/// A change that brings a text: gates judge it, and a large one is stored as a blob.
pub(super) enum NewText {
    Accept(Submission),
    Edit {
        input: InputId,
        text: String,
        by: Option<Who>,
        reply: Reply<()>,
    },
}

impl QueueCommand {
    /// Answers with an error. A client that has ended gets no answer.
    pub(super) fn refuse(self, error: SubmitError) {
        match self {
            Self::Text(new) => new.refuse(error),
            Self::Withdraw { reply, .. } | Self::Reorder { reply, .. } => {
                drop(reply.send(Err(error)))
            }
        }
    }
}

impl NewText {
    /// As [`QueueCommand::refuse`].
    pub(super) fn refuse(self, error: SubmitError) {
        match self {
            Self::Accept(submission) => drop(submission.accepted.send(Err(error))),
            Self::Edit { reply, .. } => drop(reply.send(Err(error))),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Accept(submission) => &submission.input.text,
            Self::Edit { text, .. } => text,
        }
    }

    /// What gates see of it: of a call the whole of its arguments, of which the text has the beginning.
    pub(super) fn judged_text(&self) -> String {
        if let Self::Accept(submission) = self
            && let Some(call) = &submission.input.call
        {
            return format!("{} {}", call.tool, call.arguments);
        }
        self.text().to_owned()
    }

    /// The files to store.
    pub(super) fn files(&mut self) -> Vec<NewFile> {
        match self {
            Self::Accept(submission) => std::mem::take(&mut submission.input.files),
            Self::Edit { .. } => Vec::new(),
        }
    }

    pub(super) fn set_text(&mut self, new: String) {
        match self {
            Self::Accept(submission) => submission.input.text = new,
            Self::Edit { text, .. } => *text = new,
        }
    }

    /// Adds the words that ask for an answer that fits a schema.
    pub(super) fn ask_for(&mut self, schema: &str) {
        let text = match self {
            Self::Accept(submission) => &mut submission.input.text,
            Self::Edit { text, .. } => text,
        };
        let words = format!(
            "\n\nYour last message must be one JSON document and nothing else: no words around it and no code fence. It \
             must be valid against this JSON Schema:\n{schema}"
        );
        // Clients edit the text that they were shown.
        if !text.ends_with(&words) {
            text.push_str(&words);
        }
    }
}

/// A new input, and the channels for its number and for the end of its turn.
pub(super) struct Submission {
    pub(super) input: NewInput,
    /// What its text was made from, once it was.
    pub(super) command: Option<Box<ExpandedCommand>>,
    /// Its files, which are stored before it is.
    pub(super) attachments: Vec<Attachment>,
    /// A person works with the pod: a hold ends.
    pub(super) resume: bool,
    pub(super) accepted: Reply<InputId>,
    pub(super) end: EndWaiter,
}

/// The request to end a turn.
pub(super) struct TurnCancel {
    /// Absent for one of this program.
    pub(super) by: Option<Who>,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, SubmitError>>;

pub(super) type EndReply = oneshot::Sender<Result<TurnEnd, SubmitError>>;

/// A client that waits for the end of a turn.
pub(super) struct EndWaiter {
    pub(super) reply: EndReply,
    /// Also told when the pod waits for a person: then the outcome is `Waiting`.
    pub(super) until_asked: bool,
}

/// A new input of a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewInput {
    pub text: String,
    /// The text is a shell command of a person: its turn runs it with the tool for commands, and asks no model.
    pub run: bool,
    /// A person typed it: `/NAME` of an installed command becomes its text.
    pub expand: bool,
    pub mode: InputMode,
    /// The client's name of this input: if one with the same key was accepted, this is that one.
    pub key: Option<String>,
    /// Limits that it sets to its turn; the others are the pod's.
    pub limits: Option<InputLimits>,
    /// A JSON Schema, as text, that the answer has to fit; at most [`MAX_OUTPUT_SCHEMA`] bytes. The model is asked for it.
    pub output_schema: Option<String>,
    pub by: Option<Who>,
    /// The files beside the text, at most [`MAX_FILES`].
    pub files: Vec<NewFile>,
    /// A call that its turn makes in place of asking a model; `text` is ignored.
    pub call: Option<Box<RequestedCall>>,
}

/// A file for a model: an image or a document.
#[derive(Clone, PartialEq)]
pub struct NewFile {
    /// Without its directory.
    pub name: String,
    pub bytes: Arc<[u8]>,
}

impl std::fmt::Debug for NewFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewFile({}, {} bytes)", self.name, self.bytes.len())
    }
}

/// What the file is.
fn attachment_of(file: &NewFile) -> Result<Attachment, String> {
    attachment(&file.name, &file.bytes).map_err(|why| format!("{} is {why}", file.name))
}

/// Proof that an input is durable.
#[derive(Debug)]
pub struct Accepted {
    /// Its number in the session.
    pub input: InputId,
    end: oneshot::Receiver<Result<TurnEnd, SubmitError>>,
}

impl Accepted {
    /// Waits for the end of the turn that takes the input.
    ///
    /// # Errors
    /// The input was withdrawn, its turn had ended before, or the pod has ended; the input may still wait in the log.
    pub async fn end(self) -> Result<TurnEnd, SubmitError> {
        self.end.await.unwrap_or(Err(SubmitError::Closed))
    }
}

/// What a running pod goes by from now on; the running turn keeps what it began with.
pub struct Reload {
    pub limits: RunLimits,
    pub pod_limits: PodLimits,
    pub permission: Arc<Permission>,
    /// Of the model's tokens, if known.
    pub price: Option<Price>,
    /// Of the model, if known.
    pub context_window: Option<u64>,
    pub context_policy: ContextPolicy,
}

/// The handle on an open pod: inputs, their queue, cancelling, pausing and closing. Clones share it.
#[derive(Clone)]
pub struct Client {
    commands: mpsc::Sender<Command>,
    folded: watch::Receiver<u64>,
    transient: broadcast::Sender<Event>,
    outputs: LiveOutputs,
    registry: Arc<FeatureRegistry>,
    limits: RunLimits,
    drivers: Drivers,
    tools: ClientTools,
    jobs: JobBoard,
}

/// Creates a client and the actor's receiving end.
pub(super) fn client(core: &Core, limits: RunLimits) -> (Client, mpsc::Receiver<Command>) {
    let (commands, receiver) = mpsc::channel(MAX_COMMANDS);
    let folded = core.outbox.following();
    let transient = core.outbox.transient();
    let registry = core.registry.clone();
    let drivers = core.drivers.clone();
    let outputs = core.outbox.outputs().clone();
    let tools = ClientTools::new(core.registry.clone(), core.callbacks.clone());
    let jobs = core.jobs.clone();
    (
        Client {
            commands,
            folded,
            transient,
            outputs,
            registry,
            limits,
            drivers,
            tools,
            jobs,
        },
        receiver,
    )
}

impl Client {
    /// Submits one input and waits for the end of the turn that takes it, or until the pod waits for a person. A hold of the
    /// pod ends. An input that a gate refuses ends as an aborted turn.
    ///
    /// # Errors
    /// The input could not be stored, too many wait already, or the pod has ended.
    pub async fn submit(&self, text: &str) -> Result<TurnEnd, SubmitError> {
        self.submit_input(NewInput {
            text: text.to_owned(),
            ..NewInput::default()
        })
        .await
    }

    /// As [`Self::submit`], for any input.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn submit_input(&self, input: NewInput) -> Result<TurnEnd, SubmitError> {
        match self.hand_in(input, true).await {
            Ok(accepted) => accepted.end().await,
            Err(SubmitError::Refused(reason)) => Ok(TurnEnd::refused(reason)),
            Err(error) => Err(error),
        }
    }

    /// As [`Self::submit_input`], and returns once the input is durable.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn begin(&self, input: NewInput) -> Result<Accepted, SubmitError> {
        self.hand_in(input, true).await
    }

    /// Hands in one input, and returns once it is durable. A held pod keeps it until it is resumed.
    ///
    /// # Errors
    /// A gate refused it, it could not be stored, too many wait already, or the pod has ended.
    pub async fn send(&self, input: NewInput) -> Result<Accepted, SubmitError> {
        self.hand_in(input, false).await
    }

    async fn hand_in(&self, input: NewInput, resume: bool) -> Result<Accepted, SubmitError> {
        if input.text.len() > MAX_INPUT {
            return Err(SubmitError::TooLong(format!(
                "the input has {} bytes; the limit is {MAX_INPUT} bytes",
                input.text.len()
            )));
        }
        if input
            .key
            .as_ref()
            .is_some_and(|key| key.is_empty() || key.len() > MAX_KEY)
        {
            return Err(SubmitError::TooLong(format!(
                "a key must have 1 to {MAX_KEY} bytes"
            )));
        }
        if input
            .output_schema
            .as_ref()
            .is_some_and(|schema| schema.len() > MAX_OUTPUT_SCHEMA)
        {
            return Err(SubmitError::TooLong(format!(
                "the output schema has more than {MAX_OUTPUT_SCHEMA} bytes"
            )));
        }
        if input.files.len() > MAX_FILES {
            return Err(SubmitError::TooLong(format!(
                "an input has at most {MAX_FILES} files"
            )));
        }
        let files: Result<Vec<_>, _> = input.files.iter().map(attachment_of).collect();
        let attachments = files.map_err(SubmitError::Arguments)?;
        check_total(attachments.iter().map(|file| file.bytes))
            .map_err(|what| SubmitError::TooLong(format!("the input has {what}")))?;
        let ((accepted, number), (ended, end)) = (oneshot::channel(), oneshot::channel());
        let ended = EndWaiter {
            reply: ended,
            until_asked: resume,
        };
        let submission = Submission {
            input,
            command: None,
            attachments,
            resume,
            accepted,
            end: ended,
        };
        let input = self
            .ask(Command::Queue(NewText::Accept(submission)), number)
            .await?;
        Ok(Accepted { input, end })
    }

    /// Replaces the text of an input that waits; gates judge the new text. Returns once that is durable.
    ///
    /// # Errors
    /// As [`Self::send`]; `NotWaiting` if a turn took it.
    pub async fn edit(
        &self,
        input: InputId,
        text: String,
        by: Option<Who>,
    ) -> Result<(), SubmitError> {
        if text.len() > MAX_INPUT {
            return Err(SubmitError::TooLong(format!(
                "the input has {} bytes; the limit is {MAX_INPUT} bytes",
                text.len()
            )));
        }
        let (reply, done) = oneshot::channel();
        self.ask(
            Command::Queue(NewText::Edit {
                input,
                text,
                by,
                reply,
            }),
            done,
        )
        .await
    }

    /// Does what a person asks for. Returns once that is durable.
    ///
    /// # Errors
    /// The verb does not fit the state of the pod, the disk refused, or the pod has ended.
    pub async fn tell(&self, verb: impl Into<Verb>, by: Option<Who>) -> Result<(), SubmitError> {
        let (reply, done) = oneshot::channel();
        self.ask(Command::Do(verb.into(), by, reply), done).await
    }

    /// Takes back an input that waits. Returns once that is durable.
    ///
    /// # Errors
    /// `NotWaiting` if a turn took it; the disk refused, or the pod has ended.
    pub async fn withdraw(&self, input: InputId, by: Option<Who>) -> Result<(), SubmitError> {
        let cmd_id = String::new();
        self.tell(Withdraw { input, cmd_id }, by).await
    }

    /// Ends the running turn in good order, or the next one if its input was submitted; later inputs wait until the next
    /// one is accepted or the pod is resumed.
    pub async fn cancel(&self, by: Option<Who>) {
        self.cancel_turn(None, by).await;
    }

    async fn cancel_turn(&self, input: Option<InputId>, by: Option<Who>) {
        let cancel = Cancel {
            input,
            cmd_id: String::new(),
        };
        let (reply, _answer) = oneshot::channel();
        // A pod that has ended has no turn.
        drop(
            self.commands
                .send(Command::Do(cancel.into(), by, reply))
                .await,
        );
    }

    /// Takes back an input that waits, or ends its turn in good order. Does nothing if its turn has ended.
    ///
    /// # Errors
    /// The disk refused, or the pod has ended.
    pub async fn cancel_input(&self, input: InputId, by: Option<Who>) -> Result<(), SubmitError> {
        match self.withdraw(input, by.clone()).await {
            Err(SubmitError::NotWaiting(_)) => {
                self.cancel_turn(Some(input), by).await;
                Ok(())
            }
            done => done,
        }
    }

    /// Holds the pod: no turn begins, and the running one waits before its next request. Returns once that is durable.
    ///
    /// # Errors
    /// The disk refused, or the pod has ended.
    pub async fn pause(&self, by: Option<Who>) -> Result<(), SubmitError> {
        self.tell(Pause::default(), by).await
    }

    /// Ends a hold of any cause. Returns once that is durable.
    ///
    /// # Errors
    /// Something is missing that the pod needs, its budget is used up, the disk refused, or the pod has ended.
    pub async fn resume(&self, by: Option<Who>) -> Result<(), SubmitError> {
        self.tell(Resume::default(), by).await
    }

    /// Waits for the end of the turn that takes an input; the ends of the newest turns are remembered.
    ///
    /// # Errors
    /// `Over` if its turn ended long ago or it was withdrawn before; `NotWaiting` if it is withdrawn now, or there is none of
    /// this number; the pod has ended.
    pub async fn wait(&self, input: InputId) -> Result<TurnEnd, SubmitError> {
        self.wait_until(input, false).await
    }

    /// As [`Self::wait`]; also returns when the pod waits for a person, with the outcome `Waiting`.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub async fn wait_until_asked(&self, input: InputId) -> Result<TurnEnd, SubmitError> {
        self.wait_until(input, true).await
    }

    async fn wait_until(&self, input: InputId, until_asked: bool) -> Result<TurnEnd, SubmitError> {
        let (reply, end) = oneshot::channel();
        self.ask(Command::Wait(input, EndWaiter { reply, until_asked }), end)
            .await
    }

    /// Answers what waits for approval, and returns the answer that counts once it is durable: the first one, which may be
    /// another client's.
    ///
    /// # Errors
    /// There is no such approval, the answer does not fit it, the disk refused, or the pod has ended.
    pub async fn approve(&self, answer: ApprovalAnswer) -> Result<ApprovalResolved, SubmitError> {
        let (reply, recorded) = oneshot::channel();
        self.ask(Command::Approve(answer, reply), recorded).await
    }

    /// The recorded calls that the rules of a question would have matched; `dir` is the session.
    ///
    /// # Errors
    /// There is no such question, the journal cannot be read, or the pod has ended.
    pub async fn past_calls(
        &self,
        approval: ApprovalId,
        dir: &Path,
    ) -> Result<MatchedCalls, SubmitError> {
        let (reply, search) = oneshot::channel();
        let search = self
            .ask(Command::PastCalls(approval, reply), search)
            .await?;
        let newest = *self.folded.borrow();
        search.run(dir, newest).await
    }

    /// What the call of a question would change in a file, as the file is now.
    ///
    /// # Errors
    /// There is no such question, or the pod has ended.
    pub async fn preview_call(&self, approval: ApprovalId) -> Result<PreviewedCall, SubmitError> {
        let (reply, preview) = oneshot::channel();
        let preview = self
            .ask(Command::PreviewCall(approval, reply), preview)
            .await?;
        Ok(preview.run().await)
    }

    /// Leaves the model a text, which the next step delivers; with `wake` an idle pod begins a turn for it. Returns once
    /// it is durable. Bounded as the notifications of one feature are.
    ///
    /// # Errors
    /// The text has no or too many bytes, too many wait, the disk refused, or the pod has ended.
    pub async fn notify(
        &self,
        text: String,
        wake: bool,
        by: Option<Who>,
    ) -> Result<(), SubmitError> {
        check_text(
            "a notification",
            &text,
            MAX_NOTIFICATION as usize,
            Lines::Many,
        )
        .map_err(SubmitError::TooLong)?;
        let notification = Notification {
            feature: None,
            by,
            text,
            wake,
            key: None,
            per_turn: MAX_PER_TURN,
        };
        let (reply, done) = oneshot::channel();
        let sent = self
            .commands
            .send(Command::Notify(notification, reply))
            .await;
        sent.map_err(|_closed| SubmitError::Closed)?;
        match answered(&self.commands, done).await {
            Some(Ok(_number)) => Ok(()),
            Some(Err(Declined::TooMany(why))) => Err(SubmitError::TooMany(why)),
            Some(Err(Declined::Refused(why))) => Err(SubmitError::Disk(why)),
            None => Err(SubmitError::Closed),
        }
    }

    /// Journals a call of a tool. Returns once that is durable.
    pub(super) async fn commit_call(&self, call: ClientCall) -> Result<(), SubmitError> {
        let (reply, done) = oneshot::channel();
        self.ask(Command::Call(call, reply), done).await
    }

    pub(super) fn tools(&self) -> &ClientTools {
        &self.tools
    }

    /// Keeps turns from beginning until the result is dropped.
    ///
    /// # Errors
    /// `Working` while a turn runs or an input is on its way; the pod has ended.
    pub async fn between_turns(&self) -> Result<BetweenTurns, SubmitError> {
        let (reply, opened) = oneshot::channel();
        let opened = self.ask(Command::BetweenTurns(reply), opened).await?;
        Ok(BetweenTurns {
            commands: self.commands.clone(),
            opened,
        })
    }

    /// What the pod does now; none if it has ended.
    pub async fn status(&self) -> Option<PodStatus> {
        let (reply, status) = oneshot::channel();
        self.commands.send(Command::Status(reply)).await.ok()?;
        answered(&self.commands, status).await
    }

    /// Ends a job with all of its processes. Returns once its end is durable.
    ///
    /// # Errors
    /// No such job runs, or the pod has ended.
    pub async fn stop_job(&self, job: u64, by: Option<Who>) -> Result<(), SubmitError> {
        let client = by.map_or_else(|| "yoi".to_owned(), |who| who.client);
        let control = self
            .jobs
            .stop(job, &client)
            .ok_or(SubmitError::NoJob(job))?;
        tokio::select! {
            () = control.over.cancelled() => Ok(()),
            () = self.commands.closed() => Err(SubmitError::Closed),
        }
    }

    /// What reads the memory of the jobs that run.
    pub(crate) fn job_memory(&self) -> Vec<(u64, ChildMemory)> {
        self.jobs.memory()
    }

    /// Replaces limits, permission and prices, for the turns that begin from now on.
    pub async fn reload(&self, reload: Reload) {
        // A pod that has ended begins no turn.
        drop(self.commands.send(Command::Reload(Box::new(reload))).await);
    }

    /// Asks the pod to end once no turn runs; its last record has the reason. Inputs that wait stay in the log.
    pub async fn close(&self, reason: &str) {
        self.end(reason, false).await;
    }

    /// As [`Self::close`], but the running turn is ended first. It counts as interrupted: the next start goes on with it.
    pub async fn leave(&self, reason: &str) {
        self.end(reason, true).await;
    }

    async fn end(&self, reason: &str, leave: bool) {
        // The pod has ended already.
        drop(
            self.commands
                .send(Command::Close {
                    reason: reason.to_owned(),
                    leave,
                })
                .await,
        );
    }

    async fn ask<T>(
        &self,
        command: Command,
        answer: oneshot::Receiver<Result<T, SubmitError>>,
    ) -> Result<T, SubmitError> {
        self.commands
            .send(command)
            .await
            .map_err(|_closed| SubmitError::Closed)?;
        answered(&self.commands, answer)
            .await
            .unwrap_or(Err(SubmitError::Closed))
    }

    /// The seq of the newest record that the pod has folded: everything up to it can be read from the files.
    #[must_use]
    pub fn folded(&self) -> watch::Receiver<u64> {
        self.folded.clone()
    }

    /// The events that are no records, from now on; a slow receiver misses some.
    #[must_use]
    pub fn transient(&self) -> broadcast::Receiver<Event> {
        self.transient.subscribe()
    }

    /// The output of the running calls, as it comes; a slow follower misses some.
    #[must_use]
    pub fn outputs(&self) -> OutputFollower {
        self.outputs.follow()
    }

    /// Says that a person follows the pod and can answer it, until the result is dropped: runs of background tasks are
    /// told. The server of clients does this for each attached driver.
    #[must_use]
    pub fn driver(&self) -> AttachedDriver {
        self.drivers.attach()
    }

    /// The install report of the pod's features.
    #[must_use]
    pub fn features(&self) -> &RegistryReport {
        self.registry.report()
    }

    /// The tools that a client can ask for, by name: all but the one by which the model calls those that requests leave out.
    #[must_use]
    pub fn offered_tools(&self) -> OfferedTools {
        let tools = self.registry.tools();
        let offered = tools
            .iter()
            .filter(|tool| tools.caller.as_ref() != Some(&tool.definition.name))
            .map(|tool| OfferedTool {
                name: tool.definition.name.clone(),
                description: tool.definition.description.clone(),
                schema: tool.definition.schema.to_string(),
                effect: tool.definition.effect.word().to_owned(),
                feature: tool.feature.to_string(),
            });
        OfferedTools {
            tools: offered.collect(),
        }
    }

    /// The limits of a turn whose input was submitted without limits.
    #[must_use]
    pub fn limits(&self) -> RunLimits {
        self.limits
    }
}
