//! Background tasks as `install()` stages them: their declaration and their code. Do not depend on running tasks.

use super::host_services::HostServices;
use super::probe::Staging;
use super::stage::Stage;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::task::{BackgroundTaskDeclaration, TaskKey};
use crate::feature::live::task::{
    BackgroundTaskContext, GrantedEvent, TaskBody, TaskHandle, TaskResult,
};
use authority::Workspace;
use std::sync::Arc;

/// Stages background tasks; see [`FeatureInstallContext::background_tasks`]. A task is an async method of the feature's
/// live part; the host starts its runs, each on a callback thread and within the deadline of its key, at most one at a
/// time for one task.
pub struct BackgroundTaskRegistrar<'a> {
    pub(super) stage: &'a mut Stage,
    pub(super) services: &'a HostServices,
}

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
        let feature = self.stage.feature.clone();
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
        let (name, services) = (task.name.clone(), self.services);
        let project = |stage: &mut Stage| services.fs(stage, HostCapability::WORKSPACE);
        self.stage
            .call("background_tasks", &name, |stage| stage.task(task, project))
    }

    /// The handle that requests runs of a task with the trigger `on_request`; usable once the feature is installed.
    ///
    /// # Errors
    /// Not declared, not as declared, or without that trigger; `Denied`; `Unavailable` if there is no pod or the task is
    /// left out for another reason.
    pub fn handle(&mut self, key: &TaskKey) -> Result<TaskHandle, FeatureInstallError> {
        let mailbox = self.services.mailbox();
        self.stage
            .call("background_tasks.handle", key.name(), |stage| {
                stage.task_handle(&key.declaration(), mailbox)
            })
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
