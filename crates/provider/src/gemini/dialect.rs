//! Encoding requests of Gemini's API, as a left fold with `contents` last.
//!
//! Adjacent items of one role are parts of one content. Results are a content of their own, as many as there were calls before.
//! A host's note becomes a `<host-note source="…">` in a content of the user. Thoughts go back where they have a signature, each
//! signature in the part that it came with. A content that begins with a call without a signature, of another model or of none,
//! gets the value that disables the check of signatures.

use crate::effort;
use crate::json_text::{host_note, object, put, put_string, vendor_model};
use llm_worker::projection::{BLOB, Dialect, Open, Surface};
use llm_worker::{Attachment, Effort, Item, SealedReasoning};

/// The kinds of the provider's signature: of the call after it, of the text before it, and of a thought.
pub(super) const CALL: &str = "gemini-call";
pub(super) const TEXT: &str = "gemini-text";
pub(super) const THOUGHT: &str = "gemini-thought";

/// What the API takes for the signature of a call that has none.
const UNCHECKED: &str = "skip_thought_signature_validator";

/// The dialect of Gemini's own API.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

impl Gemini {
    /// The encoder name.
    pub const ID: &'static str = "gemini";
}

// In each state, the content and its list of parts are open; in the last, also its last part, without a value so far.
const USER: Open = 1;
const RESULTS: Open = 2;
const MODEL: Open = 3;
/// A call is among the parts of the model.
const CALLS: Open = 4;
const SIGNED: Open = 5;

impl Dialect for Gemini {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn version(&self) -> u16 {
        1
    }

