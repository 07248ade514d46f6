//! A call of a tool as an editor shows it: a title, a kind, the files that it is about, and what it changes in them. Reads
//! no file.

use serde_json::{Value, json};
use std::path::Path;
use tui::arguments::subject;
use tui::for_people;

/// Characters of a title.
const TITLE: usize = 120;

/// Bytes of an output that an editor is shown: its end.
const MAX_OUTPUT: usize = 32 << 10;

/// A call that has no result yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    name: String,
    arguments: Value,
    title: String,
    kind: &'static str,
    /// What it changes in files, as far as its arguments say.
    diffs: Vec<Value>,
    /// Absolute paths.
    paths: Vec<String>,
}

/// What a built-in tool does, in the words of the protocol.
fn kind(tool: &str) -> &'static str {
    match tool {
        "Read" | "ReadOutput" | "List" => "read",
        "Edit" | "Write" => "edit",
        "Glob" | "Grep" | "ContextSearch" => "search",
        "Bash" => "execute",
        "Fetch" | "WebSearch" => "fetch",
        "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet" => "think",
        _ => "other",
    }
}

impl Call {
    /// A call with these arguments, as JSON text, in a pod that works in this directory.
    pub(crate) fn of(name: &str, arguments: &str, cwd: &Path) -> Self {
        let text = subject(arguments);
        let first = text.lines().next().unwrap_or_default();
        let mut title: String = [name, first].join(" ").trim().to_owned();
        if title.chars().count() > TITLE {
            title = title.chars().take(TITLE).chain(['…']).collect();
        }
        let arguments: Value = serde_json::from_str(arguments)
            .unwrap_or_else(|_not_json| Value::String(arguments.to_owned()));
        let kind = kind(name);
        let path = arguments.get("path").and_then(Value::as_str);
        let path = path
            .filter(|_| matches!(name, "Read" | "Edit" | "Write"))
            .map(|path| cwd.join(path).to_string_lossy().into_owned());
        let diffs = path.as_ref().map_or_else(Vec::new, |path| {
            let edits = arguments.get("edits").and_then(Value::as_array);
            edits
                .into_iter()
                .flatten()
                .filter_map(|edit| {
                    Some(diff(
                        path,
                        edit.get("old")?.as_str(),
                        edit.get("new")?.as_str()?,
                    ))
                })
                .collect()
        });
        Self {
            name: name.to_owned(),
            arguments,
            title,
            kind,
            diffs,
            paths: path.into_iter().collect(),
        }
    }

    /// That the model asked for it.
    pub(crate) fn begun(&self, id: &str) -> Value {
        let mut body = self.shown(id, "pending");
        insert(&mut body, "sessionUpdate", json!("tool_call"));
        body
    }

    /// The call as it stands in a question.
    pub(crate) fn asked(&self, id: &str, question: &str) -> Value {
        let mut body = self.shown(id, "pending");
        let mut content = vec![text_content(question)];
        content.extend(self.diffs.iter().cloned());
        insert(&mut body, "content", Value::Array(content));
        body
    }

    fn shown(&self, id: &str, status: &str) -> Value {
        json!({
            "toolCallId": id,
            "title": self.title,
            "kind": self.kind,
            "status": status,
            "content": self.diffs,
            "locations": self.locations(),
            "rawInput": self.arguments,
        })
    }

    fn locations(&self) -> Vec<Value> {
        let offset = self.arguments.get("offset").and_then(Value::as_u64);
        let line = offset.and_then(|line| u32::try_from(line).ok());
        let location = |path: &String| match line {
            Some(line) => json!({ "path": path, "line": line }),
            None => json!({ "path": path }),
        };
        self.paths.iter().map(location).collect()
    }

    /// That it runs.
    pub(crate) fn started(&self, id: &str) -> Value {
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress" })
    }

