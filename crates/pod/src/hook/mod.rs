//! Hooks: points where a pod calls features before it acts, or after a record is durable. Does not depend on the actor.
//!
//! A *gate* may refuse, and refuses when it fails. A *transform* may replace a value, and the original stays when
//! it fails. An *observer* gets durable records afterwards, in the background. The class of a point fixes what a failure means;
//! an author cannot change it:
//!
//! ```text
//!   prompt ─ PromptSubmit ─> turn ─ PreRequest ─> model ─> call ─ ToolArguments ─ host permission ─ PreToolCall ─┐
//!                              ▲                                                                               ▼
//!   TurnEnd <─ no more calls ──┴──────────────────────────────────────────────────── ToolOutcome <─ it runs ───┘
//! ```
//!
//! Hooks get read-only views and return values; they have no handle to write through. They run on callback threads, so
//! a hook that hangs loses its own answer and nothing else.

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

/// The trait of a gate before a call. An author's own type implements it; a method of a live part becomes one by
/// itself.
pub type PublicPreToolCallHook = dyn Hook<PreToolCall>;
/// The return value of a [`PublicPreToolCallHook`].
pub type PublicPreToolCallDecision = Verdict<PreToolCall>;
