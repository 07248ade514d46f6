//! Encoding requests of the chat completions API, as a left fold with `messages` last.
//!
//! The system prompt is the first message. A host's note becomes a `<host-note source="…">` in a user message:
//! many compatible servers refuse a system message in the middle. Neighbours of one role are one message, joined
//! by a blank line, because some servers refuse two user messages in a row; where the model reads files, what the user says is a
//! list of parts from the first message on, so that a file joins its text; text and the calls after it are one
//! assistant message. Of reasoning, only the signature that came with a call is sent back. An assistant text that is empty is left out.

use super::calls::EXTRA;
use crate::json_text::{
    effort_word, file_name, host_note, object, put, put_data_url, put_escaped, put_string,
    vendor_model,
};
use llm_worker::projection::{Dialect, Open, Surface};
use llm_worker::{Attachment, CallId, Item, SealedReasoning};
use std::sync::Arc;

/// The deviations of an endpoint from the chat completions API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// OpenAI itself: `max_completion_tokens`, `content: null` beside calls.
    OpenAi,
    /// Compatible servers: `max_tokens`, `content: ""` beside calls, and arguments that are not a JSON object are
    /// wrapped in one, because Ollama, llama.cpp and vLLM refuse a history with such arguments (HTTP 400).
    Compatible,
    /// As compatible, with the value that disables Gemini 3's check of thought signatures, for calls without one.
    Gemini,
}

impl Flavour {
    /// All flavours.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Compatible, Self::Gemini];

    /// The encoder name that is journaled with every request.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::OpenAi => "openai-chat",
            Self::Compatible => "openai-chat-compat",
            Self::Gemini => "openai-chat-gemini",
        }
    }
}

/// The dialect of a flavour. Requests name the model by the part after the first `/` of the surface's model.
#[derive(Clone, Copy, Debug)]
pub struct Chat(pub Flavour);

impl Chat {
    /// The dialect journaled under this id, so that recorded requests can be rebuilt.
    #[must_use]
    pub fn by_id(id: &str) -> Option<Arc<dyn Dialect>> {
        Flavour::ALL
            .into_iter()
            .find(|flavour| flavour.id() == id)
            .map(|flavour| Arc::new(Self(flavour)) as _)
    }
}

// Before the first item nothing is open: the head contains the whole system message.
const CLOSED: Open = 1;
const USER_TEXT: Open = 2;
const ASSISTANT_TEXT: Open = 3;
const CALLS: Open = 4;
/// A call that has only its signature so far.
const SIGNED: Open = 5;
/// After a file, in the list of parts of a user message.
const FILE: Open = 6;
/// Added to each state where user messages are lists of parts.
const PARTS: Open = 0x80;

