//! Staged tools, hooks and background tasks: their declaration and their code.

use super::slots::first_difference;
use super::stage::FEATURE_ID;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::hook::{HookDeclaration, HookKey};
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::task::{BackgroundTaskDeclaration, TaskKey};
use crate::feature::declare::tool::{ToolDeclaration, ToolKey};
use crate::feature::live::foreign::ForeignContract;
use crate::feature::live::task::{BackgroundTaskContext, GrantedEvent, TaskBody, TaskResult};
use crate::hook::{Hook, HookClass, HookRegistryBuilder, InstalledHook, Point};
use authority::{Door, Workspace};
use llm_worker::tool::{ArgumentError, Prepared, ShownChange, ToolFuture, Touch, parse_arguments};
use llm_worker::{Tool, ToolContext, ToolDefinition, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

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
        let name = definition.name.clone();
        let foreign = true;
        let contract = None;
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

    /// The first difference from what was declared.
    pub(super) fn difference(
        &self,
        declared: &ToolDeclaration,
        of: &FeatureId,
    ) -> Option<&'static str> {
        let own = &self.definition;
        let needs = &self.required_capabilities;
        first_difference(&[
            ("its description", own.description == declared.about),
            ("its schema", own.schema == declared.schema),
            ("its effect", own.effect == declared.effect),
            (FEATURE_ID, self.feature_id == *of),
            ("its required capabilities", *needs == declared.needs),
            (
                "whether its schema is foreign",
                self.foreign == declared.foreign,
            ),
        ])
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
        let run = Arc::clone(&self.run);
        let arguments = Arc::clone(&canonical);
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
    preview: Option<ShowChange<S, A>>,
}

/// Shows what a call with these arguments would change.
pub(crate) type ShowChange<S, A> = fn(&S, &A, &CancellationToken) -> Result<ShownChange, ToolError>;

impl<S, A: JsonSchema + 'static, F> Keyed<S, A, F> {
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
            preview: None,
        }
    }

    /// This tool with code that shows what a call would change.
    pub(crate) fn previewed(self, preview: ShowChange<S, A>) -> Self {
        Self {
            preview: Some(preview),
            ..self
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
        let live = Arc::clone(&self.live);
        let method = self.method;
        let shown = self.preview.map(|preview| {
            let live = Arc::clone(&self.live);
            let canonical = Arc::clone(&canonical);
            (preview, live, canonical, name.clone())
        });
        let prepared = Prepared::new(canonical, touches, move |cx| -> ToolFuture {
            Box::pin(method(live, args, cx))
        });
        let Some((preview, live, canonical, name)) = shown else {
            return Ok(prepared);
        };
        Ok(prepared.previewed(Box::new(move |cancel| {
            let (args, _) = parse_arguments::<A>(&name, &canonical)
                .map_err(|error| ToolError::new(error.kind(), error.to_string()))?;
            preview(&live, &args, cancel)
        })))
    }
}

/// Adds the hook of a declaration to a registry, with these doors as revocation guards.
type Adding =
    dyn FnOnce(FeatureId, &HookDeclaration, Vec<Arc<Door>>, &mut HookRegistryBuilder) + Send;

/// A hook as `install()` stages it: a declaration with code. The host compares it with the plan.
#[non_exhaustive]
pub struct HookContribution {
    pub feature_id: FeatureId,
    pub(super) declaration: HookDeclaration,
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
        let declaration = HookDeclaration {
            point: P::POINT,
            ..declared.clone()
        };
        let add: Box<Adding> = Box::new(|feature, declared, doors, hooks| {
            let mut slot = InstalledHook::new(feature, declared.name.clone(), hook);
            slot.deadline = Duration::from_millis(declared.deadline_ms);
            slot.withholds = declared.withholds;
            slot.with_output_schema = declared.with_output_schema;
            slot.shortens = declared.shortens;
            slot.before.clone_from(&declared.before);
            slot.after.clone_from(&declared.after);
            if P::CLASS == HookClass::Transform {
                slot.tools.clone_from(&declared.tools);
            }
            slot.doors = doors;
            hooks.add(slot);
        });
        Self {
            feature_id,
            declaration,
            add,
        }
    }

    /// The first difference from what was declared.
    pub(super) fn difference(
        &self,
        declared: &HookDeclaration,
        of: &FeatureId,
    ) -> Option<&'static str> {
        let own = &self.declaration;
        first_difference(&[
            ("its point", own.point == declared.point),
            ("its deadline", own.deadline_ms == declared.deadline_ms),
            ("its tools", own.tools == declared.tools),
            (
                "what its failure means",
                own.on_failure() == declared.on_failure(),
            ),
            (
                "its place",
                own.before == declared.before && own.after == declared.after,
            ),
            (FEATURE_ID, self.feature_id == *of),
        ])
    }

    /// Adds it to a registry, as it was declared.
    pub(super) fn merge(
        self,
        declared: &HookDeclaration,
        doors: Vec<Arc<Door>>,
        hooks: &mut HookRegistryBuilder,
    ) {
        (self.add)(self.feature_id, declared, doors, hooks);
    }
}

/// A background task as `install()` stages it: a declaration with code. The host compares it with the plan.
#[non_exhaustive]
pub struct BackgroundTaskContribution {
    pub feature_id: FeatureId,
    pub name: String,
    pub declaration: BackgroundTaskDeclaration,
    pub(crate) body: TaskBody,
    /// Set by the stage.
    pub(crate) events: Vec<GrantedEvent>,
    /// Set by the registrar.
    pub(crate) files: Option<Workspace>,
}

impl BackgroundTaskContribution {
    /// A background task under its key; `body` is called for each run.
    #[must_use]
    pub fn new<F, R>(feature_id: FeatureId, key: &TaskKey, body: F) -> Self
    where
        F: Fn(BackgroundTaskContext) -> R + Send + Sync + 'static,
        R: Future<Output = TaskResult> + Send + 'static,
    {
        Self::declared(feature_id, &key.declaration(), body)
    }

    /// A background task as declared; `body` is called for each run.
    #[must_use]
    pub fn declared<F, R>(
        feature_id: FeatureId,
        declared: &BackgroundTaskDeclaration,
        body: F,
    ) -> Self
    where
        F: Fn(BackgroundTaskContext) -> R + Send + Sync + 'static,
        R: Future<Output = TaskResult> + Send + 'static,
    {
        let declaration = declared.clone();
        let body: TaskBody = Arc::new(move |cx| Box::pin(body(cx)));
        Self {
            feature_id,
            name: declaration.name.clone(),
            declaration,
            body,
            events: Vec::new(),
            files: None,
        }
    }
}
