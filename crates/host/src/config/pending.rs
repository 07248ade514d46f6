//! One thing that a project's file asks for: what exactly, where it stands, and what granting it does.

use super::Source;
use super::read::Text;
use serde::Serialize;
use session_store::Digest;
use toml::Value;

/// A key of a project's file that does nothing until its user grants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PendingGrant {
    /// As it is written: `providers.local`, `permissions.rules[0]`.
    pub key: String,
    /// Its value, on one line.
    pub value: String,
    pub file: Source,
    /// The file and the line.
    pub source: Source,
    /// BLAKE3 of key and value, hex: what a grant is for.
    pub digest: String,
    pub effect: String,
}

impl PendingGrant {
    /// What stands at a path of a file, if something does.
    pub(super) fn at(text: &Text, path: &[&str]) -> Option<Self> {
        let (first, rest) = path.split_first()?;
        let value = rest
            .iter()
            .try_fold(text.table.get(*first)?, |value, part| match value {
                Value::Table(table) => table.get(*part),
                Value::Array(values) => values.get(part.parse::<usize>().ok()?),
                Value::String(_)
                | Value::Integer(_)
                | Value::Float(_)
                | Value::Boolean(_)
                | Value::Datetime(_) => None,
            })?;
        Some(Self {
            key: key(path),
            value: inline(value),
            file: text.shown().to_owned(),
            source: text.place(path),
            digest: digest(path, value),
            effect: effect(path, value),
        })
    }
}

/// A path as it is written.
fn key(path: &[&str]) -> String {
    let mut key = String::new();
    for part in path {
        let bare = part
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            && !part.is_empty();
        match part {
            index if key == "permissions.rules" => key.push_str(&format!("[{index}]")),
            part => {
                let dot = if key.is_empty() { "" } else { "." };
                let part = if bare {
                    (*part).to_owned()
                } else {
                    quoted(part)
                };
                key.push_str(&format!("{dot}{part}"));
            }
        }
    }
    key
}

/// What is granted: the key with its value. A rule is the same one wherever it stands in the list.
fn digest(path: &[&str], value: &Value) -> String {
    let path = match path {
        ["permissions", "rules", _] => path.get(..2).unwrap_or(path),
        path => path,
    };
    let mut bytes = Vec::new();
    path.iter()
        .for_each(|part| put(&mut bytes, b'k', part.as_bytes()));
    canonical(value, &mut bytes);
    Digest::of(&bytes).to_string()
}

/// A kind, a length and the content: no two values have the same bytes.
fn put(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    out.push(kind);
    out.extend((content.len() as u64).to_le_bytes());
    out.extend(content);
}

fn canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => put(out, b's', text.as_bytes()),
        Value::Integer(number) => put(out, b'i', &number.to_le_bytes()),
        Value::Float(number) => put(out, b'f', &number.to_bits().to_le_bytes()),
        Value::Boolean(flag) => put(out, b'b', &[u8::from(*flag)]),
        Value::Datetime(time) => put(out, b'd', time.to_string().as_bytes()),
        Value::Array(values) => {
            put(out, b'a', &(values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| canonical(value, out));
        }
        Value::Table(table) => {
            put(out, b't', &(table.len() as u64).to_le_bytes());
            let mut sorted: Vec<_> = table.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            for (key, value) in sorted {
                put(out, b'k', key.as_bytes());
                canonical(value, out);
            }
        }
    }
}

