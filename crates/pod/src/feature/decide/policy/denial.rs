//! What a feature was granted and denied, and why, as data and in the words of a report. The data grants nothing. Does not
//! depend on the plan.

use super::GrantTable;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::id::FeatureId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the policy gave one feature: a view for reports. It cannot be built or read back outside the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CapabilityGrantSet {
    granted: Vec<HostCapability>,
    denied: Vec<DeniedCapability>,
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeniedCapability {
    /// What was asked for.
    #[serde(flatten)]
    pub capability: HostCapability,
    /// The reason, and the setting that decides.
    pub reason: String,
    #[serde(flatten)]
    pub denial: Denial,
}

impl CapabilityGrantSet {
    pub(crate) fn new(granted: Vec<HostCapability>, denied: Vec<DeniedCapability>) -> Self {
        Self { granted, denied }
    }

    /// What was granted, in the order asked.
    #[must_use]
    pub fn granted(&self) -> &[HostCapability] {
        &self.granted
    }

    /// What was refused, in the order asked.
    #[must_use]
    pub fn denied(&self) -> &[DeniedCapability] {
        &self.denied
    }

    /// Whether some grant includes all of `asked`.
    #[must_use]
    pub fn allows(&self, asked: &HostCapability) -> bool {
        self.granted.iter().any(|g| g.covers(asked))
    }
}

/// Why the policy does not grant a capability, as data. Empty for a service that is missing, and in reports of older
/// programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// Grants of the same kind that the request exceeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<GrantLimit>,
    /// What refuses it; with a remedy, what grants nothing of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The grant that a person can write under the feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<GrantTable>,
}

impl Denial {
    /// The remedy as a person carries it out.
    pub(crate) fn setting(&self, feature: &FeatureId) -> Option<String> {
        let written = self.remedy.as_ref()?.inline();
        Some(format!(
            "set grant = {written} under [features.\"{feature}\"]"
        ))
    }
}

/// A grant that a denied request exceeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantLimit {
    pub granted: HostCapability,
    pub source: String,
}
