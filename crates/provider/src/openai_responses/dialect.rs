//! Encoding requests of the Responses API, as a left fold with `input` last.
//!
//! Each item is one object of the list. A host's note becomes a `<host-note source="…">` in a user message. Reasoning is
//! sent back as it came, but without its id: ids are looked up at the provider, where nothing is stored. Reasoning must be
//! followed by what it led to; where that is missing, a message stands for it.

use crate::catalog::reasons;
use crate::json_text::{
    effort_word, file_name, host_note, put, put_data_url, put_string, vendor_model,
};
use llm_worker::projection::{Dialect, Open, Surface};
use llm_worker::{Attachment, Item, SealedReasoning};

/// The kind of the provider's signature: the fields of a reasoning item that are sent back, as JSON.
pub(super) const REASONING: &str = "reasoning";

/// The dialect of OpenAI's Responses.
#[derive(Clone, Copy, Debug)]
pub struct Responses;

impl Responses {
    /// The encoder name.
    pub const ID: &'static str = "openai-responses";
}

/// An item is before the next one.
const ITEM: Open = 1;
/// The last item is reasoning.
const REASONED: Open = 2;

impl Dialect for Responses {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn version(&self) -> u16 {
        1
    }

    fn head(&self, surface: &Surface, out: &mut Vec<u8>) {
        let model = vendor_model(&surface.model);
        put_string(out, r#"{"model":"#, model);
        put(out, r#","stream":true,"store":false"#);
        if reasons(model) {
            put(out, r#","include":["reasoning.encrypted_content"]"#);
        }
        if let Some(most) = surface.max_output {
            put(out, &format!(r#","max_output_tokens":{most}"#));
        }
        let effort = surface.effort.map(|effort| {
            let word = effort_word(effort);
            format!(r#""effort":"{word}""#)
        });
        let summary = surface.thinking.then(|| r#""summary":"auto""#.to_owned());
        let reasoning: Vec<_> = effort.into_iter().chain(summary).collect();
        if !reasoning.is_empty() && reasons(model) {
            put(out, &format!(r#","reasoning":{{{}}}"#, reasoning.join(",")));
        }
        for (at, tool) in surface.tools.iter().enumerate() {
            put(out, if at == 0 { r#","tools":["# } else { "," });
            put_string(out, r#"{"type":"function","name":"#, &tool.name);
            put_string(out, r#","description":"#, &tool.description);
            put(out, r#","parameters":"#);
            put(out, &tool.schema);
            // Without it, the API rewrites schemas so that each property is required.
            put(out, r#","strict":false}"#);
        }
        put(out, if surface.tools.is_empty() { "" } else { "]" });
        put_string(out, r#","instructions":"#, &surface.system);
        put(out, r#","input":["#);
    }

    fn append(&self, open: Open, _first: bool, item: &Item, out: &mut Vec<u8>) -> Open {
        match item {
            Item::User { text, .. } | Item::Command { text } => message(open, "user", text, out),
            Item::System { source, text } => message(open, "user", &host_note(source, text), out),
            Item::Assistant { text } if text.is_empty() => open,
            Item::Assistant { text } => message(open, "assistant", text, out),
            Item::Reasoning {
                seal: Some(SealedReasoning { signature, .. }),
                ..
            } if signature.kind == REASONING => {
                begin(open, out);
                let fields = signature.data.strip_prefix('{').unwrap_or_default();
                put(out, &format!(r#"{{"type":"reasoning",{fields}"#));
                REASONED
            }
            Item::Reasoning { .. } => open,
            Item::ToolCall {
                id,
                name,
                arguments,
            } => {
                begin(open, out);
                put_string(
                    out,
                    &format!(r#"{{"type":"function_call","call_id":"{id}","name":"#),
                    name,
                );
                put_string(out, r#","arguments":"#, arguments);
                put(out, "}");
                ITEM
            }
            Item::ToolResult { id, outcome } => {
                begin(answered(open, out), out);
                put_string(
                    out,
                    &format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"#),
                    &outcome.text(),
                );
                put(out, "}");
                ITEM
            }
        }
    }

    fn attachment(&self, open: Open, file: &Attachment, out: &mut Vec<u8>) -> Open {
        begin(answered(open, out), out);
        let kind = if file.media.is_image() {
            r#""input_image","image_url":"#.to_owned()
        } else {
            format!(
                r#""input_file","filename":{},"file_data":"#,
                file_name(file)
            )
        };
        put(
            out,
            &format!(r#"{{"role":"user","content":[{{"type":{kind}"#),
        );
        put_data_url(out, file);
        put(out, "}]}");
        ITEM
    }

    fn close(&self, open: Open, out: &mut Vec<u8>) {
        answered(open, out);
        put(out, "]}");
    }
}

fn message(open: Open, role: &str, text: &str, out: &mut Vec<u8>) -> Open {
    let open = if role == "user" {
        answered(open, out)
    } else {
        open
    };
    begin(open, out);
    put_string(out, &format!(r#"{{"role":"{role}","content":"#), text);
    put(out, "}");
    ITEM
}

/// A message of the model where its reasoning led to nothing that is known.
fn answered(open: Open, out: &mut Vec<u8>) -> Open {
    if open == REASONED {
        put(out, r#",{"role":"assistant","content":"(no answer)"}"#);
        return ITEM;
    }
    open
}

fn begin(open: Open, out: &mut Vec<u8>) {
    put(out, if open == 0 { "" } else { "," });
}
