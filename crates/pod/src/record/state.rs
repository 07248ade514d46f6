//! Records that a feature causes: its state, notes and notifications. Do not depend on capabilities.

use super::Who;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Body of `notification_queued`: a notification that was accepted and is not delivered yet. A `system_item` delivers
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationQueued {
    /// Rises within a session.
    pub number: u64,
    /// The sender: a feature's id, or `client`.
    pub feature: String,
    /// The generation of the registry that accepted it.
    #[serde(rename = "generation")]
    pub registry_generation: u64,
    /// The exact model-visible text.
    pub text: String,
    /// An idle pod starts a turn for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wake: bool,
    /// The name that the feature gave to the notification. Another one of the feature with the same key is not queued: it
    /// is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who sent it, if a client did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

impl NotificationQueued {
    /// The sender of notifications of clients.
    pub const CLIENT: &'static str = "client";
}

/// Body of `feature_state`: the new whole value of a durable state. Only its feature reads it; never model-visible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeatureState {
    pub feature: String,
    pub name: String,
    /// The version of the value's schema, from the state's declaration.
    pub version: u16,
    pub value: Arc<serde_json::Value>,
}

/// Body of `feature_note`: a note for people who inspect the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureNote {
    pub feature: String,
    /// Bounded, without control characters.
    pub text: String,
}
