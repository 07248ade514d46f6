//! Tools as contributions: one `const` key both declares and stages, so the two cannot drift.

use super::capability::HostCapability;
use super::descriptor::ToolDeclaration;
use super::id::FeatureId;
use llm_worker::tool::{ArgumentError, Prepared, Running, Touch, canonical_schema, parse_arguments};
use llm_worker::{Tool, ToolContext, ToolDefinition, ToolEffect, ToolResult};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// How long the host waits for a call whose key says nothing.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);
/// The longest wait a key may ask for: an hour of work and ten seconds to say how it ended.
pub const MAX_DEADLINE: Duration = Duration::from_secs(3_610);

/// A tool's name, effect and argument type, as a `const`.
///
/// ```
/// use pod::feature::ToolKey;
/// use llm_worker::ToolEffect;
/// #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// struct GreetArgs {
///     name: String,
/// }
/// const GREET: ToolKey<GreetArgs> = ToolKey::new("Greet", ToolEffect::ReadOnly, "Greet somebody.");
/// assert_eq!(GREET.name(), "Greet");
/// ```
pub struct ToolKey<A> {
    name: &'static str,
    effect: ToolEffect,
    about: &'static str,
    touches: fn(&A) -> Vec<Touch>,
    deadline: Duration,
    needs: &'static [HostCapability],
}

impl<A> ToolKey<A> {
    /// A tool that names no files or commands in its arguments, with [`DEFAULT_DEADLINE`].
    #[must_use]
    pub const fn new(name: &'static str, effect: ToolEffect, about: &'static str) -> Self {
        Self { name, effect, about, touches: |_| Vec::new(), deadline: DEFAULT_DEADLINE, needs: &[] }
    }

    /// Says which files, commands and hosts the arguments name, or that a call changes nothing but the feature's
    /// session state: what permission judges.
    #[must_use]
    pub const fn touching(mut self, touches: fn(&A) -> Vec<Touch>) -> Self {
        self.touches = touches;
        self
    }

    /// How long the host waits for one call; at most [`MAX_DEADLINE`].
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Requests of the feature without which this tool is left out.
    #[must_use]
    pub const fn needs(mut self, needs: &'static [HostCapability]) -> Self {
        self.needs = needs;
        self
    }

    /// The tool's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) const fn needed(&self) -> &'static [HostCapability] {
        self.needs
    }
}

impl<A: JsonSchema> ToolKey<A> {
    pub(crate) fn declaration(&self) -> ToolDeclaration {
        ToolDeclaration {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            effect: self.effect,
            schema: canonical_schema::<A>(),
            deadline_ms: u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX),
            needs: self.needs.to_vec(),
        }
    }
}

/// A tool as staged.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolContribution {
    /// Who contributes it.
    pub feature_id: FeatureId,
    /// Its name, as declared.
    pub name: String,
    /// What the model is told, as declared.
    pub definition: ToolDefinition,
    /// Requests without which it is left out, as declared.
    pub required_capabilities: Vec<HostCapability>,
    /// What runs.
    pub(crate) tool: Arc<dyn Tool>,
}

impl ToolContribution {
    /// A tool with a foreign schema.
    #[must_use]
    pub fn new(feature_id: FeatureId, tool: Arc<dyn Tool>, required_capabilities: Vec<HostCapability>) -> Self {
        let definition = tool.definition().clone();
        Self { feature_id, name: definition.name.clone(), definition, required_capabilities, tool }
    }
}

/// A typed tool: a key, the feature's live part, and one of its methods.
pub(crate) struct Keyed<S, A, F> {
    definition: ToolDefinition,
    touches: fn(&A) -> Vec<Touch>,
    live: Arc<S>,
    method: F,
}

impl<S, A: JsonSchema, F> Keyed<S, A, F> {
    pub(crate) fn new(key: &ToolKey<A>, live: &Arc<S>, method: F) -> Self {
        Self { definition: key.declaration().definition(), touches: key.touches, live: Arc::clone(live), method }
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
        let (args, canonical) = parse_arguments::<A>(&self.definition.name, raw)?;
        let touches = (self.touches)(&args);
        let (live, method) = (Arc::clone(&self.live), self.method);
        Ok(Prepared::new(canonical, touches, move |cx| -> Running { Box::pin(method(live, args, cx)) }))
    }
}
