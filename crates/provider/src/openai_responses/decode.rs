//! Decoding responses of the Responses API: pure, incremental, the same for every fragmentation.
//!
//! ```text
//! response.created ─> (output_item.added ─> *.delta* ─> output_item.done)* ─> response.completed | incomplete | failed
//! ```
//! An item is read from its parts; what only its end has, or only the end of the response, is taken from there. Unknown
//! events and items are ignored. `error` may come anywhere.

use super::dialect::REASONING;
use crate::decode::{Body, Decode, DecodeError, Skipped, push_text, refuse_other_api};
use crate::lenient::{ArgumentText, Object, TextJoiner, readable};
use crate::vendor_error::{VendorError, one_line};
use http_client::sse::SseEvent;
use llm_worker::{ModelEvent, ProviderSignature, StopReason, Usage};
use std::collections::BTreeSet;

/// The fields of a reasoning item that are sent back.
const SENT_BACK: [&str; 3] = ["summary", "content", "encrypted_content"];

#[derive(Default)]
pub(crate) struct ResponsesDecoder {
    body: Body,
    skipped: Skipped,
    text: TextJoiner,
    reasoning: TextJoiner,
    /// The item whose parts came last.
    item: Option<u64>,
    /// The items that came without a number, in their order.
    ids: Vec<String>,
    /// The items of which parts came.
    heard: BTreeSet<u64>,
    /// The part of the reasoning's summary that came last.
    part: Option<u64>,
    /// The items that have ended.
    ended: BTreeSet<u64>,
    calls: Vec<Call>,
    is_nameless: bool,
    said: bool,
    refused: bool,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    done: bool,
}

#[derive(Default)]
struct Call {
    item: u64,
    arguments: ArgumentText,
    /// Some of the arguments were told before their end.
    is_told: bool,
}

impl Decode for ResponsesDecoder {
    fn body(&mut self) -> &mut Body {
        &mut self.body
    }

    fn document(&mut self, json: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let text = readable(json);
        let unreadable =
            || DecodeError::unreadable(&text, "JSON that is not an answer of the Responses API");
        let response = Object::read(&text).ok_or_else(unreadable)?;
        if response.word("object") != "response" {
            refuse_other_api(&response)?;
            return Err(DecodeError::Vendor(VendorError::read_bytes(json)));
        }
        self.end(&response, &response.word("status"), out)
    }

    fn done(&self) -> bool {
        self.done
    }

    fn skipped(&mut self) -> &mut Skipped {
        &mut self.skipped
    }

    fn finish(mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let tail = self.end_body(out);
        if self.stop.is_none() || tail != Err(DecodeError::Cut) {
            tail?;
        }
        let Some(stop) = self.stop.take() else {
            return Err(self.skipped.cut());
        };
        if self.is_nameless {
            return Err(DecodeError::Malformed(
                "a tool call without a name".to_owned(),
            ));
        }
        self.end_item(out);
        let is_cut = stop == StopReason::MaxTokens;
        for (index, call) in self.calls.into_iter().enumerate() {
            push_text(
                call.arguments.finish(is_cut),
                |fragment| ModelEvent::CallArguments { index, fragment },
                out,
            );
        }
        out.extend(self.skipped.notice());
        out.push(ModelEvent::Stop(stop));
        Ok(())
    }

