//! The one door through which anything is added to a pod: declare, decide, stage, commit, report.
//!
//! A [`FeatureModule`] says what it wants ([`FeatureDescriptor`], pure data). The host decides
//! ([`CapabilityPolicy`] → [`InstallPlan`], a pure function). The feature stages contributions under its plan
//! ([`FeatureInstallContext`]); what it staged must be what was planned, and only then is all of it merged at
//! once into a [`FeatureRegistry`]. A feature that fails, panics or hangs on the way leaves nothing behind; the
//! pod starts without it and its [`FeatureInstallReport`] says why.
//!
//! In this build a feature contributes tools, hooks, instructions and services, keeps durable state, uses services of
//! others, and speaks up through sinks.
#![warn(missing_docs)]

pub mod author;
mod capability;
mod contained;
mod context;
mod descriptor;
mod diagnostic;
mod grant;
mod hook;
mod id;
mod install;
mod plan;
mod policy;
mod presence;
mod registry;
mod report;
mod service;
mod sink;
mod stage;
mod state;
mod text;
mod tool;

pub use capability::{CapabilityGrantSet, CapabilityRequest, DeniedCapability, HostCapability, Need};
pub(crate) use capability::{MAX_NOTIFICATION, MAX_PER_TURN};
pub use context::{
    FeatureDiagnosticSink, FeatureInstallContext, FeatureServiceProvider, HostServices, InstructionRegistrar,
    PublicHookRegistrar, RegistrarCall, RegistrarProbe, Staging, ToolRegistrar,
};
pub use descriptor::{
    FeatureDescriptor, FeatureDescriptorBuilder, FeatureRuntimeKind, InstructionDeclaration, ToolDeclaration,
};
pub use diagnostic::{DiagnosticCode, FeatureDiagnostic, FeatureInstallError, MAX_NOTES};
pub(crate) use grant::under;
pub use grant::{GrantUse, Revoke};
pub use hook::{HookContribution, HookDeclaration, HookKey};
pub use id::{BadFeatureId, FeatureId, Tier};
pub use plan::{InstallPlan, MAX_FEATURES, PlannedFeature, PlannedHook, PlannedTool, Unmet};
pub(crate) use plan::{MAX_GATES, MAX_TRANSFORMS};
pub use policy::{Admission, BadGrant, CapabilityPolicy, FsAccess, GrantTable, NotificationBounds, StoreAccess};
pub use registry::{
    CALLBACK_LIMIT, FeatureRegistry, FeatureRegistryBuilder, Instruction, RegisteredTool, ToolRegistry,
};
pub use report::{
    ContributionKind, FeatureInstallReport, HostGate, HostLimit, HostReport, HostRule, HostSandbox, Outcome,
    RegistryReport, SkippedContribution, Totals,
};
pub use service::{
    Facade, FeatureServices, MissingService, ResolvedService, ServiceDeclaration, ServiceError, ServiceFuture,
    ServiceHandle, ServiceId, ServiceKey, ServiceRequirement,
};
pub use sink::{FeatureAlertSink, FeatureNotifySink, Receipt, RunningNotes, SinkError};
pub(crate) use state::Keeper;
pub use state::{DurableState, MAX_STATE, PodLink, StateDeclaration, StateError, StateKey, StateScope, Update};
pub(crate) use text::{clamp, escape_line, sanitize, sanitize_lines, secret};
pub use tool::{DEFAULT_DEADLINE, MAX_DEADLINE, ToolContribution, ToolKey};

/// Something that can be added to a pod.
pub trait FeatureModule: Send + Sync + 'static {
    /// What this feature is and wants. Pure and cheap: no I/O, the same answer every time. The only call made
    /// when a plan is shown. Runs on its own thread; a panic or more than [`CALLBACK_LIMIT`] skips the feature.
    fn descriptor(&self) -> FeatureDescriptor;

    /// Stages what the descriptor declared. Nothing is live until this returned `Ok` and the host committed the
    /// whole feature. Called at most once per start, never before its plan stands, under the same limits.
    ///
    /// # Errors
    /// Whatever keeps the feature from working; it is then skipped whole.
    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>;

    /// Where this feature is written: names it when its descriptor cannot be had, or when two claim one id.
    fn source(&self) -> &'static str {
        std::any::type_name::<Self>()
    }
}
