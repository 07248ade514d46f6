//! What the pod knows, in the protocol's types.

use crate::control::{self, Activity, ApprovalAnswer, OutputPart, PodStatus, SubmitError, TurnEnd};
use crate::record::{
    ApprovalRequested, ChildProcess, InputLimits, InputMode, JobStarter, ProposedRule, Who,
};
use crate::session::fold::EndVerdict;
use crate::session::queue::QueuedInput;
use llm_worker::Cost;
use protocol::error::{Error, ErrorKind};
use protocol::event::{AlertEvent, DeltaEvent, DeltaPart};
use protocol::method::{AllowOrDeny, Approve, OpenApprovals, TurnBudget, TurnEnded};
use protocol::status::{
    ApprovalStatus, BackgroundTaskStatus, DeliveryMode, HoldStatus, Host, JobStatus, PinStatus,
    Queued, State, Status,
};
use std::sync::Arc;

pub(super) fn status(status: PodStatus, pod: &str, host: &Host, clients: usize) -> Status {
    let asked = !status.approvals.is_empty();
    let (state, turn, step) = match status.activity {
        Activity::Idle if status.held.is_some() => (State::Held, None, None),
        Activity::Idle if asked => (State::Waiting, None, None),
        Activity::Idle => (State::Idle, None, None),
        Activity::Working { turn, requests } | Activity::Waiting { turn, requests } => (
            if asked {
                State::Waiting
            } else {
                State::Working
            },
            Some(turn),
            Some(requests),
        ),
        Activity::Paused { turn } => (State::Held, Some(turn), None),
        Activity::Closing => (State::Stopping, None, None),
    };
    let held = status.held.map(|hold| HoldStatus {
        cause: hold.cause.word().to_owned(),
        budget: hold.budget.map(|budget| budget.word().to_owned()),
        reason: hold.reason,
    });
    let (tasks, more_tasks) = background_tasks(status.tasks);
    Status {
        pod: pod.to_owned(),
        state,
        turn,
        step,
        held,
        disk: status.disk,
        model_wait: status.model_wait,
        approvals: status.approvals.iter().map(|open| approval(open)).collect(),
        queued: status.queued.iter().map(queued).collect(),
        notices: status.notices as u64,
        turns: status.turns,
        requests: status.requests,
        usage: status.usage,
        cost: status.cost.map(Cost::count),
        context: status.context,
        pins: status
            .pins
            .into_iter()
            .map(|(pin, text)| PinStatus { pin, text })
            .collect(),
        compact_due: status.compact_due,
        last_outcome: status
            .last_outcome
            .map(|last| outcome(&last, status.end_verdict)),
        model: status.model,
        stuck: status.stuck as u64,
        tasks,
        more_tasks,
        jobs: status.jobs.iter().map(job).collect(),
        clients: clients as u64,
        seq: status.folded,
        host: host.clone(),
    }
}

/// How a turn ended. One that gates at its end refused, or have not judged, is not reported as done.
#[must_use]
pub fn outcome(outcome: &llm_worker::Outcome, verdict: EndVerdict) -> protocol::record::Outcome {
    let mut shown = protocol::record::Outcome::from(outcome);
    if *outcome == llm_worker::Outcome::Done {
        shown.outcome = match verdict {
            EndVerdict::Accepted => "done",
            EndVerdict::Due => "answered",
            EndVerdict::NotAccepted => "not_accepted",
        }
        .to_owned();
    }
    shown
}

/// A waiting input, as a status shows it.
#[must_use]
pub fn queued(queued: &QueuedInput) -> Queued {
    let QueuedInput {
        input,
        mode,
        text,
        run,
        ..
    } = queued;
    let mode = match mode {
        InputMode::Queue => DeliveryMode::Queue,
        InputMode::Steer => DeliveryMode::Steer,
        InputMode::DenyParked => DeliveryMode::DenyParked,
    };
    Queued {
        input: *input,
        mode,
        text: text.chars().take(protocol::MAX_SHOWN).collect(),
        run: *run,
    }
}

/// A call that waits for a person, as a status shows it.
#[must_use]
pub fn approval(open: &ApprovalRequested) -> ApprovalStatus {
    let question = open.question.chars().take(protocol::MAX_SHOWN).collect();
    ApprovalStatus {
        approval: open.approval,
        call: open.call.to_string(),
        tool: open.tool.clone(),
        question,
        expires_ms: open.expires.map(|expires| expires.at_ms),
    }
}

/// A client's answer.
pub(super) fn answer(approve: Approve, by: Who) -> ApprovalAnswer {
    let Approve {
        id,
        decision,
        scope,
        arguments_digest,
        words,
        cmd_id: _,
    } = approve;
    ApprovalAnswer {
        approval: id,
        allow: decision == AllowOrDeny::Allow,
        scope,
        arguments_digest,
        words,
        by: Some(by),
    }
}

