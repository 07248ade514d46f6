//! Staged tools and hooks: their declaration and their code.

use crate::feature::decide::plan::PlannedHook;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::enricher::EnricherDeclaration;
use crate::feature::declare::hook::{HookDeclaration, HookKey};
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::tool::{ToolDeclaration, ToolKey};
use crate::feature::live::enrich::ToolEnricher;
use crate::feature::live::foreign::ForeignContract;
use crate::hook::{
    FailureRule, Hook, HookClass, HookPoint, HookRegistryBuilder, InstalledHook, Point,
};
use authority::Door;
use llm_worker::tool::{ArgumentError, Prepared, ToolFuture, Touch, parse_arguments};
use llm_worker::{Tool, ToolContext, ToolDefinition, ToolResult};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// A tool as `install()` stages it: a declaration with code. The host compares it with the plan.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolContribution {
    pub feature_id: FeatureId,
    pub name: String,
    /// The definition for the model, as declared.
    pub definition: ToolDefinition,
    /// Requests without which it is left out, as declared.
    pub required_capabilities: Vec<HostCapability>,
    pub(crate) tool: Arc<dyn Tool>,
    /// Whether its schema comes from elsewhere.
    pub(crate) foreign: bool,
    /// Set by the stage for a foreign tool.
    pub(crate) contract: Option<Arc<ForeignContract>>,
}

impl ToolContribution {
    /// A tool with a foreign schema. Of its calls with effects, those that do not say what they change need approval.
    #[must_use]
    pub fn new(
        feature_id: FeatureId,
        tool: Arc<dyn Tool>,
        required_capabilities: Vec<HostCapability>,
    ) -> Self {
        let definition = tool.definition().clone();
        let (name, foreign, contract) = (definition.name.clone(), true, None);
        Self {
            feature_id,
            name,
            definition,
            required_capabilities,
            tool,
            foreign,
            contract,
        }
    }

    /// A foreign tool as declared. The host parses the arguments; `run` is called for each call that may run.
    #[must_use]
    pub fn declared<F, R>(feature_id: FeatureId, declared: &ToolDeclaration, run: F) -> Self
    where
        F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = ToolResult> + Send + 'static,
    {
        let run =
            move |text: Arc<str>, cx| run(serde_json::from_str(&text).unwrap_or_default(), cx);
        Self::of_text(feature_id, declared, run)
    }

