//! Grants as a person writes them: the line of TOML that grants what was denied. Does not read configurations.

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
    pub(super) fn remedy(&self, feature: &FeatureId, asked: &HostCapability) -> String {
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
        let written = serde_json::to_value(&table)
            .map(|table| inline(&table))
            .unwrap_or_default();
        format!("set grant = {written} under [features.\"{feature}\"]")
    }
}

impl GrantTable {
    /// Sets the key of a capability to nothing, unless it is there.
    fn mention(&mut self, about: &HostCapability) {
        use HostCapability as Can;
        if let Some(list) = self.names(about) {
            list.get_or_insert_default();
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

    /// The list of names under the key of a capability, for the kinds that have one.
    fn names(&mut self, about: &HostCapability) -> Option<&mut Option<Vec<String>>> {
        use HostCapability as Can;
        Some(match about {
            Can::ContributeTool { .. } => &mut self.tools,
            Can::ContributeBackgroundTask { .. } => &mut self.background_tasks,
            Can::AnswerCalls { .. } => &mut self.answers,
            Can::RepeatCalls { .. } => &mut self.repeats,
            Can::TransformResults { .. } => &mut self.results,
            Can::RewriteArguments { .. } => &mut self.arguments,
            Can::EnrichTools { .. } => &mut self.enriches,
            Can::Process { network: false, .. } => &mut self.process,
            Can::Process { network: true, .. } => &mut self.process_network,
            Can::ProvideService { .. } => &mut self.provides,
            Can::UseService { .. } => &mut self.services,
            Can::Network { .. } => &mut self.network,
            Can::Endpoint { .. } => &mut self.endpoints,
            Can::SecretRef { .. } => &mut self.secrets,
            Can::ContributeHook { .. }
            | Can::ScopedFs { .. }
            | Can::WorkItemStore { .. }
            | Can::MemoryStore { .. }
            | Can::StateStore { .. }
            | Can::EmitModelNotification { .. }
            | Can::EmitUserAlert => return None,
        })
    }

    /// Adds a capability under its key.
    fn include(&mut self, capability: &HostCapability) {
        use HostCapability as Can;
        self.mention(capability);
        if let Some(list) = self.names(capability) {
            named(capability)
                .into_iter()
                .for_each(|name| add(list, name));
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
    use HostCapability as Can;
    let all =
        |names: &Cow<'static, [Cow<'static, str>]>| names.iter().map(ToString::to_string).collect();
    let or = |names: &Cow<'static, [Cow<'static, str>]>, example: &str| {
        let any = |name: &Cow<'static, str>| {
            if name == "*:*" {
                example.to_owned()
            } else {
                name.to_string()
            }
        };
        names.iter().map(any).collect()
    };
    match capability {
        Can::ContributeTool { name } | Can::ContributeBackgroundTask { name } => {
            vec![name.to_string()]
        }
        Can::ProvideService { key } | Can::UseService { key } => vec![key.to_string()],
        Can::SecretRef { id } => vec![id.to_string()],
        Can::AnswerCalls { tools }
        | Can::RepeatCalls { tools }
        | Can::TransformResults { tools }
        | Can::RewriteArguments { tools }
        | Can::EnrichTools { tools } => all(tools),
        Can::Process {
            programs,
            network: _,
        } => all(programs),
        Can::Network { hosts, .. } => or(hosts, A_HOST),
        Can::Endpoint { at, .. } => or(at, AN_ENDPOINT),
        Can::ContributeHook { .. }
        | Can::ScopedFs { .. }
        | Can::WorkItemStore { .. }
        | Can::MemoryStore { .. }
        | Can::StateStore { .. }
        | Can::EmitModelNotification { .. }
        | Can::EmitUserAlert => Vec::new(),
    }
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
