//! The fold of a log into state. This one function changes a [`SessionState`], live and on replay.

use super::approvals::Approvals;
use super::calls::{CallApproval, NamedTools, OpenCall, RefusedCall};
use super::context::{ContextMeter, ContextPolicy, ContextStatus, keeps_up_to};
use super::lost::{LostRecords, bridged};
use super::queue::{InputQueue, RecentKeys};
use super::spent::{Spent, WorkTime, limit_of};
use super::standing::StandingFacts;
use super::tasks::TaskState;
use super::view::frees;
use super::view::shown::ShownItems;
use crate::record::{
    ApprovalDecision, ApprovalRequested, ApprovalResolved, BudgetScope, ChildProcess,
    CompactRequested, Decision, Encoder, FeatureState, FileChanged, HoldCause, HostStarted,
    InputId, InputLimits, MAX_CRASHES, NotificationQueued, Output, Record, RecordedRegistry,
    Request, SystemItem, ToolFinished, VerdictGiven,
};
use llm_worker::effect::Outcome;
use llm_worker::projection::Surface;
use llm_worker::{
    Attachment, CallId, Cost, ErrorKind, Item, ResultStatus, Shortfall, StopReason, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session_store::Digest;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Limit on outputs that can be read by handle; the oldest are dropped.
pub const MAX_OUTPUTS: usize = 4096;

/// Limit on recorded intents of file changes; the oldest are dropped.
pub const MAX_CHANGING: usize = 4096;

/// The input that a turn took, or that it goes on with after an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoingOn {
    /// An input of a client.
    pub input: InputId,
    /// How often a hook had the model go on with it.
    pub nth: u64,
    pub limits: Option<InputLimits>,
    /// What the session had used when a turn took it.
    pub since: Spent,
    /// It is a command of a person or a call of a client: only a call that waits for a person goes on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
}

/// What the gates at the end of the newest turn say of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndVerdict {
    /// None was asked, or none refused.
    #[default]
    Accepted,
    /// They have not answered.
    Due,
    NotAccepted,
}

