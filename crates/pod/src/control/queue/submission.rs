//! Changes of the queue on their way into the log, one after the other in the order of arrival: gates judge new texts,
//! a large one is stored as a blob, and the commit is awaited. Depends on no turn, only on the end of one.

use super::MAX_QUEUED;
use crate::control::client::{
    EndWaiter, NewInput, NewText, QueueCommand, Reply, Submission, TurnCancel,
};
use crate::control::core::Core;
use crate::control::gates;
use crate::control::person_command;
use crate::control::pipeline::ActorCommit;
use crate::control::submit_error::SubmitError;
use crate::control::turn_end::TurnEnd;
use crate::feature::{AskedCommand, Expansion};
use crate::hook::{GateOutcome, HookPoint, PromptSubmit, PromptView};
use crate::permission::Remedy;
use crate::record::{
    Decision, ExpandedCommand, HoldCause, InputEdited, InputId, InputMode, InputMoved, InputQueued,
    InputWithdrawn, Output, Record, Resumed, Stored, Who, command_of,
};
use crate::session::fold::SessionState;
use session_store::{BlobError, BlobRef};
use std::collections::{BTreeMap, VecDeque};
use std::panic::resume_unwind;
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet};

/// An input up to this many bytes, encoded as JSON, is in the history whole.
pub const MAX_INLINE_INPUT: usize = 256 * 1024;

/// Ends of turns that are remembered.
const MAX_ENDED: usize = 8;

/// Of a longer input: this much of its beginning and of its end.
const INPUT_ENDS: usize = 16 * 1024;

/// Changes of the queue that are not in the log yet, and the clients that wait for the end of a turn.
#[derive(Default)]
pub(crate) struct Submissions {
    waiting: VecDeque<QueueCommand>,
    step: Step,
    task: JoinSet<Prepared>,
    /// The turn that takes the input on its way is cancelled as it begins.
    cancel: Option<TurnCancel>,
    /// The clients that wait for the end of the turn of an input that no turn has taken.
    queued: BTreeMap<InputId, Vec<EndWaiter>>,
    /// Those of the running turn, with its inputs.
    taken: Vec<InputId>,
    current: Vec<EndWaiter>,
    /// The newest ends of turns with their inputs, for clients that ask late.
    ended: VecDeque<(Vec<InputId>, TurnEnd)>,
    /// A prepared text that waits until no other commit changes the queue.
    ready: Option<Prepared>,
    /// What a turn that goes on left, by the input with which it does.
    going_on: BTreeMap<InputId, WentOn>,
    /// The turns before the running one that it goes on with.
    before: Option<TurnEnd>,
    /// Somebody waits for what an earlier start accepted.
    takes_over: bool,
}

/// A turn that a gate has go on: its inputs, and its end so far.
struct WentOn {
    inputs: Vec<InputId>,
    end: TurnEnd,
}

/// The stage of the oldest change.
#[derive(Default)]
enum Step {
    #[default]
    Waiting,
    Preparing(Box<NewText>),
    /// Its commit is in flight, with this many records of the preamble before its own.
    Committing(Committing, usize),
}

/// Who waits for the commit, and the answer.
enum Committing {
    Accepted(InputId, Reply<InputId>, EndWaiter),
    Withdrawn(InputId, Reply<()>),
    Changed(Reply<()>),
    /// A gate refused; its verdict is being committed.
    Refused(Box<NewText>, String),
}

/// What was done to a text before its commit.
pub(crate) enum Prepared {
    /// A feature made it of a command, or says why it made none.
    Made(Result<(String, ExpandedCommand), String>),
    Judged(JudgedText),
}

/// The decision of gates about a text, and its blob if it is large; its files are stored.
pub(crate) struct JudgedText {
    outcome: GateOutcome,
    whole: Result<Option<BlobRef>, BlobError>,
}

impl Submissions {
    pub(crate) fn take(&mut self, command: QueueCommand, queued: usize) {
        let adds = matches!(command, QueueCommand::Text(NewText::Accept(_)));
        if self.waiting.len() >= MAX_QUEUED || (adds && queued + self.on_the_way() >= MAX_QUEUED) {
            command.refuse(SubmitError::Busy);
        } else {
            self.waiting.push_back(command);
        }
    }

