//! Decoding responses of the chat completions API: pure, incremental, the same for every fragmentation.
//!
//! ```text
//! Unknown ──first byte `{` or `[`──> Whole: one JSON document, read at the end (a server that does not stream)
//!    └──────anything else──────────> Stream: server-sent events ──`[DONE]`──> done
//! ```
//! The answer is complete after a finish reason, when nothing can follow: after `[DONE]`, or at the proper end of the
//! body or of the connection, because some servers never send `[DONE]`. Text before `[DONE]` is complete without a reason,
//! too.

use super::calls::Calls;
use crate::decode::{Body, Decode, DecodeError, Skipped, push_text, refuse_other_api};
use crate::lenient::{Object, TextJoiner, readable};
use crate::vendor_error::{VendorError, one_line};
use http_client::sse::SseEvent;
use llm_worker::{ModelEvent, StopReason, Usage};

/// Finish reasons of an answer that failed, in lower case.
const TROUBLE: &[&str] = &[
    "error",
    "network_error",
    "insufficient_system_resource",
    "aborted",
    "malformed_function_call",
];

#[derive(Default)]
pub(crate) struct ChatDecoder {
    body: Body,
    skipped: Skipped,
    reasoning: TextJoiner,
    text: TextJoiner,
    calls: Calls,
    finish: String,
    /// Some text or reasoning arrived.
    said: bool,
    /// The message came in parts.
    has_parts: bool,
    refused: bool,
    usage: Option<Usage>,
    /// The provider's sum of all tokens.
    total: Option<u64>,
    done: bool,
}

impl Decode for ChatDecoder {
    fn body(&mut self) -> &mut Body {
        &mut self.body
    }

    fn done(&self) -> bool {
        self.done
    }

    fn skipped(&mut self) -> &mut Skipped {
        &mut self.skipped
    }

    fn finish(mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let tail = self.end_body(out);
        if self.finish.is_empty() || tail != Err(DecodeError::Cut) {
            tail?;
        }
        // Some servers say their own end, but no reason.
        if self.finish.is_empty() && self.done && (self.said || self.calls.any()) {
            self.finish.push_str("stop");
        }
        if self.finish.is_empty() {
            return Err(self.skipped.cut());
        }
        if self.calls.any_nameless() {
            return Err(DecodeError::Malformed(
                "a tool call without a name".to_owned(),
            ));
        }
        push_text(self.reasoning.finish(), ModelEvent::Reasoning, out);
        push_text(self.text.finish(), ModelEvent::Text, out);
        let stop = self.stop()?;
        if stop == StopReason::Refusal && !self.refused {
            let words = format!(
                "the provider stopped the answer: {}",
                one_line(&self.finish)
            );
            out.push(ModelEvent::Notice(words));
        }
        self.calls.finish(stop == StopReason::MaxTokens, out);
        out.extend(self.skipped.notice());
        out.push(ModelEvent::Stop(stop));
        Ok(())
    }

    fn document(&mut self, json: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let json = readable(json);
        let unreadable =
            || DecodeError::unreadable(&json, "JSON that is not a chunk of Chat Completions");
        let chunk = Object::read(&json).ok_or_else(unreadable)?;
        let choices = chunk.objects("choices");
        if choices.is_empty() || chunk.raw("error").is_some() {
            let value = serde_json::from_str(&json).unwrap_or_default();
            if let Some(error) = VendorError::in_document(&value) {
                return Err(DecodeError::Vendor(error));
            }
            if chunk
                .raw("choices")
                .is_some_and(|text| !text.starts_with('['))
            {
                return Err(unreadable());
            }
            if choices.is_empty() && chunk.raw("choices").is_none() {
                refuse_other_api(&chunk)?;
            }
        }
        for choice in choices
            .iter()
            .filter(|choice| choice.count("index").unwrap_or(0) == 0)
        {
            let error = choice
                .raw("error")
                .and_then(|error| VendorError::read(&serde_json::from_str(error).ok()?));
            if let Some(error) = error {
                return Err(DecodeError::Vendor(error));
            }
            let delta = choice.object("delta");
            self.message(&delta, out);
            // Some servers send the whole message behind its parts.
            if !self.has_parts {
                self.message(&choice.object("message"), out);
            }
            self.has_parts |= choice.raw("delta").is_some() && (self.said || self.calls.any());
            match choice.word("finish_reason") {
                reason if TROUBLE.contains(&&*reason.to_ascii_lowercase()) => {
                    let words = format!(
                        "the provider ended the answer with an error ({})",
                        one_line(&reason)
                    );
                    return Err(DecodeError::Vendor(VendorError::saying(&words)));
                }
                reason if !reason.is_empty() => self.finish = reason,
                _none => {}
            }
        }
        self.count(&chunk.object("usage"), out);
        Ok(())
    }

