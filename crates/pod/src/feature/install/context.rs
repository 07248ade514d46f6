//! One feature's install, as the feature sees it. Gives access to no pod, no journal and no other feature.

use super::host_services::{FeatureServiceProvider, HostServices, NOT_OFFERED};
use super::registrars::{InstructionRegistrar, PublicHookRegistrar, ToolRegistrar};
use super::stage::Stage;
use super::tasks::BackgroundTaskRegistrar;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::grants::CapabilityGrantSet;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::state::{StateDeclaration, StateKey};
use crate::feature::live::sink::{FeatureAlertSink, FeatureNotifySink, RunningNotes};
use crate::feature::live::state::{DurableState, PodLink};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The argument of `install()`: a feature stages its contributions and gets its granted handles through it. Valid until
/// `install()` returns. Gives access to no pod, no journal and no other feature.
pub struct FeatureInstallContext<'a> {
    stage: &'a mut Stage,
    services: &'a HostServices,
}

impl<'a> FeatureInstallContext<'a> {
    pub(crate) fn new(stage: &'a mut Stage, services: &'a HostServices) -> Self {
        Self { stage, services }
    }

    /// The id of the feature.
    #[must_use]
    pub fn feature_id(&self) -> &FeatureId {
        &self.stage.feature
    }

    /// The granted and denied requests.
    #[must_use]
    pub fn grants(&self) -> &CapabilityGrantSet {
        &self.stage.grants
    }

    /// The settings in effect: what a person wrote, which fits the declared schema, and the defaults of the schema.
    ///
    /// # Errors
    /// No settings are declared, or `T` does not read what the schema allows.
    pub fn settings<T: DeserializeOwned>(&mut self) -> Result<T, FeatureInstallError> {
        self.stage.call("settings", "", |stage| {
            let undeclared = || FeatureInstallError::failed("the descriptor declares no settings");
            let settings = stage.settings.clone().ok_or_else(undeclared)?;
            let unread = |error| {
                FeatureInstallError::failed(format!("the settings cannot be read: {error}"))
            };
            serde_json::from_value(Value::Object(settings)).map_err(unread)
        })
    }

    /// The name of the pod, as `yoi ps` shows it; none while a plan is shown or checked without a pod.
    #[must_use]
    pub fn pod_name(&self) -> Option<&str> {
        self.services.link.as_ref().map(PodLink::name)
    }

