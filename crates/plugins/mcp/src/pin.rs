//! What a person added: how a server is started, what it may have, and its definitions as it gave them then.

use authority::text::{Lines, escape_within};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The longest text of a definition that is shown, and how much of it before a difference, in bytes.
const MAX_SHOWN: usize = 2 << 10;
const BEFORE: usize = 64;

/// The version of the form.
pub(crate) const FORMAT: u32 = 1;

/// The eras of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Era {
    /// From 2026-07-28: no session, each request says who asks.
    #[serde(rename = "modern")]
    Modern,
    /// Until 2025-11-25: a session that begins with `initialize`.
    #[serde(rename = "legacy")]
    Legacy,
}

/// How a server is started, or reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The program, a name that is looked up in `PATH` or an absolute path, and its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The address of one on the network, instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The secret that it gets as a bearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<String>,
    /// Headers with the names of secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Variables, as they are written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables with the names of secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// Whether it uses the network, which the sandbox otherwise withholds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Directories that it reads beside those that every command reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
}

impl Launch {
    /// The names of the secrets that the server gets.
    pub fn secret_names(&self) -> impl Iterator<Item = &String> {
        let headers = self.bearer.iter().chain(self.headers.values());
        self.secrets.values().chain(headers)
    }
}

/// Who a server says that it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub version: String,
}

/// What a server says of a tool: hints, which count only where the person trusts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    #[serde(default)]
    pub read_only_hint: bool,
    #[serde(default)]
    pub idempotent_hint: bool,
}

/// A tool as the server defines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinnedTool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default)]
    pub annotations: Annotations,
    /// Whether its schema cannot be used, so that a model has the names of the arguments alone. It is tried once, when a
    /// person adds the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unusable: bool,
    /// Whether a call of it must be a task, which this client does not speak.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_task: bool,
}

/// A prompt as the server defines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinnedPrompt {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt, which is text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptArgument {
    pub name: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// What a server defines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// Sorted by name, as prompts are.
    pub tools: Vec<PinnedTool>,
    pub prompts: Vec<PinnedPrompt>,
    /// Whether it has resources.
    pub resources: bool,
}

/// A server that a person added, with its definitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerPin {
    format: u32,
    pub name: String,
    pub launch: Launch,
    pub era: Era,
    /// The version of the protocol that was agreed on.
    pub protocol: String,
    #[serde(default)]
    pub server: ServerInfo,
    /// Whether it has resources.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resources: bool,
    /// Whether the person believes what the server says of its tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    /// Whether calls of all of its tools run without approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allowed: bool,
    /// Other names of tools before the model, by their own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
    /// Of all tools and prompts.
    pub digest: String,
    /// Sorted by name.
    pub tools: Vec<PinnedTool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<PinnedPrompt>,
}

impl ServerPin {
    /// A pin of these definitions.
    #[must_use]
    pub fn new(
        name: String,
        launch: Launch,
        (era, protocol, server): (Era, String, ServerInfo),
        defined: Definitions,
    ) -> Self {
        let Definitions {
            tools,
            prompts,
            resources,
        } = defined;
        Self {
            format: FORMAT,
            name,
            launch,
            era,
            protocol,
            server,
            resources,
            trusted: false,
            allowed: false,
            rename: BTreeMap::new(),
            digest: digest(&tools, &prompts),
            tools,
            prompts,
        }
    }