    fn event(&mut self, event: SseEvent, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        if event.data == b"[DONE]" {
            self.done = true;
            Ok(())
        } else if event.is_error {
            Err(DecodeError::Vendor(VendorError::read_bytes(&event.data)))
        } else {
            self.document(&event.data, out)
        }
    }
}

impl ChatDecoder {
    fn count(&mut self, tokens: &Object<'_>, out: &mut Vec<ModelEvent>) {
        let input = tokens.count("prompt_tokens");
        let output = tokens.count("completion_tokens");
        self.total = tokens.count("total_tokens").or(self.total);
        // The second is DeepSeek's name for the cached part.
        let cached = tokens
            .object("prompt_tokens_details")
            .count("cached_tokens");
        let cached = cached
            .or(tokens.count("prompt_cache_hit_tokens"))
            .unwrap_or(0);
        let reasoning = tokens
            .object("completion_tokens_details")
            .count("reasoning_tokens");
        let usage = Usage {
            input: input.unwrap_or(0),
            output: output.unwrap_or(0),
            cached,
            cache_write: 0,
            reasoning: reasoning.unwrap_or(0),
        };
        if input.or(output).is_some() && self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
    }

    fn message(&mut self, message: &Object<'_>, out: &mut Vec<ModelEvent>) {
        // Servers that send both fields send the same text twice.
        let named = message.text("reasoning_content");
        let reasoning = if named.is_empty() {
            message.text("reasoning")
        } else {
            named
        };
        let text = message.text("content");
        let refusal = message.text("refusal");
        self.refused |= !refusal.is_empty();
        self.said |= !(reasoning.is_empty() && text.is_empty() && refusal.is_empty());
        push_text(self.reasoning.push(reasoning), ModelEvent::Reasoning, out);
        push_text(self.text.push(text), ModelEvent::Text, out);
        push_text(self.text.push(refusal), ModelEvent::Text, out);
        self.calls.feed(&message.objects("tool_calls"), out);
        // The older form of a single call.
        if message.raw("function_call").is_some() {
            self.calls
                .feed_function(&message.object("function_call"), out);
        }
    }

    /// Ollama and Gemini report `stop` although they call tools, so the presence of calls decides.
    fn stop(&self) -> Result<StopReason, DecodeError> {
        let word = self.finish.to_ascii_lowercase();
        Ok(match word.as_str() {
            "content_filter" | "refusal" | "safety" | "sensitive" => StopReason::Refusal,
            "length" if self.has_no_room() => {
                return Err(DecodeError::Vendor(VendorError::full_context(&word)));
            }
            "length"
            | "length_limit"
            | "max_tokens"
            | "max_output_tokens"
            | "max_completion_tokens"
            | "model_length" => StopReason::MaxTokens,
            "model_context_window_exceeded"
            | "context_window_exceeded"
            | "context_length_exceeded"
            | "exceed_context_limit" => {
                return Err(DecodeError::Vendor(VendorError::full_context(&word)));
            }
            "stop" | "eos" | "eos_token" | "end_turn" | "tool_calls" | "tool_use"
            | "function_call" => match (self.calls.any(), self.refused) {
                (true, _) => StopReason::ToolUse,
                (false, true) => StopReason::Refusal,
                (false, false) if matches!(&*word, "tool_calls" | "tool_use" | "function_call") => {
                    StopReason::ToolUse
                }
                (false, false) => StopReason::EndTurn,
            },
            _other => StopReason::Other(one_line(&self.finish)),
        })
    }

    /// Whether the answer ended at its length before it began: the request fills the context. Thinking that the provider
    /// counts and does not show is more than nothing.
    fn has_no_room(&self) -> bool {
        let counted = self
            .usage
            .is_some_and(|usage| usage.output > 0 || self.total > Some(usage.input));
        !self.said && !self.calls.any() && !counted
    }
}
