//! Records that may follow each other, made from random numbers.

use llm_worker::effect::Outcome;
use llm_worker::projection::Surface;
use llm_worker::tool::Escalation;
use llm_worker::{
    CallId, Cost, Item, ProviderSignature, ResultStatus, SealedReasoning, Shortfall, StopReason,
    ToolEffect, ToolOutcome, Usage,
};
use pod::permission::{Rule, RuleDecision};
use pod::record::{
    ApprovalDecision, ApprovalExpiry, ApprovalRequested, ApprovalResolved, ApprovalScope,
    AskedCommand, AskingGate, BackgroundTask, BudgetKind, BudgetScope, ChildProcess, ClientCall,
    CommandPart, CompactRequested, Decision, DirectoryMoved, Encoder, FeatureState, FileChanged,
    Gap, GateNote, GrantsUsed, HoldCause, HostStopped, InputConsumed, InputEdited, InputMode,
    InputMoved, InputQueued, InputWithdrawn, ItemAdded, JobEnd, JobEndKind, JobStarter, KeptItem,
    NotificationQueued, Output, Pinned, ProposedRule, Pruned, PrunedContent, Record, Recovery,
    Request, Response, Resumed, RulesForgotten, Stored, SurfaceSet, SurfaceSources, Suspended,
    SystemItem, TaskRunState, ToolFinished, ToolStarted, TriggerKind, TurnFinished, TurnStarted,
    Unpinned, VerdictGiven, View, ViewLevel, Who,
};
use pod::session::fold::SessionState;
use serde_json::json;
use session_store::Digest;
use std::collections::BTreeMap;

/// How many ways there are to make a record.
pub(crate) const WAYS: u8 = 26;

/// A record as one JSON object: what a client needs of its header, and its body as the journal has it.
pub(crate) fn line(seq: u64, time: u64, record: &Record) -> String {
    let header = json!({ "k": record.kind(), "q": seq, "t": time, "v": 1 }).to_string();
    let body = serde_json::to_string(record).unwrap();
    match body.trim_start_matches('{') {
        "}" | "null" => header,
        fields => format!("{},{fields}", header.trim_end_matches('}')),
    }
}

fn call(number: u64) -> CallId {
    CallId::new(number % CallId::MAX + 1).unwrap()
}

fn encoder() -> Encoder {
    Encoder {
        id: "neutral".to_owned(),
        version: 1,
    }
}

pub(crate) fn output(number: u64) -> Option<Output> {
    let stored = Stored {
        digest: Digest::of(&number.to_le_bytes()),
        bytes: number,
        gap: None,
        whole: None,
    };
    number.is_multiple_of(2).then(|| stored.into())
}

pub(crate) fn surface(generation: u64) -> SurfaceSet {
    let model = "m".to_owned();
    let system = "s".to_owned();
    SurfaceSet {
        surface: Surface {
            generation,
            model,
            system,
            tools: Vec::new(),
            max_output: None,
            effort: None,
            thinking: false,
            media: Vec::new(),
        },
        encoder: encoder(),
        sources: SurfaceSources::default(),
    }
}

pub(crate) fn item(item: Item) -> Record {
    ItemAdded { item }.into()
}

pub(crate) fn asked(id: CallId) -> Record {
    item(Item::ToolCall {
        id,
        name: "T".to_owned(),
        arguments: "{\"a\":1}".to_owned(),
    })
}

pub(crate) fn request(number: u64, generation: u64, items: u64) -> Record {
    let digest = || "00".repeat(32);
    let neutral_digest = digest();
    let body_digest = digest();
    Request {
        number,
        generation,
        items,
        view: None,
        projection: 1,
        neutral_digest,
        encoder: encoder(),
        body_digest,
        bytes: 1,
    }
    .into()
}

pub(crate) fn started(call: CallId, effect: ToolEffect) -> Record {
    ToolStarted {
        call,
        name: "T".to_owned(),
        feature: "builtin:t".to_owned(),
        generation: 1,
        arguments: "{}".into(),
        arguments_digest: String::new(),
        effect,
        idempotency_key: format!("s-1/1/{call}"),
        escalation: (effect == ToolEffect::Effectful).then_some(Escalation::Network),
        hosts: (effect == ToolEffect::Effectful)
            .then(|| "a.test".to_owned())
            .into_iter()
            .collect(),
    }
    .into()
}