/// What waits for a person, and what was allowed for the pod.
pub(super) fn approvals(status: &PodStatus) -> OpenApprovals<Arc<ApprovalRequested>, ProposedRule> {
    OpenApprovals {
        approvals: status.approvals.clone(),
        rules: status.rules.clone(),
    }
}

/// Background tasks, as a status shows them: the first [`protocol::MAX_TASKS`], and how many more there are.
#[must_use]
pub fn background_tasks(mut all: Vec<BackgroundTaskStatus>) -> (Vec<BackgroundTaskStatus>, u64) {
    let rank = |task: &BackgroundTaskStatus| match task {
        BackgroundTaskStatus { run: Some(_), .. } => (0, 0),
        BackgroundTaskStatus { off: Some(_), .. } => (1, 0),
        BackgroundTaskStatus {
            next_due_ms: Some(due),
            ..
        } => (2, *due),
        // Of those without a next time, the one that ran last first.
        BackgroundTaskStatus { last, .. } => {
            (3, u64::MAX - last.as_ref().map_or(0, |last| last.at_ms))
        }
    };
    all.sort_by_key(rank);
    let more = all.len().saturating_sub(protocol::MAX_TASKS) as u64;
    all.truncate(protocol::MAX_TASKS);
    (all, more)
}

/// A job that runs, as a status shows it; given its first record.
#[must_use]
pub fn job(began: &ChildProcess) -> JobStatus {
    let ChildProcess {
        job,
        feature,
        starter,
        command,
        deadline_ms,
        at_ms,
        ..
    } = began.clone();
    let (call, run) = match starter {
        JobStarter::Call(call) => (Some(call.to_string()), None),
        JobStarter::Run(run) => (None, Some(run)),
    };
    let until_ms = at_ms.saturating_add(deadline_ms);
    JobStatus {
        job,
        feature,
        call,
        run,
        command,
        since_ms: at_ms,
        until_ms,
        memory: None,
    }
}

pub(super) fn ended(end: &TurnEnd, seq: u64) -> serde_json::Result<TurnEnded> {
    let mut ended = serde_json::to_value(end)?;
    if let Some(fields) = ended.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        fields.insert("seq".to_owned(), seq.into());
    }
    serde_json::from_value(ended)
}

pub(super) fn mode(mode: DeliveryMode) -> InputMode {
    match mode {
        DeliveryMode::Queue | DeliveryMode::Run => InputMode::Queue,
        DeliveryMode::Steer => InputMode::Steer,
        DeliveryMode::DenyParked => InputMode::DenyParked,
    }
}

pub(super) fn limits(budget: TurnBudget) -> InputLimits {
    let TurnBudget {
        max_steps,
        max_cost,
        max_tokens,
        max_wall_s,
    } = budget;
    InputLimits {
        max_steps,
        max_cost: max_cost.map(Cost::billionths),
        max_tokens,
        max_wall_s,
    }
}

pub(super) fn output(part: OutputPart) -> DeltaEvent {
    let OutputPart {
        call,
        turn,
        request,
        text,
        anew,
    } = part;
    DeltaEvent {
        turn,
        request,
        part: DeltaPart::Output {
            call: call.to_string(),
            text,
            anew,
        },
    }
}

pub(super) fn alert(alert: control::Alert) -> AlertEvent {
    AlertEvent {
        level: alert.level,
        from: alert.from.map(|feature| feature.to_string()),
        text: alert.text,
    }
}

pub(super) fn error(error: &SubmitError) -> Error {
    let kind = match error {
        SubmitError::Blob(_) | SubmitError::Disk(_) => ErrorKind::Disk,
        SubmitError::TooLong(_) | SubmitError::Unstorable(_) => ErrorKind::TooLong,
        SubmitError::Refused(_) => ErrorKind::Refused,
        SubmitError::ToolFailed(_) | SubmitError::NoShell(_) => ErrorKind::Failed,
        SubmitError::NoTool(_)
        | SubmitError::Arguments(_)
        | SubmitError::NoRuleNumber(_)
        | SubmitError::NoPin(_)
        | SubmitError::NoJob(_)
        | SubmitError::NoRun(_)
        | SubmitError::NotPinned(_)
        | SubmitError::Unchanged(_) => ErrorKind::Params,
        SubmitError::ReadOnly(_) => ErrorKind::NotAllowed,
        SubmitError::Busy | SubmitError::TooMany(_) => ErrorKind::Busy,
        SubmitError::NotWaiting(_) => ErrorKind::NotWaiting,
        SubmitError::Over(_) => ErrorKind::Over,
        SubmitError::NoApproval(_)
        | SubmitError::OtherArguments(_)
        | SubmitError::NoRule(_)
        | SubmitError::NoConfigurableRule(_) => ErrorKind::NoApproval,
        SubmitError::Unjudged(_) => ErrorKind::Internal,
        SubmitError::Required(_) => ErrorKind::Required,
        SubmitError::Budget(_) => ErrorKind::Budget,
        SubmitError::Working => ErrorKind::Working,
        SubmitError::Closed => ErrorKind::Closing,
    };
    Error::new(kind, error.to_string())
}
