//! Tools as the model is told of them: definitions, and the surface that has them. Does not depend on what runs them.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What repeating a call would do; decides what recovery says of a call whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Changes nothing.
    ReadOnly,
    /// A repeated call has the same result as one call.
    Idempotent,
    /// Each call can have an effect.
    Effectful,
}

/// The definition of a tool for the model. `schema` is canonical JSON: sorted keys, no spaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// 1 to 64 bytes of `[A-Za-z0-9_-]`.
    pub name: String,
    /// At most 8 KiB.
    pub description: String,
    /// Canonical JSON Schema of the arguments object, at most 64 KiB.
    pub schema: Arc<str>,
    pub effect: ToolEffect,
}

/// How far a command goes beyond the sandbox: it uses the network, also that of this machine, or it is not confined at all.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "")]
#[allow(
    missing_docs,
    reason = "a comment on a variant would make the schema three times as long"
)]
pub enum Escalation {
    Network,
    Unconfined,
}

/// The part of a request that is fixed within one generation of the tool surface: model, system prompt and tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surface {
    /// The generation's number, from 1.
    pub generation: u64,
    /// `provider/name` of the model.
    pub model: String,
    /// The system prompt with the instructions, frozen.
    pub system: String,
    /// Sorted by name.
    pub tools: Vec<ToolDefinition>,
    /// The most tokens one answer may have; the provider's limit when `None`.
    pub max_output: Option<u32>,
}