pub(crate) fn finished(call: CallId, output: Option<Output>) -> Record {
    let outcome = ToolOutcome {
        status: ResultStatus::Ok,
        summary: "ok".to_owned(),
        content: String::new(),
        attachments: Vec::new(),
    };
    ToolFinished {
        command: None,
        call,
        feature: None,
        outcome,
        output,
        ms: 1,
        transforms: Vec::new(),
        warnings: Vec::new(),
        answered_by: None,
        data: None,
    }
    .into()
}

pub(crate) fn denied(call: CallId) -> Record {
    let outcome = ToolOutcome {
        status: ResultStatus::Refused,
        summary: "no".to_owned(),
        content: String::new(),
        attachments: Vec::new(),
    };
    ToolFinished {
        command: None,
        call,
        feature: None,
        outcome,
        output: None,
        ms: 0,
        transforms: Vec::new(),
        warnings: Vec::new(),
        answered_by: None,
        data: None,
    }
    .into()
}

pub(crate) fn turn_finished(turn: u64) -> Record {
    TurnFinished {
        turn,
        outcome: Outcome::Done,
        unanswered: None,
        by: None,
        end_gates: false,
    }
    .into()
}

pub(crate) fn queued(input: u64, whole: Option<Output>) -> Record {
    InputQueued {
        input,
        text: format!("input {input}"),
        whole,
        ..InputQueued::default()
    }
    .into()
}

pub(crate) fn note(text: &str) -> Record {
    SystemItem::Environment {
        generation: 1,
        text: text.to_owned(),
    }
    .into()
}

fn recovery(text: &str) -> Record {
    SystemItem::Recovery {
        generation: 1,
        text: text.to_owned(),
    }
    .into()
}

pub(crate) fn recovered(lost: u64) -> Record {
    let class = "clean".to_owned();
    let open_calls = 0;
    let open_turn = false;
    let open_tasks = 0;
    let ended_processes = 0;
    let swept = 0;
    let cut_bytes = 0;
    let quarantine = None;
    let survivors = None;
    let down_us = 1;
    Recovery {
        class,
        cut_bytes,
        quarantine,
        open_calls,
        open_turn,
        open_tasks,
        ended_processes,
        survivors,
        down_us,
        swept,
        lost,
    }
    .into()
}

const FEATURE: &str = "builtin:t";

pub(crate) fn notification(number: u64) -> Record {
    let feature = FEATURE.to_owned();
    let text = format!("words {number}");
    NotificationQueued {
        number,
        feature,
        registry_generation: 1,
        text,
        wake: number.is_multiple_of(2),
        key: number
            .is_multiple_of(3)
            .then(|| format!("key {}", number % 5)),
        by: who(number),
    }
    .into()
}

fn delivered(number: u64) -> Record {
    let feature = FEATURE.to_owned();
    let text = format!("words {number}");
    SystemItem::Notification {
        number,
        feature,
        registry_generation: 1,
        text,
    }
    .into()
}

fn state(n: u64) -> Record {
    let feature = FEATURE.to_owned();
    let name = format!("state-{}", n % 3);
    FeatureState {
        feature,
        name,
        version: 1,
        value: std::sync::Arc::new(n.into()),
    }
    .into()
}

fn effect(number: u64) -> ToolEffect {
    match number % 3 {
        0 => ToolEffect::ReadOnly,
        1 => ToolEffect::Idempotent,
        _ => ToolEffect::Effectful,
    }
}

fn who(n: u64) -> Option<Who> {
    let name = n.is_multiple_of(4).then(|| "a".to_owned());
    n.is_multiple_of(2).then(|| Who {
        client: "yoi send".to_owned(),
        role: "driver".to_owned(),
        uid: 1000,
        name,
    })
}

/// The digest of all arguments here.
const DIGEST: &str = "";

