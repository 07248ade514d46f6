//! One model turn over committed history, as a state machine without I/O.
//!
//! This crate defines tools as a trait, models as a trait, and the order of the steps of a turn. It does not
//! depend on files, processes, sockets, clocks, pods, features or providers. Events that must be durable are returned
//! as a [`turn::CommitRequest`]; the turn continues only after the host acknowledges them.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod attachment;
pub mod effect;
pub mod history;
pub mod model;
mod payload;
pub mod projection;
mod sendable;
pub mod tool;
pub mod turn;

pub use effect::{
    CallVerdict, CallView, Delta, Effect, Fact, Gated, Input, NewCall, Outcome, RequestFact,
    ToolRun, TurnStop,
};
pub use history::{Counters, History, HistoryError};
pub use model::{
    Cost, Effort, Model, ModelError, ModelEvent, Price, Shortfall, StopReason, Thinking, Usage,
};
pub use projection::{Body, Dialect, ModelRequest, Neutral, Projection, Surface};
pub use protocol::item::{
    self, Attachment, CallId, Item, MediaType, ProviderSignature, ResultStatus, SealedReasoning,
    ToolOutcome,
};
pub use protocol::outcome::ErrorKind;
pub use sendable::{sendable_arguments, sendable_name};
pub use tool::{Tool, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutput, ToolResult};
pub use turn::{Acknowledged, CommitRequest, IllegalInput, Payload, Turn, TurnLimits};
