//! Registrars: typed access to a feature's private stage. Do not depend on handles or on the host.

use super::contributions::{EnricherContribution, HookContribution, Keyed, ToolContribution};
use super::probe::Staging;
use super::stage::Stage;
use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::enricher::EnricherDeclaration;
use crate::feature::declare::hook::{HookKey, WrapKey};
use crate::feature::declare::tool::ToolKey;
use crate::feature::live::enrich::ToolEnricher;
use crate::hook::{
    Gate, Hook, HookAnswer, HookFailure, Observe, Point, ToolRepeat, ToolRun, ToolShape, ToolWrap,
    Transform, WrapAfter, WrapAgain, WrapBefore,
};
use async_trait::async_trait;
use llm_worker::tool::Touch;
use llm_worker::{Tool, ToolContext, ToolResult};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Stages tools; see [`FeatureInstallContext::tools`].
pub struct ToolRegistrar<'a> {
    pub(super) stage: &'a mut Stage,
}

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
        let tool = Keyed::new(key, touches, live, method);
        let definition = tool.definition().clone();
        let needs = key.needed().to_vec();
        let feature = self.stage.feature.clone();
        self.stage.call("tools", key.name(), |stage| {
            stage.tool(&definition, || {
                ToolContribution::typed(feature, Arc::new(tool), needs)
            })
        })
    }

    /// Stages a tool with a foreign schema.
    ///
    /// # Errors
    /// Not declared, staged twice, or not what was declared.
    pub fn register(&mut self, tool: ToolContribution) -> Result<Staging, FeatureInstallError> {
        let (name, definition) = (tool.name.clone(), tool.definition.clone());
        self.stage
            .call("tools", &name, |stage| stage.tool(&definition, || tool))
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
        self.stage.call("tools.enrich", &name, |stage| {
            stage.enricher(EnricherContribution { declaration, code })
        })
    }
}

/// Stages hooks; see [`FeatureInstallContext::hooks`]. A hook is a method of the feature's live part that gets a view
/// and returns an answer; it runs on a callback thread, within the deadline of its key.
pub struct PublicHookRegistrar<'a> {
    pub(super) stage: &'a mut Stage,
}

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
        let feature = self.stage.feature.clone();
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
        let name = hook.name.clone();
        self.stage.call("hooks", &name, |stage| stage.hook(hook))
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
        let feature = self.stage.feature.clone();
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
        let feature = self.stage.feature.clone();
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

/// Replaces the texts of declared instructions; see [`FeatureInstallContext::instructions`].
pub struct InstructionRegistrar<'a> {
    pub(super) stage: &'a mut Stage,
}

impl InstructionRegistrar<'_> {
    /// Replaces the text of a declared instruction, for texts that depend on the grants. An instruction that is never
    /// set keeps its declared text.
    ///
    /// # Errors
    /// Not declared, or out of the bounds of a declared text.
    pub fn set(&mut self, name: &str, text: impl Into<String>) -> Result<(), FeatureInstallError> {
        let text = text.into();
        self.stage
            .call("instructions", name, |stage| stage.instruction(name, text))
    }
}
