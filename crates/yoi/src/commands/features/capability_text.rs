//! Capabilities in plain words, and values of JSON documents by key.

use pod::feature::{Denial, DeniedCapability, HostCapability};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// What a grant lets its holder do, in words.
pub(super) fn words(held: &HostCapability) -> String {
    means(held).unwrap_or_else(|| match held {
        HostCapability::ContributeTool { name } => format!("offer the tool {name}"),
        HostCapability::ContributeHook { point: at, .. } => {
            let name = serde_json::to_value(at).unwrap_or_default();
            format!("add a hook {}", point(name.as_str().unwrap_or_default()))
        }
        HostCapability::ContributeBackgroundTask { name } => {
            format!("run the background task {name}")
        }
        HostCapability::ContributeCommand { name } => format!("offer you the command /{name}"),
        held => held.to_string(),
    })
}

/// What a feature may not do that was denied this capability, although it was granted `part` of it.
pub(super) fn denied_words(asked: &HostCapability, part: Option<&HostCapability>) -> String {
    match (asked, part) {
        (
            HostCapability::ScopedFs {
                root,
                read: true,
                write: true,
                execute,
            },
            Some(HostCapability::ScopedFs {
                read: true,
                write: false,
                ..
            }),
        ) => words(&HostCapability::ScopedFs {
            root: root.clone(),
            read: false,
            write: true,
            execute: *execute,
        }),
        (
            HostCapability::ScopedFs { .. }
            | HostCapability::WorkItemStore { .. }
            | HostCapability::MemoryStore { .. },
            _,
        ) => words(asked).replace(" and ", " or "),
        (
            HostCapability::Network { purpose, hosts },
            Some(HostCapability::Network { hosts: held, .. }),
        ) if is_any(hosts) => {
            format!(
                "connect to hosts other than {} ({purpose})",
                held.join(", ")
            )
        }
        (_, _) => words(asked),
    }
}

