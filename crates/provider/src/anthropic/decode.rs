//! Decoding responses of the Messages API: pure, incremental, the same for every fragmentation.
//!
//! ```text
//! message_start ─> (content_block_start ─> content_block_delta* ─> content_block_stop)* ─> message_delta ─>
//! message_stop
//! ```
//! `ping` and unknown events, blocks and deltas are ignored. `error` may come anywhere. The answer is complete after a
//! stop reason in `message_delta`, when nothing can follow: after `message_stop`, or at the proper end of the body, because
//! some servers never send `message_stop`.

use super::dialect::{REDACTED, SIGNATURE};
use crate::decode::{Body, Decode, DecodeError, Skipped, push_text, refuse_other_api};
use crate::lenient::{ArgumentText, Object, TextJoiner, readable};
use crate::vendor_error::{VendorError, one_line};
use http_client::sse;
use llm_worker::{ModelEvent, ProviderSignature, StopReason, Usage};

/// The keys of token counts. A later count replaces an earlier one.
const COUNTS: [&str; 4] = [
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
];

#[derive(Default)]
pub(crate) struct MessagesDecoder {
    body: Body,
    skipped: Skipped,
    text: TextJoiner,
    thinking: TextJoiner,
    /// The signature of the thinking that is open.
    signature: Option<String>,
    calls: Vec<Call>,
    tokens: [Option<u64>; 4],
    /// Tokens of thinking, which are part of the output.
    thought: Option<u64>,
    usage: Option<Usage>,
    stop: String,
    /// A block began.
    said: bool,
    done: bool,
}

#[derive(Default)]
struct Call {
    block: u64,
    /// Without a name it cannot be run.
    is_named: bool,
    arguments: ArgumentText,
    /// The arguments in the block's start: empty at the vendor; some servers send all of them here.
    otherwise: Vec<u8>,
}

impl Decode for MessagesDecoder {
    fn body(&mut self) -> &mut Body {
        &mut self.body
    }

    fn document(&mut self, json: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let text = readable(json);
        let unreadable =
            || DecodeError::unreadable(&text, "JSON that is not an answer of the Messages API");
        let message = Object::read(&text).ok_or_else(unreadable)?;
        if message.word("type") != "message" {
            refuse_other_api(&message)?;
            return Err(DecodeError::Vendor(VendorError::read_bytes(json)));
        }
        for (index, block) in (0..).zip(message.objects("content")) {
            self.begin(index, &block, out);
        }
        self.count(&message.object("usage"), out);
        self.stop = message.word("stop_reason");
        self.done = true;
        Ok(())
    }

    fn done(&self) -> bool {
        self.done
    }

    fn skipped(&mut self) -> &mut Skipped {
        &mut self.skipped
    }

    fn finish(mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let tail = self.end_body(out);
        if self.stop.is_empty() || tail != Err(DecodeError::Cut) {
            tail?;
        }
        // Some servers say their own end, but no reason.
        if self.stop.is_empty() && self.said && self.done {
            self.stop.push_str(if self.calls.is_empty() {
                "end_turn"
            } else {
                "tool_use"
            });
        }
        if self.stop.is_empty() {
            return Err(self.skipped.cut());
        }
        if self.stop == "model_context_window_exceeded" {
            return Err(DecodeError::Vendor(VendorError::full_context(&self.stop)));
        }
        if !self.calls.iter().all(|call| call.is_named) {
            return Err(DecodeError::Malformed(
                "a tool call without a name".to_owned(),
            ));
        }
        self.end_block(out);
        let stop = reason(&self.stop);
        // In an answer that was cut, missing arguments may be a result of the cut.
        let is_cut = stop == StopReason::MaxTokens;
        for (
            index,
            Call {
                mut arguments,
                otherwise,
                ..
            },
        ) in self.calls.into_iter().enumerate()
        {
            if !is_cut && arguments.is("") {
                arguments.push(otherwise);
            }
            push_text(
                arguments.finish(is_cut),
                |fragment| ModelEvent::CallArguments { index, fragment },
                out,
            );
        }
        out.extend(self.skipped.notice());
        out.push(ModelEvent::Stop(stop));
        Ok(())
    }

