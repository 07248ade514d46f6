//! Capabilities in plain words, and values of JSON documents by key.

use pod::feature::HostCapability;
use serde_json::Value;

/// What a grant lets its holder do; none for what its tools and hooks show anyway.
pub(super) fn means(held: &HostCapability) -> Option<String> {
    match held {
        HostCapability::ContributeTool { .. } | HostCapability::ContributeHook { .. } => None,
        HostCapability::TransformResults { tools } => Some(format!("change results of {}", tools.join(", "))),
        HostCapability::RewriteArguments { tools } => Some(format!("change arguments of {}", tools.join(", "))),
        HostCapability::ScopedFs { root, read, write, execute } => {
            let words = [(read, "read"), (write, "write"), (execute, "run")];
            let words: Vec<_> = words.into_iter().filter(|(on, _)| **on).map(|(_, word)| word).collect();
            let of = if root == "workspace" { "" } else { "directory " };
            Some(format!("{} the {of}{root}", words.join(" and ")))
        }
        HostCapability::Process { programs } if programs.iter().any(|name| name == "*") => {
            Some("start any program".to_owned())
        }
        HostCapability::Process { programs } => Some(format!("start {}", programs.join(", "))),
        HostCapability::ProvideService { key } => Some(format!("provide {key}")),
        HostCapability::UseService { key } => Some(format!("use {key}")),
        HostCapability::WorkItemStore { read, write } => Some(format!("{} work items", store(*read, *write))),
        HostCapability::MemoryStore { read, write } => Some(format!("{} notes", store(*read, *write))),
        HostCapability::Network { purpose, hosts } => Some(format!("connect to {} ({purpose})", hosts.join(", "))),
        HostCapability::SecretRef { id } => Some(format!("hold the secret {id}")),
        HostCapability::StateStore { scope } => Some(format!("keep {scope} state")),
        HostCapability::EmitModelNotification { max_bytes, per_turn } => {
            Some(format!("send messages to the model ({max_bytes} bytes, {per_turn} a turn)"))
        }
        HostCapability::EmitUserAlert => Some("alert you".to_owned()),
    }
}

/// What is granted in a part of a document, as far as this version knows it.
pub(super) fn granted(value: &Value) -> Vec<HostCapability> {
    list(value, "granted").iter().filter_map(|held| serde_json::from_value(held.clone()).ok()).collect()
}

/// The array under a key; empty without one.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The text under a key; empty without one.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn store(read: bool, write: bool) -> &'static str {
    match (read, write) {
        (true, true) => "read and change",
        (false, true) => "change",
        (true | false, false) => "read",
    }
}
