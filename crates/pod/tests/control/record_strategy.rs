//! Records that may follow each other, made from random numbers.

use llm_worker::effect::Outcome;
use llm_worker::projection::Surface;
use llm_worker::{
    CallId, Cost, Item, ProviderSignature, ResultStatus, SealedReasoning, Shortfall, StopReason, ToolEffect,
    ToolOutcome, Usage,
};
use pod::record::{
    Decision, DirectoryMoved, Encoder, FeatureState, FileChanged, Gap, GateNote, GrantsUsed, HostStopped,
    InputConsumed, InputQueued, ItemAdded, NotificationQueued, Output, Record, Recovery, Request, Response, Resumed,
    Stored, SurfaceSet, Suspended, SystemItem, ToolFinished, ToolStarted, TurnFinished, TurnStarted, VerdictGiven,
};
use pod::session::fold::SessionState;
use session_store::Digest;

/// How many ways there are to make a record.
pub(crate) const WAYS: u8 = 22;

fn call(number: u64) -> CallId {
    CallId::new(number % CallId::MAX + 1).unwrap()
}

fn encoder() -> Encoder {
    Encoder { id: "neutral".to_owned(), version: 1 }
}

pub(crate) fn output(number: u64) -> Option<Output> {
    let stored = Stored { digest: Digest::of(&number.to_le_bytes()), bytes: number, gap: None, whole: None };
    number.is_multiple_of(2).then(|| stored.into())
}

pub(crate) fn surface(generation: u64) -> SurfaceSet {
    let (model, system) = ("m".to_owned(), "s".to_owned());
    SurfaceSet {
        surface: Surface { generation, model, system, tools: Vec::new(), max_output: None },
        encoder: encoder(),
    }
}

pub(crate) fn item(item: Item) -> Record {
    ItemAdded { item }.into()
}

pub(crate) fn asked(id: CallId) -> Record {
    item(Item::ToolCall { id, name: "T".to_owned(), arguments: "{\"a\":1}".to_owned() })
}

pub(crate) fn request(number: u64, generation: u64, items: u64) -> Record {
    let digest = || "00".repeat(32);
    let (neutral_digest, body_digest) = (digest(), digest());
    Request { number, generation, items, projection: 1, neutral_digest, encoder: encoder(), body_digest, bytes: 1 }
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
    }
    .into()
}

pub(crate) fn finished(call: CallId, output: Option<Output>) -> Record {
    let outcome = ToolOutcome { status: ResultStatus::Ok, summary: "ok".to_owned(), content: String::new() };
    ToolFinished { call, feature: None, outcome, output, ms: 1, transforms: Vec::new(), warnings: Vec::new() }.into()
}

pub(crate) fn denied(call: CallId) -> Record {
    let outcome = ToolOutcome { status: ResultStatus::Refused, summary: "no".to_owned(), content: String::new() };
    ToolFinished { call, feature: None, outcome, output: None, ms: 0, transforms: Vec::new(), warnings: Vec::new() }
        .into()
}

pub(crate) fn turn_finished(turn: u64) -> Record {
    TurnFinished { turn, outcome: Outcome::Done, unanswered: None }.into()
}

pub(crate) fn queued(input: u64, whole: Option<Output>) -> Record {
    InputQueued { input, text: format!("input {input}"), whole }.into()
}

pub(crate) fn note(text: &str) -> Record {
    SystemItem::Environment { generation: 1, text: text.to_owned() }.into()
}

fn recovery(text: &str) -> Record {
    SystemItem::Recovery { generation: 1, text: text.to_owned() }.into()
}

pub(crate) fn recovered(lost: u64) -> Record {
    let class = "clean".to_owned();
    let (open_calls, open_turn, ended_processes, swept) = (0, false, 0, 0);
    let (cut_bytes, quarantine, survivors, down_us) = (0, None, None, 1);
    Recovery { class, cut_bytes, quarantine, open_calls, open_turn, ended_processes, survivors, down_us, swept, lost }
        .into()
}

const FEATURE: &str = "builtin:t";

fn notification(number: u64) -> Record {
    let (feature, text) = (FEATURE.to_owned(), format!("words {number}"));
    NotificationQueued { number, feature, registry_generation: 1, text }.into()
}

