//! Resources of a server as one tool: without an address it lists them, with one it reads that one.

use crate::outcome::{MAX_QUOTE, line, push_resource};
use crate::pin::{Annotations, PinnedTool};
use authority::text::{Lines, escape_within};
use llm_worker::{ErrorKind, ToolError, ToolOutput, ToolResult};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt::Write;

/// What the tool is called, as if the server had it.
pub(crate) const NAME: &str = "read_resource";

/// Most parts of a resource that are shown.
const MAX_SHOWN: usize = 200;

/// What a model asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceWish {
    pub(crate) uri: Option<String>,
    pub(crate) cursor: Option<String>,
}

/// The tool, as if the server of this name had listed it.
pub(crate) fn tool(server: &str) -> PinnedTool {
    PinnedTool {
        name: NAME.to_owned(),
        title: None,
        description: Some(format!(
            "Read a resource of the MCP server {server}; without `uri`, list its resources."
        )),
        input_schema: json!({
            "type": "object",
            "properties": {
                "uri": { "type": "string", "description": "The resource to read." },
                "cursor": { "type": "string", "description": "Where the list goes on, as its last line says." },
            },
            "additionalProperties": false,
        }),
        output_schema: None,
        annotations: Annotations {
            read_only_hint: true,
            idempotent_hint: true,
        },
        unusable: false,
        needs_task: false,
    }
}

/// What a server answered to `resources/read`.
pub(crate) fn read(result: &RawValue) -> ToolResult {
    #[derive(Deserialize)]
    struct ResourceParts {
        contents: Vec<Value>,
    }
    let Ok(ResourceParts { contents }) = serde_json::from_str(result.get()) else {
        return Err(unreadable());
    };
    let mut text = String::new();
    for part in contents.iter().take(MAX_SHOWN) {
        if !text.is_empty() {
            text.push('\n');
        }
        push_resource(&mut text, part);
    }
    if let Some(more) = contents
        .len()
        .checked_sub(MAX_SHOWN)
        .filter(|more| *more > 0)
    {
        // Writing to a String cannot fail.
        write!(text, "\n[{more} more parts are not shown]").ok();
    }
    Ok(shown("read", text))
}

/// What it answered to `resources/list`: the whole page, since nothing else leads to its resources.
pub(crate) fn listed(result: &RawValue) -> ToolResult {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ResourcePage {
        resources: Vec<Value>,
        #[serde(default)]
        next_cursor: Option<String>,
    }
    let Ok(page) = serde_json::from_str::<ResourcePage>(result.get()) else {
        return Err(unreadable());
    };
    let mut text = String::new();
    for resource in &page.resources {
        let of = |key: &str| resource.get(key).and_then(Value::as_str).map(line);
        let words = ["uri", "mimeType", "name", "description"].map(of);
        let words: Vec<String> = words.into_iter().flatten().collect();
        writeln!(text, "{}", words.join("  ")).ok();
    }
    if let Some(cursor) = page.next_cursor.filter(|cursor| !cursor.is_empty()) {
        let cursor = escape_within(&cursor, Lines::One, MAX_QUOTE * 4);
        writeln!(text, "[more with cursor {cursor}]").ok();
    }
    Ok(shown("listed", text))
}

fn shown(how: &str, content: String) -> ToolOutput {
    let summary = match content.is_empty() {
        true => "there is nothing".to_owned(),
        false => how.to_owned(),
    };
    ToolOutput {
        summary,
        content,
        ..ToolOutput::default()
    }
}

fn unreadable() -> ToolError {
    ToolError::new(
        ErrorKind::Unavailable,
        "the server answered with something else than resources",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    #[test]
    fn parts_are_bounded_and_lists_are_whole() {
        let of = |number: usize| json!({ "uri": format!("a:{number}"), "text": "x" });
        let many: Vec<Value> = (0..MAX_SHOWN + 3).map(of).collect();
        let read = read(&raw(&json!({ "contents": many }))).unwrap().content;
        assert!(read.ends_with("\n[3 more parts are not shown]"), "{read}");
        let page = json!({ "resources": many, "nextCursor": "on" });
        let listed = listed(&raw(&page)).unwrap().content;
        assert!(listed.starts_with("a:0\na:1\n"), "{listed}");
        assert!(
            listed.ends_with("a:201\na:202\n[more with cursor on]\n"),
            "{listed}"
        );
        for odd in [json!({}), json!({ "contents": 1, "resources": 1 })] {
            assert!(super::read(&raw(&odd)).is_err() && super::listed(&raw(&odd)).is_err());
        }
    }
}
