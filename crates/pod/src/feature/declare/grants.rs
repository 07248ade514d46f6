//! What a feature requested and what it was granted, as data. The data grants nothing: authority is a handle. Does not
//! depend on the policy or on doors.

use super::capability::HostCapability;
use super::id::FeatureId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a feature can do without.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Denied: the feature is skipped.
    Required,
    /// Denied: what needs it is left out and the feature is degraded.
    Optional,
}

/// A requested capability, with the reason that is shown to the person who decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityRequest {
    /// What is asked for.
    #[serde(flatten)]
    pub capability: HostCapability,
    /// Whether the feature can do without.
    pub need: Need,
    /// Why, in at most 512 bytes.
    pub reason: String,
}

impl CapabilityRequest {
    /// Without this the feature is skipped.
    #[must_use]
    pub fn required(capability: HostCapability, reason: impl Into<String>) -> Self {
        Self {
            capability,
            need: Need::Required,
            reason: reason.into(),
        }
    }

    /// Without this, contributions that need it are left out.
    #[must_use]
    pub fn optional(capability: HostCapability, reason: impl Into<String>) -> Self {
        Self {
            capability,
            need: Need::Optional,
            reason: reason.into(),
        }
    }
}

/// The registry's view of one grant and its counters, for reports; `record::UsedGrant` is its journaled form. A use is an
/// entry through one of the grant's doors; an asynchronous call of a service enters each time it continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GrantUse {
    pub feature_id: FeatureId,
    /// What was granted.
    #[serde(flatten)]
    pub capability: HostCapability,
    /// Whether a handle was taken up under it.
    pub held: bool,
    /// How often it was used.
    pub uses: u64,
    /// How often a use was refused, because it was revoked.
    pub refused: u64,
    /// When it was last used, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_use_ms: Option<u64>,
    /// Whether new uses are refused.
    pub revoked: bool,
}
