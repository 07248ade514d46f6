//! Who may have what: the host's decision, as data. What no row grants is refused.

mod explain;

pub use explain::Admission;

use super::capability::HostCapability;
use super::id::FeatureId;
use std::collections::BTreeMap;

/// Grants, refusals and switches, each with the place it was written.
///
/// A feature starts with nothing. A refusal beats every grant, in whatever order they were added.
#[derive(Clone, Debug)]
#[must_use]
pub struct CapabilityPolicy {
    rows: BTreeMap<FeatureId, Vec<Row>>,
    disabled: BTreeMap<FeatureId, String>,
    required: BTreeMap<FeatureId, String>,
}

#[derive(Clone, Debug)]
struct Row {
    capability: HostCapability,
    rule: Rule,
    source: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Grant,
    Refuse,
}

/// What the policy says to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GrantDecision {
    Granted,
    Denied { reason: String },
}

impl CapabilityPolicy {
    /// Grants nothing.
    pub fn nothing() -> Self {
        Self { rows: BTreeMap::new(), disabled: BTreeMap::new(), required: BTreeMap::new() }
    }

    /// Grants a capability and everything it includes. `source` is a file and key, or `default`.
    pub fn grant(self, feature: FeatureId, capability: HostCapability, source: impl Into<String>) -> Self {
        self.row(feature, capability, Rule::Grant, source.into())
    }

    /// Refuses whatever overlaps a capability.
    pub fn refuse(self, feature: FeatureId, capability: HostCapability, source: impl Into<String>) -> Self {
        self.row(feature, capability, Rule::Refuse, source.into())
    }

    /// Switches a feature off.
    pub fn disable(mut self, feature: FeatureId, source: impl Into<String>) -> Self {
        self.disabled.insert(feature, source.into());
        self
    }

    /// No pod without this feature.
    pub fn require(mut self, feature: FeatureId, source: impl Into<String>) -> Self {
        self.required.insert(feature, source.into());
        self
    }

    fn row(mut self, feature: FeatureId, capability: HostCapability, rule: Rule, source: String) -> Self {
        self.rows.entry(feature).or_default().push(Row { capability, rule, source });
        self
    }

    pub(super) fn decide(&self, feature: &FeatureId, asked: &HostCapability) -> GrantDecision {
        let mut granted = GrantDecision::Denied { reason: "no rule grants it".into() };
        for row in self.rows.get(feature).into_iter().flatten() {
            match row.rule {
                Rule::Grant if row.capability.covers(asked) => granted = GrantDecision::Granted,
                Rule::Refuse if row.capability.touches(asked) => {
                    return GrantDecision::Denied { reason: format!("refused by {}", row.source) };
                }
                Rule::Grant | Rule::Refuse => {}
            }
        }
        granted
    }

    pub(super) fn disabled_by(&self, feature: &FeatureId) -> Option<&str> {
        self.disabled.get(feature).map(String::as_str)
    }

    /// Every required feature and where that is written, by id.
    pub(super) fn required(&self) -> impl Iterator<Item = (&FeatureId, &str)> {
        self.required.iter().map(|(id, source)| (id, source.as_str()))
    }
}