/// The state of a session at some point of its log. It holds no item: those go to the history. Its shape is that of
/// checkpoints: [`checkpoint::VERSION`](super::checkpoint::VERSION) changes with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionState {
    /// A host started, and no record of its stop follows.
    pub hosted: bool,
    /// The newest start of the pod, for the next one; that of a single run only if there was no other.
    pub started: Option<HostStarted>,
    /// The fixed part of requests, and its encoder.
    pub surface: Option<(Surface, Encoder)>,
    /// The features of the newest start that went on; none if its report has no digests.
    pub installed: Option<RecordedRegistry>,
    /// The highest generation of a surface seen.
    pub surface_generation: u64,
    /// Accepted inputs that no turn has taken yet.
    pub queued: InputQueue,
    /// The highest input number given.
    pub inputs: u64,
    /// The highest turn number given.
    pub turns: u64,
    pub turn_open: bool,
    /// What the session had used when the newest turn began.
    pub turn_began: Spent,
    pub end_verdict: EndVerdict,
    /// The reason of a gate in the newest turn to have a person look behind it.
    pub pause_due: Option<String>,
    pub open_calls: BTreeMap<CallId, OpenCall>,
    pub named_tools: NamedTools,
    pub approvals: Approvals,
    /// The number of the newest item.
    pub items: u64,
    /// What of the items the next request shows.
    pub shown: ShownItems,
    pub context: ContextMeter,
    /// What stays in the context, and what the next note of the host is about.
    pub standing: StandingFacts,
    /// A person wishes a smaller context from the next request on.
    pub compact_due: Option<CompactRequested>,
    /// The highest call number given.
    pub calls: u64,
    pub requests: u64,
    pub usage: Usage,
    /// Cost of all answers, as far as prices were known; none if none was.
    pub cost: Option<Cost>,
    pub work_time: WorkTime,
    /// What the session had used when the pod got its budget, kind by kind: a person may have granted one once more.
    pub budget_since: Spent,
    /// The input of a client that the newest turn took or goes on with.
    pub going_on: Option<GoingOn>,
    /// The JSON Schema that the answer of the newest turn has to fit, as text.
    pub output_schema: Option<Arc<str>>,
    /// How the newest finished turn ended.
    pub last_outcome: Option<Outcome>,
    /// Why no turn begins.
    pub held: Option<Hold>,
    /// Turns that a crash interrupted, since one ended otherwise or a host stopped in good order.
    pub crashes: u32,
    /// The newest answer text of the newest turn; its parts, where reasoning separated them, by blank lines.
    pub last_answer: Option<Arc<str>>,
    /// The request that produced the newest answer, or that continues it.
    pub answered: u64,
    /// The refused call of the newest answer with calls in the newest turn; the last one if there are several.
    pub refused: Option<RefusedCall>,
    /// The reason why the newest answer of the newest turn does not do what was asked.
    pub shortfall: Option<Shortfall>,
    pub environment: Option<String>,
    /// Full outputs, newest last.
    pub outputs: Arc<VecDeque<Output>>,
    pub file_changes: u64,
    /// Intents of file changes that may have left temporary files, newest last.
    pub changing: VecDeque<FileChangeIntent>,
    /// Before-images of changed files, and the files beside texts.
    pub images: Arc<BTreeSet<Digest>>,
    /// Features' state in session scope, by feature and name.
    #[serde(with = "super::checkpoint::values")]
    pub features: BTreeMap<(String, String), FeatureState>,
    /// Undelivered notifications, by number.
    pub notices: BTreeMap<u64, NotificationQueued>,
    /// The highest notification number given.
    pub notified: u64,
    /// Features and keys of the newest notifications with keys.
    pub notice_keys: RecentKeys<(String, String)>,
    /// Background tasks that ran, by feature and name.
    #[serde(with = "super::tasks::listed")]
    pub tasks: BTreeMap<(String, String), TaskState>,
    /// The highest number of a run of a background task.
    pub task_runs: u64,
    /// Jobs by number: all that run, and the newest that ended.
    pub jobs: BTreeMap<u64, ChildProcess>,
    /// Those that ended, in the order of their ends.
    pub ended_jobs: VecDeque<u64>,
    /// The highest number of a job.
    pub job_numbers: u64,
    /// Lost records since the newest recovery that reported any: records may follow that do not fit.
    pub lost: Option<LostRecords>,
    /// Lost records that the model was not informed of.
    pub untold: Option<LostRecords>,
}

/// Why a pod begins no turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub cause: HoldCause,
    pub reason: String,
    /// Whose budget is used up, if it is one of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetScope>,
}

/// The intent of a file change whose completion is not recorded. The next start removes its temporary files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileChangeIntent {
    /// The call that changes the file; none for `yoi undo`.
    pub call: Option<CallId>,
    /// The file, or the new place of a directory; absolute.
    pub path: String,
    /// For a moved directory: the topmost directory that is created above its new place.
    pub made: Option<String>,
}

/// A record that cannot follow those before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a `{kind}` record is not valid here: {why}")]
pub struct IllegalRecord {
    pub kind: String,
    pub why: String,
}

impl SessionState {
    /// The input with which the next turn goes on, because the newest one was interrupted.
    #[must_use]
    pub fn continued(&self) -> Option<GoingOn> {
        self.going_on.filter(|_| self.is_interrupted())
    }