    /// What is wrong with a pin that was read.
    ///
    /// # Errors
    /// Another version wrote it, or it is not whole.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.format != FORMAT {
            return Err("was written by another version of yoi");
        }
        if !crate::is_server_name(&self.name)
            || self.launch.command.is_empty() != self.launch.url.is_some()
        {
            return Err("names no server");
        }
        Ok(())
    }

    /// The same of its definitions, which takes longer.
    ///
    /// # Errors
    /// They are not those of its digest.
    pub fn check_definitions(&self) -> Result<(), &'static str> {
        match digest(&self.tools, &self.prompts) == self.digest {
            true => Ok(()),
            false => Err("has other definitions than its digest says"),
        }
    }

    /// The old and the new words of the tool `name`, where they differ: a line for each.
    #[must_use]
    pub fn reworded(&self, name: &str, now: &[PinnedTool]) -> Vec<String> {
        let of = |tools: &[PinnedTool]| {
            let tool = tools.iter().find(|tool| tool.name == name);
            tool.map(words).unwrap_or_else(|| {
                ["title", "description", "arguments", "results"].map(|what| (what, String::new()))
            })
        };
        let old = of(&self.tools);
        let new = of(now);
        let differ = old.iter().zip(&new).filter(|(old, new)| old != new);
        differ
            .flat_map(|((what, old), (_, new))| {
                [("-", old, new), ("+", new, old)]
                    .into_iter()
                    .filter(|(_, text, _)| !text.is_empty())
                    .map(move |(sign, text, other)| {
                        format!("    {sign} {what}: {}", around(text, other))
                    })
            })
            .collect()
    }

    /// The names of tools that are there now, and were not or were others.
    pub fn new_or_changed<'a>(&self, now: &'a [PinnedTool]) -> impl Iterator<Item = &'a str> {
        let is_known = |tool: &&PinnedTool| !self.tools.contains(tool);
        now.iter().filter(is_known).map(|tool| tool.name.as_str())
    }

    /// Names the server and what it defines: a pin that reaches another one has another.
    #[must_use]
    pub(crate) fn identity(&self) -> String {
        let launch = serde_json::to_string(&self.launch).unwrap_or_default();
        let both = format!("{launch}\0{}", self.digest);
        blake3::hash(both.as_bytes()).to_hex().to_string()
    }

    /// In what these definitions differ, a line for each tool and prompt, and one if there are resources now and were not, or
    /// the other way round.
    #[must_use]
    pub fn differences(&self, defined: &Definitions) -> Vec<String> {
        let Definitions {
            tools: now,
            prompts,
            resources,
        } = defined;
        let by_name = |tools: &[PinnedTool]| -> BTreeMap<String, PinnedTool> {
            let named = tools.iter().map(|tool| (tool.name.clone(), tool.clone()));
            named.collect()
        };
        let old = by_name(&self.tools);
        let new = by_name(now);
        let shown = |name: &str| authority::text::escape_line(name).into_owned();
        let gone = old.keys().filter(|name| !new.contains_key(*name));
        let gone = gone.map(|name| format!("- {}", shown(name)));
        let rest = new.iter().filter_map(|(name, tool)| {
            let name = shown(name);
            match old.get(&tool.name) {
                None => Some(format!("+ {name}")),
                Some(before) if before == tool => None,
                Some(before) => Some(format!("~ {name}: {}", parts(before, tool).join(", "))),
            }
        });
        let gone_prompts = self.prompts.iter().filter(|old| {
            let mut all = prompts.iter();
            !all.any(|now| now.name == old.name)
        });
        let gone_prompts = gone_prompts.map(|old| format!("- prompt {}", shown(&old.name)));
        let new_prompts = prompts.iter().filter(|now| !self.prompts.contains(now));
        let new_prompts = new_prompts.map(|now| {
            let mut all = self.prompts.iter();
            let sign = match all.any(|old| old.name == now.name) {
                true => '~',
                false => '+',
            };
            format!("{sign} prompt {}", shown(&now.name))
        });
        let resources = match (self.resources, *resources) {
            (false, true) => Some("+ resources".to_owned()),
            (true, false) => Some("- resources".to_owned()),
            (true, true) | (false, false) => None,
        };
        gone.chain(rest)
            .chain(gone_prompts)
            .chain(new_prompts)
            .chain(resources)
            .collect()
    }
}

/// The words of a definition that a model reads, each with its name.
fn words(tool: &PinnedTool) -> [(&'static str, String); 4] {
    let schema = |of: Option<&Value>| of.map(Value::to_string).unwrap_or_default();
    [
        ("title", tool.title.clone().unwrap_or_default()),
        ("description", tool.description.clone().unwrap_or_default()),
        ("arguments", schema(Some(&tool.input_schema))),
        ("results", schema(tool.output_schema.as_ref())),
    ]
}

/// A text from shortly before the place from which on it differs from another.
fn around(text: &str, other: &str) -> String {
    let same = text
        .bytes()
        .zip(other.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let from = text.floor_char_boundary(same.saturating_sub(BEFORE));
    let shown = escape_within(text.get(from..).unwrap_or_default(), Lines::One, MAX_SHOWN);
    let cut = if from == 0 { "" } else { "…" };
    format!("{cut}{shown}")
}

/// What differs between two definitions of one tool.
fn parts(before: &PinnedTool, now: &PinnedTool) -> Vec<&'static str> {
    let of = [
        ("title", before.title == now.title),
        ("description", before.description == now.description),
        (
            "schema of its arguments",
            before.input_schema == now.input_schema,
        ),
        (
            "schema of its results",
            before.output_schema == now.output_schema,
        ),
        ("annotations", before.annotations == now.annotations),
        ("tasks", before.needs_task == now.needs_task),
    ];
    let differ = of.into_iter().filter(|(_, is_same)| !is_same);
    differ.map(|(what, _)| what).collect()
}

/// The digest of definitions.
pub(crate) fn digest(tools: &[PinnedTool], prompts: &[PinnedPrompt]) -> String {
    // Without prompts it is what it was before there were some.
    let value = match prompts {
        [] => serde_json::to_value(tools),
        prompts => serde_json::to_value((tools, prompts)),
    };
    let mut value = value.unwrap_or_default();
    value.sort_all_objects();
    blake3::hash(value.to_string().as_bytes())
        .to_hex()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_that_come_or_go_are_a_difference() {
        let about = (Era::Modern, String::new(), ServerInfo::default());
        let defined = Definitions::default();
        let mut pin = ServerPin::new("x".to_owned(), Launch::default(), about, defined);
        let table: [(bool, bool, &[&str]); 4] = [
            (false, false, &[]),
            (false, true, &["+ resources"]),
            (true, false, &["- resources"]),
            (true, true, &[]),
        ];
        for (before, now, told) in table {
            pin.resources = before;
            let defined = Definitions {
                resources: now,
                ..Definitions::default()
            };
            assert_eq!(pin.differences(&defined), told);
        }
    }
}
