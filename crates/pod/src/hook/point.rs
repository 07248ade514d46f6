//! The hook points and the class of each. Depends on no other module of the crate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The moment at which a hook is called.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// An input, before it is queued.
    PromptSubmit,
    /// A request to the model, before it is recorded.
    PreRequest,
    /// Old results or steps, before they leave the requests.
    PreCompaction,
    /// An answer that is whole, before its calls are judged.
    PostAssistant,
    /// A request that brought no answer.
    TurnError,
    /// A call that the host permits, on its final arguments.
    PreToolCall,
    /// A turn that has ended.
    TurnEnd,
    /// A call's arguments, before anything judges them. What replaces them is checked like the model's own.
    ToolArguments,
    /// A call that may run, before it runs: a transform may answer in its place. Installed last, asked first.
    ToolRun,
    /// A call that ended: whether it runs again.
    ToolRepeat,
    /// A call's result, whole, before it is bounded and kept.
    ToolShape,
    /// A call's result, before it is recorded and shown.
    ToolOutcome,
    /// A change that takes old results or steps out of the requests: which results stay.
    Compaction,
    /// A record that became durable.
    Event,
}

impl HookPoint {
    /// The class of the hooks at this point.
    #[must_use]
    pub const fn class(self) -> HookClass {
        match self {
            Self::PromptSubmit
            | Self::PreRequest
            | Self::PreCompaction
            | Self::PostAssistant
            | Self::TurnError
            | Self::PreToolCall
            | Self::TurnEnd => HookClass::Gate,
            Self::ToolArguments
            | Self::ToolRun
            | Self::ToolRepeat
            | Self::ToolShape
            | Self::ToolOutcome
            | Self::Compaction => HookClass::Transform,
            Self::Event => HookClass::Observe,
        }
    }
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a hook may do; fixed by its point.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HookClass {
    /// It can refuse.
    Gate,
    /// It can replace arguments or a result.
    Transform,
    /// It gets records, and can change nothing.
    Observe,
}

impl fmt::Display for HookClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gate => "gate",
            Self::Transform => "transform",
            Self::Observe => "observe",
        })
    }
}

/// What a panic, a passed deadline or a hang of a hook means.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FailureRule {
    /// It counts as refused, each time.
    Refuse,
    /// The value stays as it was; after three in a row it is not asked again.
    KeepOriginal,
    /// The result is withheld, each time.
    Withhold,
    /// It is counted; after three in a row it is not told again.
    Count,
}

impl HookClass {
    /// What reports say about a failed hook of this class. The behaviour itself is in `chain.rs` and `typed.rs`.
    #[must_use]
    pub const fn on_failure(self) -> FailureRule {
        match self {
            Self::Gate => FailureRule::Refuse,
            Self::Transform => FailureRule::KeepOriginal,
            Self::Observe => FailureRule::Count,
        }
    }
}