    fn event(
        &mut self,
        event: sse::SseEvent,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), DecodeError> {
        if event.is_error {
            return Err(DecodeError::Vendor(VendorError::read_bytes(&event.data)));
        }
        let json = readable(&event.data);
        let unreadable =
            || DecodeError::unreadable(&json, "JSON that is not an event of the Messages API");
        let event = Object::read(&json).ok_or_else(unreadable)?;
        let index = event.count("index").unwrap_or_default();
        match event.word("type").as_str() {
            "message_start" => self.count(&event.object("message").object("usage"), out),
            "content_block_start" => self.begin(index, &event.object("content_block"), out),
            "content_block_delta" => self.more(index, &event.object("delta"), out),
            "content_block_stop" => self.end_block(out),
            "message_delta" => {
                let word = event.object("delta").word("stop_reason");
                if !word.is_empty() {
                    self.stop = word;
                }
                self.count(&event.object("usage"), out);
            }
            "message_stop" => self.done = true,
            "error" => {
                let unsaid = || VendorError::saying("the provider ended the answer with an error");
                let value = serde_json::from_str(&json).unwrap_or_default();
                return Err(DecodeError::Vendor(
                    VendorError::in_document(&value).unwrap_or_else(unsaid),
                ));
            }
            // Some gateways send an error in their own format instead of an event.
            _unknown => {
                let value = serde_json::from_str(&json).unwrap_or_default();
                if let Some(error) = VendorError::in_document(&value) {
                    return Err(DecodeError::Vendor(error));
                }
                refuse_other_api(&event)?;
            }
        }
        Ok(())
    }
}

impl MessagesDecoder {
    fn begin(&mut self, index: u64, block: &Object<'_>, out: &mut Vec<ModelEvent>) {
        self.end_block(out);
        self.said = true;
        match block.word("type").as_str() {
            "text" => push_text(self.text.push(block.text("text")), ModelEvent::Text, out),
            "thinking" => {
                push_text(
                    self.thinking.push(block.text("thinking")),
                    ModelEvent::Reasoning,
                    out,
                );
                self.signature = Some(block.word("signature"));
            }
            REDACTED => {
                let data = block.word("data");
                out.push(ModelEvent::Sealed(ProviderSignature {
                    kind: REDACTED.to_owned(),
                    data,
                }));
            }
            "tool_use" => {
                let name = block.word("name");
                let otherwise = block.text_or_json("input");
                // Numbers of calls have no gap: an answer with a nameless one is refused at its end.
                let is_named = !name.is_empty() && self.calls.iter().all(|call| call.is_named);
                if is_named {
                    out.push(ModelEvent::CallStarted {
                        index: self.calls.len(),
                        name,
                    });
                }
                self.calls.push(Call {
                    block: index,
                    is_named,
                    otherwise,
                    ..Call::default()
                });
            }
            _unknown => {}
        }
    }

    fn more(&mut self, index: u64, delta: &Object<'_>, out: &mut Vec<ModelEvent>) {
        match delta.word("type").as_str() {
            "text_delta" => push_text(self.text.push(delta.text("text")), ModelEvent::Text, out),
            "thinking_delta" => push_text(
                self.thinking.push(delta.text("thinking")),
                ModelEvent::Reasoning,
                out,
            ),
            // A signature arrives whole; if there are two, the provider's SDKs send back the later one.
            "signature_delta" => {
                if let Some(signature) = &mut self.signature {
                    *signature = delta.word("signature");
                }
            }
            "input_json_delta" => {
                let Some(number) = self.calls.iter().rposition(|call| call.block == index) else {
                    return;
                };
                let Some(call) = self.calls.get_mut(number) else {
                    return;
                };
                call.arguments.push(delta.text_or_json("partial_json"));
                let long = call.arguments.long_part().filter(|_| call.is_named);
                out.extend(long.map(|fragment| ModelEvent::CallArguments {
                    index: number,
                    fragment,
                }));
            }
            _unknown => {}
        }
    }

    /// Ends the open block; thinking without a signature has nothing to send back.
    fn end_block(&mut self, out: &mut Vec<ModelEvent>) {
        push_text(self.thinking.finish(), ModelEvent::Reasoning, out);
        push_text(self.text.finish(), ModelEvent::Text, out);
        if let Some(data) = self
            .signature
            .take()
            .filter(|signature| !signature.is_empty())
        {
            out.push(ModelEvent::Sealed(ProviderSignature {
                kind: SIGNATURE.to_owned(),
                data,
            }));
        }
    }

    fn count(&mut self, tokens: &Object<'_>, out: &mut Vec<ModelEvent>) {
        for (count, key) in self.tokens.iter_mut().zip(COUNTS) {
            *count = tokens.count(key).or(*count);
        }
        let thought = tokens
            .object("output_tokens_details")
            .count("thinking_tokens");
        self.thought = thought.or(self.thought);
        let usage = Usage {
            reasoning: self.thought.unwrap_or_default(),
            ..usage(self.tokens)
        };
        if self.tokens.iter().any(Option::is_some) && self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
    }
}

/// The provider counts cache reads and cache writes separately from the rest of the input.
fn usage(tokens: [Option<u64>; 4]) -> Usage {
    let [plain, output, cached, cache_write] = tokens.map(Option::unwrap_or_default);
    let input = plain.saturating_add(cached).saturating_add(cache_write);
    Usage {
        input,
        output,
        cached,
        cache_write,
        reasoning: 0,
    }
}

fn reason(word: &str) -> StopReason {
    match word {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Paused,
        _other => StopReason::Other(one_line(word)),
    }
}