    fn on_the_way(&self) -> usize {
        self.waiting.len() + usize::from(!matches!(self.step, Step::Waiting))
    }

    /// Whether somebody waits for what an earlier start accepted: each of these inputs then has a turn of its own.
    pub(crate) fn takes_over(&self) -> bool {
        self.takes_over
    }

    /// Whether somebody waits for an input whose turn was interrupted.
    pub(crate) fn waits_for_interrupted(&self, state: &SessionState) -> bool {
        state
            .interrupted_inputs()
            .any(|input| self.queued.contains_key(&input))
    }

    /// Whether the turn of an input was interrupted before this start, and no turn goes on with it yet.
    fn is_interrupted(&self, core: &Core, input: InputId) -> bool {
        let is_known = || {
            self.taken.contains(&input)
                || self.ended.iter().any(|(inputs, _)| inputs.contains(&input))
        };
        core.state.interrupted_inputs().any(|known| known == input) && !is_known()
    }

    /// Whether nothing is on its way to the log.
    pub(crate) fn is_idle(&self) -> bool {
        self.on_the_way() == 0
    }

    /// Cancels the turn that will take the inputs on their way, if there are any.
    pub(crate) fn cancel(&mut self, cancel: TurnCancel) {
        self.cancel = (!self.is_idle()).then_some(cancel);
    }

    /// A turn begins. Returns the cancel of it, if there was one.
    pub(crate) fn turn_begins(&mut self) -> Option<TurnCancel> {
        self.cancel.take()
    }

    /// The running turn took these inputs.
    pub(crate) fn taken(&mut self, inputs: impl Iterator<Item = InputId>) {
        for input in inputs {
            if let Some(WentOn { inputs, end }) = self.going_on.remove(&input) {
                self.taken.extend(inputs);
                self.before = Some(end);
            }
            self.current
                .extend(self.queued.remove(&input).into_iter().flatten());
            if !self.taken.contains(&input) {
                self.taken.push(input);
            }
        }
    }

    /// Sends the end of a turn to the clients that wait for it; if it goes on with another input, they wait for the end of
    /// that one's turn.
    pub(crate) fn turn_ended(&mut self, end: &TurnEnd, again: Option<InputId>) {
        let end = self
            .before
            .take()
            .map_or_else(|| end.clone(), |before| before.and(end.clone()));
        if let Some(input) = again {
            let replies = std::mem::take(&mut self.current);
            self.queued.entry(input).or_default().extend(replies);
            self.going_on.insert(
                input,
                WentOn {
                    inputs: std::mem::take(&mut self.taken),
                    end,
                },
            );
            return;
        }
        self.over(end);
    }

    fn over(&mut self, end: TurnEnd) {
        if self.ended.len() >= MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended
            .push_back((std::mem::take(&mut self.taken), end.clone()));
        for waiter in self.current.drain(..) {
            drop(waiter.reply.send(Ok(end.clone())));
        }
    }

    /// The end of turns that will not go on.
    fn answer_late(&mut self, input: InputId, inputs: Vec<InputId>, end: &TurnEnd) {
        for waiter in self.queued.remove(&input).into_iter().flatten() {
            drop(waiter.reply.send(Ok(end.clone())));
        }
        if self.ended.len() >= MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((inputs, end.clone()));
    }

    /// The pod waits for a person, and nothing else of the turn runs. Tells the clients that want to know: those of the
    /// running turn, and those whose inputs wait behind it.
    pub(crate) fn asked(&mut self, end: impl Fn() -> TurnEnd) {
        for waiting in self.queued.values_mut().chain([&mut self.current]) {
            for waiter in waiting.extract_if(.., |waiter| waiter.until_asked) {
                drop(waiter.reply.send(Ok(end())));
            }
        }
        self.queued.retain(|_, waiting| !waiting.is_empty());
    }

    /// Starts with the next change, unless one is on its way. The records of `preamble` go into the log before it.
    /// `busy` are the inputs that the running turn is taking.
    pub(crate) fn advance(
        &mut self,
        core: &mut Core,
        preamble: &mut Vec<Record>,
        busy: &[InputId],
    ) {
        if let Some(ready) = self.ready.take() {
            self.prepared(core, preamble, busy, ready);
        }
        while matches!(self.step, Step::Waiting) {
            let Some(command) = self.waiting.pop_front() else {
                return;
            };
            self.begin(core, preamble, busy, command);
        }
    }

