//! The record of what a client asked a feature to do. Does not depend on turns.

use super::Who;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Body of `client_call`: a client calls a tool that its feature opens to clients, and that changes something. Durable before
/// the tool runs; what it changed has records of its own. Calls that change nothing have none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCall {
    pub tool: String,
    pub feature: String,
    /// Canonical JSON, redacted by the writer.
    pub arguments: Arc<str>,
    /// Absent for one of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}
