//! What the built-in features may have: the one table. What stands in no row is refused.

use pod::feature::{CapabilityPolicy, FeatureId, HostCapability};
use pod::hook::{Event, PreRequest, PreToolCall, PromptSubmit, ToolOutcome, ToolRepeat, ToolShape, TurnEnd};

/// Each built-in feature and what it holds. One with background tasks has `HostCapability::ANY_BACKGROUND_TASK` in its row.
const GRANTS: &[(&str, &[HostCapability])] = &[
    ("files", &[ANY_TOOL, HostCapability::WRITE_WORKSPACE]),
    ("search", &[ANY_TOOL, HostCapability::READ_WORKSPACE]),
    ("shell", &[ANY_TOOL, HostCapability::READ_WORKSPACE, HostCapability::ANY_PROGRAM]),
    ("task", &[ANY_TOOL, GATE_REQUESTS, HostCapability::SESSION_STATE, builtins::task::NOTIFY]),
    ("loop-detect", &[GATE_CALLS, HOOK_RESULTS, HostCapability::ANY_RESULT, HostCapability::SESSION_STATE]),
    (
        "circuit-breaker",
        &[GATE_CALLS, GATE_REQUESTS, HOOK_RESULTS, HostCapability::ANY_RESULT, HostCapability::SESSION_STATE],
    ),
    ("command-blocklist", &[GATE_CALLS, HOOK_RESULTS, HostCapability::ANY_RESULT, HostCapability::EmitUserAlert]),
    ("confirm-gate", &[GATE_CALLS]),
    ("phase-recorder", &[ANY_TOOL, HostCapability::SESSION_STATE]),
    ("write-policy", &[GATE_CALLS, HostCapability::READ_WORKSPACE]),
    (
        "work-item",
        &[
            ANY_TOOL,
            GATE_CALLS,
            HostCapability::SESSION_STATE,
            builtins::work_item::WRITE,
            builtins::work_item::PROVIDE,
            builtins::work_item::PROVIDE_TRACKER,
        ],
    ),
    ("memory", &[ANY_TOOL, builtins::memory::WRITE, builtins::memory::PROVIDE]),
    // Its hosts are a person's to name.
    ("web", &[ANY_TOOL]),
    ("schedule", &[ANY_TOOL, HostCapability::SESSION_STATE, builtins::schedule::NOTIFY, builtins::schedule::DELIVERS]),
    // The person writes its command, and names the host of its webhook.
    (
        "notify-person",
        &[
            HostCapability::ANY_BACKGROUND_TASK,
            OBSERVE,
            HostCapability::SESSION_STATE,
            HostCapability::ANY_PROGRAM,
            HostCapability::READ_WORKSPACE,
            builtins::notify_person::SECRET,
        ],
    ),
    (
        "work-item-intake",
        &[
            HostCapability::ANY_BACKGROUND_TASK,
            HostCapability::SESSION_STATE,
            READ_ITEMS,
            builtins::work_item_intake::NOTIFY,
        ],
    ),
    (
        "watch",
        &[HostCapability::READ_WORKSPACE, GATE_REQUESTS, OBSERVE, builtins::watch::NOTIFY, builtins::watch::LOOKS],
    ),
    (
        "jobs",
        &[
            ANY_TOOL,
            HostCapability::READ_WORKSPACE,
            HostCapability::ANY_PROGRAM,
            HostCapability::SESSION_STATE,
            HostCapability::EmitUserAlert,
            builtins::jobs::NOTIFY,
            builtins::jobs::TELLS,
        ],
    ),
    ("list-features", &[ANY_TOOL, builtins::list_features::RECORDS]),
    ("output-validate", &[JUDGE_INPUTS, END_TURNS, HostCapability::ANY_PROGRAM, HostCapability::READ_WORKSPACE]),
    ("step-tracer", &[OBSERVE, builtins::step_tracer::WRITE]),
    ("retry", &[REPEAT_CALLS, HostCapability::ANY_REPEAT]),
    ("dedup", &[HOOK_RESULTS, HostCapability::ANY_RESULT, HostCapability::SESSION_STATE]),
    ("redact", &[SHAPE_RESULTS, HostCapability::ANY_RESULT]),
    ("notes-router", &[ANY_TOOL, WRITE_ITEMS, WRITE_NOTES]),
];

/// Reading work items through their store.
const READ_ITEMS: HostCapability = HostCapability::WorkItemStore { read: true, write: false };

/// Changing work items through whoever provides them.
const WRITE_ITEMS: HostCapability = HostCapability::WorkItemStore { read: false, write: true };

/// Keeping notes through whoever provides memory.
const WRITE_NOTES: HostCapability = HostCapability::MemoryStore { read: false, write: true };

const GATE_CALLS: HostCapability = HostCapability::hook::<PreToolCall>();

/// Seeing that the model is asked, which is the same as standing where it could be refused.
const GATE_REQUESTS: HostCapability = HostCapability::hook::<PreRequest>();

/// Seeing results, which is the same as standing where they could be changed.
const HOOK_RESULTS: HostCapability = HostCapability::hook::<ToolOutcome>();

/// Refusing inputs.
const JUDGE_INPUTS: HostCapability = HostCapability::hook::<PromptSubmit>();

/// Having the model go on, or a person look, at the end of a turn.
const END_TURNS: HostCapability = HostCapability::hook::<TurnEnd>();

/// Running calls again that are safe to repeat.
const REPEAT_CALLS: HostCapability = HostCapability::hook::<ToolRepeat>();

/// Seeing whole results before they are kept.
const SHAPE_RESULTS: HostCapability = HostCapability::hook::<ToolShape>();

/// Getting every record.
const OBSERVE: HostCapability = HostCapability::hook::<Event>();

const ANY_TOOL: HostCapability = HostCapability::tool("*");

pub(crate) fn defaults() -> CapabilityPolicy {
    let rows = GRANTS.iter().flat_map(|(name, held)| held.iter().map(move |capability| (name, capability)));
    rows.fold(CapabilityPolicy::nothing(), |policy, (name, capability)| {
        policy.grant(FeatureId::builtin(name), capability.clone(), "default")
    })
}