/// A value on one line, whole: nothing in it can look like another line, and nothing is left out.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            value.to_string()
        }
        Value::Array(values) => format!(
            "[{}]",
            values.iter().map(inline).collect::<Vec<_>>().join(", ")
        ),
        Value::Table(table) => {
            let pairs: Vec<String> = table
                .iter()
                .map(|(name, value)| format!("{} = {}", key(&[name]), inline(value)))
                .collect();
            format!("{{ {} }}", pairs.join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What granting it does.
fn effect(path: &[&str], value: &Value) -> String {
    match path {
        ["model"] => model(value.as_str().unwrap_or_default()),
        ["providers", ..] => provider(value),
        ["secrets", ..] => secret(value),
        ["models", _, "price"] => "sets the price of this model".to_owned(),
        ["models", _, "context"] => "sets the context window of this model".to_owned(),
        ["models", _, "timeouts"] => "sets the time limits of requests to this model".to_owned(),
        ["models", ..] => "sets the maximum length of this model's answers".to_owned(),
        ["permissions", ..] => {
            "such calls run without approval, unless a rule in your own files decides otherwise"
                .to_owned()
        }
        ["features", id, "enabled"] if value.as_bool() == Some(false) => {
            format!("switches off {id}, which you switched on")
        }
        ["features", id, "enabled"] => format!("switches {id} on"),
        ["features", id, "grant"] => format!("replaces the default permissions of {id}"),
        ["features", id, ..] => format!("changes a setting of {id}"),
        ["plugins", name, ..] => plugin(name, value),
        ["sandbox", "hosts"] => {
            "commands reach these hosts, if they use the network `hosts`".to_owned()
        }
        ["sandbox", "network"] => format!(
            "commands use the network: {}",
            value.as_str().unwrap_or_default()
        ),
        ["sandbox", ..] if value.as_str() == Some("off") => {
            "commands have all of your permissions".to_owned()
        }
        ["sandbox", ..] => "tools and commands can write in the project".to_owned(),
        ["instructions"] => {
            "switches instruction files (AGENTS.md, CLAUDE.md) on or off, including yours"
                .to_owned()
        }
        ["mcp", "defer"] => {
            "changes how many tools of MCP servers the model has to search for".to_owned()
        }
        ["mcp", ..] => "the model has these tools of MCP servers without a search".to_owned(),
        ["state", ..] => {
            "pods can be stored on network and FUSE file systems, where a crash can lose records"
                .to_owned()
        }
        _ => "applies this setting".to_owned(),
    }
}

fn model(name: &str) -> String {
    match name {
        _ if let Some(file) = name.strip_prefix("scripted:") => {
            format!("the answers are read from the file `{file}`, not from a model")
        }
        _ if name.starts_with("record:") => "writes the model's answers to a file".to_owned(),
        _ => "no effect until its provider is granted or in your own files".to_owned(),
    }
}

fn provider(value: &Value) -> String {
    let url = value.get("base_url").map(inline).unwrap_or_default();
    let key = value
        .get("key")
        .and_then(|key| read_from(key, "its key"))
        .map(|key| format!("; {key}"));
    format!(
        "its models can be used: all messages are sent to {url}{}",
        key.unwrap_or_default()
    )
}

fn secret(value: &Value) -> String {
    let read = read_from(value, "the secret").unwrap_or_default();
    format!("{read}; features that are granted this secret can use it")
}

fn plugin(name: &str, value: &Value) -> String {
    let renames = value
        .get("rename")
        .is_some()
        .then(|| format!("gives tools of the plugin {name} other names"));
    let path = value.get("path").map(inline);
    let looks = path.map(|path| {
        format!("looks for the plugin {name} in {path}; its content needs a grant of its own")
    });
    let parts: Vec<String> = looks.into_iter().chain(renames).collect();
    if parts.is_empty() {
        "no effect".to_owned()
    } else {
        parts.join("; ")
    }
}

/// What reading a key or a secret does.
fn read_from(source: &Value, what: &str) -> Option<String> {
    let of = |place: &str| source.get(place).map(inline);
    match (of("command"), of("file"), of("env")) {
        (Some(words), ..) => Some(format!(
            "runs {words} as you, outside of the sandbox, to get {what}"
        )),
        (_, Some(file), _) => Some(format!("reads {what} from the file {file}")),
        (.., Some(name)) => Some(format!("reads {what} from the variable {name}")),
        (None, None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(path: &[&str], value: &str) -> String {
        let table: toml::Table = format!("v = {value}").parse().unwrap();
        digest(path, &table["v"])
    }

    #[test]
    fn a_grant_is_for_one_key_and_one_value() {
        let path = ["providers", "x"];
        let one = digest_of(&path, "{ a = \"b\", c = [\"d\", \"e\"] }");
        assert_eq!(
            one,
            digest_of(&path, "{ c = ['d', \"\\u0065\"], a = \"\"\"b\"\"\" }"),
            "the same, written otherwise"
        );
        let others = [
            "{ a = \"b\", c = [\"d\", \"f\"] }",
            "{ a = \"b\", c = [\"e\", \"d\"] }",
            "{ a = \"b\", c = [\"de\"] }",
            "{ a = \"b\", c = [\"d\"], e = [] }",
            "{ a = \"b\", c = [\"d\", \"e\", \"\"] }",
            "{ a = \"b\" }",
            "{ a = \"bc\", c = [\"d\", \"e\"] }",
        ];
        for other in others {
            assert_ne!(one, digest_of(&path, other), "{other}");
        }
        for other in [
            &["providers", "y"][..],
            &["providersx"],
            &["models", "x"],
            &["providers", "x", "y"],
        ] {
            assert_ne!(
                one,
                digest_of(other, "{ a = \"b\", c = [\"d\", \"e\"] }"),
                "{other:?}"
            );
        }
        let kinds = [
            "1",
            "1.0",
            "\"1\"",
            "true",
            "[1]",
            "{ 1 = 1 }",
            "\"true\"",
            "[]",
            "{}",
            "\"\"",
            "-0.0",
            "0.0",
        ];
        let digests: std::collections::BTreeSet<String> =
            kinds.iter().map(|kind| digest_of(&["x"], kind)).collect();
        assert_eq!(digests.len(), kinds.len());
        let rule = |index| digest_of(&["permissions", "rules", index], "{ tool = \"Bash\" }");
        assert_eq!(rule("0"), rule("7"));
    }

    #[test]
    fn a_value_is_shown_whole_and_on_one_line() {
        let text = "v = { \"a b\" = \"x\\ny\\u001b[2J\", c = [1, 2.5, true], d = 1979-05-27 }";
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(
            inline(&table["v"]),
            "{ \"a b\" = \"x\\ny\\u001b[2J\", c = [1, 2.5, true], d = 1979-05-27 }"
        );
        assert_eq!(
            key(&["features", "builtin:web", "enabled"]),
            "features.\"builtin:web\".enabled"
        );
        assert_eq!(key(&["permissions", "rules", "3"]), "permissions.rules[3]");
        assert_eq!(key(&["providers", "a\nb"]), "providers.\"a\\nb\"");
    }
}
