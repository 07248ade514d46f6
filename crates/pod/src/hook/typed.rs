//! The input and the answer of the hooks at each point. Does not depend on how a chain runs.

use super::chain::{HookChain, HookRegistry, HookRegistryBuilder};
use super::json::{self, Heard};
use super::point::{HookClass, HookPoint};
use super::verdict::{Change, Verdict};
use crate::feature::{FeatureId, secret};
use crate::record::{Decision, Record, ViewLevel};
use authority::Redactor;
use llm_worker::effect::Outcome;
use llm_worker::tool::Touch;
use llm_worker::{CallId, ErrorKind, ResultStatus, Shortfall, ToolEffect, ToolOutput};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// A hook point as a type: it fixes the class, the input and the answer of its hooks. Sealed: only the host has points.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a point at which the host calls hooks",
    note = "docs/FEATURES.md lists the points, such as `PreToolCall` and `ToolOutcome`; features add none"
)]
pub trait Point: sealed::HasChain + Send + Sync + Sized + 'static {
    /// The point's name in descriptors and reports.
    const POINT: HookPoint;
    /// The class of its hooks.
    const CLASS: HookClass;
    /// Whether its hooks see results that another one may withhold: the words of a panic may quote them.
    const PRIVATE: bool;
    /// The read-only value that its hooks get.
    type Input: Clone + Serialize + Send + Sync + 'static;
    /// The value that its hooks return.
    type Answer: Send + 'static;
    /// The input as JSON, for hooks that run in another process.
    fn shown(input: &Self::Input) -> serde_json::Value;
    /// The answer of such a hook: `{"decision": …}` of a gate, `{"change": …}` of a transform, `null` of an observer.
    ///
    /// # Errors
    /// It has another form, or the point does not allow this decision.
    fn heard(answer: &serde_json::Value) -> Result<Self::Answer, String>;
}

/// Code that is the same for the types of all points, for hooks that are known only at run time; see [`HookPoint::call`].
pub trait AtPoint {
    /// What it returns.
    type Out;
    /// Called with the type of the point.
    fn at<P: Point>(self) -> Self::Out;
}

/// A point whose hooks may refuse.
#[diagnostic::on_unimplemented(
    message = "hooks at `{Self}` are not gates: they cannot refuse",
    note = "declare and stage a hook at this point with `.transform(…)` or `.observe(…)`"
)]
pub trait Gate: Point<Answer = Verdict<Self>> {
    /// The decision if a gate fails, with the problem as its reason.
    fn refusal(reason: String) -> Decision;
    /// Whether the input that a gate is asked about has a schema that the answer has to fit.
    fn has_output_schema(_: &Self::Input) -> bool {
        false
    }
}

/// Implemented by the points whose gates see the schema that an answer has to fit.
#[diagnostic::on_unimplemented(
    message = "gates at `{Self}` do not see the schema of an answer",
    note = "only keys of `PromptSubmit` and `TurnEnd` have `.with_output_schema()`"
)]
pub trait SeesOutputSchema: Gate {}

impl SeesOutputSchema for PromptSubmit {}
impl SeesOutputSchema for TurnEnd {}

/// A point whose hooks may replace a value.
#[diagnostic::on_unimplemented(
    message = "hooks at `{Self}` are not transforms: they replace nothing",
    note = "declare and stage a hook at this point with `.gate(…)` or `.observe(…)`"
)]
pub trait Transform: Point<Answer = Change<Self::Value>> {
    /// The value that its hooks may replace: a call's arguments, or its result.
    type Value: Send + Sync + 'static;
    /// Whether the first replacement is an answer that ends the chain.
    const ANSWERS: bool = false;
    /// Whether the hook that was installed last is asked first.
    const OUTSIDE_IN: bool = false;
    /// The input with another value in it.
    fn with(input: &Self::Input, value: &Self::Value) -> Self::Input;
    /// BLAKE3 of the value in an input, hex.
    fn digest(input: &Self::Input) -> String;
    /// The name of a secret that an input contains.
    fn secret(input: &Self::Input, redactor: &Redactor) -> Option<String>;
}