    fn begin(
        &mut self,
        core: &mut Core,
        preamble: &mut Vec<Record>,
        busy: &[InputId],
        command: QueueCommand,
    ) {
        let waits =
            |input: InputId| core.state.queued.get(input).is_some() && !busy.contains(&input);
        match command {
            QueueCommand::Text(NewText::Accept(submission)) => {
                if let Some(new) = self.known(core, preamble, busy, submission) {
                    self.admit(core, preamble, NewText::Accept(new));
                }
            }
            QueueCommand::Text(new @ NewText::Edit { input, .. }) if waits(input) => {
                self.admit(core, preamble, new)
            }
            QueueCommand::Withdraw { input, by, reply } if waits(input) => {
                let record = InputWithdrawn { input, by }.into();
                self.commit(
                    core,
                    preamble,
                    vec![record],
                    Committing::Withdrawn(input, reply),
                );
            }
            QueueCommand::Reorder {
                input,
                before,
                by,
                reply,
            } if waits(input) && before != Some(input) => {
                match before.filter(|next| !waits(*next)) {
                    Some(next) => drop(reply.send(Err(SubmitError::NotWaiting(next)))),
                    None => {
                        let record = InputMoved { input, before, by }.into();
                        self.commit(core, preamble, vec![record], Committing::Changed(reply));
                    }
                }
            }
            QueueCommand::Text(NewText::Edit { input, .. })
            | QueueCommand::Withdraw { input, .. }
            | QueueCommand::Reorder { input, .. } => command.refuse(SubmitError::NotWaiting(input)),
        }
    }

    /// Answers an input whose key is known; returns any other. One that waits, or was interrupted, starts the pod, and ends a
    /// hold, as a new one does.
    fn known(
        &mut self,
        core: &mut Core,
        preamble: &mut Vec<Record>,
        busy: &[InputId],
        submission: Submission,
    ) -> Option<Submission> {
        let Some(input) = submission
            .input
            .key
            .as_deref()
            .and_then(|key| core.state.queued.accepted(key))
        else {
            return Some(submission);
        };
        let Submission {
            input: NewInput { by, .. },
            command: _,
            attachments: _,
            resume,
            accepted,
            end,
        } = submission;
        let waits = core.state.queued.get(input).is_some() && !busy.contains(&input);
        if waits || self.is_interrupted(core, input) {
            self.takes_over = true;
            let held = core.state.held.as_ref().filter(|_| resume);
            let resumed = held.map(|hold| {
                Resumed {
                    cause: Some(hold.cause),
                    more: Vec::new(),
                    by,
                }
                .into()
            });
            let records = resumed.into_iter().collect();
            self.commit(
                core,
                preamble,
                records,
                Committing::Accepted(input, accepted, end),
            );
        } else {
            drop(accepted.send(Ok(input)));
            self.wait(core, input, end);
        }
        None
    }

    /// Has a client wait for the end of the turn that takes an accepted input.
    pub(crate) fn wait(&mut self, core: &Core, input: InputId, end: EndWaiter) {
        // In place of those that wait no more: clients may come and go for as long as a turn takes.
        let join = |waiting: &mut Vec<EndWaiter>, end| {
            waiting.retain(|waiter| !waiter.reply.is_closed());
            waiting.push(end);
        };
        let later = self
            .going_on
            .iter()
            .find(|(_, before)| before.inputs.contains(&input))
            .map(|(later, _)| *later);
        let input = later.unwrap_or(input);
        if core.state.queued.get(input).is_some() || self.is_interrupted(core, input) {
            join(self.queued.entry(input).or_default(), end);
        } else if self.taken.contains(&input) {
            join(&mut self.current, end);
        } else if let Some((_, ended)) = self
            .ended
            .iter()
            .find(|(inputs, _)| inputs.contains(&input))
        {
            drop(end.reply.send(Ok(ended.clone())));
        } else {
            let known = (1..=core.state.inputs).contains(&input);
            let error = if known {
                SubmitError::Over(input)
            } else {
                SubmitError::NotWaiting(input)
            };
            drop(end.reply.send(Err(error)));
        }
    }

