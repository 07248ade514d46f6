//! The grants of a person to one feature, as written in a configuration: `[features."ID"] grant = { … }`. Does not read
//! files.
//!
//! A key that is present replaces the default grants of its kind; an empty list or `false` grants nothing of it. A
//! missing key keeps the defaults.

use super::{CapabilityPolicy, PolicyRow, RowEffect};
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
    /// Endpoints by host and port, private ones too: `127.0.0.1:9000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<String>>,
    /// Access to directories, by name, such as `workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<BTreeMap<String, FsAccess>>,
    /// Programs; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Vec<String>>,
    /// Names of programs that also use the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_network: Option<Vec<String>>,
    /// Names of its tools; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Names of its background tasks; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_tasks: Option<Vec<String>>,
    /// Names of its commands for people; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// Points at which it may have hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Vec<HookPoint>>,
    /// Tools whose arguments its hooks may change; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<String>>,
    /// Tools whose schemas it may narrow, with the arguments that it narrowed; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enriches: Option<Vec<String>>,
    /// Tools in whose place its hooks may answer; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<String>>,
    /// Tools whose calls its hooks may repeat; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Vec<String>>,
    /// Tools whose results its hooks may change; `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<String>>,
    /// Limits of its notifications to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<NotificationBounds>,
    /// Whether it may show short texts to people.
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
    /// Access to the work items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_items: Option<StoreAccess>,
    /// Access to the notes of the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<StoreAccess>,
    /// The scopes in which it may keep state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Vec<StateScope>>,
}

/// The value of a directory key in `grant = { fs = … }`: how far the directory is open to the feature.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FsAccess {
    /// No access.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
    /// Reading, and starting programs that are there.
    Execute,
}

/// The value of a store key in `grant = { … }`: how far the store is open to the feature.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StoreAccess {
    /// No access.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// Limits of notifications to the model; zero allows none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotificationBounds {
    /// Bytes of one notification.
    pub max_bytes: u32,
    /// Notifications in one turn.
    pub per_turn: u32,
}

/// An invalid entry of a grant, reported to the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("grant.{key}: {problem}")]
pub struct BadGrant {
    pub key: &'static str,
    pub problem: String,
}

/// A key with a list of names: an example of its kind, and its field.
pub(super) struct NameList {
    key: &'static str,
    pub(super) about: HostCapability,
    pub(super) of: fn(&mut GrantTable) -> &mut Option<Vec<String>>,
}

macro_rules! name_lists {
    ($($key:ident: $about:expr,)+) => {
        [$(NameList {
            key: stringify!($key),
            about: $about,
            of: |table| &mut table.$key,
        }),+]
    };
}

/// Every key with a list of names.
static NAME_LISTS: [NameList; 15] = name_lists! {
    tools: HostCapability::tool("*"),
    background_tasks: HostCapability::ANY_BACKGROUND_TASK,
    commands: HostCapability::ANY_COMMAND,
    secrets: HostCapability::secret("*"),
    services: HostCapability::using("*"),
    provides: HostCapability::provide("*"),
    arguments: HostCapability::ANY_ARGUMENTS,
    enriches: HostCapability::ANY_ENRICHING,
    answers: HostCapability::ANY_ANSWER,
    repeats: HostCapability::ANY_REPEAT,
    results: HostCapability::ANY_RESULT,
    process: HostCapability::ANY_PROGRAM,
    process_network: HostCapability::Process {
        programs: Cow::Borrowed(&[]),
        network: true,
    },
    network: HostCapability::network("*"),
    endpoints: HostCapability::endpoints("*"),
};

impl NameList {
    /// The list in which a capability is written.
    pub(super) fn of(capability: &HostCapability) -> Option<&'static Self> {
        let networked =
            |of: &HostCapability| matches!(of, HostCapability::Process { network, .. } if *network);
        NAME_LISTS.iter().find(|list| {
            list.about.is_about(capability) && networked(&list.about) == networked(capability)
        })
    }
}

/// One key: an example of its kind, and its grants.
struct Decided {
    about: HostCapability,
    granted: Vec<HostCapability>,
}