/// A point whose hooks get an event and cannot answer.
#[diagnostic::on_unimplemented(
    message = "hooks at `{Self}` are not observers: the host waits for their answer",
    note = "declare and stage a hook at this point with `.gate(…)` or `.transform(…)`"
)]
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
            const PRIVATE: bool = matches!(HookPoint::$point, HookPoint::ToolRepeat | HookPoint::ToolShape);
            type Input = $input;
            type Answer = $answer;

            fn shown(input: &Self::Input) -> serde_json::Value {
                serde_json::to_value(input).unwrap_or_default()
            }

            fn heard(answer: &serde_json::Value) -> Result<Self::Answer, String> {
                Self::Answer::heard(answer)
            }
        }

        impl sealed::HasChain for $point {
            fn chain(hooks: &HookRegistry) -> &HookChain<Self> {
                &hooks.chains.$field
            }
            fn chain_mut(hooks: &mut HookRegistryBuilder) -> &mut HookChain<Self> {
                &mut hooks.chains.$field
            }
        })*

        impl HookPoint {
            /// Calls `code` with the type of this point.
            pub fn call<C: AtPoint>(self, code: C) -> C::Out {
                match self {
                    $(Self::$point => code.at::<$point>(),)*
                }
            }
        }

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
    /// The point of a change that takes old results or steps out of the requests. Refused, it is not made.
    PreCompaction(CompactionView) -> Verdict<Self>, pre_compaction;
    /// The point of an answer that is whole, before its calls are judged.
    PostAssistant(AnswerView) -> Verdict<Self>, post_assistant;
    /// The point of a request that brought no answer, after the attempts of the host.
    TurnError(ErrorView) -> Verdict<Self>, turn_error;
    /// The point of a call that permission allows, with its final arguments.
    PreToolCall(ToolCallView) -> Verdict<Self>, pre_tool_call;
    /// The point of a turn that has ended.
    TurnEnd(TurnEndView) -> Verdict<Self>, turn_end;
    /// The point of a call's arguments, before permission and gates judge them. Replacements are checked like the
    /// model's own.
    ToolArguments(ToolCallView) -> Change<serde_json::Value>, tool_arguments;
    /// The point of a call whose start is durable, before it runs. What replaces nothing yet answers in its place.
    /// Installed last, asked first; the first answer ends the chain.
    ToolRun(ToolRunView) -> Change<ToolOutput>, tool_run;
    /// The point of a call without effects that ended: after how long it runs again. The first answer ends the chain.
    ToolRepeat(ToolRepeatView) -> Change<Duration>, tool_repeat;
    /// The point of a call's result, whole, before it is bounded and kept.
    ToolShape(ToolShapeView) -> Change<ToolOutput>, tool_shape;
    /// The point of a call's result, before it is recorded and shown.
    ToolOutcome(ToolOutcomeView) -> Change<ToolOutput>, tool_outcome;
    /// The point of such a change: which results stay whole in it. It never sees or changes words.
    Compaction(CompactionView) -> Change<CompactionPlan>, compaction;
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

    fn has_output_schema(input: &PromptView) -> bool {
        input.output_schema.is_some()
    }
}

impl Gate for PreRequest {
    fn refusal(reason: String) -> Decision {
        Decision::Abort { reason }
    }
}

/// A gate that fails refuses: the context stays as it is.
impl Gate for PreCompaction {
    fn refusal(reason: String) -> Decision {
        Decision::Refuse { reason }
    }
}

impl Gate for PostAssistant {
    fn refusal(reason: String) -> Decision {
        Decision::Abort { reason }
    }
}

/// A gate that fails gives up, as without it.
impl Gate for TurnError {
    fn refusal(_: String) -> Decision {
        Decision::Allow
    }
}

impl Gate for TurnEnd {
    fn refusal(reason: String) -> Decision {
        Decision::Pause { reason }
    }

    fn has_output_schema(input: &TurnEndView) -> bool {
        input.output_schema.is_some()
    }
}

