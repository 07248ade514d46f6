//! Which feature may have which capability: the host's decision, as data. Without a granting row a request is refused.
//! Does not depend on handles.

mod denial;
mod table;
mod written;

pub use denial::{CapabilityGrantSet, Denial, DeniedCapability, GrantLimit};
pub use table::{BadGrant, FsAccess, GrantTable, NotificationBounds, StoreAccess};

use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::grants::Need;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};

/// The grants, refusals and switches of all features, each with its source. `yoi` builds it from defaults and
/// configuration; [`FeatureRegistryBuilder`](crate::feature::FeatureRegistryBuilder) plans with it.
///
/// A feature starts with nothing. A refusal beats every grant, in whatever order they were added.
#[derive(Clone, Debug)]
#[must_use]
pub struct CapabilityPolicy {
    rows: BTreeMap<FeatureId, Vec<PolicyRow>>,
    /// Kinds whose defaults a person replaced: an example of each, and its source.
    decided: BTreeMap<FeatureId, Vec<(HostCapability, String)>>,
    disabled: BTreeMap<FeatureId, String>,
    required: BTreeMap<FeatureId, String>,
    /// What switches a feature on, where that is not the default.
    attached: BTreeMap<FeatureId, String>,
    settings: BTreeMap<FeatureId, Settings>,
    /// The only tools that any feature may add, and who says so.
    only_tools: Option<(BTreeSet<String>, String)>,
    deferral: Option<Deferral>,
}

/// Tools that requests do not define, and the tool by which the model calls them.
#[derive(Clone, Debug)]
struct Deferral {
    tools: BTreeSet<String>,
    caller: String,
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

/// The decision about one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GrantDecision {
    /// The granted part: all of it, some or nothing.
    pub(crate) granted: Option<HostCapability>,
    /// The reason for a part that counts as denied.
    pub(crate) denied: Option<DeniedCapability>,
}

/// The decision about one request, for `yoi features explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// By the row of this source: `default`, or a file and line.
    Granted(String),
    /// By the row of this source, which includes or overlaps the request.
    Refused(String),
    /// No row applies.
    Denied(Box<DeniedCapability>),
}

impl CapabilityPolicy {
    /// Grants nothing.
    pub fn nothing() -> Self {
        Self {
            rows: BTreeMap::new(),
            decided: BTreeMap::new(),
            disabled: BTreeMap::new(),
            required: BTreeMap::new(),
            attached: BTreeMap::new(),
            settings: BTreeMap::new(),
            only_tools: None,
            deferral: None,
        }
    }

    /// Grants a capability and everything it includes. `source` is a file and key, or `default`.
    pub fn grant(
        self,
        feature: FeatureId,
        capability: HostCapability,
        source: impl Into<String>,
    ) -> Self {
        self.row(feature, capability, RowEffect::Grant, source.into())
    }

    /// Refuses every request that overlaps a capability.
    pub fn refuse(
        self,
        feature: FeatureId,
        capability: HostCapability,
        source: impl Into<String>,
    ) -> Self {
        self.row(feature, capability, RowEffect::Refuse, source.into())
    }

    /// Switches a feature off.
    pub fn disable(mut self, feature: FeatureId, source: impl Into<String>) -> Self {
        self.disabled.insert(feature, source.into());
        self
    }

    /// Requires this feature: without it no pod starts.
    pub fn require(mut self, feature: FeatureId, source: impl Into<String>) -> Self {
        self.required.insert(feature, source.into());
        self
    }

    /// Says what switches a feature on, for reports; without it, it is on by default.
    pub fn attach(mut self, feature: FeatureId, source: impl Into<String>) -> Self {
        self.attached.insert(feature, source.into());
        self
    }

    /// Sets the settings of a feature, as they are written. Planning checks them against the schema that it declares.
    pub fn settings(mut self, feature: FeatureId, settings: Settings) -> Self {
        self.settings.insert(feature, settings);
        self
    }

    /// Refuses every tool that is not named here, whatever grants it.
    pub fn only_tools(
        mut self,
        tools: impl IntoIterator<Item = String>,
        source: impl Into<String>,
    ) -> Self {
        self.only_tools = Some((tools.into_iter().collect(), source.into()));
        self
    }

    /// Leaves these tools out of requests. What the model calls by the tool `caller`, with arguments `{name, arguments}`, is a
    /// call of the named tool for everything that judges, records and runs it.
    pub fn defer(
        mut self,
        tools: impl IntoIterator<Item = String>,
        caller: impl Into<String>,
    ) -> Self {
        let tools = tools.into_iter().collect();
        let caller = caller.into();
        self.deferral = Some(Deferral { tools, caller });
        self
    }

    pub(crate) fn defers(&self, tool: &str) -> bool {
        let deferral = self.deferral.as_ref();
        deferral.is_some_and(|of| of.tools.contains(tool))
    }

    /// The tool by which the model calls those that are deferred.
    pub(crate) fn caller(&self) -> Option<&str> {
        self.deferral.as_ref().map(|of| of.caller.as_str())
    }

