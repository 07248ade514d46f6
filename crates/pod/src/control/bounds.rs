//! The checks that every call passes and the limits that nothing exceeds, as data for reports.

use super::call::around::MAX_REPEATS;
use super::call::output::{HELD, INLINE};
use super::call::parse;
use super::limits::{MAX_ANSWER, MAX_ARGUMENTS, MAX_CALLS, RunLimits};
use crate::feature::{
    CALLBACK_LIMIT, DEFAULT_DEADLINE, HostGate, HostLimit, MAX_DEADLINE, MAX_FEATURES, MAX_GATES,
    MAX_NOTES, MAX_NOTIFICATION, MAX_PER_TURN, MAX_STATE, MAX_TRANSFORMS,
};
use crate::foreign::{GRACE, MAX_STUCK, MAX_THREADS};
use crate::hook;
use crate::mailbox::pending::{MAX_ALERTS, MAX_MESSAGE, MAX_WAITING};
use crate::record::BudgetKind;
use crate::session::spent::{COUNTED, Counted};
use llm_worker::turn::TurnLimits;
use std::time::Duration;

/// The checks between a call and its result, in their order.
#[must_use]
pub fn gates() -> Vec<HostGate> {
    const GATES: [(&str, &str); 11] = [
        (
            "tool_arguments",
            "transforms of features may change the arguments; a transform that fails changes nothing",
        ),
        (
            "host:known-tool",
            "the tool must exist; otherwise the model gets the list of tools",
        ),
        (
            "host:arguments",
            "the arguments must match the tool's schema; otherwise the model is told what was expected",
        ),
        (
            "host:permission",
            "the permission rules must allow everything that the call names; a refusal is final",
        ),
        (
            "pre_tool_call",
            "gates of features may refuse, in install order; the first refusal is final, and a gate that fails refuses",
        ),
        (
            "host:journal",
            "the start of the call is on disk before the call runs",
        ),
        (
            "tool_run",
            "transforms of features may answer in place of the tool; a transform that fails changes nothing",
        ),
        (
            "tool_repeat",
            "transforms of features may have a call that is safe to repeat run again; a transform that fails changes nothing",
        ),
        (
            "host:deadline",
            "at the tool's deadline the call is cancelled; if it does not stop, it is abandoned",
        ),
        (
            "tool_shape",
            "transforms of features may change the whole result before it is kept; if a transform that may withhold \
             results fails, the result is withheld",
        ),
        (
            "tool_outcome",
            "transforms of features may change the result; a transform that fails changes nothing",
        ),
    ];
    GATES
        .iter()
        .map(|(name, text)| HostGate {
            name: (*name).to_owned(),
            text: (*text).to_owned(),
        })
        .collect()
}

/// The limits of a pod. `source` says where a limit of a run was set; without a kind, that of calls at once.
#[must_use]
pub fn limits<'a>(
    own: &RunLimits,
    source: impl Fn(Option<BudgetKind>) -> &'a str,
) -> Vec<HostLimit> {
    let set = |name: &str, value: u64, unit: &str, source: &str| {
        let [name, unit, source] = [name, unit, source].map(str::to_owned);
        HostLimit {
            name,
            value,
            unit,
            source,
        }
    };
    let fixed = |name, value, unit| set(name, value, unit, BUILT_IN);
    let sized = |name, value: usize, unit| fixed(name, count(value), unit);
    let timed = |name, time: Duration| {
        fixed(
            name,
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            "ms",
        )
    };
    let turn = |(most, row): (Option<u64>, &Counted)| {
        let (name, unit, one) = row.report;
        most.map(|most| set(name, most / one, unit, source(Some(row.kind))))
    };
    let mut turn = own.most().units().into_iter().zip(&COUNTED).map(turn);
    let steps = turn.next().flatten();
    let calls = count(own.tool_concurrency);
    let calls = set("tool.concurrency", calls, "calls", source(None));
    let limits = vec![
        sized("tool.arguments", MAX_ARGUMENTS, "bytes"),
        sized("tool.result_inline", INLINE, "bytes"),
        sized("tool.result_held", HELD, "bytes"),
        timed("tool.judging", parse::DEADLINE),
        timed("tool.deadline", DEFAULT_DEADLINE),
        timed("tool.deadline_most", MAX_DEADLINE),
        timed("tool.grace", GRACE),
        fixed("tool.repeats", MAX_REPEATS.into(), "repeats of a call"),
        sized("model.answer", MAX_ANSWER, "bytes"),
        sized("model.answer_parts", TurnLimits::PARTS, "parts"),
        sized("model.answer_calls", TurnLimits::CALLS, "calls"),
        sized("model.answer_arguments", MAX_CALLS, "bytes"),
        timed("hook.deadline", hook::DEFAULT_DEADLINE),
        timed("hook.deadline_most", hook::MAX_DEADLINE),
        timed("hook.chain", hook::CHAIN_BUDGET),
        fixed(
            "hook.failures_in_a_row",
            hook::MAX_CONSECUTIVE_FAILURES.into(),
            "failures",
        ),
        sized("hook.gates", MAX_GATES, "gates at a point"),
        sized("hook.transforms", MAX_TRANSFORMS, "transforms at a point"),
        sized("callback.threads", MAX_THREADS, "threads"),
        sized("callback.stuck", MAX_STUCK, "threads"),
        sized("feature.count", MAX_FEATURES, "features"),
        timed("feature.callback", CALLBACK_LIMIT),
        sized("feature.state", MAX_STATE, "bytes"),
        fixed("notification.size", MAX_NOTIFICATION.into(), "bytes"),
        fixed(
            "notification.per_turn",
            MAX_PER_TURN.into(),
            "notifications",
        ),
        sized("notification.waiting", MAX_WAITING, "notifications"),
        sized("alert.size", MAX_MESSAGE, "bytes"),
        fixed("alert.per_turn", MAX_ALERTS.into(), "alerts"),
        sized("note.size", MAX_MESSAGE, "bytes"),
        sized("note.per_day", MAX_NOTES, "notes"),
    ];
    let own = turn.flatten().chain(steps).chain([calls]);
    own.chain(limits).collect()
}

/// The source of limits that have no setting.
const BUILT_IN: &str = "built-in";

fn count(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