impl Transform for ToolArguments {
    type Value = serde_json::Value;

    fn with(input: &ToolCallView, value: &serde_json::Value) -> ToolCallView {
        ToolCallView {
            arguments: value.to_string().into(),
            ..input.clone()
        }
    }

    fn digest(input: &ToolCallView) -> String {
        blake3::hash(input.arguments.as_bytes())
            .to_hex()
            .to_string()
    }

    /// Searches the parsed values: JSON text escapes quotes and line ends.
    fn secret(input: &ToolCallView, redactor: &Redactor) -> Option<String> {
        let whole = || redactor.finds(input.arguments.as_bytes());
        serde_json::from_str(&input.arguments)
            .ok()
            .and_then(|value| secret(&value, redactor))
            .or_else(whole)
    }
}

impl Transform for ToolRun {
    type Value = ToolOutput;
    const ANSWERS: bool = true;
    const OUTSIDE_IN: bool = true;

    fn with(input: &ToolRunView, value: &ToolOutput) -> ToolRunView {
        ToolRunView {
            answer: Some(value.clone()),
            ..input.clone()
        }
    }

    fn digest(input: &ToolRunView) -> String {
        output_digest(&input.answer.clone().unwrap_or_default())
    }

    fn secret(input: &ToolRunView, redactor: &Redactor) -> Option<String> {
        output_secret(input.answer.as_ref()?, redactor)
    }
}

impl Transform for ToolRepeat {
    type Value = Duration;
    const ANSWERS: bool = true;

    fn with(input: &ToolRepeatView, value: &Duration) -> ToolRepeatView {
        ToolRepeatView {
            after: Some(*value),
            ..input.clone()
        }
    }

    fn digest(input: &ToolRepeatView) -> String {
        let after = input
            .after
            .map(|after| after.as_millis().to_string())
            .unwrap_or_default();
        blake3::hash(after.as_bytes()).to_hex().to_string()
    }

    fn secret(_: &ToolRepeatView, _: &Redactor) -> Option<String> {
        None
    }
}

impl Transform for ToolShape {
    type Value = ToolOutput;

    /// Keeps the status, as at [`ToolOutcome`].
    fn with(input: &ToolShapeView, value: &ToolOutput) -> ToolShapeView {
        ToolShapeView {
            output: value.clone(),
            ..input.clone()
        }
    }

    fn digest(input: &ToolShapeView) -> String {
        output_digest(&input.output)
    }

    fn secret(input: &ToolShapeView, redactor: &Redactor) -> Option<String> {
        output_secret(&input.output, redactor)
    }
}

/// BLAKE3 of a result, hex; data counts where there is some.
fn output_digest(output: &ToolOutput) -> String {
    let ToolOutput {
        summary,
        content,
        data,
    } = output;
    match data {
        None => result_digest(summary, content),
        Some(data) => result_digest(summary, &format!("{content}\n{data}")),
    }
}

fn output_secret(output: &ToolOutput, redactor: &Redactor) -> Option<String> {
    let texts = [&output.summary, &output.content];
    let found = |text: &String| redactor.finds(text.as_bytes());
    let data = || secret(output.data.as_ref()?, redactor);
    texts.into_iter().find_map(found).or_else(data)
}

/// BLAKE3 of a result, hex.
fn result_digest(summary: &str, content: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(summary.as_bytes())
        .update(b"\n")
        .update(content.as_bytes());
    hasher.finalize().to_hex().to_string()
}

impl Transform for ToolOutcome {
    type Value = ToolOutput;

    /// Keeps the status: a transform can reword a result, but cannot turn an error into a success.
    fn with(input: &ToolOutcomeView, value: &ToolOutput) -> ToolOutcomeView {
        // Data beside the result is kept by then, and stays.
        let outcome = llm_worker::ToolOutcome {
            status: input.outcome.status,
            summary: value.summary.clone(),
            content: value.content.clone(),
            attachments: input.outcome.attachments.clone(),
        };
        ToolOutcomeView {
            outcome,
            ..input.clone()
        }
    }