    /// Prepares a text, unless it is a command that the pod cannot run.
    fn admit(&mut self, core: &mut Core, preamble: &mut Vec<Record>, mut new: NewText) {
        match as_command(core, &new) {
            Ok(None) => {}
            Ok(Some(command)) => new.set_text(command),
            Err(error) => return new.refuse(error),
        }
        match expand(core, &mut new) {
            Ok(None) => self.prepare(core, preamble, new),
            Ok(Some(asked)) => {
                let callbacks = core.callbacks.clone();
                let registry = core.registry.clone();
                self.step = Step::Preparing(Box::new(new));
                self.task.spawn(async move {
                    Prepared::Made(asked.text(&callbacks, registry.redactor()).await)
                });
            }
            Err(error) => new.refuse(error),
        }
    }

    /// Has the gates judge a text, and stores a large one.
    fn prepare(&mut self, core: &mut Core, preamble: &mut Vec<Record>, mut new: NewText) {
        let output_schema: Option<Arc<str>> = match &new {
            NewText::Accept(submission) => submission.input.output_schema.as_deref().map(Arc::from),
            NewText::Edit { input, .. } => core
                .state
                .queued
                .get(*input)
                .and_then(|known| known.output_schema.clone()),
        };
        output_schema.iter().for_each(|schema| new.ask_for(schema));
        let is_large = encoded_len(new.text()) > MAX_INLINE_INPUT;
        let files = new.files();
        if !is_large
            && files.is_empty()
            && !core
                .registry
                .hooks()
                .any_gate::<PromptSubmit>(output_schema.is_some())
        {
            let outcome = GateOutcome {
                decision: Decision::Allow,
                runs: Vec::new(),
            };
            return self.judged(core, preamble, new, &outcome, None);
        }
        let registry = core.registry.clone();
        let callbacks = core.callbacks.clone();
        let blobs = core.store.blobs.clone();
        let text = new.judged_text();
        self.step = Step::Preparing(Box::new(new));
        self.task.spawn(async move {
            let view = || PromptView {
                text: text.clone(),
                output_schema,
            };
            let outcome = registry
                .hooks()
                .decide::<PromptSubmit>(&callbacks, view)
                .await;
            let is_refused = gates::refusal(&outcome).is_some();
            if is_refused || (!is_large && files.is_empty()) {
                return Prepared::Judged(JudgedText {
                    outcome,
                    whole: Ok(None),
                });
            }
            let store = move || {
                for file in &files {
                    blobs.put(&file.bytes)?;
                }
                is_large.then(|| blobs.put(text.as_bytes())).transpose()
            };
            match callbacks.runtime().spawn_blocking(store).await {
                Ok(whole) => Prepared::Judged(JudgedText { outcome, whole }),
                Err(panic) => resume_unwind(panic.into_panic()),
            }
        });
    }