pub(crate) fn approval_requested(approval: u64, call: CallId, n: u64) -> Record {
    ApprovalRequested {
        approval,
        call,
        tool: "T".to_owned(),
        feature: "builtin:t".to_owned(),
        effect: effect(n),
        arguments: "{}".into(),
        arguments_digest: DIGEST.to_owned(),
        definition_digest: DIGEST.to_owned(),
        resources_digest: DIGEST.to_owned(),
        question: format!("may it? {n}"),
        rule: "ask T (user.toml:1)".to_owned(),
        gates: (0..n % 2)
            .map(|n| AskingGate {
                hook: format!("h{n}"),
                feature: "example:g".to_owned(),
            })
            .collect(),
        command: n.is_multiple_of(5).then(|| asked_command(n)),
        sandbox: "off".to_owned(),
        rules: (0..n % 3).map(proposed).collect(),
        configurable: n.is_multiple_of(4),
        expires: n.is_multiple_of(3).then_some(ApprovalExpiry {
            at_ms: n,
            after_ms: n,
        }),
    }
    .into()
}

fn asked_command(n: u64) -> AskedCommand {
    let part = |n: u64| CommandPart {
        text: format!("a{n}"),
        at: (n > 0).then_some([n, n + 1]),
        asks: n == 1,
    };
    AskedCommand {
        field: "command".to_owned(),
        parts: (0..n % 3).map(part).collect(),
        more: n % 2,
    }
}

fn proposed(n: u64) -> ProposedRule {
    let rule = Rule {
        host: Some("example.org".to_owned()),
        ..Rule::new(format!("T{n}"), RuleDecision::Allow)
    };
    rule.proposed().unwrap()
}

/// Takes back a rule that may have been allowed.
fn forgotten(n: u64) -> Record {
    RulesForgotten {
        rules: vec![proposed(n % 3)],
        by: who(n),
    }
    .into()
}

/// What a host writes last.
fn ended(n: u64) -> Record {
    match n.is_multiple_of(2) {
        true => HostStopped {
            reason: "done".to_owned(),
        }
        .into(),
        false => GrantsUsed { grants: Vec::new() }.into(),
    }
}

/// The request as it is legal in this state.
fn in_view(mut record: Record, state: Option<&SessionState>) -> Record {
    if let (Record::Request(request), Some(state)) = (&mut record, state) {
        request.view = state.shown.view.named();
    }
    record
}

fn with_content(mut record: Record, n: u64) -> Record {
    if let Record::ToolFinished(finished) = &mut record {
        finished.outcome.content = "x".repeat((n % 80) as usize);
    }
    record
}

/// The results of some more items are masked.
fn pruned(n: u64, state: Option<&SessionState>) -> Record {
    let more = state.map_or(n, |state| {
        1 + n % (state.items - state.shown.view.pruned).max(1)
    });
    let before = state.map(|state| state.shown.clone()).unwrap_or_default();
    let upto = before.view.pruned.saturating_add(more);
    let bytes = BTreeMap::from([("T".to_owned(), n % 50)]);
    let left = PrunedContent {
        results: n % 3,
        bytes,
        seals: n % 2,
        calls: n % 5,
        gaps: n % 9,
        ..PrunedContent::default()
    };
    let mark = format!("{} of {}", Pruned::BYTES, Pruned::CALL);
    let results = Pruned {
        view: View {
            pruned: upto,
            ..before.view
        },
        min_bytes: n % 40,
        mark,
        whole_loops: n % 4 < 2,
        same: n.is_multiple_of(3).then(|| format!("as {}", Pruned::CALL)),
        referenced: n % 7,
        left,
        ..Pruned::default()
    };
    if n.is_multiple_of(2) {
        return results.into();
    }
    // Everything leaves but some inputs.
    let dropped = if n.is_multiple_of(5) {
        before.view.compacted
    } else {
        before.view.dropped
    };
    let (upto, call) = state.map_or((upto, 0), |state| (state.items, state.calls));
    let inputs = state
        .iter()
        .flat_map(|state| &state.standing.inputs)
        .map(|input| input.item);
    let new: Vec<u64> = inputs
        .filter(|item| *item > before.view.compacted && *item <= upto)
        .collect();
    let old = before.kept.iter().copied().filter(|kept| kept.0 > dropped);
    Pruned {
        view: View {
            pruned: upto,
            compacted: upto,
            dropped,
        },
        level: ViewLevel::Steps,
        kept: Some(
            old.chain(new.into_iter().map(|number| KeptItem(number, call)))
                .collect(),
        ),
        last_call: call,
        gap: format!(
            "{} from {} to {}",
            Pruned::ITEMS,
            Pruned::CALL,
            Pruned::LAST
        ),
        bare_gap: Pruned::ITEMS.to_owned(),
        ..results
    }
    .into()
}