    fn digest(input: &ToolOutcomeView) -> String {
        result_digest(&input.outcome.summary, &input.outcome.content)
    }

    fn secret(input: &ToolOutcomeView, redactor: &Redactor) -> Option<String> {
        let texts = [&input.outcome.summary, &input.outcome.content];
        texts
            .into_iter()
            .find_map(|text| redactor.finds(text.as_bytes()))
    }
}

impl Transform for Compaction {
    type Value = CompactionPlan;

    fn with(input: &CompactionView, value: &CompactionPlan) -> CompactionView {
        CompactionView {
            keep: value.keep.clone(),
            ..input.clone()
        }
    }

    fn digest(input: &CompactionView) -> String {
        let keep: Vec<String> = input.keep.iter().map(ToString::to_string).collect();
        blake3::hash(keep.join(" ").as_bytes()).to_hex().to_string()
    }

    fn secret(_: &CompactionView, _: &Redactor) -> Option<String> {
        None
    }
}

impl Observe for Event {}

/// An input as a [`PromptSubmit`] gate sees it, before it is queued.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PromptView {
    /// What the model will read.
    pub text: String,
    /// The JSON Schema that the answer has to fit, as text; at most [`MAX_OUTPUT_SCHEMA`](super::MAX_OUTPUT_SCHEMA) bytes.
    #[serde(serialize_with = "json::schema")]
    pub output_schema: Option<Arc<str>>,
}

/// A request as a [`PreRequest`] gate sees it, before it is recorded and sent.
#[derive(Clone, Debug, Serialize)]
pub struct RequestView {
    pub turn: u64,
    /// The request's number in the session, from 1.
    pub number: u64,
    /// Number of items that are durable so far.
    pub items: u64,
}

/// A change that takes old results or steps out of the requests, as [`PreCompaction`] gates and [`Compaction`] transforms
/// see it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CompactionView {
    pub turn: u64,
    pub level: ViewLevel,
    /// Whether a person asked for it.
    pub by_hand: bool,
    /// Tokens of the next request without the change.
    pub used: u64,
    /// The model's context window in tokens, if it is known.
    pub window: Option<u64>,
    /// The results that leave, oldest first; the log keeps them.
    pub results: Arc<[LeavingResult]>,
    /// What the transforms so far have stay.
    pub keep: Vec<CallId>,
}

/// A result that leaves the requests; part of [`CompactionView`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeavingResult {
    pub call: CallId,
    pub tool: String,
    /// Bytes of its content.
    pub bytes: u64,
}

/// What a [`Compaction`] transform may choose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionPlan {
    /// Calls whose results stay whole in this change, at most [`MAX_KEPT_CALLS`] of those that would leave.
    pub keep: Vec<CallId>,
}

/// Calls that a [`CompactionPlan`] may name.
pub const MAX_KEPT_CALLS: usize = 256;

impl CompactionView {
    /// A view for a test of a hook.
    #[must_use]
    pub fn new(
        level: ViewLevel,
        used: u64,
        window: Option<u64>,
        results: Vec<LeavingResult>,
    ) -> Self {
        Self {
            turn: 1,
            level,
            by_hand: false,
            used,
            window,
            results: results.into(),
            keep: Vec::new(),
        }
    }

    /// The view, if what stays is within its bounds.
    pub(crate) fn checked(self) -> Result<Self, String> {
        let leaves = |call: &CallId| self.results.iter().any(|result| result.call == *call);
        if self.keep.len() > MAX_KEPT_CALLS {
            return Err(format!(
                "it keeps {} results; at most {MAX_KEPT_CALLS} are allowed",
                self.keep.len()
            ));
        }
        match self.keep.iter().find(|call| !leaves(call)) {
            Some(call) => Err(format!("the result of {call} does not leave")),
            None => Ok(self),
        }
    }
}

/// An answer as a [`PostAssistant`] gate sees it: nothing of it is durable yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerView {
    pub turn: u64,
    /// The number of the request that it answers.
    pub request: u64,
    pub text: String,
    /// The calls that it proposes, in their order.
    pub calls: Vec<ProposedCall>,
}

