//! Decoding responses of Gemini's API: pure, incremental, the same for every fragmentation.
//!
//! Each event is a response of its own, with the parts that are new: texts in pieces, calls as a whole. The one with a
//! `finishReason` is the last with parts; the stream ends with its connection. An `error` may come in place of an event.

use super::dialect::{CALL, TEXT, THOUGHT};
use crate::decode::{Body, Decode, DecodeError, Skipped, push_text, refuse_other_api};
use crate::lenient::{Object, TextJoiner, readable};
use crate::vendor_error::{VendorError, one_line};
use http_client::sse;
use llm_worker::{ModelEvent, ProviderSignature, StopReason, Usage};

#[derive(Default)]
pub(crate) struct GeminiDecoder {
    body: Body,
    skipped: Skipped,
    text: TextJoiner,
    thought: TextJoiner,
    calls: usize,
    usage: Option<Usage>,
    stop: Option<StopReason>,
}

impl Decode for GeminiDecoder {
    fn body(&mut self) -> &mut Body {
        &mut self.body
    }

    /// Without `alt=sse`, as behind some proxies, the answer is a list of responses.
    fn document(&mut self, json: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let text = readable(json);
        if !text.starts_with('[') {
            return self.response(&text, out);
        }
        let listed = format!(r#"{{"all":{text}}}"#);
        let listed = Object::read(&listed).ok_or(DecodeError::Cut)?;
        let mut all = listed.objects("all").into_iter();
        all.try_for_each(|response| self.read(&response, out))
    }

    fn done(&self) -> bool {
        false
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
        self.end_texts(out);
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
        if event.data == b"[DONE]" {
            return Ok(());
        }
        self.response(&readable(&event.data), out)
    }
}

impl GeminiDecoder {
    fn response(&mut self, json: &str, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let response = Object::read(json).ok_or_else(|| {
            DecodeError::unreadable(json, "JSON that is not a response of Gemini")
        })?;
        self.read(&response, out)
    }

    fn read(
        &mut self,
        response: &Object<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), DecodeError> {
        let error = response
            .raw("error")
            .and_then(|error| VendorError::read(&serde_json::from_str(error).ok()?));
        if let Some(error) = error {
            return Err(DecodeError::Vendor(error));
        }
        let candidates = response.objects("candidates");
        let is_ours = ["candidates", "usageMetadata", "promptFeedback"]
            .iter()
            .any(|key| response.raw(key).is_some());
        if !is_ours {
            return refuse_other_api(response);
        }
        self.count(&response.object("usageMetadata"), out);
        let blocked = response.object("promptFeedback").word("blockReason");
        if !blocked.is_empty() {
            self.refuse("the provider refused the request", &blocked, out);
        }
        let Some(candidate) = candidates.first() else {
            return Ok(());
        };
        for part in candidate.object("content").objects("parts") {
            self.part(&part, out)?;
        }
        let reason = candidate.word("finishReason");
        match reason.as_str() {
            "" => {}
            "STOP" if self.calls > 0 => self.stop = Some(StopReason::ToolUse),
            "STOP" => self.stop = Some(StopReason::EndTurn),
            "MAX_TOKENS" => self.stop = Some(StopReason::MaxTokens),
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" => self.refuse("the provider stopped the answer", &reason, out),
            // The model wrote a call that its own server cannot read: nothing of it is here.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                let words = candidate.word("finishMessage");
                let what = format!(
                    "the provider could not read the answer of its model: {reason} {words}"
                );
                return Err(DecodeError::Vendor(VendorError {
                    status: Some(500),
                    ..VendorError::saying(&one_line(what.trim_end()))
                }));
            }
            other => self.stop = Some(StopReason::Other(one_line(other))),
        }
        Ok(())
    }

    fn refuse(&mut self, what: &str, reason: &str, out: &mut Vec<ModelEvent>) {
        if self.stop.is_none() {
            out.push(ModelEvent::Notice(format!("{what}: {}", one_line(reason))));
        }
        self.stop = Some(StopReason::Refusal);
    }

    fn part(&mut self, part: &Object<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let is_thought = part.raw("thought") == Some("true");
        let signature = part.word("thoughtSignature");
        let sealed = |kind: &str| {
            (!signature.is_empty()).then(|| {
                ModelEvent::Sealed(ProviderSignature {
                    kind: kind.to_owned(),
                    data: signature.clone(),
                })
            })
        };
        if part.raw("functionCall").is_some() {
            let call = part.object("functionCall");
            let name = call.word("name");
            if name.is_empty() {
                return Err(DecodeError::Vendor(VendorError::saying(
                    "a tool call without a name",
                )));
            }
            self.end_texts(out);
            out.extend(sealed(CALL));
            let index = self.calls;
            self.calls += 1;
            out.push(ModelEvent::CallStarted { index, name });
            let fragment = match call.raw("args") {
                Some(args) if args != "null" => args.to_owned(),
                Some(_) | None => "{}".to_owned(),
            };
            out.push(ModelEvent::CallArguments { index, fragment });
            return Ok(());
        }
        let text = part.text("text");
        if is_thought {
            push_text(self.text.finish(), ModelEvent::Text, out);
            push_text(self.thought.push(text), ModelEvent::Reasoning, out);
        } else if !text.is_empty() {
            push_text(self.thought.finish(), ModelEvent::Reasoning, out);
            push_text(self.text.push(text), ModelEvent::Text, out);
        }
        if let Some(sealed) = sealed(if is_thought { THOUGHT } else { TEXT }) {
            self.end_texts(out);
            out.push(sealed);
        }
        Ok(())
    }

    fn end_texts(&mut self, out: &mut Vec<ModelEvent>) {
        push_text(self.thought.finish(), ModelEvent::Reasoning, out);
        push_text(self.text.finish(), ModelEvent::Text, out);
    }

    /// The counts so far; thoughts are counted apart from the answer.
    fn count(&mut self, tokens: &Object<'_>, out: &mut Vec<ModelEvent>) {
        let Some(prompt) = tokens.count("promptTokenCount") else {
            return;
        };
        let of = |key| tokens.count(key).unwrap_or(0);
        let reasoning = of("thoughtsTokenCount");
        let usage = Usage {
            input: prompt.saturating_add(of("toolUsePromptTokenCount")),
            output: of("candidatesTokenCount").saturating_add(reasoning),
            cached: of("cachedContentTokenCount"),
            cache_write: 0,
            reasoning,
        };
        if self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
    }
}
