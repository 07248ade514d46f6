//! Which row of the policy decides about a request, for people who ask why. Does not depend on the plan.

use super::{CapabilityPolicy, RowEffect};
use crate::feature::{FeatureId, HostCapability};
use serde::Serialize;

/// The decision about one request with the row that made it; for `yoi features explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Admission {
    pub granted: bool,
    /// The row's capability, which includes or overlaps the request; none if no row applies.
    pub row: Option<String>,
    /// The row's source: `default`, or a file and line.
    pub source: Option<String>,
    /// The reason for the missing grant, if no row refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl CapabilityPolicy {
    /// The row that admits or refuses `asked`: the first refusal, else the last grant.
    #[must_use]
    pub fn admission(&self, feature: &FeatureId, asked: &HostCapability) -> Admission {
        let rows = self.rows.get(feature).map_or(&[][..], Vec::as_slice);
        let refuses = rows
            .iter()
            .find(|row| row.rule == RowEffect::Refuse && row.capability.conflicts_with(asked));
        let grants = || {
            rows.iter()
                .rev()
                .find(|row| row.rule == RowEffect::Grant && row.capability.covers(asked))
        };
        let row = refuses.or_else(grants);
        Admission {
            granted: row.is_some_and(|row| row.rule == RowEffect::Grant),
            row: row.map(|row| row.capability.to_string()),
            source: row.map(|row| row.source.clone()),
            reason: row.is_none().then(|| self.reason(feature, asked)),
        }
    }
}