    /// The next prepared text; pending while none is prepared. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Prepared, JoinError> {
        match self.task.join_next().await {
            Some(prepared) => prepared,
            None => std::future::pending().await,
        }
    }

    /// Commits a prepared text, or returns its error to the client.
    pub(crate) fn prepared(
        &mut self,
        core: &mut Core,
        preamble: &mut Vec<Record>,
        busy: &[InputId],
        prepared: Prepared,
    ) {
        if core.pipeline.changes_queue() {
            // The number of the next input depends on it.
            self.ready = Some(prepared);
            return;
        }
        let Step::Preparing(new) = std::mem::take(&mut self.step) else {
            return;
        };
        let mut new = *new;
        let prepared = match prepared {
            Prepared::Judged(judged) => judged,
            Prepared::Made(Err(why)) => return new.refuse(SubmitError::Refused(why)),
            Prepared::Made(Ok((text, made))) => {
                if let NewText::Accept(submission) = &mut new {
                    (submission.input.text, submission.command) = (text, Some(Box::new(made)));
                }
                return self.prepare(core, preamble, new);
            }
        };
        if let NewText::Edit { input, .. } = new
            && (core.state.queued.get(input).is_none() || busy.contains(&input))
        {
            return new.refuse(SubmitError::NotWaiting(input));
        }
        match prepared.whole {
            Ok(stored) => {
                let whole = stored.map(|stored| Output::from(Stored::from(stored)));
                self.judged(core, preamble, new, &prepared.outcome, whole);
            }
            Err(error) => new.refuse(error.into()),
        }
    }

    /// Commits the verdicts of gates about a text, and the text if they allow it.
    fn judged(
        &mut self,
        core: &mut Core,
        preamble: &mut Vec<Record>,
        new: NewText,
        outcome: &GateOutcome,
        whole: Option<Output>,
    ) {
        let verdicts = gates::verdicts(HookPoint::PromptSubmit, None, outcome);
        let mut records: Vec<_> = verdicts.into_iter().map(Record::from).collect();
        if let Some(reason) = gates::refusal(outcome) {
            return self.commit(
                core,
                preamble,
                records,
                Committing::Refused(Box::new(new), reason),
            );
        }
        let fitted = |core: &Core, text: String| match &whole {
            Some(whole) => shortened(core, &text, whole),
            None => text,
        };
        match new {
            NewText::Accept(Submission {
                input: new,
                command,
                attachments,
                resume,
                accepted,
                end,
            }) => {
                records.extend(resumed(core, new.by.as_ref()).filter(|_| resume));
                let input = core.state.inputs + 1;
                records.push(
                    InputQueued {
                        input,
                        text: fitted(core, new.text),
                        run: new.run,
                        whole,
                        mode: new.mode,
                        limits: new.limits,
                        output_schema: new.output_schema,
                        key: new.key,
                        by: new.by,
                        again: None,
                        command: command.map(|made| *made),
                        attachments,
                        call: new.call.map(|call| *call),
                    }
                    .into(),
                );
                self.commit(
                    core,
                    preamble,
                    records,
                    Committing::Accepted(input, accepted, end),
                );
            }
            NewText::Edit {
                input,
                text,
                by,
                reply,
            } => {
                records.push(
                    InputEdited {
                        input,
                        text: fitted(core, text),
                        whole,
                        by,
                    }
                    .into(),
                );
                self.commit(core, preamble, records, Committing::Changed(reply));
            }
        }
    }

    fn commit(
        &mut self,
        core: &mut Core,
        preamble: &mut Vec<Record>,
        records: Vec<Record>,
        what: Committing,
    ) {
        self.step = Step::Committing(what, preamble.len());
        let mut all = std::mem::take(preamble);
        all.extend(records);
        if all.is_empty() {
            return self.commit_ended();
        }
        core.append_actor_commit(ActorCommit::Queue, all);
    }

    /// The commit has ended, and is folded.
    pub(crate) fn commit_ended(&mut self) {
        let Step::Committing(what, _) = std::mem::take(&mut self.step) else {
            return;
        };
        match what {
            Committing::Accepted(input, accepted, end) => {
                drop(accepted.send(Ok(input)));
                self.queued.entry(input).or_default().push(end);
            }
            Committing::Withdrawn(input, reply) => {
                if let Some(WentOn { inputs, end }) = self.going_on.remove(&input) {
                    // The turns before had an end.
                    self.answer_late(input, inputs, &end);
                }
                for waiting in self.queued.remove(&input).into_iter().flatten() {
                    drop(waiting.reply.send(Err(SubmitError::NotWaiting(input))));
                }
                drop(reply.send(Ok(())));
            }
            Committing::Changed(reply) => drop(reply.send(Ok(()))),
            Committing::Refused(new, reason) => {
                self.cancel = None;
                new.refuse(SubmitError::Refused(reason));
            }
        }
    }

    /// The commit of these records will never become durable. Those of the preamble go before the next change.
    pub(crate) fn commit_refused(
        &mut self,
        error: SubmitError,
        records: Vec<Record>,
        preamble: &mut Vec<Record>,
    ) {
        let Step::Committing(what, before) = std::mem::take(&mut self.step) else {
            return;
        };
        *preamble = records;
        preamble.truncate(before);
        match what {
            Committing::Accepted(_, accepted, _) => drop(accepted.send(Err(error))),
            Committing::Withdrawn(_, reply) | Committing::Changed(reply) => {
                drop(reply.send(Err(error)))
            }
            Committing::Refused(new, _) => new.refuse(error),
        }
    }
}

