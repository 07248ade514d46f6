//! The input and the answer of the hooks at each point. Does not depend on how a chain runs.

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

/// A hook point as a type: it fixes the class, the input and the answer of its hooks. Sealed: only the host has points.
pub trait Point: sealed::HasChain + Send + Sync + Sized + 'static {
    /// The point's name in descriptors and reports.
    const POINT: HookPoint;
    /// The class of its hooks.
    const CLASS: HookClass;
    /// The read-only value that its hooks get.
    type Input: Send + Sync + 'static;
    /// The value that its hooks return.
    type Answer: Send + 'static;
}

/// A point whose hooks may refuse.
pub trait Gate: Point<Answer = Verdict<Self>> {
    /// The decision if a gate fails, with the problem as its reason.
    fn refusal(reason: String) -> Decision;
}

/// A point whose hooks may replace a value.
pub trait Transform: Point<Answer = Change<Self::Value>> {
    /// The value that its hooks may replace: a call's arguments, or its result.
    type Value: Send + Sync + 'static;
    /// The input with another value in it.
    fn with(input: &Self::Input, value: &Self::Value) -> Self::Input;
    /// BLAKE3 of the value in an input, hex.
    fn digest(input: &Self::Input) -> String;
    /// The name of a secret that an input contains.
    fn secret(input: &Self::Input, redactor: &Redactor) -> Option<String>;
}

/// A point whose hooks get an event and cannot answer.
pub trait Observe: Point<Answer = ()> {}

pub(super) mod sealed {
    use super::{HookChain, HookRegistry, HookRegistryBuilder};

    /// Maps a point to its chain.
    pub trait HasChain: Sized {
        /// The point's chain, to call its hooks.
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
    /// The point of a person's input, before it is queued.
    PromptSubmit(PromptView) -> Verdict<Self>, prompt_submit;
    /// The point of a request to the model, before it is recorded.
    PreRequest(RequestView) -> Verdict<Self>, pre_request;
    /// The point of a call that permission allows, with its final arguments.
    PreToolCall(ToolCallView) -> Verdict<Self>, pre_tool_call;
    /// The point of a turn that has ended.
    TurnEnd(TurnEndView) -> Verdict<Self>, turn_end;
    /// The point of a call's arguments, before permission and gates judge them. Replacements are checked like the
    /// model's own.
    ToolArguments(ToolCallView) -> Change<serde_json::Value>, tool_arguments;
    /// The point of a call's result, before it is recorded and shown.
    ToolOutcome(ToolOutcomeView) -> Change<ToolOutput>, tool_outcome;
    /// The point of a record that became durable.
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

    /// Searches the parsed values: JSON text escapes quotes and line ends.
    fn secret(input: &ToolCallView, redactor: &Redactor) -> Option<String> {
        let whole = || redactor.finds(input.arguments.as_bytes());
        serde_json::from_str(&input.arguments).ok().and_then(|value| secret(&value, redactor)).or_else(whole)
    }
}

impl Transform for ToolOutcome {
    type Value = ToolOutput;

    /// Keeps the status: a transform can reword a result, but cannot turn an error into a success.
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

/// An input as a [`PromptSubmit`] gate sees it, before it is queued.
#[derive(Clone, Debug)]
pub struct PromptView {
    pub text: String,
}

/// A request as a [`PreRequest`] gate sees it, before it is recorded and sent.
#[derive(Clone, Debug)]
pub struct RequestView {
    pub turn: u64,
    /// The request's number in the session, from 1.
    pub number: u64,
    /// Number of items that are durable so far.
    pub items: u64,
}

/// A call as a [`ToolArguments`] transform and a [`PreToolCall`] gate see it; also a part of [`ToolOutcomeView`].
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

/// A call and its bounded result, as a [`ToolOutcome`] transform sees them.
#[derive(Clone, Debug)]
pub struct ToolOutcomeView {
    pub call: Arc<ToolCallView>,
    /// The result for the model, already cut to the host's bounds.
    pub outcome: llm_worker::ToolOutcome,
}

/// A finished turn as a [`TurnEnd`] gate sees it.
#[derive(Clone, Debug)]
pub struct TurnEndView {
    pub turn: u64,
    pub outcome: Outcome,
    /// Number of requests that the turn sent.
    pub steps: u64,
}

/// A durable record as an [`Event`] observer sees it.
#[derive(Clone, Debug)]
pub struct EventView {
    /// The record's place in the log.
    pub seq: u64,
    /// Number of events dropped since the previous one, because observers did not keep up.
    pub missed: u64,
    pub record: Arc<Record>,
}
