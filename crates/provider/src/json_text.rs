//! Pieces of request bodies that more than one dialect writes. Does not depend on any dialect.

use llm_worker::projection::BLOB;
use llm_worker::{Attachment, Effort};
use serde_json::{Map, Value};

pub(crate) fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Writes `before`, then a complete JSON string.
pub(crate) fn put_string(out: &mut Vec<u8>, before: &str, text: &str) {
    put(out, before);
    put(out, "\"");
    put_escaped(out, text);
    put(out, "\"");
}

/// Writes the content of a JSON string without quotes, so that more can be appended to it.
pub(crate) fn put_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(|c| matches!(c, '"' | '\\' | '\0'..='\x1f')) {
        let (plain, from) = rest.split_at(at);
        put(out, plain);
        let mut chars = from.chars();
        match chars.next() {
            Some('\n') => put(out, r"\n"),
            Some('\t') => put(out, r"\t"),
            Some('\r') => put(out, r"\r"),
            Some(c @ ('"' | '\\')) => out.extend_from_slice(&[b'\\', c as u8]),
            Some(c) => put(out, &format!("\\u{:04x}", u32::from(c))),
            None => {}
        }
        rest = chars.as_str();
    }
    put(out, rest);
}

/// The model's name at its vendor.
pub(crate) fn vendor_model(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, model)| model)
}

/// The word for an effort in both of OpenAI's APIs, and in those that are compatible.
pub(crate) fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::Max => "xhigh",
        Effort::None | Effort::Minimal | Effort::Low | Effort::Medium | Effort::High => {
            effort.word()
        }
    }
}

/// A note of the host as text for a user message. The text cannot end the note early, and the source cannot leave its
/// attribute.
pub(crate) fn host_note(source: &str, text: &str) -> String {
    let source = source
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;");
    let text = text.replace("</host-note", "<\\/host-note");
    format!("<host-note source=\"{source}\">\n{text}\n</host-note>")
}

/// Writes a string that is the URL of a file with its bytes.
pub(crate) fn put_data_url(out: &mut Vec<u8>, file: &Attachment) {
    put(out, &format!(r#""data:{};base64,"#, file.media.word()));
    out.push(BLOB);
    put(out, "\"");
}

/// The name of a document as a JSON string; APIs refuse one without a name.
pub(crate) fn file_name(file: &Attachment) -> String {
    let name = match file.name.as_str() {
        "" => "document.pdf",
        name => name,
    };
    Value::from(name).to_string()
}

/// A call's raw arguments as the JSON object that endpoints require; other text is wrapped in one. Strict servers refuse
/// half characters, numbers like `1e999` and very deep nesting, as this parser does.
pub(crate) fn object(raw: &str) -> String {
    if raw.trim().is_empty() {
        "{}".to_owned()
    } else if serde_json::from_str::<Map<String, Value>>(raw).is_ok() {
        raw.to_owned()
    } else {
        serde_json::json!({ "invalid_json": raw }).to_string()
    }
}