    /// Stages tools.
    pub fn tools(&mut self) -> ToolRegistrar<'_> {
        ToolRegistrar { stage: self.stage }
    }

    /// Stages hooks.
    pub fn hooks(&mut self) -> PublicHookRegistrar<'_> {
        PublicHookRegistrar { stage: self.stage }
    }

    /// Stages background tasks.
    pub fn background_tasks(&mut self) -> BackgroundTaskRegistrar<'_> {
        BackgroundTaskRegistrar {
            stage: self.stage,
            services: self.services,
        }
    }

    /// Replaces the text of a declared instruction.
    pub fn instructions(&mut self) -> InstructionRegistrar<'_> {
        InstructionRegistrar { stage: self.stage }
    }

    /// Gives access to granted handles and services.
    pub fn services(&mut self) -> FeatureServiceProvider<'_> {
        FeatureServiceProvider {
            stage: self.stage,
            services: self.services,
        }
    }

    /// Opens a declared state, with its stored value. It can be updated once the feature is installed.
    ///
    /// # Errors
    /// Not declared, or not as declared; `Denied`; the stored value cannot be read; the host keeps no state. A feature
    /// that ignores the error is not installed, unless it was denied and requested the scope as optional.
    pub fn state<T>(&mut self, key: &StateKey<T>) -> Result<DurableState<T>, FeatureInstallError>
    where
        T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static,
    {
        self.open(key)
    }

    /// Opens a state that is known only at run time, as JSON; `null` without a stored value. Values of older versions do
    /// not read.
    ///
    /// # Errors
    /// As for [`Self::state`].
    pub fn foreign_state(
        &mut self,
        declared: &StateDeclaration,
    ) -> Result<DurableState<Value>, FeatureInstallError> {
        self.open(&StateKey::declared(declared))
    }

    fn open<T>(&mut self, key: &StateKey<T>) -> Result<DurableState<T>, FeatureInstallError>
    where
        T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static,
    {
        let (link, redactor) = (self.services.link.clone(), self.services.redactor.clone());
        self.stage.call("state", key.name(), |stage| {
            stage.state(&key.declaration(), |feature, door, presence| {
                let asked = format!("state `{}`", key.name());
                let unavailable = |why| FeatureInstallError::Unavailable {
                    feature: feature.clone(),
                    asked,
                    why,
                };
                let Some(link) = link else {
                    return Err(unavailable(NOT_OFFERED.to_owned()));
                };
                let left = |why| {
                    FeatureInstallError::failed(format!(
                        "state `{}` cannot be read: {why}",
                        key.name()
                    ))
                };
                DurableState::load(key, feature, &link, (door, presence), redactor).map_err(left)
            })
        })
    }

    /// The sink for notifications of the model; usable once the feature is installed.
    ///
    /// # Errors
    /// `Denied` without a grant of `EmitModelNotification`; `Unavailable` if there is no pod.
    pub fn notifications(&mut self) -> Result<FeatureNotifySink, FeatureInstallError> {
        let mailbox = self.services.mailbox();
        self.stage.call("notifications", "", |stage| {
            // Without a grant, a request for the minimum is refused by name.
            let (mut max_bytes, mut per_turn) = (1, 1);
            for grant in stage.grants.granted() {
                if let HostCapability::EmitModelNotification {
                    max_bytes: bytes,
                    per_turn: times,
                } = grant
                {
                    (max_bytes, per_turn) = (*bytes, *times);
                }
            }
            let door = stage.grant(&HostCapability::EmitModelNotification {
                max_bytes,
                per_turn,
            })?;
            let (feature, presence) = (stage.feature.clone(), stage.presence());
            Ok(FeatureNotifySink {
                mailbox: mailbox(&feature, "notifications")?,
                feature,
                max_bytes,
                per_turn,
                door,
                presence,
            })
        })
    }

    /// The sink for alerts to people; usable once the feature is installed.
    ///
    /// # Errors
    /// `Denied` without a grant of `EmitUserAlert`; `Unavailable` if there is no pod.
    pub fn alerts(&mut self) -> Result<FeatureAlertSink, FeatureInstallError> {
        let mailbox = self.services.mailbox();
        self.stage.call("alerts", "", |stage| {
            let door = stage.grant(&HostCapability::EmitUserAlert)?;
            let (feature, presence) = (stage.feature.clone(), stage.presence());
            Ok(FeatureAlertSink {
                mailbox: mailbox(&feature, "alerts")?,
                feature,
                door,
                presence,
            })
        })
    }

    /// The sink for notes in the report.
    pub fn diagnostics(&mut self) -> FeatureDiagnosticSink<'_> {
        FeatureDiagnosticSink {
            stage: self.stage,
            services: self.services,
        }
    }
}

/// Adds notes to a feature's install report; see [`FeatureInstallContext::diagnostics`].
pub struct FeatureDiagnosticSink<'a> {
    stage: &'a mut Stage,
    services: &'a HostServices,
}

impl FeatureDiagnosticSink<'_> {
    /// Adds a note to this feature's report, cut at 512 bytes. Dropped with the feature if its install fails.
    ///
    /// # Errors
    /// `Exhausted` after [`crate::feature::MAX_NOTES`].
    pub fn note(&mut self, text: &str) -> Result<(), FeatureInstallError> {
        self.stage.call("diagnostics", "", |stage| stage.note(text))
    }

    /// The sink for notes while the pod runs.
    ///
    /// # Errors
    /// `Unavailable` if there is no pod.
    pub fn later(&mut self) -> Result<RunningNotes, FeatureInstallError> {
        let mailbox = self.services.mailbox();
        self.stage.call("diagnostics", "later", |stage| {
            let (feature, presence) = (stage.feature.clone(), stage.presence());
            Ok(RunningNotes {
                mailbox: mailbox(&feature, "diagnostics")?,
                feature,
                presence,
            })
        })
    }
}