    /// The same with the arguments as JSON text, in which integers have all of their digits.
    #[must_use]
    pub fn of_text<F, R>(feature_id: FeatureId, declared: &ToolDeclaration, run: F) -> Self
    where
        F: Fn(Arc<str>, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = ToolResult> + Send + 'static,
    {
        let tool = Declared {
            definition: declared.definition(),
            run: Arc::new(run),
        };
        Self::new(feature_id, Arc::new(tool), declared.needs.clone())
    }

    /// A tool of a key.
    pub(crate) fn typed(
        feature_id: FeatureId,
        tool: Arc<dyn Tool>,
        required_capabilities: Vec<HostCapability>,
    ) -> Self {
        Self {
            foreign: false,
            ..Self::new(feature_id, tool, required_capabilities)
        }
    }
}

/// A foreign tool whose arguments the host parses.
struct Declared<F> {
    definition: ToolDefinition,
    run: Arc<F>,
}

impl<F, R> Tool for Declared<F>
where
    F: Fn(Arc<str>, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = ToolResult> + Send + 'static,
{
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError> {
        let (_, canonical) = parse_arguments::<Map<String, Value>>(&self.definition.name, raw)?;
        let (run, arguments) = (Arc::clone(&self.run), Arc::clone(&canonical));
        let run = move |cx| -> ToolFuture { Box::pin(async move { run(arguments, cx).await }) };
        Ok(Prepared::new(canonical, Vec::new(), run))
    }
}

/// The paths that a call with these arguments touches.
type Touches<A> = Box<dyn Fn(&A) -> Vec<Touch> + Send + Sync>;

/// A typed tool: a key, the feature's live part, and one of its methods.
pub(crate) struct Keyed<S, A, F> {
    definition: ToolDefinition,
    touches: Touches<A>,
    live: Arc<S>,
    method: F,
}

impl<S, A: JsonSchema, F> Keyed<S, A, F> {
    pub(crate) fn new(
        key: &ToolKey<A>,
        touches: impl Fn(&A) -> Vec<Touch> + Send + Sync + 'static,
        live: &Arc<S>,
        method: F,
    ) -> Self {
        let definition = key.declaration().definition();
        Self {
            definition,
            touches: Box::new(touches),
            live: Arc::clone(live),
            method,
        }
    }
}

impl<S, A, F, R> Tool for Keyed<S, A, F>
where
    S: Send + Sync + 'static,
    A: DeserializeOwned + Serialize + Send + 'static,
    F: Fn(Arc<S>, A, ToolContext) -> R + Copy + Send + Sync + 'static,
    R: Future<Output = ToolResult> + Send + 'static,
{
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError> {
        let ToolDefinition { name, schema, .. } = &self.definition;
        let (args, canonical) =
            parse_arguments::<A>(name, raw).map_err(|error| error.in_words_of(schema))?;
        let touches = (self.touches)(&args);
        let (live, method) = (Arc::clone(&self.live), self.method);
        Ok(Prepared::new(canonical, touches, move |cx| -> ToolFuture {
            Box::pin(method(live, args, cx))
        }))
    }
}

/// An enricher as it is staged: a declaration with code.
pub(crate) struct EnricherContribution {
    pub(crate) declaration: EnricherDeclaration,
    pub(crate) code: Arc<dyn ToolEnricher>,
}

/// Adds a hook to a registry, with these doors as revocation guards.
type Adding = dyn FnOnce(Vec<Arc<Door>>, &mut HookRegistryBuilder) + Send;

/// A hook as `install()` stages it: a declaration with code. The host compares it with the plan.
#[non_exhaustive]
pub struct HookContribution {
    pub feature_id: FeatureId,
    pub name: String,
    pub point: HookPoint,
    pub class: HookClass,
    /// Requests without which it is left out, as declared.
    pub required_capabilities: Vec<HostCapability>,
    deadline_ms: u64,
    tools: Vec<String>,
    on_failure: FailureRule,
    /// The features that it names in `before` and `after`.
    place: (Vec<FeatureId>, Vec<FeatureId>),
    /// The capabilities that the hook needs.
    pub(crate) implied: Vec<HostCapability>,
    add: Box<Adding>,
}

impl HookContribution {
    /// A hook under its key.
    #[must_use]
    pub fn new<P: Point>(feature_id: FeatureId, key: &HookKey<P>, hook: Arc<dyn Hook<P>>) -> Self {
        Self::declared(feature_id, &key.declaration(), hook)
    }

    /// A hook as declared.
    #[must_use]
    pub fn declared<P: Point>(
        feature_id: FeatureId,
        declared: &HookDeclaration,
        hook: Arc<dyn Hook<P>>,
    ) -> Self {
        let declaration = declared.clone();
        let (implied, on_failure) = (declaration.implied(), declaration.on_failure());
        let HookDeclaration {
            name,
            deadline_ms,
            tools,
            needs,
            withholds,
            with_output_schema,
            before,
            after,
            ..
        } = declaration;
        let mut slot = InstalledHook::new(feature_id.clone(), name.clone(), hook);
        slot.deadline = Duration::from_millis(deadline_ms);
        (slot.withholds, slot.with_output_schema) = (withholds, with_output_schema);
        (slot.before, slot.after) = (before.clone(), after.clone());
        if P::CLASS == HookClass::Transform {
            slot.tools.clone_from(&tools);
        }
        let add = Box::new(
            move |doors: Vec<Arc<Door>>, hooks: &mut HookRegistryBuilder| {
                slot.doors = doors;
                hooks.add(slot);
            },
        );
        let (point, class) = (P::POINT, P::CLASS);
        Self {
            feature_id,
            name,
            point,
            class,
            required_capabilities: needs,
            deadline_ms,
            tools,
            on_failure,
            place: (before, after),
            implied,
            add,
        }
    }

    /// The first difference from what was planned.
    pub(crate) fn differs(&self, planned: &PlannedHook) -> Option<&'static str> {
        let pairs = [
            ("its point", self.point == planned.point),
            ("its deadline", self.deadline_ms == planned.deadline_ms),
            ("its tools", self.tools == planned.tools),
            (
                "what its failure means",
                self.on_failure == planned.on_failure,
            ),
            (
                "its place",
                self.place.0 == planned.before && self.place.1 == planned.after,
            ),
        ];
        pairs
            .into_iter()
            .find_map(|(what, same)| (!same).then_some(what))
    }

    pub(crate) fn merge(self, doors: Vec<Arc<Door>>, hooks: &mut HookRegistryBuilder) {
        (self.add)(doors, hooks);
    }
}
