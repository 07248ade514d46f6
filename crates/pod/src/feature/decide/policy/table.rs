//! What a person grants one feature, as it is written in a configuration: `[features."ID"] grant = { … }`.
//!
//! A key that is there replaces what the defaults grant of its kind; an empty list or `false` leaves nothing of it. A key
//! that is not there leaves the defaults alone.

use super::{CapabilityPolicy, Row, Rule};
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::state::StateScope;
use crate::hook::HookPoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Most entries of one list.
const MAX_ENTRIES: usize = 64;

/// The grants of one feature.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantTable {
    /// Hosts of the public internet: `docs.example.org`, `*.example.org`, `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Vec<String>>,
    /// Directories by the name of their root, such as `workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<BTreeMap<String, FsAccess>>,
    /// Programs; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Vec<String>>,
    /// Names of its tools; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Points where its hooks may stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Vec<HookPoint>>,
    /// Telling the model something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<NotificationBounds>,
    /// Showing words to whoever watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerts: Option<bool>,
    /// Names of secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
    /// Services of other features that it uses; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<Vec<String>>,
    /// Services that it provides; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provides: Option<Vec<String>>,
    /// The store of work items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_items: Option<StoreAccess>,
    /// The store of notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<StoreAccess>,
    /// Where it keeps state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Vec<StateScope>>,
}

/// How far a directory is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FsAccess {
    /// Not at all.
    None,
    /// For reading.
    Read,
    /// For reading and writing.
    Write,
}

/// How far a store is open to a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreAccess {
    /// Not at all.
    None,
    /// For looking.
    Read,
    /// For looking and changing.
    Write,
}

/// How much a feature may tell the model; a zero leaves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotificationBounds {
    /// Bytes of one notification.
    pub max_bytes: u32,
    /// Notifications in one turn.
    pub per_turn: u32,
}

/// A grant that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("grant.{key}: {problem}")]
pub struct BadGrant {
    /// The key of the table.
    pub key: &'static str,
    /// What is wrong, and what is expected.
    pub problem: String,
}

/// One key: what its grants are about, and the grants.
struct Decided {
    about: HostCapability,
    granted: Vec<HostCapability>,
}

impl GrantTable {
    fn decided(&self) -> Result<Vec<Decided>, BadGrant> {
        let mut all = Vec::new();
        let mut take = |key, about, granted| checked(key, about, granted).map(|decided| all.push(decided));
        let any = || "*".to_owned();
        type Make = fn(String) -> HostCapability;
        let lists: [(&'static str, &Option<Vec<String>>, Make); 4] = [
            ("tools", &self.tools, |name| HostCapability::ContributeTool { name: name.into() }),
            ("secrets", &self.secrets, |id| HostCapability::SecretRef { id: id.into() }),
            ("services", &self.services, |key| HostCapability::UseService { key: key.into() }),
            ("provides", &self.provides, |key| HostCapability::ProvideService { key: key.into() }),
        ];
        for (key, names, make) in lists {
            if let Some(names) = names {
                take(key, make(any()), names.iter().cloned().map(make).collect())?;
            }
        }
        type Together = fn(Vec<String>) -> HostCapability;
        let sets: [(&'static str, &Option<Vec<String>>, Together); 2] = [
            ("process", &self.process, |names| HostCapability::Process { programs: texts(names) }),
            ("network", &self.network, |names| HostCapability::Network { purpose: "*".into(), hosts: texts(names) }),
        ];
        for (key, names, make) in sets {
            if let Some(names) = names {
                let granted = (!names.is_empty()).then(|| make(names.clone()));
                take(key, make(vec![any()]), granted.into_iter().collect())?;
            }
        }
        for (root, access) in self.fs.iter().flatten() {
            let fs = |write| HostCapability::ScopedFs { root: root.clone().into(), read: true, write, execute: false };
            let granted = match access {
                FsAccess::None => Vec::new(),
                FsAccess::Read => vec![fs(false)],
                FsAccess::Write => vec![fs(true)],
            };
            take("fs", fs(false), granted)?;
        }
        if let Some(points) = &self.hooks {
            let example = HostCapability::at(HookPoint::PreToolCall);
            take("hooks", example, points.iter().copied().map(HostCapability::at).collect())?;
        }
        if let Some(NotificationBounds { max_bytes, per_turn }) = self.notifications {
            let bounds = HostCapability::EmitModelNotification { max_bytes, per_turn };
            let granted = (max_bytes > 0 && per_turn > 0).then(|| bounds.clone());
            take("notifications", bounds, granted.into_iter().collect())?;
        }
        if let Some(alerts) = self.alerts {
            let granted = alerts.then_some(HostCapability::EmitUserAlert);
            take("alerts", HostCapability::EmitUserAlert, granted.into_iter().collect())?;
        }
        type Store = fn(bool, bool) -> HostCapability;
        let stores: [(&'static str, Option<StoreAccess>, Store); 2] = [
            ("work_items", self.work_items, |read, write| HostCapability::WorkItemStore { read, write }),
            ("memory", self.memory, |read, write| HostCapability::MemoryStore { read, write }),
        ];
        for (key, access, store) in stores {
            let granted = match access {
                None => continue,
                Some(StoreAccess::None) => Vec::new(),
                Some(StoreAccess::Read) => vec![store(true, false)],
                Some(StoreAccess::Write) => vec![store(true, true)],
            };
            take(key, store(true, true), granted)?;
        }
        if let Some(scopes) = &self.state {
            let granted = scopes.iter().map(|scope| HostCapability::StateStore { scope: *scope }).collect();
            take("state", HostCapability::SESSION_STATE, granted)?;
        }
        Ok(all)
    }
}

/// What one key decides, within its bounds.
fn checked(key: &'static str, about: HostCapability, granted: Vec<HostCapability>) -> Result<Decided, BadGrant> {
    if granted.len() > MAX_ENTRIES {
        let problem = format!("{} entries; at most {MAX_ENTRIES} are allowed", granted.len());
        return Err(BadGrant { key, problem });
    }
    match granted.iter().find_map(HostCapability::row_problem) {
        Some(problem) => Err(BadGrant { key, problem }),
        None => Ok(Decided { about, granted }),
    }
}

fn texts(names: Vec<String>) -> Cow<'static, [Cow<'static, str>]> {
    names.into_iter().map(Cow::Owned).collect::<Vec<_>>().into()
}

impl CapabilityPolicy {
    /// Puts what a person grants a feature in the place of what it was granted so far, kind by kind. `source` is the
    /// file and key. Refusals stay.
    ///
    /// # Errors
    /// An entry that means nothing, or too many of them; nothing has changed then.
    pub fn configured(mut self, feature: &FeatureId, table: &GrantTable, source: &str) -> Result<Self, BadGrant> {
        let decided = table.decided()?;
        let rows = self.rows.entry(feature.clone()).or_default();
        rows.retain(|row| row.rule == Rule::Refuse || !decided.iter().any(|d| d.about.is_about(&row.capability)));
        for Decided { about, granted } in decided {
            let row = |capability| Row { capability, rule: Rule::Grant, source: source.to_owned() };
            rows.extend(granted.into_iter().map(row));
            self.decided.entry(feature.clone()).or_default().push((about, source.to_owned()));
        }
        Ok(self)
    }
}
