//! Registrars: typed access to a feature's private stage. Do not depend on handles or on the host.

use super::contributions::{BackgroundTaskContribution, HookContribution, Keyed, ToolContribution};
use super::stage::{Stage, Staging};
use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::enricher::EnricherDeclaration;
use crate::feature::declare::hook::{HookKey, WrapKey};
use crate::feature::declare::task::TaskKey;
use crate::feature::declare::tool::ToolKey;
use crate::feature::live::enrich::ToolEnricher;
use crate::feature::live::task::{BackgroundTaskContext, TaskHandle, TaskResult};
use crate::hook::{
    Gate, Hook, HookAnswer, HookFailure, Observe, Point, ToolRepeat, ToolRun, ToolShape, ToolWrap,
    Transform, WrapAfter, WrapAgain, WrapBefore,
};
use async_trait::async_trait;
use llm_worker::tool::{ShownChange, Touch};
use llm_worker::{ToolContext, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Stages tools; see [`FeatureInstallContext::tools`].
pub struct ToolRegistrar<'a>(pub(super) &'a mut Stage);

impl ToolRegistrar<'_> {
    /// Stages a typed tool: an async method of the feature's live part.
    ///
    /// # Errors
    /// Not declared, staged twice, or not the key that was declared.
    pub fn implement<S, A, F, R>(
        &mut self,
        key: &ToolKey<A>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        S: Send + Sync + 'static,
        A: DeserializeOwned + Serialize + JsonSchema + Send + 'static,
        F: Fn(Arc<S>, A, ToolContext) -> R + Copy + Send + Sync + 'static,
        R: Future<Output = ToolResult> + Send + 'static,
    {
        self.implement_touching(key, key.touches, live, method)
    }

    /// Stages a typed tool with code that shows a person, who is asked about a call, what it would change now. That code
    /// reads, and changes nothing.
    ///
    /// # Errors
    /// As for [`Self::implement`].
    pub fn implement_previewed<S, A, F, R>(
        &mut self,
        key: &ToolKey<A>,
        live: &Arc<S>,
        method: F,
        preview: fn(&S, &A, &CancellationToken) -> Result<ShownChange, ToolError>,
    ) -> Result<Staging, FeatureInstallError>
    where
        S: Send + Sync + 'static,
        A: DeserializeOwned + Serialize + JsonSchema + Send + 'static,
        F: Fn(Arc<S>, A, ToolContext) -> R + Copy + Send + Sync + 'static,
        R: Future<Output = ToolResult> + Send + 'static,
    {
        let tool = Keyed::new(key, key.touches, live, method).previewed(preview);
        let feature = self.0.feature.clone();
        self.register(ToolContribution::typed(
            feature,
            Arc::new(tool),
            key.needed().to_vec(),
        ))
    }

    /// Stages a typed tool whose touches are known only now, as when its arguments name items and not paths: `touches`
    /// replaces those of the key.
    ///
    /// # Errors
    /// As for [`Self::implement`].
    pub fn implement_touching<S, A, F, R>(
        &mut self,
        key: &ToolKey<A>,
        touches: impl Fn(&A) -> Vec<Touch> + Send + Sync + 'static,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        S: Send + Sync + 'static,
        A: DeserializeOwned + Serialize + JsonSchema + Send + 'static,
        F: Fn(Arc<S>, A, ToolContext) -> R + Copy + Send + Sync + 'static,
        R: Future<Output = ToolResult> + Send + 'static,
    {
        let tool = Arc::new(Keyed::new(key, touches, live, method));
        let feature = self.0.feature.clone();
        self.register(ToolContribution::typed(
            feature,
            tool,
            key.needed().to_vec(),
        ))
    }

    /// Stages a tool with a foreign schema.
    ///
    /// # Errors
    /// Not declared, staged twice, or not what was declared.
    pub fn register(&mut self, tool: ToolContribution) -> Result<Staging, FeatureInstallError> {
        let name = tool.definition.name.clone();
        self.0.call("tools", &name, |stage| stage.tool(tool))
    }

    /// Stages an enricher, by its key or as declared at run time.
    ///
    /// # Errors
    /// Not declared, staged twice, or not what was declared.
    pub fn enrich(
        &mut self,
        key: impl Into<EnricherDeclaration>,
        code: Arc<dyn ToolEnricher>,
    ) -> Result<Staging, FeatureInstallError> {
        let declaration = key.into();
        let name = declaration.name.clone();
        self.0.call("tools.enrich", &name, |stage| {
            stage.enricher(&declaration, code)
        })
    }
}

/// Stages hooks; see [`FeatureInstallContext::hooks`]. A hook is a method of the feature's live part that gets a view
/// and returns an answer; it runs on a callback thread, within the deadline of its key.
pub struct PublicHookRegistrar<'a>(pub(super) &'a mut Stage);

