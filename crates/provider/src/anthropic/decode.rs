//! Decoding responses of the Messages API: pure, incremental, the same for every fragmentation.
//!
//! ```text
//! message_start ─> (content_block_start ─> content_block_delta* ─> content_block_stop)* ─> message_delta ─>
//! message_stop
//! ```
//! `ping` and unknown events, blocks and deltas are ignored. `error` may come anywhere. The answer is complete after a
//! stop reason in `message_delta` and then `message_stop`, as documented: token counts may come between the two.

use super::dialect::{REDACTED, SIGNATURE};
use super::event::{BlockDelta, ContentBlock, MessagesEvent, MessagesUsage};
use crate::decode::{Decode, DecodeError, push_text};
use crate::sse::{self, Sse};
use crate::vendor_error::{VendorError, one_line};
use llm_worker::{ModelEvent, ProviderSignature, StopReason, Usage};
use serde_json::Value;

#[derive(Default)]
pub(crate) struct MessagesDecoder {
    sse: Sse,
    /// The signature of the thinking that is open.
    signature: Option<String>,
    /// The call that is open.
    call: Option<Open>,
    calls: usize,
    /// Calls whose block ended without arguments, with the arguments to use instead.
    silent: Vec<(usize, String)>,
    tokens: MessagesUsage,
    usage: Option<Usage>,
    stop: Option<String>,
    done: bool,
}

struct Open {
    block: u64,
    number: usize,
    /// The arguments to use if none arrive.
    otherwise: Option<String>,
}

impl Decode for MessagesDecoder {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.sse.push(bytes, &mut events);
        self.events(events, out)?;
        Ok(read?)
    }

    fn done(&self) -> bool {
        self.done
    }

    fn one_document(&self) -> bool {
        false
    }

    fn finish(mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        std::mem::take(&mut self.sse).finish(&mut events)?;
        self.last_events(events, out)?;
        let Some(word) = self.stop.take().filter(|_| self.done) else { return Err(DecodeError::Cut) };
        self.seal(out);
        let stop = reason(word);
        // In an answer that was cut, missing arguments may be a result of the cut.
        if stop != StopReason::MaxTokens {
            let meant = self.silent.into_iter();
            out.extend(meant.map(|(index, fragment)| ModelEvent::CallArguments { index, fragment }));
        }
        out.push(ModelEvent::Stop(stop));
        Ok(())
    }

    fn event(&mut self, event: sse::SseEvent, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        if event.is_error {
            return Err(failed(VendorError::read_bytes(&event.data)));
        }
        match serde_json::from_slice(&event.data).map_err(|why| not_an_event(&event.data, &why))? {
            MessagesEvent::MessageStart { message } => self.count(message.and_then(|message| message.usage), out),
            MessagesEvent::ContentBlockStart { index, content_block } => self.begin(index, content_block, out)?,
            MessagesEvent::ContentBlockDelta { index, delta } => self.more(index, delta, out),
            MessagesEvent::ContentBlockStop { index } => self.end(index, out),
            MessagesEvent::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.or(self.stop.take());
                self.count(usage, out);
            }
            MessagesEvent::MessageStop => self.done = true,
            MessagesEvent::Error { error } => {
                let unsaid = || VendorError::saying("the provider ended the answer with an error");
                return Err(failed(VendorError::read(&error).unwrap_or_else(unsaid)));
            }
            MessagesEvent::Unknown => {}
        }
        Ok(())
    }
}

impl MessagesDecoder {
    fn begin(&mut self, index: u64, block: ContentBlock, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        self.seal(out);
        match block {
            ContentBlock::Text { text } => push_text(text, ModelEvent::Text, out),
            ContentBlock::Thinking { thinking, signature } => {
                push_text(thinking, ModelEvent::Reasoning, out);
                self.signature = Some(signature);
            }
            ContentBlock::RedactedThinking { data } => {
                out.push(ModelEvent::Sealed(ProviderSignature { kind: REDACTED.to_owned(), data }));
            }
            ContentBlock::ToolUse { name, .. } if name.is_empty() => {
                return Err(DecodeError::Malformed("a tool call without a name".to_owned()));
            }
            ContentBlock::ToolUse { name, input } => {
                let number = self.calls;
                self.calls += 1;
                let meant = if input.is_null() { "{}".to_owned() } else { input.to_string() };
                self.call = Some(Open { block: index, number, otherwise: Some(meant) });
                out.push(ModelEvent::CallStarted { index: number, name });
            }
            ContentBlock::Unknown => {}
        }
        Ok(())
    }

