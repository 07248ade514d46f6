//! Grants as a person writes them: the line of TOML that grants what was denied. Does not read configurations.

use super::table::NameList;
use super::{CapabilityPolicy, FsAccess, GrantTable, NotificationBounds, RowEffect, StoreAccess};
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::id::FeatureId;
use serde_json::Value;
use std::borrow::Cow;

/// What stands for a host that only a person can name.
const A_HOST: &str = "docs.example.org";

/// The same for an endpoint.
const AN_ENDPOINT: &str = "127.0.0.1:8080";

impl CapabilityPolicy {
    /// How a person grants `asked`: everything that they decided about this feature already, the grants of the same
    /// kind, and what was asked for.
    pub(super) fn remedy(&self, feature: &FeatureId, asked: &HostCapability) -> GrantTable {
        let mut table = GrantTable::default();
        let rows = self.rows.get(feature).map_or(&[][..], Vec::as_slice);
        let decided = self
            .decided
            .get(feature)
            .into_iter()
            .flatten()
            .map(|(about, _)| about);
        for about in decided.chain([asked]) {
            table.mention(about);
            let of_kind = rows
                .iter()
                .filter(|row| row.rule == RowEffect::Grant && about.is_about(&row.capability));
            of_kind.for_each(|row| table.include(&row.capability));
        }
        table.include(asked);
        table
    }
}

impl GrantTable {
    /// As TOML on one line.
    pub(super) fn inline(&self) -> String {
        serde_json::to_value(self)
            .map(|table| inline(&table))
            .unwrap_or_default()
    }

    /// Sets the key of a capability to nothing, unless it is there.
    fn mention(&mut self, about: &HostCapability) {
        use HostCapability as Can;
        if let Some(list) = NameList::of(about) {
            (list.of)(self).get_or_insert_default();
        } else if let Can::ContributeHook { .. } = about {
            self.hooks.get_or_insert_default();
        } else if let Can::ScopedFs { root, .. } = about {
            self.fs
                .get_or_insert_default()
                .entry(root.to_string())
                .or_insert(FsAccess::None);
        } else if let Can::WorkItemStore { .. } = about {
            self.work_items.get_or_insert(StoreAccess::None);
        } else if let Can::MemoryStore { .. } = about {
            self.memory.get_or_insert(StoreAccess::None);
        } else if let Can::StateStore { .. } = about {
            self.state.get_or_insert_default();
        } else if let Can::EmitModelNotification { .. } = about {
            self.notifications.get_or_insert(NotificationBounds {
                max_bytes: 0,
                per_turn: 0,
            });
        } else if about == &Can::EmitUserAlert {
            self.alerts.get_or_insert(false);
        }
    }

    /// Adds a capability under its key.
    fn include(&mut self, capability: &HostCapability) {
        use HostCapability as Can;
        self.mention(capability);
        if let Some(list) = NameList::of(capability) {
            for name in named(capability) {
                add((list.of)(self), name);
            }
        } else if let Can::ContributeHook { point, .. } = capability {
            add(&mut self.hooks, *point);
        } else if let Can::StateStore { scope } = capability {
            add(&mut self.state, *scope);
        } else if let Can::ScopedFs {
            root,
            write,
            execute,
            ..
        } = capability
        {
            let more = match (write, execute) {
                (_, true) => FsAccess::Execute,
                (true, false) => FsAccess::Write,
                (false, false) => FsAccess::Read,
            };
            self.fs
                .get_or_insert_default()
                .entry(root.to_string())
                .and_modify(|own| *own = more.max(*own));
        } else if let Can::WorkItemStore { write, .. } = capability {
            self.work_items = self.work_items.max(Some(StoreAccess::of(*write)));
        } else if let Can::MemoryStore { write, .. } = capability {
            self.memory = self.memory.max(Some(StoreAccess::of(*write)));
        } else if let Can::EmitModelNotification {
            max_bytes,
            per_turn,
        } = capability
        {
            let own = self.notifications.get_or_insert(NotificationBounds {
                max_bytes: 0,
                per_turn: 0,
            });
            own.max_bytes = own.max_bytes.max(*max_bytes);
            own.per_turn = own.per_turn.max(*per_turn);
        } else if capability == &Can::EmitUserAlert {
            self.alerts = Some(true);
        }
    }
}

impl StoreAccess {
    fn of(write: bool) -> Self {
        if write { Self::Write } else { Self::Read }
    }
}

fn add<T: PartialEq>(list: &mut Option<Vec<T>>, one: T) {
    let list = list.get_or_insert_default();
    if !list.contains(&one) {
        list.push(one);
    }
}

/// The names of a capability; an example where the feature leaves them to the person.
fn named(capability: &HostCapability) -> Vec<String> {
    let is_endpoint = matches!(capability, HostCapability::Endpoint { .. });
    let name = |name: Cow<'static, str>| match (&*name, is_endpoint) {
        ("*:*", true) => AN_ENDPOINT.to_owned(),
        ("*:*", false) => A_HOST.to_owned(),
        _ => name.into_owned(),
    };
    capability.names().into_iter().map(name).collect()
}

/// A value as TOML on one line.
fn inline(value: &Value) -> String {
    let list = |values: Vec<String>| values.join(", ");
    match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                format!("{} = {}", bare_or_quoted(key), inline(value))
            };
            format!("{{ {} }}", list(fields.iter().map(field).collect()))
        }
        Value::Array(values) => format!("[{}]", list(values.iter().map(inline).collect())),
        // Strings of JSON are basic strings of TOML.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn bare_or_quoted(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if bare {
        key.to_owned()
    } else {
        Value::from(key).to_string()
    }
}
