//! Hooks: points where a pod asks features before it acts, or tells them afterwards. It knows no actor.
//!
//! A *gate* may refuse, and refuses when it fails. A *transform* may replace a value, and the original stays when
//! it fails. An *observer* is told afterwards, in the background. The class of a point fixes what a failure means;
//! an author cannot change it:
//!
//! ```text
//!   prompt ─ PromptSubmit ─> turn ─ PreRequest ─> model ─> call ─ ToolArguments ─ host permission ─ PreToolCall ─┐
//!                              ▲                                                                               ▼
//!   TurnEnd <─ no more calls ──┴──────────────────────────────────────────────────── ToolOutcome <─ it runs ───┘
//! ```
//!
//! Hooks see read-only views and return values; they hold nothing that they could write through. They run on
//! callback threads, so a hook that hangs loses its own answer and nothing else.

mod chain;
mod limits;
mod observe;
mod point;
mod run;
mod typed;
mod verdict;

pub use chain::{GateOutcome, GateRun, Hook, HookChain, HookRegistry, HookRegistryBuilder, InstalledHook, Transformed};
pub use limits::{CHAIN_BUDGET, DEFAULT_DEADLINE, MAX_CONSECUTIVE_FAILURES, MAX_DEADLINE};
pub use point::{FailureRule, HookClass, HookPoint};
pub use typed::{
    Event, EventView, Gate, Observe, Point, PreRequest, PreToolCall, PromptSubmit, PromptView, RequestView,
    ToolArguments, ToolCallView, ToolOutcome, ToolOutcomeView, Transform, TurnEnd, TurnEndView,
};
pub use verdict::{Change, MAX_REASON, MayAbort, MayAllow, MayDeny, MayPause, Verdict};

/// What stands before a call: an author's own type implements this, a method of a live part does by itself.
pub type PublicPreToolCallHook = dyn Hook<PreToolCall>;
/// What a gate before a call decides.
pub type PublicPreToolCallDecision = Verdict<PreToolCall>;
