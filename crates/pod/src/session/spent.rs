//! What a session has used, to tell what was used since some point of it.

use llm_worker::{Cost, Usage};
use serde::{Deserialize, Serialize};

/// Requests, tokens and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    pub requests: u64,
    pub usage: Usage,
    /// As far as prices were known; none if none was.
    pub cost: Option<Cost>,
}

impl Spent {
    /// What was used since `before`, an earlier point of the same session.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            usage: self.usage.since(before.usage),
            cost: self.cost.map(|cost| cost.since(before.cost.unwrap_or_default())),
        }
    }
}