/// Makes the input of a command that a person typed; gives one whose feature makes it.
fn expand(core: &Core, new: &mut NewText) -> Result<Option<AskedCommand>, SubmitError> {
    let NewText::Accept(Submission { input, command, .. }) = new else {
        return Ok(None);
    };
    if !input.expand || input.run || input.call.is_some() {
        return Ok(None);
    }
    let expanded = core.registry.expand(&input.text);
    match expanded.map_err(SubmitError::Refused)? {
        None => Ok(None),
        Some(Expansion::Asked(asked)) => Ok(Some(asked)),
        Some(Expansion::Made(text, made)) => {
            (input.text, *command) = (text, Some(Box::new(made)));
            Ok(None)
        }
    }
}

/// The end of a hold by this client; an input ends that of a cancelled turn by itself.
fn resumed(core: &Core, by: Option<&Who>) -> Option<Record> {
    let cause = core.state.held.as_ref()?.cause;
    (cause != HoldCause::Cancel).then(|| {
        Resumed {
            cause: Some(cause),
            more: Vec::new(),
            by: by.cloned(),
        }
        .into()
    })
}

/// The text in the journal of a person's command or a client's call; none for another input.
fn as_command(core: &Core, new: &NewText) -> Result<Option<String>, SubmitError> {
    let terms = core.permission.policy.terms;
    let wrong = |why: String| Err(SubmitError::Arguments(why));
    match new {
        NewText::Accept(Submission { input, .. }) if input.run || input.call.is_some() => {
            let what = if input.run { "a command" } else { "a call" };
            if input.mode != InputMode::Queue || (input.run && input.call.is_some()) {
                let why = "has a turn of its own: no running turn takes it";
                return wrong(format!("{what} {why}"));
            }
            if input.limits.is_some() || input.output_schema.is_some() {
                let why = "asks no model: it takes neither limits nor an output schema";
                return wrong(format!("{what} {why}"));
            }
            if !input.files.is_empty() {
                return wrong(format!("{what} asks no model: it takes no files"));
            }
            if let Some(call) = &input.call {
                return person_command::call_text(&core.registry, call).map(Some);
            }
            if core.registry.tools().get(terms.shell).is_none() {
                return Err(person_command::no_tool(&terms));
            }
            person_command::text(&terms, &input.text).map(Some)
        }
        NewText::Edit { input, text, .. }
            if core
                .state
                .queued
                .get(*input)
                .is_some_and(|waiting| waiting.run) =>
        {
            match command_of(text) {
                Some(command) => person_command::text(&terms, command).map(Some),
                None => wrong(format!(
                    "input {input} is a command: its text is `!` and a command; withdraw it to send another input"
                )),
            }
        }
        NewText::Edit { input, .. }
            if core
                .state
                .queued
                .get(*input)
                .is_some_and(|waiting| waiting.call.is_some()) =>
        {
            wrong(format!(
                "input {input} is a call and has no text; withdraw it to send another input"
            ))
        }
        NewText::Accept(_) | NewText::Edit { .. } => Ok(None),
    }
}

/// Both ends of a text, and the handle of the whole.
fn shortened(core: &Core, text: &str, whole: &Output) -> String {
    let head = text
        .get(..text.floor_char_boundary(INPUT_ENDS))
        .unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - INPUT_ENDS)..)
        .unwrap_or_default();
    let missing = text.len() - head.len() - tail.len();
    let hint = (core.permission.policy.terms.remedy)(&Remedy::PageOutput(whole.handle.clone()));
    format!(
        "{head}\n[… {missing} of {} bytes left out; {hint}]\n{tail}",
        text.len()
    )
}

/// Bytes of the text as a JSON string: at least its own, at most six times as many.
fn encoded_len(text: &str) -> usize {
    text.bytes()
        .map(|byte| {
            if byte < 0x20 {
                6
            } else {
                1 + usize::from(matches!(byte, b'"' | b'\\'))
            }
        })
        .sum()
}