/// Whether a list of a capability stands for everything.
fn is_any(list: &[Cow<'static, str>]) -> bool {
    list.iter().any(|name| matches!(&**name, "*" | "*:*"))
}

/// The names of a list; `any NOUN` if it stands for everything.
fn names(list: &[Cow<'static, str>], noun: &str) -> String {
    if is_any(list) {
        format!("any {noun}")
    } else {
        list.join(", ")
    }
}

/// A text of a report in which capabilities of this feature are named, with words in place of the names.
pub(super) fn in_words(text: &str, feature: &Value) -> String {
    let grants = feature.get("grants").unwrap_or(feature);
    let known = granted(grants)
        .into_iter()
        .chain(capabilities(grants, "denied"));
    let mut known: Vec<(String, String)> =
        known.map(|held| (held.to_string(), words(&held))).collect();
    // A name may be a part of a longer one.
    known.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    known.iter().fold(text.to_owned(), |text, (name, words)| {
        text.replace(name.as_str(), words)
    })
}

/// A denied capability of a document, as far as this version knows it.
pub(super) fn denied(value: &Value) -> Option<DeniedCapability> {
    Some(DeniedCapability {
        capability: capability(value)?,
        reason: text(value, "reason").to_owned(),
        denial: Denial::deserialize(value).ok()?,
    })
}

/// What a grant lets its holder do; none for what its tools, hooks and background tasks show anyway.
pub(super) fn means(held: &HostCapability) -> Option<String> {
    match held {
        HostCapability::ContributeTool { .. }
        | HostCapability::ContributeHook { .. }
        | HostCapability::ContributeBackgroundTask { .. }
        | HostCapability::ContributeCommand { .. } => None,
        HostCapability::AnswerCalls { tools } => Some(format!(
            "answer calls of {} in their place",
            names(tools, "tool")
        )),
        HostCapability::RepeatCalls { tools } => {
            Some(format!("repeat calls of {}", names(tools, "tool")))
        }
        HostCapability::TransformResults { tools } => {
            Some(format!("change results of {}", names(tools, "tool")))
        }
        HostCapability::RewriteArguments { tools } => {
            Some(format!("change arguments of {}", names(tools, "tool")))
        }
        HostCapability::EnrichTools { tools } => {
            Some(format!("narrow the arguments of {}", names(tools, "tool")))
        }
        HostCapability::ScopedFs {
            root,
            read,
            write,
            execute,
        } => {
            let words = [(read, "read"), (write, "write"), (execute, "run")];
            let words: Vec<_> = words
                .into_iter()
                .filter(|(on, _)| **on)
                .map(|(_, word)| word)
                .collect();
            let what = if root == "workspace" {
                "the project".to_owned()
            } else {
                format!("the directory {root}")
            };
            Some(format!("{} {what}", words.join(" and ")))
        }
        HostCapability::Process { programs, network } => {
            let network = if *network && !is_any(programs) {
                ", with the network"
            } else {
                ""
            };
            Some(format!("start {}{network}", names(programs, "program")))
        }
        HostCapability::ProvideService { key } => {
            Some(format!("offer the service {key} to other features"))
        }
        HostCapability::UseService { key } => Some(format!("use the service {key}")),
        HostCapability::WorkItemStore { read, write } => {
            Some(format!("{} work items", store(*read, *write)))
        }
        HostCapability::MemoryStore { read, write } => {
            Some(format!("{} notes", store(*read, *write)))
        }
        HostCapability::Network { purpose, hosts } => {
            Some(format!("connect to {} ({purpose})", names(hosts, "host")))
        }
        HostCapability::Endpoint { purpose, at } => {
            let exactly = if is_any(at) { "" } else { "exactly " };
            Some(format!(
                "connect to {exactly}{} ({purpose})",
                names(at, "host and port")
            ))
        }
        HostCapability::SecretRef { id, hosts } if hosts.is_empty() => {
            Some(format!("hold the secret {id}"))
        }
        HostCapability::SecretRef { id, hosts } => {
            Some(format!("send the secret {id} to {}", names(hosts, "host")))
        }
        HostCapability::StateStore { scope } => {
            Some(format!("keep state {}", scope_text(&scope.to_string())))
        }
        HostCapability::EmitModelNotification {
            max_bytes,
            per_turn,
        } => Some(format!(
            "send notifications to the model (at most {max_bytes} bytes each, {per_turn} per turn)"
        )),
        HostCapability::EmitUserAlert => Some("alert you".to_owned()),
    }
}

/// What is granted in a part of a document, as far as this version knows it.
pub(super) fn granted(value: &Value) -> Vec<HostCapability> {
    capabilities(value, "granted").collect()
}

fn capabilities<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = HostCapability> + use<'a> {
    list(value, key).iter().filter_map(capability)
}

/// What a document has beside a denied capability.
pub(super) const DENIAL: [&str; 4] = ["reason", "limits", "source", "remedy"];

/// A capability of a document, as far as this version knows it, without the reason of its denial.
pub(super) fn capability(value: &Value) -> Option<HostCapability> {
    let mut plain = value.as_object()?.clone();
    plain.retain(|key, _| !DENIAL.contains(&key.as_str()));
    serde_json::from_value(plain.into()).ok()
}

/// When a hook is called.
pub(super) fn point(name: &str) -> &str {
    match name {
        "prompt_submit" => "on prompts",
        "pre_request" => "before requests",
        "tool_arguments" => "on arguments",
        "pre_tool_call" => "before calls",
        "tool_outcome" => "on results",
        "turn_end" => "at the end of turns",
        other => other,
    }
}

/// Where state is kept.
pub(super) fn scope_text(scope: &str) -> String {
    match scope {
        "session" => "in this pod".to_owned(),
        "workspace" => "in this project".to_owned(),
        other => format!("in the {other}"),
    }
}

/// The array under a key; empty without one.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
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