    /// Whether the next turn goes on with the newest one. A call of a person or a client that was cut off is not run again, and no
    /// model is asked about it.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        let is_over = self.going_on.is_some_and(|on| on.run) && self.open_calls.is_empty();
        matches!(
            self.last_outcome,
            Some(Outcome::Interrupted | Outcome::Waiting)
        ) && !is_over
    }

    /// What the newest turn worked on, if the next one goes on with it.
    pub fn interrupted_inputs(&self) -> impl Iterator<Item = InputId> {
        let inputs = if self.is_interrupted() {
            self.standing.inputs.as_slice()
        } else {
            &[]
        };
        inputs.iter().map(|active| active.input)
    }

    /// Whether a limit ended the newest turn, and the pod was resumed since: a turn without an input goes on with it.
    #[must_use]
    pub fn is_resumed_at_limit(&self) -> bool {
        self.last_outcome
            .as_ref()
            .is_some_and(|last| limit_of(last).is_some())
            && !self.turn_open
            && self.held.is_none()
    }

    /// The tokens of the next request, for a model with this window; none before there is a surface.
    #[must_use]
    pub fn context(&self, window: Option<u64>) -> Option<ContextStatus> {
        self.surface
            .as_ref()
            .map(|(surface, _)| self.context.usage(surface, window))
    }

    /// As [`Self::context`], with the size from which on old results leave, and what would be freed.
    #[must_use]
    pub fn context_under(
        &self,
        window: Option<u64>,
        policy: ContextPolicy,
    ) -> Option<ContextStatus> {
        let (surface, _) = self.surface.as_ref()?;
        let masks_above =
            window.map(|window| keeps_up_to(window, policy.prune_at, surface.max_output));
        let usage = self.context.usage(surface, window);
        let (masking_frees, steps_free) = frees(&self.context, surface, &usage, policy);
        Some(ContextStatus {
            masks_above,
            masking_frees,
            steps_free: Some(steps_free),
            ..usage
        })
    }

    /// What the session has used.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent_at(0)
    }

    /// What the session has used by now, microseconds since 1970.
    #[must_use]
    pub fn spent_at(&self, now_us: u64) -> Spent {
        let wall_us = self.work_time.until(now_us, self.works());
        Spent {
            requests: self.requests,
            usage: self.usage,
            cost: self.cost,
            wall_us,
        }
    }

    /// A start that lacks a required feature does not go on.
    fn installed(&mut self, report: &Value) {
        let lacks = report
            .get("unmet")
            .and_then(Value::as_array)
            .is_some_and(|unmet| !unmet.is_empty());
        if !lacks {
            self.installed = RecordedRegistry::of(report);
        }
    }

    /// Whether a turn is open that does not only wait for a person.
    fn works(&self) -> bool {
        let paused = self
            .held
            .as_ref()
            .is_some_and(|hold| hold.cause == HoldCause::Person);
        self.turn_open
            && !paused
            && (self.open_calls.is_empty() || self.parked().count() < self.open_calls.len())
    }

    /// The calls that wait for a person.
    pub fn parked(&self) -> impl Iterator<Item = CallId> {
        self.open_calls
            .iter()
            .filter(|(_, call)| call.waits_for().is_some())
            .map(|(id, _)| *id)
    }

    /// As [`Self::apply`], for a record with this clock, microseconds since 1970.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_at(&mut self, time_us: u64, record: &Record) -> Result<Vec<Item>, IllegalRecord> {
        let works = self.works();
        let items = self.apply(record)?;
        // The store writes these, also before a host starts; a listing leaves out the names of others.
        let is_of_store = matches!(record, Record::Other { kind } if !kind.is_empty());
        if !is_of_store {
            let begins = matches!(
                record,
                Record::HostStarted(_) | Record::Recovery(_) | Record::Gap(_)
            );
            self.work_time = self.work_time.at(time_us, works && !begins);
        }
        if matches!(record, Record::InputConsumed(_)) {
            self.standing.taken_at(time_us);
        }
        Ok(items)
    }

    /// Folds one more record. Returns the items that it adds to the history: at most one, except after lost records.
    ///
    /// # Errors
    /// The record contradicts the state: the log was not written by this program, or there is a bug.
    pub fn apply(&mut self, record: &Record) -> Result<Vec<Item>, IllegalRecord> {
        if self.lost.is_some() {
            return bridged(self, record);
        }
        self.follow(record).map(|item| item.into_iter().collect())
    }

    /// Folds a record that follows from those before it.
    pub(super) fn follow(&mut self, record: &Record) -> Result<Option<Item>, IllegalRecord> {
        let illegal = |why: &str| {
            Err(IllegalRecord {
                kind: record.kind().to_owned(),
                why: why.to_owned(),
            })
        };
        match record {
            Record::HostStarted(started) => {
                self.hosted = true;
                self.started(started);
                self.changing.clear();
                let again = self.crashes < MAX_CRASHES;
                self.held.take_if(|hold| {
                    hold.cause == HoldCause::Required || (again && hold.cause == HoldCause::Bug)
                });
            }
            Record::HostStopped(_) => (self.hosted, self.crashes) = (false, 0),
            Record::Gap(gap) => self.part(gap),
            Record::Recovery(recovery) => {
                // A turn that only waits for a person did nothing that could have ended the process.
                let waits =
                    !self.open_calls.is_empty() && self.parked().count() == self.open_calls.len();
                self.crashes += u32::from(recovery.open_turn && !waits);
                self.recovered(recovery);
            }
            Record::VerdictGiven(VerdictGiven {
                decision: Decision::Pause { reason },
                ..
            }) if self.turn_open => {
                self.pause_due = Some(reason.clone());
            }
            Record::VerdictGiven(VerdictGiven {
                turn: Some(turn),
                decision,
                ..
            }) if *turn == self.turns => {
                // Until the next turn, if there is one, has brought another answer.
                if matches!(decision, Decision::Again { .. }) {
                    self.shortfall = Some(Shortfall::NotAccepted);
                }
                let refuses = matches!(decision, Decision::Again { .. } | Decision::Pause { .. });
                self.end_judged(refuses);
            }
            Record::Features(features) => self.installed(&features.report),
            Record::VerdictGiven(VerdictGiven {
                call: Some(call),
                tool: Some(tool),
                ..
            }) if self.open_calls.contains_key(call) => {
                self.named_tools.add(*call, tool.clone());
            }
            Record::VerdictGiven(_)
            | Record::FeatureNote(_)
            | Record::ClientCall(_)
            | Record::GrantsUsed(_)
            | Record::ToolRepeated(_)
            | Record::Other { .. } => {}
            Record::Suspended(suspended) => {
                if let Some(cause) = suspended.cause.filter(|cause| cause.holds()) {
                    self.hold(cause, &suspended.reason, suspended.budget);
                }
                if suspended.cause == Some(HoldCause::Gate) {
                    self.end_judged(true);
                }
            }
            Record::Resumed(resumed) => {
                self.held.take_if(|hold| resumed.cause == Some(hold.cause));
                let spent = self.spent();
                self.budget_since.renew(spent, &resumed.more);
                // What goes on has its limits once more.
                if let Some(on) = self.going_on.as_mut().filter(|_| {
                    self.last_outcome
                        .as_ref()
                        .is_some_and(|last| limit_of(last).is_some())
                }) {
                    on.since = spent;
                }
            }
            Record::SurfaceSet(s) => {
                if s.surface.generation != self.surface_generation + 1 {
                    return illegal("its generation does not follow the last one");
                }
                self.surface_generation = s.surface.generation;
                let before = self
                    .surface
                    .as_ref()
                    .map(|(before, _)| before.model.as_str());
                self.context.surface(&s.surface, &s.sources, before);
                self.surface = Some((s.surface.clone(), s.encoder.clone()));
            }
            Record::InputQueued(queued) => {
                if queued.input != self.inputs + 1 {
                    return illegal("its input number does not follow the last one");
                }
                self.inputs = queued.input;
                self.refer(&queued.attachments);
                self.queued.push(queued);
                self.held.take_if(|hold| hold.cause == HoldCause::Cancel);
                self.keep(queued.whole.as_ref());
            }
            Record::InputConsumed(consumed) => {
                let open = self.turn_open.then_some(consumed.input);
                let Some(queued) = open.and_then(|input| self.queued.take(input)) else {
                    return illegal(
                        "no turn is open, or its input was not queued or was already taken",
                    );
                };
                self.standing.taken(&queued, self.items + 1);
                let item = queued.item();
                let run = queued.is_call();
                // A steered input only adds to what the turn does.
                if !queued.mode.steers() || queued.output_schema.is_some() {
                    self.output_schema = queued.output_schema;
                }
                let (input, nth) = queued
                    .again
                    .as_ref()
                    .map_or((queued.input, 0), |again| (again.of, again.nth));
                let before = self.going_on.filter(|_| queued.mode.steers());
                let (limits, since) =
                    before.map_or((queued.limits, self.spent()), |on| (on.limits, on.since));
                self.going_on = Some(GoingOn {
                    input,
                    nth,
                    limits,
                    since,
                    run,
                });
                // A person said what to do instead.
                self.refused = None;
                return Ok(Some(self.count(item)));
            }
            Record::InputWithdrawn(withdrawn) => {
                if self.queued.take(withdrawn.input).is_none() {
                    return illegal("its input is not waiting");
                }
            }
            Record::InputEdited(edited) => {
                if !self.queued.edit(edited) {
                    return illegal("its input is not waiting");
                }
                self.keep(edited.whole.as_ref());
            }
            Record::InputMoved(moved) => {
                if !self.queued.reorder(moved) {
                    return illegal("its input, or the one after it, is not waiting");
                }
            }
            Record::TurnStarted(started) => {
                if self.turn_open || started.turn != self.turns + 1 {
                    return illegal(
                        "another turn is open, or its number does not follow the last one",
                    );
                }
                let goes_on = self.is_interrupted() || self.is_resumed_at_limit();
                (self.turns, self.turn_open) = (started.turn, true);
                if !goes_on {
                    (self.going_on, self.output_schema) = (None, None);
                    self.standing.inputs.clear();
                }
                (self.last_answer, self.refused, self.shortfall) = (None, None, None);
                self.turn_began = self.spent();
                self.pause_due = None;
            }
            Record::SystemItem(said) => return self.say(said, record).map(Some),
            Record::ItemAdded(added) => return self.add(&added.item, record).map(Some),
            Record::Request(request) => {
                if let Some(why) = self.misfit(request) {
                    return illegal(why);
                }
                (self.requests, self.compact_due) = (request.number, None);
                self.standing.undone.clear();
                if let Some((surface, _)) = &self.surface {
                    self.context.request(surface);
                }
            }
            Record::Pruned(pruned) => {
                if self.surface.is_none() || !self.shown.precedes(pruned, self.items) {
                    return illegal("its view does not follow the last one");
                }
                if pruned.kept.is_some() && !self.open_calls.is_empty() {
                    return illegal("a call has no result");
                }
                self.shown = self.shown.after(pruned);
                self.context.left(&pruned.left);
                self.standing.note_due |= pruned.kept.is_some();
            }
            Record::CompactRequested(wish) => {
                self.compact_due = Some(wish.clone());
                // It may be the provider that says so.
                let is_full = matches!(
                    self.last_outcome,
                    Some(
                        Outcome::ContextLimit
                            | Outcome::ModelFailed {
                                kind: ErrorKind::Exhausted,
                                ..
                            }
                    )
                );
                let ends = is_full && !self.turn_open;
                self.held.take_if(|hold| {
                    ends && hold.cause == HoldCause::Budget && hold.budget.is_none()
                });
            }
            Record::Pinned(pinned) => {
                if let Err(why) = self.standing.pin(pinned) {
                    return illegal(why);
                }
            }
            Record::Unpinned(unpinned) => self.standing.unpin(unpinned.pin),
            Record::Response(response) => {
                self.context.response(&response.usage);
                self.usage = self.usage.plus(response.usage);
                self.shortfall = response.shortfall;
                if response.stop == StopReason::Paused {
                    self.answered = self.requests.saturating_add(1);
                }
                if let Some(cost) = response.cost {
                    self.cost = Some(self.cost.unwrap_or_default().plus(cost));
                }
            }
            Record::ApprovalRequested(requested) => {
                if let Err(why) = self.asked(requested) {
                    return illegal(why);
                }
            }
            Record::ApprovalResolved(resolved) => {
                if let Err(why) = self.resolved(resolved) {
                    return illegal(why);
                }
            }
            Record::RulesForgotten(forgotten) => self.approvals.forget(forgotten),
            Record::ToolStarted(started) => match self.open_calls.get_mut(&started.call) {
                Some(open) if !open.may_start(&started.arguments_digest) => {
                    return illegal(
                        "a person was asked about its call and has not allowed these arguments",
                    );
                }
                Some(open) if open.started.is_none() => open.started = Some(started.effect),
                Some(_) => return illegal("its call was already started"),
                None => return illegal("its call is not open"),
            },
            Record::ToolFinished(finished) => {
                let Some(open) = self.open_calls.get(&finished.call) else {
                    return illegal("its call is not open");
                };
                if open.started.is_none() && !open.records_lost_after_start && finished.ran() {
                    return illegal(
                        "its call was not started, but this result is of a call that ran",
                    );
                }
                if finished.outcome.status == ResultStatus::Refused {
                    let tool = self.named_tools.of(finished.call).unwrap_or(&open.name);
                    self.refused = Some(RefusedCall::of(tool, &finished.outcome));
                }
                if let Some(CallApproval::Waits(approval)) = open.approval {
                    self.approvals.withdraw(approval, &finished.outcome.summary);
                }
                self.settled(finished);
                let data = finished.data.as_ref();
                self.keep(finished.output.as_ref());
                self.keep(data.and_then(|data| data.output.as_ref()));
                let item = self.count(Item::ToolResult {
                    id: finished.call,
                    outcome: finished.outcome.clone(),
                });
                self.open_calls.remove(&finished.call);
                return Ok(Some(item));
            }
            Record::FileChanged(change) => self.change(change),
            Record::DirectoryMoved(moved) => {
                if moved.made.is_some() {
                    self.announced(moved.call, &moved.to, moved.made.clone());
                }
                if moved.call.is_none() {
                    self.standing.undone(&moved.to, false);
                }
            }
            Record::FeatureState(set) => {
                self.features
                    .insert((set.feature.clone(), set.name.clone()), set.clone());
            }
            Record::NotificationQueued(queued) => {
                if queued.number <= self.notified {
                    return illegal("its number was already used");
                }
                self.notified = queued.number;
                self.notices.insert(queued.number, queued.clone());
                if let Some(key) = &queued.key {
                    self.notice_keys
                        .push((queued.feature.clone(), key.clone()), queued.number);
                }
            }
            Record::BackgroundTask(run) => {
                if let Err(why) = self.task_run(run) {
                    return illegal(why);
                }
            }
            Record::ChildProcess(job) => {
                if let Err(why) = self.job(job) {
                    return illegal(why);
                }
            }
            Record::TurnFinished(finished) => {
                if !self.turn_open || finished.turn != self.turns {
                    return illegal("its turn is not open");
                }
                if self
                    .open_calls
                    .values()
                    .any(|call| call.waits_for().is_none())
                {
                    return illegal("a call has no result");
                }
                let waits = finished.outcome == Outcome::Waiting;
                if self.lost.is_none() && self.open_calls.is_empty() == waits {
                    return illegal(
                        "its outcome is `waiting` exactly if a call waits for a person",
                    );
                }
                if let Some(spent) = &finished.unanswered {
                    self.usage = self.usage.plus(spent.usage);
                    if let Some(cost) = spent.cost {
                        self.cost = Some(self.cost.unwrap_or_default().plus(cost));
                    }
                }
                self.turn_open = false;
                self.end_verdict = if finished.end_gates {
                    EndVerdict::Due
                } else {
                    EndVerdict::Accepted
                };
                self.turn_ended(&finished.outcome);
                self.last_outcome = Some(finished.outcome.clone());
            }
        }
        Ok(None)
    }

    /// The reason why this request cannot follow.
    fn misfit(&self, request: &Request) -> Option<&'static str> {
        let Some((surface, encoder)) = &self.surface else {
            return Some("there is no surface before it");
        };
        if !self.turn_open {
            return Some("no turn is open");
        }
        if !self.open_calls.is_empty() {
            return Some("a call has no result");
        }
        if request.items != self.shown.count(self.items) {
            return Some("it does not contain all items before it");
        }
        if request.view != self.shown.view.named() {
            return Some("it does not show what the view in force does");
        }
        if request.number != self.requests + 1 {
            return Some("its number does not follow the last one");
        }
        let fits = request.generation == surface.generation && request.encoder == *encoder;
        (!fits).then_some("its generation or encoder differs from the surface")
    }

    fn say(&mut self, said: &SystemItem, record: &Record) -> Result<Item, IllegalRecord> {
        let illegal = |why: &str| {
            Err(IllegalRecord {
                kind: record.kind().to_owned(),
                why: why.to_owned(),
            })
        };
        if !self.turn_open {
            return illegal("no turn is open");
        }
        match said {
            SystemItem::Environment { text, .. } => self.environment = Some(text.clone()),
            SystemItem::Context { .. } => self.standing.note_due = false,
            SystemItem::Recovery { .. } if self.lost.is_none() => self.untold = None,
            SystemItem::Recovery { .. } => {}
            SystemItem::Notification {
                number,
                feature,
                text,
                ..
            } => match self.notices.remove(number) {
                Some(queued) if queued.feature == *feature && queued.text == *text => {}
                Some(_) | None => {
                    return illegal("its notification was not queued or was already delivered");
                }
            },
        }
        Ok(self.count(said.item()))
    }

    fn add(&mut self, item: &Item, record: &Record) -> Result<Item, IllegalRecord> {
        if !self.turn_open {
            let why = "no turn is open".to_owned();
            return Err(IllegalRecord {
                kind: record.kind().to_owned(),
                why,
            });
        }
        match item {
            Item::ToolCall {
                id,
                name,
                arguments,
            } => {
                if id.number() != self.calls + 1 {
                    let why = format!("{id} is not the next call number");
                    return Err(IllegalRecord {
                        kind: record.kind().to_owned(),
                        why,
                    });
                }
                self.calls = id.number();
                // Calls after a refusal are its workaround.
                self.refused = None;
                let name = name.clone();
                let arguments = arguments.clone();
                let started = None;
                let approval = None;
                let records_lost_after_start = false;
                let open = OpenCall {
                    name,
                    arguments,
                    started,
                    approval,
                    records_lost_after_start,
                };
                self.open_calls.insert(*id, open);
            }
            Item::Assistant { text } => self.answer(text),
            Item::Reasoning { .. } => {}
            Item::User { .. }
            | Item::Command { .. }
            | Item::System { .. }
            | Item::ToolResult { .. } => {
                let why = "this item needs a record kind of its own".to_owned();
                return Err(IllegalRecord {
                    kind: record.kind().to_owned(),
                    why,
                });
            }
        }
        Ok(self.count(item.clone()))
    }

    fn asked(&mut self, requested: &ApprovalRequested) -> Result<(), &'static str> {
        if requested.approval != self.approvals.newest + 1 {
            return Err("its number does not follow the last one");
        }
        match self.open_calls.get_mut(&requested.call) {
            Some(open) if open.started.is_none() && open.approval.is_none() => {
                open.approval = Some(CallApproval::Waits(requested.approval));
            }
            Some(_) | None => {
                return Err("its call is not open, was started, or was asked about before");
            }
        }
        self.approvals.ask(requested);
        Ok(())
    }

    fn resolved(&mut self, resolved: &ApprovalResolved) -> Result<(), &'static str> {
        if !self.approvals.resolve(resolved) {
            return Err("its approval does not wait, or is about other arguments");
        }
        let waits =
            |call: &&mut OpenCall| call.approval == Some(CallApproval::Waits(resolved.approval));
        if let Some(call) = self.open_calls.values_mut().find(waits) {
            call.approval = Some(match resolved.decision {
                ApprovalDecision::Allow => CallApproval::Allowed {
                    arguments_digest: resolved.arguments_digest.clone(),
                },
                ApprovalDecision::Deny | ApprovalDecision::Void => CallApproval::Refused,
            });
        }
        Ok(())
    }

    fn started(&mut self, started: &HostStarted) {
        let is_run =
            |started: &HostStarted| started.launch.as_ref().is_some_and(|launch| launch.run);
        if !is_run(started) || self.started.as_ref().is_none_or(is_run) {
            self.started = Some(started.clone());
        }
    }

    /// A gate at the end of the newest turn has answered.
    fn end_judged(&mut self, refuses: bool) {
        if refuses {
            self.end_verdict = EndVerdict::NotAccepted;
        } else if self.end_verdict == EndVerdict::Due {
            self.end_verdict = EndVerdict::Accepted;
        }
        self.pause_due = None;
    }

    /// A pause by a person outlasts every other cause.
    fn hold(&mut self, cause: HoldCause, reason: &str, budget: Option<BudgetScope>) {
        if self
            .held
            .as_ref()
            .is_none_or(|hold| hold.cause != HoldCause::Person)
        {
            self.held = Some(Hold {
                cause,
                reason: reason.to_owned(),
                budget,
            });
        }
    }

    /// The holds that follow from the end of a turn need no record of their own.
    fn turn_ended(&mut self, outcome: &Outcome) {
        if let Some((cause, reason)) = outcome.hold(self.crashes) {
            self.hold(cause, &reason, None);
        }
        if !matches!(outcome, Outcome::Interrupted | Outcome::Waiting) {
            self.crashes = 0;
        }
    }

    fn answer(&mut self, text: &str) {
        let goes_on = self
            .last_answer
            .as_ref()
            .filter(|_| self.answered == self.requests);
        self.last_answer = Some(goes_on.map_or_else(
            || text.into(),
            |before| format!("{before}\n\n{text}").into(),
        ));
        self.answered = self.requests;
    }

    fn change(&mut self, change: &FileChanged) {
        self.file_changes += 1;
        self.standing.file_changed(&change.path);
        if change.call.is_none() {
            self.standing.undone(&change.path, change.after.is_none());
        }
        if let Some(image) = change
            .before
            .as_ref()
            .filter(|image| !self.images.contains(&image.digest))
        {
            Arc::make_mut(&mut self.images).insert(image.digest);
        }
        if change.after.is_some() {
            self.announced(change.call, &change.path, None);
        }
    }

    fn announced(&mut self, call: Option<CallId>, path: &str, made: Option<String>) {
        self.changing.push_back(FileChangeIntent {
            call,
            path: path.to_owned(),
            made,
        });
        self.changing
            .drain(..self.changing.len().saturating_sub(MAX_CHANGING));
    }

    /// Drops the intents of a call that succeeded. A failed call may have a thread that still changes a file.
    fn settled(&mut self, finished: &ToolFinished) {
        let well = finished.outcome.status == ResultStatus::Ok;
        self.changing
            .retain(|left| left.call != Some(finished.call) || (!well && left.made.is_none()));
    }

    pub(super) fn keep(&mut self, output: Option<&Output>) {
        if let Some(output) = output {
            let outputs = Arc::make_mut(&mut self.outputs);
            outputs.push_back(output.clone());
            outputs.drain(..outputs.len().saturating_sub(MAX_OUTPUTS));
        }
    }

    /// Keeps the blobs of files that requests show.
    fn refer(&mut self, files: &[Attachment]) {
        if !files.is_empty() {
            Arc::make_mut(&mut self.images).extend(files.iter().map(|file| file.digest));
        }
    }

    pub(super) fn count(&mut self, item: Item) -> Item {
        self.items += 1;
        self.refer(item.attachments());
        let mut named = None;
        let tool = match &item {
            Item::ToolResult { id, .. } => {
                named = self.named_tools.of(*id);
                self.open_calls.get(id).map(|call| call.name.as_str())
            }
            Item::User { .. }
            | Item::Command { .. }
            | Item::System { .. }
            | Item::Assistant { .. }
            | Item::Reasoning { .. }
            | Item::ToolCall { .. } => None,
        };
        // A model can make up any number of names.
        let tools = self
            .surface
            .as_ref()
            .map_or(&[][..], |(surface, _)| &surface.tools);
        let known = tool.filter(|name| tools.iter().any(|tool| tool.name == *name));
        self.context.add(&item, named.or(known));
        item
    }
}

#[cfg(test)]
mod tests;
