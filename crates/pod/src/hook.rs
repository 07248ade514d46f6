//! Hooks: points where a pod calls features before it acts, or after a record is durable. Does not depend on the actor.
//!
//! A *gate* may refuse, and refuses when it fails. A *transform* may replace a value, and the original stays when
//! it fails. An *observer* gets durable records afterwards, in the background. The class of a point fixes what a failure means;
//! an author cannot change it:
//!
//! ```text
//!   prompt ─ PromptSubmit ─> turn ─ PreRequest ─> model ─> call ─ ToolArguments ─ host permission ─ PreToolCall ─┐
//!                              ▲                                                                               ▼
//!   TurnEnd <─ no more calls ──┴──────────────────────────────────────── ToolOutcome <─ ToolShape <─ it runs ───┘
//! ```
//!
//! Hooks get read-only views and return values; they have no handle to write through. They run on callback threads, so
//! a hook that hangs loses its own answer and nothing else.

mod answer;
mod arrange;
mod chain;
mod json;
mod limits;
mod observe;
mod point;
mod private;
mod run;
mod typed;
mod verdict;
mod wrap;

pub use answer::{HookAnswer, HookFailure};
pub(crate) use arrange::{HookPlace, arranged};
pub use chain::{
    GateOutcome, GateRun, Hook, HookChain, HookRegistry, HookRegistryBuilder, InstalledHook,
    Transformed,
};
pub(crate) use chain::{Recheck, Shaping};
pub use limits::{
    CHAIN_BUDGET, DEFAULT_DEADLINE, MAX_CONSECUTIVE_FAILURES, MAX_DEADLINE, MAX_OUTPUT_SCHEMA,
};
pub use point::{FailureRule, HookClass, HookPoint};
pub(crate) use private::begin as private_panics;
pub use private::silence_private_panics;
pub use typed::{
    AnswerView, AtPoint, Compaction, CompactionPlan, CompactionView, ErrorView, Event, EventView,
    Gate, LeavingResult, MAX_KEPT_CALLS, Observe, Point, PostAssistant, PreCompaction, PreRequest,
    PreToolCall, PromptSubmit, PromptView, ProposedCall, RequestView, SeesOutputSchema,
    ToolArguments, ToolCallView, ToolOutcome, ToolOutcomeView, ToolRepeat, ToolRepeatView, ToolRun,
    ToolRunView, ToolShape, ToolShapeView, Transform, TurnEnd, TurnEndView, TurnError,
};
pub use verdict::{
    Change, MAX_AGAIN, MAX_AGAIN_WORDS, MAX_EXPIRY, MAX_REASON, MAX_RETRIES, MAX_RETRY_WAIT,
    MayAbort, MayAllow, MayAsk, MayDeny, MayFinish, MayGoOn, MayPause, MayRetry, Verdict,
};
pub use wrap::ToolWrap;
pub(crate) use wrap::{WrapAfter, WrapAgain, WrapBefore};

/// The trait of a gate before a call. An author's own type implements it; a method of a live part becomes one by
/// itself.
pub type PublicPreToolCallHook = dyn Hook<PreToolCall>;
/// The return value of a [`PublicPreToolCallHook`].
pub type PublicPreToolCallDecision = Verdict<PreToolCall>;
