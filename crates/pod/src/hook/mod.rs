//! Hooks: where a pod asks others before, or tells them after.
//!
//! A *gate* may refuse, and refuses when it fails. A *transform* may replace a value, and the original stays when
//! it fails. An *observer* is told, off the path. The class, not the author, fixes what a failure means:
//!
//! ```text
//!   prompt ─ PromptSubmit ─> turn ─ PreRequest ─> model ─> call ─ ToolArguments ─ host permission ─ PreToolCall ─┐
//!                              ▲                                                                               ▼
//!   TurnEnd <─ no more calls ──┴──────────────────────────────────────────────────── ToolOutcome <─ it runs ───┘
//! ```
//!
//! Hooks see read-only views and answer values; they hold nothing through which they could write. They run on
//! callback threads, one hop for each pass over a chain, so one that hangs loses its answer and nothing else.

mod chain;
mod observe;
mod pass;
mod point;
mod verdict;

pub use chain::{Chain, GateRun, Hook, HookRegistry, HookRegistryBuilder, Passed, Slot, Transformed};
pub use point::{
    Event, EventView, FailureRule, Gate, HookClass, HookPoint, Observe, Point, PreRequest, PreToolCall, PromptSubmit,
    PromptView, RequestView, ToolArguments, ToolCallView, ToolOutcome, ToolOutcomeView, Transform, TurnEnd,
    TurnEndView,
};
pub use verdict::{Change, MAX_REASON, MayAbort, MayAllow, MayDeny, MayPause, Ruling, Verdict};

use std::time::Duration;

/// How long one hook may take when its key does not say.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(2);
/// The longest deadline a key may ask for.
pub const MAX_DEADLINE: Duration = Duration::from_secs(10);
/// How long one pass over a chain may take, whatever its hooks declare.
pub const CHAIN_BUDGET: Duration = Duration::from_secs(10);
/// After this many failures in a row a transform or an observer is not asked again. A gate always is.
pub const MAX_STRIKES: u32 = 3;

/// What stands before a call: an author's own type implements this, a method of a live part does by itself.
pub type PublicPreToolCallHook = dyn Hook<PreToolCall>;
/// What a gate before a call decides.
pub type PublicPreToolCallDecision = Verdict<PreToolCall>;