impl PublicHookRegistrar<'_> {
    /// Stages a gate. Its failure refuses.
    ///
    /// # Errors
    /// Not declared, staged twice, or not the key that was declared.
    pub fn gate<P, S, F, A>(
        &mut self,
        key: &HookKey<P>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        P: Gate,
        S: Send + Sync + 'static,
        F: Fn(&S, &P::Input) -> A + Send + Sync + 'static,
        A: HookAnswer<P>,
    {
        self.method(key, live, method)
    }

    /// Stages a transform. Its failure keeps the value as it was.
    ///
    /// # Errors
    /// Not declared, staged twice, or not the key that was declared.
    pub fn transform<P, S, F, A>(
        &mut self,
        key: &HookKey<P>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        P: Transform,
        S: Send + Sync + 'static,
        F: Fn(&S, &P::Input) -> A + Send + Sync + 'static,
        A: HookAnswer<P>,
    {
        self.method(key, live, method)
    }

    /// Stages a gate that waits for something: an async method on `Arc<Self>`.
    ///
    /// # Errors
    /// As for [`Self::gate`].
    pub fn gate_async<P, S, F, R>(
        &mut self,
        key: &HookKey<P>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        P: Gate,
        S: Send + Sync + 'static,
        F: Fn(Arc<S>, P::Input) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: HookAnswer<P>,
    {
        self.waits(key, live, method)
    }

    /// Stages a transform that waits for something: an async method on `Arc<Self>`.
    ///
    /// # Errors
    /// As for [`Self::transform`].
    pub fn transform_async<P, S, F, R>(
        &mut self,
        key: &HookKey<P>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        P: Transform,
        S: Send + Sync + 'static,
        F: Fn(Arc<S>, P::Input) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: HookAnswer<P>,
    {
        self.waits(key, live, method)
    }

    /// Stages the hooks around a call: the methods of one type.
    ///
    /// # Errors
    /// As for [`Self::transform`].
    pub fn wrap<W: ToolWrap>(
        &mut self,
        key: &WrapKey,
        live: &Arc<W>,
    ) -> Result<Staging, FeatureInstallError> {
        let feature = self.0.feature.clone();
        let [before, again, after] = key.declarations();
        let before = HookContribution::declared::<ToolRun>(
            feature.clone(),
            &before,
            Arc::new(WrapBefore(Arc::clone(live))),
        );
        let again = HookContribution::declared::<ToolRepeat>(
            feature.clone(),
            &again,
            Arc::new(WrapAgain(Arc::clone(live))),
        );
        let after = HookContribution::declared::<ToolShape>(
            feature,
            &after,
            Arc::new(WrapAfter(Arc::clone(live))),
        );
        let staged = [
            self.register(before)?,
            self.register(again)?,
            self.register(after)?,
        ];
        let any = staged.into_iter().find(|staged| *staged == Staging::Staged);
        Ok(any.unwrap_or(Staging::Skipped))
    }

    /// Stages an observer. Its failure is counted.
    ///
    /// # Errors
    /// Not declared, staged twice, or not the key that was declared.
    pub fn observe<P, S, F, A>(
        &mut self,
        key: &HookKey<P>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        P: Observe,
        S: Send + Sync + 'static,
        F: Fn(&S, &P::Input) -> A + Send + Sync + 'static,
        A: HookAnswer<P>,
    {
        self.method(key, live, method)
    }

    /// Stages a hook of a type of its own.
    ///
    /// # Errors
    /// Not declared, staged twice, or not what was declared.
    pub fn register(&mut self, hook: HookContribution) -> Result<Staging, FeatureInstallError> {
        let name = hook.declaration.name.clone();
        self.0.call("hooks", &name, |stage| stage.hook(hook))
    }

    fn method<P, S, F, A>(
        &mut self,
        key: &HookKey<P>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        P: Point,
        S: Send + Sync + 'static,
        F: Fn(&S, &P::Input) -> A + Send + Sync + 'static,
        A: HookAnswer<P>,
    {
        let live = Arc::clone(live);
        let hook = Method(move |input: &P::Input| method(&live, input).answered());
        let feature = self.0.feature.clone();
        self.register(HookContribution::new(feature, key, Arc::new(hook)))
    }

    fn waits<P, S, F, R>(
        &mut self,
        key: &HookKey<P>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        P: Point,
        S: Send + Sync + 'static,
        F: Fn(Arc<S>, P::Input) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: HookAnswer<P>,
    {
        let live = Arc::clone(live);
        let hook = Waits(move |input: &P::Input| method(Arc::clone(&live), input.clone()));
        let feature = self.0.feature.clone();
        self.register(HookContribution::new(feature, key, Arc::new(hook)))
    }
}

/// A method of an author that answers at once.
struct Method<F>(F);

#[async_trait]
impl<P, F> Hook<P> for Method<F>
where
    P: Point,
    F: Fn(&P::Input) -> Result<P::Answer, HookFailure> + Send + Sync + 'static,
{
    async fn call(&self, input: &P::Input) -> Result<P::Answer, HookFailure> {
        (self.0)(input)
    }
}

/// A method of an author that waits for something.
struct Waits<F>(F);

#[async_trait]
impl<P, F, R> Hook<P> for Waits<F>
where
    P: Point,
    F: Fn(&P::Input) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: HookAnswer<P>,
{
    async fn call(&self, input: &P::Input) -> Result<P::Answer, HookFailure> {
        (self.0)(input).await.answered()
    }
}

/// Stages background tasks; see [`FeatureInstallContext::background_tasks`]. A task is an async method of the feature's
/// live part; the host starts its runs, each on a callback thread and within the deadline of its key, at most one at a
/// time for one task.
pub struct BackgroundTaskRegistrar<'a>(pub(super) &'a mut Stage);

impl BackgroundTaskRegistrar<'_> {
    /// Stages a background task: an async method of the feature's live part.
    ///
    /// # Errors
    /// Not declared, staged twice, or not the key that was declared.
    pub fn run<S, F, R>(
        &mut self,
        key: &TaskKey,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        S: Send + Sync + 'static,
        F: Fn(Arc<S>, BackgroundTaskContext) -> R + Send + Sync + 'static,
        R: Future<Output = TaskResult> + Send + 'static,
    {
        let live = Arc::clone(live);
        let feature = self.0.feature.clone();
        self.register(BackgroundTaskContribution::new(feature, key, move |cx| {
            method(Arc::clone(&live), cx)
        }))
    }

    /// Stages a background task that is not a method.
    ///
    /// # Errors
    /// Not declared, staged twice, or not what was declared.
    pub fn register(
        &mut self,
        task: BackgroundTaskContribution,
    ) -> Result<Staging, FeatureInstallError> {
        let name = task.declaration.name.clone();
        self.0
            .call("background_tasks", &name, |stage| stage.task(task))
    }

    /// The handle that requests runs of a task with the trigger `on_request`; usable once the feature is installed.
    ///
    /// # Errors
    /// Not declared, not as declared, or without that trigger; `Denied`; `Unavailable` if there is no pod or the task is
    /// left out for another reason.
    pub fn handle(&mut self, key: &TaskKey) -> Result<TaskHandle, FeatureInstallError> {
        self.0.call("background_tasks.handle", key.name(), |stage| {
            stage.task_handle(&key.declaration())
        })
    }
}

/// Replaces the texts of declared instructions; see [`FeatureInstallContext::instructions`].
pub struct InstructionRegistrar<'a>(pub(super) &'a mut Stage);

impl InstructionRegistrar<'_> {
    /// Replaces the text of a declared instruction, for texts that depend on the grants. An instruction that is never
    /// set keeps its declared text.
    ///
    /// # Errors
    /// Not declared, or out of the bounds of a declared text.
    pub fn set(&mut self, name: &str, text: impl Into<String>) -> Result<(), FeatureInstallError> {
        let text = text.into();
        self.0
            .call("instructions", name, |stage| stage.instruction(name, text))
    }
}