/// What a person wishes of the context.
fn wish(n: u64, pin: u64) -> Record {
    match n % 3 {
        0 => Pinned {
            pin,
            text: format!("pin {n}"),
            by: who(n),
        }
        .into(),
        1 => Unpinned {
            pin: n % 4,
            by: who(n),
        }
        .into(),
        _ => CompactRequested {
            drop_turns: n.is_multiple_of(2),
            by: who(n),
        }
        .into(),
    }
}

/// A question, the answer to the first one that waits, or a rule that is taken back.
fn approval(n: u64, next: u64, call: CallId, state: Option<&SessionState>) -> Record {
    match n % 14 {
        11 => forgotten(n),
        12 => approval_requested(next, call, n),
        _ => approval_resolved(n, state),
    }
}

fn approval_resolved(n: u64, state: Option<&SessionState>) -> Record {
    let open = state.and_then(|s| s.approvals.open.keys().next().copied());
    ApprovalResolved {
        approval: open.unwrap_or(n),
        decision: [
            ApprovalDecision::Allow,
            ApprovalDecision::Deny,
            ApprovalDecision::Void,
        ][(n / 14 % 3) as usize],
        scope: [ApprovalScope::Once, ApprovalScope::Pod, ApprovalScope::Rule][(n % 3) as usize],
        arguments_digest: DIGEST.to_owned(),
        reason: n.is_multiple_of(3).then(|| format!("reason {n}")),
        by: who(n),
    }
    .into()
}

/// A record of one of three tasks: the end of its open run, or a new run, with or without a beginning of its own.
/// A job that begins, or the end of one that runs.
fn job(n: u64, state: Option<&SessionState>) -> Record {
    let open = state
        .and_then(|state| state.open_jobs().next())
        .filter(|_| !n.is_multiple_of(3));
    let ended = (open.is_some() || state.is_none() && n.is_multiple_of(2)).then(|| JobEnd {
        code: n.is_multiple_of(4).then_some(3),
        ..JobEnd::of(if n.is_multiple_of(4) {
            JobEndKind::Exited
        } else {
            JobEndKind::Lost
        })
    });
    let new = ChildProcess {
        job: state.map_or(n, |state| state.job_numbers) + 1,
        feature: "builtin:f".to_owned(),
        starter: if n.is_multiple_of(2) {
            JobStarter::Run(n)
        } else {
            JobStarter::Call(call(n))
        },
        pid: 7,
        start: n,
        command: format!("sleep {n}"),
        deadline_ms: n,
        at_ms: n,
        ended: None,
    };
    ChildProcess {
        ended,
        ..open.cloned().unwrap_or(new)
    }
    .into()
}

fn task(n: u64, state: Option<&SessionState>) -> Record {
    let feature = FEATURE.to_owned();
    let task = format!("task-{}", n % 3);
    let known = state.and_then(|s| s.tasks.get(&(feature.clone(), task.clone())));
    let open = known
        .and_then(|task| task.open.as_ref())
        .filter(|_| !n.is_multiple_of(7));
    let next = state.map_or(n, |s| s.task_runs.saturating_add(1 + n % 2));
    let n = n / 3;
    let ends = [
        TaskRunState::Completed,
        TaskRunState::Failed,
        TaskRunState::Cancelled,
        TaskRunState::TimedOut,
        TaskRunState::Orphaned,
    ];
    let begins = open.is_none() && !n.is_multiple_of(4);
    let triggers = [
        TriggerKind::Start,
        TriggerKind::Interval,
        TriggerKind::Cron,
        TriggerKind::Request,
        TriggerKind::ServiceEvent,
        TriggerKind::FileChange,
        TriggerKind::Restart,
    ];
    BackgroundTask {
        run: open.map_or(next, |open| open.run),
        feature,
        task,
        trigger: triggers[(n % 7) as usize],
        attempt: (n % 3) as u32 + 1,
        due_ms: n % 1000,
        at_ms: n % 999,
        effect: effect(n),
        state: if begins {
            TaskRunState::Running
        } else {
            ends[(n / 4 % 5) as usize]
        },
        reason: (!begins && n.is_multiple_of(2)).then(|| format!("reason {n}")),
        ms: (!begins && !n.is_multiple_of(5)).then_some(n),
        jobs: if begins {
            Vec::new()
        } else {
            (0..n % 3).collect()
        },
    }
    .into()
}

