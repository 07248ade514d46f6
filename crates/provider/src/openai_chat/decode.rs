//! Decoding responses of the chat completions API: pure, incremental, the same for every fragmentation.
//!
//! ```text
//! Unknown ──first byte `{` or `[`──> Whole: one JSON document, read at the end (a server that does not stream)
//!    └──────anything else──────────> Stream: server-sent events ──`[DONE]`──> done
//! ```
//! The answer is complete after a finish reason, when nothing can follow: after `[DONE]`, or at the proper end of the
//! body, because some servers never send `[DONE]`. The token count may come in between, so an answer whose connection
//! breaks there is truncated.

use super::calls::Calls;
use super::chunk::{CallPart, ChatMessage, ChatUsage, Chunk, text_of};
use crate::decode::{Decode, DecodeError, push_text};
use crate::sse::{BOM, Sse, SseEvent};
use crate::vendor_error::{VendorError, one_line};
use llm_worker::{ModelEvent, StopReason, Usage};
use serde_json::Value;

/// The longest answer that is not streamed, in bytes.
const MAX_WHOLE: usize = 16 << 20;

#[derive(Default)]
pub(crate) struct ChatDecoder {
    mode: Mode,
    calls: Calls,
    finish: Option<String>,
    refused: bool,
    usage: Option<Usage>,
    done: bool,
}

enum Mode {
    Unknown(Vec<u8>),
    Stream(Sse),
    Whole(Vec<u8>),
}

impl Default for Mode {
    fn default() -> Self {
        Self::Unknown(Vec::new())
    }
}

impl Decode for ChatDecoder {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        match &mut self.mode {
            Mode::Unknown(held) => {
                held.extend_from_slice(bytes);
                let begin = held.strip_prefix(BOM).unwrap_or(held);
                let Some(first) = begin.iter().find(|byte| !byte.is_ascii_whitespace()) else { return Ok(()) };
                // A part of a byte-order mark; the rest has not arrived yet.
                if BOM.starts_with(&[*first]) && held.len() < BOM.len() {
                    return Ok(());
                }
                let whole = matches!(first, b'{' | b'[');
                let begin = begin.to_vec();
                self.mode = if whole { Mode::Whole(Vec::new()) } else { Mode::Stream(Sse::default()) };
                self.push(&begin, out)
            }
            Mode::Stream(sse) => {
                let mut events = Vec::new();
                let read = sse.push(bytes, &mut events);
                self.events(events, out)?;
                Ok(read?)
            }
            Mode::Whole(held) if held.len() + bytes.len() > MAX_WHOLE => {
                Err(DecodeError::Malformed(format!("an answer over {} MiB in one piece", MAX_WHOLE >> 20)))
            }
            Mode::Whole(held) => {
                held.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn done(&self) -> bool {
        self.done
    }

    fn one_document(&self) -> bool {
        matches!(self.mode, Mode::Whole(_))
    }

    fn finish(mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        match std::mem::take(&mut self.mode) {
            Mode::Unknown(_) => {}
            Mode::Stream(sse) => {
                let mut events = Vec::new();
                sse.finish(&mut events)?;
                self.last_events(events, out)?;
            }
            Mode::Whole(held) => self.document(&held, out)?,
        }
        let Some(finish) = self.finish.take() else { return Err(DecodeError::Cut) };
        if self.calls.any_nameless() {
            return Err(DecodeError::Malformed("a tool call without a name".to_owned()));
        }
        out.push(ModelEvent::Stop(self.stop(&finish)));
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
    fn document(&mut self, json: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let chunk: Chunk = serde_json::from_slice(json).map_err(|why| not_a_chunk(json, &why))?;
        if let Some(error) = chunk.error.as_ref().and_then(VendorError::read) {
            return Err(DecodeError::Vendor(error));
        }
        for choice in chunk.choices.into_iter().flatten().filter(|choice| choice.index.unwrap_or(0) == 0) {
            if let Some(error) = choice.error.as_ref().and_then(VendorError::read) {
                return Err(DecodeError::Vendor(error));
            }
            for message in [choice.delta, choice.message].into_iter().flatten() {
                self.message(message, out);
            }
            match choice.finish_reason.filter(|reason| !reason.is_empty()) {
                Some(reason) if reason == "error" => {
                    return Err(DecodeError::Vendor(VendorError::saying(
                        "the provider ended the answer with an error",
                    )));
                }
                Some(reason) => self.finish = Some(reason),
                None => {}
            }
        }
        if let Some(usage) = chunk.usage.as_ref().map(usage).filter(|usage| self.usage != Some(*usage)) {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
        Ok(())
    }

    fn message(&mut self, message: ChatMessage, out: &mut Vec<ModelEvent>) {
        let refusal = text_of(message.refusal.as_ref());
        self.refused |= !refusal.is_empty();
        push_text(message.reasoning(), ModelEvent::Reasoning, out);
        push_text(text_of(message.content.as_ref()), ModelEvent::Text, out);
        push_text(refusal, ModelEvent::Text, out);
        for part in message.tool_calls.into_iter().flatten() {
            self.calls.feed(part, out);
        }
        if let Some(function) = message.function_call {
            self.calls.feed(CallPart { function: Some(function), ..Default::default() }, out);
        }
    }

    /// Ollama and Gemini report `stop` although they call tools, so the presence of calls decides.
    fn stop(&self, finish: &str) -> StopReason {
        match finish.to_ascii_lowercase().as_str() {
            "content_filter" | "refusal" | "safety" => StopReason::Refusal,
            "length" | "max_tokens" => StopReason::MaxTokens,
            "stop" | "eos" | "end_turn" | "tool_calls" | "tool_use" | "function_call" => {
                match (self.calls.any(), self.refused) {
                    (true, _) => StopReason::ToolUse,
                    (false, true) => StopReason::Refusal,
                    (false, false) => StopReason::EndTurn,
                }
            }
            _other => StopReason::Other(one_line(finish)),
        }
    }
}

fn usage(tokens: &ChatUsage) -> Usage {
    let cached = tokens.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    Usage {
        input: tokens.prompt_tokens.unwrap_or(0),
        output: tokens.completion_tokens.unwrap_or(0),
        cached: cached.or(tokens.prompt_cache_hit_tokens).unwrap_or(0),
        cache_write: 0,
    }
}

/// The error for bytes that are no chunk: an error of the provider, which Gemini wraps in a list, or malformed.
fn not_a_chunk(json: &[u8], why: &serde_json::Error) -> DecodeError {
    let in_list = serde_json::from_slice::<Value>(json).ok();
    let error = in_list.as_ref().and_then(|list| list.get(0)?.get("error")).and_then(VendorError::read);
    error.map_or_else(|| DecodeError::of_json("JSON that is not a chunk of Chat Completions", why), DecodeError::Vendor)
}