    /// That it changes this file. Asks for the text before only where a whole new text replaces it.
    pub(crate) fn changed(
        &mut self,
        id: &str,
        path: &str,
        before: impl FnOnce() -> FileBefore,
    ) -> Value {
        if !self.paths.iter().any(|known| known == path) {
            self.paths.push(path.to_owned());
        }
        let content = self.arguments.get("content").and_then(Value::as_str);
        if let Some(new) = content.filter(|_| self.diffs.is_empty()) {
            match before() {
                FileBefore::Absent => self.diffs.push(diff(path, None, new)),
                FileBefore::Text(old) => self.diffs.push(diff(path, Some(&old), new)),
                FileBefore::Unknown => {}
            }
        }
        json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": id,
            "content": self.diffs,
            "locations": self.locations(),
        })
    }

    /// Its result.
    pub(crate) fn finished(&self, id: &str, status: &str, summary: &str, output: &str) -> Value {
        let is_done = status == "ok";
        let mut content = vec![text_content(summary)];
        if is_done && !self.diffs.is_empty() {
            content.extend(self.diffs.iter().cloned());
        } else if !output.is_empty() {
            content.push(text_content(&fenced(&for_people(output))));
        }
        json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": id,
            "status": if is_done { "completed" } else { "failed" },
            "content": content,
            "rawOutput": { "status": status, "summary": summary },
        })
    }

    /// The newest output of the running call.
    pub(crate) fn printed(&self, id: &str, output: &str) -> Value {
        json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": id,
            "content": [text_content(&fenced(output))],
        })
    }

    /// Whether the model's own list of tasks may be another one after it.
    pub(crate) fn changes_tasks(&self) -> bool {
        matches!(self.name.as_str(), "TaskCreate" | "TaskUpdate")
    }
}

/// What a file was before a change.
#[derive(Clone, Debug)]
pub(crate) enum FileBefore {
    Absent,
    Text(String),
    /// It is no text, or too long to show.
    Unknown,
}

fn diff(path: &str, old: Option<&str>, new: &str) -> Value {
    json!({ "type": "diff", "path": path, "oldText": old, "newText": new })
}

fn text_content(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

fn insert(body: &mut Value, key: &str, value: Value) {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

/// An output as Markdown that shows it as it is; of a long one the end.
fn fenced(output: &str) -> String {
    let from = output.ceil_char_boundary(output.len().saturating_sub(MAX_OUTPUT));
    let output = output.get(from..).unwrap_or_default().trim_end();
    let mut longest = 0;
    let mut run = 0;
    for letter in output.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{output}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_a_diff_of_each_replacement() {
        let arguments = r#"{"path":"src/a.rs","edits":[{"old":"one","new":"1"},{"old":"two","new":"2","replace_all":true}]}"#;
        let begun = Call::of("Edit", arguments, Path::new("/p")).begun("c1");
        assert_eq!(begun["kind"], "edit");
        assert_eq!(begun["title"], "Edit src/a.rs");
        assert_eq!(begun["locations"], json!([{ "path": "/p/src/a.rs" }]));
        assert_eq!(begun["content"][1]["oldText"], "two");
        assert_eq!(begun["content"][1]["newText"], "2");
        assert_eq!(begun["content"][1]["path"], "/p/src/a.rs");
    }

    #[test]
    fn a_new_file_has_no_text_before() {
        let mut call = Call::of("Write", r#"{"path":"n","content":"x\n"}"#, Path::new("/p"));
        assert_eq!(call.begun("c1")["content"], json!([]));
        let changed = call.changed("c1", "/p/n", || FileBefore::Absent);
        assert_eq!(changed["content"][0]["oldText"], Value::Null);
        assert_eq!(changed["content"][0]["newText"], "x\n");
        // What failed changed nothing.
        let failed = call.finished("c1", "error", "no space", "");
        assert_eq!(failed["content"].as_array().unwrap().len(), 1);
        let unknown = Call::of("Write", r#"{"path":"n","content":"x"}"#, Path::new("/p")).changed(
            "c1",
            "/p/n",
            || FileBefore::Unknown,
        );
        assert_eq!(unknown["content"], json!([]));
        let old = Call::of("Write", r#"{"path":"n","content":"x"}"#, Path::new("/p")).changed(
            "c1",
            "/p/n",
            || FileBefore::Text("y".to_owned()),
        );
        assert_eq!(old["content"][0]["oldText"], "y");
    }

    #[test]
    fn arguments_that_are_no_json_are_shown_as_they_are() {
        let begun = Call::of("Bash", "{cut", Path::new("/p")).begun("c1");
        assert_eq!(begun["rawInput"], "{cut");
        assert_eq!(begun["title"], "Bash {cut");
    }

    #[test]
    fn an_output_ends_no_fence() {
        assert_eq!(fenced("a ``` b\n"), "````\na ``` b\n````");
        assert_eq!(fenced("a\n\n"), "```\na\n```");
        let long = "é".repeat(MAX_OUTPUT);
        assert!(fenced(&long).len() <= MAX_OUTPUT + 10);
    }
}