    fn row(
        mut self,
        feature: FeatureId,
        capability: HostCapability,
        rule: RowEffect,
        source: String,
    ) -> Self {
        self.rows.entry(feature).or_default().push(PolicyRow {
            capability,
            rule,
            source,
        });
        self
    }

    /// Decides a request. A request for more than is granted gets the granted part, if that is useful alone; an
    /// optional request for writing may get reading.
    pub(crate) fn decide(
        &self,
        feature: &FeatureId,
        asked: &HostCapability,
        need: Need,
    ) -> GrantDecision {
        let rows = self.rows.get(feature).map_or(&[][..], Vec::as_slice);
        let refused = |reason: String, source: Option<String>| GrantDecision {
            granted: None,
            denied: Some(DeniedCapability {
                capability: asked.clone(),
                reason,
                denial: Denial {
                    source,
                    ..Denial::default()
                },
            }),
        };
        if let Some(PolicyRow { source, .. }) = rows
            .iter()
            .find(|row| row.rule == RowEffect::Refuse && row.capability.conflicts_with(asked))
        {
            return refused(format!("refused by {source}"), Some(source.clone()));
        }
        if let (HostCapability::ContributeTool { name }, Some((tools, source))) =
            (asked, &self.only_tools)
            && !tools.contains(name.as_ref())
        {
            return refused(format!("it is not among the tools of {source}"), None);
        }
        let grants = || rows.iter().filter(|row| row.rule == RowEffect::Grant);
        let granted = match grants().any(|row| row.capability.covers(asked)) {
            true => Some(asked.clone()),
            false => grants()
                .filter_map(|row| row.capability.leaves(asked))
                .reduce(HostCapability::joined),
        };
        if granted.is_some() {
            return GrantDecision {
                granted,
                denied: None,
            };
        }
        let reading = asked.reading().filter(|_| need == Need::Optional);
        let reading = reading.filter(|reading| grants().any(|row| row.capability.covers(reading)));
        GrantDecision {
            granted: reading,
            denied: Some(self.reason(feature, asked)),
        }
    }

    /// What admits or refuses `asked`: the first refusal, else the last grant.
    #[must_use]
    pub fn admission(&self, feature: &FeatureId, asked: &HostCapability) -> Admission {
        let rows = self.rows.get(feature).map_or(&[][..], Vec::as_slice);
        let refuses = rows
            .iter()
            .find(|row| row.rule == RowEffect::Refuse && row.capability.conflicts_with(asked));
        let mut grants = rows
            .iter()
            .rev()
            .filter(|row| row.rule == RowEffect::Grant && row.capability.covers(asked));
        match (refuses, grants.next()) {
            (Some(row), _) => Admission::Refused(row.source.clone()),
            (None, Some(row)) => Admission::Granted(row.source.clone()),
            (None, None) => Admission::Denied(Box::new(self.reason(feature, asked))),
        }
    }

    /// The reason for a missing grant, with what grants it.
    fn reason(&self, feature: &FeatureId, asked: &HostCapability) -> DeniedCapability {
        let rows = self.rows.get(feature).into_iter().flatten();
        let near =
            rows.filter(|row| row.rule == RowEffect::Grant && row.capability.is_about(asked));
        let limit = |row: &PolicyRow| GrantLimit {
            granted: row.capability.clone(),
            source: row.source.clone(),
        };
        let limits: Vec<_> = near.take(MAX_SHOWN).map(limit).collect();
        let mut decided = self.decided.get(feature).into_iter().flatten();
        let decided = decided.find(|(about, _)| about.is_about(asked));
        let source = decided.map(|(_, source)| source.clone());
        let why = match &source {
            _ if !limits.is_empty() => {
                let shown = limits
                    .iter()
                    .map(|limit| format!("{} by {}", limit.granted, limit.source));
                format!("limited to {}", shown.collect::<Vec<_>>().join(", "))
            }
            Some(source) => format!("{source} does not grant it"),
            None => "no rule grants it".to_owned(),
        };
        let denial = Denial {
            limits,
            source,
            remedy: Some(self.remedy(feature, asked)),
        };
        DeniedCapability {
            capability: asked.clone(),
            reason: format!("{why}; {}", denial.setting(feature).unwrap_or_default()),
            denial,
        }
    }

    pub(crate) fn disabled_by(&self, feature: &FeatureId) -> Option<&str> {
        self.disabled.get(feature).map(String::as_str)
    }

    pub(crate) fn required_by(&self, feature: &FeatureId) -> Option<&str> {
        self.required.get(feature).map(String::as_str)
    }

    pub(crate) fn attached_by(&self, feature: &FeatureId) -> &str {
        self.attached.get(feature).map_or("default", String::as_str)
    }

    pub(crate) fn settings_of(&self, feature: &FeatureId) -> Settings {
        self.settings.get(feature).cloned().unwrap_or_default()
    }

    /// Every required feature and its source, by id.
    pub(crate) fn required(&self) -> impl Iterator<Item = (&FeatureId, &str)> {
        self.required
            .iter()
            .map(|(id, source)| (id, source.as_str()))
    }
}

/// Most rows in a reason.
const MAX_SHOWN: usize = 4;
