//! The status, as records change it: what the pod's own fold counts, counted again by a client.
//!
//! Lost records are not bridged as the pod does it: only a repaired copy of a damaged journal has gaps, and the pod
//! that is started on it has a status behind them.

use protocol::journal::MAX_CRASHES;
use protocol::record::{Outcome, RecordBody, RecordView, Usage, known};
use protocol::status::{
    ApprovalStatus, DeliveryMode, HoldStatus, Host, PinStatus, Queued, ReloadReport, State, Status,
};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Waiting inputs that are kept; a pod accepts fewer.
const MAX_WAITING: usize = 1024;

/// The status of a pod without a record.
pub(super) fn before_any_record(pod: &str) -> Status {
    let nowhere = String::new;
    let host = Host {
        pid: 0,
        since_us: 0,
        version: nowhere(),
        sandbox: nowhere(),
        cwd: nowhere(),
        branch: None,
        reload: ReloadReport::default(),
    };
    Status {
        pod: pod.to_owned(),
        state: State::Idle,
        turn: None,
        step: None,
        held: None,
        disk: None,
        model_wait: None,
        approvals: Vec::new(),
        queued: Vec::new(),
        notices: 0,
        turns: 0,
        requests: 0,
        usage: Usage::default(),
        cost: None,
        context: None,
        pins: Vec::new(),
        compact_due: false,
        last_outcome: None,
        model: String::new(),
        stuck: 0,
        tasks: Vec::new(),
        more_tasks: 0,
        jobs: Vec::new(),
        clients: 0,
        seq: 0,
        host,
    }
}

/// The status after the pod has sent one. Of one that is older than the records that were folded, only what no record
/// tells is taken.
pub(super) fn rebased(now: &Status, sent: &Status) -> Status {
    if sent.seq < now.seq {
        let Status {
            context,
            disk,
            stuck,
            tasks,
            more_tasks,
            jobs,
            clients,
            host,
            ..
        } = sent.clone();
        return Status {
            context,
            disk,
            stuck,
            tasks,
            more_tasks,
            jobs,
            clients,
            host,
            ..now.clone()
        };
    }
    // A status of a turn that waits has no step.
    let step = sent
        .step
        .or_else(|| now.step.filter(|_| sent.turn == now.turn));
    Status {
        step,
        ..sent.clone()
    }
}