/// A call of an answer, as the model wrote it; part of [`AnswerView`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProposedCall {
    /// The tool's name; need not exist.
    pub tool: String,
    /// Raw text; need not be JSON.
    pub arguments: String,
}

/// A request that failed, as a [`TurnError`] gate sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorView {
    pub turn: u64,
    /// The request's number in the session.
    pub request: u64,
    pub kind: ErrorKind,
    pub message: String,
    /// How often gates had requests of this turn sent again.
    pub retries: u32,
}

/// A call as a [`ToolArguments`] transform and a [`PreToolCall`] gate see it; also a part of [`ToolOutcomeView`].
#[derive(Clone, Debug, Serialize)]
pub struct ToolCallView {
    pub call: CallId,
    pub tool: String,
    pub feature: FeatureId,
    pub effect: ToolEffect,
    /// The arguments as they run: canonical JSON, defaults filled in.
    #[serde(serialize_with = "json::text")]
    pub arguments: Arc<str>,
    #[serde(serialize_with = "json::touches")]
    pub touches: Vec<Touch>,
    /// The newest input of a person that the model has read; none in a turn that no person asked for.
    #[serde(skip)]
    pub input: Option<u64>,
    /// The number of its turn in the session.
    #[serde(skip)]
    pub turn: u64,
    /// A person ran it as a command: no model asked for it.
    #[serde(skip)]
    pub by_person: bool,
}

/// A call that may run, as a [`ToolRun`] transform sees it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ToolRunView {
    pub call: Arc<ToolCallView>,
    #[serde(skip)]
    pub(crate) answer: Option<ToolOutput>,
}

impl ToolRunView {
    /// A view of a call that nobody answered yet.
    #[must_use]
    pub fn new(call: Arc<ToolCallView>) -> Self {
        Self { call, answer: None }
    }
}

/// A call that ended, as a [`ToolRepeat`] transform sees it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ToolRepeatView {
    pub call: Arc<ToolCallView>,
    /// The result; its content may be cut.
    pub outcome: llm_worker::ToolOutcome,
    /// The kind of the failure, if it failed.
    pub error: Option<ErrorKind>,
    /// How often the call ran; at least 1.
    pub tries: u32,
    #[serde(skip)]
    pub(crate) after: Option<Duration>,
}

impl ToolRepeatView {
    /// A view of a call that ended, the `tries`-th time.
    #[must_use]
    pub fn new(
        call: Arc<ToolCallView>,
        outcome: llm_worker::ToolOutcome,
        error: Option<ErrorKind>,
        tries: u32,
    ) -> Self {
        Self {
            call,
            outcome,
            error,
            tries,
            after: None,
        }
    }
}

/// A call and its whole result, as a [`ToolShape`] transform sees them: nothing of it is on disk or was shown.
#[derive(Clone, Debug, Serialize)]
pub struct ToolShapeView {
    pub call: Arc<ToolCallView>,
    pub status: ResultStatus,
    /// The summary and the whole content; bytes that are not UTF-8 are replaced in it.
    pub output: ToolOutput,
}

/// A call and its bounded result, as a [`ToolOutcome`] transform sees them.
#[derive(Clone, Debug, Serialize)]
pub struct ToolOutcomeView {
    pub call: Arc<ToolCallView>,
    /// The result for the model, already cut to the host's bounds.
    pub outcome: llm_worker::ToolOutcome,
}

/// A finished turn as a [`TurnEnd`] gate sees it.
#[derive(Clone, Debug, Serialize)]
pub struct TurnEndView {
    pub turn: u64,
    pub outcome: Outcome,
    /// Number of requests that the turn sent.
    pub steps: u64,
    /// The last answer's text, if the turn ended with one.
    pub answer: Option<Arc<str>>,
    /// Why that answer does not do what was asked, if the model says so.
    pub shortfall: Option<Shortfall>,
    /// The JSON Schema that the answer has to fit, as text, if the input of the turn has one.
    #[serde(serialize_with = "json::schema")]
    pub output_schema: Option<Arc<str>>,
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
