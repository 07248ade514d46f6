//! One feature's install, as the feature sees it. Gives access to no pod, no journal and no other feature.

use super::host_services::FeatureServiceProvider;
use super::registrars::{
    BackgroundTaskRegistrar, InstructionRegistrar, PublicHookRegistrar, ToolRegistrar,
};
use super::stage::Stage;
use crate::feature::decide::policy::CapabilityGrantSet;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::state::{StateDeclaration, StateKey};
use crate::feature::live::command::{CommandCheck, CommandText};
use crate::feature::live::sink::{FeatureAlertSink, FeatureNotifySink, RunningNotes};
use crate::feature::live::state::{DurableState, PodLink};
use authority::Door;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The argument of `install()`: a feature stages its contributions and gets its granted handles through it. Valid until
/// `install()` returns. Gives access to no pod, no journal and no other feature.
pub struct FeatureInstallContext<'a>(pub(super) &'a mut Stage);

impl FeatureInstallContext<'_> {
    /// The id of the feature.
    #[must_use]
    pub fn feature_id(&self) -> &FeatureId {
        &self.0.feature
    }

    /// The granted and denied requests.
    #[must_use]
    pub fn grants(&self) -> &CapabilityGrantSet {
        &self.0.grants
    }

    /// The settings in effect: what a person wrote, which fits the declared schema, and the defaults of the schema.
    ///
    /// # Errors
    /// No settings are declared, or `T` does not read what the schema allows.
    pub fn settings<T: DeserializeOwned>(&mut self) -> Result<T, FeatureInstallError> {
        self.0.call("settings", "", |stage| {
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
        self.0.host.link.as_ref().map(PodLink::name)
    }

    /// Stages tools.
    pub fn tools(&mut self) -> ToolRegistrar<'_> {
        ToolRegistrar(self.0)
    }

    /// Stages hooks.
    pub fn hooks(&mut self) -> PublicHookRegistrar<'_> {
        PublicHookRegistrar(self.0)
    }

    /// Stages background tasks.
    pub fn background_tasks(&mut self) -> BackgroundTaskRegistrar<'_> {
        BackgroundTaskRegistrar(self.0)
    }

    /// Replaces the text of a declared instruction.
    pub fn instructions(&mut self) -> InstructionRegistrar<'_> {
        InstructionRegistrar(self.0)
    }

    /// Sets what is asked each time before a declared command is expanded.
    pub fn check_commands(&mut self, check: CommandCheck) {
        self.0.command_check = Some(check);
    }

    /// Sets what makes the text of each declared command, in place of the declared text, which then only says what it is.
    pub fn make_commands(&mut self, text: CommandText) {
        self.0.command_text = Some(text);
    }

    /// Gives access to granted handles and services.
    pub fn services(&mut self) -> FeatureServiceProvider<'_> {
        FeatureServiceProvider(self.0)
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
        self.0.call("state", key.name(), |stage| stage.state(key))
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
        self.state(&StateKey::declared(declared))
    }

    /// The sink for notifications of the model; usable once the feature is installed.
    ///
    /// # Errors
    /// `Denied` without a grant of `EmitModelNotification`; `Unavailable` if there is no pod.
    pub fn notifications(&mut self) -> Result<FeatureNotifySink, FeatureInstallError> {
        self.0.call("notifications", "", |stage| {
            // Without a grant, a request for the minimum is refused by name.
            let mut max_bytes = 1;
            let mut per_turn = 1;
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
            Ok(FeatureNotifySink {
                link: stage.link("notifications", door)?,
                max_bytes,
                per_turn,
            })
        })
    }

    /// The sink for alerts to people; usable once the feature is installed.
    ///
    /// # Errors
    /// `Denied` without a grant of `EmitUserAlert`; `Unavailable` if there is no pod.
    pub fn alerts(&mut self) -> Result<FeatureAlertSink, FeatureInstallError> {
        self.0.call("alerts", "", |stage| {
            let door = stage.grant(&HostCapability::EmitUserAlert)?;
            let link = stage.link("alerts", door)?;
            Ok(FeatureAlertSink { link })
        })
    }

    /// The sink for notes in the report.
    pub fn diagnostics(&mut self) -> FeatureDiagnosticSink<'_> {
        FeatureDiagnosticSink(self.0)
    }
}

/// Adds notes to a feature's install report; see [`FeatureInstallContext::diagnostics`].
pub struct FeatureDiagnosticSink<'a>(&'a mut Stage);

impl FeatureDiagnosticSink<'_> {
    /// Adds a note to this feature's report, cut at 512 bytes. Dropped with the feature if its install fails.
    ///
    /// # Errors
    /// `Exhausted` after [`crate::feature::MAX_NOTES`].
    pub fn note(&mut self, text: &str) -> Result<(), FeatureInstallError> {
        self.0.call("diagnostics", "", |stage| stage.note(text))
    }

    /// The sink for notes while the pod runs.
    ///
    /// # Errors
    /// `Unavailable` if there is no pod.
    pub fn later(&mut self) -> Result<RunningNotes, FeatureInstallError> {
        self.0.call("diagnostics", "later", |stage| {
            let link = stage.link("diagnostics", Door::new())?;
            Ok(RunningNotes { link })
        })
    }
}
