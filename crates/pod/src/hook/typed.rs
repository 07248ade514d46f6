//! The input and the answer of the hooks at each point. It knows no chain's work and no feature but by its name.

use super::chain::{HookChain, HookRegistry, HookRegistryBuilder};
use super::point::{HookClass, HookPoint};
use super::verdict::{Change, Verdict};
use crate::feature::{FeatureId, secret};
use crate::record::{Decision, Record};
use authority::Redactor;
use llm_worker::effect::Outcome;
use llm_worker::tool::Touch;
use llm_worker::{CallId, ToolEffect, ToolOutput};
use std::sync::Arc;

/// A place where the host asks or tells. Only the host has points.
pub trait Point: sealed::HasChain + Send + Sync + Sized + 'static {
    /// The point's name in descriptors and reports.
    const POINT: HookPoint;
    /// What its hooks are.
    const CLASS: HookClass;
    /// What they see.
    type Input: Send + Sync + 'static;
    /// What they answer.
    type Answer: Send + 'static;
}

/// A point whose hooks may refuse.
pub trait Gate: Point<Answer = Verdict<Self>> {
    /// The decision that stands in for a gate that failed.
    fn refusal(reason: String) -> Decision;
}

/// A point whose hooks may replace a value.
pub trait Transform: Point<Answer = Change<Self::Value>> {
    /// What its hooks may replace: a call's arguments, or its result.
    type Value: Send + Sync + 'static;
    /// The input with another value in it.
    fn with(input: &Self::Input, value: &Self::Value) -> Self::Input;
    /// BLAKE3 of the value in an input, hex.
    fn digest(input: &Self::Input) -> String;
    /// The name of a secret that stands in an input.
    fn secret(input: &Self::Input, redactor: &Redactor) -> Option<String>;
}

/// A point whose hooks are told.
pub trait Observe: Point<Answer = ()> {}

pub(super) mod sealed {
    use super::{HookChain, HookRegistry, HookRegistryBuilder};

    /// Where a point's hooks are kept.
    pub trait HasChain: Sized {
        /// The point's chain, to run it.
        fn chain(hooks: &HookRegistry) -> &HookChain<Self>
        where
            Self: super::Point;
        /// The point's chain, to add a hook.
        fn chain_mut(hooks: &mut HookRegistryBuilder) -> &mut HookChain<Self>
        where
            Self: super::Point;
    }
}