impl Dialect for Chat {
    fn id(&self) -> &'static str {
        self.0.id()
    }

    fn version(&self) -> u16 {
        1
    }

    fn head(&self, surface: &Surface, out: &mut Vec<u8>) {
        put_string(out, r#"{"model":"#, vendor_model(&surface.model));
        put(
            out,
            r#","stream":true,"stream_options":{"include_usage":true}"#,
        );
        if let Some(most) = surface.max_output {
            let key = match self.0 {
                Flavour::OpenAi => "max_completion_tokens",
                Flavour::Compatible | Flavour::Gemini => "max_tokens",
            };
            put(out, &format!(r#","{key}":{most}"#));
        }
        if let Some(effort) = surface.effort {
            put_string(out, r#","reasoning_effort":"#, effort_word(effort));
        }
        for (at, tool) in surface.tools.iter().enumerate() {
            put(out, if at == 0 { r#","tools":["# } else { "," });
            put_string(out, r#"{"type":"function","function":{"name":"#, &tool.name);
            put_string(out, r#","description":"#, &tool.description);
            put(out, r#","parameters":"#);
            put(out, &tool.schema);
            put(out, "}}");
        }
        put(out, if surface.tools.is_empty() { "" } else { "]" });
        put_string(
            out,
            r#","messages":[{"role":"system","content":"#,
            &surface.system,
        );
        put(out, "}");
    }

    fn begin(&self, surface: &Surface) -> Open {
        if surface.media.is_empty() { 0 } else { PARTS }
    }

    fn append(&self, state: Open, _first: bool, item: &Item, out: &mut Vec<u8>) -> Open {
        let parts = state & PARTS;
        let open = state & !PARTS;
        let after = match item {
            Item::User { text, .. } | Item::Command { text } => user_text(parts, open, text, out),
            Item::System { source, text } => user_text(parts, open, &host_note(source, text), out),
            Item::Assistant { text } if text.is_empty() => open,
            Item::Assistant { text } => {
                let opening = r#""role":"assistant","content":""#;
                append_text(parts, open, ASSISTANT_TEXT, opening, text, out)
            }
            Item::Reasoning {
                seal: Some(SealedReasoning { signature, .. }),
                ..
            } if signature.kind == EXTRA => {
                // The call that it belongs to is the next item.
                self.open_calls(state, out);
                put(out, &format!(r#"{{"{EXTRA}":{}"#, signature.data));
                SIGNED
            }
            Item::Reasoning { .. } => open,
            Item::ToolCall {
                id,
                name,
                arguments,
            } => self.call(state, *id, name, arguments, out),
            Item::ToolResult { id, outcome } => {
                end(state, out);
                put_string(
                    out,
                    &format!(r#",{{"role":"tool","tool_call_id":"{id}","content":"#),
                    &outcome.text(),
                );
                put(out, "}");
                CLOSED
            }
        };
        parts | after
    }

    fn attachment(&self, state: Open, file: &Attachment, out: &mut Vec<u8>) -> Open {
        match state & !PARTS {
            USER_TEXT => put(out, r#""},{"#),
            FILE => put(out, ",{"),
            _other => {
                end(state, out);
                put(out, r#",{"role":"user","content":[{"#);
            }
        }
        if file.media.is_image() {
            put(out, r#""type":"image_url","image_url":{"url":"#);
        } else {
            let name = file_name(file);
            put(
                out,
                &format!(r#""type":"file","file":{{"filename":{name},"file_data":"#),
            );
        }
        put_data_url(out, file);
        put(out, "}}");
        PARTS | FILE
    }

    fn close(&self, open: Open, out: &mut Vec<u8>) {
        end(open, out);
        put(out, "]}");
    }
}

impl Chat {
    fn call(self, state: Open, id: CallId, name: &str, arguments: &str, out: &mut Vec<u8>) -> Open {
        let open = state & !PARTS;
        let first = match open {
            CALLS | SIGNED => {
                put(out, ",");
                false
            }
            _other => {
                self.open_calls(state, out);
                true
            }
        };
        put(out, if open == SIGNED { "" } else { "{" });
        put_string(
            out,
            &format!(r#""id":"{id}","type":"function","function":{{"name":"#),
            name,
        );
        let arguments = match self.0 {
            Flavour::OpenAi => arguments,
            Flavour::Compatible | Flavour::Gemini => &object(arguments),
        };
        put_string(out, r#","arguments":"#, arguments);
        put(out, "}");
        if first && self.0 == Flavour::Gemini {
            put(
                out,
                r#","extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}"#,
            );
        }
        put(out, "}");
        CALLS
    }

    /// Opens the list of calls of the open message, or of a new one.
    fn open_calls(self, open: Open, out: &mut Vec<u8>) {
        if open & !PARTS == ASSISTANT_TEXT {
            put(out, r#"","tool_calls":["#);
            return;
        }
        end(open, out);
        let content = match self.0 {
            Flavour::OpenAi => "null",
            Flavour::Compatible | Flavour::Gemini => r#""""#,
        };
        put(
            out,
            &format!(r#",{{"role":"assistant","content":{content},"tool_calls":["#),
        );
    }
}

/// Adds text of the user: to the string that is the message, or in a list of parts to the text that is its last part.
fn user_text(parts: Open, open: Open, text: &str, out: &mut Vec<u8>) -> Open {
    match (parts, open) {
        (0, _) => {
            let opening = r#""role":"user","content":""#;
            append_text(parts, open, USER_TEXT, opening, text, out)
        }
        (_, FILE) => {
            put(out, r#",{"type":"text","text":""#);
            put_escaped(out, text);
            USER_TEXT
        }
        _ => {
            let opening = r#""role":"user","content":[{"type":"text","text":""#;
            append_text(parts, open, USER_TEXT, opening, text, out)
        }
    }
}

/// Adds text to the open message of this role, or opens one. The string stays open: what follows joins it.
fn append_text(
    parts: Open,
    open: Open,
    wanted: Open,
    opening: &str,
    text: &str,
    out: &mut Vec<u8>,
) -> Open {
    if open == wanted {
        put(out, r"\n\n");
    } else {
        end(parts | open, out);
        put(out, &format!(",{{{opening}"));
    }
    put_escaped(out, text);
    wanted
}

fn end(state: Open, out: &mut Vec<u8>) {
    match state & !PARTS {
        USER_TEXT if state & PARTS != 0 => put(out, r#""}]}"#),
        USER_TEXT | ASSISTANT_TEXT => put(out, r#""}"#),
        FILE | CALLS => put(out, "]}"),
        SIGNED => put(out, "}]}"),
        _nothing_open => {}
    }
}