fn called(n: u64) -> Record {
    let tool = "T".to_owned();
    let feature = FEATURE.to_owned();
    let by = who(n / 12);
    ClientCall {
        tool,
        feature,
        arguments: format!("{{\"n\":{n}}}").into(),
        by,
    }
    .into()
}

fn verdict(n: u64, open: CallId, newest: Option<u64>) -> Record {
    let reason = format!("{n}");
    let rule = "r".to_owned();
    let (call, turn, decision) = match n % 3 {
        0 => (Some(open), None, Decision::Refuse { reason }),
        1 => (None, None, Decision::Pause { reason }),
        _ => {
            let decision = match newest.map(|_| n % 4) {
                Some(0) => Decision::Again { words: reason },
                Some(1) => Decision::Pause { reason },
                _ => Decision::Allow,
            };
            (None, newest, decision)
        }
    };
    VerdictGiven {
        call,
        turn,
        decision,
        rule,
        gate: GateNote::default(),
        transforms: Vec::new(),
        tool: newest
            .filter(|_| n.is_multiple_of(6))
            .map(|_| format!("named-{}", n % 4)),
    }
    .into()
}

/// A record of that way. With the numbers that `state` asks for it is legal more often than not; with `n` it is not.
pub(crate) fn record(way: u8, n: u64, state: Option<&SessionState>) -> Record {
    // Where records are lost, numbers go on from there.
    let over = state.and_then(|s| s.lost).map_or(0, |_| n % 3);
    let next = |now: fn(&SessionState) -> u64| state.map_or(n, |state| now(state) + 1 + over);
    let generation = |plus: u64| state.map_or(n, |s| s.surface_generation + plus + over);
    let open = || {
        state.and_then(|s| {
            s.open_calls
                .keys()
                .nth(n as usize % s.open_calls.len().max(1))
                .copied()
        })
    };
    let open = open().unwrap_or_else(|| call(n));
    let waits = |n: u64| {
        let known = state.and_then(|s| s.queued.iter().nth(n as usize % s.queued.len().max(1)));
        known.map_or(n, |waiting| waiting.input)
    };
    match way % WAYS {
        0 => surface(generation(1)).into(),
        1 => {
            let mode = if n.is_multiple_of(2) {
                InputMode::Queue
            } else {
                InputMode::Steer
            };
            let key = n.is_multiple_of(3).then(|| format!("key {n}"));
            let input = next(|s| s.inputs);
            let text = format!("input {input}");
            let run = mode == InputMode::Queue && n.is_multiple_of(5);
            InputQueued {
                input,
                text,
                run,
                whole: output(n),
                mode,
                key,
                ..InputQueued::default()
            }
            .into()
        }
        2 if over == 2 => InputConsumed { input: n }.into(),
        2 => {
            let input = state
                .and_then(|s| s.queued.iter().next().map(|waiting| waiting.input))
                .unwrap_or(n);
            InputConsumed { input }.into()
        }
        3 => TurnStarted {
            turn: next(|s| s.turns),
        }
        .into(),
        4 if n.is_multiple_of(2) => note(&format!("note {n}")),
        4 => recovery(&format!("note {n}")),
        5 => item(Item::Assistant {
            text: format!("answer {n}\n\"é\""),
        }),
        6 => {
            let signature = ProviderSignature {
                kind: "signature".to_owned(),
                data: format!("wax {n}"),
            };
            let seal = n.is_multiple_of(2).then(|| SealedReasoning {
                model: "m".to_owned(),
                generation: n % 3,
                signature,
            });
            item(Item::Reasoning {
                text: format!("thought {n}"),
                seal,
            })
        }
        7 | 8 => asked(state.map_or_else(|| call(n), |s| call(s.calls + over))),
        9 => in_view(
            request(
                next(|s| s.requests),
                generation(0),
                state.map_or(n, |s| s.shown.count(s.items)),
            ),
            state,
        ),
        10 => {
            let usage = Usage {
                input: n,
                output: n / 2,
                cached: n,
                ..Usage::default()
            };
            let cost = n.is_multiple_of(3).then(|| Cost::billionths(n));
            Response {
                stop: StopReason::Other(format!("stop {n}")),
                usage,
                cost,
                shortfall: n.is_multiple_of(2).then_some(Shortfall::NotDone),
            }
            .into()
        }
        11 => started(open, effect(n)),
        // Of a call that was not started only what says that it did not run.
        12 | 13
            if state.is_some_and(|s| {
                s.open_calls
                    .get(&open)
                    .is_some_and(|call| call.started.is_none())
            }) =>
        {
            denied(open)
        }
        12 | 13 => with_content(finished(open, output(n)), n),
        14 => verdict(n, open, state.map(|s| s.turns)),
        15 => {
            let outcome = match n % 5 {
                0 => Outcome::Cancelled,
                1 => Outcome::StepLimit,
                _ if state.is_some_and(|s| s.parked().next().is_some()) => Outcome::Waiting,
                2 => Outcome::Interrupted,
                _ => Outcome::Done,
            };
            let by = who(n).filter(|_| outcome == Outcome::Cancelled);
            let turn = state.map_or(n, |s| s.turns + over);
            let end_gates = n.is_multiple_of(2);
            TurnFinished {
                turn,
                outcome,
                unanswered: None,
                by,
                end_gates,
            }
            .into()
        }
        16 => {
            let before = output(n).map(|output| output.stored);
            let after = n.is_multiple_of(3).then(|| format!("{n}"));
            FileChanged {
                call: Some(open),
                path: format!("/p/{n}"),
                before,
                mode: Some(0o644),
                after,
                made: None,
            }
            .into()
        }
        17 => notification(next(|s| s.notified)),
        18 => delivered(
            state
                .and_then(|s| s.notices.keys().next().copied())
                .unwrap_or(n),
        ),
        19 => self::state(n),
        20 if n.is_multiple_of(3) => recovered(n % 2),
        20 => Gap {
            first: n,
            last: n,
            reason: None,
        }
        .into(),
        21 => task(n, state),
        22 => job(n, state),
        23 => pruned(n, state),
        25 => wish(n, next(|s| s.standing.pin_numbers)),
        _ => match n % 14 {
            6 => InputWithdrawn {
                input: waits(n),
                by: None,
            }
            .into(),
            7 => InputEdited {
                input: waits(n),
                text: format!("edited {n}"),
                whole: output(n),
                by: who(n),
            }
            .into(),
            8 => InputMoved {
                input: waits(n),
                before: (!n.is_multiple_of(5)).then(|| waits(n + 1)),
                by: None,
            }
            .into(),
            9 => held(n),
            10 => resumed(n, state),
            0 => Suspended {
                reason: "full".to_owned(),
                cause: None,
                budget: None,
                by: None,
            }
            .into(),
            1 => Resumed::default().into(),
            2 | 3 => ended(n),
            11..=13 => approval(n, next(|s| s.approvals.newest), open, state),
            4 => DirectoryMoved {
                call: Some(open),
                from: format!("/p/{n}"),
                to: "/q".to_owned(),
                made: None,
            }
            .into(),
            5 => called(n),
            _ => item(Item::user("never here".to_owned())),
        },
    }
}

fn held(n: u64) -> Record {
    let budget = n.is_multiple_of(4).then_some(BudgetScope::Pod);
    let cause = Some(if budget.is_some() {
        HoldCause::Budget
    } else {
        HoldCause::Person
    });
    Suspended {
        reason: "paused".to_owned(),
        cause,
        budget,
        by: who(n),
    }
    .into()
}

fn resumed(n: u64, state: Option<&SessionState>) -> Record {
    let cause = state.and_then(|s| s.held.as_ref()).map(|hold| hold.cause);
    let more = BudgetKind::ALL.into_iter().skip(n as usize % 5).collect();
    Resumed {
        cause,
        more,
        by: who(n),
    }
    .into()
}
