//! Encoding requests of the Messages API, as a left fold with `messages` last.

use crate::effort;
use crate::json_text::{host_note, object, put, put_string, vendor_model};
use llm_worker::projection::{BLOB, Dialect, Open, Surface};
use llm_worker::{Attachment, Effort, Item, ProviderSignature, ResultStatus, SealedReasoning};

/// The output limit where the surface has none: every model behind this API accepts it.
pub(super) const FALLBACK: u32 = 8_192;

/// The kinds of provider signatures: of readable thinking, and of redacted thinking.
pub(super) const SIGNATURE: &str = "signature";
pub(super) const REDACTED: &str = "redacted_thinking";

/// The longest tool name that the API accepts; an earlier model may have invented a longer one.
const MAX_NAME: usize = 64;

/// The fewest tokens of thinking that the API accepts.
const MIN_BUDGET: u32 = 1_024;

const ANCHOR: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The dialect of Anthropic's Messages.
///
/// Adjacent items of one role are blocks of one message, so all results of an answer are in the message after it, and a
/// host's note is in one message with the person's text. Thinking is sent back unchanged and in its place if the
/// projection keeps its signature; other reasoning is omitted. An answer with thinking only gets a text block, because
/// the API refuses a message that ends with thinking. Arguments that are not a JSON object are wrapped in one.
///
/// Three anchors mark what the vendor's cache should keep: the last tool, the system prompt, and the last block of the
/// body. The last anchor moves with each request although old bytes never change: the last block is left open, and the
/// anchor is part of the bytes that close it. The vendor searches at most 20 blocks back for an earlier anchor, so
/// after a step with more than nine calls the request is not read from the cache.
#[derive(Clone, Copy, Debug)]
pub struct Messages;

impl Messages {
    /// The encoder name.
    pub const ID: &'static str = "anthropic-messages";
}

// In each state, the message, its content and its last block are open.
const USER: Open = 1;
const ASSISTANT: Open = 2;
const THINKING: Open = 3;

impl Dialect for Messages {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn version(&self) -> u16 {
        1
    }

