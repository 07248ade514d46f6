//! Which feature may have which capability: the host's decision, as data. What no row grants is refused. It knows
//! no handle.

mod explain;
mod table;

pub use explain::Admission;
pub use table::{BadGrant, FsAccess, GrantTable, NotificationBounds, StoreAccess};

use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::grants::Need;
use crate::feature::declare::id::FeatureId;
use std::collections::BTreeMap;

/// Grants, refusals and switches, each with the place it was written.
///
/// A feature starts with nothing. A refusal beats every grant, in whatever order they were added.
#[derive(Clone, Debug)]
#[must_use]
pub struct CapabilityPolicy {
    rows: BTreeMap<FeatureId, Vec<PolicyRow>>,
    /// What a person decided instead of the defaults: an example of each kind, and where that is written.
    decided: BTreeMap<FeatureId, Vec<(HostCapability, String)>>,
    disabled: BTreeMap<FeatureId, String>,
    required: BTreeMap<FeatureId, String>,
}

#[derive(Clone, Debug)]
struct PolicyRow {
    capability: HostCapability,
    rule: RowEffect,
    source: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowEffect {
    Grant,
    Refuse,
}

/// What the policy says to one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GrantDecision {
    /// What is granted: all of it, or what is left of it.
    pub(crate) granted: Option<HostCapability>,
    /// Why not all of it is, where that counts as a denial.
    pub(crate) denied: Option<String>,
}

impl CapabilityPolicy {
    /// Grants nothing.
    pub fn nothing() -> Self {
        Self { rows: BTreeMap::new(), decided: BTreeMap::new(), disabled: BTreeMap::new(), required: BTreeMap::new() }
    }

    /// Grants a capability and everything it includes. `source` is a file and key, or `default`.
    pub fn grant(self, feature: FeatureId, capability: HostCapability, source: impl Into<String>) -> Self {
        self.row(feature, capability, RowEffect::Grant, source.into())
    }

    /// Refuses whatever overlaps a capability.
    pub fn refuse(self, feature: FeatureId, capability: HostCapability, source: impl Into<String>) -> Self {
        self.row(feature, capability, RowEffect::Refuse, source.into())
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

    fn row(mut self, feature: FeatureId, capability: HostCapability, rule: RowEffect, source: String) -> Self {
        self.rows.entry(feature).or_default().push(PolicyRow { capability, rule, source });
        self
    }

    /// Decides a request. More than is granted comes down to what is, where that is of use; of an optional request for
    /// writing, reading is left.
    pub(crate) fn decide(&self, feature: &FeatureId, asked: &HostCapability, need: Need) -> GrantDecision {
        let rows = self.rows.get(feature).map_or(&[][..], Vec::as_slice);
        if let Some(refusal) =
            rows.iter().find(|row| row.rule == RowEffect::Refuse && row.capability.conflicts_with(asked))
        {
            return GrantDecision { granted: None, denied: Some(format!("refused by {}", refusal.source)) };
        }
        let grants = || rows.iter().filter(|row| row.rule == RowEffect::Grant);
        if grants().any(|row| row.capability.covers(asked)) {
            return GrantDecision { granted: Some(asked.clone()), denied: None };
        }
        let left = grants().filter_map(|row| row.capability.leaves(asked)).reduce(HostCapability::joined);
        if left.is_some() {
            return GrantDecision { granted: left, denied: None };
        }
        let reading = asked.reading().filter(|_| need == Need::Optional);
        let reading = reading.filter(|reading| grants().any(|row| row.capability.covers(reading)));
        GrantDecision { granted: reading, denied: Some(self.reason(feature, asked)) }
    }

    /// Why no row grants it: which rows are about the same, and who decided.
    fn reason(&self, feature: &FeatureId, asked: &HostCapability) -> String {
        let rows = self.rows.get(feature).into_iter().flatten();
        let near = rows.filter(|row| row.rule == RowEffect::Grant && row.capability.is_about(asked));
        let near: Vec<_> = near.take(MAX_SHOWN).map(|row| format!("{} by {}", row.capability, row.source)).collect();
        if !near.is_empty() {
            return format!("limited to {}", near.join(", "));
        }
        let decided = self.decided.get(feature).into_iter().flatten().find(|(about, _)| about.is_about(asked));
        // There is no default for hosts: a person names them.
        let hosts = matches!(asked, HostCapability::Network { .. });
        let nothing = || match hosts {
            true => {
                let grant = "grant = { network = [\"docs.example.org\"] }";
                format!("no rule grants it; name its hosts in [features.\"{feature}\"], as {grant}")
            }
            false => "no rule grants it".to_owned(),
        };
        decided.map_or_else(nothing, |(_, source)| format!("{source} does not grant it"))
    }

    pub(crate) fn disabled_by(&self, feature: &FeatureId) -> Option<&str> {
        self.disabled.get(feature).map(String::as_str)
    }

    /// Every required feature and where that is written, by id.
    pub(crate) fn required(&self) -> impl Iterator<Item = (&FeatureId, &str)> {
        self.required.iter().map(|(id, source)| (id, source.as_str()))
    }
}

/// Most rows in a reason.
const MAX_SHOWN: usize = 4;