    fn event(&mut self, event: SseEvent, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        if event.is_error {
            return Err(DecodeError::Vendor(VendorError::read_bytes(&event.data)));
        }
        if event.data == b"[DONE]" {
            return Ok(());
        }
        let json = readable(&event.data);
        let unreadable =
            || DecodeError::unreadable(&json, "JSON that is not an event of the Responses API");
        let event = Object::read(&json).ok_or_else(unreadable)?;
        let index = self.place(&event);
        match event.word("type").as_str() {
            "response.output_item.added" => self.begin(index, &event.object("item"), out),
            "response.output_item.done" => self.ended(index, &event.object("item"), out),
            "response.output_text.delta" => self.say(index, event.text("delta"), false, out),
            "response.refusal.delta" => self.say(index, event.text("delta"), true, out),
            "response.reasoning_summary_text.delta" => {
                self.think(
                    index,
                    event.count("summary_index"),
                    event.text("delta"),
                    out,
                );
            }
            "response.reasoning_text.delta" => {
                self.think(
                    index,
                    event.count("content_index"),
                    event.text("delta"),
                    out,
                );
            }
            "response.function_call_arguments.delta" => {
                self.argue(index, event.text_or_json("delta"), out)
            }
            kind @ ("response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled") => {
                let ended_as = kind.strip_prefix("response.").unwrap_or_default();
                self.end(&event.object("response"), ended_as, out)?;
            }
            kind if kind.starts_with("response.") || kind == "keepalive" => {}
            _error_or_unknown => {
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

impl ResponsesDecoder {
    /// The number of the item that an event is about. Some servers name it by its id alone.
    fn place(&mut self, event: &Object<'_>) -> u64 {
        if let Some(index) = event.count("output_index") {
            return index;
        }
        let id = match event.word("item_id") {
            id if id.is_empty() => event.object("item").word("id"),
            id => id,
        };
        if id.is_empty() {
            return self.item.unwrap_or_default();
        }
        let known = self.ids.iter().position(|known| *known == id);
        let index = known.unwrap_or_else(|| {
            self.ids.push(id);
            self.ids.len() - 1
        });
        index as u64
    }

    /// Parts of another item end the one before.
    fn turn_to(&mut self, index: u64, out: &mut Vec<ModelEvent>) {
        if self.item != Some(index) {
            self.end_item(out);
            (self.item, self.part) = (Some(index), None);
        }
    }

    fn begin(&mut self, index: u64, item: &Object<'_>, out: &mut Vec<ModelEvent>) {
        self.turn_to(index, out);
        if item.word("type") != "function_call" {
            return;
        }
        let name = item.word("name");
        // Numbers of calls have no gap: an answer with a nameless one is refused at its end.
        self.is_nameless |= name.is_empty();
        if !self.is_nameless {
            let index = self.calls.len();
            out.push(ModelEvent::CallStarted { index, name });
        }
        self.calls.push(Call {
            item: index,
            ..Call::default()
        });
    }

    fn say(&mut self, index: u64, text: Vec<u8>, is_refusal: bool, out: &mut Vec<ModelEvent>) {
        self.turn_to(index, out);
        if text.is_empty() {
            return;
        }
        self.heard.insert(index);
        self.said = true;
        self.refused |= is_refusal;
        push_text(self.text.push(text), ModelEvent::Text, out);
    }

    fn think(&mut self, index: u64, part: Option<u64>, text: Vec<u8>, out: &mut Vec<ModelEvent>) {
        self.turn_to(index, out);
        if text.is_empty() {
            return;
        }
        if !self.heard.insert(index) && part != self.part {
            push_text(
                self.reasoning.push(b"\n\n".to_vec()),
                ModelEvent::Reasoning,
                out,
            );
        }
        self.part = part;
        push_text(self.reasoning.push(text), ModelEvent::Reasoning, out);
    }

    fn argue(&mut self, index: u64, text: Vec<u8>, out: &mut Vec<ModelEvent>) {
        let Some(number) = self.calls.iter().rposition(|call| call.item == index) else {
            return;
        };
        let Some(call) = self.calls.get_mut(number) else {
            return;
        };
        call.arguments.push(text);
        if let Some(fragment) = call.arguments.long_part() {
            call.is_told = true;
            out.push(ModelEvent::CallArguments {
                index: number,
                fragment,
            });
        }
    }

    /// An item has ended; it is here as a whole.
    fn ended(&mut self, index: u64, item: &Object<'_>, out: &mut Vec<ModelEvent>) {
        if !self.ended.insert(index) {
            return;
        }
        match item.word("type").as_str() {
            "message" if !self.heard.contains(&index) => {
                for part in item.objects("content") {
                    self.say(index, part.text("text"), false, out);
                    self.say(index, part.text("refusal"), true, out);
                }
            }
            "reasoning" => self.reasoned(index, item, out),
            "function_call" => {
                if !self.calls.iter().any(|call| call.item == index) {
                    self.begin(index, item, out);
                }
                let whole = item.text_or_json("arguments");
                let call = self.calls.iter_mut().rfind(|call| call.item == index);
                let is_other = |call: &&mut Call| {
                    !call.is_told && !call.arguments.is(&String::from_utf8_lossy(&whole))
                };
                if let Some(call) = call.filter(is_other).filter(|_| !whole.is_empty()) {
                    call.arguments = ArgumentText::default();
                    call.arguments.push(whole);
                }
            }
            _unknown => {}
        }
    }

    fn reasoned(&mut self, index: u64, item: &Object<'_>, out: &mut Vec<ModelEvent>) {
        self.turn_to(index, out);
        if !self.heard.contains(&index) {
            for key in ["summary", "content"] {
                for (at, part) in (0..).zip(item.objects(key)) {
                    self.think(index, Some(at), part.text("text"), out);
                }
            }
        }
        self.end_item(out);
        // Without it, the provider cannot know the reasoning again.
        if item.raw("encrypted_content").is_none() {
            return;
        }
        let fields: Vec<_> = SENT_BACK
            .iter()
            .filter_map(|key| Some(format!(r#""{key}":{}"#, item.raw(key)?)))
            .collect();
        out.push(ModelEvent::Sealed(ProviderSignature {
            kind: REASONING.to_owned(),
            data: format!("{{{}}}", fields.join(",")),
        }));
    }

    /// The response has ended; it is here as a whole.
    fn end(
        &mut self,
        response: &Object<'_>,
        status: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), DecodeError> {
        let error = response
            .raw("error")
            .and_then(|error| VendorError::read(&serde_json::from_str(error).ok()?));
        if let Some(error) = error {
            return Err(DecodeError::Vendor(error));
        }
        for (index, item) in (0..).zip(response.objects("output")) {
            self.ended(index, &item, out);
        }
        self.count(&response.object("usage"), out);
        let why = response.object("incomplete_details").word("reason");
        self.stop = Some(match (status, why.as_str()) {
            ("completed", _) if !self.calls.is_empty() => StopReason::ToolUse,
            ("completed", _) if self.refused => StopReason::Refusal,
            ("completed", _) => StopReason::EndTurn,
            ("incomplete", "max_output_tokens") if self.has_no_room() => {
                return Err(DecodeError::Vendor(VendorError::full_context(&why)));
            }
            ("incomplete", "max_output_tokens") => StopReason::MaxTokens,
            ("incomplete", "content_filter") => {
                let words = "the provider stopped the answer: content_filter";
                out.push(ModelEvent::Notice(words.to_owned()));
                StopReason::Refusal
            }
            ("incomplete", why) => StopReason::Other(one_line(why)),
            (status, _) => {
                let words = format!("the provider ended the answer as {}", one_line(status));
                return Err(DecodeError::Vendor(VendorError::saying(&words)));
            }
        });
        self.done = true;
        Ok(())
    }

    fn end_item(&mut self, out: &mut Vec<ModelEvent>) {
        push_text(self.reasoning.finish(), ModelEvent::Reasoning, out);
        push_text(self.text.finish(), ModelEvent::Text, out);
    }

    fn count(&mut self, tokens: &Object<'_>, out: &mut Vec<ModelEvent>) {
        let input = tokens.count("input_tokens");
        let output = tokens.count("output_tokens");
        let cached = tokens.object("input_tokens_details").count("cached_tokens");
        let reasoning = tokens
            .object("output_tokens_details")
            .count("reasoning_tokens");
        let usage = Usage {
            input: input.unwrap_or(0),
            output: output.unwrap_or(0),
            cached: cached.unwrap_or(0),
            cache_write: 0,
            reasoning: reasoning.unwrap_or(0),
        };
        if input.or(output).is_some() && self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
    }

    /// Whether the answer ended at its length before it began: the request fills the context.
    fn has_no_room(&self) -> bool {
        let counted = self.usage.is_some_and(|usage| usage.output > 0);
        !self.said && self.calls.is_empty() && !counted
    }
}