    fn head(&self, surface: &Surface, out: &mut Vec<u8>) {
        put_string(out, r#"{"model":"#, vendor_model(&surface.model));
        put(
            out,
            &format!(
                r#","max_tokens":{},"stream":true"#,
                surface.max_output.unwrap_or(FALLBACK)
            ),
        );
        put(out, &thinking(surface));
        for (at, tool) in surface.tools.iter().enumerate() {
            put_string(
                out,
                if at == 0 {
                    r#","tools":[{"name":"#
                } else {
                    r#"},{"name":"#
                },
                &tool.name,
            );
            put_string(out, r#","description":"#, &tool.description);
            put(out, r#","input_schema":"#);
            put(out, &tool.schema);
        }
        if !surface.tools.is_empty() {
            put(out, ANCHOR);
            put(out, "}]");
        }
        // An empty block is refused.
        if !surface.system.trim().is_empty() {
            put_string(out, r#","system":[{"type":"text","text":"#, &surface.system);
            put(out, ANCHOR);
            put(out, "}]");
        }
        put(out, r#","messages":["#);
    }

    fn append(&self, open: Open, _first: bool, item: &Item, out: &mut Vec<u8>) -> Open {
        match item {
            Item::User { text, .. } | Item::Command { text } => text_block(open, USER, text, out),
            Item::System { source, text } => text_block(open, USER, &host_note(source, text), out),
            Item::Assistant { text } if text.trim().is_empty() => open,
            Item::Assistant { text } => text_block(open, ASSISTANT, text, out),
            Item::Reasoning { seal: None, .. } => open,
            Item::Reasoning {
                text,
                seal: Some(SealedReasoning { signature, .. }),
            } => thinking_block(open, text, signature, out),
            Item::ToolCall {
                id,
                name,
                arguments,
            } => {
                block(open, ASSISTANT, "tool_use", out);
                put(
                    out,
                    &format!(r#","id":"{id}","name":"{}","input":"#, fitting(name)),
                );
                put(out, &object(arguments));
                ASSISTANT
            }
            Item::ToolResult { id, outcome } => {
                block(open, USER, "tool_result", out);
                put(out, &format!(r#","tool_use_id":"{id}""#));
                put(
                    out,
                    if outcome.status == ResultStatus::Ok {
                        ""
                    } else {
                        r#","is_error":true"#
                    },
                );
                let text = outcome.text();
                if !text.trim().is_empty() {
                    put_string(out, r#","content":"#, &text);
                }
                USER
            }
        }
    }

    fn attachment(&self, open: Open, file: &Attachment, out: &mut Vec<u8>) -> Open {
        let kind = if file.media.is_image() {
            "image"
        } else {
            "document"
        };
        block(open, USER, kind, out);
        let media = file.media.word();
        put(
            out,
            &format!(r#","source":{{"type":"base64","media_type":"{media}","data":""#),
        );
        out.push(BLOB);
        put(out, r#""}"#);
        USER
    }

    fn close(&self, open: Open, out: &mut Vec<u8>) {
        match open {
            USER | ASSISTANT => put(out, ANCHOR),
            _thinking_or_nothing => {}
        }
        end(open, out);
        put(out, "]}");
    }
}

/// The keys for the model's thinking. A model of before adaptive thinking takes a number of tokens instead, at least 1,024 and
/// fewer than the answer may have; where an answer has no room for so many, it thinks as it does by default.
fn thinking(surface: &Surface) -> String {
    let most = surface.max_output.unwrap_or(FALLBACK);
    let shown = surface.thinking;
    let display = if shown {
        r#","display":"summarized""#
    } else {
        ""
    };
    let adaptive = format!(r#","thinking":{{"type":"adaptive"{display}}}"#);
    match surface.effort {
        Some(Effort::None) => r#","thinking":{"type":"disabled"}"#.to_owned(),
        Some(effort) if effort::is_counted(vendor_model(&surface.model)) => {
            let budget = effort::budget(effort).min(most / 4 * 3);
            if budget < MIN_BUDGET {
                return String::new();
            }
            format!(r#","thinking":{{"type":"enabled","budget_tokens":{budget}}}"#)
        }
        Some(effort) => {
            let word = effort.word();
            format!(r#"{adaptive},"output_config":{{"effort":"{word}"}}"#)
        }
        None if shown && !effort::is_counted(vendor_model(&surface.model)) => adaptive,
        None => String::new(),
    }
}

fn text_block(open: Open, role: Open, text: &str, out: &mut Vec<u8>) -> Open {
    block(open, role, "text", out);
    // The API refuses a block of white space, which may be a user's whole input.
    put_string(
        out,
        r#","text":"#,
        if text.trim().is_empty() {
            "(nothing)"
        } else {
            text
        },
    );
    role
}

fn thinking_block(
    open: Open,
    text: &str,
    signature: &ProviderSignature,
    out: &mut Vec<u8>,
) -> Open {
    match signature.kind.as_str() {
        SIGNATURE => {
            block(open, THINKING, "thinking", out);
            put_string(out, r#","thinking":"#, text);
            put_string(out, r#","signature":"#, &signature.data);
        }
        REDACTED => {
            block(open, THINKING, REDACTED, out);
            put_string(out, r#","data":"#, &signature.data);
        }
        _of_another_vendor => return open,
    }
    THINKING
}

/// Opens a block, in the open message where the role is the same.
fn block(open: Open, wanted: Open, kind: &str, out: &mut Vec<u8>) {
    let role = if wanted == USER { "user" } else { "assistant" };
    match open {
        0 => put(out, &format!(r#"{{"role":"{role}","content":["#)),
        _one if (open == USER) == (wanted == USER) => put(out, "},"),
        _other => {
            end(open, out);
            put(out, &format!(r#",{{"role":"{role}","content":["#));
        }
    }
    put(out, &format!(r#"{{"type":"{kind}""#));
}

/// Closes the open message.
fn end(open: Open, out: &mut Vec<u8>) {
    match open {
        0 => {}
        THINKING => put(out, r#"},{"type":"text","text":"(no answer)"}]}"#),
        _block => put(out, "}]}"),
    }
}

/// A tool's name in a form that the API accepts.
fn fitting(name: &str) -> String {
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(MAX_NAME).map(fit).collect();
    if name.is_empty() {
        "unnamed".to_owned()
    } else {
        name
    }
}