    fn more(&mut self, index: u64, delta: BlockDelta, out: &mut Vec<ModelEvent>) {
        match delta {
            BlockDelta::TextDelta { text } => push_text(text, ModelEvent::Text, out),
            BlockDelta::ThinkingDelta { thinking } => push_text(thinking, ModelEvent::Reasoning, out),
            // A signature arrives whole; if there are two, the provider's SDKs send back the later one.
            BlockDelta::SignatureDelta { signature: whole } => {
                if let Some(signature) = &mut self.signature {
                    *signature = whole;
                }
            }
            BlockDelta::InputJsonDelta { partial_json: fragment } => {
                let call = self.call.as_mut().filter(|call| call.block == index && !fragment.is_empty());
                if let Some(call) = call {
                    call.otherwise = None;
                    out.push(ModelEvent::CallArguments { index: call.number, fragment });
                }
            }
            BlockDelta::Unknown => {}
        }
    }

    fn end(&mut self, index: u64, out: &mut Vec<ModelEvent>) {
        self.seal(out);
        if let Some(Open { number, otherwise, .. }) = self.call.take_if(|call| call.block == index) {
            self.silent.extend(otherwise.map(|meant| (number, meant)));
        }
    }

    /// Ends the open thinking block; without a signature there is nothing to send back.
    fn seal(&mut self, out: &mut Vec<ModelEvent>) {
        if let Some(data) = self.signature.take().filter(|signature| !signature.is_empty()) {
            out.push(ModelEvent::Sealed(ProviderSignature { kind: SIGNATURE.to_owned(), data }));
        }
    }

    fn count(&mut self, tokens: Option<MessagesUsage>, out: &mut Vec<ModelEvent>) {
        let Some(new) = tokens else { return };
        let old = self.tokens;
        self.tokens = MessagesUsage {
            input_tokens: new.input_tokens.or(old.input_tokens),
            output_tokens: new.output_tokens.or(old.output_tokens),
            cache_creation_input_tokens: new.cache_creation_input_tokens.or(old.cache_creation_input_tokens),
            cache_read_input_tokens: new.cache_read_input_tokens.or(old.cache_read_input_tokens),
        };
        let usage = usage(&self.tokens);
        if self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
    }
}

/// The provider counts cache reads and cache writes separately from the rest of the input.
fn usage(tokens: &MessagesUsage) -> Usage {
    let cached = tokens.cache_read_input_tokens.unwrap_or(0);
    let cache_write = tokens.cache_creation_input_tokens.unwrap_or(0);
    let plain = tokens.input_tokens.unwrap_or(0);
    let input = plain.saturating_add(cached).saturating_add(cache_write);
    Usage { input, output: tokens.output_tokens.unwrap_or(0), cached, cache_write }
}

fn reason(word: String) -> StopReason {
    match word.as_str() {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Paused,
        _other => StopReason::Other(one_line(&word)),
    }
}

/// An error in mid-stream has a type but no status: it gets the status that it would have had before the stream.
fn failed(error: VendorError) -> DecodeError {
    const STATUSES: [(&str, u16); 9] = [
        ("invalid_request_error", 400),
        ("authentication_error", 401),
        ("billing_error", 402),
        ("permission_error", 403),
        ("not_found_error", 404),
        ("request_too_large", 413),
        ("rate_limit_error", 429),
        ("timeout_error", 504),
        ("overloaded_error", 529),
    ];
    let known = STATUSES.iter().find(|(label, _)| error.labelled(&[*label]));
    DecodeError::Vendor(VendorError { status: error.status.or(known.map(|(_, status)| *status)), ..error })
}

/// Some gateways send an error in their own format instead of an event.
fn not_an_event(json: &[u8], why: &serde_json::Error) -> DecodeError {
    let value: Option<Value> = serde_json::from_slice(json).ok();
    let error = value.as_ref().and_then(|value| VendorError::read(value.get("error")?));
    error.map_or_else(|| DecodeError::of_json("JSON that is not an event of the Messages API", why), failed)
}