    fn head(&self, surface: &Surface, out: &mut Vec<u8>) {
        put(out, "{");
        let config = generation_config(surface);
        if !config.is_empty() {
            put(out, &format!(r#""generationConfig":{{{config}}},"#));
        }
        for (at, tool) in surface.tools.iter().enumerate() {
            put(
                out,
                if at == 0 {
                    r#""tools":[{"functionDeclarations":["#
                } else {
                    ","
                },
            );
            put_string(out, r#"{"name":"#, &tool.name);
            put_string(out, r#","description":"#, &tool.description);
            put(out, r#","parametersJsonSchema":"#);
            put(out, &tool.schema);
            put(out, "}");
        }
        put(out, if surface.tools.is_empty() { "" } else { "]}]," });
        if !surface.system.trim().is_empty() {
            put_string(
                out,
                r#""systemInstruction":{"parts":[{"text":"#,
                &surface.system,
            );
            put(out, "}]},");
        }
        put(out, r#""contents":["#);
    }

    fn append(&self, open: Open, _first: bool, item: &Item, out: &mut Vec<u8>) -> Open {
        match item {
            Item::User { text, .. } | Item::Command { text } => self.text(open, USER, text, out),
            Item::System { source, text } => self.text(open, USER, &host_note(source, text), out),
            Item::Assistant { text } if text.is_empty() => open,
            Item::Assistant { text } => self.text(open, MODEL, text, out),
            Item::Reasoning {
                text,
                seal: Some(SealedReasoning { signature, .. }),
            } => {
                let (before, open) = match signature.kind.as_str() {
                    CALL => ("{", part(open, SIGNED, out)),
                    TEXT => (r#"{"text":"","#, part(open, MODEL, out)),
                    THOUGHT => {
                        let open = part(open, MODEL, out);
                        put_string(out, r#"{"thought":true,"text":"#, text);
                        (",", open)
                    }
                    _of_another_vendor => return open,
                };
                put(out, before);
                put_string(out, r#""thoughtSignature":"#, &signature.data);
                put(out, if open == SIGNED { "" } else { "}" });
                open
            }
            Item::Reasoning { seal: None, .. } => open,
            Item::ToolCall {
                id,
                name,
                arguments,
            } => {
                let is_first = !matches!(open, CALLS | SIGNED);
                let open = if open == SIGNED {
                    put(out, ",");
                    CALLS
                } else {
                    let open = part(open, CALLS, out);
                    put(out, "{");
                    open
                };
                put_string(
                    out,
                    &format!(r#""functionCall":{{"id":"{id}","name":"#),
                    name,
                );
                put(out, &format!(r#","args":{}}}"#, object(arguments)));
                if is_first {
                    put_string(out, r#","thoughtSignature":"#, UNCHECKED);
                }
                put(out, "}");
                open
            }
            // A result without its call: its function has no name.
            Item::ToolResult { .. } => self.result(open, "unnamed", item, out),
        }
    }

    fn result(&self, open: Open, name: &str, item: &Item, out: &mut Vec<u8>) -> Open {
        let Item::ToolResult { id, outcome } = item else {
            return self.append(open, false, item, out);
        };
        let open = part(open, RESULTS, out);
        put_string(
            out,
            &format!(r#"{{"functionResponse":{{"id":"{id}","name":"#),
            name,
        );
        put_string(out, r#","response":{"output":"#, &outcome.text());
        put(out, "}}}");
        open
    }

    fn attachment(&self, open: Open, file: &Attachment, out: &mut Vec<u8>) -> Open {
        let open = part(open, USER, out);
        let media = file.media.word();
        put(
            out,
            &format!(r#"{{"inlineData":{{"mimeType":"{media}","data":""#),
        );
        out.push(BLOB);
        put(out, r#""}}"#);
        open
    }

    fn close(&self, open: Open, out: &mut Vec<u8>) {
        end(open, out);
        put(out, "]}");
    }
}

impl Gemini {
    fn text(self, open: Open, role: Open, text: &str, out: &mut Vec<u8>) -> Open {
        // A text between two calls does not make the second one the first of its content.
        let open = if role == MODEL && open == CALLS {
            part(open, CALLS, out)
        } else {
            part(open, role, out)
        };
        put_string(out, r#"{"text":"#, text);
        put(out, "}");
        open
    }
}

/// The settings of one answer, without their brackets.
fn generation_config(surface: &Surface) -> String {
    let thoughts = surface
        .thinking
        .then(|| r#""includeThoughts":true"#.to_owned());
    let effort = surface.effort.map(|effort| {
        if effort::is_budget_of_gemini(vendor_model(&surface.model)) {
            return format!(r#""thinkingBudget":{}"#, effort::budget(effort));
        }
        let level = match effort {
            Effort::None | Effort::Minimal => "MINIMAL",
            Effort::Low => "LOW",
            Effort::Medium => "MEDIUM",
            Effort::High | Effort::Max => "HIGH",
        };
        format!(r#""thinkingLevel":"{level}""#)
    });
    let thinking: Vec<_> = effort.into_iter().chain(thoughts).collect();
    let thinking =
        (!thinking.is_empty()).then(|| format!(r#""thinkingConfig":{{{}}}"#, thinking.join(",")));
    let most = surface
        .max_output
        .map(|most| format!(r#""maxOutputTokens":{most}"#));
    let keys: Vec<_> = most.into_iter().chain(thinking).collect();
    keys.join(",")
}

/// Goes on with the parts of the open content, or opens one.
fn part(open: Open, wanted: Open, out: &mut Vec<u8>) -> Open {
    let is_model = |state| matches!(state, MODEL | CALLS | SIGNED);
    if open == wanted || (is_model(open) && is_model(wanted)) {
        put(out, if open == SIGNED { "}," } else { "," });
        return wanted;
    }
    end(open, out);
    let role = if is_model(wanted) { "model" } else { "user" };
    put(out, if open == 0 { "" } else { "," });
    put(out, &format!(r#"{{"role":"{role}","parts":["#));
    wanted
}

fn end(open: Open, out: &mut Vec<u8>) {
    match open {
        0 => {}
        SIGNED => put(out, r#","text":""}]}"#),
        _parts => put(out, "]}"),
    }
}