/// A number for comparing what the records of two statuses come to: they are equal if it is, but for hash collisions.
/// Where they run, and what no record tells, is not in it.
#[must_use]
pub fn digest(status: &Status) -> u64 {
    let Status {
        pod: _,
        context: _,
        disk: _,
        stuck: _,
        tasks: _,
        more_tasks: _,
        ..
    } = status;
    let Status {
        jobs: _,
        clients: _,
        seq: _,
        host: _,
        ..
    } = status;
    let mut value = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        let left_out = [
            "pod",
            "context",
            "disk",
            "stuck",
            "tasks",
            "more_tasks",
            "jobs",
            "clients",
            "seq",
            "host",
        ];
        fields.retain(|name, _| !left_out.contains(&name.as_str()));
    }
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Folds the next record.
pub(super) fn fold(status: &mut Status, record: &RecordView, crashes: u32) {
    status.seq = record.seq;
    match &record.body {
        RecordBody::HostStarted(started) => {
            let version = started.version.clone();
            let sandbox = started.sandbox.clone();
            let cwd = started.cwd.clone();
            let branch = None;
            let reload = ReloadReport::default();
            status.host = Host {
                pid: started.pid,
                since_us: record.time_us,
                version,
                sandbox,
                cwd,
                branch,
                reload,
            };
            resumed(status, "required");
            if crashes < MAX_CRASHES {
                resumed(status, "bug");
            }
            status.state = State::Idle;
        }
        RecordBody::HostStopped(_) => status.state = State::Stopping,
        RecordBody::SurfaceSet(set) => status.model.clone_from(&set.surface.model),
        RecordBody::Suspended(suspended) => match suspended.cause.as_deref() {
            // With the first the pod retries, without a cause it ends.
            Some("disk") | None => {}
            Some(cause) => {
                if cause == "gate" {
                    end_judged(status, true);
                }
                hold(
                    status,
                    cause,
                    &suspended.reason,
                    suspended.budget.as_deref(),
                );
            }
        },
        // Only a gate at the end of a turn names it.
        RecordBody::VerdictGiven(verdict)
            if verdict.other.get("turn") == Some(&status.turns.into()) =>
        {
            let refuses = matches!(verdict.decision.as_str(), "again" | "pause");
            if verdict.decision != "pause" || status.turn.is_none() {
                end_judged(status, refuses);
            }
        }
        RecordBody::Resumed(ended) => ended.cause.iter().for_each(|cause| resumed(status, cause)),
        RecordBody::TurnStarted(started) => {
            (status.turns, status.turn, status.step) = (started.turn, Some(started.turn), Some(0));
        }
        RecordBody::Request(request) => {
            (status.requests, status.compact_due) = (request.number, false);
            status.step = status.step.map(|step| step.saturating_add(1));
        }
        RecordBody::Response(response) => spend(status, &response.usage, response.cost),
        RecordBody::NotificationQueued(_) => status.notices = status.notices.saturating_add(1),
        RecordBody::SystemItem(item) if item.topic == "notification" => {
            status.notices = status.notices.saturating_sub(1);
        }
        RecordBody::TurnFinished(finished) => {
            if let Some(unanswered) = &finished.unanswered {
                spend(status, &unanswered.usage, unanswered.cost);
            }
            (status.turn, status.step) = (None, None);
            turn_ended(status, &finished.outcome, crashes);
            status.last_outcome = Some(finished.before_verdict());
        }
        RecordBody::ApprovalRequested(asked) => {
            let approval = asked.approval;
            let call = asked.call.clone();
            let tool = asked.tool.clone();
            let question = shown(&asked.question);
            let expires_ms = asked.expires.as_ref().map(|expires| expires.at_ms);
            status.approvals.push(ApprovalStatus {
                approval,
                call,
                tool,
                question,
                expires_ms,
            });
            status.approvals.truncate(MAX_WAITING);
        }
        RecordBody::ApprovalResolved(answer) => {
            status
                .approvals
                .retain(|waiting| waiting.approval != answer.approval);
        }
        RecordBody::CompactRequested(_) => {
            status.compact_due = true;
            compacts(status);
        }
        RecordBody::Pinned(pinned) => {
            status.pins.push(PinStatus {
                pin: pinned.pin,
                text: pinned.text.clone(),
            });
            status.pins.truncate(MAX_WAITING);
        }
        RecordBody::Unpinned(unpinned) => status.pins.retain(|pin| pin.pin != unpinned.pin),
        // A cancelled call waits no more.
        RecordBody::ToolFinished(finished) => status
            .approvals
            .retain(|waiting| waiting.call != finished.call),
        body => queue(status, body),
    }
    status.state = state(status, &record.body);
}

fn state(status: &Status, body: &RecordBody) -> State {
    match (status.state, status.turn) {
        (State::Stopping, _) => State::Stopping,
        (State::Held, Some(_)) if !goes_on(body) => State::Held,
        (_, Some(_)) if !status.approvals.is_empty() => State::Waiting,
        (_, Some(_)) => State::Working,
        (_, None) if status.held.is_some() => State::Held,
        (_, None) if !status.approvals.is_empty() => State::Waiting,
        (_, None) => State::Idle,
    }
}

/// Whether the turn that waits goes on with this record.
fn goes_on(body: &RecordBody) -> bool {
    matches!(
        body,
        RecordBody::TurnStarted(_) | RecordBody::Request(_) | RecordBody::Resumed(_)
    )
}

