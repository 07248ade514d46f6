//! Records that a feature causes: its state, notes and notifications. Do not depend on capabilities.

use super::Who;
use serde_json::Value;
use std::sync::Arc;

bodies! {
    /// A notification that waits for the next step.
    ///
    /// Body of `notification_queued`: a notification that was accepted and is not delivered yet. A `system_item` delivers
    /// it.
    NotificationQueued: Eq {
        // Rises within a session.
        number: u64,
        // The sender: a feature's id, or `client`.
        feature: String,
        /// The generation of the registry that accepted it.
        #[serde(rename = "generation")]
        - registry_generation: u64,
        // The exact model-visible text.
        text: String,
        // An idle pod starts a turn for it.
        wake =: bool,
        /// The feature's name of the notification.
        // The name that the feature gave to the notification. Another one of the feature with the same key is not queued: it
        // is the same.
        key ?: String,
        /// Who sent it, if a client did.
        - by ?: Who,
    }
}

plain_bodies! {
    /// A note of a feature for people who inspect the pod.
    // Body of `feature_note`: a note for people who inspect the pod.
    FeatureNote {
        feature: String,
        // Bounded, without control characters.
        text: String,
    }
}

impl NotificationQueued {
    /// The sender of notifications of clients.
    pub const CLIENT: &'static str = "client";
}

host_parts! {
    /// Body of `feature_state`: the new whole value of a durable state. Only its feature reads it; never model-visible.
    FeatureState {
        feature: String,
        name: String,
        /// The version of the value's schema, from the state's declaration.
        version: u16,
        value: Arc<Value>,
    }
}
