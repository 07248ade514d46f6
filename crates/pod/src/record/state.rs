//! Records that a feature causes: its state, notes and notifications. They know no capability.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Body of `notification_queued`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationQueued {
    /// Its number, rising within a session.
    pub number: u64,
    pub feature: String,
    /// The generation of the registry that accepted it.
    #[serde(rename = "generation")]
    pub registry_generation: u64,
    /// The exact model-visible words.
    pub text: String,
}

/// Body of `feature_state`: the whole value, for its owner alone; never model-visible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeatureState {
    pub feature: String,
    pub name: String,
    /// The version of its shape.
    pub version: u16,
    pub value: Arc<serde_json::Value>,
}

/// Body of `feature_note`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureNote {
    pub feature: String,
    /// What; bounded, without control characters.
    pub text: String,
}
