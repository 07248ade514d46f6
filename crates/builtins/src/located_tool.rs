//! A typed tool with known locations. A tool key can derive paths only from arguments. These tools name items and
//! notes, not paths; the paths are known once the handle exists.

use llm_worker::tool::{ArgumentError, Prepared, ToolFuture, Touch, parse_arguments};
use llm_worker::{Tool, ToolContext, ToolDefinition, ToolResult};
use pod::feature::{FeatureDescriptor, FeatureInstallContext, FeatureInstallError, Staging, ToolContribution, ToolKey};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The paths that a call with these arguments touches.
type Touches<A> = Box<dyn Fn(&A) -> Vec<Touch> + Send + Sync>;

struct LocatedTool<S, A, F> {
    definition: ToolDefinition,
    touches: Touches<A>,
    live: Arc<S>,
    method: F,
}

/// Stages the tool of a key that `descriptor` declares; each call of it is judged by `touches`.
pub(crate) fn implement<S, A, F, R>(
    ctx: &mut FeatureInstallContext<'_>,
    descriptor: &FeatureDescriptor,
    key: &ToolKey<A>,
    touches: impl Fn(&A) -> Vec<Touch> + Send + Sync + 'static,
    (live, method): (&Arc<S>, F),
) -> Result<Staging, FeatureInstallError>
where
    S: Send + Sync + 'static,
    A: DeserializeOwned + Serialize + JsonSchema + Send + 'static,
    F: Fn(Arc<S>, A, ToolContext) -> R + Copy + Send + Sync + 'static,
    R: Future<Output = ToolResult> + Send + 'static,
{
    let Some(declared) = descriptor.tools.iter().find(|tool| tool.name == key.name()) else {
        return Err(FeatureInstallError::failed(format!("{} is not declared", key.name())));
    };
    let (definition, needs) = (declared.definition(), declared.needs.clone());
    let tool = LocatedTool { definition, touches: Box::new(touches), live: Arc::clone(live), method };
    let feature = descriptor.id.clone();
    ctx.tools().register(ToolContribution::new(feature, Arc::new(tool), needs))
}

impl<S, A, F, R> Tool for LocatedTool<S, A, F>
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
        Ok(Prepared::new(canonical, touches, move |cx| -> ToolFuture { Box::pin(method(live, args, cx)) }))
    }
}
