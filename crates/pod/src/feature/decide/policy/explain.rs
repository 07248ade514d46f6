//! Which row of the policy answers a request, for people who ask why. It knows no plan.

use super::{CapabilityPolicy, RowEffect};
use crate::feature::{FeatureId, HostCapability};
use serde::Serialize;

/// What the policy says to one request, and the row that says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Admission {
    pub granted: bool,
    /// The row's capability, which includes or overlaps what was asked; none when no row speaks.
    pub row: Option<String>,
    /// Where the row is written: `default`, or a file and line.
    pub source: Option<String>,
    /// Why it is not granted, where no row refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl CapabilityPolicy {
    /// Which row admits or refuses `asked`: the first refusal, else the last grant.
    #[must_use]
    pub fn admission(&self, feature: &FeatureId, asked: &HostCapability) -> Admission {
        let rows = self.rows.get(feature).map_or(&[][..], Vec::as_slice);
        let refuses = rows.iter().find(|row| row.rule == RowEffect::Refuse && row.capability.conflicts_with(asked));
        let grants = || rows.iter().rev().find(|row| row.rule == RowEffect::Grant && row.capability.covers(asked));
        let row = refuses.or_else(grants);
        Admission {
            granted: row.is_some_and(|row| row.rule == RowEffect::Grant),
            row: row.map(|row| row.capability.to_string()),
            source: row.map(|row| row.source.clone()),
            reason: row.is_none().then(|| self.reason(feature, asked)),
        }
    }
}
