//! The imports for authors of features, in one line: `use pod::feature::author::*;`. Nothing is defined here except the
//! conversions that let `?` work in a tool.
//!
//! The derives need `serde` and `schemars` among the crate's own dependencies.

pub use super::{
    BackgroundTaskContext, CapabilityRequest, DurableState, EnrichKey, FeatureAlertSink,
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    FeatureNotifySink, HookKey, HostCapability, JsonCall, JsonService, PodActivity, PodAtRun,
    Restart, RunningNotes, ServiceAccess, ServiceDeclaration, ServiceEventKey, ServiceEventSink,
    ServiceFault, ServiceFuture, ServiceHandle, ServiceKey, ServiceRequirement, Staging, StateKey,
    StateScope, TaskError, TaskHandle, TaskKey, TaskResult, ToolCategory, ToolEnricher, ToolKey,
    ToolSchema, TriggerKind, WrapKey,
};
pub use crate::hook::{
    AnswerView, Change, Compaction, CompactionPlan, CompactionView, ErrorView, Event, EventView,
    HookFailure, PostAssistant, PreCompaction, PreRequest, PreToolCall, PromptSubmit, PromptView,
    RequestView, ToolArguments, ToolCallView, ToolOutcome, ToolOutcomeView, ToolRepeat,
    ToolRepeatView, ToolRun, ToolRunView, ToolShape, ToolShapeView, ToolWrap, TurnEnd, TurnEndView,
    TurnError, Verdict,
};
pub use authority::{FileChanges, Workspace};
pub use llm_worker::tool::Touch;
pub use llm_worker::{
    ErrorKind, ResultStatus, ToolContext, ToolEffect, ToolError, ToolOutcome as CallOutcome,
    ToolOutput, ToolResult,
};
pub use protocol::event::AlertLevel;
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
pub use std::sync::Arc;

use super::{ServiceError, SinkError, StateError};

impl From<StateError> for ToolError {
    fn from(error: StateError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

impl From<SinkError> for ToolError {
    fn from(error: SinkError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

impl From<ServiceError> for ToolError {
    fn from(error: ServiceError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

impl From<ServiceFault> for ToolError {
    fn from(fault: ServiceFault) -> Self {
        Self::new(fault.kind, fault.message)
    }
}