fn delivered(number: u64) -> Record {
    let (feature, text) = (FEATURE.to_owned(), format!("words {number}"));
    SystemItem::Notification { number, feature, registry_generation: 1, text }.into()
}

fn state(n: u64) -> Record {
    let (feature, name) = (FEATURE.to_owned(), format!("state-{}", n % 3));
    FeatureState { feature, name, version: 1, value: std::sync::Arc::new(n.into()) }.into()
}

fn effect(number: u64) -> ToolEffect {
    match number % 3 {
        0 => ToolEffect::ReadOnly,
        1 => ToolEffect::Idempotent,
        _ => ToolEffect::Effectful,
    }
}

/// A record of that way. With the numbers that `state` asks for it is legal more often than not; with `n` it is not.
pub(crate) fn record(way: u8, n: u64, state: Option<&SessionState>) -> Record {
    // Where records are lost, numbers go on from there.
    let over = state.and_then(|s| s.lost).map_or(0, |_| n % 3);
    let next = |now: fn(&SessionState) -> u64| state.map_or(n, |state| now(state) + 1 + over);
    let generation = |plus: u64| state.map_or(n, |s| s.surface_generation + plus + over);
    let open = || state.and_then(|s| s.open_calls.keys().nth(n as usize % s.open_calls.len().max(1)).copied());
    let open = open().unwrap_or_else(|| call(n));
    match way % WAYS {
        0 => surface(generation(1)).into(),
        1 => queued(next(|s| s.inputs), output(n)),
        2 if over == 2 => InputConsumed { input: n }.into(),
        2 => {
            let input = state.and_then(|s| s.queued.keys().next().copied()).unwrap_or(n);
            InputConsumed { input }.into()
        }
        3 => TurnStarted { turn: next(|s| s.turns) }.into(),
        4 if n.is_multiple_of(2) => note(&format!("note {n}")),
        4 => recovery(&format!("note {n}")),
        5 => item(Item::Assistant { text: format!("answer {n}\n\"é\"") }),
        6 => {
            let signature = ProviderSignature { kind: "signature".to_owned(), data: format!("wax {n}") };
            let seal =
                n.is_multiple_of(2).then(|| SealedReasoning { model: "m".to_owned(), generation: n % 3, signature });
            item(Item::Reasoning { text: format!("thought {n}"), seal })
        }
        7 | 8 => asked(state.map_or_else(|| call(n), |s| call(s.calls + over))),
        9 => request(next(|s| s.requests), generation(0), state.map_or(n, |s| s.items)),
        10 => {
            let usage = Usage { input: n, output: n / 2, cached: n, ..Usage::default() };
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
        12 | 13 if state.is_some_and(|s| s.open_calls.get(&open).is_some_and(|call| call.started.is_none())) => {
            denied(open)
        }
        12 | 13 => finished(open, output(n)),
        14 => {
            let (decision, rule) = (Decision::Refuse { reason: format!("{n}") }, "r".to_owned());
            VerdictGiven { call: Some(open), decision, rule, gate: GateNote::default(), transforms: Vec::new() }.into()
        }
        15 => turn_finished(state.map_or(n, |s| s.turns + over)),
        16 => {
            let (before, after) = (output(n).map(|output| output.stored), n.is_multiple_of(3).then(|| format!("{n}")));
            FileChanged { call: Some(open), path: format!("/p/{n}"), before, mode: Some(0o644), after, made: None }
                .into()
        }
        17 => notification(next(|s| s.notified)),
        18 => delivered(state.and_then(|s| s.notices.keys().next().copied()).unwrap_or(n)),
        19 => self::state(n),
        20 if n.is_multiple_of(3) => recovered(n % 2),
        20 => Gap { first: n, last: n, reason: None }.into(),
        _ => match n % 6 {
            0 => Suspended { reason: "full".to_owned() }.into(),
            1 => Resumed {}.into(),
            2 => HostStopped { reason: "done".to_owned() }.into(),
            3 => GrantsUsed { grants: Vec::new() }.into(),
            4 => DirectoryMoved { call: Some(open), from: format!("/p/{n}"), to: "/q".to_owned(), made: None }.into(),
            _ => item(Item::User { text: "never here".to_owned() }),
        },
    }
}
