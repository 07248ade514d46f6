//! The only way to add anything to a pod: declare, decide, stage, commit, report.
//!
//! A [`FeatureModule`] declares its requests ([`FeatureDescriptor`], pure data). The host decides ([`CapabilityPolicy`]
//! → [`InstallPlan`], a pure function). The feature stages contributions under its plan ([`FeatureInstallContext`]);
//! the stage must equal the plan, and only then is all of it merged at once into a [`FeatureRegistry`]. A feature that
//! fails, panics or hangs on the way leaves nothing behind; the pod starts without it and its [`FeatureInstallReport`]
//! has the reason.
//!
//! In this build a feature contributes tools, hooks, background tasks, instructions and services, keeps durable state, uses services of
//! other features, and sends notifications, alerts and notes through sinks.

pub mod author;
mod decide;
mod declare;
mod install;
mod live;

pub use crate::record::{RecordedFeature, RecordedRegistry};
pub use authority::FileChanges;
pub use decide::drift::{Difference, Drift, DriftGrade};
pub use decide::plan::{
    InstallPlan, MAX_FEATURES, PlannedFeature, PlannedHook, PlannedTask, PlannedTool, Unmet,
};
pub(crate) use decide::plan::{MAX_GATES, MAX_TRANSFORMS};
pub use decide::policy::{
    Admission, BadGrant, CapabilityGrantSet, CapabilityPolicy, Denial, DeniedCapability, FsAccess,
    GrantLimit, GrantTable, NotificationBounds, StoreAccess,
};
pub use decide::report::{
    Enriched, FeatureInstallReport, HostGate, HostLimit, HostReport, HostRule, HostSandbox,
    InstallOutcome, RegistryReport, ReportedCommand, SkippedContribution, Totals, estimated_tokens,
};
pub use declare::about::About;
pub use declare::capability::HostCapability;
pub(crate) use declare::capability::{MAX_NOTIFICATION, MAX_PER_TURN};
pub use declare::category::ToolCategory;
pub use declare::command::{CommandDeclaration, MAX_COMMAND};
pub use declare::contribution::ContributionKind;
pub use declare::descriptor::{
    FeatureDescriptor, FeatureDescriptorBuilder, FeatureRuntimeKind, InstructionDeclaration,
};
pub use declare::diagnostic::{DiagnosticCode, FeatureDiagnostic, FeatureInstallError, MAX_NOTES};
pub use declare::enricher::{EnrichKey, EnricherDeclaration};
pub use declare::grants::{CapabilityRequest, GrantUse, Need};
pub use declare::hook::{HookDeclaration, HookKey, WrapKey};
pub use declare::id::{BadFeatureId, FeatureId, Tier};
pub use declare::service::{
    FeatureServices, MissingService, ResolvedService, ServiceAccess, ServiceDeclaration,
    ServiceEvent, ServiceEventKey, ServiceId, ServiceKey, ServiceRequirement,
};
pub use declare::settings::Settings;
pub use declare::state::{StateDeclaration, StateKey, StateScope};
pub use declare::task::{
    BackgroundTaskDeclaration, DEFAULT_TASK_DEADLINE, MAX_TASK_DEADLINE, Restart, TaskKey,
    TaskTrigger,
};
pub(crate) use declare::text::{
    Lines, check as check_text, clamp, escape_line, millis, sanitize, sanitize_lines, secret,
};
pub use declare::tool::{DEFAULT_DEADLINE, MAX_DEADLINE, NamedCall, ToolDeclaration, ToolKey};
pub use declare::tool_schema::ToolSchema;
pub use declare::touch::{TouchKind, TouchRule};
pub use install::builder::{CALLBACK_LIMIT, FeatureRegistryBuilder};
pub use install::context::{FeatureDiagnosticSink, FeatureInstallContext};
pub use install::contributions::{BackgroundTaskContribution, HookContribution, ToolContribution};
pub use install::host_services::{FeatureServiceProvider, HostServices};
pub use install::module::FeatureModule;
pub use install::registrars::{
    BackgroundTaskRegistrar, InstructionRegistrar, PublicHookRegistrar, ToolRegistrar,
};
pub use install::stage::{RegistrarCall, RegistrarProbe, Staging};
pub(crate) use live::command::{AskedCommand, Expansion};
pub use live::command::{CommandCheck, CommandText, command_words};
pub(crate) use live::enrich::ArgumentEnricher;
pub use live::enrich::{Enrichment, ToolEnricher};
pub use live::foreign::ForeignContract;
pub use live::grant::Revoke;
pub(crate) use live::job::{JobBoard, JobControl, JobLog};
pub use live::job::{
    JobError, JobHandle, JobTail, MAX_JOB_DEADLINE, MAX_JOB_TAIL, MAX_JOBS_OF_FEATURE, NewJob,
    StartsJobs,
};
pub use live::registry::{FeatureRegistry, Instruction, RegisteredTool, ToolRegistry};
pub use live::service::{
    JsonCall, JsonService, ServiceError, ServiceFault, ServiceFuture, ServiceHandle,
};
pub use live::sink::{
    FeatureAlertSink, FeatureNotifySink, Notifying, Receipt, RunningNotes, ServiceEventSink,
    SinkError,
};
pub(crate) use live::state::Keeper;
pub use live::state::{DurableState, MAX_STATE, PodLink, StateError, Update};
pub use live::task::{
    BackgroundTaskContext, PodActivity, PodAtRun, RegisteredTask, TaskError, TaskFailure,
    TaskHandle, TaskResult, TriggerKind,
};

#[cfg(test)]
mod tests;