fn queue(status: &mut Status, body: &RecordBody) {
    let queued = &mut status.queued;
    let place = |queued: &[Queued], input| queued.iter().position(|waiting| waiting.input == input);
    match body {
        RecordBody::InputQueued(accepted) => {
            let steers = accepted.mode.as_deref() == Some("steer");
            let mode = if steers {
                DeliveryMode::Steer
            } else {
                DeliveryMode::Queue
            };
            let text = shown(&accepted.text);
            let run = accepted.run.unwrap_or_default();
            queued.push(Queued {
                input: accepted.input,
                mode,
                text,
                run,
            });
            queued.truncate(MAX_WAITING);
            resumed(status, "cancel");
        }
        RecordBody::InputConsumed(consumed) => {
            queued.retain(|waiting| waiting.input != consumed.input)
        }
        RecordBody::InputWithdrawn(withdrawn) => {
            queued.retain(|waiting| waiting.input != withdrawn.input)
        }
        RecordBody::InputEdited(edited) => {
            for waiting in queued
                .iter_mut()
                .filter(|waiting| waiting.input == edited.input)
            {
                waiting.text = shown(&edited.text);
            }
        }
        RecordBody::InputMoved(moved) => {
            let Some(from) = place(queued, moved.input) else {
                return;
            };
            let entry = queued.remove(from);
            let to = moved
                .before
                .and_then(|before| place(queued, before))
                .unwrap_or(queued.len());
            queued.insert(to, entry);
        }
        _ => {}
    }
}

/// A gate at the end of the newest turn has answered.
fn end_judged(status: &mut Status, refuses: bool) {
    let Some(last) = &mut status.last_outcome else {
        return;
    };
    match last.outcome.as_str() {
        "done" | "answered" if refuses => last.outcome = "not_accepted".to_owned(),
        "answered" => last.outcome = "done".to_owned(),
        _ => {}
    }
}

fn shown(text: &str) -> String {
    text.chars().take(protocol::MAX_SHOWN).collect()
}

/// Whether the pod is held because its next request does not fit the model's context: a person has to say what is done.
#[must_use]
pub fn is_context_full(status: &Status) -> bool {
    let is_full = status.last_outcome.as_ref().is_some_and(|outcome| {
        outcome.outcome == "context_limit" || outcome.help.as_deref().is_some_and(drops_turns)
    });
    is_full
        && status
            .held
            .as_ref()
            .is_some_and(|held| held.cause == "budget" && held.budget.is_none())
}

/// Whether the help for a failed request is about a full context.
#[must_use]
pub fn drops_turns(help: &str) -> bool {
    help.contains(" --drop-turns`")
}

/// A person answered a full context: its hold ends.
fn compacts(status: &mut Status) {
    if is_context_full(status) {
        status.held = None;
    }
}

/// A pause by a person outlasts every other cause.
fn hold(status: &mut Status, cause: &str, reason: &str, budget: Option<&str>) {
    if status
        .held
        .as_ref()
        .is_none_or(|held| held.cause != "person")
    {
        status.held = Some(HoldStatus {
            cause: cause.to_owned(),
            reason: reason.to_owned(),
            budget: budget.map(str::to_owned),
        });
    }
}

fn resumed(status: &mut Status, cause: &str) {
    status.held.take_if(|held| held.cause == cause);
}

/// The holds that follow from the end of a turn have no record of their own; none follows from an end of a later version.
fn turn_ended(status: &mut Status, outcome: &Outcome, crashes: u32) {
    let known = known::<protocol::outcome::Outcome>(outcome);
    if let Some((cause, reason)) = known.as_ref().and_then(|known| known.hold(crashes)) {
        hold(status, cause.word(), &reason, None);
    }
}

fn spend(status: &mut Status, usage: &Usage, cost: Option<u64>) {
    status.usage = status.usage.plus(*usage);
    if let Some(cost) = cost {
        status.cost = Some(status.cost.unwrap_or_default().saturating_add(cost));
    }
}