/// Declares the type of every point: a new one is a variant of [`HookPoint`], a line here and the impl of its class.
macro_rules! points {
    ($($(#[$doc:meta])* $point:ident($input:ty) -> $answer:ty, $field:ident;)*) => {
        $($(#[$doc])* pub enum $point {}

        impl Point for $point {
            const POINT: HookPoint = HookPoint::$point;
            const CLASS: HookClass = HookPoint::$point.class();
            type Input = $input;
            type Answer = $answer;
        }

        impl sealed::HasChain for $point {
            fn chain(hooks: &HookRegistry) -> &HookChain<Self> {
                &hooks.chains.$field
            }
            fn chain_mut(hooks: &mut HookRegistryBuilder) -> &mut HookChain<Self> {
                &mut hooks.chains.$field
            }
        })*

        /// One chain for each point.
        #[derive(Default)]
        pub(super) struct Chains {
            $(pub(super) $field: HookChain<$point>,)*
        }
    };
}

points! {
    /// A person's words, before they are queued.
    PromptSubmit(PromptView) -> Verdict<Self>, prompt_submit;
    /// A request to the model, before it is recorded.
    PreRequest(RequestView) -> Verdict<Self>, pre_request;
    /// A call that the host permits, on its final arguments.
    PreToolCall(ToolCallView) -> Verdict<Self>, pre_tool_call;
    /// A turn that has ended.
    TurnEnd(TurnEndView) -> Verdict<Self>, turn_end;
    /// A call's arguments, before anything judges them. What replaces them is checked like the model's own.
    ToolArguments(ToolCallView) -> Change<serde_json::Value>, tool_arguments;
    /// A call's result, before it is recorded and shown.
    ToolOutcome(ToolOutcomeView) -> Change<ToolOutput>, tool_outcome;
    /// A record that became durable.
    Event(EventView) -> (), event;
}

impl Gate for PreToolCall {
    fn refusal(reason: String) -> Decision {
        Decision::Refuse { reason }
    }
}

impl Gate for PromptSubmit {
    fn refusal(reason: String) -> Decision {
        Decision::Abort { reason }
    }
}

impl Gate for PreRequest {
    fn refusal(reason: String) -> Decision {
        Decision::Abort { reason }
    }
}

impl Gate for TurnEnd {
    fn refusal(reason: String) -> Decision {
        Decision::Pause { reason }
    }
}

impl Transform for ToolArguments {
    type Value = serde_json::Value;

    fn with(input: &ToolCallView, value: &serde_json::Value) -> ToolCallView {
        ToolCallView { arguments: value.to_string().into(), ..input.clone() }
    }

    fn digest(input: &ToolCallView) -> String {
        blake3::hash(input.arguments.as_bytes()).to_hex().to_string()
    }

    /// Arguments are looked through as values: their text writes quotes and line ends otherwise.
    fn secret(input: &ToolCallView, redactor: &Redactor) -> Option<String> {
        let whole = || redactor.finds(input.arguments.as_bytes());
        serde_json::from_str(&input.arguments).ok().and_then(|value| secret(&value, redactor)).or_else(whole)
    }
}

impl Transform for ToolOutcome {
    type Value = ToolOutput;

    /// How the call ended stays: a transform words a result anew, it does not turn an error into a success.
    fn with(input: &ToolOutcomeView, value: &ToolOutput) -> ToolOutcomeView {
        let ToolOutput { summary, content } = value.clone();
        let outcome = llm_worker::ToolOutcome { status: input.outcome.status, summary, content };
        ToolOutcomeView { outcome, ..input.clone() }
    }

    fn digest(input: &ToolOutcomeView) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(input.outcome.summary.as_bytes()).update(b"\n").update(input.outcome.content.as_bytes());
        hasher.finalize().to_hex().to_string()
    }

    fn secret(input: &ToolOutcomeView, redactor: &Redactor) -> Option<String> {
        let texts = [&input.outcome.summary, &input.outcome.content];
        texts.into_iter().find_map(|text| redactor.finds(text.as_bytes()))
    }
}

impl Observe for Event {}

/// What [`PromptSubmit`] sees.
#[derive(Clone, Debug)]
pub struct PromptView {
    pub text: String,
}

/// What [`PreRequest`] sees.
#[derive(Clone, Debug)]
pub struct RequestView {
    pub turn: u64,
    /// The request's number in the session, from 1.
    pub number: u64,
    /// Items that are durable so far.
    pub items: u64,
}

/// What hooks around a call see of it.
#[derive(Clone, Debug)]
pub struct ToolCallView {
    pub call: CallId,
    pub tool: String,
    pub feature: FeatureId,
    pub effect: ToolEffect,
    /// The arguments as they run: canonical JSON, defaults filled in.
    pub arguments: Arc<str>,
    pub touches: Vec<Touch>,
}

/// What [`ToolOutcome`] sees.
#[derive(Clone, Debug)]
pub struct ToolOutcomeView {
    pub call: Arc<ToolCallView>,
    /// What the model will see; already within the host's bounds.
    pub outcome: llm_worker::ToolOutcome,
}

/// What [`TurnEnd`] sees.
#[derive(Clone, Debug)]
pub struct TurnEndView {
    pub turn: u64,
    pub outcome: Outcome,
    /// Requests it sent.
    pub steps: u64,
}

/// What [`Event`] observers are told.
#[derive(Clone, Debug)]
pub struct EventView {
    /// The record's place in the log.
    pub seq: u64,
    /// Events dropped since the one before, because observers did not keep up.
    pub missed: u64,
    pub record: Arc<Record>,
}