impl GrantTable {
    fn decided(&self) -> Result<Vec<Decided>, BadGrant> {
        use HostCapability as Can;
        fn each<T: Clone>(of: &Option<Vec<T>>, make: impl Fn(T) -> Can) -> Granted {
            Some(of.as_ref()?.iter().cloned().map(make).collect())
        }
        let store = |access: StoreAccess, make: fn(bool, bool) -> Can| match access {
            StoreAccess::None => Vec::new(),
            StoreAccess::Read => vec![make(true, false)],
            StoreAccess::Write => vec![make(true, true)],
        };
        let notify = |NotificationBounds {
                          max_bytes,
                          per_turn,
                      }| Can::EmitModelNotification {
            max_bytes,
            per_turn,
        };
        let (work_items, memory): (fn(_, _) -> _, fn(_, _) -> _) = (
            |read, write| Can::WorkItemStore { read, write },
            |read, write| Can::MemoryStore { read, write },
        );
        let lists = NAME_LISTS.iter().map(|NameList { key, about, of }| {
            let names = of(&mut self.clone()).take();
            (
                *key,
                about.clone(),
                names.map(|names| about.with_names(names)),
            )
        });
        let others = [
            (
                "hooks",
                Can::at(HookPoint::PreToolCall),
                each(&self.hooks, Can::at),
            ),
            (
                "notifications",
                notify(NotificationBounds {
                    max_bytes: 1,
                    per_turn: 1,
                }),
                self.notifications.map(|b| {
                    if b.max_bytes > 0 && b.per_turn > 0 {
                        vec![notify(b)]
                    } else {
                        Vec::new()
                    }
                }),
            ),
            (
                "alerts",
                Can::EmitUserAlert,
                self.alerts.map(|on| {
                    if on {
                        vec![Can::EmitUserAlert]
                    } else {
                        Vec::new()
                    }
                }),
            ),
            (
                "work_items",
                work_items(true, true),
                self.work_items.map(|access| store(access, work_items)),
            ),
            (
                "memory",
                memory(true, true),
                self.memory.map(|access| store(access, memory)),
            ),
            (
                "state",
                Can::SESSION_STATE,
                each(&self.state, |scope| Can::StateStore { scope }),
            ),
        ];
        let rows = lists.chain(self.directories()).chain(others);
        rows.filter_map(|(key, about, granted)| Some(checked(key, about, granted?)))
            .collect()
    }

    fn directories(&self) -> impl Iterator<Item = (&'static str, HostCapability, Granted)> {
        self.fs.iter().flatten().map(|(root, access)| {
            let fs = |write, execute| HostCapability::ScopedFs {
                root: root.clone().into(),
                read: true,
                write,
                execute,
            };
            let granted = match access {
                FsAccess::None => Vec::new(),
                FsAccess::Read => vec![fs(false, false)],
                FsAccess::Write => vec![fs(true, false)],
                FsAccess::Execute => vec![fs(false, true)],
            };
            ("fs", fs(false, false), Some(granted))
        })
    }
}

/// What a key grants; none where it is not written.
type Granted = Option<Vec<HostCapability>>;

/// Checks one key, within its bounds.
fn checked(
    key: &'static str,
    about: HostCapability,
    granted: Vec<HostCapability>,
) -> Result<Decided, BadGrant> {
    if granted.len() > MAX_ENTRIES {
        let problem = format!(
            "{} entries; at most {MAX_ENTRIES} are allowed",
            granted.len()
        );
        return Err(BadGrant { key, problem });
    }
    match granted.iter().find_map(HostCapability::row_problem) {
        Some(problem) => Err(BadGrant { key, problem }),
        None => Ok(Decided { about, granted }),
    }
}

impl CapabilityPolicy {
    /// Replaces the grants of a feature by those of a person, kind by kind. `source` is the file and key. Refusals
    /// stay.
    ///
    /// # Errors
    /// An invalid entry, or too many of them; then nothing is changed.
    pub fn configured(
        mut self,
        feature: &FeatureId,
        table: &GrantTable,
        source: &str,
    ) -> Result<Self, BadGrant> {
        let decided = table.decided()?;
        let rows = self.rows.entry(feature.clone()).or_default();
        rows.retain(|row| {
            row.rule == RowEffect::Refuse
                || !decided.iter().any(|d| d.about.is_about(&row.capability))
        });
        for Decided { about, granted } in decided {
            let row = |capability| PolicyRow {
                capability,
                rule: RowEffect::Grant,
                source: source.to_owned(),
            };
            rows.extend(granted.into_iter().map(row));
            self.decided
                .entry(feature.clone())
                .or_default()
                .push((about, source.to_owned()));
        }
        Ok(self)
    }
}
